/* folder_test.c - temporary folders: a process that is killed leaves one, and the next process
 * removes it. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "compiler/compiler.h"

typedef struct {
    pid_t pid;
    char dir[256];
} Owner;

/* Another process, which has a folder with a file in a folder of it, and waits. */
static Owner start_owner(Arena *a)
{
    Owner o = {0};
    int told[2];
    assert_int_equal(pipe(told), 0);
    o.pid = fork();
    assert_true(o.pid >= 0);
    if (!o.pid) {
        const char *dir = temporary_folder(a, "test");
        if (!dir || !make_dirs(arena_printf(a, "%s/in", dir)) ||
            !file_write(arena_printf(a, "%s/in/file", dir), "x", 1))
            _exit(1);
        snprintf(o.dir, sizeof o.dir, "%s", dir);
        if (write(told[1], o.dir, sizeof o.dir) != (ssize_t)sizeof o.dir)
            _exit(1);
        for (;;)
            pause();
    }
    close(told[1]);
    assert_int_equal(read(told[0], o.dir, sizeof o.dir), sizeof o.dir);
    close(told[0]);
    return o;
}

static void end_owner(const Owner *o)
{
    kill(o->pid, SIGKILL);
    assert_int_equal(waitpid(o->pid, NULL, 0), o->pid);
}

static void test_left_over_folders_go(void **state)
{
    (void)state;
    Arena *a = arena_new();
    const char *outer = temporary_folder(a, "outer");
    assert_non_null(outer);
    setenv("TMPDIR", outer, 1);
    const Owner killed = start_owner(a), alive = start_owner(a);
    const char *beside = temporary_folder(a, "mine"); /* both are in use */
    assert_int_equal(access(killed.dir, F_OK) | access(alive.dir, F_OK), 0);
    end_owner(&killed);
    const char *after = temporary_folder(a, "mine");
    assert_non_null(beside);
    assert_non_null(after);
    assert_int_not_equal(access(killed.dir, F_OK), 0);
    assert_int_equal(access(arena_printf(a, "%s/in/file", alive.dir), F_OK), 0);
    assert_int_equal(access(beside, F_OK) | access(after, F_OK), 0);
    end_owner(&alive);
    remove_tree(outer);
    arena_free(a);
}

/* What is made inside of one has a list of its own: the lock stays. */
static void test_folders_inside(void **state)
{
    (void)state;
    Arena *a = arena_new();
    unsetenv("TMPDIR");
    const char *dir = temporary_folder(a, "mine");
    assert_non_null(dir);
    pending_folders(dir, folders_there(dir));
    pending_folders_drop(dir);
    assert_int_equal(lock_path(dir), -1);
    const char *part = part_folder(a, arena_printf(a, "%s/x", dir)),
               *shown = part_shown(a, arena_printf(a, "%s/y", part));
    assert_non_null(part);
    assert_int_equal(lock_path(part), -1);
    assert_string_equal(shown, arena_printf(a, "%s/x/y", dir));
    assert_true(part_keep(part, arena_printf(a, "%s/x", dir)));
    assert_true(make_dirs(arena_printf(a, "%s/p/q//r", dir)));
    remove_empty(arena_printf(a, "%s/p/q//r", dir), strlen(dir));
    assert_int_not_equal(access(arena_printf(a, "%s/p", dir), F_OK), 0);
    remove_tree(dir);
    assert_int_not_equal(access(dir, F_OK), 0);
    arena_free(a);
}

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) /* which has a handler of its own */
/* A mapped file that another program makes shorter: a message and a status, not a crash; and what
 * was not complete goes. */
static void test_mapped_file_becomes_shorter(void **state)
{
    (void)state;
    enum { STATUS = 6, BYTES = 1 << 16 };
    Arena *a = arena_new();
    const char *dir = temporary_folder(a, "shorter");
    assert_non_null(dir);
    const char *file = arena_printf(a, "%s/model", dir), *part = arena_printf(a, "%s/part", dir);
    assert_true(file_write(file, arena_alloc(a, BYTES), BYTES) && file_write(part, "x", 1));
    int said[2], status;
    assert_int_equal(pipe(said), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        FILE *f = fopen(file, "rb");
        dup2(said[1], STDERR_FILENO);
        (void)signal(SIGBUS, SIG_DFL); /* cmocka has a handler */
        pending_signals(STATUS);
        pending_add(part, -1);
        const volatile char *at =
            f ? mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE, fileno(f), 0) : MAP_FAILED;
        _exit(at == MAP_FAILED || truncate(file, 0) ? 1 : at[BYTES / 2]);
    }
    close(said[1]);
    char text[256] = "";
    assert_true(read(said[0], text, sizeof text - 1) > 0);
    close(said[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), STATUS);
    assert_non_null(strstr(text, "became shorter while it was read"));
    assert_int_not_equal(access(part, F_OK), 0);
    remove_tree(dir);
    arena_free(a);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_left_over_folders_go),
        cmocka_unit_test(test_folders_inside),
#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
        cmocka_unit_test(test_mapped_file_becomes_shorter)
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
