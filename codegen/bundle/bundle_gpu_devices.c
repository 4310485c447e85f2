/* bundle_gpu_devices.c - bundles for several GPUs: memory, kernels and a stream of each, and steps
 * that go from one to another (igrt_gpus.h).
 *
 *     gpu = turn(ctx, 1);                      what comes next is of device 1
 *     TRY(igrt_gpus_wait(.., ctx->mark[3]));   behind a copy to it
 *     TRY(igrt_gpu_launch(gpu, kernel[K04_DENSE], ..));
 *     TRY(igrt_gpus_cross(gpu, ..));           and its term of a sum is sent to device 0
 *
 * Copies of few bytes are sent: they need no other wait, and a device sends and takes at once what
 * stands together (plan/segments.c). All others have a queue for each device, and who reads or
 * overwrites what they touch waits for a mark. */
#include <string.h>

#include "bundle_gpu.h"
#include "igrt_gpus.h"
#include "segments.h"

enum { SENT = 256 << 10, MARK_BYTES = 16, SENT_WORD = 8, SENT_ALIGN = 256 };

/* Those that stand together on a device and are not written yet. */
typedef struct {
    Crossing x[IGRT_CROSSINGS];
    int n;
} Crossings;

typedef struct {
    Writer *w;
    Segments s;
    int *mark;     /* by segment: the number of its mark; 0: nobody waits for it */
    int at;        /* the queue at hand */
    int64_t *slot; /* by number of the step: where its bytes cross, in the memory that takes them */
    /* by number of the step: when it is sent, and taken, in the order of all steps */
    int *sent, *taken;
    Crossings open[MOST_DEVICES];
    int launches; /* of crossings */
    bool copies;  /* some step is a copy of a queue */
    Plan *asks;   /* nothing is written yet: which kernels let values cross themselves; or NULL */
} Queues;

Segments gpu_queues(const Plan *p, Arena *a)
{
    return plan_queues(a, p, SENT);
}

/* ---- what the context has -------------------------------------------------------------------- */

/* Of all functions the marks, each of which belongs to the device that makes it, so no two share
 * them; and of bytes where values cross the most, by device. */
static int marks_and_slots(const Bundle *b, int64_t *slots)
{
    Arena *a = arena_new();
    int marks = 0;
    for (int f = 0; f <= b->nfunction; f++) {
        const Bundle *of = f ? &b->function[f - 1] : b;
        const Segments s = gpu_queues(of->p, a);
        int64_t bytes[MOST_DEVICES] = {0};
        for (int i = 0; i < s.n; i++)
            for (int k = 0; k < s.segment[i].block.n; k++)
                if (s.segment[i].part[k] == STEP_TAKES)
                    bytes[s.segment[i].device] = sat_add(
                        bytes[s.segment[i].device], gpu_slot_bytes(s.segment[i].block.step[k]));
        for (int d = 0; d < b->p->ndevice; d++)
            slots[d] = slots[d] > bytes[d] ? slots[d] : bytes[d];
        marks += s.n;
    }
    arena_free(a);
    return marks;
}

int64_t gpu_slot_bytes(const Step *s)
{
    const int64_t bytes = sat_mul(s->elements->hi, element_bytes(s->bufs[0]->dtype)),
                  words = ceil_div(bytes, SENT_WORD);
    return ceil_div(sat_mul(words, MARK_BYTES), SENT_ALIGN) * SENT_ALIGN;
}

void gpu_devices_members(StrBuf *sb, const Bundle *b)
{
    const int n = b->p->ndevice;
    int64_t slots[MOST_DEVICES] = {0};
    const int marks = marks_and_slots(b, slots) + 2 * n;
    sb_printf(sb,
              "    igrt_cu beside[%d]; /* the other devices, and queues of copies to each */\n"
              "    igrt_gpus gpus;\n"
              "    int queue; /* at hand */\n"
              "    void *program[%d], *cross[%d];\n"
              "    igrt_cu_mem slot[%d]; /* by device: where values cross to it */\n"
              "    void *mark[%d]; /* the first: of the queues; then by segment */\n",
              2 * n - 1, n, n, n, marks);
}

