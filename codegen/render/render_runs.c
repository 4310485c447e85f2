/* render_runs.c - 16 bytes that an item reads or writes side by side are one access.
 *
 * Copies of an item along what lies side by side (UPCAST) read and write neighbours:
 *
 *     s0 = igrt_muladd_f32((v7 ? a1[v9] : 0), v5, s0);          const igrt_eight v10 =
 *     s1 = igrt_muladd_f32((v7 ? a1[v9 + 1] : 0), v6, s1); ->       igrt_eight_of(a1 + (v7 ? v9 :
 * 0), v7);
 *     ..                                                        s0 = igrt_muladd_f32(.. v10.v[0]
 * .., v5, s0);
 *
 * A compiler joins no loads that it cannot prove to be aligned, and none behind conditions.  What a
 * run reads behind a gate it reads from the buffer's beginning where the gate is false, and takes
 * zeros for: there is no branch then, so loads of several runs are under way together, and one that
 * an unrolled loop comes back to is the same load.
 *
 * Runs of what nobody writes are loaded before the first statement that needs one of their
 * elements. Stores that follow each other, with nothing but names between them, become runs if all
 * of them do. */
#include <string.h>

#include "language_c.h"
#include "render.h"

enum { RUN = 16, EIGHT = 8, MOST_STORES = 128 };

/* Where an access lies: `at` elements behind what is a multiple of 16 bytes; NULL: that is not
 * known. */
static Node *run_base(Render *r, Node *at, int elements, int64_t *behind)
{
    Context *c = r->k->c;
    Node *base = at;
    int64_t offset = 0, rest;
    if (at->op == OP_ADD && idx_value(at->src[1], &offset))
        base = at->src[0];
    else if (idx_value(at, &offset))
        base = idx(c, 0);
    if (!idx_value(idx_mod(c, base, idx(c, elements)), &rest))
        return NULL;
    *behind = offset + rest;
    return base;
}

static bool is_f8(const Node *n)
{
    return n->dtype == INGOT_F8E4M3FN || n->dtype == INGOT_F8E5M2;
}

/* How many elements of its type a run has; 0: it has none. Of f8 what is made of a run of 2 bytes
 * is stored at once. */
static int elements_of(const Node *n)
{
    if (n->op == OP_STORE && is_f8(n))
        return EIGHT;
    const bool has = n->dtype == INGOT_F16 || n->dtype == INGOT_BF16 || n->dtype == INGOT_F32;
    return has ? RUN / dtype_info[n->dtype].bytes : 0;
}

/* The run that an access is of; a new one if there is none. */
static Run *run_for(Render *r, Run **runs, int *n, Node *access, int first)
{
    const int elements = elements_of(access);
    int64_t behind;
    Node *base = elements ? run_base(r, access->src[first], elements, &behind) : NULL;
    if (!base)
        return NULL;
    const int64_t part = ((behind % elements) + elements) % elements, block = behind - part;
    for (int i = *n; i-- > 0;) {
        Run *run = &(*runs)[i];
        if (run->base == base && run->block == block && run->buffer == access->src[0] &&
            run->gate == access->src[1] && !run->access[part]) {
            run->access[part] = access;
            run->n++;
            return run;
        }
    }
    Run run = {.base = base, .block = block, .buffer = access->src[0], .gate = access->src[1]};
    run.elements = elements;
    run.access[part] = access;
    run.n = 1;
    vec_push(r->arena, *runs, *n, run);
    return &(*runs)[*n - 1];
}

/* ---- loads ---------------------------------------------------------------------------------- */

/* Does the item that loads it, and no other, write it after that? Then all of a run may be loaded
 * before any of it is written. */
static bool is_in_place(const Render *r, const Node *n)
{
    bool found = false;
    for (int i = 0; i < r->l.n && !found; i++) {
        const Stmt *s = &r->l.stmt[i];
        const Node *store = s->kind == STMT_STORE && s->store == STORE_ONE ? s->node : NULL;
        found = store && store->nsrc == 4 && store->src[0] == n->src[0] &&
                store->src[3] == n->src[2] && store->src[1] == n->src[1];
    }
    return found && !r->l.tile->tc;
}

static bool is_run_load(const Render *r, const Node *n)
{
    const int64_t arg = n->src[0]->op == OP_BUFFER ? n->src[0]->arg.i : r->narg;
    if (!r->lang->runs && !kernel_takes_image(r->of, arg))
        return false;
    return n->nsrc == 3 && arg < r->narg && (!r->k->args[arg].written || is_in_place(r, n)) &&
           !n->arg.i && !r->l.vector[n->id] && !r->l.fragment[n->id] && !copy_base(r->l.tile, n);
}

