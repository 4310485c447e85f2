/* folder.c - folders of files that are nobody's but ours. */
#define _GNU_SOURCE
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compiler.h"

char *temporary_folder(Arena *a, const char *what)
{
    const char *tmp = getenv("TMPDIR");
    char *dir = arena_printf(a, "%s/ingot-%s-XXXXXX", tmp && *tmp ? tmp : "/tmp", what);
    return mkdtemp(dir);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

void remove_tree(const char *dir)
{
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

bool make_dirs(const char *dir)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s", dir) >= (int)sizeof path)
        return false;
    for (char *p = path + 1; *p; p++)
        if (*p == '/') {
            *p = 0;
            mkdir(path, 0777);
            *p = '/';
        }
    struct stat st;
    return !mkdir(path, 0777) || (!stat(path, &st) && S_ISDIR(st.st_mode));
}
