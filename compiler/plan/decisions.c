/* decisions.c - what is decided about values: the lines of a file, which value of the graph each
 * speaks of, and the record of what has been decided in the end, in the same form.
 *
 * One line speaks of all values with its key, unless another one speaks of the nth of them.  Where
 * the graph has changed, keys_align() finds the line that was written for the most similar
 * neighbourhood. */
#include <stdlib.h>
#include <string.h>

#include "decisions.h"

struct Values {
    Preset preset;
    Node **node; /* of the graph, sources first */
    int n;
    Node **canonical; /* of the graph before variants */
    int ncanonical;
    Key *key; /* by node id, below nkey */
    uint32_t nkey;
    int *nth, *of; /* by node id: which of how many with its key */
    int *match;    /* by node id: the line for its key, or -1 */
    ValueChoice *given;
    int ngiven;
    bool *used;   /* by line */
    bool changed; /* some line was written for another graph */
    Map record;   /* node id + 1 -> ValueChoice */
};

Preset values_preset(const Plan *p)
{
    return p->values ? p->values->preset : PRESET_AUTO;
}

/* ---- the graph ------------------------------------------------------------------------------- */

static void count_equals(Values *v, Arena *a, uint32_t nnode)
{
    Map count = {0};
    v->nth = NEWN(a, int, nnode + 1);
    v->of = NEWN(a, int, nnode + 1);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < v->n; i++) {
            uint32_t id = v->node[i]->id;
            if (!v->key[id].full)
                continue;
            int seen = (int)(uintptr_t)map_get(&count, v->key[id].full);
            if (pass) {
                v->of[id] = seen;
            } else {
                v->nth[id] = seen;
                map_put(&count, v->key[id].full, (void *)(uintptr_t)(seen + 1));
            }
        }
    map_free(&count);
}

void values_begin(Plan *p, Preset preset)
{
    Values *v = p->values = NEW(p->arena, Values);
    v->preset = preset;
    v->node = graph_nodes(p->arena, p->c, &v->n);
    v->canonical = v->node;
    v->ncanonical = v->n;
    v->key = graph_keys(p->arena, p->c, v->n, v->node, &v->nkey);
    count_equals(v, p->arena, v->nkey);
    v->match = NEWN(p->arena, int, v->nkey + 1);
    memset(v->match, -1, (v->nkey + 1) * sizeof *v->match);
}

Node *const *values_nodes(const Plan *p, int *n)
{
    *n = p->values->n;
    return p->values->node;
}

uint64_t value_key(const Plan *p, Node *n)
{
    const Values *v = p->values;
    return v && n->id < v->nkey ? v->key[n->id].full : 0;
}

/* Keys and lines of what a variant made: of what stands for a node that was there before, its own;
 * of what lies between, what it is within the variant, below the key of the node that was replaced:
 * not in which order nodes were made, for what several variants have in common is made by the
 * first. */
