/* text_parse.c - reads IR text (text.c) back into a context.
 *
 * Nodes are made exactly as written, without simplification, so that what was printed from a
 * context comes back as the same pointers.  Args behind a pointer (permutations, data, calls,
 * regions) are looked for among the context's nodes first: a node is the same if its arg says
 * the same.  The first mistake ends the parse with "line N: what". */
#include <stdlib.h>
#include <string.h>

#include "text.h"

typedef struct {
    Context *c;
    Arena *scratch;
    const char *at;
    int line;
    Node **name; /* %number -> node */
    int nname;
    char *error;
    size_t error_bytes;
    bool failed;
} Parser;

static bool fault(Parser *p, const char *what)
{
    if (!p->failed)
        snprintf(p->error, p->error_bytes, "line %d: %s", p->line, what);
    p->failed = true;
    return false;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static void blanks(Parser *p)
{
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\r')
        p->at++;
}

/* Blank lines and comments too. */
static void next_line(Parser *p)
{
    for (;;) {
        blanks(p);
        if (*p->at == '#')
            p->at += strcspn(p->at, "\n");
        if (*p->at != '\n')
            return;
        p->at++;
        p->line++;
    }
}

static bool accept(Parser *p, const char *text)
{
    blanks(p);
    size_t n = strlen(text);
    if (strncmp(p->at, text, n) != 0)
        return false;
    p->at += n;
    return true;
}

static bool expect(Parser *p, const char *text)
{
    if (accept(p, text))
        return true;
    char what[64];
    snprintf(what, sizeof what, "expected '%s'", text);
    return fault(p, what);
}

static bool word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static size_t word(Parser *p)
{
    size_t n = 0;
    blanks(p);
    while (word_char(p->at[n]))
        n++;
    return n;
}

static bool accept_word(Parser *p, const char *text)
{
    size_t n = word(p);
    if (n != strlen(text) || strncmp(p->at, text, n) != 0)
        return false;
    p->at += n;
    return true;
}

static int one_of(Parser *p, int n, const char *const *texts)
{
    for (int i = 0; i < n; i++)
        if (accept_word(p, texts[i]))
            return i;
    return -1;
}

static int64_t integer(Parser *p)
{
    char *end;
    blanks(p);
    long long v = strtoll(p->at, &end, 10);
    if (end == p->at)
        fault(p, "expected an integer");
    p->at = end;
    return v;
}

static uint64_t hexadecimal(Parser *p)
{
    char *end;
    blanks(p);
    unsigned long long v = strtoull(p->at, &end, 16);
    if (end == p->at)
        fault(p, "expected a hexadecimal number");
    p->at = end;
    return v;
}

static uint64_t number_bits(Parser *p)
{
    union {
        double value;
        uint64_t bits;
    } u;
    char *end;
    if (accept(p, "bits:"))
        return hexadecimal(p);
    u.value = strtod(p->at, &end);
    if (end == p->at)
        fault(p, "expected a number");
    p->at = end;
    return u.bits;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* NULL if there is no string here. */
static const char *string(Parser *p)
{
    if (!accept(p, "\""))
        return NULL;
    StrBuf sb = {0};
    sb_puts(&sb, "");
    while (*p->at && *p->at != '"' && *p->at != '\n') {
        char c = *p->at++;
        if (c == '\\' && p->at[0] == 'x' && hex_digit(p->at[1]) >= 0 && hex_digit(p->at[2]) >= 0) {
            c = (char)(hex_digit(p->at[1]) * 16 + hex_digit(p->at[2]));
            p->at += 3;
        }
        sb_write(&sb, &c, 1);
    }
    const char *s = sb_take(&sb, p->c->arena);
    expect(p, "\"");
    return s;
}

/* ---- references ------------------------------------------------------------------------------ */

static bool at_ref(Parser *p)
{
    blanks(p);
    char c = *p->at;
    return c == '%' || c == '-' || (c >= '0' && c <= '9') || !strncmp(p->at, "true", 4) ||
           !strncmp(p->at, "false", 5);
}

static Node *ref(Parser *p)
{
    if (accept_word(p, "true"))
        return node_bool(p->c, true);
    if (accept_word(p, "false"))
        return node_bool(p->c, false);
    if (!accept(p, "%"))
        return idx(p->c, integer(p));
    int64_t n = integer(p);
    if (n >= 0 && n < p->nname && p->name[n])
        return p->name[n];
    fault(p, "a node that has not been defined");
    return p->c->poison;
}

static Node *ref_or_none(Parser *p)
{
    return accept_word(p, "none") ? NULL : ref(p);
}

/* As many as there are, in scratch memory. */
static Node **refs(Parser *p, int *n)
{
    Node **out = NULL;
    *n = 0;
    while (at_ref(p) && !p->failed)
        vec_push(p->scratch, out, *n, ref(p));
    return out;
}

static int ref_list(Parser *p, const char *close, Node **out, int max)
{
    int n = 0;
    while (!accept(p, close) && !p->failed) {
        if (n == max || (n && !expect(p, ","))) {
            fault(p, "too many dims");
            return n;
        }
        out[n++] = ref(p);
    }
    return n;
}

static int dtype(Parser *p)
{
    static const char *const names[] = {
#define DTYPE(id, name, ...) name,
#include "dtypes.def"
    };
    int d = one_of(p, INGOT_DTYPE_COUNT, names);
    if (d < 0)
        fault(p, "expected a dtype");
    return d < 0 ? 0 : d;
}

static Node **keep(Parser *p, Node *const *nodes, int n)
{
    Node **copy = NEWN(p->c->arena, Node *, n ? n : 1);
    if (n)
        memcpy((void *)copy, nodes, (size_t)n * sizeof *copy);
    return copy;
}

/* ---- args ------------------------------------------------------------------------------------ */

/* A node whose arg is behind a pointer, while it is being read. */
typedef struct {
    int op, dtype, rank, nsrc;
    Node *shape[INGOT_MAX_RANK];
    Node **src;
    Arg arg;
} Draft;

static bool same_nodes(int n, Node *const *a, Node *const *b)
{
    for (int i = 0; i < n; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static bool same_region(const struct Region *a, const struct Region *b)
{
    return a->nparam == b->nparam && a->nresult == b->nresult && a->ncapture == b->ncapture &&
           same_nodes(a->nparam, a->param, b->param) &&
           same_nodes(a->nresult, a->result, b->result) &&
           same_nodes(a->ncapture, a->capture, b->capture);
}

static bool same_call(const Call *a, const Call *b)
{
    if (!same_text(a->name, b->name) || a->custom != b->custom || a->n_in != b->n_in ||
        a->n_out != b->n_out || a->n_int != b->n_int || a->n_float != b->n_float ||
        a->n_count != b->n_count || a->scratch_bytes != b->scratch_bytes ||
        a->n_kept != b->n_kept || !same_nodes(a->n_count, a->counts, b->counts))
        return false;
    for (int i = 0; i < a->n_int; i++)
        if (a->ints[i] != b->ints[i])
            return false;
    if (a->n_float && memcmp(a->floats, b->floats, (size_t)a->n_float * sizeof *a->floats) != 0)
        return false;
    for (int i = 0; i < a->n_out; i++)
        if (a->out[i].dtype != b->out[i].dtype || a->out[i].rank != b->out[i].rank ||
            !same_nodes(a->out[i].rank, a->out[i].dims, b->out[i].dims))
            return false;
    return true;
}

static bool same_arg(int op, const void *a, const void *b)
{
    switch (op) {
    case OP_PERMUTE: {
        const Perm *x = a, *y = b;
        return x->n == y->n && !memcmp(x->axis, y->axis, (size_t)x->n);
    }
    case OP_DATA: {
        const Data *x = a, *y = b;
        return x->nbytes == y->nbytes && same_text(x->name, y->name) &&
               text_data_hash(x) == text_data_hash(y);
    }
    case OP_CALL: return same_call(a, b);
    case OP_LOOP: {
        const Loop *x = a, *y = b;
        return x->trip == y->trip && x->iterations == y->iterations && x->counter == y->counter &&
               x->ncarried == y->ncarried && x->nscan == y->nscan && x->has_cond == y->has_cond &&
               same_region(x->body, y->body);
    }
    case OP_IF: {
        const If *x = a, *y = b;
        return x->n == y->n && same_region(x->then_branch, y->then_branch) &&
               same_region(x->else_branch, y->else_branch);
    }
    default: return false;
    }
}

/* The pointer of a node of this context that says the same, else the draft's own. */
static const void *known_arg(const Context *c, const Draft *d)
{
    for (uint32_t i = 0; i < c->nnode; i++) {
        Node *n = c->nodes[i];
        if (n->op == d->op && n->dtype == d->dtype && n->rank == d->rank &&
            n->nsrc == (uint32_t)d->nsrc && same_nodes(d->nsrc, n->src, d->src) &&
            same_arg(d->op, n->arg.ptr, d->arg.ptr))
            return n->arg.ptr;
    }
    return d->arg.ptr;
}

/* A VAR by its number: the context's own if there is one with these bounds, else a new entry. */
static void parse_var(Parser *p, Draft *d)
{
    Context *c = p->c;
    expect(p, "@");
    d->arg.i = integer(p);
    const char *name = string(p);
    int64_t lo = integer(p);
    expect(p, "..");
    int64_t hi = integer(p);
    int kind = one_of(p, 3, text_var_kind);
    if (p->failed || d->arg.i < 0 || d->arg.i > 10000) {
        fault(p, "not a variable");
        return;
    }
    if (d->arg.i < c->nvar) {
        const Var *v = &c->vars[d->arg.i];
        if (v->lo != lo || v->hi != hi || (name && !same_text(v->name, name)))
            fault(p, "this variable has another name or other bounds in the context");
        return;
    }
    /* The table of a kernel's context is its parent's, so never written in place. */
    int n = (int)d->arg.i + 1;
    Var *vars = NEWN(c->arena, Var, n * 2);
    if (c->nvar)
        memcpy(vars, c->vars, (size_t)c->nvar * sizeof *vars);
    Var *grown = NULL;
    int count = 0;
    for (int i = 0; i < n; i++) {
        if (i >= c->nvar)
            vars[i] = (Var){.name = arena_printf(c->arena, "v%d", i)};
        if (i == d->arg.i)
            vars[i] = (Var){.name = name ? name : vars[i].name,
                            .kind = (VarKind)(kind < 0 ? 0 : kind),
                            .lo = lo,
                            .hi = hi};
        vec_push(c->arena, grown, count, vars[i]);
    }
    c->vars = grown;
    c->nvar = n;
}

static void parse_data(Parser *p, Draft *d)
{
    Data *data = NEW(p->c->arena, Data);
    d->arg.ptr = data;
    data->name = string(p);
    expect(p, "bytes=");
    data->nbytes = (size_t)integer(p);
    expect(p, "hash=");
    data->hash = hexadecimal(p);
    if (!accept(p, "hex="))
        return;
    if (data->nbytes > TEXT_DATA_BYTES) {
        fault(p, "too many bytes");
        return;
    }
    uint8_t *bytes = arena_alloc(p->c->arena, data->nbytes + 1);
    for (size_t i = 0; i < data->nbytes; i++, p->at += 2) {
        int hi = hex_digit(p->at[0]), lo = hi < 0 ? -1 : hex_digit(p->at[1]);
        if (lo < 0) {
            fault(p, "too few bytes");
            return;
        }
        bytes[i] = (uint8_t)(hi * 16 + lo);
    }
    data->bytes = bytes;
    if (data->hash != hash_bytes(0, bytes, data->nbytes))
        fault(p, "the hash is not that of the bytes");
}

/* ints(1,2) floats(0x1p+1) */
static void parse_attributes(Parser *p, int *nint, const int64_t **all_ints, int *nfloat,
                             const double **all_floats)
{
    Arena *a = p->c->arena;
    int64_t *ints = NULL;
    double *floats = NULL;
    *nint = *nfloat = 0;
    expect(p, "ints(");
    while (!accept(p, ")") && !p->failed) {
        accept(p, ",");
        vec_push(a, ints, *nint, integer(p));
    }
    expect(p, "floats(");
    while (!accept(p, ")") && !p->failed) {
        union {
            uint64_t bits;
            double value;
        } u;
        accept(p, ",");
        blanks(p);
        u.bits = number_bits(p);
        vec_push(a, floats, *nfloat, u.value);
    }
    *all_ints = ints;
    *all_floats = floats;
}

static void parse_call(Parser *p, Draft *d)
{
    Arena *a = p->c->arena;
    Call *call = NEW(a, Call);
    d->arg.ptr = call;
    call->name = string(p);
    ingot_call_out *outs = NULL;
    parse_attributes(p, &call->n_int, &call->ints, &call->n_float, &call->floats);
    expect(p, "outs(");
    while (!accept(p, ")") && !p->failed) {
        Node *dims[INGOT_MAX_RANK];
        ingot_call_out out = {0};
        accept(p, ",");
        out.dtype = (ingot_dtype)dtype(p);
        expect(p, "[");
        out.rank = ref_list(p, "]", dims, INGOT_MAX_RANK);
        memcpy((void *)out.dims, (void *)dims, (size_t)out.rank * sizeof *dims);
        vec_push(a, outs, call->n_out, out);
    }
    Node *counts[INGOT_MAX_RANK];
    expect(p, "counts(");
    call->n_count = ref_list(p, ")", counts, INGOT_MAX_RANK);
    expect(p, "scratch=");
    call->scratch_bytes = (size_t)integer(p);
    if (accept(p, "kept="))
        call->n_kept = (int)integer(p);
    call->out = outs;
    call->counts = keep(p, counts, call->n_count);
}

/* The operator is one of the context's. */
static void parse_custom(Parser *p, Draft *d)
{
    const char *name = string(p);
    const CustomOp *op = NULL;
    int nint, nfloat;
    const int64_t *ints;
    const double *floats;
    parse_attributes(p, &nint, &ints, &nfloat, &floats);
    for (int i = 0; i < p->c->ncustom; i++)
        if (same_text(p->c->customs[i]->name, name))
            op = p->c->customs[i];
    if (!op || op->nint != nint || op->nfloat != nfloat)
        fault(p, "no custom operator of the context");
    else
        d->arg.ptr = custom_use(p->c, op, ints, floats);
}

static void parse_perm(Parser *p, Draft *d)
{
    Perm *perm = NEW(p->c->arena, Perm);
    d->arg.ptr = perm;
    expect(p, "(");
    while (!accept(p, ")") && !p->failed) {
        if (perm->n)
            expect(p, ",");
        if (perm->n == INGOT_MAX_RANK) {
            fault(p, "too many axes");
            return;
        }
        perm->axis[perm->n++] = (int8_t)integer(p);
    }
}

static void parse_loop(Parser *p, Draft *d)
{
    Loop *loop = NEW(p->c->arena, Loop);
    d->arg.ptr = loop;
    expect(p, "trip=");
    loop->trip = ref_or_none(p);
    expect(p, "iterations=");
    loop->iterations = ref_or_none(p);
    expect(p, "counter=");
    loop->counter = ref_or_none(p);
    expect(p, "carried=");
    loop->ncarried = (int)integer(p);
    expect(p, "scan=");
    loop->nscan = (int)integer(p);
    expect(p, "cond=");
    loop->has_cond = integer(p) != 0;
}

static void parse_reduce(Parser *p, Draft *d)
{
    int monoid = one_of(p, MONOID_COUNT, text_monoid);
    int64_t part = 0;
    if (monoid < 0) {
        fault(p, "expected a monoid");
        return;
    }
    if (monoid_size(monoid) > 1 && expect(p, "."))
        part = integer(p);
    if (part < 0 || part >= monoid_size(monoid)) {
        fault(p, "the state has no such value");
        return;
    }
    d->arg = reduce_arg(monoid, 0, (int)part);
    expect(p, "{");
    while (!accept(p, "}") && !p->failed) {
        accept(p, ",");
        int64_t axis = integer(p);
        if (axis < 0 || axis >= INGOT_MAX_RANK)
            fault(p, "no such axis");
        else
            d->arg.i |= INT64_C(1) << (8 + axis);
    }
}

static void parse_collective(Parser *p, Draft *d)
{
    Collective x = {.kind = ALL_REDUCE};
    const int kind = one_of(p, COLLECTIVE_KINDS, collective_text);
    if (kind < 0) {
        fault(p, "expected all_reduce, all_gather, reduce_scatter or all_mean");
        return;
    }
    x.kind = (CollectiveKind)kind;
    if (x.kind == ALL_REDUCE || x.kind == REDUCE_SCATTER)
        x.monoid = one_of(p, MONOID_COUNT, text_monoid);
    if ((x.kind == ALL_GATHER || x.kind == REDUCE_SCATTER) && expect(p, "{")) {
        x.axis = (int)integer(p);
        expect(p, "}");
    }
    x.processes = accept_word(p, "processes");
    if (!x.processes && expect(p, "@"))
        x.receiver = (int)integer(p);
    if (x.monoid < 0 || x.axis < 0 || x.axis >= INGOT_MAX_RANK || x.receiver < 0)
        fault(p, "no such collective");
    else
        d->arg = collective_arg(&x);
}

static void parse_arg(Parser *p, Draft *d)
{
    switch (d->op) {
    case OP_CONST:
        blanks(p);
        if (dtype_is_float(d->dtype) || !strncmp(p->at, "bits:", 5))
            d->arg.bits = number_bits(p);
        else
            d->arg.i = integer(p);
        return;
    case OP_VAR: parse_var(p, d); return;
    case OP_DATA: parse_data(p, d); return;
    case OP_CALL: parse_call(p, d); return;
    case OP_CUSTOM: parse_custom(p, d); return;
    case OP_CAST:
        d->arg.i = accept_word(p, "wrap") ? CAST_WRAP : accept_word(p, "least") ? CAST_LEAST : 0;
        return;
    case OP_REDUCE:
    case OP_SCAN: parse_reduce(p, d); return;
    case OP_COLLECTIVE: parse_collective(p, d); return;
    case OP_UPDATE:
        d->arg.i = one_of(p, 5, text_update);
        if (d->arg.i < 0)
            fault(p, "expected set, add, mul, max or min");
        return;
    case OP_PERMUTE: parse_perm(p, d); return;
    case OP_LOOP: parse_loop(p, d); return;
    case OP_IF: {
        If *branch = NEW(p->c->arena, If);
        d->arg.ptr = branch;
        expect(p, "results=");
        branch->n = (int)integer(p);
        return;
    }
    default:
        if (op_info[d->op].arg == ARG_INT && expect(p, "@"))
            d->arg.i = integer(p);
        if (d->op == OP_PARAM && d->arg.i >= p->c->nparam)
            p->c->nparam = (int)d->arg.i + 1;
        return;
    }
}

/* ---- lines and blocks ------------------------------------------------------------------------ */

static void parse_lines(Parser *p);

static Node **named_refs(Parser *p, const char *name, int *n)
{
    next_line(p);
    if (!accept_word(p, name)) {
        fault(p, "expected params, captures and results at the end of a region");
        return NULL;
    }
    Node **list = refs(p, n);
    return keep(p, list, *n);
}

static struct Region *parse_region(Parser *p)
{
    struct Region *r = NEW(p->c->arena, struct Region);
    r->mark = p->c->nnode;
    expect(p, "{");
    parse_lines(p);
    r->param = named_refs(p, "params", &r->nparam);
    r->capture = named_refs(p, "captures", &r->ncapture);
    r->result = named_refs(p, "results", &r->nresult);
    next_line(p);
    expect(p, "}");
    return r;
}

static void parse_regions(Parser *p, Draft *d)
{
    if (d->op == OP_LOOP)
        ((Loop *)(uintptr_t)d->arg.ptr)->body = parse_region(p);
    if (d->op == OP_IF) {
        If *branch = (If *)(uintptr_t)d->arg.ptr;
        branch->then_branch = parse_region(p);
        expect(p, "else");
        branch->else_branch = parse_region(p);
    }
}

static int parse_op(Parser *p)
{
    static const char *const names[] = {
#define OP(id, text, ...) text,
#include "ops.def"
    };
    int op = one_of(p, OP_COUNT, names);
    if (op < 0)
        fault(p, "expected an op");
    return op < 0 ? OP_POISON : op;
}

/* %3 = add f32 [2,3] %1 %2 */
static void parse_node(Parser *p)
{
    Draft d = {0};
    int64_t number = integer(p);
    expect(p, "=");
    d.op = parse_op(p);
    d.dtype = dtype(p);
    if (accept(p, "["))
        d.rank = ref_list(p, "]", d.shape, INGOT_MAX_RANK);
    parse_arg(p, &d);
    d.src = refs(p, &d.nsrc);
    if (d.nsrc == text_before_dims(d.op))
        for (int i = 0; i < d.rank; i++)
            vec_push(p->scratch, d.src, d.nsrc, d.shape[i]);
    int want = op_info[d.op].nsrc;
    if (want >= 0 && d.nsrc != want)
        fault(p, "wrong number of sources");
    if (d.op == OP_CALL)
        ((Call *)(uintptr_t)d.arg.ptr)->n_in = d.nsrc;
    parse_regions(p, &d);
    if (number < 0 || number > 1 << 28)
        fault(p, "not the number of a node");
    if (p->failed)
        return;
    if (op_info[d.op].arg == ARG_PTR)
        d.arg.ptr = known_arg(p->c, &d);
    Node *n =
        node_make(p->c, (Op)d.op, (ingot_dtype)d.dtype, d.arg, d.nsrc, d.src, d.rank, d.shape);
    if (d.op == OP_VAR && !p->c->vars[d.arg.i].node)
        p->c->vars[d.arg.i].node = n;
    while (p->nname <= number)
        vec_push(p->scratch, p->name, p->nname, NULL);
    p->name[number] = n;
}

/* Node lines, up to something else. */
static void parse_lines(Parser *p)
{
    for (;;) {
        next_line(p);
        if (p->failed || !accept(p, "%"))
            return;
        parse_node(p);
        blanks(p);
        if (!p->failed && *p->at != '\n' && *p->at != '\0' && *p->at != '#')
            fault(p, "something after the node");
    }
}

Node **text_parse(Context *c, const char *text, int *nroot, char *error, size_t error_bytes)
{
    Parser p = {.c = c,
                .scratch = arena_new(),
                .at = text,
                .line = 1,
                .error = error,
                .error_bytes = error_bytes};
    parse_lines(&p);
    Node **roots = NULL;
    if (!p.failed && !accept_word(&p, "return"))
        fault(&p, "expected a node or 'return'");
    if (!p.failed) {
        Node **list = refs(&p, nroot);
        roots = keep(&p, list, *nroot);
        next_line(&p);
        if (*p.at)
            fault(&p, "something after 'return'");
    }
    arena_free(p.scratch);
    return p.failed ? NULL : roots;
}
