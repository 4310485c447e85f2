/* tune_times.c - what a GPU's program of several kernels for each step has found out: read, told
 * (--explain), and written as a file.
 *
 * A folder has ways.json, which tune_gpu.c has written, and times.json, to which the program adds
 * lines (harness/tune_ways.c). Neither is changed here, and no device is wanted. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "tune_gpu_candidates.h"

/* ---- times.json ------------------------------------------------------------------------------ */

/* The next line of a file of ours, or NULL; at is behind it then. */
static const Json *next_line(const Tune *t, const char **at)
{
    const char *why;
    const size_t length = strcspn(*at, "\n");
    const Json *j = json_read(t->a, arena_printf(t->a, "%.*s", (int)length, *at), &why);
    *at += length + ((*at)[length] == '\n');
    return j;
}

/* What came of the ways of a group. */
typedef enum { WAY_TAKEN, WAY_LEFT, WAY_SLOW, WAY_WRONG, WAY_FAILED, WAY_VERDICTS } WayVerdict;
static const char *const way_verdict[] = {"taken", "left", "slow", "wrong", "failed"};
enum { WAY_UNTRIED = -1, WAY_BEGUN = -2 /* the program ended while it ran */ };
typedef struct {
    int taken;    /* the way that was taken last */
    int *verdict; /* by way; below zero: it was not tried to the end */
    /* by way: its time to that of what was there when it was tried last; 0: not known */
    double *ratio;
} GroupTimes;
/* By group; and the network's times, 0 if they are not known: it is faster in three of four turns
 * (low: by so much). */
typedef struct {
    GroupTimes *group;
    int tried;
    double us, was, low;
} ProgramTimes;

enum { WAYS_ROOM = MOST_TILE_WAYS };

static void note_way(GroupTimes *g, int way, const Json *j)
{
    const char *said = json_text(json_member(j, "verdict"), "");
    const double us = json_number(json_member(j, "us"), 0),
                 was = json_number(json_member(j, "was_us"), 0);
    int verdict = 0;
    while (verdict < WAY_VERDICTS && strcmp(said, way_verdict[verdict]))
        verdict++;
    if (verdict == WAY_VERDICTS) /* it runs, and was not timed yet */
        return;
    if (verdict == WAY_TAKEN)
        g->taken = way;
    g->verdict[way] = verdict;
    g->ratio[way] = was > 0 ? us / was : 0;
}

/* [sweep, group, way]: false, there is none of them. */
static bool read_numbers(const Json *j, int ngroup, int *g, int *way)
{
    const Json *x[3] = {j && j->kind == JSON_LIST ? j->item : NULL};
    for (int i = 1; i < 3; i++)
        x[i] = x[i - 1] ? x[i - 1]->next : NULL;
    *g = (int)json_number(x[1], -1);
    *way = (int)json_number(x[2], -1);
    return *g >= 0 && *g < ngroup && *way >= 0 && *way < WAYS_ROOM;
}

static bool read_times(const Tune *t, const char *dir, int ngroup, ProgramTimes *x)
{
    const char *text = read_text(t->a, ways_path(t, dir, ways_times));
    *x = (ProgramTimes){.group = NEWN(t->a, GroupTimes, ngroup + 1)};
    for (int g = 0; g < ngroup; g++) {
        x->group[g].verdict = NEWN(t->a, int, WAYS_ROOM);
        x->group[g].ratio = NEWN(t->a, double, WAYS_ROOM);
        for (int i = 0; i < WAYS_ROOM; i++)
            x->group[g].verdict[i] = WAY_UNTRIED;
    }
    for (const char *at = text; at && *at;) {
        const Json *j = next_line(t, &at), *done = json_member(j, "done");
        int g, way;
        x->tried += done && strcmp(json_text(json_member(j, "verdict"), ""), "runs");
        if (read_numbers(json_member(j, "try"), ngroup, &g, &way) &&
            x->group[g].verdict[way] == WAY_UNTRIED)
            x->group[g].verdict[way] = WAY_BEGUN;
        if (read_numbers(done, ngroup, &g, &way))
            note_way(&x->group[g], way, j);
        if (json_member(j, "network_us")) {
            x->us = json_number(json_member(j, "network_us"), 0);
            x->was = json_number(json_member(j, "was_us"), 0);
            x->low = json_number(json_member(j, "low"), x->was - x->us);
        }
    }
    return text != NULL;
}

