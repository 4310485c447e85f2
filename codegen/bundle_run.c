/* bundle_run.c - <name>.c: init, run, reset and deinit.
 *
 * run() is the frozen plan as a list of calls. Everything has its place already, so a buffer is
 * spelled as an address: (float *)(arena + 4096), (const float *)(weights + 64), in->x, out->y. */
#include <string.h>

#include "bundle_writer.h"
#include "igrt.h"

void indent(Writer *w)
{
    for (int i = 0; i < w->depth; i++)
        sb_puts(&w->sb, "    ");
}

void line(Writer *w, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    indent(w);
    sb_vprintf(&w->sb, format, ap);
    sb_puts(&w->sb, "\n");
    va_end(ap);
}

/* ---- addresses --------------------------------------------------------------------------- */

/* Elements of the C type in one element: a complex number is two. */
static int parts(ingot_dtype d)
{
    return dtype_info[d].kind == 'c' ? 2 : 1;
}

/* The variable that points to the memory of an intermediate tensor. */
static const char *memory_base(Bundle *b, const Buffer *r)
{
    if (!b->memory) {
        b->needs |= NEED_ARENA;
        return "arena";
    }
    b->memory[r->memory].needed = true;
    return b->memory[r->memory].base;
}

static void address_root(StrBuf *sb, Bundle *b, const Buffer *r, ingot_dtype as, bool written)
{
    const char *type = c_type(as);
    const char *qualifier = written || as == INGOT_STRING ? "" : "const ";
    switch (r->kind) {
    case BUF_INPUT:
        b->needs |= NEED_INPUTS;
        if (as != r->dtype)
            sb_printf(sb, "(%s%s *)", qualifier, type);
        sb_printf(sb, "in->%s", b->in[r->slot].field);
        return;
    case BUF_OUTPUT:
        b->needs |= NEED_OUTPUTS;
        if (as != r->dtype)
            sb_printf(sb, "(%s%s *)", qualifier, type);
        sb_printf(sb, "out->%s", b->out[r->slot].field);
        return;
    case BUF_WEIGHT:
        if (b->mode == WEIGHTS_ARRAY) {
            if (as != r->dtype)
                sb_printf(sb, "(%s%s *)", qualifier, type);
            sb_puts(sb, weight_name(b, r));
        } else {
            b->needs |= NEED_WEIGHTS;
            sb_printf(sb, "(%s%s *)(weights + %s)", qualifier, type, weight_name(b, r));
        }
        return;
    case BUF_ARENA:
    case BUF_STATE:
        sb_printf(sb, "(%s%s *)(%s + %lld)", qualifier, type, memory_base(b, r),
                  (long long)r->offset);
        return;
    case BUF_LOCAL: sb_puts(sb, "&index"); return;
    }
}

void address(StrBuf *sb, Bundle *b, const Buffer *buffer, Node *offset, bool written)
{
    ingot_dtype as = buffer->dtype;
    const char *scale = parts(as) == 2 ? "2 * " : "";
    address_root(sb, b, buffer_root(buffer), as, written);
    for (; buffer->base; buffer = buffer->base) {
        if (!buffer->base_offset || idx_is(buffer->base_offset, 0))
            continue;
        sb_printf(sb, " + %s", scale);
        print_expr(sb, b, buffer->base_offset);
    }
    if (offset && !idx_is(offset, 0)) {
        sb_printf(sb, " + %s", scale);
        print_expr(sb, b, offset);
    }
}

/* ---- comments ---------------------------------------------------------------------------- */

void print_origins(StrBuf *sb, const Step *s, int max)
{
    for (int i = 0; i < s->norigin && i < max; i++) {
        sb_puts(sb, i ? " + '" : "'");
        print_comment_text(sb, s->origins[i]->node ? s->origins[i]->node : "");
        sb_puts(sb, "'");
        if (s->origins[i]->op && *s->origins[i]->op) {
            sb_puts(sb, " (");
            print_comment_text(sb, s->origins[i]->op);
            sb_puts(sb, ")");
        }
    }
    if (s->norigin > max)
        sb_printf(sb, " + %d more", s->norigin - max);
}

static void amount(StrBuf *sb, double v, const char *unit)
{
    static const char *const prefix[] = {"", "k", "M", "G", "T"};
    int i = 0;
    for (; v >= 1000 && i < 4; i++)
        v /= 1000;
    sb_printf(sb, "%.*f %s%s", v < 10 && i ? 2 : v < 100 && i ? 1 : 0, v, prefix[i], unit);
}

/* "12: 'conv1' (Conv) + 'relu1' (Relu)  -> f32[1,64,56,56]  231 MFLOP, 1.75 MB" */
static void comment(Writer *w, const Step *s)
{
    const Bundle *b = w->b;
    StrBuf *sb = &w->sb;
    indent(w);
    sb_printf(sb, "/* %d: ", s->number);
    print_origins(sb, s, 6);
    int outputs = 0;
    for (int i = 0; i < s->nbuf; i++) {
        bool written = s->kind == STEP_KERNEL ? s->kernel->args[i].written
                       : s->kind == STEP_CALL ? i >= s->call->n_in
                                              : i == 0;
        if (!written || s->kind == STEP_IF || s->kind == STEP_LOOP)
            continue;
        sb_puts(sb, outputs++ ? ", " : s->norigin ? " -> " : "-> ");
        print_shape(sb, b->c, s->bufs[i]->dtype, s->bufs[i]->rank, s->bufs[i]->dims);
    }
    if (s->kind == STEP_KERNEL) {
        sb_puts(sb, "; ");
        amount(sb, (double)s->kernel->flops, "FLOP, ");
        amount(sb, (double)s->kernel->bytes, "B");
    }
    sb_puts(sb, " */\n");
}

