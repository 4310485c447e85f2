/* run_key.c - what a folder of the cache is named by: a hash of all that went into the program that
 * lies there.
 *
 * What goes in has a name of its own, and a length: nothing of one option can be taken for
 * something of another one, nor one list's end for the next one's beginning.  tests/bundle/keys.py
 * knows of every option of `ingot run` whether it has to count, and that it does. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "igrt.h"
#include "run.h"
#include "targets.h"

static void key_add(CacheKey *k, const char *what, const void *data, size_t bytes)
{
    const uint64_t part[] = {igrt_checksum(what, strlen(what)), igrt_checksum(data, bytes), bytes};
    k->a = hash_bytes(k->a, part, sizeof part);
    k->b = hash_bytes(k->b, part, sizeof part);
}

static void key_number(CacheKey *k, const char *what, int64_t n)
{
    key_add(k, what, &n, sizeof n);
}

static void key_text(CacheKey *k, const char *what, const char *s)
{
    if (s)
        key_add(k, what, s, strlen(s));
    else
        key_number(k, "none", 0);
}

/* ---- files ---------------------------------------------------------------------------------- */

/* A file that is too large to be read for this, or that may not be there. */
static void key_stamp(CacheKey *k, const char *what, const char *path)
{
    struct stat st;
    key_text(k, what, path);
    if (path && !stat(path, &st)) {
        int64_t stamp[3] = {st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
        key_add(k, "stamp", stamp, sizeof stamp);
    }
}

/* A file that cannot be read is told of by its first use. */
static void key_contents(CacheKey *k, const char *what, const char *path)
{
    MapFile map;
    if (!path || mapfile_open(&map, path))
        return;
    key_add(k, what, map.data, map.len);
    mapfile_close(&map);
}

typedef struct {
    CacheKey *k;
    Arena *a;
    const char *dir;
} KeyPlace;

/* A file that weights of the model lie in. */
static void key_location(void *user, Span location)
{
    const KeyPlace *p = user;
    key_stamp(p->k, "external data",
              arena_printf(p->a, "%s%.*s", p->dir, (int)location.len, (const char *)location.data));
}

/* The files that the model says its weights lie in, wherever that is, and those beside it that its
 * bytes mention, in whatever order these entries are written. */
static void key_neighbours(CacheKey *k, Arena *a, const char *model, const MapFile *map)
{
    const Importer *by = importer_of(map);
    const char *slash = strrchr(model, '/');
    const char *dir = slash ? arena_printf(a, "%.*s", (int)(slash - model + 1), model) : "./";
    const char *own = slash ? slash + 1 : model;
    if (!by->mentions || !by->mentions(map, dir, own, key_location, &(KeyPlace){k, a, dir}))
        return;
    struct dirent **list;
    int n = scandir(dir, &list, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (list[i]->d_name[0] != '.' &&
            memmem(map->data, map->len, list[i]->d_name, strlen(list[i]->d_name)))
            key_stamp(k, "neighbour", arena_printf(a, "%s%s", dir, list[i]->d_name));
        free(list[i]);
    }
    if (n >= 0)
        free((void *)list);
}

/* ---- the C compiler and the machine ---------------------------------------------------------- */

/* "ccache gcc -m32": the programs that it names. */
static void key_compiler(CacheKey *k, Arena *a, const char *words)
{
    key_text(k, "compiler", words);
    while (words && *words) {
        size_t skip = strspn(words, " "), len = strcspn(words + skip, " ");
        if (len && words[skip] != '-')
            key_stamp(k, "program",
                      find_program(a, arena_printf(a, "%.*s", (int)len, words + skip)));
        words += skip + len;
    }
}

static void key_machine(CacheKey *k, Arena *a, const char *target)
{
    key_text(k, "target", target);
    if (!target)
        return;
    if (target_is_file(target))
        key_contents(k, "target file", target);
    const Target t = machine_target(a, target);
    key_compiler(k, a, c_compiler());
    key_compiler(k, a, t.cc);
    if (strstr(c_compiler(), "native") || (t.flags && strstr(t.flags, "native")))
        key_text(k, "processor", this_processor(a));
    TargetName *list;
    const int n = target_list(a, target, &list);
    const bool told = !strstr(target, "native") && !target_is_file(target);
    for (int i = 0; i < n && !told; i++) { /* what the name does not tell */
        StrBuf sb = {0};
        ingot_status status;
        if (!target_print(&sb, a, list[i].target, &status))
            key_text(k, "figures", sb.data);
        sb_free(&sb);
    }
}

/* ---- options --------------------------------------------------------------------------------- */

static void key_lists(CacheKey *k, const Options *o)
{
    key_number(k, "ops", o->nop);
    for (int i = 0; i < o->nop; i++) {
        key_text(k, "op", o->op[i].name);
        key_text(k, "file", o->op[i].file);
        key_text(k, "function", o->op[i].function);
        key_contents(k, "source", o->op[i].file);
    }
    key_number(k, "dims", o->ndim);
    for (int i = 0; i < o->ndim; i++) {
        key_text(k, "dim", o->dim[i].name);
        key_number(k, "lo", o->dim[i].lo);
        key_number(k, "hi", o->dim[i].hi);
        key_text(k, "same as", o->dim[i].same_as);
    }
    key_text(k, "entry", o->entry);
    key_number(k, "states", o->nstate);
    for (int i = 0; i < o->nstate; i++) {
        key_text(k, "input", o->state[i].input);
        key_text(k, "output", o->state[i].output);
    }
    key_number(k, "binds", o->nbind);
    for (int i = 0; i < o->nbind; i++) {
        key_text(k, "bind", o->bind_name[i]);
        key_text(k, "value", o->bind_text[i]);
    }
}

static void key_real(CacheKey *k, const char *name, double x)
{
    key_add(k, name, &x, sizeof x);
}

static void key_training(CacheKey *k, const Options *o)
{
    const ingot_optimizer *by = &o->optimizer;
    key_text(k, "loss", o->training.loss);
    key_number(k, "axis", o->loss.axis);
    key_real(k, "smoothing", o->loss.smoothing);
    key_number(k, "ignores", o->loss.ignores);
    key_number(k, "ignored", o->loss.ignored);
    key_number(k, "optimizer", by->kind);
    const double number[] = {by->beta1,
                             by->beta2,
                             by->epsilon,
                             by->decay,
                             (double)by->nesterov,
                             (double)by->early,
                             (double)by->uncorrected,
                             by->clip,
                             (double)by->accumulate,
                             (double)by->processes,
                             o->training.rate};
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        key_real(k, "number", number[i]);
    key_number(k, "trainable", o->training.n_trainable);
    for (int i = 0; i < o->training.n_trainable; i++)
        key_text(k, "name", o->trainable[i]);
    key_number(k, "frozen", o->training.n_frozen);
    for (int i = 0; i < o->training.n_frozen; i++)
        key_text(k, "name", o->frozen[i]);
    key_real(k, "loss scale", o->training.loss_scale);
    key_real(k, "quantised", o->training.quantised);
    key_number(k, "lora", o->training.n_lora);
    for (int i = 0; i < o->training.n_lora; i++) {
        key_text(k, "name", o->lora[i].pattern);
        key_number(k, "rank", o->lora[i].rank);
        key_real(k, "alpha", o->lora[i].alpha);
    }
}

static ingot_status key_options(CacheKey *k, const Options *o)
{
    key_number(k, "train", o->train);
    if (o->train)
        key_training(k, o);
    key_text(k, "no rewrite", o->compile.no_rewrite);
    key_text(k, "fuse", o->compile.fuse);
    key_text(k, "prefer", o->compile.prefer);
    key_number(k, "devices", o->compile.devices);
    key_text(k, "parallel", o->compile.parallel);
    key_number(k, "naive", o->compile.naive);
    key_number(k, "max ram", o->compile.max_ram);
    key_number(k, "subnormals", o->keep_subnormals);
    key_number(k, "rounding", o->rounding);
    key_number(k, "precision", o->precision);
    key_number(k, "precision said", o->precision_said);
    key_number(k, "precisions", o->nprecision);
    for (int i = 0; i < o->nprecision; i++) {
        key_text(k, "nodes", o->precisions[i].nodes);
        key_number(k, "precision", o->precisions[i].precision);
    }
    key_number(k, "string bytes", o->string_bytes);
    key_number(k, "kv", o->cache);
    key_number(k, "slots", o->slots);
    key_text(k, "weights type", o->weights_type);
    key_lists(k, o);
    if (!o->compile.sched)
        return INGOT_OK;
    MapFile sched;
    const char *why = mapfile_open(&sched, o->compile.sched);
    if (why)
        return complain(INGOT_IO, "%s: %s", o->compile.sched, why);
    key_add(k, "sched", sched.data, sched.len);
    key_number(k, "threads", o->compile.threads);
    mapfile_close(&sched);
    return INGOT_OK;
}

ingot_status cache_key(const Session *s, CacheKey *k)
{
    MapFile map;
    *k = (CacheKey){1, 2};
    const char *why = mapfile_open(&map, s->o->model);
    if (why)
        return complain(INGOT_IO, "%s: %s", s->o->model, why);
    key_add(k, "model", map.data, map.len);
    key_neighbours(k, s->a, s->o->model, &map);
    mapfile_close(&map);
    key_contents(k, "ingot", "/proc/self/exe");
    key_machine(k, s->a, s->o->compile.target);
    key_number(k, "check", s->check);
    return key_options(k, s->o);
}

/* ---- what the data decides ------------------------------------------------------------------- */

static void key_shape(CacheKey *k, const HostTensor *v)
{
    key_number(k, "dtype", v->dtype);
    key_add(k, "shape", v->dims, (size_t)v->rank * sizeof v->dims[0]);
}

CacheKey cache_key_data(const Session *s, CacheKey k, bool bound)
{
    for (int i = 0; i < s->nin; i++) {
        const HostTensor *v = &s->in[i];
        key_number(&k, "sequence", v->sequence);
        key_number(&k, "items", v->nitem);
        key_number(&k, "absent", v->absent);
        for (int j = 0; j < v->nitem; j++)
            key_shape(&k, &v->item[j]);
        key_shape(&k, v);
        if (bound && s->bound[i])
            key_add(&k, "bound", v->data, v->bytes);
    }
    key_number(&k, "binds values", bound);
    return k;
}
