/* context.c - contexts: who owns the graph, and where messages go.
 * A model has one context; every kernel gets a child of its own, so that kernels are built,
 * compared and freed independently. */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir.h"

enum { CONTEXT_MAPS = 8 };

static uint32_t next_number(void)
{
    static _Atomic uint32_t number;
    return ++number;
}

ingot_context *ingot_context_new(ingot_sink sink, void *user)
{
    Arena *a = arena_new();
    Context *c = NEW(a, Context);
    c->arena = a;
    c->number = next_number();
    c->sink = sink;
    c->sink_user = user;
    c->poison = node_make(c, OP_POISON, INGOT_F32, (Arg){0}, 0, NULL, 0, NULL);
    return c;
}

Context *context_child(Context *parent)
{
    Context *c = ingot_context_new(parent->sink, parent->sink_user);
    c->file = parent->file;
    c->vars = parent->vars; /* same numbers; read only */
    c->nvar = parent->nvar;
    c->keep_subnormals = parent->keep_subnormals;
    c->sums_in_blocks = parent->sums_in_blocks;
    return c;
}

static Map *map_of(Context *c, int i)
{
    Map *all[CONTEXT_MAPS] = {&c->memo,     &c->rederived, &c->weight_layouts, &c->variants_before,
                              &c->low_rank, &c->read_as,   &c->summed_as,      &c->shard_parts};
    return all[i];
}

void ingot_context_free(ingot_context *c)
{
    if (!c)
        return;
    free(c->table);
    free((void *)c->nodes);
    free((void *)c->origins);
    for (int i = 0; i < CONTEXT_MAPS; i++)
        map_free(map_of(c, i));
    ingot_context_free(c->along);
    arena_free(c->arena);
}

/* ---- back to what it was ----------------------------------------------------------------------
 */

struct ContextMark {
    Context was;
    Node **table;
    const OriginList **origins;
    NamedNode *inputs, *outputs;
    StateTensor *states;
    Var *vars;
    Map maps[CONTEXT_MAPS];
};

static void *copied(Arena *a, const void *from, int n, size_t size)
{
    void *to = arena_array(a, (size_t)n + 1, size);
    return n ? memcpy(to, from, (size_t)n * size) : to;
}

ContextMark *context_mark(Context *c, Arena *a)
{
    ContextMark *m = NEW(a, ContextMark);
    m->was = *c;
    m->table = copied(a, (const void *)c->table, (int)c->captable, sizeof *m->table);
    m->origins = copied(a, (const void *)c->origins, (int)c->nnode, sizeof *m->origins);
    m->inputs = copied(a, c->inputs, c->ninput, sizeof *m->inputs);
    m->outputs = copied(a, c->outputs, c->noutput, sizeof *m->outputs);
    m->states = copied(a, c->states, c->nstate, sizeof *m->states);
    m->vars = copied(a, c->vars, c->nvar, sizeof *m->vars);
    for (int i = 0; i < CONTEXT_MAPS; i++)
        m->maps[i] = map_copy(map_of(c, i));
    return m;
}

static void put_back(void *to, const void *from, int n, size_t size)
{
    if (n)
        memcpy(to, from, (size_t)n * size);
}

void context_rewind(Context *c, const ContextMark *m, Arena *a)
{
    const Context now = *c;
    for (int i = 0; i < CONTEXT_MAPS; i++)
        map_free(map_of(c, i));
    *c = m->was;
    c->arena = a ? a : c->arena;
    c->nerror = now.nerror;
    c->status = now.status;
    c->table = now.table;
    c->nodes = now.nodes;
    c->origins = now.origins;
    put_back((void *)c->table, (const void *)m->table, (int)c->captable, sizeof *m->table);
    put_back((void *)c->origins, (const void *)m->origins, (int)c->nnode, sizeof *m->origins);
    put_back(c->inputs, m->inputs, c->ninput, sizeof *m->inputs);
    put_back(c->outputs, m->outputs, c->noutput, sizeof *m->outputs);
    put_back(c->states, m->states, c->nstate, sizeof *m->states);
    put_back(c->vars, m->vars, c->nvar, sizeof *m->vars);
    for (int i = 0; i < CONTEXT_MAPS; i++)
        *map_of(c, i) = map_copy(&m->maps[i]);
}

void context_mark_free(ContextMark *m)
{
    for (int i = 0; m && i < CONTEXT_MAPS; i++)
        map_free(&m->maps[i]);
}

