/* pending.c - what is not complete: files and folders under names of their own, and programs that
 * were started for them.
 *
 * A signal that ends the process (SIGINT, SIGTERM, SIGHUP, SIGPIPE) ends these programs and removes
 * these files first; the status is still that of the signal. So the handler may call what POSIX
 * calls async-signal-safe and nothing else: no allocation, no stdio, no opendir(); the list is an
 * array of fixed size, and what does not fit into it is left behind. Of a process that is killed
 * (SIGKILL) all is left; the locks that it held are gone, by which the next one knows (file.c).
 *
 * A model is mapped, and a program that writes it again meanwhile makes it shorter first: what is
 * read of it then is a SIGBUS. That is no fault of this program, so it says so, and ends. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

#include "base.h"

enum { MOST_PATHS = 32, MOST_PROGRAMS = 256, PATH_BYTES = 4096, DEEPEST = 8 };

static struct {
    volatile sig_atomic_t used;
    pid_t owner; /* children that were forked have a copy of this list, and no part in it */
    int lock;
    size_t keep; /* 0: all of it goes; else folders that are empty do, down to so many characters */
    char path[PATH_BYTES];
} paths[MOST_PATHS];

static struct {
    volatile sig_atomic_t used;
    pid_t owner, pid;
} programs[MOST_PROGRAMS];

static volatile sig_atomic_t held, waiting;

/* ---- the list ------------------------------------------------------------------------------ */

static void add(const char *path, int lock, size_t keep)
{
    const size_t n = strlen(path);
    for (int i = 0; i < MOST_PATHS && n < PATH_BYTES; i++)
        if (!paths[i].used) {
            memcpy(paths[i].path, path, n + 1);
            paths[i].owner = getpid();
            paths[i].lock = lock;
            paths[i].keep = keep;
            paths[i].used = 1;
            return;
        }
}

void pending_add(const char *path, int lock)
{
    add(path, lock, 0);
}

void pending_folders(const char *dir, size_t keep)
{
    add(dir, -1, keep ? keep : 1);
}

/* A folder may be there twice: for itself, and for what is made in it. */
static void drop(const char *path, bool folders)
{
    for (int i = 0; i < MOST_PATHS; i++)
        if (paths[i].used && (paths[i].keep != 0) == folders && !strcmp(paths[i].path, path)) {
            paths[i].used = 0;
            if (paths[i].lock >= 0)
                close(paths[i].lock);
            return;
        }
}

void pending_drop(const char *path)
{
    drop(path, false);
}

void pending_folders_drop(const char *dir)
{
    drop(dir, true);
}

void pending_program(pid_t pid)
{
    for (int i = 0; i < MOST_PROGRAMS; i++)
        if (!programs[i].used) {
            programs[i].pid = pid;
            programs[i].owner = getpid();
            programs[i].used = 1;
            return;
        }
}

void pending_program_ended(pid_t pid)
{
    for (int i = 0; i < MOST_PROGRAMS; i++)
        if (programs[i].used && programs[i].pid == pid) {
            programs[i].used = 0;
            return;
        }
}

/* ---- the signal ---------------------------------------------------------------------------- */

#ifdef __linux__
/* Of getdents64(2). */
typedef struct {
    uint64_t inode;
    int64_t offset;
    unsigned short bytes;
    unsigned char type;
    char name[];
} DirEntry;

static void remove_at(int at, const char *name, int depth);

/* What is in the folder. False: there was nothing. */
static bool empty_folder(int fd, int depth)
{
    _Alignas(DirEntry) char list[1024];
    bool any = false;
    for (long n; (n = syscall(SYS_getdents64, fd, list, sizeof list)) > 0;)
        for (long i = 0; i < n;) {
            const DirEntry *e = (const DirEntry *)(const void *)(list + i);
            const bool dots =
                e->name[0] == '.' && (!e->name[1] || (e->name[1] == '.' && !e->name[2]));
            if (!dots)
                remove_at(fd, e->name, depth + 1);
            any |= !dots;
            i += e->bytes;
        }
    return any;
}

