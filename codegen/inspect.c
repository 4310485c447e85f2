/* inspect.c - the plan as JSON, for people's tools and for tests. */
#include <string.h>

#include "codegen.h"

static void string(StrBuf *sb, const char *s)
{
    sb_puts(sb, "\"");
    for (; s && *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            sb_printf(sb, "\\%c", c);
        else if (c < ' ' || c > '~')
            sb_printf(sb, "\\u%04x", c); /* byte by byte: what the file had, if not as UTF-8 */
        else
            sb_write(sb, s, 1);
    }
    sb_puts(sb, "\"");
}

static void tensors(StrBuf *sb, const Plan *p, Buffer **list, int n, const char *what)
{
    sb_printf(sb, "  \"%s\": [", what);
    for (int i = 0; i < n; i++) {
        const Buffer *b = list[i];
        sb_puts(sb, i ? ",\n    {\"name\": " : "\n    {\"name\": ");
        string(sb, b->name);
        sb_printf(sb, ", \"dtype\": \"%s\", \"dims\": [", dtype_info[b->dtype].name);
        for (int d = 0; d < b->rank; d++) {
            StrBuf dim = {0};
            sb_puts(sb, d ? ", " : "");
            if (b->dims[d]->op == OP_CONST) {
                sb_printf(sb, "%lld", (long long)b->dims[d]->arg.i);
            } else {
                print_dim(&dim, p->c, b->dims[d]);
                string(sb, dim.data);
            }
            sb_free(&dim);
        }
        sb_printf(sb, "], \"max_bytes\": %lld}", (long long)b->bytes);
    }
    sb_puts(sb, n ? "\n  ],\n" : "],\n");
}

static void opts(StrBuf *sb, const Kernel *k)
{
    sb_puts(sb, ", \"opts\": [");
    for (int i = 0; k && i < k->nopt; i++) {
        StrBuf one = {0};
        opt_print(&one, &k->opts[i]);
        sb_puts(sb, i ? ", " : "");
        string(sb, one.data);
        sb_free(&one);
    }
    sb_puts(sb, "]");
}

static void steps(StrBuf *sb, const Block *block, const char *branch, bool *first)
{
    static const char *const kinds[] = {[STEP_KERNEL] = "generated", [STEP_CALL] = "library",
                                        [STEP_COPY] = "copy",        [STEP_IF] = "if",
                                        [STEP_LOOP] = "loop",        [STEP_CHECK] = "check"};
    for (int i = 0; i < block->n; i++) {
        const Step *s = block->step[i];
        if (s->kind == STEP_INDEX)
            continue; /* not in what is released */
        const Kernel *k = s->kind == STEP_KERNEL ? s->kernel : NULL;
        int64_t bytes = k ? k->bytes : 0;
        if (s->kind == STEP_COPY)
            bytes = sat_mul(2 * element_bytes(s->bufs[0]->dtype), s->elements->hi);
        for (int j = 0; s->kind == STEP_CALL && j < s->nbuf; j++)
            bytes = sat_add(bytes, s->bufs[j]->bytes);
        sb_printf(sb, "%s\n    {\"step\": %d, \"kind\": \"%s\", \"name\": ", *first ? "" : ",",
                  s->number, kinds[s->kind]);
        *first = false;
        string(sb, k ? k->name : s->name);
        if (*branch)
            sb_printf(sb, ", \"inside\": \"%s\"", branch);
        sb_puts(sb, ", \"source\": [");
        for (int j = 0; j < s->norigin; j++) {
            sb_puts(sb, j ? ", {\"node\": " : "{\"node\": ");
            string(sb, s->origins[j]->node);
            sb_puts(sb, ", \"op\": ");
            string(sb, s->origins[j]->op);
            sb_puts(sb, "}");
        }
        sb_puts(sb, "]");
        opts(sb, k);
        sb_printf(sb, ", \"flops\": %lld, \"bytes\": %lld}", (long long)(k ? k->flops : 0),
                  (long long)bytes);
        char inside[32];
        snprintf(inside, sizeof inside, "%d", s->number);
        steps(sb, &s->body, inside, first);
        steps(sb, &s->other, inside, first);
    }
}

/* Of --memory: its size as told (null: none), and what is used of it. */
static void memories(StrBuf *sb, const Plan *p)
{
    for (int i = 0; i < p->nmemory && p->memories[i].name; i++) {
        const Memory *m = &p->memories[i];
        sb_printf(sb, "%s{\"name\": \"%s\", \"size\": ", i ? ",\n    " : "  \"memories\": [\n    ",
                  m->name);
        if (m->limit)
            sb_printf(sb, "%lld", (long long)m->limit);
        else
            sb_puts(sb, "null");
        sb_printf(sb, ", \"bytes\": %lld}%s", (long long)m->bytes,
                  i + 1 < p->nmemory ? "" : "\n  ],\n");
    }
}

void inspect_json(StrBuf *sb, Plan *p, const ingot_options *o)
{
    int64_t flops = 0;
    int kernels = 0;
    for (int i = 0; i < p->nkernel; i++)
        if (!p->kernels[i]->check) {
            flops = sat_add(flops, p->kernels[i]->flops);
            kernels++;
        }
    sb_puts(sb, "{\n  \"model\": ");
    string(sb, o->name ? o->name : "model");
    sb_printf(sb,
              ",\n  \"arena_bytes\": %lld,\n  \"state_bytes\": %lld,\n  \"weights_bytes\": %lld,\n"
              "  \"kernels\": %d,\n",
              (long long)p->arena_bytes, (long long)p->state_bytes, (long long)p->weights_bytes,
              kernels);
    memories(sb, p);
    tensors(sb, p, p->input, p->c->ninput, "inputs");
    tensors(sb, p, p->output, p->c->noutput, "outputs");
    tensors(sb, p, p->state, p->c->nstate, "states");
    sb_puts(sb, "  \"steps\": [");
    bool first = true;
    steps(sb, &p->main, "", &first);
    sb_puts(sb, first ? "]\n}\n" : "\n  ]\n}\n");
}