/* queue(), turn(); all queues begin together, and the first goes on behind all of them. */
void gpu_devices_functions(StrBuf *sb, const Bundle *b)
{
    const char *n = b->name;
    sb_printf(sb,
              "\nenum { DEVICES = %d, QUEUES = 2 * DEVICES };\n"
              "\nstatic igrt_gpu *queue(%s_ctx *ctx, int i)\n{\n"
              "    return i ? &ctx->beside[i - 1] : &ctx->gpu;\n}\n"
              "\n/* From here on steps are this queue's. */\n"
              "static igrt_gpu *turn(%s_ctx *ctx, int to)\n{\n"
              "    igrt_gpu *const from = queue(ctx, ctx->queue);\n"
              "    ctx->queue = to;\n"
              "    return igrt_gpus_turn(from, queue(ctx, to), ctx->config.profile != NULL);\n}\n",
              b->p->ndevice, n, n);
}

/* What a run that failed has sent. */
static const char *clear_slots(const Bundle *b)
{
    StrBuf sb = {0};
    int64_t slots[MOST_DEVICES] = {0}, all = 0;
    (void)marks_and_slots(b->first ? b->first : b, slots);
    for (int d = 0; d < b->p->ndevice; d++) {
        sb_printf(&sb, "%s%lld", d ? ", " : "", (long long)slots[d]);
        all += slots[d];
    }
    const char *bytes = sb_take(&sb, b->a);
    return all ? arena_printf(
                     b->a,
                     "    if (status != IGRT_OK)\n"
                     "        igrt_gpus_clear(&ctx->gpus, gpu, ctx->beside, DEVICES, ctx->slot,\n"
                     "                        (const size_t[]){%s});\n",
                     bytes)
               : "";
}

/* Around the steps of a run. */
void gpu_devices_enqueue(StrBuf *sb, const Bundle *b)
{
    sb_printf(sb,
              "\nstatic igrt_status enqueue(%s_ctx *ctx)\n{\n"
              "    TRY(igrt_gpus_mark(&ctx->gpu, &ctx->mark[0]));\n"
              "    for (int i = 1; i < QUEUES && !ctx->gpu.updates; i++)\n"
              "        TRY(igrt_gpus_wait(&ctx->gpus, queue(ctx, i), ctx->mark[0]));\n"
              "    const igrt_status status = enqueue_steps(ctx);\n"
              "    igrt_gpu *const gpu = turn(ctx, 0);\n%s"
              "    TRY(status);\n"
              "    for (int i = 1; i < QUEUES && !gpu->updates; i++) {\n"
              "        TRY(igrt_gpus_mark(queue(ctx, i), &ctx->mark[i]));\n"
              "        TRY(igrt_gpus_wait(&ctx->gpus, gpu, ctx->mark[i]));\n"
              "    }\n"
              "    return IGRT_OK;\n}\n",
              b->name, clear_slots(b));
}

/* Devices, and of each the program and its kernels. */
void gpu_devices_start(StrBuf *sb, const Bundle *b)
{
    const char *n = b->name, *u = b->upper;
    sb_puts(sb, "    TRY(igrt_gpus_open(&ctx->gpus, gpu, ctx->beside, DEVICES, &ctx->config, "
                "&ctx->fault));\n");
    if (b->mode == WEIGHTS_BLOB)
        sb_printf(sb, "    TRY(igrt_weights_check(&ctx->config, %s_WEIGHTS_SUM));\n", u);
    sb_printf(sb,
              "    for (int d = 0; d < DEVICES; d++) {\n"
              "        igrt_gpu *const of = queue(ctx, d);\n"
              "        TRY(igrt_gpu_load(of, %s_program, %s_PROGRAM_PARTS, %d, "
              "&ctx->program[d]));\n"
              "        TRY(igrt_gpu_find(of, ctx->program[d], \"igrt_cross\", 0, "
              "&ctx->cross[d]));\n",
              n, u, !b->c->keep_subnormals);
    if (b->nkernel)
        sb_printf(sb,
                  "        for (int i = 0; i < %s_KERNELS; i++)\n"
                  "            TRY(igrt_gpu_find(of, ctx->program[d], %s_kernel_name[i], %s, "
                  "&ctx->kernel[d][i]));\n",
                  u, n, b->gpu->shared ? "shared[i]" : "0");
    sb_puts(sb, "    }\n");
}

/* Where values cross, which nobody has marked yet. */
void gpu_devices_slots(StrBuf *sb, const Bundle *b)
{
    int64_t slots[MOST_DEVICES] = {0};
    (void)marks_and_slots(b, slots);
    for (int d = 0; d < b->p->ndevice; d++) {
        if (!slots[d])
            continue;
        sb_printf(sb,
                  "    TRY(igrt_gpus_slot(&ctx->gpus, queue(ctx, %d), %lld, &ctx->slot[%d]));\n", d,
                  (long long)slots[d], d);
    }
}

