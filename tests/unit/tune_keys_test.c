/* tune_keys_test.c - what the tuner's database knows texts, winners and networks by: for each
 * property that makes another one, a row.
 *
 * Every row is made twice, which gives equal keys; no two rows have an equal one, but where the row
 * says that a key leaves its property out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/tools/tune/tune_command.h"

#ifdef __clang__
/* A row says what differs from PLAIN. */
#pragma clang diagnostic ignored "-Winitializer-overrides"
#endif

enum { KERNELS = 3, TRIED = 3 };

/* The keys, and the bits of those that are to be as those of the first row. */
enum { TEXT_KEY = 1 << 0, WINNER_KEY = 1 << 1, NETWORK_KEY = 1 << 2, KEYS = 3 };

/* A network of kernels, of which the first has candidates. */
typedef struct {
    const char *title;
    int same;
    int threads;
    const char *what, *text;
    const char *hash[KERNELS];
    int times[KERNELS]; /* that the network has it */
    int n;
    const char *tried[TRIED];
    int best;
} TuneKeyRow;

#define PLAIN                                                                            \
    .threads = 2, .what = "changes, ", .text = "layout 1\n", .hash = {"0a", "0b", "0c"}, \
    .times = {1, 2, 3}, .n = 2, .tried = {"UNROLL r0 4", "UPCAST r1 8", "UPCAST r1 16"}, .best = 1

static const TuneKeyRow rows[] = {
    {"plain", 0, PLAIN},
    {"another number of threads", 0, PLAIN, .threads = 3},
    {"threads with the same digit behind", 0, PLAIN, .threads = 22},
    {"kept for another question", WINNER_KEY, PLAIN, .what = "chains, "},
    {"no name of a question", WINNER_KEY, PLAIN, .what = ""},
    {"another text", WINNER_KEY, PLAIN, .text = "layout 2\n"},
    {"no text", WINNER_KEY, PLAIN, .text = ""},
    {"a line more", WINNER_KEY, PLAIN, .text = "layout 1\nlayout 1\n"},
    {"a zero", WINNER_KEY, PLAIN, .text = "layout 0\n"},
    {"a blank", WINNER_KEY, PLAIN, .text = "layout \n"},
    {"the end of the line is missing", WINNER_KEY, PLAIN, .text = "layout 1"},
    {"the question is part of the text", WINNER_KEY, PLAIN, .what = "",
     .text = "changes, layout 1\n"},
    {"another kernel", TEXT_KEY, PLAIN, .hash = {"0d", "0b", "0c"}},
    {"another second kernel", TEXT_KEY | WINNER_KEY, PLAIN, .hash = {"0a", "0d", "0c"}},
    {"kernels in another order", TEXT_KEY, PLAIN, .hash = {"0b", "0a", "0c"}, .times = {2, 1, 3}},
    {"once more", TEXT_KEY | WINNER_KEY, PLAIN, .times = {1, 3, 3}},
    {"as often, the other one", TEXT_KEY | WINNER_KEY, PLAIN, .times = {2, 1, 3}},
    {"a kernel more", TEXT_KEY | WINNER_KEY, PLAIN, .n = 3},
    {"a kernel less", TEXT_KEY | WINNER_KEY, PLAIN, .n = 1},
    {"no kernel", TEXT_KEY | WINNER_KEY, PLAIN, .n = 0},
    {"another winner", TEXT_KEY | NETWORK_KEY, PLAIN, .best = 2},
    {"no winner", TEXT_KEY | NETWORK_KEY, PLAIN, .best = 0},
    {"in the place of another choice", TEXT_KEY | NETWORK_KEY, PLAIN,
     .tried = {"UNROLL r0 2", "UPCAST r1 8", "UPCAST r1 16"}},
    {"in the place of no opts", TEXT_KEY | NETWORK_KEY, PLAIN,
     .tried = {"", "UPCAST r1 8", "UPCAST r1 16"}},
    {"a winner without opts", TEXT_KEY | NETWORK_KEY, PLAIN,
     .tried = {"UNROLL r0 4", "", "UPCAST r1 16"}},
    {"winner and choice the other way round", TEXT_KEY | NETWORK_KEY, PLAIN,
     .tried = {"UPCAST r1 8", "UNROLL r0 4", "UPCAST r1 16"}},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void keys_of(Arena *a, const TuneKeyRow *r, const char *key[KEYS])
{
    Options o = {.threads = r->threads};
    Tune t = {.o = &o, .a = a};
    t.t.n = r->n;
    t.t.kernel = NEWN(a, TuneKernel *, KERNELS);
    for (int i = 0; i < KERNELS; i++) {
        TuneKernel *k = t.t.kernel[i] = NEW(a, TuneKernel);
        snprintf(k->hash, sizeof k->hash, "%s", r->hash[i]);
        k->nstep = r->times[i];
    }
    TuneKernel *first = t.t.kernel[0];
    first->best = r->best;
    first->candidate = NEWN(a, Candidate *, TRIED);
    for (int i = 0; i < TRIED; i++) {
        first->candidate[i] = NEW(a, Candidate);
        first->candidate[i]->text = arena_strdup(a, r->tried[i]);
    }
    key[0] = text_key(&t, r->what, r->text);
    key[1] = winner_key(&t, first);
    key[2] = network_key(&t, r->what, r->text);
}

static void test_table(void **state)
{
    (void)state;
    Arena *a = arena_new();
    const char *all[ROWS][KEYS], *again[KEYS];
    int bad = 0;
    for (int i = 0; i < ROWS; i++) {
        keys_of(a, &rows[i], all[i]);
        keys_of(a, &rows[i], again);
        for (int key = 0; key < KEYS; key++) {
            if (strcmp(all[i][key], again[key]) && ++bad)
                print_error("'%s': key %d is not the same again\n", rows[i].title, key);
            for (int j = 0; j < i; j++) {
                const bool want = (!j || rows[j].same >> key & 1) && rows[i].same >> key & 1;
                if (!strcmp(all[i][key], all[j][key]) != want && ++bad)
                    print_error("'%s' and '%s': key %d is %s\n", rows[j].title, rows[i].title, key,
                                want ? "another one" : "the same");
            }
        }
    }
    /* nor a key of one kind of another, where a network has kernels */
    for (int i = 0; i < ROWS * KEYS * ROWS * KEYS; i++) {
        const int x = i / (ROWS * KEYS), y = i % (ROWS * KEYS);
        if (x % KEYS != y % KEYS && rows[x / KEYS].n && rows[y / KEYS].n &&
            !strcmp(all[x / KEYS][x % KEYS], all[y / KEYS][y % KEYS]) && ++bad)
            print_error("'%s', '%s': keys %d and %d are the same\n", rows[x / KEYS].title,
                        rows[y / KEYS].title, x % KEYS, y % KEYS);
    }
    arena_free(a);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
