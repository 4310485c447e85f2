/* cli_cache.c - compiled models are kept: the folder of the cache that holds a model's program.
 *
 * A cache entry is a bundle with its program, named by a hash of all that went into it: the model's
 * bytes, external data beside it, options, dims and bound values, this compiler, the C compiler. What
 * cannot be compiled ahead of time may be with some inputs bound to their values; which is remembered. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "igrt.h"
#include "targets.h"

/* ---- keys -------------------------------------------------------------------------------- */

typedef struct {
    uint64_t a, b;
} Key;

static void key_add(Key *k, const void *data, size_t bytes)
{
    uint64_t sum = igrt_checksum(data, bytes);
    k->a = hash_bytes(k->a, &sum, sizeof sum);
    k->b = hash_bytes(k->b ^ bytes, &k->a, sizeof k->a);
}

static void key_text(Key *k, const char *s)
{
    key_add(k, s ? s : "", s ? strlen(s) + 1 : 0);
}

static void key_file_stamp(Key *k, const char *path)
{
    struct stat st;
    if (path && !stat(path, &st)) {
        key_text(k, path);
        int64_t stamp[3] = {st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
        key_add(k, stamp, sizeof stamp);
    }
}

/* Files beside the model that its bytes mention: external data. */
static void key_neighbours(Key *k, Arena *a, const char *model, const MapFile *map)
{
    if (!memmem(map->data, map->len, "location", 8))
        return;
    const char *slash = strrchr(model, '/');
    const char *dir = slash ? arena_printf(a, "%.*s", (int)(slash - model + 1), model) : "./";
    struct dirent **list;
    int n = scandir(dir, &list, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (list[i]->d_name[0] != '.' &&
            memmem(map->data, map->len, list[i]->d_name, strlen(list[i]->d_name)))
            key_file_stamp(k, arena_printf(a, "%s%s", dir, list[i]->d_name));
        free(list[i]);
    }
    if (n >= 0)
        free((void *)list);
}

/* Of everything but dims and bound values. */
static ingot_status key_base(Session *s, Key *k)
{
    const Options *o = s->o;
    MapFile map;
    *k = (Key){1, 2};
    const char *why = mapfile_open(&map, o->model);
    if (why)
        return complain(INGOT_IO, "%s: %s", o->model, why);
    key_add(k, map.data, map.len);
    key_neighbours(k, s->a, o->model, &map);
    mapfile_close(&map);
    MapFile self;
    if (!mapfile_open(&self, "/proc/self/exe")) {
        key_add(k, self.data, self.len);
        mapfile_close(&self);
    }
    char first[128];
    snprintf(first, sizeof first, "%.*s", (int)strcspn(c_compiler(), " "), c_compiler());
    key_text(k, c_compiler());
    key_file_stamp(k, find_program(s->a, first));
    key_text(k, o->compile.target);
    MapFile target;
    if (target_is_file(o->compile.target) && !mapfile_open(&target, o->compile.target)) {
        key_add(k, target.data, target.len);
        mapfile_close(&target);
    }
    key_text(k, o->compile.no_rewrite);
    key_text(k, o->compile.fuse);
    key_text(k, o->compile.prefer);
    if (o->compile.sched) {
        MapFile sched;
        why = mapfile_open(&sched, o->compile.sched);
        if (why)
            return complain(INGOT_IO, "%s: %s", o->compile.sched, why);
        key_add(k, sched.data, sched.len);
        key_add(k, &o->compile.threads, sizeof o->compile.threads);
        mapfile_close(&sched);
    }
    for (int i = 0; i < o->nop; i++) { /* a file that cannot be read is told of by its first use */
        MapFile source;
        key_text(k, o->op[i].name);
        key_text(k, o->op[i].file);
        key_text(k, o->op[i].function);
        if (!mapfile_open(&source, o->op[i].file)) {
            key_add(k, source.data, source.len);
            mapfile_close(&source);
        }
    }
    key_add(k, &o->compile.naive, sizeof o->compile.naive);
    key_add(k, &s->check, sizeof s->check);
    key_add(k, &o->keep_subnormals, sizeof o->keep_subnormals);
    key_add(k, &o->precision, sizeof o->precision);
    for (int i = 0; i < o->ndim; i++) {
        key_text(k, o->dim[i].name);
        key_add(k, &o->dim[i].lo, 2 * sizeof o->dim[i].lo);
    }
    for (int i = 0; i < o->nstate; i++) {
        key_text(k, o->state[i].input);
        key_text(k, o->state[i].output);
    }
    for (int i = 0; i < o->nbind; i++) {
        key_text(k, o->bind_name[i]);
        key_text(k, o->bind_text[i]);
    }
    return INGOT_OK;
}

/* And of what the data decides: dims of all inputs, values of the bound ones. */
static Key key_data(const Session *s, Key k, bool bound)
{
    for (int i = 0; i < s->nin; i++) {
        key_add(&k, &s->in[i].nitem, sizeof s->in[i].nitem);
        key_add(&k, &s->in[i].absent, sizeof s->in[i].absent);
        for (int j = 0; j < s->in[i].nitem; j++) {
            const Value *v = &s->in[i].item[j];
            key_add(&k, &v->rank, sizeof v->rank);
            key_add(&k, v->dims, (size_t)v->rank * sizeof v->dims[0]);
        }
        key_add(&k, &s->in[i].rank, sizeof s->in[i].rank);
        key_add(&k, s->in[i].dims, (size_t)s->in[i].rank * sizeof s->in[i].dims[0]);
        if (bound && s->bound[i])
            key_add(&k, s->in[i].data, s->in[i].bytes);
    }
    key_add(&k, &bound, sizeof bound);
    return k;
}

static const char *entry_path(const Session *s, Key k)
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
    Model m;
    ingot_status status = model_open(&m, s->o, quiet);
    if (status == INGOT_OK)
        status = model_build(&m, s->o, s->in, bound);
    const char *part = file_part(s->a, entry);
    if (status == INGOT_OK && !make_dirs(cache_root(s->a)))
        status = complain(INGOT_IO, "%s: %s", cache_root(s->a), strerror(errno));
    if (status == INGOT_OK) {
        ingot_options o = s->o->compile;
        o.name = NULL;
        o.no_selftest = true;
        status = ingot_compile(m.c, &o, part);
    }
    model_close(&m);
    if (status != INGOT_OK)
        return status;
    status = build_program(s->a, part, "model", s->o->compile.target, "-std=c99", s->check,
                           s->o->compile.verbose > 1);
    if (status == INGOT_OK) {
        cache_limit(s->a, part, size_limit());
        if (s->o->no_cache)
            remove_tree(entry);
        if (rename(part, entry) && access(entry, F_OK)) /* another process may have been faster */
            status = complain(INGOT_IO, "%s: %s", entry, strerror(errno));
    }
    remove_tree(part);
    return status;
}

