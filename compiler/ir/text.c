/* text.c - IR text: one node a line, sources first, numbered in the order of the walk.
 *
 *     %1 = var index @0 "batch" 1..32
 *     %2 = input f32 [%1,3] @0
 *     %3 = const f32 0x1p+1
 *     %4 = expand f32 [%1,3] %3
 *     %5 = mul f32 [%1,3] %2 %4
 *     %6 = reduce f32 [%1,1] add{1} %5
 *     return %6
 *
 * A shape follows the dtype unless the rank is 0; then what the op's arg holds, then the sources.
 * INDEX and BOOL constants stand where they are used; dims that only repeat the shape are left out
 * (text.h).  Regions of LOOP and IF are indented blocks.  text_parse() gives back the same
 * nodes. */
#include <inttypes.h>
#include <math.h>

#include "text.h"

const char *const text_monoid[MONOID_COUNT] = {
#define MONOID(id, text, combine) text,
#define STATE(id, text, size) text,
#include "monoids.def"
};
const char *const text_update[5] = {"set", "add", "mul", "max", "min"};
const char *const text_var_kind[3] = {"dim", "count", "loop"};

uint64_t text_data_hash(const Data *d)
{
    return d->hash || !d->bytes ? d->hash : hash_bytes(0, d->bytes, d->nbytes);
}

typedef struct {
    StrBuf *sb;
    const Context *c; /* for names; may be NULL */
    Arena *scratch;
    Map number; /* node id + 1 -> number */
    int n;
} TextPrinter;

/* ---- what must be printed before a node ---------------------------------------------------- */

/* The i-th of the nodes that the line of n refers to; NULL past the last. */
static Node *dependency(Node *n, uint32_t i)
{
    if (i < n->rank)
        return n->shape[i];
    i -= n->rank;
    if (i < n->nsrc)
        return n->src[i];
    i -= n->nsrc;
    if (n->op == OP_LOOP) {
        const Loop *loop = n->arg.ptr;
        Node *extra[] = {loop->trip, loop->iterations, loop->counter};
        for (int k = 0; k < 3; k++)
            if (extra[k] && i-- == 0)
                return extra[k];
    }
    if (n->op == OP_CALL) {
        const Call *call = n->arg.ptr;
        for (int k = 0; k < call->n_out; k++) {
            if (i < (uint32_t)call->out[k].rank)
                return call->out[k].dims[i];
            i -= (uint32_t)call->out[k].rank;
        }
        if (i < (uint32_t)call->n_count)
            return call->counts[i];
    }
    return NULL;
}

static bool printed(const TextPrinter *p, Node *n)
{
    return text_inline(n) || map_get(&p->number, (uint64_t)n->id + 1);
}

/* ---- one line -------------------------------------------------------------------------------- */

static void put_ref(TextPrinter *p, Node *n)
{
    if (!n)
        sb_puts(p->sb, "none");
    else if (n->dtype == INGOT_INDEX && text_inline(n))
        sb_printf(p->sb, "%" PRId64, n->arg.i);
    else if (text_inline(n))
        sb_puts(p->sb, n->arg.i ? "true" : "false");
    else
        sb_printf(p->sb, "%%%d", (int)(intptr_t)map_get(&p->number, (uint64_t)n->id + 1));
}

static void put_refs(TextPrinter *p, int n, Node *const *nodes)
{
    for (int i = 0; i < n; i++) {
        sb_puts(p->sb, " ");
        put_ref(p, nodes[i]);
    }
}

static void put_list(TextPrinter *p, char open, int n, Node *const *nodes, char close)
{
    sb_printf(p->sb, "%c", open);
    for (int i = 0; i < n; i++) {
        if (i)
            sb_puts(p->sb, ",");
        put_ref(p, nodes[i]);
    }
    sb_printf(p->sb, "%c", close);
}

static void put_string(TextPrinter *p, const char *s)
{
    sb_puts(p->sb, " \"");
    while (*s) {
        const int n = utf8_bytes(s) ? utf8_bytes(s) : 1;
        if (n == 1 && (*s == '"' || *s == '\\' || *s < ' ' || *s > '~'))
            sb_printf(p->sb, "\\x%02x", (unsigned)(unsigned char)*s);
        else
            sb_write(p->sb, s, (size_t)n);
        s += n;
    }
    sb_puts(p->sb, "\"");
}

static void put_double(TextPrinter *p, uint64_t bits)
{
    union {
        uint64_t bits;
        double value;
    } u = {bits};
    if (isfinite(u.value))
        sb_printf(p->sb, "%a", u.value);
    else
        sb_printf(p->sb, "bits:0x%016" PRIx64, bits);
}

static void put_const(TextPrinter *p, Node *n)
{
    sb_puts(p->sb, " ");
    if (dtype_is_float(n->dtype))
        put_double(p, n->arg.bits);
    else if (dtype_is_int(n->dtype) || n->dtype == INGOT_INDEX || n->dtype == INGOT_BOOL)
        sb_printf(p->sb, "%" PRId64, n->arg.i);
    else
        sb_printf(p->sb, "bits:0x%016" PRIx64, n->arg.bits);
}

