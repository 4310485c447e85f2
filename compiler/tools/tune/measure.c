/* measure.c - a folder of candidates becomes verdicts and times.
 *
 * A candidate may be more than the C compiler takes, end its process, or never come back.  The
 * program tells which one it is at; whoever did not come back is left out of the next run, until
 * the rest is through. */
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "json.h"
#include "tune_run.h"

enum { MAX_WORDS = 96, MAX_FILES = 4096, MOST_IN_FILE = 4, NO_CASE = 1 << 30 };
enum { COMPILE_SECONDS = 90 };
static const double first_seconds = 240, line_seconds = 60;

/* ---- building -------------------------------------------------------------------------------- */

typedef struct {
    Child child;
    const char *file; /* NULL: free */
    double began;
} Job;

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

/* case_3_6.c: candidates 6 .. of case 3 may not be compiled. */
static bool refuse_file(const char *file, const TuneCaseOf *of, int n, int chunk)
{
    int number, first;
    if (sscanf(file, "case_%d_%d.c", &number, &first) != 2 || number >= n)
        return false;
    for (int i = first; i < first + chunk && i < of[number].n; i++)
        of[number].candidate[i]->verdict = chunk == 1 ? REFUSED : UNTIMED;
    return true;
}

/* Words of the compiler, then these. */
static bool start_compiler(const Measure *m, Child *c, const char *dir, const char *const *tail)
{
    const char *argv[MAX_WORDS];
    int n = 0;
    while (m->cc[n] && n < MAX_WORDS - 13) {
        argv[n] = m->cc[n];
        n++;
    }
    if (clock_is_steps())
        argv[n++] = "-O0"; /* nobody times them */
    for (int i = 0; tail[i] && n < MAX_WORDS - 1; i++)
        argv[n++] = tail[i];
    argv[n] = NULL;
    return child_start(c, argv, dir, false, true, COMPILE_SECONDS);
}

static bool is_case(const char *file)
{
    return !strncmp(file, "case_", 5);
}

/* In its folder, so that ccache knows what it has seen in another one. */
static void start_job(const Measure *m, Arena *a, Job *j, const char *dir, const char *file)
{
    const char *object = arena_printf(a, "%.*s.o", (int)strlen(file) - 2, file);
    const char *plain[] = {"-std=gnu99", "-I.", "-c", "-o", object, file, NULL},
               *candidates[] = {"-std=gnu99", "-I.",  "-include", tune_head, "-c",
                                "-o",         object, file,       NULL};
    j->file = start_compiler(m, &j->child, dir, is_case(file) ? candidates : plain) ? file : NULL;
    j->began = machine_seconds();
}

/* To precompile the headers takes as long as to read them in so many files. */
enum { HEAD_WORTH = 4 };

/* Headers once; a compiler that cannot do that reads them in every file. */
static void compile_head(const Measure *m, Arena *a, const char *dir)
{
    const char *head = arena_printf(a, "%s.gch", tune_head);
    const char *tail[] = {"-std=gnu99", "-I.", "-x", "c-header", "-o", head, tune_head, NULL};
    Child c;
    if (access(arena_printf(a, "%s/%s", dir, head), R_OK) && start_compiler(m, &c, dir, tail))
        (void)child_end(&c, CHILD_WAITS * COMPILE_SECONDS);
}

static bool link_program(const Measure *m, Arena *a, const char *dir, char *const *file, int n)
{
    const char **argv = NEWN(a, const char *, n + MAX_WORDS);
    int k = 0;
    Child c;
    while (m->cc[k] && k < MAX_WORDS - 9) {
        argv[k] = m->cc[k];
        k++;
    }
    argv[k++] = "-o";
    argv[k++] = "tune_run";
    for (int i = 0; i < n; i++)
        argv[k++] = arena_printf(a, "%.*s.o", (int)strlen(file[i]) - 2, file[i]);
    argv[k] = "-lm";
    return child_start(&c, argv, dir, false, false, COMPILE_SECONDS) &&
           child_end(&c, CHILD_WAITS * COMPILE_SECONDS) == 0;
}