static void remove_at(int at, const char *name, int depth)
{
    enum { TRIES = 4 }; /* a program that has not ended yet may add something */
    if (!unlinkat(at, name, 0) || errno == ENOENT || depth > DEEPEST)
        return;
    for (int i = 0; i < TRIES; i++) {
        const int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            return;
        for (int k = 0; k < TRIES && empty_folder(fd, depth); k++)
            if (lseek(fd, 0, SEEK_SET))
                break;
        close(fd);
        if (!unlinkat(at, name, AT_REMOVEDIR))
            return;
    }
}
#else
static void remove_at(int at, const char *name, int depth)
{
    (void)depth;
    if (unlinkat(at, name, 0) && errno != ENOENT)
        (void)unlinkat(at, name,
                       /* if it is empty: no other system tells what is in it without allocating */
                       AT_REMOVEDIR);
}
#endif

/* Folders that were made for a file: those that are empty, from the inside out. */
static void remove_folders(char *path, size_t keep)
{
    for (size_t n = strlen(path); n > keep && !rmdir(path);) {
        while (n > keep && path[n - 1] != '/')
            n--;
        while (n > keep && path[n - 1] == '/')
            n--;
        path[n] = 0;
    }
}

static bool has_ended(pid_t pid)
{
    const pid_t done = waitpid(pid, NULL, WNOHANG);
    return done == pid || (done < 0 && errno != EINTR);
}

static void end_programs(pid_t self)
{
    enum { TURNS = 200 };
    const struct timespec turn = {.tv_nsec = 10000000};
    for (int i = 0; i < MOST_PROGRAMS; i++)
        if (programs[i].used && programs[i].owner == self) {
            (void)kill(-programs[i].pid, SIGTERM);
            (void)kill(programs[i].pid, SIGTERM);
        }
    for (int i = 0; i < MOST_PROGRAMS; i++) {
        if (!programs[i].used || programs[i].owner != self)
            continue;
        for (int k = 0; k <= TURNS && !has_ended(programs[i].pid); k++) {
            if (k == TURNS) {
                (void)kill(-programs[i].pid, SIGKILL);
                (void)kill(programs[i].pid, SIGKILL);
            }
            (void)nanosleep(&turn, NULL);
        }
    }
}

static void clear_away(pid_t self)
{
    end_programs(self);
    for (int i = 0; i < MOST_PATHS; i++)
        if (paths[i].used && paths[i].owner == self && !paths[i].keep)
            remove_at(AT_FDCWD, paths[i].path, 0);
    for (int i = MOST_PATHS - 1; i >= 0; i--)
        if (paths[i].used && paths[i].owner == self && paths[i].keep)
            remove_folders(paths[i].path, paths[i].keep);
}

static void end_by(int number)
{
    const pid_t self = getpid();
    sigset_t set;
    clear_away(self);
    (void)signal(number, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, number);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    (void)kill(self, number);
    _exit(128 + number); /* not reached, unless the signal is late */
}

static void on_signal(int number)
{
    const int error = errno;
    if (held)
        waiting = number;
    else
        end_by(number);
    errno = error;
}

#ifdef __linux__   /* elsewhere an address that is simply wrong may be the same signal and code */
static pid_t home; /* of the handler: children that were forked run code of users */
static int status_if_shorter;

static void on_lost_page(int number, siginfo_t *info, void *context)
{
    static const char text[] = "ingot: a file became shorter while it was read: another program is "
                               "writing it; run the command again when that is done\n";
    (void)context;
    const pid_t self = getpid();
    if (info->si_code == BUS_ADRERR && self == home) {
        const ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);
        (void)n;
        clear_away(self);
        _exit(status_if_shorter);
    }
    (void)signal(number, SIG_DFL); /* what failed is tried again, and ends the process */
}

static void expect_lost_pages(int status)
{
    struct sigaction act = {.sa_sigaction = on_lost_page, .sa_flags = SA_SIGINFO}, was;
    sigemptyset(&act.sa_mask);
    home = getpid();
    status_if_shorter = status;
    if (!sigaction(SIGBUS, NULL, &was) && was.sa_handler == SIG_DFL) /* not a sanitizer's */
        (void)sigaction(SIGBUS, &act, NULL);
}
#endif

void pending_signals(int if_shorter)
{
#ifdef __linux__
    expect_lost_pages(if_shorter);
#else
    (void)if_shorter;
#endif
    static const int all[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    struct sigaction act = {.sa_handler = on_signal}, was;
    sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        sigaddset(&act.sa_mask, all[i]);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!sigaction(all[i], NULL, &was) && was.sa_handler != SIG_IGN) /* nohup */
            (void)sigaction(all[i], &act, NULL);
}

void pending_hold(void)
{
    held = held + 1;
}

void pending_release(void)
{
    held = held - 1;
    if (!held && waiting)
        end_by(waiting);
}
