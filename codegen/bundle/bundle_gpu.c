/* bundle_gpu.c - what is particular to bundles whose kernels run on a GPU.
 *
 * The host code is the CPU's, step by step, with device memory in place of addresses. It is written
 * in the calls of igrt_gpu_<driver>.h, so one text serves every driver. All memory is made at init:
 * one device arena with a part for each planned place, and a buffer for each input, output and
 * weight that a kernel or a copy touches. Steps of the host (library kernels, conditions) get their
 * operands in the caller's arena, at the same offsets, and their results go back. */
#include <string.h>

#include "bundle_gpu.h"
#include "language.h"
#include "lowered.h"

enum {
    MOST_RECORDED = 10000 /* launches: the driver has some memory for each, and takes its time */
};

static BufferKind mem_kind(const Buffer *b)
{
    return b->kind == BUF_STATE ? BUF_ARENA : b->kind;
}

static int64_t mem_key(const Buffer *b)
{
    return b->kind == BUF_INPUT || b->kind == BUF_OUTPUT ? b->slot : b->offset;
}

/* ---- which buffers the device needs ------------------------------------------------------ */

static void use(Gpu *g, const Buffer *b)
{
    g->used[buffer_root(b)->id] = true;
}

bool gpu_on_host(const Buffer *b)
{
    const Buffer *r = buffer_root(b);
    return r->kind == BUF_INPUT || r->kind == BUF_WEIGHT;
}

static void host_use(Gpu *g, const Buffer *b)
{
    const Buffer *r = buffer_root(b);
    if (mem_kind(r) == BUF_ARENA && r->offset + r->bytes > g->host_bytes)
        g->host_bytes = r->offset + r->bytes;
}

bool gpu_fills_image(const Step *s, const Kernel *k, int arg)
{
    return kernel_takes_image(k, arg) && buffer_root(s->bufs[arg])->kind != BUF_WEIGHT;
}

static void use_image(Bundle *b, const Step *s, int arg)
{
    enum { PIXEL = 16 };
    const Buffer *buffer = s->bufs[arg];
    b->gpu->imaged[buffer_root(buffer)->id] = true;
    if (!gpu_fills_image(s, s->kernel, arg))
        return;
    use(b->gpu, buffer);
    bool fixed = buffer->bytes % PIXEL == 0;
    int64_t size;
    for (int i = 0; i < buffer->rank; i++)
        fixed = fixed && idx_value(buffer->dims[i], &size);
    if (!fixed)
        bundle_fail(b, INGOT_USAGE,
                    "kernel %s: IMAGE %d: what is no weight needs a fixed size, of whole pixels",
                    s->kernel->name, arg);
}

static void mark(Bundle *b, const Block *steps)
{
    Gpu *g = b->gpu;
    for (int i = 0; i < steps->n; i++) {
        const Step *s = steps->step[i];
        for (int j = 0; s->kind == STEP_KERNEL && j < s->nbuf; j++) {
            if (!kernel_has_param(s->kernel, j))
                continue;
            if (kernel_takes_image(s->kernel, j))
                use_image(b, s, j);
            else
                use(g, s->bufs[j]);
            if (s->bufs[j]->base && s->bufs[j]->base_offset && !idx_is(s->bufs[j]->base_offset, 0))
                bundle_fail(b, INGOT_UNSUPPORTED,
                            "kernel %s takes a view, which GPU bundles cannot do yet",
                            s->kernel->name);
        }
        for (int j = 0; s->kind == STEP_COPY && j < 2; j++)
            use(g, s->bufs[j]);
        for (int j = 0; s->kind == STEP_CALL && j < s->nbuf; j++)
            host_use(g, s->bufs[j]);
        if (s->scratch)
            host_use(g, s->scratch);
        if (s->cond && !gpu_on_host(s->cond))
            use(g, s->cond);
        mark(b, &s->body);
        mark(b, &s->other);
    }
}

/* A loop whose iterations the host counts: it enqueues those of all of them, and waits for none. */
static bool is_counted(const Step *s)
{
    return s->kind == STEP_LOOP && s->trip && !s->cond;
}

/* Are they the same whatever the counter of a loop is?  Then a record of them once is one of each
 * iteration. */