static void put_var(TextPrinter *p, Node *n)
{
    sb_printf(p->sb, " @%" PRId64, n->arg.i);
    const Var *v = p->c && n->arg.i >= 0 && n->arg.i < p->c->nvar ? &p->c->vars[n->arg.i] : NULL;
    if (v)
        put_string(p, v->name);
    sb_printf(p->sb, " %" PRId64 "..%" PRId64, n->lo, n->hi);
    if (v && v->kind != VAR_DIM)
        sb_printf(p->sb, " %s", text_var_kind[v->kind]);
}

static void put_data(TextPrinter *p, const Data *d)
{
    if (d->name)
        put_string(p, d->name);
    sb_printf(p->sb, " bytes=%zu hash=0x%016" PRIx64, d->nbytes, text_data_hash(d));
    if (d->nbytes <= TEXT_DATA_BYTES && d->bytes) {
        sb_puts(p->sb, " hex=");
        for (size_t i = 0; i < d->nbytes; i++)
            sb_printf(p->sb, "%02x", (unsigned)d->bytes[i]);
    }
}

static void put_attributes(TextPrinter *p, int nint, const int64_t *ints, int nfloat,
                           const double *floats)
{
    sb_puts(p->sb, " ints(");
    for (int i = 0; i < nint; i++)
        sb_printf(p->sb, i ? ",%" PRId64 : "%" PRId64, ints[i]);
    sb_puts(p->sb, ") floats(");
    for (int i = 0; i < nfloat; i++) {
        union {
            double value;
            uint64_t bits;
        } u = {floats[i]};
        if (i)
            sb_puts(p->sb, ",");
        put_double(p, u.bits);
    }
    sb_puts(p->sb, ")");
}

static void put_call(TextPrinter *p, const Call *call)
{
    put_string(p, call->name);
    put_attributes(p, call->n_int, call->ints, call->n_float, call->floats);
    sb_puts(p->sb, " outs(");
    for (int i = 0; i < call->n_out; i++) {
        sb_printf(p->sb, i ? ", %s " : "%s ", dtype_info[call->out[i].dtype].name);
        put_list(p, '[', call->out[i].rank, call->out[i].dims, ']');
    }
    sb_puts(p->sb, ") counts");
    put_list(p, '(', call->n_count, call->counts, ')');
    sb_printf(p->sb, " scratch=%zu", call->scratch_bytes);
    if (call->n_kept)
        sb_printf(p->sb, " kept=%d", call->n_kept);
}

static void put_axes(TextPrinter *p, int64_t mask)
{
    const char *comma = "";
    sb_puts(p->sb, "{");
    for (int i = 0; i < INGOT_MAX_RANK; i++)
        if (mask >> i & 1) {
            sb_printf(p->sb, "%s%d", comma, i);
            comma = ",";
        }
    sb_puts(p->sb, "}");
}

/* " reduce_scatter add {0} @1", " all_reduce add processes" */
static void put_collective(TextPrinter *p, Node *n)
{
    const Collective x = collective_of(n);
    sb_printf(p->sb, " %s", collective_text[x.kind]);
    if (x.kind == ALL_REDUCE || x.kind == REDUCE_SCATTER)
        sb_printf(p->sb, " %s", text_monoid[x.monoid]);
    if (x.kind == ALL_GATHER || x.kind == REDUCE_SCATTER)
        sb_printf(p->sb, " {%d}", x.axis);
    if (x.processes)
        sb_puts(p->sb, " processes");
    else
        sb_printf(p->sb, " @%d", x.receiver);
}