static const char *way_text(const Json *group, int way)
{
    const Json *list = json_member(group, "ways"), *one = list ? list->item : NULL;
    for (; one && way > 0; way--)
        one = one->next;
    return json_text(one, NULL);
}

static bool is_faster(const ProgramTimes *x)
{
    return x->us <= 0 || (x->us < x->was && x->low > 0);
}

/* ---- the folder ------------------------------------------------------------------------------ */

/* What stands in a folder: what is there (the compiler's choice, or that of a file), and what was
 * found out. */
typedef struct {
    const Json **group;
    int n;
    const char *rest; /* of the user's file */
    ProgramTimes times;
} Folder;

static int count_texts(const Json *group)
{
    int n = 0;
    for (const Json *one = json_member(group, "ways")->item; one; one = one->next)
        n++;
    return n < WAYS_ROOM ? n : WAYS_ROOM;
}

/* The way that was taken of a group, if the folder has it; 0: none was. */
static int way_taken(const Folder *f, int group)
{
    const int way = f->times.group[group].taken;
    return way && way_text(f->group[group], way) ? way : 0;
}

static ingot_status read_folder(const Tune *t, const char *dir, Folder *f)
{
    const char *path = ways_path(t, dir, ways_list);
    *f = (Folder){0};
    for (const char *at = read_text(t->a, path); at && *at;) {
        const Json *j = next_line(t, &at), *ways = json_member(j, "ways");
        if (ways && ways->kind == JSON_LIST)
            vec_push(t->a, f->group, f->n, j);
        else if (j && json_member(j, "rest"))
            f->rest = json_text(json_member(j, "rest"), NULL);
    }
    if (!f->n)
        return complain(INGOT_IO, "%s: cannot be read: `ingot tune --prepare %s` writes it", path,
                        dir);
    if (!read_times(t, dir, f->n, &f->times))
        note("  %s: nothing was timed yet", dir);
    return INGOT_OK;
}

/* ---- what is told of it ---------------------------------------------------------------------- */

/* Entries of one step each (only) have the same opts: those of the first do. */
static void explain_entry(const char *what, const char *entry)
{
    int nkernel = 0;
    printf("  %s:\n", what);
    for (const char *at = entry; at && *at;) {
        const size_t length = strcspn(at, "\n");
        nkernel += !strncmp(at, "kernel", 6);
        if (nkernel > 1)
            return;
        if (strncmp(at, "kernel", 6) && at[strspn(at, " ")] != '#')
            printf("  %.*s\n", (int)length, at);
        at += length + (at[length] == '\n');
    }
}

/* --explain: what was tried of each group, what came of it, and what won. */
static void explain_group(const Folder *f, int group)
{
    const Json *j = f->group[group];
    const GroupTimes *g = &f->times.group[group];
    const char *own = f->rest                   ? "the file's choice"
                      : json_member(j, "stays") ? "the choice of the round before"
                                                : "the compiler's choice";
    const int n = count_texts(j), taken = way_taken(f, group);
    int untried = 0, begun = 0, of[WAY_VERDICTS] = {0};
    double best = 0;
    for (int i = 1; i < n; i++) {
        untried += g->verdict[i] == WAY_UNTRIED;
        begun += g->verdict[i] == WAY_BEGUN;
        if (g->verdict[i] < 0)
            continue;
        of[g->verdict[i]]++;
        if (g->verdict[i] <= WAY_LEFT && g->ratio[i] > 0 && (best <= 0 || g->ratio[i] < best))
            best = g->ratio[i];
    }
    printf("%s\n  %d steps; tried: %d right, %d far too slow, %d wrong, %d failed, %d begun; %d "
           "untried\n",
           json_text(json_member(j, "name"), ""), (int)json_number(json_member(j, "steps"), 0),
           of[WAY_TAKEN] + of[WAY_LEFT], of[WAY_SLOW], of[WAY_WRONG], of[WAY_FAILED], begun,
           untried);
    if (taken && !is_faster(&f->times))
        printf("  %s stays: another took %.3f of its time, but the network with all that won is "
               "not faster\n",
               own, g->ratio[taken]);
    else if (taken)
        printf("  won: %.3f of the time of what was there before it\n", g->ratio[taken]);
    else if (best > 0)
        printf("  %s stays: the best of the others takes %.3f of its time\n", own, best);
    if (taken) {
        explain_entry(own, way_text(j, 0));
        explain_entry("the fastest", way_text(j, taken));
    }
}

