/* folder.c - folders of files that are nobody's but ours.
 *
 * A temporary folder is locked while its process lives, by a file descriptor that no program
 * started by it inherits. One that is not is left over from a process that was killed: the next one
 * removes it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base.h"

enum { PATH_BYTES = 4096 };
static const char begins[] = "ingot.tmp.";

static void remove_left_over(Arena *a, const char *tmp)
{
    DIR *d = opendir(tmp);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strncmp(e->d_name, begins, sizeof begins - 1) != 0)
            continue;
        const char *dir = arena_printf(a, "%s/%s", tmp, e->d_name);
        const int lock = lock_path(dir);
        if (lock < 0)
            continue;
        remove_tree(dir);
        close(lock);
    }
    if (d)
        closedir(d);
}

char *temporary_folder(Arena *a, const char *what)
{
    enum { TRIES = 8 }; /* whoever looks for what is left over may be faster than the lock */
    const char *own = getenv("TMPDIR"), *tmp = own && *own ? own : "/tmp";
    remove_left_over(a, tmp);
    for (int i = 0; i < TRIES; i++) {
        char *dir = mkdtemp(arena_printf(a, "%s/%s%s-XXXXXX", tmp, begins, what));
        if (!dir)
            return NULL;
        const int lock = lock_path(dir);
        if (lock < 0 && (errno == EWOULDBLOCK || errno == ENOENT))
            continue;
        pending_add(dir, lock); /* unlocked, where the file system has no locks */
        return dir;
    }
    errno = EBUSY;
    return NULL;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

void remove_tree(const char *dir)
{
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    pending_drop(dir);
}

static bool is_folder(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

bool make_dirs(const char *dir)
{
    char path[PATH_BYTES];
    const size_t n = strlen(dir);
    if (n >= sizeof path) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(path, dir, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (path[i] && path[i] != '/')
            continue;
        path[i] = 0;
        const int error = mkdir(path, 0777) ? errno : 0;
        if (error && !is_folder(path)) {
            errno = error == EEXIST && i < n ? ENOTDIR : error;
            return false;
        }
        path[i] = dir[i];
    }
    return true;
}

size_t folders_there(const char *dir)
{
    char path[PATH_BYTES];
    size_t n = strlen(dir);
    if (n >= sizeof path)
        return n;
    memcpy(path, dir, n + 1);
    while (n && !is_folder(path)) {
        while (n && path[n - 1] != '/')
            n--;
        while (n > 1 && path[n - 1] == '/')
            n--;
        path[n] = 0;
    }
    return n;
}

void remove_empty(const char *dir, size_t there)
{
    char path[PATH_BYTES];
    size_t n = strlen(dir);
    if (n >= sizeof path)
        return;
    memcpy(path, dir, n + 1);
    while (n > there && !rmdir(path)) {
        while (n > there && path[n - 1] != '/')
            n--;
        while (n > there && path[n - 1] == '/')
            n--;
        path[n] = 0;
    }
}

bool part_move(Arena *a, const char *part, const char *dir)
{
    DIR *d = opendir(part);
    bool good = d != NULL;
    pending_hold();
    for (struct dirent *e; good && (e = readdir(d));) {
        const char *from = arena_printf(a, "%s/%s", part, e->d_name),
                   *to = arena_printf(a, "%s/%s", dir, e->d_name);
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        good = !rename(from, to);
        if (!good &&
            (errno == ENOTEMPTY || errno == EEXIST || errno == EISDIR || errno == ENOTDIR)) {
            remove_tree(to);
            good = !rename(from, to);
        }
    }
    const int error = errno;
    if (d)
        closedir(d);
    part_discard(part);
    pending_release();
    errno = error;
    return good;
}