void values_follow(Plan *p, uint32_t nnode, Node *const *now, Node *const *root,
                   const char *const *variant)
{
    Values *v = p->values;
    Arena *a = p->arena;
    uint32_t more = p->c->nnode, was = v->nkey;
    Key *key = NEWN(a, Key, more + 1);
    int *match = NEWN(a, int, more + 1);
    memcpy(key, v->key, was * sizeof *key);
    memset(match, -1, (more + 1) * sizeof *match);
    memcpy(match, v->match, was * sizeof *match);
    for (uint32_t id = 0; id < nnode; id++)
        if (now[id] && now[id]->id != id && !key[now[id]->id].full) {
            key[now[id]->id] = key[id];
            match[now[id]->id] = match[id];
            void *record = map_get(&v->record, (uint64_t)id + 1);
            if (record)
                map_put(&v->record, (uint64_t)now[id]->id + 1, record);
        }
    v->node = graph_nodes(a, p->c, &v->n); /* most of what was made stood there for a while only */
    const uint64_t *inner = inner_hashes(a, p->c, v->n, v->node, root, key);
    uint64_t *said = NEWN(a, uint64_t, more + 1); /* the key that a line for it has */
    const char *last = NULL;
    uint64_t name = 0; /* of the last variant */
    for (int k = 0; k < v->n; k++) {
        uint32_t id = v->node[k]->id;
        if (!root[id] || key[id].full)
            continue;
        int line = match[root[id]->id]; /* perhaps written for another graph */
        const Key *of = &v->key[root[id]->id], *then = line < 0 ? of : &v->given[line].key;
        if (variant[id] != last)
            name = name_hash(last = variant[id]);
        key[id] = key_inside(of, name, inner[id]);
        said[id] = then == of ? key[id].full : key_inside(then, name, inner[id]).full;
        for (int i = 0; i < v->ngiven; i++)
            if (v->given[i].key.full == said[id] && !v->given[i].of)
                v->used[match[id] = i] = true;
    }
    v->key = key;
    v->match = match;
    v->nkey = more;
    count_equals(v, a, more);
    for (int k = 0; k < v->n; k++)
        for (int i = 0; i < v->ngiven && said[v->node[k]->id]; i++) {
            const ValueChoice *one = &v->given[i];
            uint32_t id = v->node[k]->id;
            if (one->of && one->key.full == said[id] && one->of == v->of[id] &&
                one->nth == v->nth[id])
                v->used[match[id] = i] = true;
        }
}

/* ---- the file -------------------------------------------------------------------------------- */

static bool hex(const char *word, int digits, uint64_t *x)
{
    char *end;
    if ((int)strlen(word) != digits || strspn(word, "0123456789abcdef") != (size_t)digits)
        return false;
    *x = strtoull(word, &end, 16);
    return true;
}

/* "3" or "12" */
static bool small_number(const char *word, int *x)
{
    size_t n = strlen(word);
    if (!n || n > 8 || strspn(word, "0123456789") != n)
        return false;
    *x = atoi(word);
    return true;
}

/* The words behind the keys. */
static bool said(ValueChoice *c, Arena *a, int n, char *const *word)
{
    for (int i = 0; i < n; i++) {
        bool more = i + 1 < n;
        if (!strcmp(word[i], "stored") || !strcmp(word[i], "recomputed"))
            c->stored = *word[i] == 's' ? YES : NO;
        else if (!strcmp(word[i], "alone"))
            c->aliased = NO;
        else if (!strcmp(word[i], "apart"))
            c->merged = NO;
        else if (!strcmp(word[i], "in") && more && hex(word[i + 1], 16, &c->in) && ++i)
            c->aliased = YES;
        else if (!strcmp(word[i], "with") && more && hex(word[i + 1], 16, &c->with) && ++i)
            c->merged = YES;
        else if (!strcmp(word[i], "as") && more)
            c->variant = arena_strdup(a, word[++i]);
        else if (!strcmp(word[i], "memory") && more)
            c->memory = arena_strdup(a, word[++i]);
        else if (!strcmp(word[i], "device") && more && small_number(word[i + 1], &c->device) && ++i)
            c->placed = true;
        else
            return false;
    }
    return n > 0;
}

/* value KEY [near x5] [only I of N] words */
bool value_line(Plan *p, int line, int n, char *const *word)
{
    Values *v = p->values;
    ValueChoice c = {.line = line};
    uint64_t x;
    int at = 2;
    bool good = n > 2 && hex(word[1], 16, &c.key.full);
    if (good && !strcmp(word[at], "near")) {
        good = n > at + KEY_NEAR;
        for (int i = 0; i < KEY_NEAR && good; i++) {
            good = hex(word[at + 1 + i], 8, &x);
            c.key.near[i] = good ? (uint32_t)x : 0;
        }
        at += 1 + KEY_NEAR;
    }
    if (good && at + 4 < n && !strcmp(word[at], "only")) {
        good = small_number(word[at + 1], &c.nth) && !strcmp(word[at + 2], "of") &&
               small_number(word[at + 3], &c.of) && c.nth < c.of;
        at += 4;
    }
    if (!good || !said(&c, p->arena, n - at, word + at)) {
        sched_error(p, line,
                    "value KEY [near KEYS] [only I of N] is wanted, and then stored or recomputed, "
                    "in KEY or "
                    "alone, with KEY or apart, as VARIANT, memory NAME, device N");
        return false;
    }
    for (int i = 0; i < v->ngiven; i++)
        if (v->given[i].key.full == c.key.full && v->given[i].nth == c.nth &&
            v->given[i].of == c.of) {
            sched_error(p, line, "this value stands in line %d already", v->given[i].line);
            return false;
        }
    vec_push(p->arena, v->given, v->ngiven, c);
    return true;
}