void gpu_devices_reset(StrBuf *sb, const Bundle *b)
{
    bool begun = false;
    for (int d = 0; d < b->p->ndevice; d++) {
        const int64_t bytes = b->p->memories[memories_from(b->p, d)].states;
        if (!bytes)
            continue;
        if (d && !begun) /* a graph is in the first one's stream, all of it */
            sb_puts(sb, "    TRY(igrt_gpu_finish(&ctx->gpu)); /* the run before, of all GPUs */\n");
        begun = true;
        gpu_zero_states(sb, b, d, bytes);
    }
}

/* Before the first device is closed. */
void gpu_devices_release(StrBuf *sb)
{
    sb_puts(sb, "    for (size_t i = 0; i < sizeof ctx->mark / sizeof *ctx->mark; i++)\n"
                "        igrt_gpus_free_mark(gpu, ctx->mark[i]);\n"
                "    for (int d = 0; d < DEVICES; d++) {\n"
                "        igrt_gpus_free_slot(&ctx->gpus, queue(ctx, d), ctx->slot[d]);\n"
                "        if (d)\n"
                "            igrt_cu_free_module(queue(ctx, d), ctx->program[d]);\n"
                "    }\n"
                "    igrt_gpus_close(ctx->beside, DEVICES);\n");
}

/* ---- steps ----------------------------------------------------------------------------------- */

static bool is_device(const Queues *q, int queue)
{
    return queue < q->s.ndevice / 2; /* and behind them the queues of copies */
}

static void turn_to(Queues *q, int queue)
{
    if (q->at == queue)
        return;
    q->w->b->needs |= NEED_GPU;
    line(q->w, "gpu = turn(ctx, %d);", queue);
    if (is_device(q, queue))
        line(q->w, "kernel = ctx->kernel[%d];", queue);
    q->at = queue;
}

/* "{mem[MEM_ARENA1_256] + 0, ctx->slot[1] + 512, (uint32_t)(4096), 1}," */
static void crossing_line(Queues *q, const Crossing *x)
{
    Writer *w = q->w;
    const Step *s = x->step;
    const bool takes = x->part == STEP_TAKES;
    const char *slot =
        arena_printf(w->b->a, "ctx->slot[%d] + %lld", s->device, (long long)q->slot[s->number]);
    indent(w);
    sb_puts(&w->sb, "    {");
    if (takes)
        gpu_copy_place(w, s, 0);
    else
        sb_puts(&w->sb, slot);
    sb_puts(&w->sb, ", ");
    if (takes)
        sb_puts(&w->sb, slot);
    else
        gpu_copy_place(w, s, 1);
    sb_puts(&w->sb, ", (uint32_t)(");
    gpu_copy_bytes(w, s);
    sb_printf(&w->sb, "), %d},\n", takes);
}

/* Those that are open, of this part: what is sent stands first; how many there are. */
static int crossing_lines(Queues *q, StepPart part)
{
    const Crossings *open = &q->open[q->at];
    int n = 0;
    for (int i = 0; i < open->n; i++)
        if (open->x[i].part == part) {
            crossing_line(q, &open->x[i]);
            n++;
        }
    return n;
}

/* Where one step runs after the other it is sent here, so that who takes it finds it. */
static void send_apart(Queues *q, const Crossing *x)
{
    Writer *w = q->w;
    line(w, "if (igrt_gpus_apart(&ctx->gpus, gpu)) {");
    w->depth++;
    line(w, "const igrt_crossing x[] = {");
    crossing_line(q, x);
    line(w, "};");
    line(w, "TRY(igrt_gpus_cross(gpu, ctx->cross[%d], 1, x));", q->at);
    w->depth--;
    line(w, "}");
}

/* "const igrt_crossing x[] = {..};" of all that is open on the device at hand: what is sent first.
 */
static int crossing_list(Queues *q, int *sends)
{
    line(q->w, "const igrt_crossing x[] = {");
    *sends = crossing_lines(q, STEP_SENDS);
    const int all = *sends + crossing_lines(q, STEP_TAKES);
    line(q->w, "};");
    return all;
}