static bool are_alike(const Block *steps, const Node *counter)
{
    int64_t v;
    for (int i = 0; i < steps->n; i++) {
        const Step *s = steps->step[i];
        for (int k = 0; s->kind == STEP_KERNEL && k < s->kernel->nvar; k++)
            if (s->kernel->vars[k] == counter->arg.i)
                return false;
        if (s->kind == STEP_COPY && !(idx_value(s->dst_offset, &v) && idx_value(s->src_offset, &v)))
            return false;
        if (!are_alike(&s->body, counter) || !are_alike(&s->other, counter))
            return false;
    }
    return true;
}

/* A branch, or a loop, of which the device alone knows whether and how often it runs. */
static bool is_branch(const Step *s)
{
    int64_t trip;
    if (!s->cond || gpu_on_host(s->cond))
        return false;
    if (s->kind == STEP_IF)
        return true;
    return s->kind == STEP_LOOP && !s->iterations &&
           (!s->trip || (idx_value(s->trip, &trip) && trip == INT64_MAX)) &&
           (!s->counter || are_alike(&s->body, s->counter));
}

/* Neither reads what the caller gives nor writes what it gets, on the host; inside of so many
 * branches. */
static bool apart(const Target *t, const Block *steps, int inside)
{
    for (int i = 0; i < steps->n; i++) {
        const Step *s = steps->step[i];
        if (s->kind == STEP_KERNEL || s->kind == STEP_COPY || (s->kind == STEP_CHECK && !inside))
            continue;
        const bool branch = is_branch(s) && inside < t->branches;
        if (!(branch || is_counted(s)) || !apart(t, &s->body, inside + branch) ||
            !apart(t, &s->other, inside + branch))
            return false;
    }
    return true;
}

static bool has_branches(const Block *steps)
{
    for (int i = 0; i < steps->n; i++)
        if (is_branch(steps->step[i]) || has_branches(&steps->step[i]->body))
            return true;
    return false;
}

/* Launches of kernels, at most. */
static int64_t count_launches(const Block *steps)
{
    int64_t n = 0;
    for (int i = 0; i < steps->n; i++) {
        const Step *s = steps->step[i];
        const int64_t once = sat_add(count_launches(&s->body), count_launches(&s->other));
        const int64_t inside = is_counted(s) ? sat_mul(s->trip->hi, once) : once;
        n = sat_add(n, s->kind == STEP_KERNEL ? !s->follows : inside);
    }
    return n;
}

/* Kernels alone, and loops of them where these count as well. */
static bool only_kernels(const Block *steps, bool loops)
{
    for (int i = 0; i < steps->n; i++) {
        const Step *s = steps->step[i];
        if (s->kind != STEP_KERNEL &&
            !(loops && s->kind == STEP_LOOP && only_kernels(&s->body, loops)))
            return false;
    }
    return true;
}

/* Sizes that a run may change; counters of loops are the same in each. */
static bool has_sizes(const Bundle *b)
{
    for (int i = 0; i < b->c->nvar; i++)
        if (b->sym[i] >= 0 && b->c->vars[i].kind < VAR_LOOP)
            return true;
    return false;
}

/* A part of the arena has the bytes of one buffer and no more: two of them that overlap are no
 * arguments of one launch, which OpenCL says nothing about, and a driver that keeps them apart
 * takes what was there before. */
static bool is_place_of(const Mem *m, const Buffer *b)
{
    return m->kind == mem_kind(b) && m->key == mem_key(b) &&
           (m->kind != BUF_ARENA || m->bytes == b->bytes);
}

/* Of a function the place of a buffer; -1: it has none. */
static int find(const Gpu *g, const Plan *p, const Buffer *b)
{
    for (int i = 1; i < g->nmem; i++)
        if (!g->mem[i].image && is_place_of(&g->mem[i], b) && g->mem[i].device == b->device &&
            (!g->mem[i].p || g->mem[i].p == p))
            return i;
    return -1;
}

static int find_image(const Gpu *g, const Buffer *b)
{
    for (int i = 1; i < g->nmem; i++)
        if (g->mem[i].image && g->mem[i].key == mem_key(b) && g->mem[i].device == b->device &&
            (g->mem[i].b == b || (g->mem[i].b->kind == BUF_WEIGHT && b->kind == BUF_WEIGHT)))
            return i;
    return -1;
}

