/* tc.c - matrix units: the table of units.def, and what can be asked about their operands. */
#include <string.h>

#include "kernel.h"
#include "tc.h"

const Tc tc_units[TC_COUNT] = {
#define UNIT(id, name, feature, m, n, k, group, a, b, acc, tiles, lanes, products, run, spelling) \
    [TC_##id] = {name,      feature,     m,     n,     k,        group, INGOT_##a,                \
                 INGOT_##b, INGOT_##acc, tiles, lanes, products, run,   spelling},
#include "units.def"
};

static bool is_listed(const Tc *u)
{
    return u >= tc_units && u < tc_units + TC_COUNT;
}

const Tc *tc_next(const Machine *m, const Tc *u)
{
    if (!u || is_listed(u)) {
        for (int i = u ? (int)(u - tc_units) + 1 : 0; i < TC_COUNT; i++)
            if (m->units >> i & 1)
                return &tc_units[i];
        u = m->own_units;
    } else {
        u++;
    }
    return u && u->name ? u : NULL;
}

bool tc_has(const Machine *m, const Tc *u)
{
    for (const Tc *x = NULL; (x = tc_next(m, x));)
        if (x == u)
            return true;
    return false;
}

bool tc_has_f8(const Machine *m)
{
    bool has = false;
    for (const Tc *u = NULL; (u = tc_next(m, u));)
        has |= tc_reads(INGOT_F8E4M3FN, u->a);
    return has;
}

double tc_bf16_products(const Machine *m)
{
    for (const Tc *u = NULL; (u = tc_next(m, u));)
        if (u->a == INGOT_BF16 && u->b == INGOT_BF16)
            return m->rate[UNIT_MATRIX] / m->rate[UNIT_TILE];
    return m->dot_bf16 > 1 ? m->dot_bf16 : 1;
}

/* name (a; b; c), where c may be several names */
bool tc_read(const Tc *own, const char *text, TcText *out)
{
    const Machine any = {.units = UINT64_MAX, .own_units = own};
    size_t n = strcspn(text, " (");
    *out = (TcText){0};
    for (const Tc *u = NULL; (u = tc_next(&any, u));)
        if (strlen(u->name) == n && !memcmp(u->name, text, n))
            out->unit = u;
    const char *at = text + n + strspn(text + n, " ");
    for (int i = 0; i < TC_NAMES && (i < TC_AXES || *at != ')'); i++) {
        if (i < TC_AXES && *at++ != (i ? ';' : '('))
            return false;
        at += strspn(at, " ");
        out->axis[i] = at;
        out->length[i] = (int)strcspn(at, " ;()");
        at += out->length[i];
        at += strspn(at, " ");
        if (!out->length[i])
            return false;
        out->n = i + 1;
    }
    return at[0] == ')' && !at[1];
}

int tc_terms(Node *body, Node **term, int most)
{
    if (body->op == OP_ADD) {
        int n = tc_terms(body->src[0], term, most);
        int more = n ? tc_terms(body->src[1], term + n, most - n) : 0;
        return more ? n + more : 0;
    }
    if (body->op != OP_MUL || most < 1)
        return 0;
    *term = body;
    return 1;
}

bool tc_reads(ingot_dtype load, ingot_dtype wanted)
{
    return load == wanted || (wanted == INGOT_I8 && load == INGOT_U8) ||
           (wanted == INGOT_F8E4M3FN && load == INGOT_F8E5M2);
}

bool tc_widens(const Machine *m, const Node *wide)
{
    if (machine_dots(m, 2, true) && wide->op == OP_CAST && wide->dtype == INGOT_F32 &&
        wide->src[0]->dtype == INGOT_BF16)
        return true;
    for (const Tc *u = NULL; wide->op == OP_CAST && (u = tc_next(m, u));)
        if (dtype_is_float(u->a) && wide->dtype == u->acc &&
            tc_reads((ingot_dtype)wide->src[0]->dtype, u->a))
            return true;
    return false;
}

/* Of a f32 the bits that a unit takes which rounds toward zero, as BITCAST(x) & 0xffffe000. */
static Node *cut_f32(const Tc *u, Node *n)
{
    bool cut = u->lanes && u->a == INGOT_F32 && n->op == OP_BITCAST && n->dtype == INGOT_F32 &&
               n->src[0]->op == OP_AND && n->src[0]->src[0]->op == OP_BITCAST &&
               n->src[0]->src[1]->op == OP_CONST &&
               (uint32_t)n->src[0]->src[1]->arg.i == 0xffffe000u;
    return cut ? n->src[0]->src[0]->src[0] : NULL;
}

static bool is_byte_of(ingot_dtype d, int64_t x)
{
    return d == INGOT_I8 ? x >= -128 && x <= 127 : d == INGOT_U8 && x >= 0 && x <= 255;
}

/* A row that lanes have in registers, rounded to what the unit multiplies. */
static bool is_rounded_row(const Tc *u, const Node *n)
{
    return u->lanes && n->op == OP_CAST && n->dtype == u->a && n->src[0]->op == OP_STAGE &&
           n->src[0]->dtype != u->a;
}

/* The load, or, of what lanes have in registers, the row that it is made of (then what they have:
 * PACK).  What fills a place that lanes read asks the gate; what is a number behind the same one,
 * which is zero or a byte, needs no other. */
static Node *load_below(const Tc *u, Node *n, bool *filled)
{
    Node *gate = NULL, *below = n;
    int64_t fill = 0;
    while (below) {
        n = below;
        bool number = u->lanes && !gate && n->op == OP_WHERE && n->src[2]->op == OP_CONST &&
                      (dtype_is_int(n->dtype) || node_float(n->src[2]) == 0);
        gate = number ? n->src[0] : gate;
        fill = number && dtype_is_int(n->dtype) ? n->src[2]->arg.i : fill;
        if (is_rounded_row(u, n))
            break;
        below = number ? n->src[1] : n->op == OP_CAST ? n->src[0] : cut_f32(u, n);
    }
    *filled = fill != 0;
    if (fill && (tc_in_place(u) || !is_byte_of((ingot_dtype)n->dtype, fill)))
        return NULL;
    if ((n->op == OP_STAGE || n->op == OP_PACK || is_rounded_row(u, n)) && u->lanes)
        return n;
    if (n->op != OP_LOAD || (gate && gate != n->src[1]))
        return NULL;
    return u->lanes || node_is_const_i(n->src[1], 1) ? n : NULL;
}

/* What readers of n, which casts of a load are too, have behind its gate. */
static bool filled(const Kernel *k, const Node *load, const Node *n, int64_t *fill, bool *known)
{
    int count;
    Node *const *order = kernel_nodes(k, &count);
    for (int i = 0; i < count; i++) {
        const Node *t = order[i];
        bool reads = false;
        for (uint32_t j = 0; j < t->nsrc; j++)
            reads |= t->src[j] == n;
        if (!reads)
            continue;
        if (t->op == OP_CAST) {
            if (!filled(k, load, t, fill, known))
                return false;
            continue;
        }
        const bool number = t->op == OP_WHERE && t->src[0] == load->src[1] && t->src[1] == n &&
                            t->src[2]->op == OP_CONST && dtype_is_int(t->dtype);
        const int64_t wanted = number ? t->src[2]->arg.i : 0;
        if (*known && *fill != wanted)
            return false;
        *fill = wanted;
        *known = true;
    }
    return true;
}

bool tc_fill(const Kernel *k, Node *load, int64_t *fill)
{
    bool known = false;
    *fill = 0;
    return node_is_const_i(load->src[1], 1) || filled(k, load, load, fill, &known);
}

Node *tc_bare(Context *c, Node *n)
{
    if (n->op == OP_WHERE)
        return tc_bare(c, n->src[1]);
    if (n->op != OP_ADD && n->op != OP_MUL && n->op != OP_CAST && n->op != OP_BITCAST &&
        n->op != OP_AND)
        return n;
    Node *src[2] = {tc_bare(c, n->src[0]), n->nsrc > 1 ? tc_bare(c, n->src[1]) : NULL};
    return node_with(c, n, src);
}

bool tc_turned(Node *term, Node *const *range)
{
    return depends_on(term->src[1], range[TC_ROWS]);
}

/* Of what lanes have packed the ranges stand behind it: it is made of other fragments, which moved
 * with the same. */
static bool moves(Node *x, Node *range)
{
    bool found = false;
    for (uint32_t i = 0; x->op == OP_PACK && i < x->nsrc; i++)
        found |= x->src[i] == range;
    return x->op == OP_PACK ? found : depends_on(x, range);
}

bool tc_operands(const Tc *u, Node *term, Node *const *range, Node **a, Node **b)
{
    bool filled[2]; /* beyond the last term one of them is zero */
    Node *x = load_below(u, term->src[0], &filled[0]), *y = load_below(u, term->src[1], &filled[1]);
    if (!x || !y || (filled[0] && filled[1]) || term->dtype != u->acc)
        return false;
    bool turned = tc_turned(term, range);
    *a = turned ? y : x;
    *b = turned ? x : y;
    return tc_reads((*a)->dtype, u->a) && tc_reads((*b)->dtype, u->b) &&
           moves(*a, range[TC_ROWS]) && !moves(*a, range[TC_COLUMNS]) &&
           moves(*b, range[TC_COLUMNS]) && !moves(*b, range[TC_ROWS]) &&
           moves(*a, range[TC_TERMS]) && moves(*b, range[TC_TERMS]);
}

bool tc_takes(const Tc *u, Node *r, Node *const *range)
{
    Node *term[TC_MOST_TERMS], *a, *b;
    bool over = false;
    if (r->op != OP_REDUCE || reduce_monoid(r) != INGOT_REDUCE_ADD || r->dtype != u->acc)
        return false;
    for (uint32_t i = reduce_ranges(r); i < r->nsrc; i++)
        over |= r->src[i] == range[TC_TERMS];
    int n = over ? tc_terms(r->src[0], term, TC_MOST_TERMS) : 0;
    for (int i = 0; i < n; i++)
        if (!tc_operands(u, term[i], range, &a, &b))
            return false;
    return n > 0;
}

bool tc_fragment(Context *c, const Tc *u, Node *const *range, Node *load, Node **first,
                 int64_t *pitch)
{
    Node *at = load->src[first_coord(load)], *zero = idx(c, 0);
    bool a = depends_on(at, range[TC_ROWS]);
    *first = substitute(c, at, 3, range, (Node *[]){zero, zero, zero});
    int64_t step, along;
    *pitch = 0;
    if (a)
        return range_stride(c, at, range[TC_ROWS], pitch) &&
               range_stride(c, at, range[TC_TERMS], &step) && step == 1;
    int64_t terms = range[TC_TERMS]->hi + 1;
    Node *line = range_new(c, RANGE_ADDED, idx(c, terms / u->group));
    Node *inside = range_new(c, RANGE_ADDED + 1, idx(c, u->group));
    Node *both = idx_add(c, idx_mul(c, line, idx(c, u->group)), inside);
    at = substitute(c, at, 1, &range[TC_TERMS], &both);
    return (u->group == 1 || (range_stride(c, at, inside, &step) && step == 1)) &&
           range_stride(c, at, range[TC_COLUMNS], &along) && along == u->group &&
           (line->op != OP_RANGE || range_stride(c, at, line, pitch));
}

/* ---- fragments in the registers of lanes ----------------------------------------------------- */

/* Elements that a register of 32 bits has. */
static int packed(const Tc *u, int operand)
{
    return operand == TC_TERMS ? 1 : 4 / dtype_info[operand == TC_ROWS ? u->a : u->b].bytes;
}

/* Lane 4 g + t has of a rows g and g + 8, of b column g, and of both the terms of register t, and
 * of the next four registers; of sums rows g and g + 8, columns 2 t and 2 t + 1, and of the next
 * eight columns.  A warpgroup's warps have 16 rows each.  (PTX ISA, mma.m16n8k16, mma.m16n8k8,
 * mma.m16n8k32 and wgmma.m64nNk16) */
TcElement tc_element(const Tc *u, int operand, int lane, int element)
{
    const int g = lane % 32 / 4, t = lane % 4, w = packed(u, operand), in = element % w;
    const int r = element / w;
    switch (operand) {
    case TC_ROWS: return (TcElement){g + 8 * (r % 2), t * w + in + 4 * w * (r / 2)};
    case TC_COLUMNS: return (TcElement){g, t * w + in + 4 * w * r};
    default:
        return (TcElement){16 * (lane / 32) + g + 8 * (element / 2 % 2),
                           8 * (element / 4) + 2 * t + element % 2};
    }
}

int64_t tc_share(int64_t sums, int64_t groups)
{
    const int64_t least = ceil_div(sums, groups), whole = least > 2 ? 4 : 2;
    return ceil_div(least, whole) * whole;
}

int tc_per_lane(const Tc *u, int operand)
{
    const int lines = operand == TC_COLUMNS ? u->n : u->m,
              along = operand == TC_TERMS ? u->n : u->k;
    return lines * along / u->lanes;
}

void tc_sum_element(Context *c, const Tc *u, Node *lane, int element, Node **row, Node **column)
{
    const TcElement first = tc_element(u, TC_TERMS, 0, element);
    *row = idx_div(c, idx_mod(c, lane, idx(c, 32)), idx(c, 4));
    *row = idx_add(c, *row, idx_mul(c, idx_div(c, lane, idx(c, 32)), idx(c, 16)));
    *row = idx_add(c, *row, idx(c, first.line));
    *column = idx_add(c, idx_mul(c, idx_mod(c, lane, idx(c, 4)), idx(c, 2)), idx(c, first.at));
}

int tc_row_step(const Tc *u)
{
    return packed(u, TC_ROWS) > 1 ? 1 : u->n / 2;
}

Node *tc_row_column(Context *c, const Tc *u, Node *column)
{
    if (tc_row_step(u) == 1)
        return column;
    Node *two = idx(c, 2), *half = idx_mul(c, idx_mod(c, column, two), idx(c, tc_row_step(u)));
    return idx_add(c, idx_div(c, column, two), half);
}

/* Where an element lies, counted from the first: of three ranges two say which. */
static bool element_at(Context *c, Node *at, Node *first, int n, Node *const *range,
                       const int64_t *is, int64_t *out)
{
    Node *to[TC_AXES];
    for (int i = 0; i < n; i++)
        to[i] = idx(c, is[i]);
    return idx_value(idx_sub(c, substitute(c, at, n, range, to), first), out);
}

/* Do the columns lie as the lines of both halves in turn?  How far lines lie apart. */
static bool lines_of_halves(Context *c, Node *at, const LaneFragment *f, Node *const *own,
                            int64_t *line)
{
    const int64_t n = own[0]->hi + 1;
    int64_t is;
    bool good = n > 2 && element_at(c, at, f->first, 2, own, (int64_t[]){2, 0}, line);
    for (int64_t i = 1; i < n && good; i++)
        good = element_at(c, at, f->first, 2, own, (int64_t[]){i, 0}, &is) &&
               is == (i / 2 + i % 2 * (n / 2)) * *line;
    return good;
}

bool tc_lane_fragment(Context *c, Node *const *range, Node *load, LaneFragment *f)
{
    Node *at = load->src[first_coord(load)], *zero = idx(c, 0);
    int64_t line, term;
    f->rows = depends_on(at, range[TC_ROWS]);
    f->first = substitute(c, at, TC_AXES, range, (Node *[]){zero, zero, zero});
    Node *own[] = {range[f->rows ? TC_ROWS : TC_COLUMNS], range[TC_TERMS]};
    f->halves = !range_stride(c, at, own[0], &line);
    if (f->halves && (f->rows || !lines_of_halves(c, at, f, own, &line)))
        return false;
    if (!range_stride(c, at, own[1], &term) || (line != 1 && term != 1) || line == term)
        return false;
    f->by_line = term == 1;
    f->pitch = f->by_line ? line : term;
    const int64_t chunk = 16 / dtype_info[load->dtype].bytes;
    return f->by_line >= f->halves && (f->by_line || chunk < 16) && f->pitch % chunk == 0 &&
           idx_is(idx_mod(c, f->first, idx(c, chunk)), 0);
}

/* Runs of 128 bytes, or 64, in whose chunks a unit finds what the copies have swizzled: a fragment
 * begins at one of them, with its lines at one of eight runs. */
bool tc_place_fragment(Context *c, const Tc *u, Node *const *range, Node *load, LaneFragment *f)
{
    Node *at = load->src[first_coord(load)], *zero = idx(c, 0);
    f->rows = depends_on(at, range[TC_ROWS]);
    Node *own[] = {range[f->rows ? TC_ROWS : TC_COLUMNS], range[TC_TERMS]};
    const int64_t lines = own[0]->hi + 1, terms = own[1]->hi + 1, run = tc_run(u);
    int64_t line, term, last;
    f->first = substitute(c, at, TC_AXES, range, (Node *[]){zero, zero, zero});
    if (!element_at(c, at, f->first, 2, own, (int64_t[]){1, 0}, &line) ||
        !element_at(c, at, f->first, 2, own, (int64_t[]){0, 1}, &term) ||
        !element_at(c, at, f->first, 2, own, (int64_t[]){lines - 1, terms - 1}, &last))
        return false;
    f->by_line = term == 1;
    f->pitch = run;
    f->apart = 0;
    const bool turns = dtype_info[u->a].bytes == 2 && u->run == TC_RUN; /* terms of lines */
    if ((f->by_line ? line : term) != run || (f->by_line ? term : line) != 1 ||
        (!f->by_line && !turns))
        return false;
    if (!f->by_line && lines > run &&
        !element_at(c, at, f->first, 2, own, (int64_t[]){run, 0}, &f->apart))
        return false;
    Node *eight = idx_mod(c, f->first, idx(c, 8 * run));
    Node *in_run = f->by_line ? idx_mod(c, eight, idx(c, TC_PIECE / dtype_info[u->a].bytes))
                              : idx_mod(c, eight, idx(c, run));
    return last == tc_place_element(f, lines - 1, terms - 1) && idx_is(in_run, 0) &&
           idx_is(idx_div(c, eight, idx(c, run)), 0);
}

bool tc_is_of_products(const Kernel *k)
{
    Node *term[TC_MOST_TERMS];
    const View v = kernel_view(k);
    bool good = v.nreduce > 0;
    for (int i = 0; i < v.nreduce; i++)
        good &= v.reduce[i]->arg.i == INGOT_REDUCE_ADD &&
                tc_terms(v.reduce[i]->src[0], term, TC_MOST_TERMS) > 0;
    return good;
}