/* ---- steps ------------------------------------------------------------------------------- */

static void block(Writer *w, const Block *steps);

static void profile_line(Writer *w, const Step *s, const char *name)
{
    w->b->needs |= NEED_PROFILE;
    indent(w);
    sb_printf(&w->sb, "DONE(%d, ", s->number);
    print_string(&w->sb, name);
    sb_puts(&w->sb, ");\n");
}

static void kernel_call(Writer *w, const Step *s)
{
    Bundle *b = w->b;
    const Kernel *k = s->kernel;
    const char *separator = "";
    indent(w);
    sb_printf(&w->sb, "%s_%s(", b->name, k->name);
    size_t start = w->sb.len;
    for (int i = 0; i < k->narg; i++) {
        if (!kernel_has_param(k, i))
            continue;
        bool wrap = *separator && w->sb.len - start > 60;
        sb_puts(&w->sb, wrap ? ",\n    " : separator);
        if (wrap) {
            indent(w);
            start = w->sb.len;
        }
        address(&w->sb, b, s->bufs[i], NULL, k->args[i].written);
        separator = ", ";
    }
    for (int i = 0; i < k->nvar; i++) {
        sb_printf(&w->sb, "%s%s", separator, sym_place(b, k->vars[i]));
        separator = ", ";
    }
    for (int i = 0; i < k->nscalar; i++) {
        sb_puts(&w->sb, separator);
        print_scalar(&w->sb, &k->scalars[i], s->scalars[i]);
        separator = ", ";
    }
    if (k->scratch)
        sb_printf(&w->sb, "%s%s + %lld", separator, memory_base(b, s->scratch),
                  (long long)s->scratch->offset);
    if (kernel_parts(k))
        sb_printf(&w->sb, "%sbegin, end", separator);
    sb_puts(&w->sb, ");\n");
}

static void step_kernel(Writer *w, const Step *s)
{
    int parts = kernel_parts(s->kernel);
    if (w->b->gpu) {
        gpu_kernel(w, s);
    } else if (parts) {
        w->b->needs |= NEED_RUNNING;
        line(w, "igrt_parallel(&ctx->config, step_%d, &run, %d);", s->number, parts);
    } else {
        kernel_call(w, s);
    }
    profile_line(w, s, s->kernel->name);
}

/* "igrt_outside(&ctx->fault, " */
static void open_outside(Writer *w)
{
    w->b->needs |= NEED_FAULT;
    sb_puts(&w->sb, "igrt_outside(&ctx->fault, ");
}

/* The head of an if: whether least <= value <= greatest does not hold; what is the wrong one. */
static void outside(Writer *w, const char *what, Node *value, Node *least, Node *greatest)
{
    indent(w);
    sb_puts(&w->sb, "if (");
    open_outside(w);
    print_string(&w->sb, what);
    Node *part[] = {value, least, greatest};
    for (int i = 0; i < 3; i++) {
        sb_puts(&w->sb, ", ");
        print_expr(&w->sb, w->b, part[i]);
    }
    sb_puts(&w->sb, "))\n");
}

/* "node 'conv1' (Conv): the count" */
static const char *origin_text(const Bundle *b, const Origin *o, const char *what)
{
    const char *mark = what ? ": " : "";
    what = what ? what : "";
    if (!o)
        return what;
    if (!o->op || !*o->op)
        return arena_printf(b->a, "node '%s'%s%s", o->node, mark, what);
    return arena_printf(b->a, "node '%s' (%s)%s%s", o->node, o->op, mark, what);
}

static void step_check(Writer *w, const Step *s)
{
    const Require *r = s->require;
    outside(w, origin_text(w->b, r->origin, r->what), r->value, r->least, r->greatest);
    line(w, "    return IGRT_ERR_SHAPE;");
}

/* A run-time integer that a step has found. */
static void set_count(Writer *w, const Step *s, int var, const char *value)
{
    Bundle *b = w->b;
    const Var *v = &b->c->vars[var];
    const char *what =
        origin_text(b, s->norigin ? s->origins[0] : NULL, v->what ? v->what : v->name);
    line(w, "%s = %s;", sym_place(b, var), value);
    outside(w, what, v->node, idx(b->c, v->lo), idx(b->c, v->hi));
    line(w, "    return IGRT_ERR_COUNT;");
}

/* With -D<NAME>_CHECK=1: the run ends where an index from data is out of range. */
static void step_index(Writer *w, const Step *s)
{
    Bundle *b = w->b;
    const char *what = arena_printf(b->a, "an index into axis %d", s->axis);
    sb_printf(&w->sb, "#if %s_CHECK\n", b->upper);
    line(w, "{");
    w->depth++;
    line(w, "int64_t index;");
    kernel_call(w, s);
    indent(w);
    sb_puts(&w->sb, "const int64_t size = ");
    print_expr(&w->sb, b, s->size);
    sb_puts(&w->sb, ";\n");
    indent(w);
    sb_puts(&w->sb, "if (index != INT64_MIN && ");
    open_outside(w);
    print_string(&w->sb, origin_text(b, s->norigin ? s->origins[0] : NULL, what));
    sb_puts(&w->sb, s->wraps ? ", index < 0 ? index - size : index, -size, size - 1))\n"
                             : ", index, 0, size - 1))\n");
    line(w, "    return IGRT_ERR_INDEX;");
    w->depth--;
    line(w, "}");
    sb_puts(&w->sb, "#endif\n");
}

