/* bundle_dims.c - run-time integers as run() reads them off the inputs, checks them and gives those
 * of the outputs. */
#include "bundle_writer.h"

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
    run_outside(w, what, v->node, idx(w->b->c, v->lo), idx(w->b->c, v->hi));
    line(w, "    return IGRT_ERR_DIM;");
}

/* The first input dim that is just a variable sets it; then every bound and every dim is checked.
 * What is absent has the least dims, and is never read. */
void run_dims_in(Writer *w)
{
    Bundle *b = w->b;
    StrBuf *sb = &w->sb;
    bool *set = NEWN(b->a, bool, b->c->nvar + 1);
    for (int i = 0; i < b->c->nvar; i++) {
        const Var *v = &b->c->vars[i];
        if (!(set[i] = v->length))
            continue;
        run_outside(w, arena_printf(b->a, "the length of the states, '%s'", v->name), v->node,
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
            run_outside(w, what, v->node, idx(b->c, v->lo), idx(b->c, v->hi));
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

void run_dims_out(Writer *w)
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
void run_lengths_out(Writer *w)
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
