/* run_objects.c - objects of the sources that are alike in every program: the driver and what it
 * stands on, of host/. They are compiled once for a C compiler and its flags, and kept in a folder
 * of the cache, or of $INGOT_OBJECTS, which several caches may share; the programs that follow are
 * linked with them. Beside them lie the headers of vector kernels, precompiled: a compiler that
 * reads those of its machine takes as long for them as for most kernels.
 *
 * The folder is named by a hash of the compiler, its flags, the processor that a flag like
 * -march=native means, and all these sources: what lies in it is never out of date. */
#define _XOPEN_SOURCE 700
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"

static bool is_shared(const RuntimeFile *f)
{
    return !strncmp(f->name, "host/", 5) || !strcmp(f->name, "igrt.h");
}

static bool is_header(const RuntimeFile *f)
{
    size_t n = strlen(f->name);
    return n > 2 && !strchr(f->name, '/') && !strcmp(f->name + n - 2, ".h");
}

bool object_is_shared(const char *source)
{
    for (const RuntimeFile *f = runtime_files; *f->name; f++)
        if (is_shared(f) && !strcmp(f->name, source))
            return true;
    return false;
}

const char *objects_folder(Arena *a, const char *const *words, int n)
{
    const char *compiler = n ? find_program(a, words[0]) : NULL;
    uint64_t key[2] = {1, 2};
    struct stat st;
    if (!compiler || stat(compiler, &st))
        return NULL;
    const int64_t head[] = {n, st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
    bool native = false;
    for (int i = 0; i < n; i++)
        native |= strstr(words[i], "native") != NULL;
    const char *processor = native ? this_processor(a) : "";
    for (int k = 0; k < 2; k++) {
        key[k] = hash_bytes(key[k], head, sizeof head);
        for (int i = 0; i < n; i++)
            key[k] = hash_bytes(key[k], words[i], strlen(words[i]) + 1);
        key[k] = hash_bytes(key[k], processor, strlen(processor) + 1);
        for (const RuntimeFile *f = runtime_files; *f->name; f++)
            if (is_shared(f) || is_header(f)) {
                key[k] = hash_bytes(key[k], f->name, strlen(f->name) + 1);
                key[k] = hash_bytes(key[k], f->data, f->bytes);
            }
    }
    const char *own = getenv("INGOT_OBJECTS"), *root = own && *own ? own : cache_root(a);
    const char *entry = arena_printf(a, "%s/%016llx%016llx" OBJECTS_SUFFIX, root,
                                     (unsigned long long)key[0], (unsigned long long)key[1]);
    char *path = make_dirs(arena_printf(a, "%s/host", entry)) ? realpath(entry, NULL) : NULL;
    if (!path)
        return NULL; /* a cache that cannot be written: every program has its own */
    const char *folder = arena_printf(a, "%s", path);
    free(path);
    cache_used(folder);
    return folder;
}

/* A compiler that did not precompile them once is not asked again. */
#define HEAD "kernels_head.h"
#define REFUSED HEAD ".refused"

const char *objects_head(Arena *a, const char *folder)
{
    const char *head = folder ? arena_printf(a, "%s/" HEAD, folder) : NULL;
    if (!head || access(arena_printf(a, "%s.gch", head), R_OK))
        return NULL;
    (void)setenv(
        /* it lies in a folder that is never changed: else ccache keeps no such object */
        "CCACHE_SLOPPINESS", "pch_defines,time_macros,include_file_mtime,include_file_ctime", 0);
    return head;
}

bool objects_head_wanted(Arena *a, const char *folder)
{
    return folder && !objects_head(a, folder) &&
           access(arena_printf(a, "%s/" REFUSED, folder), F_OK);
}

/* As often as somebody likes: the same bytes. */
static bool write_headers(Arena *a, const char *folder)
{
    StrBuf sb = {0};
    print_kernel_headers(&sb, NEED_VEC_ALL);
    bool ok = true;
    for (const RuntimeFile *f = runtime_files; *f->name && ok; f++) {
        const char *path = arena_printf(a, "%s/%s", folder, f->name);
        if (is_header(f) && access(path, F_OK))
            ok = file_replace(a, path, f->data, f->bytes);
    }
    const char *head = arena_printf(a, "%s/" HEAD, folder);
    ok = ok && (!access(head, F_OK) || file_replace(a, head, sb.data, sb.len));
    sb_free(&sb);
    return ok;
}

void objects_precompile(Arena *a, const char *folder, const char *const *words, int n)
{
    const char *head = arena_printf(a, "%s/" HEAD, folder), *to = arena_printf(a, "%s.gch", head);
    const char *part = part_file(a, to), **argv = NEWN(a, const char *, n + 12);
    const char *const quiet[] = {"sh", "-c", "exec \"$@\" >/dev/null 2>&1", "sh"};
    const char *const tail[] = {"-x", "c-header", "-o", part, head, NULL};
    enum { NQUIET = sizeof quiet / sizeof *quiet };
    if (!part || !write_headers(a, folder)) {
        if (part)
            part_discard(part);
        return;
    }
    memcpy((void *)argv, quiet, sizeof quiet);
    memcpy((void *)(argv + NQUIET), words, (size_t)n * sizeof *words);
    memcpy((void *)(argv + NQUIET + n), tail, sizeof tail);
    if (process_run(argv) == 0 && part_keep(part, to))
        return;
    part_discard(part);
    (void)file_replace(a, arena_printf(a, "%s/" REFUSED, folder), "", 0);
}

bool source_takes_head(const char *path)
{
    char text[512];
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        (void)fclose(f);
    text[n] = 0;
    const char *first = strstr(text, "#");
    return first && !strncmp(first, "#include \"igrt_vec", 18);
}
