/* file.c - files and folders that are written as a whole: under a name beside the one that they get
 * when they are complete.
 *
 * The name is PATH.partial-PROCESS-TIME. While the process lives it holds a lock on what is there
 * (flock), and a signal that ends it removes it (pending.c). What is not locked is left over from a
 * process that was killed: whoever writes the same path next removes it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base.h"

enum { TRIES = 8, LONGEST_NAME = 255 };
static const char partial[] = ".partial-";

/* ---- names --------------------------------------------------------------------------------- */

static const char *name_in(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* What names of parts begin with: the path's, as far as there is room for the rest. */
static const char *part_stem(Arena *a, const char *path)
{
    enum { REST = 64 };
    const char *name = name_in(path);
    const size_t n = strlen(name), most = LONGEST_NAME - REST;
    return arena_printf(a, "%.*s%s", (int)((size_t)(name - path) + (n < most ? n : most)), path,
                        partial);
}

/* Processes in two containers that share a folder may have the same number. */
static const char *part_name(Arena *a, const char *path)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return arena_printf(a, "%s%ld-%llx%08lx", part_stem(a, path), (long)getpid(),
                        (unsigned long long)now.tv_sec, (unsigned long)now.tv_nsec);
}

const char *part_shown(Arena *a, const char *path)
{
    const char *at = strstr(path, partial);
    if (!at)
        return path;
    const char *rest = strchr(at, '/');
    const bool inside = at > path && at[-1] == '/'; /* DIR/.partial-1-2/file */
    return arena_printf(a, "%.*s%s", (int)(at - path) - (inside && rest), path, rest ? rest : "");
}

/* ---- locks --------------------------------------------------------------------------------- */

/* A descriptor of a file or folder that holds its lock until it is closed; -1 with errno:
 * EWOULDBLOCK, another one holds it, or it is gone or another user's. */
int lock_path(const char *path)
{
    struct stat opened, there;
    int error = 0;
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, &opened) || opened.st_uid != geteuid())
        error = EPERM;
    else if (flock(fd, LOCK_EX | LOCK_NB))
        error = errno;
    else if (lstat(path, &there) || there.st_ino != opened.st_ino)
        error = EWOULDBLOCK;
    if (!error)
        return fd;
    close(fd);
    errno = error;
    return -1;
}

/* Left over: the digits of a process and a time follow, and nobody holds it. */
static void remove_unlocked(const char *path, const char *rest)
{
    const size_t digits = strspn(rest, "0123456789");
    if (!digits || rest[digits] != '-' ||
        strspn(rest + digits + 1, "0123456789abcdef") != strlen(rest + digits + 1))
        return;
    const int lock = lock_path(path);
    if (lock < 0)
        return;
    remove_tree(path);
    close(lock);
}

void parts_clean(Arena *a, const char *path, bool all)
{
    const char *stem = part_stem(a, path), *begin = name_in(stem);
    const char *dir = begin == stem ? "." : arena_printf(a, "%.*s", (int)(begin - stem), stem);
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        const char *at = all ? strstr(e->d_name, partial) : e->d_name;
        if (at && !strncmp(at, all ? partial : begin, strlen(all ? partial : begin)))
            remove_unlocked(arena_printf(a, "%s/%s", dir, e->d_name),
                            at + strlen(all ? partial : begin));
    }
    if (d)
        closedir(d);
}

/* ---- folders ------------------------------------------------------------------------------- */

/* Locked where the file system has locks. False: whoever looks for what is left over was faster. */
static bool hold(const char *path)
{
    const int lock = lock_path(path);
    if (lock < 0 && (errno == EWOULDBLOCK || errno == ENOENT))
        return false;
    pending_add(path, lock);
    return true;
}

const char *part_folder(Arena *a, const char *path)
{
    parts_clean(a, path, false);
    for (int i = 0; i < TRIES; i++) {
        const char *part = part_name(a, path);
        if (mkdir(part, 0777) && errno != EEXIST)
            return NULL;
        if (hold(part))
            return part;
    }
    errno = EBUSY;
    return NULL;
}

/* ---- files --------------------------------------------------------------------------------- */

/* The file behind links, which stay. */
static const char *behind_links(Arena *a, const char *path)
{
    char *real = realpath(path, NULL);
    const char *file = real ? arena_strdup(a, real) : path;
    free(real);
    return file;
}

/* A device or a pipe is written to. */
static bool is_special(const char *path)
{
    struct stat st;
    return !stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static int part_open(Arena *a, const char *path, const char **part)
{
    parts_clean(a, path, false);
    for (int i = 0; i < TRIES; i++) {
        *part = part_name(a, path);
        const int fd = open(*part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            return -1;
        if (fd >= 0 && hold(*part))
            return fd;
        if (fd >= 0)
            close(fd);
    }
    errno = EBUSY;
    return -1;
}

bool output_begin(OutFile *f, Arena *a, const char *path)
{
    struct stat st;
    *f = (OutFile){.path = behind_links(a, path)};
    if (!stat(path, &st) && S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return false;
    }
    if (is_special(path)) {
        f->out = fopen(path, "wb");
        return f->out != NULL;
    }
    const int fd = part_open(a, f->path, &f->part);
    if (fd < 0)
        return false;
    f->out = fdopen(fd, "wb");
    if (f->out)
        return true;
    const int error = errno;
    close(fd);
    part_discard(f->part);
    errno = error;
    return false;
}

bool output_put(OutFile *f, const void *data, size_t bytes)
{
    if (!f->error && bytes && fwrite(data, 1, bytes, f->out) != bytes)
        f->error = errno ? errno : EIO;
    return !f->error;
}

/* Whether all of it is on its disk. */
static bool output_close(OutFile *f)
{
    if (fflush(f->out) && !f->error)
        f->error = errno;
    if (f->part && !f->error && fsync(fileno(f->out)) && errno != EINVAL && errno != ENOSYS)
        f->error = errno;
    if (fclose(f->out) && !f->error)
        f->error = errno;
    f->out = NULL;
    return !f->error;
}

bool output_written(OutFile *f)
{
    if (output_close(f))
        return true;
    output_drop(f);
    return false;
}

bool output_keep(OutFile *f)
{
    return !f->part || part_keep(f->part, f->path);
}

void output_drop(OutFile *f)
{
    if (f->out)
        (void)fclose(f->out);
    if (f->part)
        part_discard(f->part);
    f->out = NULL;
    errno = f->error;
}

bool output_end(OutFile *f)
{
    return output_written(f) && output_keep(f);
}

const char *part_file(Arena *a, const char *path)
{
    const char *part = path;
    if (is_special(path))
        return path;
    const int fd = part_open(a, behind_links(a, path), &part);
    if (fd < 0)
        return NULL;
    close(fd);
    return part;
}

bool part_keep(const char *part, const char *path)
{
    if (!strcmp(part, path))
        return true;
    char *real = realpath(path, NULL); /* behind links, which stay */
    const int error = rename(part, real ? real : path) ? errno : 0;
    free(real);
    if (!error) {
        pending_drop(part);
        return true;
    }
    part_discard(part);
    errno = error;
    return false;
}

void part_discard(const char *part)
{
    remove_tree(part);
}

bool file_write(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    int error = f ? 0 : errno;
    if (f && bytes && fwrite(data, 1, bytes, f) != bytes)
        error = errno;
    if (f && fclose(f) && !error)
        error = errno;
    errno = error;
    return !error;
}

bool file_replace(Arena *a, const char *path, const void *data, size_t bytes)
{
    OutFile f;
    return output_begin(&f, a, path) && (output_put(&f, data, bytes), output_end(&f));
}
