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

/* glibc has a way to since 2.29; before, a shell changes to the folder. */
#if defined __GLIBC__ && !__GLIBC_PREREQ(2, 29)
enum { SHELL_CHANGES_FOLDER = 1 };
#define CHANGE_FOLDER(actions, dir) ((void)0)
#else
enum { SHELL_CHANGES_FOLDER = 0 };
#define CHANGE_FOLDER(actions, dir) posix_spawn_file_actions_addchdir_np(actions, dir)
#endif

/* sh -c 'cd -- "$0" && exec "$@"' DIR PROGRAM ARGUMENT..., to be freed. */
static const char **in_folder(const char *const *argv, const char *dir)
{
    static const char *const head[] = {"sh", "-c", "cd -- \"$0\" && exec \"$@\""};
    size_t n = 0;
    while (argv[n])
        n++;
    const char **all = malloc((n + 5) * sizeof *all);
    if (all) {
        memcpy(all, head, sizeof head);
        all[3] = dir;
        memcpy(all + 4, argv, (n + 1) * sizeof *all);
    }
    return all;
}

/* The environment with $TMPDIR, "TMPDIR=..": to be freed. A compiler that is ended while its parts
 * begin may leave its temporary files; in the folder they go with it. */
static const char **with_tmp(const char *tmp)
{
    size_t n = 0, to = 0;
    while (environ[n])
        n++;
    const char **all = malloc((n + 2) * sizeof *all);
    for (size_t i = 0; all && i < n; i++)
        if (strncmp(environ[i], "TMPDIR=", 7) != 0)
            all[to++] = environ[i];
    if (all) {
        all[to++] = tmp;
        all[to] = NULL;
    }
    return all;
}

/* In the folder dir, where its temporary files are too, its standard output to a file; NULL: as
 * here. -1 after a message. */
static pid_t spawn(const char *const *argv, const char *dir, const char *out)
{
    pid_t pid;
    const bool shell = dir && SHELL_CHANGES_FOLDER;
    const char **by_shell = shell ? in_folder(argv, dir) : NULL;
    const char *const *words = shell ? by_shell : argv;
    const char **environment = dir ? with_tmp("TMPDIR=.") : NULL;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (out)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out, O_WRONLY | O_CREAT | O_TRUNC,
                                         0666);
    if (dir)
        CHANGE_FOLDER(&actions, dir);
    pending_hold();
    int error = !words
                    ? ENOMEM
                    : posix_spawnp(&pid, words[0], &actions, NULL, (char *const *)(uintptr_t)words,
                                   environment ? (char **)(uintptr_t)environment : environ);
    if (!error)
        pending_program(pid);
    pending_release();
    posix_spawn_file_actions_destroy(&actions);
    free(by_shell);
    free(environment);
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
