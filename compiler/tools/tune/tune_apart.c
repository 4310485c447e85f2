/* tune_apart.c - candidates built on one day and timed on another, or elsewhere: --prepare and
 * --measure.
 *
 * The folder holds the program of candidates (tune/source.c) and candidates.json, a line a case:
 * the kernel's key and its candidates.  A case that the database knows is not timed again. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "tune_command.h"

enum { PREPARED = 24 };
static const char list_name[] = "candidates.json";

static ingot_status write_list(const Tune *t, const char *dir, const TuneCaseOf *of, int n)
{
    const char *path = arena_printf(t->a, "%s/%s", dir, list_name);
    StrBuf sb = {0};
    for (int i = 0; i < n; i++) {
        sb_printf(&sb, "{\"kernel\": \"%s\", \"name\": ", of[i].kernel->hash);
        json_string(&sb, of[i].kernel->step[0]->name);
        sb_puts(&sb, ", \"candidates\": [");
        for (int j = 0; j < of[i].n; j++) {
            sb_puts(&sb, j ? ", " : "");
            json_string(&sb, of[i].candidate[j]->text);
        }
        sb_puts(&sb, "]}\n");
    }
    const bool good = file_replace(t->a, path, sb.data ? sb.data : "", sb.len);
    sb_free(&sb);
    return good ? INGOT_OK : complain(INGOT_IO, "%s: %s", path, strerror(errno));
}

ingot_status tune_prepare(Tune *t, const char *dir)
{
    Search s = {.t = &t->t, .m = &t->measure, .d = t->d, .dir = dir, .beam = t->o->beam};
    TuneCaseOf *of = NEWN(t->a, TuneCaseOf, t->n + 1);
    int all = 0;
    if (!make_dirs(dir))
        return complain(INGOT_IO, "%s: %s", dir, strerror(errno));
    Candidate **guess = NEWN(t->a, Candidate *, PREPARED + t->o->lot + 1);
    for (int i = 0; i < t->n; i++) {
        of[i].kernel = t->order[i];
        of[i].candidate = NEWN(t->a, Candidate *, PREPARED + t->o->lot + 1);
        of[i].candidate[of[i].n++] = t->order[i]->candidate[0];
        const int n = search_guess(&s, t->order[i], PREPARED, t->o->lot, guess);
        for (int j = 0; j < n; j++)
            if (case_takes(&of[i], guess[j]))
                of[i].candidate[of[i].n++] = guess[j];
        all += of[i].n;
    }
    progress_begin("the candidates are compiled", 0);
    const bool built = measure_build(&t->measure, &t->t, dir, of, t->n);
    progress_end();
    if (!built)
        return complain(INGOT_TOOL, "%s: %s", dir,
                        t->measure.why ? t->measure.why : "the candidates cannot be built");
    ingot_status status = write_list(t, dir, of, t->n);
    if (status == INGOT_OK)
        note("  %s: %d candidates of %d kernels", dir, all, t->n);
    return status;
}

/* What --prepare left there; NULL: told. */
static char *read_list(const Tune *t, const char *dir)
{
    const char *path = arena_printf(t->a, "%s/%s", dir, list_name);
    char *text = read_text(t->a, path);
    if (!text)
        complain(INGOT_IO, "%s: cannot be read: `ingot tune --prepare %s` writes it", path, dir);
    return text;
}

bool tune_prepared(const Tune *t, const char *dir)
{
    return read_list(t, dir) != NULL;
}

static TuneKernel *kernel_of(const Tune *t, const char *hash)
{
    for (int i = 0; i < t->t.n; i++)
        if (!strcmp(t->t.kernel[i]->hash, hash))
            return t->t.kernel[i];
    return NULL;
}

/* Every candidate of the list, in its order; false: another model's, or another compiler's. */
static bool read_case(Tune *t, const Json *j, TuneCaseOf *of)
{
    const Json *list = json_member(j, "candidates");
    of->kernel = kernel_of(t, json_text(json_member(j, "kernel"), ""));
    for (const Json *c = list ? list->item : NULL; c && of->kernel; c = c->next) {
        const char *text = json_text(c, "");
        Candidate *x = candidate_read(of->kernel, text);
        if (!x)
            return false;
        vec_push(t->a, of->candidate, of->n, candidate_add(of->kernel, x));
    }
    return of->kernel && of->n;
}

static bool is_known(const TuneCaseOf *of)
{
    bool known = true;
    for (int i = 0; i < of->n; i++)
        known &= of->candidate[i]->verdict > RIGHT || of->candidate[i]->ns > 0;
    return known;
}

ingot_status tune_measure(Tune *t, const char *dir, const volatile sig_atomic_t *cut_off)
{
    const char *path = arena_printf(t->a, "%s/%s", dir, list_name);
    char *text = read_list(t, dir);
    TuneCaseOf *of = NULL;
    int n = 0, timed = 0, left = 0;
    if (!text)
        return INGOT_IO;
    for (char *at = text; *at;) {
        size_t length = strcspn(at, "\n");
        const char *one = arena_printf(t->a, "%.*s", (int)length, at), *why = NULL;
        TuneCaseOf c = {0};
        at += length + (at[length] == '\n');
        const Json *j = json_read(t->a, one, &why);
        if (!j || !read_case(t, j, &c))
            return complain(INGOT_INVALID,
                            "%s: line %d: no kernel of this model: prepared for another one, or by "
                            "another ingot",
                            path, n + 1);
        vec_push(t->a, of, n, c);
    }
    for (int i = 0; i < n; i++) {
        if (!database_read(t->d, of[i].kernel, 0))
            return complain(INGOT_IO, "%s", database_error(t->d));
        if (is_known(&of[i]))
            continue;
        if (*cut_off || (timed && seconds_now() >= t->deadline)) {
            left++;
            continue;
        }
        /* the cases before it stay as they are: the program has them all */
        if (!measure_one(&t->measure, &t->t, dir, of, n, i))
            return complain(INGOT_TOOL, "%s: %s", dir,
                            t->measure.why ? t->measure.why : "the candidates cannot be run");
        if (!database_write(t->d, of[i].kernel, of[i].candidate, of[i].n))
            return complain(INGOT_IO, "%s", database_error(t->d));
        timed++;
        note("  %d of %d  %s: %d candidates", i + 1, n, of[i].kernel->step[0]->name, of[i].n);
    }
    note("  %d kernels timed, %d known", timed, n - timed - left);
    if (left)
        note("  %d left: the same command goes on with them", left);
    return INGOT_OK;
}