/* ---- the file -------------------------------------------------------------------------------- */

/* The section of the file: entries of what is otherwise than the compiler has it; beside a file of
 * the user's, all that it says. */
static void print_section(const Tune *t, const Folder *f, StrBuf *text, int *won)
{
    *won = 0;
    sb_printf(text, "sched 2\ntarget %s\n%s", t->section, f->rest ? f->rest : "");
    for (int i = 0; i < f->n; i++) {
        const int way = is_faster(&f->times) ? way_taken(f, i) : 0;
        const bool said = way || f->rest || json_member(f->group[i], "stays");
        const char *entry = said ? way_text(f->group[i], way) : NULL;
        if (entry)
            sb_puts(text, entry);
        *won += way > 0;
    }
}

/* A build with the file has these kernels: what it says can be done, and all of it is said of this
 * model. */
static ingot_status check_file(const Tune *t, const char *dir, const StrBuf *text)
{
    const char *file = ways_path(t, dir, "best.sched");
    LoadedModel m;
    Plan *p = NULL;
    ingot_status status = network_write(file, text);
    if (status != INGOT_OK)
        return status;
    status = plan_anew(t, file, 0, &m, &p);
    plan_free(p);
    model_close(&m);
    return status;
}

ingot_status tune_gpu_collect(Tune *t, const char *dir, StrBuf *text, int *won, int *untried)
{
    Folder f;
    ingot_status status = read_folder(t, dir, &f);
    *won = *untried = 0;
    if (status != INGOT_OK)
        return status;
    const ProgramTimes *x = &f.times;
    bool taken = false;
    for (int i = 0; i < f.n; i++)
        taken |= way_taken(&f, i) > 0;
    if (x->us > 0)
        note("  the network: %.4g ms for %.4g ms, %.3f times as fast; %d kernels tried",
             x->us * 1e-3, x->was * 1e-3, x->was / x->us, x->tried);
    else if (x->tried)
        note("  %d kernels tried; %s", x->tried,
             taken ? "the network with those that were faster was not timed yet"
                   : "none of them is faster");
    for (int i = 0; i < f.n; i++) {
        for (int way = 1; way < count_texts(f.group[i]); way++)
            *untried += x->group[i].verdict[way] == WAY_UNTRIED;
        if (t->o->why)
            explain_group(&f, i);
    }
    print_section(t, &f, text, won);
    if (*won)
        status = check_file(t, dir, text);
    if (status == INGOT_OK)
        note("  %d of %d kernels differ from %s", *won, f.n,
             t->o->compile.sched ? "the given file" : "the compiler's choice");
    return status;
}

ingot_status tune_gpu_prepared(Tune *t, const char *dir)
{
    const char *path = ways_path(t, dir, ways_list), *text = read_text(t->a, path);
    const Json *first = text ? next_line(t, &text) : NULL;
    const char *own = json_text(json_member(first, "sched"), NULL);
    if (!first)
        return complain(INGOT_IO, "%s: cannot be read: `ingot tune --prepare %s` writes it", path,
                        dir);
    if (!own)
        return INGOT_OK;
    const char *file = ways_path(t, t->dir, "own.sched");
    t->o->compile.sched = file;
    return file_write(file, own, strlen(own)) ? INGOT_OK
                                              : complain(INGOT_IO, "%s: %s", file, strerror(errno));
}
