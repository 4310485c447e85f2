/* bundle_steps.c - the steps of run(): calls of kernels and library kernels, copies, branches,
 * loops, checks. */
#include <stdlib.h>
#include <string.h>

#include "bundle_writer.h"
#include "igrt.h"

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

/* What a number of the step grows by in the loops around it, " + 3*i", in units of so many. */
static void growth(Writer *w, int number, int64_t unit)
{
    for (int i = 0; i < w->nloop; i++) {
        int64_t stride = w->loop[i]->stride[w->at[i] + number] / unit;
        bool wide = llabs(stride) > INT32_MAX / w->loop[i]->count;
        if (!stride)
            continue;
        sb_puts(&w->sb, stride < 0 ? " - " : " + ");
        if (llabs(stride) != 1)
            sb_printf(&w->sb, wide ? "INT64_C(%lld)*" : "%lld*", llabs(stride));
        sb_printf(&w->sb, "%c", 'i' + i);
    }
}

/* Whether the loops around a step take its argument from a table: another array of weights in each
 * iteration. */
static bool from_table(const Writer *w, const Buffer *buffer, int number)
{
    bool grows = false;
    for (int i = 0; i < w->nloop; i++)
        grows |= w->loop[i]->stride[w->at[i] + number] != 0;
    return grows && w->b->mode == WEIGHTS_ARRAY && buffer_root(buffer)->kind == BUF_WEIGHT;
}

static void table_name(Writer *w, const Step *s, int number)
{
    sb_printf(&w->sb, "w%d_%d", s->number, number);
}

/* The array that has byte `at` of the plan's weights, and the element that lies there. */
static void table_entry(Writer *w, ingot_dtype as, int64_t at)
{
    const Bundle *b = w->b;
    int lo = 0, hi = b->nweight - 1;
    while (lo < hi) {
        const int mid = (lo + hi + 1) / 2;
        *(b->weight[mid]->offset <= at ? &lo : &hi) = b->weight[mid]->offset <= at ? mid : mid - 1;
    }
    const Buffer *r = b->weight[lo];
    if (as != r->dtype)
        sb_printf(&w->sb, "(const %s *)", c_type(as));
    sb_puts(&w->sb, weight_name(b, r));
    if (at > r->offset)
        sb_printf(&w->sb, " + %lld", (long long)((at - r->offset) / c_element_bytes(as)));
}

/* static const float *const w7_2[] = {..}; by the loops around it, the outer ones first */
static void table(Writer *w, const Step *s, int number, ingot_dtype as)
{
    int count = 1;
    size_t start = 0; /* of the line */
    for (int i = 0; i < w->nloop; i++)
        if (w->loop[i]->stride[w->at[i] + number])
            count *= w->loop[i]->count;
    indent(w);
    sb_printf(&w->sb, "static const %s *const ", c_type(as));
    table_name(w, s, number);
    sb_puts(&w->sb, "[] = {");
    for (int k = 0; k < count; k++) {
        int64_t byte = w->loop[0]->number[w->at[0] + number];
        int left = k;
        for (int i = w->nloop - 1; i >= 0; i--) {
            const int64_t stride = w->loop[i]->stride[w->at[i] + number];
            byte += stride * (left % w->loop[i]->count);
            left /= stride ? w->loop[i]->count : 1;
        }
        const bool wrap = k == 0 || w->sb.len - start > 60;
        sb_puts(&w->sb, !k ? "\n    " : wrap ? ",\n    " : ", ");
        if (wrap) {
            indent(w);
            start = w->sb.len;
        }
        table_entry(w, as, byte);
    }
    sb_puts(&w->sb, "};\n");
}

static void tables(Writer *w, const Step *s)
{
    for (int i = 0; s->kind == STEP_KERNEL && i < s->kernel->narg; i++)
        if (kernel_has_param(s->kernel, i) && from_table(w, s->bufs[i], 1 + i))
            table(w, s, 1 + i, s->bufs[i]->dtype);
}