typedef struct {
    char *name;
    off_t bytes;
} SizedFile;

static int largest_first(const void *a, const void *b)
{
    const SizedFile *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes) - (x->bytes > y->bytes)
                                : strcmp(x->name, y->name);
}

/* The largest first, so that no core is left with the last one. */
static int list_sources(Arena *a, const char *dir, char ***file)
{
    DIR *d = opendir(dir);
    SizedFile *all = NULL;
    int n = 0, count = 0;
    for (struct dirent *e; d && (e = readdir(d)) && n < MAX_FILES;) {
        struct stat st;
        if (ends_with(e->d_name, ".c") && !stat(arena_printf(a, "%s/%s", dir, e->d_name), &st)) {
            SizedFile f = {arena_strdup(a, e->d_name), st.st_size};
            vec_push(a, all, n, f);
        }
    }
    if (d)
        closedir(d);
    if (n)
        qsort(all, (size_t)n, sizeof *all, largest_first);
    for (int i = 0; i < n; i++)
        vec_push(a, *file, count, all[i].name);
    return n;
}

/* A job that is free, or has ended now; with `all`, once none runs any more.  Those that failed
 * mark their candidates. */
static Job *free_job(Measure *m, Arena *a, const char *dir, Job *job, int max, const TuneCaseOf *of,
                     int ncase, int chunk, bool all, int *good)
{
    for (;;) {
        int busy = 0;
        for (int i = 0; i < max; i++) {
            Job *j = &job[i];
            int code = 0;
            if (!j->file)
                continue;
            if (machine_seconds() - j->began > CHILD_WAITS * COMPILE_SECONDS)
                code = child_end(&j->child, 0);
            else if (!child_has_ended(&j->child, &code)) {
                busy++;
                continue;
            }
            if (code && !refuse_file(j->file, of, ncase, chunk)) {
                m->why = arena_printf(a, "the C compiler fails on %s/%s", dir, j->file);
                *good = -1;
            } else if (code && *good > 0) {
                *good = 0;
            }
            j->file = NULL;
        }
        for (int i = 0; i < max && (!all || !busy); i++)
            if (!job[i].file)
                return &job[i];
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
}

/* Whether all files became objects; what did not is marked.  -1: what no candidate is to blame
 * for. */
static int compile_all(Measure *m, Arena *a, const char *dir, char **file, int n,
                       const TuneCaseOf *of, int ncase, int chunk)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int max = cores < 1 ? 1 : cores > 64 ? 64 : (int)cores, good = 1;
    Job job[64] = {0};
    int candidates = 0;
    for (int i = 0; i < n; i++)
        candidates += is_case(file[i]);
    if (candidates >= HEAD_WORTH)
        compile_head(m, a, dir);
    for (int i = 0; i < n && good >= 0; i++) {
        bool kept = !strncmp(file[i], "tune_main", 9) &&
                    !access(arena_printf(a, "%s/tune_main.o", dir), R_OK);
        if (kept)
            continue;
        Job *j = free_job(m, a, dir, job, max, of, ncase, chunk, false, &good);
        if (good >= 0)
            start_job(m, a, j, dir, file[i]);
        if (good >= 0 && !j->file) {
            m->why = "the C compiler cannot be started";
            good = -1;
        }
    }
    (void)free_job(m, a, dir, job, max, of, ncase, chunk, true, &good);
    return good;
}

static bool build(Measure *m, Tuning *t, const char *dir, const TuneCaseOf *of, int n, int chunk,
                  bool *again)
{
    char **file = NULL;
    int nfile = list_sources(t->a, dir, &file);
    int good = compile_all(m, t->a, dir, file, nfile, of, n, chunk);
    *again = good == 0;
    if (good <= 0)
        return false;
    if (link_program(m, t->a, dir, file, nfile))
        return true;
    m->why = arena_printf(t->a, "%s: the program of candidates cannot be linked", dir);
    return false;
}