/* Finds all loads of a value. */
static void find_loads(Render *r, Node *n, bool *seen)
{
    if (n->id >= r->l.nknown || seen[n->id])
        return;
    seen[n->id] = true;
    for (uint32_t i = 0; i < n->nsrc; i++)
        find_loads(r, n->src[i], seen);
    if (n->op == OP_LOAD && is_run_load(r, n))
        (void)run_for(r, &r->run, &r->nrun, n, 2);
}

/* The value that a statement names, adds or stores. */
static Node *value_of(const Stmt *s)
{
    switch (s->kind) {
    case STMT_LET:
    case STMT_STORE: return s->node;
    case STMT_UPDATE: return update_value(s);
    default: return NULL;
    }
}

bool render_has_images(const Render *r)
{
    for (int i = 0; i < r->of->nopt; i++)
        if (r->of->opts[i].kind == OPT_IMAGE)
            return true;
    return false;
}

void render_find_runs(Render *r)
{
    bool *seen = NEWN(r->arena, bool, r->l.nknown);
    r->run = NULL;
    r->nrun = 0;
    r->run_of = NEWN(r->arena, int, r->l.nknown);
    for (int i = 0; i < r->l.n; i++) {
        Node *n = value_of(&r->l.stmt[i]);
        if (n)
            find_loads(r, n, seen);
    }
    for (int i = 0; i < r->nrun; i++)
        for (int j = 0; r->run[i].n == r->run[i].elements && j < r->run[i].n; j++)
            r->run_of[r->run[i].access[j]->id] = i + 1;
}

/* const float4 v9 = v7 ? igrt_pixel(a1, v3) : (float4)(0.0f); */
static void load_pixel(Render *r, const Run *run)
{
    const bool given = node_is_const_i(run->gate, 1);
    r->needs |= NEED_IMAGE;
    sb_printf(r->sb, "const float4 v%d = ", r->nvalue);
    if (!given)
        render_expr(r, run->gate);
    sb_printf(r->sb, "%sigrt_pixel(a%lld, ", given ? "" : " ? ", (long long)run->buffer->arg.i);
    render_bare(r, run->access[0]->src[2]);
    put(r, given ? ");\n" : ") : (float4)(0.0f);\n");
}

/* const igrt_eight v9 = igrt_eight_of(a1 + (v7 ? v3 - 8 : 0), v7); */
static void load_run(Render *r, const Run *run, int depth)
{
    const Node *first = run->access[0];
    const bool given = node_is_const_i(run->gate, 1), wide = first->dtype == INGOT_F32;
    render_indent(r, depth);
    if (kernel_takes_image(r->of, run->buffer->arg.i)) {
        load_pixel(r, run);
        return;
    }
    r->needs |= NEED_RUN;
    if (run->held) {
        sb_printf(r->sb, "const %s v%d = igrt_held_%s(", wide ? "float4" : "igrt_eight", r->nvalue,
                  wide ? "run" : "eight");
        render_piece(r, run);
        put(r, ");\n");
        return;
    }
    sb_printf(r->sb, "const %s v%d = igrt_%s_%s(a%lld + ", wide ? "float4" : "igrt_eight",
              r->nvalue, wide ? "four" : "eight", given ? "at" : "of",
              (long long)run->buffer->arg.i);
    if (given) {
        render_expr(r, first->src[2]);
    } else {
        Parts p = parts_begin(r);
        render_expr(r, run->gate);
        parts_next(r, &p);
        render_bare(r, first->src[2]);
        parts_next(r, &p);
        put(r, "0");
        parts_end(r, &p, r->lang->choice);
        put(r, ", ");
        render_bare(r, run->gate);
    }
    put(r, ");\n");
}

static void take_run(Render *r, Run *run, int depth)
{
    load_run(r, run, depth);
    for (int i = 0; i < run->n; i++)
        r->beside[run->access[i]->id] = (Beside){r->nvalue, i};
    run->depth = depth;
    r->nvalue++;
}

static void load_runs_of(Render *r, Node *n, int depth, bool top)
{
    if (n->id >= r->l.nknown || n->dtype == INGOT_INDEX || (!top && is_named(r, n)))
        return;
    if (n->op == OP_LOAD && r->run_of[n->id] && !render_is_beside(r, n))
        take_run(r, &r->run[r->run_of[n->id] - 1], depth);
    if (n->op == OP_REDUCE || n->op == OP_PROJ)
        return;
    for (uint32_t i = 0; i < n->nsrc; i++)
        load_runs_of(r, n->src[i], depth, false);
}

void render_runs_before(Render *r, const Stmt *s)
{
    Node *n = value_of(s);
    for (int i = 0; s->kind == STMT_END && i < r->nrun; i++) {
        const Run *run = &r->run[i];
        if (run->n < run->elements || run->depth <= s->depth)
            continue;
        for (int j = 0; j < run->n; j++) /* names end with their loop */
            r->beside[run->access[j]->id].number = -1;
    }
    if (n && r->nrun)
        load_runs_of(r, n, s->depth, s->kind != STMT_UPDATE);
}