static void step_copy(Writer *w, const Step *s)
{
    Bundle *b = w->b;
    const Buffer *dst = s->bufs[0], *src = s->bufs[1];
    if (b->gpu) {
        gpu_copy(w, s);
        profile_line(w, s, "copy");
        return;
    }
    indent(w);
    sb_printf(&w->sb, "%s(", buffer_root(dst) == buffer_root(src) ? "memmove" : "memcpy");
    address(&w->sb, b, dst, s->dst_offset, true);
    sb_puts(&w->sb, ", ");
    address(&w->sb, b, src, s->src_offset, false);
    sb_puts(&w->sb, ", (size_t)");
    print_expr(&w->sb, b, s->elements);
    if (dst->dtype == INGOT_STRING)
        sb_puts(&w->sb, " * sizeof(const char *));\n");
    else
        sb_printf(&w->sb, " * %lld);\n", (long long)element_bytes(dst->dtype));
    profile_line(w, s, "copy");
}

/* A library kernel is told the bounds of dims that it decides. */
static void descriptor(Writer *w, const Step *s, int i)
{
    Bundle *b = w->b;
    const Buffer *buffer = s->bufs[i];
    indent(w);
    sb_puts(&w->sb, "    {(void *)");
    const Buffer *r = buffer_root(buffer);
    bool sum = r != buffer;
    sb_puts(&w->sb, sum ? "(" : "");
    address(&w->sb, b, buffer, NULL, i >= s->call->n_in);
    sb_printf(&w->sb, "%s, IGRT_%s, %d, {", sum ? ")" : "", dtype_enum(buffer->dtype),
              buffer->rank);
    for (int d = 0; d < buffer->rank; d++) {
        sb_puts(&w->sb, d ? ", " : "");
        if (call_decides(s->call, buffer->dims[d]))
            sb_printf(&w->sb, "%lld", (long long)buffer->dims[d]->hi);
        else
            print_expr(&w->sb, b, buffer->dims[d]);
    }
    sb_puts(&w->sb, buffer->rank ? "}},\n" : "0}},\n");
}

static void print_double(StrBuf *sb, Bundle *b, double v)
{
    b->needs |= v - v != 0 ? NEED_MATH : 0; /* infinite, or no number */
    if (v != v)
        sb_puts(sb, "NAN");
    else if (v - v != 0)
        sb_puts(sb, v > 0 ? "INFINITY" : "-INFINITY");
    else
        sb_printf(sb, "%.17g", v);
}

static void step_call(Writer *w, const Step *s)
{
    Bundle *b = w->b;
    const Call *call = s->call;
    line(w, "{");
    w->depth++;
    if (call->n_in) {
        line(w, "const igrt_tensor src[] = {");
        for (int i = 0; i < call->n_in; i++)
            descriptor(w, s, i);
        line(w, "};");
    }
    const char *dst = s->nbuf > call->n_in ? "dst" : "NULL";
    if (*dst == 'd') {
        line(w, "igrt_tensor dst[] = {");
        for (int i = call->n_in; i < s->nbuf; i++)
            descriptor(w, s, i);
        line(w, "};");
    }
    if (call->n_int) {
        indent(w);
        sb_puts(&w->sb, "static const int64_t ints[] = {");
        for (int i = 0; i < call->n_int; i++) {
            if (call->ints[i] == INT64_MIN)
                sb_printf(&w->sb, "%sINT64_MIN", i ? ", " : "");
            else
                sb_printf(&w->sb, "%sINT64_C(%lld)", i ? ", " : "", (long long)call->ints[i]);
        }
        sb_puts(&w->sb, "};\n");
    }
    if (call->n_float) {
        indent(w);
        sb_puts(&w->sb, "static const double floats[] = {");
        for (int i = 0; i < call->n_float; i++) {
            sb_puts(&w->sb, i ? ", " : "");
            print_double(&w->sb, b, call->floats[i]);
        }
        sb_puts(&w->sb, "};\n");
    }
    if (call->n_count)
        line(w, "int64_t count[%d] = {0};", call->n_count);
    if (b->gpu)
        gpu_call_inputs(w, s);
    indent(w);
    sb_printf(&w->sb, "status = %s_%s(%s, %d, %s, %d, %s, %s, ",
              call->custom ? b->name : "igrt_lib", call->name, call->n_in ? "src" : "NULL",
              call->n_in, dst, s->nbuf - call->n_in, call->n_int ? "ints" : "NULL",
              call->n_float ? "floats" : "NULL");
    if (s->scratch)
        sb_printf(&w->sb, "%s + %lld, %lld, ", memory_base(b, s->scratch),
                  (long long)s->scratch->offset, (long long)s->scratch->bytes);
    else
        sb_puts(&w->sb, "NULL, 0, ");
    sb_printf(&w->sb, "%s);\n", call->n_count ? "count" : "NULL");
    line(w, "if (status != IGRT_OK) {");
    indent(w);
    b->needs |= NEED_FAULT;
    sb_puts(&w->sb, "    ctx->fault.what = ");
    print_string(&w->sb, origin_text(b, s->norigin ? s->origins[0] : NULL, call->name));
    sb_puts(&w->sb, ";\n");
    line(w, "    return status;");
    line(w, "}");
    for (int i = 0; i < call->n_count; i++)
        set_count(w, s, (int)call->counts[i]->arg.i, arena_printf(b->a, "count[%d]", i));
    if (b->gpu)
        gpu_call_outputs(w, s);
    w->depth--;
    line(w, "}");
    profile_line(w, s, call->name);
}

void condition(Writer *w, const Buffer *cond)
{
    sb_puts(&w->sb, "*");
    bool sum = cond->base != NULL;
    sb_puts(&w->sb, sum ? "(" : "");
    address(&w->sb, w->b, cond, NULL, false);
    sb_puts(&w->sb, sum ? ")" : "");
}

