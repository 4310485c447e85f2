/* folder.c - folders of files that are nobody's but ours.
 *
 * A temporary folder is locked while its process lives, by a file descriptor that no program started by it inherits. One that
 * is not is left over from a process that was killed: the next one removes it. */
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

#include "compiler.h"

static const char begins[] = "ingot.tmp.";

/* A descriptor that holds the folder's lock until it is closed; -1 with errno: EWOULDBLOCK, another one holds it, or it is gone
 * or another user's. */
static int lock_folder(const char *dir)
{
    struct stat opened, there;
    int error = 0;
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, &opened) || opened.st_uid != geteuid())
        error = EPERM;
    else if (flock(fd, LOCK_EX | LOCK_NB))
        error = errno;
    else if (lstat(dir, &there) || there.st_ino != opened.st_ino)
        error = EWOULDBLOCK;
    if (!error)
        return fd;
    close(fd);
    errno = error;
    return -1;
}

static void remove_left_over(Arena *a, const char *tmp)
{
    DIR *d = opendir(tmp);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strncmp(e->d_name, begins, sizeof begins - 1) != 0)
            continue;
        const char *dir = arena_printf(a, "%s/%s", tmp, e->d_name);
        const int lock = lock_folder(dir);
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
        if (lock_folder(dir) >= 0 || (errno != EWOULDBLOCK && errno != ENOENT))
            return dir; /* unlocked, where the file system has no locks */
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
