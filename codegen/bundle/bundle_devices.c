/* bundle_devices.c - run() of a plan for several devices: what each does between two waits as a
 * function, and the table that says who waits for whom (plan/segments.c).
 *
 *     static igrt_status segment_3(model_ctx *ctx, const model_inputs *in, model_outputs *out)
 *     static const igrt_devices devices = {4, 2, segment_device, &segment_waits[0][0],
 * run_segment}; */
#include "bundle_writer.h"
#include "segments.h"

/* One segment; what it needs of run() itself is added to `needs`. */
static void segment_function(Writer *w, const Segment *s, int number, unsigned *needs)
{
    Bundle *b = w->b;
    Writer body = {.b = b};
    run_steps(&body, &s->block);
    *needs |= b->needs & NEED_FAULT;
    b->needs &= ~(unsigned)NEED_FAULT;
    sb_printf(&w->sb,
              "\n/* device %d */\nstatic igrt_status segment_%d(%s_ctx *ctx, const %s_inputs *in, "
              "%s_outputs *out)\n{\n",
              s->device, number, b->name, b->io, b->io);
    w->depth = 1;
    const unsigned given = b->needs;
    run_locals(w, steps_have(&s->block, STEP_CALL));
    if (!(given & NEED_INPUTS))
        line(w, "(void)in;");
    if (!(given & NEED_OUTPUTS))
        line(w, "(void)out;");
    sb_puts(&w->sb, body.sb.data ? body.sb.data : "");
    line(w, "return IGRT_OK;");
    sb_puts(&w->sb, "}\n");
    w->depth = 0;
    sb_free(&body.sb);
}

static void segment_tables(StrBuf *sb, const Segments *s)
{
    sb_puts(sb, "\nstatic const unsigned char segment_device[] = {");
    for (int i = 0; i < s->n; i++)
        sb_printf(sb, "%s%d", !i ? "" : i % 24 ? ", " : ",\n    ", s->segment[i].device);
    sb_printf(sb,
              "};\n/* How many segments of each device are done before. */\n"
              "static const int segment_waits[][%d] = {\n",
              s->ndevice);
    for (int i = 0; i < s->n; i++) {
        sb_puts(sb, "    {");
        for (int d = 0; d < s->ndevice; d++)
            sb_printf(sb, "%s%d", d ? ", " : "", s->segment[i].waits[d]);
        sb_puts(sb, "},\n");
    }
    sb_puts(sb, "};\n");
}

void devices_functions(Writer *w)
{
    Bundle *b = w->b;
    if (b->p->ndevice < 2)
        return;
    const Segments s = plan_segments(b->a, b->p);
    unsigned needs = 0;
    for (int i = 0; i < s.n; i++)
        segment_function(w, &s.segment[i], i, &needs);
    StrBuf *sb = &w->sb;
    sb_printf(sb,
              "\nstruct run {\n    %s_ctx *ctx;\n    const %s_inputs *in;\n    %s_outputs *out;\n};"
              "\n\nstatic igrt_status run_segment(const void *arg, int segment)\n{\n"
              "    static igrt_status (*const function[])(%s_ctx *, const %s_inputs *, "
              "%s_outputs *) = {\n",
              b->name, b->io, b->io, b->name, b->io, b->io);
    for (int i = 0; i < s.n; i++)
        sb_printf(sb, "        segment_%d,\n", i);
    sb_puts(sb, "    };\n    const struct run *run = arg;\n"
                "    return function[segment](run->ctx, run->in, run->out);\n}\n");
    segment_tables(sb, &s);
    b->needs |= needs;
}

void devices_run(Writer *w)
{
    const Plan *p = w->b->p;
    Arena *a = arena_new();
    line(w, "static const igrt_devices devices = {%d, %d, segment_device, &segment_waits[0][0],",
         plan_segments(a, p).n, p->ndevice);
    line(w, "                                     run_segment};");
    line(w, "const struct run run = {ctx, in, out};");
    line(w, "const igrt_status ended = igrt_devices_run(&ctx->config, &devices, &run);");
    line(w, "if (ended != IGRT_OK)");
    line(w, "    return ended;");
    arena_free(a);
}
