/* compile_apart_test.c - programs compiled in child processes: what the compiler gives comes back,
 * and its faults stay with the one program. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "codegen/bundle/compile_apart.h"

enum { LARGE = 1 << 20 /* more than a pipe holds */ };

/* A compiler that does what the source says. */
static CompileStatus obey(StrBuf *out, const char *source, const char *machine, bool flush)
{
    if (!strcmp(source, "crash"))
        kill(getpid(), SIGKILL);
    if (!strcmp(source, "leave"))
        _exit(0);
    while (!strcmp(source, "hang"))
        pause();
    if (!strcmp(source, "absent"))
        return COMPILE_ABSENT;
    if (source[0] == '/' && !unlink(source)) /* the first time */
        kill(getpid(), SIGKILL);
    for (int i = 0; !strcmp(source, "large") && i < LARGE; i++)
        sb_write(out, &"\0\1\2\3"[i % 4], 1);
    sb_printf(out, "%s for %s%s", source, machine ? machine : "any", flush ? ", flushed" : "");
    return strcmp(source, "fault") ? COMPILE_DONE : COMPILE_FAILED;
}

static void compile_these(Compilation *c, int n)
{
    const Target t = {.name = "test", .compile = obey};
    Arena *a = arena_new();
    compile_apart(a, &t, true, c, n);
    arena_free(a);
}

static void expect(Compilation *c, CompileStatus status, const char *out)
{
    assert_int_equal(c->status, status);
    assert_int_equal(c->out.len, strlen(out));
    assert_true(!c->out.len || !memcmp(c->out.data, out, c->out.len));
    sb_free(&c->out);
}

static void each_has_its_own(void **state)
{
    (void)state;
    enum { MANY = 150 };
    Compilation c[MANY] = {0};
    char source[MANY][16], want[64];
    for (int i = 0; i < MANY; i++) {
        snprintf(source[i], sizeof source[i], "k%d", i);
        c[i] = (Compilation){.source = source[i], .machine = i % 2 ? "sm_90" : NULL, .most = 60};
    }
    c[3].source = "large";
    compile_these(c, MANY);
    for (int i = 0; i < MANY; i++) {
        snprintf(want, sizeof want, "%s for %s, flushed", c[i].source, i % 2 ? "sm_90" : "any");
        if (i == 3) {
            assert_int_equal(c[i].out.len, LARGE + strlen(want));
            for (int k = 0; k < LARGE; k++)
                assert_int_equal(c[i].out.data[k], k % 4);
            memmove(c[i].out.data, c[i].out.data + LARGE, strlen(want));
            c[i].out.len = strlen(want);
        }
        expect(&c[i], COMPILE_DONE, want);
    }
    compile_these(c, 0);
}

static void faults_stay_with_one(void **state)
{
    (void)state;
    char once[] = "/tmp/ingot-once-XXXXXX", want[64];
    const int fd = mkstemp(once);
    assert_true(fd >= 0);
    close(fd);
    Compilation c[] = {{.source = "hang", .most = 0.2},
                       {.source = "crash"},
                       {.source = "good"},
                       {.source = "fault", .most = 60},
                       {.source = "leave"},
                       {.source = once},
                       {.source = "absent"},
                       {.source = "last"}};
    compile_these(c, (int)(sizeof c / sizeof *c));
    expect(&c[0], COMPILE_FAILED, "the compiler has not come to an end in 0.2 s");
    expect(&c[1], COMPILE_FAILED, "the compiler ended by signal 9");
    expect(&c[2], COMPILE_DONE, "good for any, flushed");
    expect(&c[3], COMPILE_FAILED, "fault for any, flushed");
    expect(&c[4], COMPILE_FAILED, "the compiler ended without an answer");
    snprintf(want, sizeof want, "%s for any, flushed", once); /* the second time */
    expect(&c[5], COMPILE_DONE, want);
    expect(&c[6], COMPILE_ABSENT, "");
    expect(&c[7], COMPILE_DONE, "last for any, flushed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_has_its_own),
                                       cmocka_unit_test(faults_stay_with_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