/* What is open on the device at hand, as one launch. */
static void end_crossings(Queues *q)
{
    Writer *w = q->w;
    Crossings *open = is_device(q, q->at) ? &q->open[q->at] : NULL;
    if (!open || !open->n)
        return;
    if (q->asks) {
        open->n = 0;
        return;
    }
    const Step *last = open->x[open->n - 1].step;
    int64_t size;
    bool kept = w->b->gpu->records && w->b->gpu->sized; /* the same, whatever sizes a run has */
    for (int i = 0; i < open->n; i++)
        kept &= idx_value(open->x[i].step->elements, &size);
    line(w, "{");
    w->depth++;
    int sends;
    const int all = crossing_list(q, &sends), takes = all - sends;
    if (kept)
        line(w, "if (!igrt_gpu_keeps(gpu)) {");
    if (sends)
        line(w, "const int sent = igrt_gpus_apart(&ctx->gpus, gpu) ? %d : 0; /* already */", sends);
    else
        line(w, "const int sent = 0;");
    line(w, "TRY(igrt_gpus_cross(gpu, ctx->cross[%d], %d - sent, x + sent));", q->at, all);
    if (kept)
        line(w, "}");
    q->launches++;
    w->depth--;
    line(w, "}");
    if (takes)
        line(w, "DONE(%d, \"copy\");", last->number);
    w->b->needs |= takes ? NEED_PROFILE : 0;
    open->n = 0;
}

/* May it be one launch with those that are open? Not where one takes what another one sends, or
 * what comes after that has arrived. */
static bool stands_together(const Queues *q, const Crossings *open, const Crossing *y)
{
    for (int i = 0; i < open->n; i++) {
        const Crossing *x = &open->x[i];
        if (x->part == STEP_SENDS && y->part == STEP_TAKES &&
            q->sent[y->step->number] > q->taken[x->step->number])
            return false;
        if (x->part == y->part)
            continue;
        const Buffer *to = buffer_root((y->part == STEP_TAKES ? y : x)->step->bufs[0]),
                     *from = buffer_root((y->part == STEP_TAKES ? x : y)->step->bufs[1]);
        if (to->kind == from->kind && to->memory == from->memory &&
            to->offset < from->offset + from->bytes && from->offset < to->offset + to->bytes)
            return false;
    }
    return open->n < IGRT_CROSSINGS;
}

static void cross(Queues *q, const Step *s, StepPart part)
{
    const Crossing x = {s, part};
    Crossings *open = &q->open[q->at];
    if (!stands_together(q, open, &x))
        end_crossings(q);
    if (part == STEP_SENDS && !q->asks)
        send_apart(q, &x);
    open->x[open->n++] = x;
}

/* Those that are open, by the kernel behind them: its launch has them as `all`. */
static void crossing_kernel(Queues *q, const Step *s)
{
    Writer *w = q->w;
    Crossings *open = &q->open[q->at];
    const Block one = {.step = (Step **)&s, .n = 1};
    const Step *last = open->x[open->n - 1].step;
    line(w, "{");
    w->depth++;
    int sends;
    const int all = crossing_list(q, &sends), takes = all - sends;
    line(w, "const int sent = igrt_gpus_apart(&ctx->gpus, gpu) ? %d : 0; /* already */", sends);
    line(w, "igrt_crossings all = igrt_gpus_crossings(%d - sent, x + sent);", all);
    if (takes)
        line(w, "DONE(%d, \"copy\");", last->number);
    w->b->needs |= takes ? NEED_PROFILE : 0;
    open->n = 0;
    run_steps(w, &one);
    w->depth--;
    line(w, "}");
}

/* The kernel at hand lets those that are open cross itself, if it can. */
static void ask_kernel(Queues *q, Step *s)
{
    Crossings *open = is_device(q, q->at) ? &q->open[q->at] : NULL;
    Kernel *k = open && open->n ? gpu_crossing_kernel(q->asks, s, open->x, open->n) : NULL;
    if (k)
        s->kernel = k;
    end_crossings(q);
}

static void whole_steps(Queues *q, const Segment *x, int from, int to)
{
    Step *first = x->block.step[from];
    if (q->asks) {
        ask_kernel(q, first);
        return;
    }
    const bool crosses = first->kind == STEP_KERNEL && first->kernel->crosses;
    if (crosses)
        crossing_kernel(q, first);
    const Block some = {.step = x->block.step + from + crosses, .n = to - from - crosses};
    q->copies |= steps_have(&some, STEP_COPY);
    end_crossings(q);
    q->w->depth--;
    run_steps(q->w, &some);
    q->w->depth++;
}