static void step_if(Writer *w, const Step *s)
{
    bool read = false;
    if (w->b->gpu) {
        line(w, "{");
        w->depth++;
        read = gpu_condition(w, s->cond, s->number);
    }
    indent(w);
    sb_puts(&w->sb, "if (");
    if (read)
        sb_printf(&w->sb, "cond%d", s->number);
    else
        condition(w, s->cond);
    sb_puts(&w->sb, ") {\n");
    block(w, &s->body);
    if (s->other.n) {
        line(w, "} else {");
        block(w, &s->other);
    }
    line(w, "}");
    if (w->b->gpu) {
        w->depth--;
        line(w, "}");
    }
}

static void step_loop(Writer *w, const Step *s)
{
    Bundle *b = w->b;
    StrBuf *sb = &w->sb;
    line(w, "{");
    w->depth++;
    if (s->trip) {
        indent(w);
        sb_printf(sb, "const int64_t trip%d = ", s->number);
        print_expr(sb, b, s->trip);
        sb_puts(sb, ";\n");
    }
    line(w, "int64_t i%d;", s->number);
    indent(w);
    sb_printf(sb, "for (i%d = 0; ", s->number);
    if (s->trip)
        sb_printf(sb, "i%d < trip%d", s->number, s->number);
    if (s->cond && !b->gpu) {
        sb_puts(sb, s->trip ? " && " : "");
        condition(w, s->cond);
    }
    sb_printf(sb, "; i%d++) {\n", s->number);
    if (s->cond && b->gpu) {
        w->depth++;
        bool read = gpu_condition(w, s->cond, s->number);
        indent(w);
        sb_puts(sb, "if (!");
        if (read)
            sb_printf(sb, "cond%d", s->number);
        else
            condition(w, s->cond);
        sb_puts(sb, ")\n");
        line(w, "    break;");
        w->depth--;
    }
    if (s->counter && s->counter->op == OP_VAR)
        line(w, "    %s = i%d;", sym_place(b, (int)s->counter->arg.i), s->number);
    block(w, &s->body);
    line(w, "}");
    if (s->iterations && s->iterations->op == OP_VAR && s->iterations != s->trip) {
        set_count(w, s, (int)s->iterations->arg.i, arena_printf(b->a, "i%d", s->number));
    }
    w->depth--;
    line(w, "}");
}

static void block(Writer *w, const Block *steps)
{
    w->depth++;
    for (int i = 0; i < steps->n; i++) {
        const Step *s = steps->step[i];
        if (i)
            sb_puts(&w->sb, "\n");
        if (s->kind != STEP_INDEX)
            comment(w, s);
        switch (s->kind) {
        case STEP_KERNEL: step_kernel(w, s); break;
        case STEP_INDEX: step_index(w, s); break;
        case STEP_CALL: step_call(w, s); break;
        case STEP_COPY: step_copy(w, s); break;
        case STEP_IF: step_if(w, s); break;
        case STEP_LOOP: step_loop(w, s); break;
        case STEP_CHECK: step_check(w, s); break;
        }
    }
    w->depth--;
}

/* ---- run-time integers ------------------------------------------------------------------- */

/* A number of a group that the caller gives. */
static void group_in(Writer *w, const PortGroup *g, Node *value, const char *member)
{
    if (!value)
        return;
    const char *what = arena_printf(w->b->a, "input '%s': its %s", g->g->name,
                                    *member == 'l' ? "length" : "presence");
    if (value->op == OP_CONST) {
        indent(w);
        sb_puts(&w->sb, "if (");
        open_outside(w);
        print_string(&w->sb, what);
        sb_printf(&w->sb, ", in->%s_%s, %lld, %lld))\n", g->field, member, (long long)value->arg.i,
                  (long long)value->arg.i);
        line(w, "    return IGRT_ERR_DIM;");
        return;
    }
    const Var *v = &w->b->c->vars[value->arg.i];
    line(w, "%s = in->%s_%s;", sym_place(w->b, (int)value->arg.i), g->field, member);
    outside(w, what, v->node, idx(w->b->c, v->lo), idx(w->b->c, v->hi));
    line(w, "    return IGRT_ERR_DIM;");
}

/* The first input dim that is just a variable sets it; then every bound and every dim is checked. What is absent
 * has the least dims, and is never read. */