/* Those that the compiler refuses are left out. */
static int without_refused(const TuneCaseOf *of, int n)
{
    int left = 0;
    for (int i = 0; i < n; i++) {
        TuneCaseOf *c = (TuneCaseOf *)(uintptr_t)&of[i];
        int kept = 0;
        for (int j = 0; j < c->n; j++)
            if (c->candidate[j]->verdict != REFUSED)
                c->candidate[kept++] = c->candidate[j];
        c->n = kept;
        left += kept;
    }
    return left;
}

static void empty_folder(const char *dir)
{
    DIR *d = opendir(dir);
    Arena *a = arena_new();
    for (struct dirent *e; d && (e = readdir(d));)
        if (!strncmp(e->d_name, "case", 4))
            unlink(arena_printf(a, "%s/%s", dir, e->d_name));
    if (d)
        closedir(d);
    arena_free(a);
}

#define BUILDING 0.1 /* seconds of a candidate, where steps are counted */

bool measure_build(Measure *m, Tuning *t, const char *dir, const TuneCaseOf *of, int n)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int all = 0;
    for (int i = 0; i < n; i++)
        all += of[i].n;
    int most = all / (2 * (cores > 0 ? (int)cores : 1)); /* two files a core, and more */
    if (clock_is_steps())
        most = MOST_IN_FILE; /* nobody times them: what headers take is all */
    most = most < 1 ? 1 : most;
    const int chunks[] = {most < MOST_IN_FILE ? most : MOST_IN_FILE, 1, 1};
    m->why = NULL;
    clock_pass(BUILDING * (1 + all));
    for (int pass = 0; pass < 3; pass++) {
        bool again;
        empty_folder(dir);
        if (!cases_write(t, dir, of, n, chunks[pass], &m->why))
            return false;
        if (m->remote)
            return true;
        if (build(m, t, dir, of, n, chunks[pass], &again))
            return true;
        if (!again)
            return false;
        if (chunks[pass] == 1)
            (void)without_refused(of, n);
    }
    m->why = "the C compiler refuses what it took before";
    return false;
}

/* ---- running --------------------------------------------------------------------------------- */

typedef struct {
    Measure *m;
    const TuneCaseOf *of;
    int n;
    int at_case, at; /* the candidate that began last; -1: the naive kernel */
    bool done, timed;
} CandidateTimes;

static Candidate *candidate_at(const CandidateTimes *t, int c, int j)
{
    return c >= 0 && c < t->n && j >= 0 && j < t->of[c].n ? t->of[c].candidate[j] : NULL;
}

static void take_line(CandidateTimes *t, Arena *a, const char *line)
{
    const char *why;
    const Json *j = json_read(a, line, &why);
    const Json *begin = json_member(j, "begin"), *cpu = json_member(j, "cpu"),
               *compiler = json_member(j, "compiler"), *noise = json_member(j, "noise");
    if (cpu)
        t->m->cpu = json_text(cpu, "unknown");
    if (compiler)
        t->m->compiler = json_text(compiler, "unknown");
    t->done |= json_member(j, "done") != NULL;
    if (begin && begin->item && begin->item->next) {
        t->at_case = (int)json_number(begin->item, -1);
        t->at = (int)json_number(begin->item->next, -1);
    }
    int number = (int)json_number(json_member(j, "case"), -1);
    Candidate *c = candidate_at(t, number, (int)json_number(json_member(j, "candidate"), -1));
    const char *verdict = json_text(json_member(j, "verdict"), "");
    if (c && !strcmp(verdict, "right"))
        c->verdict = RIGHT;
    if (c && !strcmp(verdict, "wrong"))
        c->verdict = WRONG;
    double ns = json_number(json_member(j, "ns"), 0);
    if (c && ns > 0) {
        c->ns = clock_is_steps() ? candidate_estimate(t->of[number].kernel, c)->cycles : ns;
        c->base_ns = candidate_at(t, number, 0)->ns;
        t->timed = true;
    }
    for (int i = 0; noise && number >= 0 && number < t->n && i < t->of[number].n; i++)
        t->of[number].candidate[i]->noise = clock_is_steps() ? 0 : json_number(noise, 1);
}