static void put_arg(TextPrinter *p, Node *n)
{
    switch (n->op) {
    case OP_CONST: put_const(p, n); return;
    case OP_VAR: put_var(p, n); return;
    case OP_DATA: put_data(p, n->arg.ptr); return;
    case OP_CALL: put_call(p, n->arg.ptr); return;
    case OP_CUSTOM: {
        const CustomUse *use = n->arg.ptr;
        put_string(p, use->op->name);
        put_attributes(p, use->op->nint, use->ints, use->op->nfloat, use->floats);
        return;
    }
    case OP_CAST:
        if (n->arg.i)
            sb_puts(p->sb, n->arg.i == CAST_WITHIN  ? " within"
                           : n->arg.i == CAST_LEAST ? " least"
                                                    : " wrap");
        return;
    case OP_QUANTIZE:
        sb_printf(p->sb, " %d..%d", quantize_least(n->arg.i), quantize_most(n->arg.i));
        return;
    case OP_DIGIT: sb_printf(p->sb, " %d %d", digit_mask(n->arg.i), digit_less(n->arg.i)); return;
    case OP_REDUCE:
    case OP_SCAN:
        sb_printf(p->sb, " %s", text_monoid[reduce_monoid(n)]);
        if (reduce_size(n) > 1)
            sb_printf(p->sb, ".%d", reduce_part(n));
        put_axes(p, reduce_axes(n));
        return;
    case OP_UPDATE: sb_printf(p->sb, " %s", text_update[n->arg.i]); return;
    case OP_PERMUTE: {
        const Perm *perm = n->arg.ptr;
        for (int i = 0; i < perm->n; i++)
            sb_printf(p->sb, i ? ",%d" : " (%d", perm->axis[i]);
        sb_puts(p->sb, perm->n ? ")" : " ()");
        return;
    }
    case OP_LOOP: {
        const Loop *loop = n->arg.ptr;
        sb_puts(p->sb, " trip=");
        put_ref(p, loop->trip);
        sb_puts(p->sb, " iterations=");
        put_ref(p, loop->iterations);
        sb_puts(p->sb, " counter=");
        put_ref(p, loop->counter);
        sb_printf(p->sb, " carried=%d scan=%d cond=%d", loop->ncarried, loop->nscan,
                  loop->has_cond);
        return;
    }
    case OP_IF: sb_printf(p->sb, " results=%d", ((const If *)n->arg.ptr)->n); return;
    case OP_COLLECTIVE: put_collective(p, n); return;
    default:
        if (op_info[n->op].arg == ARG_INT)
            sb_printf(p->sb, " @%" PRId64, n->arg.i);
        return;
    }
}

static bool repeats_shape(Node *n, int before)
{
    if (before < 0 || n->nsrc != (uint32_t)(before + n->rank))
        return false;
    for (int i = 0; i < n->rank; i++)
        if (n->src[before + i] != n->shape[i])
            return false;
    return true;
}

static void put_node(TextPrinter *p, Node *n, int indent);

/* ---- the walk -------------------------------------------------------------------------------- */

/* Prints root and all that its line needs. */
static void put_tree(TextPrinter *p, Node *root, int indent)
{
    typedef struct {
        Node *node;
        uint32_t next;
    } PrintFrame;
    if (printed(p, root))
        return;
    PrintFrame *stack = NULL;
    int depth = 0;
    vec_push(p->scratch, stack, depth, ((PrintFrame){root, 0}));
    while (depth) {
        PrintFrame *f = &stack[depth - 1];
        Node *d = dependency(f->node, f->next);
        if (d) {
            f->next++;
            if (!printed(p, d))
                vec_push(p->scratch, stack, depth, ((PrintFrame){d, 0}));
            continue;
        }
        Node *n = f->node;
        depth--;
        if (!printed(p, n))
            put_node(p, n, indent);
    }
}

static void put_region(TextPrinter *p, const struct Region *r, int indent)
{
    sb_puts(p->sb, " {\n");
    for (int i = 0; i < r->nparam; i++)
        put_tree(p, r->param[i], indent + 2);
    for (int i = 0; i < r->nresult; i++)
        put_tree(p, r->result[i], indent + 2);
    sb_printf(p->sb, "%*sparams", indent + 2, "");
    put_refs(p, r->nparam, r->param);
    sb_printf(p->sb, "\n%*scaptures", indent + 2, "");
    put_refs(p, r->ncapture, r->capture);
    sb_printf(p->sb, "\n%*sresults", indent + 2, "");
    put_refs(p, r->nresult, r->result);
    sb_printf(p->sb, "\n%*s}", indent, "");
}

static void put_node(TextPrinter *p, Node *n, int indent)
{
    int number = ++p->n, before = text_before_dims(n->op);
    map_put(&p->number, (uint64_t)n->id + 1, (void *)(intptr_t)number);
    sb_printf(p->sb, "%*s%%%d = %s %s", indent, "", number, op_info[n->op].text,
              dtype_info[n->dtype].name);
    if (n->rank) {
        sb_puts(p->sb, " ");
        put_list(p, '[', n->rank, n->shape, ']');
    }
    put_arg(p, n);
    put_refs(p, repeats_shape(n, before) ? before : (int)n->nsrc, n->src);
    if (n->op == OP_LOOP)
        put_region(p, ((const Loop *)n->arg.ptr)->body, indent);
    if (n->op == OP_IF) {
        const If *branch = n->arg.ptr;
        put_region(p, branch->then_branch, indent);
        sb_puts(p->sb, " else");
        put_region(p, branch->else_branch, indent);
    }
    sb_puts(p->sb, "\n");
}

void text_print_names(StrBuf *sb, const Context *c, int nroot, Node *const *roots)
{
    TextPrinter p = {.sb = sb, .c = c, .scratch = arena_new()};
    for (int i = 0; i < nroot; i++)
        put_tree(&p, roots[i], 0);
    sb_puts(sb, "return");
    put_refs(&p, nroot, roots);
    sb_puts(sb, "\n");
    map_free(&p.number);
    arena_free(p.scratch);
}

void text_print(StrBuf *sb, int nroot, Node *const *roots)
{
    text_print_names(sb, NULL, nroot, roots);
}