static void dims_in(Writer *w)
{
    Bundle *b = w->b;
    StrBuf *sb = &w->sb;
    bool *set = NEWN(b->a, bool, b->c->nvar + 1);
    for (int i = 0; i < b->c->nvar; i++) {
        const Var *v = &b->c->vars[i];
        if (!(set[i] = v->length))
            continue;
        outside(w, arena_printf(b->a, "the length of the states, '%s'", v->name), v->node,
                idx(b->c, v->lo), idx(b->c, v->hi));
        line(w, "    return IGRT_ERR_DIM;");
    }
    for (int i = 0; i < b->nin_group; i++) {
        group_in(w, &b->in_group[i], b->in_group[i].g->present, "present");
        group_in(w, &b->in_group[i], b->in_group[i].g->length, "length");
    }
    for (int i = 0; i < b->nin; i++) {
        const Port *p = &b->in[i];
        for (int d = p->lead; d < p->b->rank; d++) {
            Node *dim = p->b->dims[d];
            if (dim->op != OP_VAR || set[dim->arg.i])
                continue;
            const Var *v = &b->c->vars[dim->arg.i];
            set[dim->arg.i] = true;
            indent(w);
            sb_printf(sb, "%s = ", sym_place(b, (int)dim->arg.i));
            if (p->here)
                print_expr(sb, b, p->here);
            sb_printf(sb, "%sin->%s[%d]", p->here ? " ? " : "", p->dims, d - p->lead);
            if (p->here)
                sb_printf(sb, " : INT64_C(%lld)", (long long)v->lo);
            sb_puts(sb, ";\n");
            const char *what = arena_printf(b->a, "input '%s': the size of axis %d, '%s'",
                                            p->b->name, d - p->lead, v->name);
            outside(w, what, v->node, idx(b->c, v->lo), idx(b->c, v->hi));
            line(w, "    return IGRT_ERR_DIM;");
        }
    }
    for (int i = 0; i < b->nin; i++) {
        const Port *p = &b->in[i];
        bool *again = NEWN(b->a, bool, b->c->nvar + 1);
        for (int d = p->lead; p->dynamic && d < p->b->rank; d++) {
            Node *dim = p->b->dims[d];
            if (dim->op == OP_VAR && !again[dim->arg.i]) {
                bool first =
                    !b->c->vars[dim->arg.i].length; /* the one that set it needs no check */
                for (int j = 0; j < i && first; j++)
                    for (int e = b->in[j].lead; e < b->in[j].b->rank; e++)
                        first &= b->in[j].b->dims[e] != dim;
                again[dim->arg.i] = true;
                if (first)
                    continue;
            }
            indent(w);
            sb_puts(sb, "if (");
            if (p->here) {
                print_expr(sb, b, p->here);
                sb_puts(sb, " && ");
            }
            open_outside(w);
            print_string(
                sb, arena_printf(b->a, "input '%s': the size of axis %d", p->b->name, d - p->lead));
            sb_printf(sb, ", in->%s[%d], ", p->dims, d - p->lead);
            print_expr(sb, b, dim);
            sb_puts(sb, ", ");
            print_expr(sb, b, dim);
            sb_puts(sb, "))\n");
            line(w, "    return IGRT_ERR_DIM;");
        }
        if (p->here) {
            indent(w);
            sb_puts(sb, "if (");
            print_expr(sb, b, p->here);
            sb_printf(sb, " && !in->%s)\n", p->field);
            line(w, "    return IGRT_ERR_INPUT;");
        }
    }
}

static void group_out(Writer *w, const PortGroup *g, Node *value, const char *member)
{
    if (!value)
        return;
    indent(w);
    sb_printf(&w->sb, "out->%s_%s = ", g->field, member);
    print_expr(&w->sb, w->b, value);
    sb_puts(&w->sb, ";\n");
}

static void dims_out(Writer *w)
{
    Bundle *b = w->b;
    for (int i = 0; i < b->nout_group; i++) {
        group_out(w, &b->out_group[i], b->out_group[i].g->present, "present");
        group_out(w, &b->out_group[i], b->out_group[i].g->length, "length");
    }
    for (int i = 0; i < b->nout; i++) {
        const Port *p = &b->out[i];
        for (int d = p->lead; p->dynamic && d < p->b->rank; d++) {
            indent(w);
            sb_printf(&w->sb, "out->%s[%d] = ", p->dims, d - p->lead);
            if (p->here)
                print_expr(&w->sb, b, p->here);
            sb_puts(&w->sb, p->here ? " ? " : "");
            print_expr(&w->sb, b, p->b->dims[d]);
            sb_puts(&w->sb, p->here ? " : 0;\n" : ";\n");
        }
    }
}

/* The lengths of states that grow are those of their next values. */
static void lengths_out(Writer *w)
{
    Bundle *b = w->b;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < b->c->nvar; i++) {
            Node *next = b->c->vars[i].next;
            if (!next)
                continue;
            indent(w);
            if (pass) {
                sb_printf(&w->sb, "%s = length_%d;\n", sym_place(b, i), i);
                continue;
            }
            sb_printf(&w->sb, "const int64_t length_%d = ", i);
            print_expr(&w->sb, b, next);
            sb_puts(&w->sb, ";\n");
        }
}

/* ---- functions --------------------------------------------------------------------------- */

static void null_checks(Writer *w)
{
    const Bundle *b = w->b;
    line(w, "if (!ctx || !in || !out)");
    line(w, "    return IGRT_ERR_NULL;");
    for (int i = 0; i < b->nin; i++) {
        if (b->in[i].here) /* once it is known which are there */
            continue;
        line(w, "if (!in->%s)", b->in[i].field);
        line(w, "    return IGRT_ERR_INPUT;");
    }
    for (int i = 0; i < b->nout; i++) {
        line(w, "if (!out->%s)", b->out[i].field);
        line(w, "    return IGRT_ERR_OUTPUT;");
    }
}

/* Inputs whose value was known at compile time: anything else is refused. */
static void bound_checks(Writer *w)
{
    const Bundle *b = w->b;
    for (int i = 0; b->c->bound && i < b->nin; i++) {
        Node *bound = b->c->bound[i];
        if (!bound || bound->op != OP_DATA || b->in[i].b->dtype == INGOT_STRING)
            continue;
        const Data *d = bound->arg.ptr;
        line(w,
             "if (igrt_checksum(in->%s, %zu) != UINT64_C(0x%016llx)) /* bound at compile time */",
             b->in[i].field, d->nbytes, (unsigned long long)igrt_checksum(d->bytes, d->nbytes));
        line(w, "    return IGRT_ERR_BIND;");
    }
}

static bool block_has(const Block *steps, StepKind kind)
{
    for (int i = 0; i < steps->n; i++) {
        const Step *s = steps->step[i];
        if (s->kind == kind || block_has(&s->body, kind) || block_has(&s->other, kind))
            return true;
    }
    return false;
}

/* A function is written whole: gives what it needs, and the next one needs nothing yet. */
static unsigned needs_taken(Bundle *b)
{
    unsigned needs = b->needs;
    b->all_needs |= needs;
    b->needs = 0;
    return needs;
}