/* The words of a run of one case: the program here, or the command with the folder. */
static const char *const *run_words(const Measure *m, Arena *a, const char *dir, int number,
                                    bool check_only, const char *const *skip, int nskip)
{
    const char **argv = NULL;
    int n = 0;
    if (m->remote) {
        vec_push(a, argv, n, "sh");
        vec_push(a, argv, n, "-c");
        vec_push(a, argv, n, arena_printf(a, "%s \"$@\"", m->remote));
        vec_push(a, argv, n, "remote");
        vec_push(a, argv, n, dir);
    } else {
        vec_push(a, argv, n, arena_printf(a, "%s/tune_run", dir));
    }
    vec_push(a, argv, n, "--seconds");
    vec_push(a, argv, n, arena_printf(a, "%g", clock_is_steps() ? 0 : m->seconds));
    vec_push(a, argv, n, "--only");
    vec_push(a, argv, n, arena_printf(a, "%d", number));
    if (check_only)
        vec_push(a, argv, n, "--check");
    for (int i = 0; i < nskip; i++) {
        vec_push(a, argv, n, "--skip");
        vec_push(a, argv, n, skip[i]);
    }
    vec_push(a, argv, n, NULL);
    return argv;
}

/* One case, again without those that did not come back. */
static bool run_case(Measure *m, Tuning *t, const char *dir, const TuneCaseOf *of, int n,
                     int number, bool check_only)
{
    const char **skip = NULL;
    int nskip = 0, count = number < n ? of[number].n : 0;
    for (int i = 0; i < count; i++)
        if (of[number].candidate[i]->verdict > RIGHT)
            vec_push(t->a, skip, nskip, arena_printf(t->a, "%d.%d", number, i));
    for (;;) {
        CandidateTimes told = {.m = m, .of = of, .n = n, .at_case = -1, .at = -2};
        Child c;
        bool late = false;
        const char *const *argv = run_words(m, t->a, dir, number, check_only, skip, nskip);
        clock_pass(m->seconds);
        if (!child_start(&c, argv, NULL, true, false, 0)) {
            m->why = arena_printf(t->a, "%s: cannot be started", argv[0]);
            return false;
        }
        const int waits = m->remote ? 4 : CHILD_WAITS; /* what runs elsewhere takes no core here */
        double wait = first_seconds;
        for (const char *line; (line = child_line(&c, t->a, wait, waits, &late));) {
            take_line(&told, t->a, line);
            wait = told.at < 0 ? first_seconds : line_seconds + m->seconds;
        }
        int code = child_end(&c, late ? 0 : 10);
        if (told.done)
            return true;
        if (!m->cpu) {
            m->why = arena_printf(t->a, "%s ended with status %d and did not describe its machine",
                                  argv[0], code);
            return false;
        }
        Candidate *bad = candidate_at(&told, told.at_case, told.at);
        if (!bad || nskip >= count) /* the naive kernel: nothing can be compared with it */
            return true;
        bad->verdict = late ? HUNG : CRASHED;
        bad->ns = 0;
        vec_push(t->a, skip, nskip, arena_printf(t->a, "%d.%d", number, told.at));
    }
}

bool measure_run(Measure *m, Tuning *t, const char *dir, const TuneCaseOf *of, int n,
                 bool check_only)
{
    for (int i = 0; i < n; i++)
        if (!run_case(m, t, dir, of, n, i, check_only))
            return false;
    return n || run_case(m, t, dir, of, 0, NO_CASE, check_only);
}

bool measure_one(Measure *m, Tuning *t, const char *dir, const TuneCaseOf *of, int n, int number)
{
    return run_case(m, t, dir, of, n, number, false);
}