bool gpu_on_device(const Bundle *b, const Buffer *buffer)
{
    return find(b->gpu, b->p, buffer_root(buffer)) >= 0;
}

static Bundle *function_of(Bundle *b, int i)
{
    return i ? &b->function[i - 1] : b;
}

/* "train_step"; of the first function "" */
static const char *function_suffix(const Bundle *b)
{
    return b->first ? b->io + strlen(b->name) + 1 : "";
}

const char *gpu_own(const Bundle *b, const char *member)
{
    return b->first ? arena_printf(b->a, "%s_%s", member, function_suffix(b)) : member;
}

static void add(Gpu *g, const Bundle *f, const Buffer *buffer)
{
    int i = find(g, f->p, buffer);
    if (i < 0) {
        Mem m = {.kind = mem_kind(buffer),
                 .key = mem_key(buffer),
                 .bytes = buffer->bytes,
                 .b = buffer,
                 .device = buffer->device};
        if (m.kind == BUF_INPUT || m.kind == BUF_OUTPUT) {
            m.p = f->p;
            m.function =
                f->first ? arena_printf(f->a, "%s_", upper_case(f->a, function_suffix(f))) : "";
            m.field = (m.kind == BUF_INPUT ? f->in : f->out)[m.key].field;
        }
        i = g->nmem;
        vec_push(f->a, g->mem, g->nmem, m);
    }
    if (g->mem[i].bytes < buffer->bytes)
        g->mem[i].bytes = buffer->bytes;
}

static void add_kind(Gpu *g, const Bundle *f, BufferKind kind)
{
    for (int i = 0; i < f->p->nbuffer; i++) {
        const Buffer *buffer = f->p->buffers[i];
        const bool wanted = f->gpu->used[i] || (buffer->kind == BUF_STATE && !buffer->base);
        if (wanted && mem_kind(buffer) == kind)
            add(g, f, buffer);
    }
}

static void add_images(Gpu *g, const Bundle *f)
{
    for (int i = 0; i < f->p->nbuffer; i++) {
        const Buffer *buffer = f->p->buffers[i];
        if (!f->gpu->imaged[i] || find_image(g, buffer) >= 0)
            continue;
        const Mem m = {.kind = BUF_WEIGHT,
                       .key = mem_key(buffer),
                       .bytes = buffer->bytes,
                       .b = buffer,
                       .image = true,
                       .device = buffer->device};
        vec_push(f->a, g->mem, g->nmem, m);
    }
}

/* What groups of kernel i ask for, and whether neighbours join what they have. */
static void look_at_kernel(const Bundle *b, int i)
{
    const Kernel *k = b->kernel[i];
    Gpu *g = b->gpu;
    const Tiles *tiles = &kernel_lowered(k, true)->tiles;
    g->asked[i] = gpu_asked(k, b->target);
    g->across[i] = tiles->tile[0].across != NULL;
    for (int j = 1; j < k->ntogether; j++)
        g->across[i] |= kernel_lowered(k->together[j], true)->tiles.tile[0].across != NULL;
    g->shared |= g->asked[i] > 0;
}

/* One list for all functions: the arena, the parts of it that any of them has, what the caller
 * gives, weights. */
static void list_memory(Bundle *b)
{
    Gpu *g = b->gpu;
    const int n = 1 + b->nfunction;
    vec_push(b->a, g->mem, g->nmem,
             ((Mem){.kind = BUF_ARENA, .key = -1, .bytes = b->p->memories[0].bytes}));
    for (int i = 0; i < n; i++)
        add_kind(g, function_of(b, i), BUF_ARENA);
    g->npart = g->nmem - 1;
    for (int i = 0; i < n; i++) {
        Bundle *f = function_of(b, i);
        f->gpu->io = g->nmem;
        add_kind(g, f, BUF_INPUT);
        add_kind(g, f, BUF_OUTPUT);
        f->gpu->nio = g->nmem - f->gpu->io;
        g->nall += f->gpu->nio;
    }
    for (int d = 1; d < b->p->ndevice; d++)
        vec_push(b->a, g->mem, g->nmem,
                 ((Mem){.kind = BUF_ARENA,
                        .key = -1,
                        .bytes = b->p->memories[memories_from(b->p, d)].bytes,
                        .device = d}));
    for (int i = 0; i < n; i++)
        add_kind(g, function_of(b, i), BUF_WEIGHT);
    for (int i = 0; i < n; i++)
        add_images(g, function_of(b, i));
    for (int i = 0; i < n; i++) {
        Gpu *of = function_of(b, i)->gpu;
        of->mem = g->mem;
        of->nmem = g->nmem;
        of->npart = g->npart;
        of->nall = g->nall;
        g->host_bytes = of->host_bytes > g->host_bytes ? of->host_bytes : g->host_bytes;
    }
}