/* What a function needs of the context that is reached through `from`. */
static void context_locals(Writer *w, unsigned needs, const char *from)
{
    Bundle *b = w->b;
    for (int i = 0; b->memory && i < b->p->nmemory; i++) {
        if (b->memory[i].needed)
            line(w, "unsigned char *const %s = %s->memory[%s];", b->memory[i].base, from,
                 b->memory[i].index);
        b->memory[i].needed = false;
    }
    if (needs & NEED_ARENA)
        line(w, "unsigned char *const arena = %s->arena;", from);
    if (needs & NEED_WEIGHTS)
        line(w, "const unsigned char *const weights = %s->weights;", from);
    if (needs & NEED_SYM)
        line(w, "int64_t *const sym = %s->sym;", from);
}

/* A kernel that can be cut is called by a function of its own, which any thread may run for some of the parts. */
static void step_functions(Writer *w, const Block *steps)
{
    const char *n = w->b->name;
    for (int i = 0; i < steps->n; i++) {
        const Step *s = steps->step[i];
        step_functions(w, &s->body);
        step_functions(w, &s->other);
        if (s->kind != STEP_KERNEL || !kernel_parts(s->kernel))
            continue;
        Writer call = {.b = w->b, .depth = 1};
        kernel_call(&call, s);
        sb_printf(&w->sb, "\nstatic void step_%d(const void *arg, int64_t begin, int64_t end)\n{\n",
                  s->number);
        w->depth = 1;
        line(w, "const struct running *const run = arg;");
        unsigned needs = needs_taken(w->b);
        context_locals(w, needs, "run->ctx");
        if (needs & NEED_INPUTS)
            line(w, "const %s_inputs *const in = run->in;", n);
        if (needs & NEED_OUTPUTS)
            line(w, "%s_outputs *const out = run->out;", n);
        sb_puts(&w->sb, call.sb.data);
        sb_puts(&w->sb, "}\n");
        w->depth = 0;
        sb_free(&call.sb);
    }
}

/* Declares what the function that was written needs. */
static void declare_locals(Writer *w, bool calls)
{
    unsigned needs = needs_taken(w->b);
    context_locals(w, needs, "ctx");
    if (w->b->gpu)
        gpu_locals(w, needs);
    if (needs & NEED_RUNNING)
        line(w, "const struct running run = {ctx, in, out};");
    if (calls)
        line(w, "igrt_status status;");
    if (needs & NEED_FAULT)
        line(w, "memset(&ctx->fault, 0, sizeof ctx->fault);");
    if (needs & NEED_PROFILE)
        line(w, "uint64_t since = ctx->config.profile ? now(ctx) : 0;");
    if (needs & NEED_PROFILE && w->b->gpu) {
        line(w, "if (ctx->config.profile)");
        line(w, "    (void)igrt_gpu_time_begin(gpu);");
    }
}

/* The steps of a GPU's bundle that need nothing of the host. */
static void function_enqueue(Writer *w)
{
    Writer body = {.b = w->b};
    block(&body, &w->b->p->main);
    sb_printf(&w->sb, "\nstatic igrt_status enqueue(%s_ctx *ctx)\n{\n", w->b->name);
    w->depth = 1;
    const char *text = body.sb.data ? body.sb.data : "    (void)ctx;\n";
    declare_locals(w, false);
    sb_puts(&w->sb, text);
    line(w, "return IGRT_OK;");
    sb_puts(&w->sb, "}\n");
    w->depth = 0;
    sb_free(&body.sb);
}

static void function_run(Writer *w)
{
    Bundle *b = w->b;
    StrBuf *sb = &w->sb;
    const char *n = b->name,
               *parameters =
                   arena_printf(b->a, "%s_ctx *ctx, const %s_inputs *in, %s_outputs *out", n, n, n);
    const bool flush = !b->gpu && !b->c->keep_subnormals;
    if (flush)
        sb_printf(sb, "\nstatic %s_status run_steps(%s)\n{\n", n, parameters);
    else
        sb_printf(sb, "\n%s_status %s_run(%s)\n{\n", n, n, parameters);
    w->depth = 1;
    null_checks(w);
    StrBuf before = *sb;
    *sb = (StrBuf){0};
    bound_checks(w);
    dims_in(w);
    if (sb->len)
        sb_puts(sb, "\n");
    if (b->gpu) {
        Writer steps = {.b = b};
        if (!gpu_is_apart(b))
            block(&steps, &b->p->main);
        gpu_steps(w, steps.sb.data ? steps.sb.data : "");
        sb_free(&steps.sb);
    } else {
        w->depth = 0;
        block(w, &b->p->main);
        w->depth = 1;
    }
    dims_out(w);
    lengths_out(w);
    StrBuf body = *sb;
    *sb = before;
    const char *text = body.data ? body.data : "";
    declare_locals(w, block_has(&b->p->main, STEP_CALL));
    sb_puts(sb, "\n");
    sb_puts(sb, text);
    sb_free(&body);
    line(w, "return IGRT_OK;");
    sb_puts(sb, "}\n");
    if (flush)
        sb_printf(sb,
                  "\n%s_status %s_run(%s)\n{\n"
                  "    const uint64_t mode = igrt_fp_flush(); /* subnormal numbers are zeros */\n"
                  "    const %s_status status = run_steps(ctx, in, out);\n"
                  "    igrt_fp_restore(mode);\n    return status;\n}\n",
                  n, n, parameters, n);
}