void ingot_set_precision(ingot_context *c, ingot_precision p)
{
    c->precision = p;
}

void ingot_set_precision_of(ingot_context *c, const char *nodes, ingot_precision p)
{
    PrecisionRule rule = {.nodes = arena_strdup(c->arena, nodes), .precision = p};
    vec_push(c->arena, c->precisions, c->nprecision, rule);
}

/* Each name once. */
static void note_narrowed(Context *c, const char *node)
{
    for (int i = 0; i < c->nnarrowed; i++)
        if (!strcmp(c->narrowed[i], node))
            return;
    vec_push(c->arena, c->narrowed, c->nnarrowed, node);
}

/* Is f32 at least as fast as the products that this needs for each of its?  That is said once. */
static bool f32_is_faster(Context *c, ingot_precision p)
{
    static const int products[] = {[INGOT_PRECISION_BF16X3] = 3, [INGOT_PRECISION_BF16X6] = 6};
    const bool faster = c->bf16_products > 0 && (size_t)p < sizeof products / sizeof *products &&
                        products[p] > c->bf16_products;
    if (faster && !c->stays_f32)
        context_report(c, INGOT_NOTE, INGOT_OK,
                       "--precision bf16x%d: f32 is used, which is faster: the target has no unit "
                       "that computes %d products of bf16 in the time of one",
                       products[p], products[p]);
    c->stays_f32 |= faster;
    return faster;
}

static bool is_f8(ingot_precision p)
{
    return p == INGOT_PRECISION_FP8 || p == INGOT_PRECISION_FP8_FAST;
}

/* "MODULE.NAME": exporters that make names up ("node_MatMul_1") keep the module beside them. */
static const char *path_here(Context *c, const char *node)
{
    if (!c->module || !c->nprecision)
        return NULL;
    const size_t room = strlen(c->module) + strlen(node) + 2;
    char *path = arena_alloc(c->arena, room);
    snprintf(path, room, "%s.%s", c->module, node);
    return path;
}

static ingot_precision said_here(ingot_context *c)
{
    const char *node = c->at ? c->at->origin->node : "", *path = path_here(c, node);
    ingot_precision p = c->precision;
    for (int i = 0; i < c->nprecision; i++)
        if (!fnmatch(c->precisions[i].nodes, node, 0) ||
            (path && !fnmatch(c->precisions[i].nodes, path, 0))) {
            p = c->precisions[i].precision;
            c->precisions[i].used = true;
        }
    return p;
}

void ingot_set_beside_f8(ingot_context *c, ingot_precision p)
{
    c->beside_f8 = p;
}

bool ingot_f8_here(ingot_context *c)
{
    return is_f8(said_here(c));
}

ingot_precision ingot_precision_here(ingot_context *c)
{
    const char *node = c->at ? c->at->origin->node : "";
    ingot_precision p = said_here(c);
    if (is_f8(p))
        p = c->beside_f8 ? c->beside_f8 : INGOT_PRECISION_F16;
    if (f32_is_faster(c, p))
        p = INGOT_PRECISION_F32;
    if (p != INGOT_PRECISION_F32 && p != INGOT_PRECISION_1E5)
        note_narrowed(c, node);
    return p;
}

int ingot_unused_precision(const ingot_context *c)
{
    for (int i = 0; i < c->nprecision; i++)
        if (!c->precisions[i].used)
            return i;
    return -1;
}

bool precision_wanted(const Context *c, ingot_precision p)
{
    bool wanted = c->precision == p;
    for (int i = 0; i < c->nprecision; i++)
        wanted |= c->precisions[i].precision == p;
    return wanted;
}

ingot_precision ingot_precision_of(const ingot_context *c)
{
    return c->precision;
}

void ingot_set_one_product(ingot_context *c, bool one)
{
    c->one_product = one;
}

bool ingot_one_product(const ingot_context *c)
{
    return c->one_product;
}

void ingot_set_bf16_products(ingot_context *c, double n)
{
    c->bf16_products = n;
}

void ingot_set_rounded_results(ingot_context *c, bool rounded)
{
    c->rounded_results = rounded;
}

bool ingot_rounded_results(const ingot_context *c)
{
    return c->rounded_results;
}

void ingot_set_shared_keys(ingot_context *c, bool shared)
{
    c->shared_keys = shared;
}

bool ingot_shared_keys(const ingot_context *c)
{
    return c->shared_keys;
}

