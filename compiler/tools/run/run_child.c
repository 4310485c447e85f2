/* run_child.c - programs that may crash, hang, or have to end when this one does. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "run.h"

enum { LONGEST = 3600 }; /* seconds of a core */

static double cpu_of(int who)
{
    struct rusage u;
    if (getrusage(who, &u))
        return 0;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

Spent spent_now(void)
{
    return (Spent){seconds_now(), cpu_of(RUSAGE_SELF) + cpu_of(RUSAGE_CHILDREN)};
}

void spent_add(Spent *s, Spent since)
{
    const Spent now = spent_now();
    s->seconds += now.seconds - since.seconds;
    s->cpu += now.cpu - since.cpu;
}

/* What is started by a program that outlives this one, and does not come back, ends too. */
static void limit_time(int seconds)
{
    const rlim_t n = seconds > 0 ? (rlim_t)seconds : LONGEST;
    const struct rlimit most = {.rlim_cur = n, .rlim_max = n};
    (void)setrlimit(RLIMIT_CPU, &most);
}

static void become(const char *const *argv, const char *dir, int out, bool quiet, int most)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    setpgid(0, 0); /* what it starts is killed with it */
    limit_time(most);
    int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    if (out >= 0)
        dup2(out, STDOUT_FILENO);
    if (quiet)
        dup2(null, STDERR_FILENO);
    if (dir && chdir(dir))
        _exit(127);
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

bool child_start(Child *c, const char *const *argv, const char *dir, bool piped, bool quiet,
                 int most)
{
    int fd[2] = {-1, -1};
    *c = (Child){.pid = -1};
    if (piped && pipe2(fd, O_CLOEXEC))
        return false;
    fflush(NULL);
    c->pid = fork();
    if (!c->pid)
        become(argv, dir, fd[1], quiet, most);
    if (c->pid > 0)
        pending_program(c->pid);
    if (piped)
        close(fd[1]);
    if (c->pid > 0 && piped)
        c->out = fdopen(fd[0], "r");
    return c->pid > 0 && (!piped || c->out);
}

/* Seconds of a core that it has had; 0 where that is not told. */
static double child_cpu(const Child *c)
{
#ifdef __linux__
    clockid_t its;
    struct timespec t;
    if (!clock_getcpuclockid(c->pid, &its) && !clock_gettime(its, &t))
        return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#else
    (void)c;
#endif
    return 0;
}

char *child_line(Child *c, Arena *a, double seconds, int waits, bool *late)
{
    StrBuf sb = {0};
    const double until = machine_seconds() + seconds * waits, most = child_cpu(c) + seconds;
    char *line = NULL;
    *late = false;
    setvbuf(c->out, NULL, _IONBF, 0);
    for (;;) {
        const double left = until - machine_seconds(), cpu = most - child_cpu(c),
                     wait = fmin(left, cpu);
        struct pollfd p = {.fd = fileno(c->out), .events = POLLIN};
        int ready = poll(&p, 1, wait > 0 ? (int)(wait * 1e3) + 1 : 0);
        if ((ready < 0 && errno == EINTR) || (!ready && wait > 0))
            continue;
        if (ready <= 0) {
            *late = true;
            break;
        }
        char byte;
        ssize_t n = read(fileno(c->out), &byte, 1);
        if (n <= 0)
            break;
        if (byte == '\n') {
            line = arena_strdup(a, sb.data ? sb.data : "");
            break;
        }
        sb_write(&sb, &byte, 1);
    }
    sb_free(&sb);
    return line;
}

bool child_has_ended(Child *c, int *code)
{
    int status = 0;
    pid_t done = waitpid(c->pid, &status, WNOHANG);
    if (!done || (done < 0 && errno == EINTR))
        return false;
    pending_program_ended(c->pid);
    *code = done < 0 ? -1 : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return true;
}

int child_end(Child *c, double seconds)
{
    int status = 0;
    const double until = machine_seconds() + seconds;
    if (c->out)
        fclose(c->out);
    c->out = NULL;
    for (pid_t done; (done = waitpid(c->pid, &status, WNOHANG)) != c->pid;) {
        if (done < 0 && errno != EINTR) {
            pending_program_ended(c->pid);
            return -1;
        }
        if (machine_seconds() > until) {
            kill(-c->pid, SIGKILL);
            kill(c->pid, SIGKILL);
        }
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    pending_program_ended(c->pid);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
