/* compile_apart.c - many programs compiled at once, each in a child process.
 *
 * A compiler that is a library may crash, or not come back, and takes the process along in which
 * that happens: here that is a child's, and the program is one that does not compile. A child
 * answers through a pipe: a byte with the status, then the image or what the compiler said. One
 * that ended without an answer may have been short of memory, beside so many others: it is tried
 * once more, by itself. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "compile_apart.h"

enum { MOST_CHILDREN = 64 };

typedef struct {
    pid_t pid;
    int fd;
    double until; /* 0: without end */
    Compilation *c;
} CompileChild;

typedef struct {
    const Target *t;
    bool flush;
    CompileChild child[MOST_CHILDREN];
    int n, most;
} Children;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void compile_here(const Children *all, Compilation *c)
{
    c->status = all->t->compile(&c->out, c->source, c->machine, all->flush);
}

/* ---- the child ------------------------------------------------------------------------------- */

static bool write_all(int fd, const char *data, size_t n)
{
    while (n) {
        const ssize_t done = write(fd, data, n);
        if (done < 0 && errno != EINTR)
            return false;
        if (done > 0) {
            data += done;
            n -= (size_t)done;
        }
    }
    return true;
}

/* Handlers are those of the parent, which goes on by itself after an interrupt: what is begun is
 * compiled to its end. */
static _Noreturn void answer(const Children *all, Compilation *c, int fd)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    compile_here(all, c);
    const char status = (char)c->status;
    const bool good = write_all(fd, &status, 1) && write_all(fd, c->out.data, c->out.len);
    _exit(!good);
}

/* ---- the parent ------------------------------------------------------------------------------ */

/* False: there is no process, or no pipe, to be had. */
static bool start(Children *all, Compilation *c)
{
    int fd[2];
    if (pipe(fd))
        return false;
    const pid_t pid = fork();
    if (!pid)
        answer(all, c, fd[1]);
    close(fd[1]);
    if (pid < 0) {
        close(fd[0]);
        return false;
    }
    pending_program(pid);
    all->child[all->n++] = (CompileChild){pid, fd[0], c->most > 0 ? seconds() + c->most : 0, c};
    return true;
}

/* What came through the pipe is all that comes. False: it is no answer. */
static bool end(Children *all, int at, bool late)
{
    const CompileChild child = all->child[at];
    StrBuf *out = &child.c->out, image = {0};
    int code = 0;
    all->child[at] = all->child[--all->n];
    close(child.fd);
    if (late)
        kill(child.pid, SIGKILL);
    pid_t ended;
    while ((ended = waitpid(child.pid, &code, 0)) < 0 && errno == EINTR)
        ;
    pending_program_ended(child.pid);
    /* a host that waits for all children by itself leaves no status: what came may be a part */
    const bool good =
        !late && ended == child.pid && out->len && WIFEXITED(code) && !WEXITSTATUS(code);
    child.c->status = good ? (CompileStatus)out->data[0] : COMPILE_FAILED;
    if (good)
        sb_write(&image, out->data + 1, out->len - 1);
    else if (late)
        sb_printf(&image, "the compiler has not come to an end in %g s", child.c->most);
    else if (ended == child.pid && WIFSIGNALED(code))
        sb_printf(&image, "the compiler ended by signal %d", WTERMSIG(code));
    else
        sb_puts(&image, "the compiler ended without an answer");
    sb_free(out);
    *out = image;
    return good || late;
}

/* Until one of them has ended, or is late. */
static Compilation *wait_for_one(Children *all, bool *answered)
{
    for (;;) {
        struct pollfd p[MOST_CHILDREN];
        double left = 3600;
        for (int i = 0; i < all->n; i++) {
            const double until = all->child[i].until, now = seconds();
            p[i] = (struct pollfd){.fd = all->child[i].fd, .events = POLLIN};
            left = until > 0 && until - now < left ? until - now : left;
        }
        const int ready = poll(p, (nfds_t)all->n, left > 0 ? (int)(left * 1e3) + 1 : 0);
        for (int i = 0; i < all->n; i++) {
            CompileChild *child = &all->child[i];
            Compilation *c = child->c;
            char piece[1 << 16];
            if (ready > 0 && p[i].revents) {
                const ssize_t n = read(child->fd, piece, sizeof piece);
                if (n > 0)
                    sb_write(&c->out, piece, (size_t)n);
                if (n > 0 || (n < 0 && errno == EINTR))
                    continue;
                *answered = end(all, i, false);
                return c;
            }
            if (child->until > 0 && seconds() > child->until) {
                *answered = end(all, i, true);
                return c;
            }
        }
    }
}

/* Those of the list, in this order; what gave no answer is in the list then, *n of them. */
static void compile_list(Children *all, Compilation **list, int *n)
{
    const int count = *n;
    *n = 0;
    for (int i = 0; i < count || all->n;) {
        bool answered;
        if (i < count && all->n < all->most) {
            if (start(all, list[i])) {
                i++;
                continue;
            }
            if (!all->n) {
                compile_here(all, list[i++]);
                continue;
            }
        }
        Compilation *c = wait_for_one(all, &answered);
        if (!answered)
            list[(*n)++] = c; /* in the place of one that was begun */
    }
}

void compile_apart(Arena *a, const Target *t, bool flush, Compilation *c, int n)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    Children all = {.t = t, .flush = flush};
    Compilation **list = NEWN(a, Compilation *, n + 1);
    for (int i = 0; i < n; i++)
        list[i] = &c[i];
    all.most = cores < 1 ? 1 : cores > MOST_CHILDREN ? MOST_CHILDREN : (int)cores;
    compile_list(&all, list, &n);
    all.most = 1;
    for (int i = 0; i < n; i++)
        sb_free(&list[i]->out);
    compile_list(&all, list, &n);
}
