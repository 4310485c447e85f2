/* run_cache.c - compiled models are kept: the folder of the cache that holds a model's program.
 *
 * A cache entry is a bundle with its program, named by a hash of all that went into it (run_key.c):
 * the model's bytes, external data beside it, options, dims and bound values, this compiler, the C
 * compiler. What cannot be compiled ahead of time may be with some inputs bound to their values;
 * which is remembered. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "igrt.h"
#include "run.h"
#include "targets.h"

static const char *entry_path(const Session *s, CacheKey k)
{
    return arena_printf(s->a, "%s/%016llx%016llx", cache_root(s->a), (unsigned long long)k.a,
                        (unsigned long long)k.b);
}

/* ---- compiling into it ------------------------------------------------------------------- */

static int64_t size_limit(void)
{
    int64_t limit = (int64_t)2 << 30;
    const char *told = getenv("INGOT_CACHE_SIZE");
    if (told && *told && !option_size(told, &limit))
        note("  warning: INGOT_CACHE_SIZE '%.80s' is no size like 500M, 2G", told);
    return limit;
}

/* Compile, build, and move to its place in the cache. */
static ingot_status make_entry(Session *s, const char *entry, const bool *bound, bool quiet)
{
    LoadedModel m;
    ingot_status status = model_open(&m, s->o, quiet);
    if (status == INGOT_OK)
        m.functions = true, status = model_build(&m, s->o, s->in, bound);
    const char *part = NULL;
    if (status == INGOT_OK) {
        parts_clean(s->a, entry, true);
        part = make_dirs(cache_root(s->a)) ? part_folder(s->a, entry) : NULL;
    }
    if (status == INGOT_OK && !part)
        status = complain(INGOT_IO, "%s: %s", cache_root(s->a), strerror(errno));
    if (status == INGOT_OK) {
        ingot_options o = s->o->compile;
        o.name = NULL;
        o.no_selftest = true;
        status = ingot_compile(m.c, &o, part);
    }
    model_close(&m);
    if (status == INGOT_OK)
        status = build_program(s->a, part, "model", s->o->compile.target, "-std=c99", s->check,
                               s->o->compile.verbose > 1);
    if (status == INGOT_OK) {
        cache_limit(s->a, part, size_limit());
        if (s->o->no_cache)
            remove_tree(entry);
        if (!part_keep(part, entry) &&
            access(entry, F_OK)) /* another process may have been faster */
            status = complain(INGOT_IO, "%s: %s", entry, strerror(errno));
    } else if (part) {
        part_discard(part);
    }
    return status;
}

/* Inputs that may decide shapes: lists and scalars. */
static bool may_bind(const HostTensor *v)
{
    return !value_is_group(v) && v->rank <= 1 && v->count <= 64 && v->dtype != INGOT_STRING;
}

Plan *session_plan(const Session *s, LoadedModel *m, const bool *bound)
{
    const bool built =
        model_open(m, s->o, true) == INGOT_OK && model_build(m, s->o, s->in, bound) == INGOT_OK;
    return built ? plan_make(m->c, &s->o->compile) : NULL;
}

/* Whether the model can be planned with these inputs bound. */
static bool plans(const Session *s, const bool *bound)
{
    LoadedModel m;
    Plan *p = session_plan(s, &m, bound);
    plan_free(p);
    model_close(&m);
    return p != NULL;
}

/* The smallest set we can find, greedily, that lets the model be compiled; false if there is
 * none. */
static bool choose_binds(Session *s, const LoadedModel *m)
{
    int n = 0;
    for (int i = 0; i < s->nin; i++) {
        s->bound[i] =
            may_bind(&s->in[i]) && ingot_model_input(m->file, i)->kind == INGOT_MODEL_TENSOR;
        n += s->bound[i];
    }
    if (!n || !plans(s, s->bound))
        return false;
    for (int i = s->nin; i-- > 0;) {
        if (!s->bound[i])
            continue;
        s->bound[i] = false;
        s->bound[i] = !plans(s, s->bound);
    }
    return true;
}

static void say_binds(const Session *s, const LoadedModel *m)
{
    StrBuf sb = {0};
    for (int i = 0; i < s->nin; i++)
        if (s->bound[i])
            sb_printf(&sb, "%s'%s'", sb.len ? ", " : "", ingot_model_input(m->file, i)->name);
    note("  %s: compiled for these values of %s, which decide shapes", s->o->model,
         sb.data ? sb.data : "");
    sb_free(&sb);
}

/* A list of 0 and 1 beside the entry that could not be: which inputs to bind. */
static bool load_binds(Session *s, const char *file)
{
    FILE *f = fopen(file, "r");
    if (!f)
        return false;
    for (int i = 0; i < s->nin; i++)
        s->bound[i] = fgetc(f) == '1';
    fclose(f);
    return true;
}

static void save_binds(const Session *s, const char *file)
{
    char *text = NEWN(s->a, char, s->nin + 1);
    for (int i = 0; i < s->nin; i++)
        text[i] = s->bound[i] ? '1' : '0';
    (void)file_replace(s->a, file, text, (size_t)s->nin); /* else it is found out again */
}

static bool cached(const Session *s, const char *entry)
{
    bool there = !s->o->no_cache && !access(arena_printf(s->a, "%s/model", entry), X_OK);
    if (there)
        cache_used(entry);
    return there;
}

ingot_status session_find_entry(Session *s, const LoadedModel *m)
{
    CacheKey base;
    ingot_status status = cache_key(s, &base);
    if (status != INGOT_OK)
        return status;
    const char *entry = entry_path(s, cache_key_data(s, base, false)),
               *binds = arena_printf(s->a, "%s.bind", entry);
    s->entry = entry;
    if (s->o->compile.verbose)
        note("  cache: %s", entry);
    if (cached(s, entry))
        return INGOT_OK;
    bool known = !s->o->no_cache && !s->o->no_bind && load_binds(s, binds);
    if (!known) {
        bool can_bind = false;
        for (int i = 0; i < s->nin && !s->o->no_bind; i++)
            can_bind |= may_bind(&s->in[i]);
        status = make_entry(s, entry, NULL, can_bind && !plans(s, NULL));
        /* a fault may lie in a branch that the values rule out */
        bool refused = status == INGOT_UNSUPPORTED || status == INGOT_INVALID;
        if (!refused || !can_bind || !choose_binds(s, m)) {
            if (status != INGOT_OK && can_bind)
                (void)make_entry(s, entry, NULL, false); /* once more, aloud */
            return status;
        }
        save_binds(s, binds);
    }
    say_binds(s, m);
    s->entry = entry = entry_path(s, cache_key_data(s, base, true));
    return cached(s, entry) ? INGOT_OK : make_entry(s, entry, s->bound, false);
}