/* What init asks of config.arena. */
static const char *arena_wanted(const Bundle *b)
{
    int64_t bytes = b->gpu ? gpu_arena_bytes(b) : b->memory ? 0 : b->p->arena_bytes;
    return bytes ? arena_printf(b->a, "%s_ARENA_BYTES(config ? config->threads : 1)", b->upper)
                 : "0";
}

/* The state of random numbers begins with the caller's seed. */
static void seed_state(StrBuf *sb, const Bundle *b)
{
    if (!b->c->random)
        return;
    const Buffer *state = b->p->state[b->c->random->arg.i];
    if (b->gpu)
        sb_printf(sb,
                  "    TRY(igrt_gpu_write(&ctx->gpu, ctx->mem[MEM_ARENA], %lld, &ctx->config.seed, "
                  "sizeof ctx->config.seed, 1));\n",
                  (long long)state->offset);
    else
        sb_printf(sb,
                  "    memcpy((unsigned char *)ctx->%s + %lld, &ctx->config.seed, sizeof "
                  "ctx->config.seed);\n",
                  b->memory ? arena_printf(b->a, "memory[%s]", b->memory[b->p->state_memory].index)
                            : "arena",
                  (long long)state->offset);
}

static void function_init(Writer *w)
{
    const Bundle *b = w->b;
    const char *n = b->name, *u = b->upper;
    StrBuf *sb = &w->sb;
    bool blob = b->mode == WEIGHTS_BLOB;
    char sum[64];
    snprintf(sum, sizeof sum, blob ? "%s_WEIGHTS_SUM" : "0", u);
    if (b->memory)
        memory_table(sb, b);
    sb_printf(sb,
              "\n%s_status %s_init(%s_ctx *ctx, const %s_config *config)\n{\n"
              "    igrt_status status;\n"
              "    if (!ctx)\n        return IGRT_ERR_NULL;\n"
              "    status = igrt_config_check(config, %s, %s_ARENA_ALIGN,\n"
              "                               %s_WEIGHTS_BYTES, %s);\n",
              n, n, n, n, arena_wanted(b), u, u, sum);
    if (b->memory)
        sb_printf(sb,
                  "    if (status == IGRT_OK)\n"
                  "        status = igrt_memory_check(config, memory_bytes, %s_MEMORIES, "
                  "%s_ARENA_ALIGN);\n",
                  u, u);
    sb_puts(sb, "    if (status != IGRT_OK)\n        return status;\n"
                "    ctx->config = *config;\n"
                "    if (!config->clock)\n        ctx->config.profile = NULL;\n");
    if (b->memory)
        sb_printf(sb,
                  "    for (int i = 0; i < %s_MEMORIES; i++)\n"
                  "        ctx->memory[i] = config->memory[i].data;\n"
                  "    ctx->config.memory = NULL; /* the list need not stay */\n",
                  u);
    else
        sb_puts(sb, "    ctx->arena = config->arena;\n");
    if (blob)
        sb_puts(sb, "    ctx->weights = config->weights;\n");
    else if (b->mode == WEIGHTS_INCBIN)
        sb_printf(sb, "    ctx->weights = %s_weights_blob;\n", n);
    else
        sb_puts(sb, "    ctx->weights = NULL;\n");
    if (bundle_uses_amx(b))
        sb_puts(sb, "    if (igrt_amx_permit() != 0) /* the system keeps the tiles to itself */\n"
                    "        return IGRT_ERR_DEVICE;\n");
    sb_puts(sb, "    memset(&ctx->fault, 0, sizeof ctx->fault);\n");
    if (b->nsym)
        sb_puts(sb, "    memset(ctx->sym, 0, sizeof ctx->sym);\n");
    if (b->gpu)
        sb_printf(sb,
                  "    status = start(ctx);\n"
                  "    if (status == IGRT_OK)\n        status = %s_reset(ctx);\n",
                  n);
    if (b->gpu)
        gpu_ready(sb, b);
    if (b->gpu)
        sb_puts(sb, "    if (status != IGRT_OK)\n        release(ctx);\n"
                    "    return status;\n}\n");
    else
        sb_printf(sb, "    return %s_reset(ctx);\n}\n", n);
    sb_printf(
        sb, "\n%s_status %s_reset(%s_ctx *ctx)\n{\n    if (!ctx)\n        return IGRT_ERR_NULL;\n",
        n, n, n);
    if (b->p->state_bytes && b->gpu)
        sb_printf(sb,
                  "    TRY(igrt_gpu_zero(&ctx->gpu, ctx->mem[MEM_ARENA], %lld)); /* the states "
                  "come first */\n"
                  "    TRY(igrt_gpu_finish(&ctx->gpu));\n",
                  (long long)b->p->state_bytes);
    else if (b->p->state_bytes)
        sb_printf(sb, "    memset(ctx->%s, 0, %lld); /* the states come first */\n",
                  b->memory ? arena_printf(b->a, "memory[%s]", b->memory[b->p->state_memory].index)
                            : "arena",
                  (long long)b->p->state_bytes);
    seed_state(sb, b);
    for (int i = 0; i < b->c->nvar; i++)
        if (b->c->vars[i].length) {
            char name[VAR_NAME_BYTES + 8];
            sb_printf(sb, "    ctx->sym[%s] = 0; /* the states that grow are empty */\n",
                      sym_name(b, i, name));
        }
    sb_printf(sb, "    return IGRT_OK;\n}\n");
    if (b->gpu)
        sb_printf(sb, "\nvoid %s_deinit(%s_ctx *ctx)\n{\n    if (ctx)\n        release(ctx);\n}\n",
                  n, n);
    else
        sb_printf(sb, "\nvoid %s_deinit(%s_ctx *ctx)\n{\n    (void)ctx;\n}\n", n, n);
    if (!b->has_selftest)
        sb_printf(sb,
                  "\n%s_status %s_selftest(%s_ctx *ctx)\n{\n"
                  "    return ctx ? IGRT_ERR_NO_SELFTEST : IGRT_ERR_NULL;\n}\n",
                  n, n, n);
}

