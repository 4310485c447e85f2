/* run_whole.c - a model's small sources as one. To start a compiler and to read headers takes
 * longer than such a source, and there are half a dozen beside the kernels:
 *
 *     model.c  model_selftest.c  model_weights.c       ->  whole.c        of the model's machine
 *     model_init.c  model_igrt_cpu.c  table.c  main.c  ->  host/whole.c   of any machine
 *
 * Both lie in the program's folder while it is built. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"

#define WHOLE "whole.c"
#define WHOLE_OF_ANY "host/whole.c"
enum { MOST_BYTES = 1 << 18 }; /* of a source: what is longer is compiled beside the others */

static const char *const joined[] = {"model.c",      "model_selftest.c", "model_weights.c",
                                     "model_init.c", "model_igrt_cpu.c", "host/table.c",
                                     "host/main.c"};
enum { NJOINED = sizeof joined / sizeof *joined };

static bool is_joined(Arena *a, const char *dir, const char *file)
{
    struct stat s;
    for (int i = 0; i < NJOINED; i++)
        if (!strcmp(file, joined[i]))
            return !stat(arena_printf(a, "%s/%s", dir, file), &s) && s.st_size <= MOST_BYTES;
    return false;
}

/* First come the new names of the runtime's functions. */
static bool write_whole(Arena *a, const char *dir, const char *name, const char *const *file, int n)
{
    StrBuf sb = {0};
    if (!access(arena_printf(a, "%s/model_igrt.h", dir), R_OK))
        sb_puts(&sb, "#include \"model_igrt.h\"\n");
    for (int i = 0; i < n; i++)
        sb_printf(&sb, "#include \"%s\"\n", file[i]);
    const bool good = file_write(arena_printf(a, "%s/%s", dir, name), sb.data, sb.len);
    sb_free(&sb);
    return good;
}

int whole_join(Arena *a, const char *dir, const char **file, int n)
{
    const char **left = NEWN(a, const char *, n + 1), **part = NEWN(a, const char *, n + 1);
    int nleft = 0;
    for (int i = 0; i < n; i++)
        if (!is_joined(a, dir, file[i]))
            left[nleft++] = file[i];
    for (int machine = -1; machine <= 0; machine++) {
        const char *whole = machine < 0 ? WHOLE_OF_ANY : WHOLE;
        int npart = 0;
        for (int k = 0; k < NJOINED; k++) /* in the table's order: that of a folder is none */
            for (int i = 0; i < n; i++)
                if (!strcmp(file[i], joined[k]) && is_joined(a, dir, file[i]) &&
                    source_machine(a, "model", 0, NULL, file[i]) == machine)
                    part[npart++] = file[i];
        if (npart > 1 && write_whole(a, dir, whole, part, npart))
            part[0] = whole, npart = 1;
        for (int i = 0; i < npart; i++)
            left[nleft++] = part[i];
    }
    for (int i = 0; i < nleft; i++)
        file[i] = left[i];
    return nleft;
}

void whole_leave(Arena *a, const char *dir)
{
    static const char *const made[] = {WHOLE, WHOLE_OF_ANY, "whole.o", "host/whole.o"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        (void)unlink(arena_printf(a, "%s/%s", dir, made[i]));
}
