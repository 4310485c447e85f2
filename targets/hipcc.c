/* hipcc.c - HIP C++ compiled offline by hipcc, ROCm's compiler.
 *
 * $INGOT_HIPCC is the program, or any other word: then there is none, and kernels stay source. No
 * GPU is needed, and none of HIP's headers: the text has what it needs. The result is a code object
 * in the bundle that hipcc wraps it in, which the runtime opens. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "targets.h"

/* A file's bytes; false: it cannot be read. */
static bool take_file(StrBuf *out, const char *path)
{
    char piece[1 << 14];
    FILE *f = fopen(path, "rb");
    size_t n;
    if (!f)
        return false;
    while ((n = fread(piece, 1, sizeof piece, f)) > 0)
        sb_write(out, piece, n);
    return fclose(f) == 0;
}

/* Its status, 127 where there is no such program; what it says goes to the file told. */
static int run_quietly(const char *const *argv, const char *told)
{
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (!child) {
        const int in = open("/dev/null", O_RDONLY),
                  out = open(told, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
            _exit(126);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    if (child < 0)
        return 126;
    pending_program(child);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            break;
    pending_program_ended(child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 126;
}

static CompileStatus compile_in(StrBuf *out, Arena *a, const char *dir, const char *source,
                                const char *machine, bool flush)
{
    const char *told = getenv("INGOT_HIPCC"), *text = arena_printf(a, "%s/kernels.hip", dir),
               *object = arena_printf(a, "%s/kernels.o", dir),
               *log = arena_printf(a, "%s/log", dir);
    const char *const argv[] = {told && *told ? told : "hipcc",
                                "--genco",
                                arena_printf(a, "--offload-arch=%s", machine),
                                "-nogpuinc",
                                "-std=c++17",
                                "-O3",
                                "-w",
                                "-ffp-contract=off",
                                flush ? "-fgpu-flush-denormals-to-zero"
                                      : "-fno-gpu-flush-denormals-to-zero",
                                "-o",
                                object,
                                text,
                                NULL};
    if (!file_write(text, source, strlen(source))) {
        sb_printf(out, "%s: %s", text, strerror(errno));
        return COMPILE_FAILED;
    }
    const int status = run_quietly(argv, log);
    if (status == 127)
        return COMPILE_ABSENT;
    const bool good = status == 0 && take_file(out, object);
    if (!good)
        take_file(out, log);
    return good ? COMPILE_DONE : COMPILE_FAILED;
}

CompileStatus hipcc_compile(StrBuf *out, const char *source, const char *machine, bool flush)
{
    Arena *a = arena_new();
    const char *dir = temporary_folder(a, "hip");
    CompileStatus status = COMPILE_FAILED;
    if (dir)
        status = compile_in(out, a, dir, source, machine, flush);
    else
        sb_printf(out, "no folder of its own in $TMPDIR, else /tmp: %s", strerror(errno));
    if (dir)
        remove_tree(dir);
    arena_free(a);
    return status;
}