static bool function_apart(const Bundle *b)
{
    bool alone = apart(b->target, &b->p->main, 0);
    for (int i = 0; i < b->nout; i++)
        alone &= gpu_on_device(b, b->out[i].b);
    for (int i = 0; b->c->bound && i < b->nin; i++)
        alone &= !b->c->bound[i];
    return alone;
}

static void look_at_steps(Bundle *b, bool alone)
{
    Gpu *g = b->gpu;
    const Block *steps = &b->p->main;
    g->apart = alone;
    g->branches = has_branches(steps);
    g->launches = count_launches(steps);
    g->copies = !only_kernels(steps, true);
    g->sized =
        has_sizes(b); /* then a record that no update can change would be made anew too often */
    bool kernels = only_kernels(steps, false);
    if (b->p->ndevice > 1 && g->apart) {
        bool copies = false;
        g->launches = sat_add(g->launches, gpu_devices_launches(b, &copies));
        kernels = !copies;
    }
    g->records = b->target->records && g->apart && g->launches && g->launches <= MOST_RECORDED &&
                 (kernels || !g->sized);
}

/* Steps of several devices are the devices' alone: nobody decides between two of them. */
static void check_devices(Bundle *b, const Bundle *f, bool alone)
{
    if (b->p->ndevice > 1 && (!alone || has_branches(&f->p->main)))
        bundle_fail(
            b, INGOT_UNSUPPORTED,
            "%s: --devices with a GPU target: some step is the host's (a library kernel, or "
            "a loop or branch that depends on data), which several GPUs cannot have yet",
            b->source);
}

void gpu_prepare(Bundle *b)
{
    const int n = 1 + b->nfunction;
    bool alone = true;
    for (int i = 0; i < n; i++) {
        Bundle *f = function_of(b, i);
        f->gpu = NEW(b->a, Gpu);
        f->gpu->used = NEWN(b->a, bool, f->p->nbuffer + 1);
        f->gpu->imaged = NEWN(b->a, bool, f->p->nbuffer + 1);
        mark(f, &f->p->main);
    }
    list_memory(b);
    for (int i = 0; i < n; i++) {
        function_select(b->c, i);
        alone &= function_apart(function_of(b, i));
    }
    for (int i = 0; i < n; i++) {
        check_devices(b, function_of(b, i), alone);
        look_at_steps(function_of(b, i), alone);
    }
    function_select(b->c, 0);
    if (b->target->language->binds)
        gpu_bind(b);
    Gpu *g = b->gpu;
    g->asked = NEWN(b->a, int64_t, b->nkernel + 1);
    g->across = NEWN(b->a, bool, b->nkernel + 1);
    for (int i = 0; i < b->nkernel; i++)
        look_at_kernel(b, i);
    g->nown = gpu_own_kernels(b);
}

bool gpu_is_apart(const Bundle *b)
{
    return b->gpu->apart;
}

int64_t gpu_arena_bytes(const Bundle *b)
{
    return b->gpu->host_bytes;
}

/* No other part of the arena begins where it does. */
static bool begins_alone(const Gpu *g, int at)
{
    for (int i = 1; i <= g->npart; i++)
        if (i != at && g->mem[i].key == g->mem[at].key && g->mem[i].device == g->mem[at].device)
            return false;
    return true;
}

const char *gpu_device(const Bundle *b, int device)
{
    return device ? arena_printf(b->a, "queue(ctx, %d)", device) : "&ctx->gpu";
}