/* Inputs that may decide shapes: lists and scalars. */
static bool may_bind(const Value *v)
{
    return !value_is_group(v) && v->rank <= 1 && v->count <= 64 && v->dtype != INGOT_STRING;
}

/* Whether the model can be planned with these inputs bound. */
static bool plans(Session *s, const bool *bound)
{
    Model m;
    Plan *p = NULL;
    if (model_open(&m, s->o, true) == INGOT_OK && model_build(&m, s->o, s->in, bound) == INGOT_OK)
        p = plan_make(m.c, &s->o->compile);
    plan_free(p);
    model_close(&m);
    return p != NULL;
}

/* The smallest set we can find, greedily, that lets the model be compiled; false if there is none. */
static bool choose_binds(Session *s, const Model *m)
{
    int n = 0;
    for (int i = 0; i < s->nin; i++) {
        s->bound[i] =
            may_bind(&s->in[i]) && ingot_onnx_input(m->onnx, i)->kind == INGOT_ONNX_TENSOR;
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

static void say_binds(const Session *s, const Model *m)
{
    StrBuf sb = {0};
    for (int i = 0; i < s->nin; i++)
        if (s->bound[i])
            sb_printf(&sb, "%s'%s'", sb.len ? ", " : "", ingot_onnx_input(m->onnx, i)->name);
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
    FILE *f = fopen(file, "w");
    if (!f)
        return;
    for (int i = 0; i < s->nin; i++)
        fputc(s->bound[i] ? '1' : '0', f);
    fclose(f);
}

static bool cached(const Session *s, const char *entry)
{
    bool there = !s->o->no_cache && !access(arena_printf(s->a, "%s/model", entry), X_OK);
    if (there)
        cache_used(entry);
    return there;
}

ingot_status session_find_entry(Session *s, const Model *m)
{
    Key base;
    ingot_status status = key_base(s, &base);
    if (status != INGOT_OK)
        return status;
    const char *entry = entry_path(s, key_data(s, base, false)),
               *binds = arena_printf(s->a, "%s.bind", entry);
    s->entry = entry;
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
    s->entry = entry = entry_path(s, key_data(s, base, true));
    return cached(s, entry) ? INGOT_OK : make_entry(s, entry, s->bound, false);
}
