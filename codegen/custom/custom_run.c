/* custom_run.c - the interpreter's call of a custom operator: the very source that a bundle gets,
 * compiled by the system's C compiler into a shared object. The call is made in a child process,
 * whose fault is not the compiler's: its results come back through shared memory, and it ends after
 * a time. It has the floating-point mode of the interpreter, in which subnormal numbers of f32 are
 * zeros, as they are in a bundle. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bundle_write.h"
#include "custom.h"
#include "igrt.h"

typedef igrt_status (*CustomFn)(const igrt_tensor *in, int nin, igrt_tensor *out, int nout,
                                const int64_t *attr_i, const double *attr_f, void *scratch,
                                size_t scratch_bytes, int64_t *counts);

/* The source and the headers of the runtime. */
static bool write_source(Arena *a, const CustomOp *op, const char *dir)
{
    StrBuf sb = {0};
    custom_source(&sb, op, "model");
    bool ok = file_write(arena_printf(a, "%s/op.c", dir), sb.data, sb.len);
    sb_free(&sb);
    for (const RuntimeFile *f = runtime_files; *f->name && ok; f++)
        if (f->name[strlen(f->name) - 1] == 'h' && !strchr(f->name, '/'))
            ok = file_write(arena_printf(a, "%s/%s", dir, f->name), f->data, f->bytes);
    return ok;
}

/* $CC may hold flags: "ccache gcc". */
static int compiler_words(Arena *a, const char **argv, int room)
{
    const char *cc = getenv("CC");
    char *text = arena_strdup(a, cc && *cc ? cc : "cc"), *next;
    int n = 0;
    for (char *word = strtok_r(text, " ", &next); word && n < room;
         word = strtok_r(NULL, " ", &next))
        argv[n++] = word;
    return n;
}

static bool compile(Arena *a, const char *dir)
{
    const char *argv[64];
    const char *rest[] = {
        "-std=c99", "-O2", "-ffp-contract=off", "-fPIC", "-shared", "-I.", "-o", "op.so", "op.c",
        "-lm",      NULL};
    int n = compiler_words(a, argv, 40);
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++)
        argv[n++] = rest[i];
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        if (!chdir(dir))
            execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    int status;
    if (child > 0)
        pending_program(child);
    while (child > 0 && waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    pending_program_ended(child);
    return child > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}

static CustomFn load(const CustomOp *op, const char **why)
{
    static char problem[256];
    Arena *a = arena_new();
    char *dir = temporary_folder(a, "op");
    void *handle = NULL;
    if (!dir) {
        snprintf(problem, sizeof problem, "no folder of its own in $TMPDIR, else /tmp: %s",
                 strerror(errno));
    } else if (!write_source(a, op, dir) || !compile(a, dir)) {
        snprintf(problem, sizeof problem, "the C compiler (cc, or $CC) does not compile it");
    } else {
        handle = dlopen(arena_printf(a, "%s/op.so", dir), RTLD_NOW | RTLD_LOCAL);
        if (!handle)
            snprintf(problem, sizeof problem, "%.250s", dlerror());
    }
    if (dir)
        remove_tree(dir);
    void *symbol = handle ? dlsym(handle, arena_printf(a, "model_%s", op->name)) : NULL;
    arena_free(a);
    CustomFn fn = NULL;
    memcpy(&fn, &symbol, sizeof fn);
    if (!fn)
        *why = problem;
    return fn;
}

static size_t tensor_bytes(const igrt_tensor *t)
{
    size_t n = elem_bytes((ingot_dtype)(t->dtype - 1)); /* igrt_dtype starts at 1 */
    for (int i = 0; i < t->rank; i++)
        n *= (size_t)t->dims[i];
    return n;
}

/* In the shared memory: each tensor at a multiple of 64. */
static size_t tensor_room(const igrt_tensor *t)
{
    return (tensor_bytes(t) + 63) & ~(size_t)63;
}

/* A function that does not end is told of; $INGOT_OP_SECONDS says when. */
static unsigned time_limit(void)
{
    const char *told = getenv("INGOT_OP_SECONDS");
    unsigned long seconds = told ? strtoul(told, NULL, 10) : 0;
    return seconds && seconds < 1u << 30 ? (unsigned)seconds : 100;
}

int custom_run(const CustomOp *op, const igrt_tensor *in, int nin, igrt_tensor *out, int nout,
               const int64_t *ints, const double *floats, void *scratch, size_t scratch_size,
               const char **why)
{
    CustomOp *keep = (CustomOp *)(uintptr_t)op;
    CustomFn fn;
    memcpy(&fn, &op->loaded, sizeof fn);
    if (!fn)
        fn = load(op, why);
    if (!fn)
        return -1;
    memcpy(&keep->loaded, &fn, sizeof fn);
    size_t total = 64;
    for (int i = 0; i < nout; i++)
        total += tensor_room(&out[i]);
    uint8_t *shared = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        *why = strerror(errno);
        return -1;
    }
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        size_t at = 0;
        for (int i = 0; i < nout; i++) {
            out[i].data = shared + at;
            at += tensor_room(&out[i]);
        }
        signal(SIGALRM, SIG_DFL);
        alarm(time_limit());
        igrt_status status = fn(in, nin, out, nout, ints, floats, scratch, scratch_size, NULL);
        _exit((int)status);
    }
    int status = 0, code = -1;
    if (child > 0)
        pending_program(child);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    pending_program_ended(child);
    static char ended[80];
    if (child < 0)
        *why = strerror(errno);
    else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(ended, sizeof ended, "it did not end within %u seconds (INGOT_OP_SECONDS)",
                 time_limit()),
            *why = ended;
    else if (WIFSIGNALED(status))
        snprintf(ended, sizeof ended, "it ended by signal %d", WTERMSIG(status)), *why = ended;
    else
        code = WEXITSTATUS(status);
    size_t at = 0;
    for (int i = 0; i < nout && code == IGRT_OK; i++) {
        memcpy(out[i].data, shared + at, tensor_bytes(&out[i]));
        at += tensor_room(&out[i]);
    }
    munmap(shared, total);
    return code;
}