void values_match(Plan *p)
{
    Values *v = p->values;
    Arena *a = arena_new();
    v->used = NEWN(p->arena, bool, v->ngiven + 1);
    /* lines for all values of a key, and each key of the graph once */
    Key *saved = NEWN(a, Key, v->ngiven + 1), *present = NEWN(a, Key, v->n + 1);
    int *line = NEWN(a, int, v->ngiven + 1), nsaved = 0, npresent = 0;
    for (int i = 0; i < v->ngiven; i++)
        if (!v->given[i].of) {
            line[nsaved] = i;
            saved[nsaved++] = v->given[i].key;
        }
    for (int i = 0; i < v->n; i++) {
        Node *n = v->node[i];
        bool computes = op_info[n->op].cls != LEAF && n->dtype != INGOT_INDEX;
        if (computes && !v->nth[n->id])
            present[npresent++] = v->key[n->id];
    }
    int *to = NEWN(a, int, npresent + 1);
    keys_align(a, nsaved, saved, npresent, present, to);
    Map line_of = {0};
    for (int i = 0; i < npresent; i++)
        if (to[i] >= 0)
            map_put(&line_of, present[i].full, (void *)(uintptr_t)(line[to[i]] + 1));
    for (int i = 0; i < v->n; i++) {
        uint32_t id = v->node[i]->id;
        v->match[id] = (int)(uintptr_t)map_get(&line_of, v->key[id].full) - 1;
        for (int j = 0; j < v->ngiven; j++) {
            const ValueChoice *c = &v->given[j];
            if (c->of && c->key.full == v->key[id].full && c->of == v->of[id] &&
                c->nth == v->nth[id])
                v->match[id] = j;
        }
    }
    Map here = {0};
    for (int i = 0; i < npresent; i++)
        map_put(&here, present[i].full, (void *)present);
    for (int i = 0; i < v->ngiven; i++)
        v->changed |= !map_get(&here, v->given[i].key.full);
    map_free(&here);
    for (int i = 0; i < v->n; i++)
        if (v->match[v->node[i]->id] >= 0)
            v->used[v->match[v->node[i]->id]] = true;
    map_free(&line_of);
    arena_free(a);
}

bool values_changed(const Plan *p)
{
    return p->values && p->values->changed;
}

int value_match(const Plan *p, Node *n)
{
    const Values *v = p->values;
    return v && n->id < v->nkey ? v->match[n->id] : -1;
}

const ValueChoice *value_given(const Plan *p, Node *n)
{
    int i = value_match(p, n);
    if (i < 0)
        return NULL;
    return &p->values->given[i];
}

uint64_t value_given_key(const Plan *p, int given)
{
    return p->values->given[given].key.full;
}

/* ---- the record ------------------------------------------------------------------------------ */

void values_free(Plan *p)
{
    if (p->values)
        map_free(&p->values->record);
}

ValueChoice *value_record(Plan *p, Node *n)
{
    Values *v = p->values;
    ValueChoice *c = map_get(&v->record, (uint64_t)n->id + 1);
    if (!c) {
        c = NEW(p->arena, ValueChoice);
        map_put(&v->record, (uint64_t)n->id + 1, c);
    }
    return c;
}

const ValueChoice *value_decided(const Plan *p, const Node *n)
{
    return p->values ? map_get(&p->values->record, (uint64_t)n->id + 1) : NULL;
}