/* w7_2[16*i + j] */
static void table_place(Writer *w, const Step *s, int number)
{
    const char *plus = "";
    int64_t rest = 1;
    for (int i = 0; i < w->nloop; i++)
        if (w->loop[i]->stride[w->at[i] + number])
            rest *= w->loop[i]->count;
    table_name(w, s, number);
    sb_puts(&w->sb, "[");
    for (int i = 0; i < w->nloop; i++) {
        if (!w->loop[i]->stride[w->at[i] + number])
            continue;
        rest /= w->loop[i]->count;
        sb_puts(&w->sb, plus);
        if (rest > 1)
            sb_printf(&w->sb, "%lld*", (long long)rest);
        sb_printf(&w->sb, "%c", 'i' + i);
        plus = " + ";
    }
    sb_puts(&w->sb, "]");
}

static void step_number(Writer *w, const Step *s)
{
    sb_printf(&w->sb, "%d", s->number);
    growth(w, 0, 1);
}

/* "12: 'conv1' (Conv) + 'relu1' (Relu)  -> f32[1,64,56,56]  231 MFLOP, 1.75 MB" */
static void comment(Writer *w, const Step *s)
{
    const Bundle *b = w->b;
    StrBuf *sb = &w->sb;
    indent(w);
    sb_puts(sb, "/* ");
    step_number(w, s);
    sb_puts(sb, ": ");
    print_origins(sb, s, 3);
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

static void profile_line(Writer *w, const Step *s, const char *name)
{
    w->b->needs |= NEED_PROFILE;
    indent(w);
    sb_puts(&w->sb, "DONE(");
    step_number(w, s);
    sb_puts(&w->sb, ", ");
    print_string(&w->sb, name);
    sb_puts(&w->sb, ");\n");
}

/* The arguments of a kernel; untyped: as the members of its struct take them. */
static void arguments(Writer *w, const Step *s, bool untyped)
{
    Bundle *b = w->b;
    const Kernel *k = s->kernel;
    const char *separator = "";
    size_t start = w->sb.len;
    for (int i = 0; i < k->narg; i++) {
        if (!kernel_has_param(k, i))
            continue;
        const Buffer *buffer = s->bufs[i];
        bool wrap = *separator && w->sb.len - start > 60;
        sb_puts(&w->sb, wrap ? ",\n    " : separator);
        if (wrap) {
            indent(w);
            start = w->sb.len;
        }
        if (from_table(w, buffer, 1 + i)) {
            table_place(w, s, 1 + i);
        } else if (untyped && is_bytes(b, buffer)) {
            address_in_bytes(&w->sb, b, buffer);
            growth(w, 1 + i, 1);
        } else {
            address(&w->sb, b, buffer, NULL, k->args[i].written);
            growth(w, 1 + i, c_element_bytes(buffer->dtype));
        }
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
    if (k->scratch) {
        sb_printf(&w->sb, "%s%s + %lld", separator, memory_base(b, s->scratch),
                  (long long)s->scratch->offset);
        growth(w, 1 + s->nbuf, 1);
    }
}

static void kernel_call(Writer *w, const Step *s)
{
    indent(w);
    sb_printf(&w->sb, "%s_%s(", w->b->name, s->kernel->name);
    arguments(w, s, false);
    sb_puts(&w->sb, ");\n");
}

static void step_kernel(Writer *w, const Step *s)
{
    int parts = kernel_parts(s->kernel);
    if (w->b->gpu) {
        gpu_kernel(w, s);
    } else if (parts) {
        w->b->needs |= NEED_PARTS | NEED_PROFILE;
        indent(w);
        sb_puts(&w->sb, "RUN(");
        step_number(w, s);
        sb_printf(&w->sb, ", %s, %d, ", s->kernel->name, parts);
        arguments(w, s, true);
        sb_puts(&w->sb, ");\n");
        return;
    } else {
        kernel_call(w, s);
    }
    profile_line(w, s, s->kernel->name);
}

/* ---- kernels in parts ---------------------------------------------------------------------- */

/* struct k05_conv { void *a0; const void *a1, *a2; int64_t n_batch; }; */
static void parts_struct(StrBuf *sb, const Kernel *k)
{
    const char *const start[] = {" const void *", " void *"};
    int type = -1;
    sb_printf(sb, "\nstruct %s {", k->name);
    for (int i = 0; i < k->narg; i++) {
        if (!kernel_has_param(k, i))
            continue;
        if (type == k->args[i].written)
            sb_printf(sb, ", *a%d", i);
        else
            sb_printf(sb, "%s%sa%d", type < 0 ? "" : ";", start[k->args[i].written], i);
        type = k->args[i].written;
    }
    sb_puts(sb, ";");
    for (int i = 0; i < k->nvar; i++) {
        char name[VAR_NAME_BYTES];
        sb_printf(sb, " int64_t %s;", var_name(k->c, k->vars[i], name));
    }
    for (int i = 0; i < k->nscalar; i++)
        sb_printf(sb, " %s c%d;", scalar_type(&k->scalars[i]), i);
    sb_puts(sb, k->scratch ? " void *scratch; };\n" : " };\n");
}

static void parts_function(StrBuf *sb, const Bundle *b, const Kernel *k)
{
    sb_printf(sb,
              "static void %s(const void *arg, int64_t begin, int64_t end)\n{\n"
              "    const struct %s *const args = arg;\n    %s_%s(",
              k->name, k->name, b->name, k->name);
    for (int i = 0; i < k->narg; i++)
        if (kernel_has_param(k, i))
            sb_printf(sb, "args->a%d, ", i);
    for (int i = 0; i < k->nvar; i++) {
        char name[VAR_NAME_BYTES];
        sb_printf(sb, "args->%s, ", var_name(k->c, k->vars[i], name));
    }
    for (int i = 0; i < k->nscalar; i++)
        sb_printf(sb, "args->c%d, ", i);
    sb_printf(sb, "%sbegin, end);\n}\n", k->scratch ? "args->scratch, " : "");
}

static void parts_of_block(Writer *w, Map *known, const Block *steps)
{
    for (int i = 0; i < steps->n; i++) {
        const Step *s = steps->step[i];
        parts_of_block(w, known, &s->body);
        parts_of_block(w, known, &s->other);
        if (s->kind != STEP_KERNEL || !kernel_parts(s->kernel))
            continue;
        /* by name, which two kernels of equal text share (bundle_functions.c) */
        const uint64_t key = hash_bytes(0, s->kernel->name, strlen(s->kernel->name));
        if (map_get(known, key))
            continue;
        map_put(known, key, s->kernel);
        parts_struct(&w->sb, s->kernel);
        parts_function(&w->sb, w->b, s->kernel);
    }
}

void parts_functions(Writer *w)
{
    Map known = {0};
    parts_of_block(w, &known, &w->b->p->main);
    map_free(&known);
}

void open_outside(Writer *w)
{
    w->b->needs |= NEED_FAULT;
    sb_puts(&w->sb, "igrt_outside(&ctx->fault, ");
}

void run_outside(Writer *w, const char *what, Node *value, Node *least, Node *greatest)
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
    run_outside(w, origin_text(w->b, r->origin, r->what), r->value, r->least, r->greatest);
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
    run_outside(w, what, v->node, idx(b->c, v->lo), idx(b->c, v->hi));
    line(w, "    return IGRT_ERR_COUNT;");
}

/* With -D<NAME>_CHECK=1: the run ends where an index from data is out of range. */
static void step_index(Writer *w, const Step *s)
{
    Bundle *b = w->b;
    const char *what = arena_printf(b->a, "an index into axis %d", s->axis);
    sb_printf(&w->sb, "#if %s_CHECK\n", whole_upper(b));
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

/* Of a copy of what this process has: what all of them make of it. */
static void reduce_call(Writer *w, const Step *s)
{
    Bundle *b = w->b;
    line(w, "{");
    w->depth++;
    indent(w);
    sb_puts(&w->sb, "const igrt_status reduced = igrt_comm_reduce(&ctx->config, ");
    address(&w->sb, b, s->bufs[0], NULL, true);
    sb_puts(&w->sb, ", (size_t)");
    print_expr(&w->sb, b, s->elements);
    sb_printf(&w->sb, ", IGRT_%s, %d);\n", dtype_enum(s->bufs[0]->dtype),
              collective_of(s->collective).kind == ALL_MEAN);
    line(w, "if (reduced != IGRT_OK)");
    line(w, "    return reduced;");
    w->depth--;
    line(w, "}");
}

static void step_copy(Writer *w, const Step *s)
{
    Bundle *b = w->b;
    const Buffer *dst = s->bufs[0], *src = s->bufs[1];
    if (b->gpu) {
        gpu_copy(w, s);
        if (s->collective)
            gpu_all_reduce(w, s);
        profile_line(w, s, s->collective ? "all_reduce" : "copy");
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
    if (s->collective)
        reduce_call(w, s);
    profile_line(w, s, s->collective ? "all_reduce" : "copy");
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
              call->custom ? whole_name(b) : "igrt_lib", call->name, call->n_in ? "src" : "NULL",
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
    if (w->b->gpu && !gpu_on_host(s->cond)) {
        line(w, "{");
        w->depth++;
        gpu_branch(w, s);
        w->depth--;
        line(w, "}");
        return;
    }
    indent(w);
    sb_puts(&w->sb, "if (");
    condition(w, s->cond);
    sb_puts(&w->sb, ") {\n");
    run_steps(w, &s->body);
    if (s->other.n) {
        line(w, "} else {");
        run_steps(w, &s->other);
    }
    line(w, "}");
}

static void run_rolled(Writer *, int n, const Rolled *);

/* What the loops around it know of a step is written: they go on with the next one. */
static void pass_numbers(Writer *w, int n)
{
    for (int i = 0; i < w->nloop; i++)
        w->at[i] += n;
}

static void step_loop(Writer *w, const Rolled *r)
{
    const Step *s = r->step;
    Bundle *b = w->b;
    StrBuf *sb = &w->sb;
    pass_numbers(w, 1); /* its own: the body has the others */
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
        const bool asked = !gpu_on_host(s->cond);
        w->depth++;
        if (asked)
            gpu_condition(w, s);
        indent(w);
        sb_puts(sb, "if (!");
        if (asked)
            sb_printf(sb, "cond%d", s->number);
        else
            condition(w, s->cond);
        sb_puts(sb, ")\n");
        line(w, "    break;");
        w->depth--;
    }
    if (s->counter && s->counter->op == OP_VAR)
        line(w, "    %s = i%d;", sym_place(b, (int)s->counter->arg.i), s->number);
    run_rolled(w, r->nbody, r->body);
    line(w, "}");
    if (s->iterations && s->iterations->op == OP_VAR && s->iterations != s->trip) {
        set_count(w, s, (int)s->iterations->arg.i, arena_printf(b->a, "i%d", s->number));
    }
    w->depth--;
    line(w, "}");
}

static void run_step(Writer *w, const Rolled *r)
{
    const Step *s = r->step;
    if (s->kind != STEP_INDEX)
        comment(w, s);
    tables(w, s);
    switch (s->kind) {
    case STEP_KERNEL: step_kernel(w, s); break;
    case STEP_INDEX: step_index(w, s); break;
    case STEP_CALL: step_call(w, s); break;
    case STEP_COPY: step_copy(w, s); break;
    case STEP_IF: step_if(w, s); break;
    case STEP_LOOP: step_loop(w, r); return;
    case STEP_CHECK: step_check(w, s); break;
    }
    pass_numbers(w, r->nnumber);
}

static void run_rolled(Writer *w, int n, const Rolled *item)
{
    w->depth++;
    for (int i = 0; i < n; i++) {
        const Rolled *r = &item[i];
        sb_puts(&w->sb, i ? "\n" : "");
        if (r->step) {
            run_step(w, r);
        } else {
            char name = (char)('i' + w->nloop);
            line(w, "for (int %c = 0; %c < %d; %c++) {", name, name, r->count, name);
            w->loop[w->nloop] = r;
            w->at[w->nloop++] = 0;
            run_rolled(w, r->nbody, r->body);
            w->nloop--;
            line(w, "}");
        }
    }
    w->depth--;
}

void run_steps(Writer *w, const Block *b)
{
    int n;
    const Rolled *item = roll_steps(w->b, b, &n);
    run_rolled(w, n, item);
}