const char *gpu_arena(const Bundle *b, int device)
{
    return device ? arena_printf(b->a, "MEM_ARENA%d", device) : "MEM_ARENA";
}

const char *gpu_mem_name(const Bundle *b, int i)
{
    const Mem *m = &b->gpu->mem[i];
    const char *device = m->device ? arena_printf(b->a, "%d", m->device) : "";
    switch (m->kind) {
    case BUF_INPUT: return arena_printf(b->a, "MEM_%sIN_%lld", m->function, (long long)m->key);
    case BUF_OUTPUT: return arena_printf(b->a, "MEM_%sOUT_%lld", m->function, (long long)m->key);
    case BUF_WEIGHT:
        if (m->b->kind != BUF_WEIGHT)
            return arena_printf(b->a, "MEM_COPY%s_%d", device, i);
        return arena_printf(b->a, "MEM_%s%s_%lld", m->image ? "IMAGE" : "WEIGHT", device,
                            (long long)m->key);
    default: break;
    }
    const char *name = m->key < 0
                           ? arena_printf(b->a, "MEM_ARENA%s", device)
                           : arena_printf(b->a, "MEM_ARENA%s_%lld", device, (long long)m->key);
    return begins_alone(b->gpu, i) ? name
                                   : arena_printf(b->a, "%s_%lld", name, (long long)m->bytes);
}

const char *gpu_mem_of(Bundle *b, const Buffer *buffer)
{
    int i = find(b->gpu, b->p, buffer_root(buffer));
    if (i < 0)
        BUG("a buffer that a device step uses is not on the device");
    b->needs |= NEED_MEM;
    return gpu_mem_name(b, i);
}

const char *gpu_whole_of(Bundle *b, const Buffer *buffer, int64_t *offset)
{
    const Buffer *root = buffer_root(buffer);
    *offset = 0;
    for (int i = 0; i < b->gpu->nmem && mem_kind(root) == BUF_ARENA; i++) {
        if (b->gpu->mem[i].key >= 0 || b->gpu->mem[i].device != root->device)
            continue;
        *offset = root->offset;
        b->needs |= NEED_MEM;
        return gpu_mem_name(b, i);
    }
    return gpu_mem_of(b, root);
}

const char *gpu_argument_of(Bundle *b, const Step *s, const Buffer *buffer)
{
    const Buffer *root = buffer_root(buffer);
    for (int i = 0; i < s->nbuf && mem_kind(root) == BUF_ARENA; i++) {
        const Buffer *other = s->bufs[i] ? buffer_root(s->bufs[i]) : root;
        if (mem_kind(other) == BUF_ARENA && other->device == root->device &&
            other->offset == root->offset && other->bytes > root->bytes)
            root = other;
    }
    return gpu_mem_of(b, root);
}

const char *gpu_image_of(Bundle *b, const Buffer *buffer)
{
    b->needs |= NEED_MEM;
    return gpu_mem_name(b, find_image(b->gpu, buffer_root(buffer)));
}

/* ---- declarations ------------------------------------------------------------------------ */

static void record_members(StrBuf *sb, const Bundle *b)
{
    if (!b->gpu->records)
        return;
    sb_printf(sb, "    %s_graph %s; /* of the steps */\n", b->target->runtime,
              gpu_own(b, "record"));
    if (b->gpu->sized)
        sb_printf(sb,
                  "    void *%s[%d];\n"
                  "    int64_t %s[%d]; /* sym of it */\n",
                  gpu_own(b, "node"), (int)b->gpu->launches, gpu_own(b, "recorded"), b->nsym);
    sb_printf(sb, "    int %s; /* it is of other memory or sizes, or there is none */\n",
              gpu_own(b, "stale"));
}