static void lib_prototypes(StrBuf *sb, const Bundle *b, Map *seen, const Block *steps)
{
    for (int i = 0; i < steps->n; i++) {
        const Step *s = steps->step[i];
        if (s->kind == STEP_CALL) {
            uint64_t key = hash_bytes(1, s->call->name, strlen(s->call->name));
            if (!map_get(seen, key) && s->call->custom)
                sb_printf(sb, "IGRT_LIB_FUNCTION(%s_%s);\n", b->name, s->call->name);
            else if (!map_get(seen, key))
                sb_printf(sb, "IGRT_LIB(%s);\n", s->call->name);
            map_put(seen, key, (void *)(uintptr_t)s->call->name);
        }
        lib_prototypes(sb, b, seen, &s->body);
        lib_prototypes(sb, b, seen, &s->other);
    }
}

static void opening(StrBuf *sb, Bundle *b)
{
    sb_printf(sb, "/*\n * %s.c - the steps of ", b->name);
    print_comment_text(sb, b->source);
    sb_printf(sb, ", in order. The kernels are in %s_kernels%s.\n */\n", b->name,
              b->gpu ? b->target->suffix : "_*.c");
    sb_printf(sb, "#include \"%s_igrt.h\"\n#include \"%s.h\"\n", b->name, b->name);
    if (b->all_needs & NEED_MATH)
        sb_puts(sb, "\n#include <math.h>");
    sb_puts(sb, "\n#include <string.h>\n\n");
    if (b->all_needs & NEED_NUM)
        sb_puts(sb, "#include \"igrt_num.h\"\n");
    if (bundle_uses_amx(b))
        sb_puts(sb, "#include \"igrt_amx.h\"\n");
    if (b->gpu)
        sb_printf(sb, "#include \"igrt_gpu_%s.h\"\n", b->target->name);
    if (b->p->nkernel)
        sb_printf(sb, "#include \"%s_kernels.h\"\n", b->name);
    if (b->mode == WEIGHTS_ARRAY)
        sb_printf(sb, "#include \"%s_weights.h\"\n", b->name);
    if (b->mode == WEIGHTS_INCBIN)
        sb_printf(sb, "extern const unsigned char %s_weights_blob[]; /* %s_weights.S */\n", b->name,
                  b->name);
    Map seen = {0};
    StrBuf libs = {0};
    lib_prototypes(&libs, b, &seen, &b->p->main);
    if (libs.len)
        sb_printf(sb, "\n/* library kernels */\n%s", libs.data);
    sb_free(&libs);
    map_free(&seen);
    if (b->nsym) {
        sb_puts(sb, "\n/* places in ctx->sym */\nenum {\n");
        for (int i = 0; i < b->c->nvar; i++) {
            char name[VAR_NAME_BYTES + 8];
            if (b->sym[i] >= 0)
                sb_printf(sb, "    %s = %d,\n", sym_name(b, i, name), b->sym[i]);
        }
        sb_puts(sb, "};\n");
    }
    if (b->all_needs & NEED_WEIGHTS)
        weight_offsets(sb, b);
    if (b->gpu)
        gpu_constants(sb, b);
    if (b->all_needs & NEED_RUNNING)
        sb_printf(sb,
                  "\n/* What the parts of a step have in common. */\nstruct running {\n"
                  "    %s_ctx *ctx;\n    const %s_inputs *in;\n    %s_outputs *out;\n};\n",
                  b->name, b->name, b->name);
    if (b->all_needs & NEED_PROFILE)
        sb_printf(
            sb,
            "\n/* Tells the profile how long the step took. */\n"
            "#define DONE(step, name)                                                          \\\n"
            "    do {                                                                          \\\n"
            "        if (ctx->config.profile)                                                  \\\n"
            "            since = done(ctx, step, name, since);                                 \\\n"
            "    } while (0)\n"
            "\nstatic uint64_t now(const %s_ctx *ctx)\n{\n"
            "    return ctx->config.clock(ctx->config.user);\n}\n"
            "\nstatic uint64_t done(%s%s_ctx *ctx, int step, const char *name, uint64_t "
            "since)\n{\n%s    return now(ctx);\n}\n",
            b->name, b->gpu ? "" : "const ", b->name,
            b->gpu ? "    uint64_t ns = 0; /* by the device's clock, where it has one */\n"
                     "    (void)igrt_gpu_time_end(&ctx->gpu, &ns); /* a failure shows in the next "
                     "call "
                     "*/\n"
                     "    ctx->config.profile(ctx->config.user, step, name, ns ? ns : now(ctx) - "
                     "since);\n"
                     "    (void)igrt_gpu_time_begin(&ctx->gpu);\n"
                   : "    ctx->config.profile(ctx->config.user, step, name, now(ctx) - since);\n");
}

void bundle_run(Bundle *b)
{
    Writer w = {.b = b};
    if (b->gpu)
        gpu_functions(&w.sb, b);
    (void)needs_taken(b);
    if (b->gpu && gpu_is_apart(b)) {
        function_enqueue(&w);
        gpu_apart_functions(&w.sb, b);
        (void)needs_taken(b);
    }
    function_init(&w);
    step_functions(&w, &b->p->main);
    function_run(&w);
    StrBuf all = {0};
    opening(&all, b);
    sb_puts(&all, w.sb.data);
    sb_free(&w.sb);
    bundle_source(b, arena_printf(b->a, "%s.c", b->name), &all);
}
