/* inspect.c - a plan and where it came from as JSON (docs/report.md), for people's tools, for tests
 * and for the page. */
#include <string.h>

#include "inspect.h"
#include "segments.h"

static void classes_list(StrBuf *sb, const Classes *k)
{
    sb_puts(sb, ", \"classes\": [");
    for (int i = 0; i < k->n; i++) {
        sb_puts(sb, i ? ", " : "");
        if (k->name)
            json_string(sb, k->name[i]);
        else
            sb_printf(sb, "%lld", (long long)k->number[i]);
    }
    sb_puts(sb, "]");
}

static void tensors(StrBuf *sb, const Plan *p, Buffer **list, int n, const char *what)
{
    bool outputs = list == p->output;
    sb_printf(sb, "  \"%s\": [", what);
    for (int i = 0; i < n; i++) {
        const Buffer *b = list[i];
        sb_puts(sb, i ? ",\n    {\"name\": " : "\n    {\"name\": ");
        json_string(sb, b->name ? b->name : "");
        sb_printf(sb, ", \"dtype\": \"%s\", \"dims\": [", dtype_info[b->dtype].name);
        for (int d = 0; d < b->rank; d++) {
            StrBuf dim = {0};
            sb_puts(sb, d ? ", " : "");
            if (b->dims[d]->op == OP_CONST) {
                sb_printf(sb, "%lld", (long long)b->dims[d]->arg.i);
            } else {
                print_dim(&dim, p->c, b->dims[d]);
                json_string(sb, dim.data);
            }
            sb_free(&dim);
        }
        sb_printf(sb, "], \"max_bytes\": %lld, \"tensor\": %d", (long long)b->bytes, b->id);
        if (outputs && p->c->outputs[i].classes)
            classes_list(sb, p->c->outputs[i].classes);
        sb_puts(sb, "}");
    }
    sb_puts(sb, n ? "\n  ],\n" : "],\n");
}

/* Of --memory, and of several devices: its size as told (null: none), and what is used of it. */
static void memories(StrBuf *sb, const Plan *p)
{
    for (int i = 0; i < p->nmemory && (p->memories[0].name || p->ndevice > 1); i++) {
        const Memory *m = &p->memories[i];
        sb_printf(sb, "%s{\"name\": ", i ? ",\n    " : "  \"memories\": [\n    ");
        if (m->name || !m->device)
            json_string(sb, m->name ? m->name : "arena");
        else
            sb_printf(sb, "\"arena of device %d\"", m->device);
        sb_printf(sb, ", \"device\": %d, \"size\": ", m->device);
        if (m->limit)
            sb_printf(sb, "%lld", (long long)m->limit);
        else
            sb_puts(sb, "null");
        sb_printf(sb, ", \"bytes\": %lld", (long long)m->bytes);
        if (i == memories_from(p, m->device))
            sb_printf(sb, ", \"weights\": %lld", (long long)device_weights(p, m->device));
        sb_puts(sb, i + 1 < p->nmemory ? "}" : "}\n  ],\n");
    }
}

/* The file's name; the folder's too where the name alone says nothing: resnet18/model.onnx. */
static const char *file_shown(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *at = name;
    if (slash && !strncmp(name, "model.", strlen("model.")))
        for (at = slash; at > path && at[-1] != '/'; at--)
            ;
    return at == slash ? name : at;
}