void gpu_members(StrBuf *sb, const Bundle *b)
{
    const char *type = b->target->runtime;
    const bool several = b->p->ndevice > 1;
    sb_printf(sb, "    %s gpu;\n%s", type, several ? "" : "    void *program;\n");
    if (several)
        gpu_devices_members(sb, b);
    const int marks = gpu_aside_marks(b);
    if (marks)
        sb_printf(sb,
                  "    igrt_aside aside; /* steps that have a stream of their own */\n"
                  "    void *mark[%d];\n",
                  marks);
    if (b->nkernel && b->target->language->binds)
        sb_printf(sb, "    %s_kernel kernel[%d];\n", type, b->nkernel);
    else if (b->nkernel && several)
        sb_printf(sb, "    void *kernel[%d][%d];\n", b->p->ndevice, b->nkernel);
    else if (b->nkernel)
        sb_printf(sb, "    void *kernel[%d];\n", b->nkernel);
    sb_printf(sb, "    %s_mem mem[%d]; /* on the device */\n", type, b->gpu->nmem);
    record_members(sb, b);
    for (int i = 0; i < b->nfunction; i++)
        record_members(sb, &b->function[i]);
}

/* A tuner's program decides by which kernel each step is computed. */
static void ways(StrBuf *sb, const Bundle *b)
{
    int n = 0;
    for (int i = 0; i < b->p->main.n; i++)
        n += b->p->main.step[i]->nway;
    if (n)
        sb_printf(sb, "\n/* by step: which of its kernels computes it */\nint %s_way[%d];\n",
                  b->name, b->p->nstep);
}

void gpu_constants(StrBuf *sb, Bundle *b)
{
    const Gpu *g = b->gpu;
    sb_puts(sb, "\n/* places in ctx->mem */\nenum {\n");
    for (int i = 0; i < g->nmem; i++) {
        const Mem *m = &g->mem[i];
        sb_printf(sb, "    %s,", gpu_mem_name(b, i));
        if (m->kind == BUF_INPUT || m->kind == BUF_OUTPUT)
            sb_printf(sb, " /* %s */", m->field);
        sb_puts(sb, "\n");
    }
    sb_puts(sb, "    MEM_COUNT\n};\n");
    if (!b->first)
        ways(sb, b);
    sb_puts(
        sb,
        "\n#define TRY(call)                                                                     "
        "\\\n"
        "    do {                                                                              \\\n"
        "        const igrt_status s = (call);                                                 \\\n"
        "        if (s != IGRT_OK)                                                             \\\n"
        "            return s;                                                                 \\\n"
        "    } while (0)\n");
    if (b->p->ndevice > 1)
        gpu_devices_functions(sb, b);
}

void gpu_locals(Writer *w, unsigned needs)
{
    const bool several = w->b->p->ndevice > 1;
    if (needs & NEED_GPU)
        line(w, "igrt_gpu *%sgpu = &ctx->gpu;", several ? "" : "const ");
    if (needs & NEED_MEM)
        line(w, "igrt_gpu_mem *const mem = ctx->mem;");
}

/* record(): what is enqueued, as one launch; play(): that, or each step where the driver cannot.
 * Sizes of run time change often, other memory alone seldom: that is recorded anew, for kernels
 * that get their arguments one by one are slower to follow each other (0.3 us each, H200). */