/* Does the gate hold only where the condition does? */
static bool is_within(const Node *gate, const Node *condition)
{
    if (gate == condition)
        return true;
    if (condition->op == OP_AND)
        return is_within(gate, condition->src[0]) && is_within(gate, condition->src[1]);
    return gate->op == OP_AND &&
           (is_within(gate->src[0], condition) || is_within(gate->src[1], condition));
}

bool render_is_given(Render *r, const Node *where)
{
    const Node *load = where->src[1], *zero = where->src[2];
    while (load->op == OP_CAST && dtype_is_float(load->dtype) &&
           dtype_is_float(load->src[0]->dtype) && !is_named(r, where->src[1]))
        load = load->src[0];
    return load->op == OP_LOAD && load->id < r->l.nknown && r->nrun && r->run_of[load->id] &&
           render_is_beside(r, load) && zero->op == OP_CONST && dtype_is_float(zero->dtype) &&
           !zero->arg.i && is_within(load->src[1], where->src[0]);
}

/* ---- stores --------------------------------------------------------------------------------- */

/* igrt_eight_to(a0 + v3, x0, .., x7); */
static void store_run(Render *r, const Run *run, int depth)
{
    Node *first = run->access[0];
    const bool given = node_is_const_i(run->gate, 1);
    r->needs |= NEED_RUN;
    for (int i = 0; i < run->n; i++)
        load_runs_of(r, run->access[i], depth, true);
    render_indent(r, depth);
    if (!given)
        render_then(r, run->gate, depth);
    bool rounded = !is_f8(first);
    for (int i = 0; i < run->n && rounded; i++)
        rounded &= render_rounded_here(r, run->access[i]) != NULL;
    sb_printf(r->sb, "igrt_%s_to(a%lld + ",
              first->dtype == INGOT_F32 ? "four"
              : is_f8(first)            ? "bytes"
              : rounded                 ? "pairs"
                                        : "eight",
              (long long)run->buffer->arg.i);
    render_expr(r, first->src[3]);
    for (int i = 0; i < run->n; i += rounded ? 2 : 1) {
        put(r, ", ");
        if (rounded)
            render_pair_of_16(r, run->access[i], run->access[i + 1]);
        else
            render_stored_value(r, run->access[i]);
    }
    put(r, ");\n");
    if (!given)
        render_end_then(r, depth);
}

/* Of what a row has one of, by the first of its items alone. */
static bool is_gated(const Node *store)
{
    return !node_is_const_i(store->src[1], 1);
}

static Node *only_of(const Run *run)
{
    int i = 0;
    while (!run->access[i])
        i++;
    return run->access[i];
}

static bool is_of_run(const Run *run, const Node *store)
{
    bool found = false;
    for (int i = 0; i < run->elements; i++)
        found |= run->access[i] == store;
    return found;
}

int render_runs_of_stores(Render *r, const Stmt *s, int left)
{
    Run *run = NULL;
    int nrun = 0, count = 0, nstore = 0;
    if (s->kind != STMT_STORE || s < r->stored)
        return 0;
    bool whole = true;
    for (; count < left && s[count].depth == s->depth && nstore < MOST_STORES && whole; count++) {
        Node *n = s[count].node;
        if (s[count].kind == STMT_LET)
            continue;
        if (s[count].kind != STMT_STORE)
            break;
        whole = s[count].store == STORE_ONE && n->nsrc == 4 && n->src[0]->op == OP_BUFFER &&
                n->src[0]->arg.i < r->narg && (run_for(r, &run, &nrun, n, 3) || is_gated(n));
        nstore++;
    }
    r->stored = s + count; /* others are as they are */
    while (count && s[count - 1].kind == STMT_LET)
        count--;
    bool any = false;
    for (int i = 0; i < nrun; i++) {
        any |= run[i].n == run[i].elements;
        whole &= run[i].n == run[i].elements || (run[i].n == 1 && is_gated(only_of(&run[i])));
    }
    if (!whole || !any)
        return 0;
    for (int i = 0; i < count; i++)
        if (s[i].kind == STMT_LET && !is_named(r, s[i].node)) {
            render_runs_before(r, &s[i]);
            render_statement(r, &s[i]);
        }
    for (int i = 0; i < nrun; i++)
        if (run[i].n == run[i].elements)
            store_run(r, &run[i], s->depth);
    for (int i = 0; i < count; i++) {
        bool stored = s[i].kind == STMT_LET || node_is_const_i(s[i].node->src[1], 0);
        for (int j = 0; j < nrun && !stored; j++)
            stored = run[j].n == run[j].elements && is_of_run(&run[j], s[i].node);
        if (!stored)
            render_statement(r, &s[i]);
    }
    return count;
}