static void head(StrBuf *sb, const Inspection *x)
{
    const Plan *p = x->p;
    const ingot_options *o = x->o;
    const char *file = file_shown(o->source ? o->source : "");
    int kernels = 0;
    for (int i = 0; i < p->nkernel; i++)
        kernels += !p->kernels[i]->check;
    sb_printf(sb, "{\n  \"format\": \"ingot inspect\",\n  \"version\": %d,\n  \"model\": ",
              INSPECT_VERSION);
    json_string(sb, o->name ? o->name : "model");
    sb_puts(sb, ",\n  \"file\": ");
    json_string(sb, file);
    sb_puts(sb, ",\n  \"target\": ");
    json_string(sb, o->target ? o->target : "c");
    sb_printf(sb,
              ",\n  \"opt_level\": %d,\n  \"arena_bytes\": %lld,\n  \"state_bytes\": %lld,\n"
              "  \"weights_bytes\": %lld,\n  \"kernels\": %d,\n",
              o->naive ? 0 : 2, (long long)p->arena_bytes, (long long)p->state_bytes,
              (long long)p->weights_bytes, kernels);
    sb_printf(sb,
              "  \"machine\": {\"measured\": %s, \"threads\": %d, \"peak_gflops\": %.6g, "
              "\"cache_gbps\": %.6g, \"memory_gbps\": %.6g},\n",
              x->times.measured ? "true" : "false", x->times.threads, x->times.gflops,
              x->times.cache_gbps, x->times.memory_gbps);
}

static void firmware(StrBuf *sb, const struct Takes *x)
{
    sb_printf(sb, "  \"firmware\": {\"measured\": %s, \"flash_bytes\": %lld, \"ram_bytes\": %lld",
              x->compiler ? "true" : "false", (long long)x->flash, (long long)x->ram);
    if (x->compiler) {
        sb_puts(sb, ", \"compiler\": ");
        json_string(sb, x->compiler);
    }
    if (x->compiler && x->stack >= 0)
        sb_printf(sb, ", \"stack_bytes\": %lld", (long long)x->stack);
    sb_puts(sb, "},\n");
}

/* Constants that a function reads. */
static int64_t weights_read(const Plan *p)
{
    int64_t bytes = 0;
    for (int i = 0; i < p->nbuffer; i++) {
        const Buffer *b = p->buffers[i];
        bytes += b->kind == BUF_WEIGHT && !b->base && b->last >= 0 ? b->bytes : 0;
    }
    return bytes;
}

/* Of a model with several: which one this is of, and what each takes. */
static void functions(StrBuf *sb, const Inspection *x)
{
    const Context *c = x->p->c;
    Arena *a = arena_new();
    sb_puts(sb, "  \"function\": ");
    json_string(sb, function_name(c));
    sb_puts(sb, ",\n  \"functions\": [");
    for (int i = 0; i < x->nplan; i++) {
        const Plan *p = x->plans[i];
        Step **step = plan_steps(p, a);
        const int64_t *rounds = plan_rounds(p, a);
        double flops = 0, bytes = 0, ms = 0;
        for (int k = 0; k < p->nstep; k++) {
            const double f = (double)(step_flops(step[k]) * rounds[k]),
                         b = (double)(step_bytes(step[k]) * rounds[k]);
            flops += f;
            bytes += b;
            ms += times_roof_ms(&x->times, f, b);
        }
        sb_puts(sb, i ? ",\n    {\"name\": " : "\n    {\"name\": ");
        json_string(sb, c->functions[i].name);
        sb_printf(sb,
                  ", \"steps\": %d, \"kernels\": %d, \"flops\": %.0f, \"bytes\": %.0f, "
                  "\"weights_bytes\": %lld, \"roof_ms\": %.6g}",
                  p->nstep, p->nkernel, flops, bytes, (long long)weights_read(p), ms);
    }
    sb_puts(sb, "\n  ],\n");
    arena_free(a);
}

void inspect_json(StrBuf *sb, const Inspection *x)
{
    const Plan *p = x->p;
    head(sb, x);
    if (x->nplan)
        functions(sb, x);
    if (x->takes)
        firmware(sb, x->takes);
    memories(sb, p);
    tensors(sb, p, p->input, p->c->ninput, "inputs");
    tensors(sb, p, p->output, p->c->noutput, "outputs");
    tensors(sb, p, p->state, p->c->nstate, "states");
    inspect_steps(sb, x);
    inspect_tensors(sb, x);
    inspect_notes(sb, x);
    inspect_graphs(sb, x);
    inspect_kernels(sb, x);
    sb_puts(sb, "}\n");
}
