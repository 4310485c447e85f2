/* run_process.c - child processes, and the programs and cores that there are for them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"

extern char **environ;

/* In the folder dir, its standard output to a file; NULL: as here. -1 after a message. */
static pid_t spawn(const char *const *argv, const char *dir, const char *out)
{
    pid_t pid;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (out)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out, O_WRONLY | O_CREAT | O_TRUNC,
                                         0666);
    if (dir)
        posix_spawn_file_actions_addchdir_np(&actions, dir);
    pending_hold();
    int error =
        posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    if (!error)
        pending_program(pid);
    pending_release();
    posix_spawn_file_actions_destroy(&actions);
    if (!error)
        return pid;
    complain(INGOT_TOOL, "%s: cannot be started: %s", argv[0], strerror(error));
    return -1;
}

pid_t process_start(const char *const *argv)
{
    return spawn(argv, NULL, NULL);
}

pid_t process_start_in(const char *const *argv, const char *dir)
{
    return spawn(argv, dir, NULL);
}

int process_wait(pid_t pid)
{
    int status;
    while (pid >= 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    pending_program_ended(pid);
    return pid < 0 ? -1 : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int process_run(const char *const *argv)
{
    return process_wait(process_start(argv));
}

int process_run_to(const char *const *argv, const char *file)
{
    return process_wait(spawn(argv, NULL, file));
}

const char *find_program(Arena *a, const char *name)
{
    if (strchr(name, '/'))
        return name;
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t n = strcspn(path, ":");
        const char *file = arena_printf(a, "%.*s/%s", (int)n, path, name);
        if (n && !access(file, X_OK))
            return file;
        path += n + (path[n] == ':');
    }
    return NULL;
}

int cores(void)
{
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > 64 ? 64 : (int)n;
}