static void record_functions(StrBuf *sb, Bundle *b)
{
    const bool sized = b->gpu->sized;
    const char *record = gpu_own(b, "record"), *stale = gpu_own(b, "stale"),
               *recorded = gpu_own(b, "recorded");
    sb_printf(sb,
              "\n/* The steps as one launch, where the driver can%s. A profile wants the\n"
              " * steps one by one. */\n"
              "static igrt_status record(%s_ctx *ctx)\n{\n"
              "    igrt_gpu *const gpu = &ctx->gpu;\n"
              "    igrt_status status = IGRT_OK, ended = IGRT_ERR_DEVICE;\n"
              "    if (ctx->config.profile)\n        return IGRT_OK;\n",
              sized ? "; of one that there is the kernels get what has changed" : "", b->name);
    if (sized)
        sb_printf(sb,
                  "    const int sizes = !ctx->%s; /* alone have changed */\n"
                  "    ctx->%s = 1;\n"
                  "    if (igrt_gpu_update_begin(gpu, &ctx->%s, sizes) == IGRT_OK) {\n"
                  "        status = enqueue(ctx);\n"
                  "        ended = igrt_gpu_update_end(gpu);\n"
                  "    }\n",
                  stale, stale, record);
    sb_printf(sb,
              "    if (status == IGRT_OK && ended != IGRT_OK) {\n"
              "        if (igrt_gpu_record_begin(gpu, &ctx->%s) == IGRT_OK) {\n"
              "            status = enqueue(ctx);\n"
              "            ended = igrt_gpu_record_end(gpu);\n",
              record);
    if (b->gpu->branches)
        sb_printf(sb,
                  "            if (status == IGRT_ERR_DEVICE || ended == IGRT_ERR_DEVICE) {\n"
                  "                igrt_gpu_free_record(gpu, &ctx->%s); /* branches that the "
                  "driver does not take */\n"
                  "                status = ended = IGRT_OK;\n"
                  "            }\n",
                  record);
    sb_printf(sb,
              "        } else { /* a stream that cannot be recorded */\n"
              "            igrt_gpu_free_record(gpu, &ctx->%s);\n"
              "            ended = IGRT_OK;\n"
              "        }\n"
              "    }\n"
              "    TRY(status);\n"
              "    TRY(ended);\n",
              record);
    if (sized)
        sb_printf(sb, "    memcpy(ctx->%s, ctx->sym, sizeof ctx->%s);\n", recorded, recorded);
    sb_printf(sb,
              "    ctx->%s = 0;\n    return IGRT_OK;\n}\n"
              "\nstatic igrt_status play(%s_ctx *ctx)\n{\n"
              "    if (ctx->%s",
              stale, b->name, stale);
    if (sized)
        sb_printf(sb, " || memcmp(ctx->%s, ctx->sym, sizeof ctx->%s)", recorded, recorded);
    sb_printf(sb,
              ")\n        TRY(record(ctx));\n"
              "    return igrt_gpu_is_recorded(&ctx->%s) ? igrt_gpu_play(&ctx->gpu, "
              "&ctx->%s) : enqueue(ctx);\n}\n",
              record, record);
}

/* After enqueue(): record() and play() of what is enqueued, and bind() to memory that is the
 * caller's. */
void gpu_apart_functions(StrBuf *sb, Bundle *b)
{
    const Gpu *g = b->gpu;
    if (g->records)
        record_functions(sb, b);
    if (!g->nio)
        return;
    bool in = false, out = false;
    int nin = 0;
    for (int i = g->io; i < g->io + g->nio; i++) {
        *(g->mem[i].kind == BUF_INPUT ? &in : &out) = true;
        nin += g->mem[i].kind == BUF_INPUT;
    }
    sb_printf(
        sb,
        "\n/* The caller's memory on the device takes the place of ours. */\n"
        "static igrt_status bind(%s_ctx *ctx, const %s_inputs *in, const %s_outputs *out)\n{\n"
        "%s%s    const igrt_gpu_mem given[] = {\n",
        b->name, b->io, b->io, in ? "" : "    (void)in;\n", out ? "" : "    (void)out;\n");
    for (int i = g->io; i < g->io + g->nio; i++) {
        sb_puts(sb, "        igrt_gpu_given(");
        address(sb, b, g->mem[i].b, NULL, false);
        sb_puts(sb, "),\n");
    }
    const char *first = gpu_mem_name(b, g->io);
    const char *wrong = !out ? "IGRT_ERR_INPUT"
                        : !in
                            ? "IGRT_ERR_OUTPUT"
                            : arena_printf(b->a, "i < %d ? IGRT_ERR_INPUT : IGRT_ERR_OUTPUT", nin);
    sb_printf(sb,
              "    };\n"
              "    if (!memcmp(&ctx->mem[%s], given, sizeof given))\n        return IGRT_OK;\n"
              "    for (int i = 0; i < %d; i++)\n"
              "        if (!igrt_gpu_is_aligned(given[i]))\n"
              "            return %s;\n"
              "    memcpy(&ctx->mem[%s], given, sizeof given);\n%s    return IGRT_OK;\n}\n",
              first, g->nio, wrong, first,
              g->records ? arena_printf(b->a, "    ctx->%s = 1;\n", gpu_own(b, "stale")) : "");
}

/* What init does once all memory is there. */
void gpu_ready(StrBuf *sb, const Bundle *b)
{
    if (!b->gpu->records || b->gpu->sized)
        return;
    sb_printf(sb, "    if (status == IGRT_OK%s)\n        status = record(ctx);\n",
              b->gpu->copies ? " && !(config->flags & IGRT_ON_DEVICE)" : "");
}