void ingot_set_stored_rows(ingot_context *c, int64_t least)
{
    c->stored_rows = least;
}

int64_t ingot_stored_rows(const ingot_context *c)
{
    return c->stored_rows;
}

void ingot_set_vocabulary(ingot_context *c, const void *bytes, size_t n)
{
    c->vocabulary = bytes;
    c->vocabulary_bytes = n;
}

void ingot_read_as(ingot_context *c, ingot_tensor *x, ingot_tensor *instead)
{
    if (x != c->poison && instead != c->poison)
        map_put(&c->read_as, (uint64_t)x->id + 1, (void *)(uintptr_t)instead);
}

void ingot_summed_as(ingot_context *c, ingot_tensor *x, ingot_tensor *instead)
{
    if (x != c->poison && instead != c->poison)
        map_put(&c->summed_as, (uint64_t)x->id + 1, (void *)(uintptr_t)instead);
}

void ingot_keep_subnormals(ingot_context *c, bool keep)
{
    c->keep_subnormals = keep;
}

ingot_status ingot_context_status(const ingot_context *c)
{
    return c->status;
}

int ingot_error_count(const ingot_context *c)
{
    return c->nerror;
}

/* Broken beats unsupported beats usage: the status says what to repair first. */
static int gravity(ingot_status s)
{
    static const ingot_status order[] = {INGOT_OK,   INGOT_USAGE, INGOT_UNSUPPORTED, INGOT_DIFFERS,
                                         INGOT_TOOL, INGOT_IO,    INGOT_INVALID,     INGOT_BUG};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (order[i] == s)
            return (int)i;
    return 0;
}

void context_vreport(Context *c, ingot_level level, ingot_status status, const char *format,
                     va_list ap)
{
    if (level == INGOT_ERROR) {
        c->nerror++;
        if (gravity(status) > gravity(c->status))
            c->status = status;
    }
    if (!c->sink)
        return;
    StrBuf message = {0};
    sb_vprintf(&message, format, ap);
    c->sink(c->sink_user, level, message.data);
    sb_free(&message);
}

void context_report(Context *c, ingot_level level, ingot_status status, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    context_vreport(c, level, status, format, ap);
    va_end(ap);
}

void ingot_set_file(ingot_context *c, const char *file)
{
    c->file = file ? arena_strdup(c->arena, file) : NULL;
}

int ingot_source(ingot_context *c, ingot_source_node *node)
{
    vec_push(c->arena, c->source, c->nsource, node);
    return c->nsource - 1;
}

void ingot_set_origin(ingot_context *c, const char *node, const char *op)
{
    c->module = NULL;
    if (!node && !op) {
        c->at = NULL;
        return;
    }
    Origin *o = NEW(c->arena, Origin);
    o->number = c->norigin++;
    o->node = arena_strdup(c->arena, node ? node : "");
    o->op = arena_strdup(c->arena, op ? op : "");
    OriginList *list = NEW(c->arena, OriginList);
    list->origin = o;
    c->at = list;
}

void ingot_set_module(ingot_context *c, const char *module)
{
    c->module = module;
}

static void report_at_origin(ingot_context *c, ingot_level level, ingot_status status,
                             const char *format, va_list ap)
{
    StrBuf sb = {0};
    if (c->file)
        sb_printf(&sb, "%s: ", c->file);
    if (c->at) {
        sb_printf(&sb, "node '%s'", c->at->origin->node);
        if (*c->at->origin->op)
            sb_printf(&sb, " (%s)", c->at->origin->op);
        sb_puts(&sb, ": ");
    }
    sb_vprintf(&sb, format, ap);
    context_report(c, level, status, "%s", sb.data);
    sb_free(&sb);
}

ingot_tensor *ingot_error(ingot_context *c, ingot_status status, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    report_at_origin(c, INGOT_ERROR, status, format, ap);
    va_end(ap);
    return c->poison;
}

void ingot_warning(ingot_context *c, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    report_at_origin(c, INGOT_WARNING, INGOT_OK, format, ap);
    va_end(ap);
}

ingot_tensor *ingot_poison(ingot_context *c)
{
    return c->poison;
}

bool ingot_is_poison(ingot_tensor *t)
{
    return t->op == OP_POISON;
}

void *ingot_alloc(ingot_context *c, size_t bytes)
{
    return arena_alloc(c->arena, bytes);
}