/* Sends and takes that stand together are written behind the last of them. */
static void segment_steps(Queues *q, const Segment *x)
{
    for (int k = 0, from; k < x->block.n; k++) {
        if (x->part[k] != WHOLE_STEP) {
            cross(q, x->block.step[k], x->part[k]);
            continue;
        }
        for (from = k; k + 1 < x->block.n && x->part[k + 1] == WHOLE_STEP;)
            k++;
        whole_steps(q, x, from, k + 1);
    }
}

/* The segment of a device that is its nth, from 1. */
static int nth_segment(const Segments *s, int device, int nth)
{
    for (int i = 0; i < s->n; i++)
        if (s->segment[i].device == device && --nth == 0)
            return i;
    return -1;
}

/* How many marks the functions before this one have. */
static int marks_before(const Bundle *b, Arena *a)
{
    const Bundle *first = b->first ? b->first : b;
    int marks = 0;
    for (int f = 0; f < first->nfunction; f++) {
        const Bundle *of = f ? &first->function[f - 1] : first;
        if (of->p == b->p)
            break;
        marks += gpu_queues(of->p, a).n;
    }
    return marks;
}

static void find_marks(Queues *q, Arena *a)
{
    const Segments *s = &q->s;
    int n = s->ndevice + marks_before(q->w->b, a); /* those of the queues come first */
    q->mark = NEWN(a, int, s->n + 1);
    for (int i = 0; i < s->n; i++)
        for (int d = 0; d < s->ndevice; d++) {
            const int of = s->segment[i].waits[d] ? nth_segment(s, d, s->segment[i].waits[d]) : -1;
            if (of >= 0 && !q->mark[of])
                q->mark[of] = n++;
        }
}

static void find_slots(Queues *q, Arena *a)
{
    int64_t end[MOST_DEVICES] = {0};
    const int n = q->w->b->p->nstep + 1;
    int at = 0;
    q->slot = NEWN(a, int64_t, n);
    q->sent = NEWN(a, int, n);
    q->taken = NEWN(a, int, n);
    for (int i = 0; i < q->s.n; i++)
        for (int k = 0; k < q->s.segment[i].block.n; k++) {
            const Step *s = q->s.segment[i].block.step[k];
            (q->s.segment[i].part[k] == STEP_SENDS ? q->sent : q->taken)[s->number] = at++;
            if (q->s.segment[i].part[k] != STEP_TAKES)
                continue;
            q->slot[s->number] = end[s->device];
            end[s->device] += gpu_slot_bytes(s);
        }
}

int gpu_devices_launches(Bundle *b, bool *copies)
{
    Writer w = {.b = b};
    const unsigned needs = b->needs;
    int launches = gpu_devices_steps(&w, copies);
    b->needs = needs;
    sb_free(&w.sb);
    return launches;
}

static Queues queues_begin(Writer *w, Arena *a)
{
    Queues q = {.w = w, .s = gpu_queues(w->b->p, a)};
    find_marks(&q, a);
    find_slots(&q, a);
    return q;
}

static void queues_steps(Queues *q)
{
    Writer *w = q->w;
    w->depth++;
    for (int i = 0; i < q->s.n; i++) {
        const Segment *x = &q->s.segment[i];
        turn_to(q, x->device);
        for (int d = 0; d < q->s.ndevice; d++) {
            if (!x->waits[d])
                continue;
            end_crossings(q);
            line(w, "TRY(igrt_gpus_wait(&ctx->gpus, gpu, ctx->mark[%d]));",
                 q->mark[nth_segment(&q->s, d, x->waits[d])]);
        }
        segment_steps(q, x);
        if (!q->mark[i])
            continue;
        end_crossings(q);
        line(w, "TRY(igrt_gpus_mark(gpu, &ctx->mark[%d]));", q->mark[i]);
    }
    for (int d = 0; is_device(q, d); d++)
        if (q->open[d].n) {
            turn_to(q, d);
            end_crossings(q);
        }
    w->depth--;
}

int gpu_devices_steps(Writer *w, bool *copies)
{
    Arena *a = arena_new();
    Queues q = queues_begin(w, a);
    queues_steps(&q);
    arena_free(a);
    if (copies)
        *copies = q.copies;
    return q.launches;
}

void gpu_devices_kernels(Bundle *b, Plan *p)
{
    Arena *a = arena_new();
    Bundle of = *b;
    of.p = p;
    Writer w = {.b = &of};
    Queues q = queues_begin(&w, a);
    q.asks = p;
    queues_steps(&q);
    sb_free(&w.sb);
    arena_free(a);
}