static void print_said(StrBuf *sb, const ValueChoice *c)
{
    if (c->stored)
        sb_puts(sb, c->stored == YES ? " stored" : " recomputed");
    if (c->aliased == YES)
        sb_printf(sb, " in %016llx", (unsigned long long)c->in);
    if (c->aliased == NO)
        sb_puts(sb, " alone");
    if (c->merged == YES)
        sb_printf(sb, " with %016llx", (unsigned long long)c->with);
    if (c->merged == NO)
        sb_puts(sb, " apart");
    if (c->variant)
        sb_printf(sb, " as %s", c->variant);
    if (c->memory)
        sb_printf(sb, " memory %s", c->memory);
    if (c->placed)
        sb_printf(sb, " device %d", c->device);
}

static bool same_word(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static bool same_said(const ValueChoice *a, const ValueChoice *b)
{
    return a->stored == b->stored && a->aliased == b->aliased && a->in == b->in &&
           a->merged == b->merged && a->with == b->with && same_word(a->variant, b->variant) &&
           same_word(a->memory, b->memory) && a->placed == b->placed && a->device == b->device;
}

bool values_devices(const Plan *p)
{
    const Values *v = p->values;
    const int n = p->ndevice;
    for (int i = 0; i < v->ngiven; i++) {
        const ValueChoice *c = &v->given[i];
        if (!c->placed || c->device < n)
            continue;
        sched_error(p, c->line,
                    n > 1 ? "there is no device %d: the target has devices 0 to %d"
                          : "there is no device %d: the target has device %d alone",
                    c->device, n - 1);
        return false;
    }
    return true;
}

void value_note_memory(Plan *p, Node *n, const char *memory)
{
    const ValueChoice *c = value_decided(p, n);
    if (c && c->stored == YES)
        value_record(p, n)->memory = memory;
}

static double elements(Node *n)
{
    double count = 1;
    for (int i = 0; i < n->rank; i++)
        count *= (double)n->shape[i]->hi;
    return count;
}

/* What lies in memory of it, and the operations between it and what is stored before, at upper
 * bounds. */
static void work_of(const Plan *p, Node *n, double *bytes, double *operations)
{
    enum { MOST = 256 };
    Node *stack[MOST];
    Map seen = {0};
    int depth = 0;
    *bytes = elements(n) * dtype_info[n->dtype].bytes;
    *operations = 0;
    stack[depth++] = n;
    while (depth) {
        Node *t = stack[--depth];
        const ValueChoice *c = map_get(&p->values->record, (uint64_t)t->id + 1);
        bool stop = t->dtype == INGOT_INDEX || op_info[t->op].cls == LEAF ||
                    op_info[t->op].cls == CONTROL || (t != n && c && c->stored == YES);
        if (stop || map_get(&seen, (uint64_t)t->id + 1))
            continue;
        map_put(&seen, (uint64_t)t->id + 1, (void *)t);
        if (t->op == OP_REDUCE)
            *operations += elements(t->src[0]);
        else if (op_is_alu(t->op))
            *operations += elements(t);
        for (uint32_t i = 0; i < t->nsrc && depth < MOST; i++)
            stack[depth++] = t->src[i];
    }
    map_free(&seen);
}

static void print_value(StrBuf *sb, const Plan *p, Node *n, const ValueChoice *c, bool one)
{
    const Values *v = p->values;
    const Key *k = &v->key[n->id];
    sb_printf(sb, "value %016llx", (unsigned long long)k->full);
    if (one) {
        sb_printf(sb, " only %d of %d", v->nth[n->id], v->of[n->id]);
    } else {
        sb_puts(sb, " near");
        for (int i = 0; i < KEY_NEAR; i++)
            sb_printf(sb, " %08x", (unsigned)k->near[i]);
    }
    print_said(sb, c);
    sb_printf(sb, "  # %s %s", op_info[n->op].text, dtype_info[n->dtype].name);
    print_dims(sb, p->c, n->rank, n->shape);
    const Origin *o = node_origin(p->c, n);
    if (o) {
        sb_puts(sb, " ");
        sched_origin(sb, o);
    }
    double bytes, operations;
    work_of(p, n, &bytes, &operations);
    sb_printf(sb, ", %.0f bytes, %.0f operations", bytes, operations);
    if (!one && v->of[n->id] > 1)
        sb_printf(sb, ", and %d like it", v->of[n->id] - 1);
    sb_puts(sb, "\n");
}

/* Values that are computed in another way: they stand in the graph before that alone. */
static void print_variants(StrBuf *sb, const Plan *p, Map *first)
{
    const Values *v = p->values;
    for (int i = 0; i < v->ncanonical && v->canonical != v->node; i++) {
        Node *n = v->canonical[i];
        uint64_t key = v->key[n->id].full;
        const ValueChoice *c = map_get(&v->record, (uint64_t)n->id + 1);
        if (!c || !c->variant || !strcmp(c->variant, "direct") || map_get(first, key))
            continue;
        print_value(sb, p, n, &(ValueChoice){.variant = c->variant}, false);
        map_put(first, key, (void *)(uintptr_t)c);
    }
}

int plan_variants(Arena *a, const Plan *p, VariantOf **out)
{
    const Values *v = p->values;
    int n = 0;
    *out = NULL;
    for (int i = 0; v && i < v->ncanonical; i++) {
        Node *x = v->canonical[i];
        const ValueChoice *c = map_get(&v->record, (uint64_t)x->id + 1);
        VariantOf of = {x, v->key[x->id].full, c ? c->variant : NULL, node_origin(p->c, x)};
        if (of.now && of.key)
            vec_push(a, *out, n, of);
    }
    return n;
}

void value_print(StrBuf *sb, const Plan *p, Node *n, const ValueChoice *c)
{
    print_value(sb, p, n, c, false);
}

void plan_print_variant(StrBuf *sb, const Plan *p, const VariantOf *of, const char *variant)
{
    value_print(sb, p, of->node, &(ValueChoice){.variant = variant});
}

/* How many values of each key something was decided about. */
static void count_decided(const Values *v, Map *decided)
{
    for (int i = 0; i < v->n; i++) {
        const uint32_t id = v->node[i]->id;
        const uint64_t key = v->key[id].full;
        if (key && map_get(&v->record, (uint64_t)id + 1))
            map_put(decided, key, (void *)((uintptr_t)map_get(decided, key) + 1));
    }
}

/* A line for all values of a key would store those too about which nothing was decided: they lie
 * within kernels. */
static bool speaks_of_more(const Values *v, const Map *decided, const Node *n, const ValueChoice *c)
{
    return c->stored == YES && (int)(uintptr_t)map_get(decided, v->key[n->id].full) < v->of[n->id];
}

void values_print(StrBuf *sb, const Plan *p)
{
    const Values *v = p->values;
    Map first = {0}, decided = {0};
    count_decided(v, &decided);
    print_variants(sb, p, &first);
    for (int i = 0; i < v->n; i++) {
        Node *n = v->node[i];
        uint64_t key = v->key[n->id].full;
        const ValueChoice *c = map_get(&v->record, (uint64_t)n->id + 1);
        if (!c || !key || (c->variant && !c->stored))
            continue;
        const ValueChoice *general = map_get(&first, key);
        const bool one = general || speaks_of_more(v, &decided, n, c);
        if (!one)
            map_put(&first, key, (void *)(uintptr_t)c);
        if (!general || !same_said(general, c))
            print_value(sb, p, n, c, one);
    }
    map_free(&first);
    map_free(&decided);
}

void values_report(const Plan *p, int *lines, int *applied)
{
    const Values *v = p->values;
    for (int i = 0; i < v->ngiven; i++) {
        (*lines)++;
        *applied += v->used[i];
        if (!v->used[i] && p->verbose)
            sched_note(p, v->given[i].line,
                       "the model has no such value any more: left to the compiler");
    }
}
