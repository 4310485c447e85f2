/* pipeline.c - the compiler from end to end: the list of its passes.
 *
 *     graph --schedule--> plan of kernels --memplan--> offsets --bundle_write--> a folder of source
 *
 * The roof: the only library that sees the compiler, the code generator and the targets. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "codegen.h"
#include "inspect.h"
#include "schedule/values.h"
#include "targets.h"

#ifndef INGOT_VERIFY
#define INGOT_VERIFY 0
#endif

const char *ingot_version(void)
{
    return INGOT_VERSION; /* CMake's */
}

/* ---- options ----------------------------------------------------------------------------- */

enum {
    GPU_ALIGN = 512
}; /* of buffers in a device arena: IGRT_CL_ALIGN, a multiple of CUDA's 256 */

/* --fuse, in the order of Preset */
static const char *const presets[] = {"auto", "none", "all"};

static int opt_level(const ingot_options *o)
{
    return o->naive ? 0 : 2;
}

static bool usage(Context *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool usage(Context *c, const char *format, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    context_report(c, INGOT_ERROR, INGOT_USAGE, text);
    return false;
}

/* A prefix of C names that is neither a keyword nor the runtime's. */
static bool name_is_good(Context *c, const char *name)
{
    Arena *a = arena_new();
    bool good = strlen(name) < 60 && !strcmp(identifier(a, name), name) && strncmp(name, "igrt", 4);
    static const char *const taken[] = {"main", "driver", "libc", "Makefile", "lib"};
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        good &= strcmp(name, taken[i]) != 0;
    arena_free(a);
    return good ||
           usage(c, "--name '%.80s': this is no C identifier that names may start with", name);
}

/* Names are told apart in capitals too, and the last memory alone may be as large as it has to be. */
static bool check_memories(Context *c, const ingot_options *o, const Target *t)
{
    static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    if (o->nmemory && t->gpu)
        return usage(
            c, "--memory: only with the target c; a bundle for '%s' has one arena, on its device",
            t->name);
    for (int i = 0; i < o->nmemory; i++) {
        const char *name = o->memories[i].name ? o->memories[i].name : "";
        size_t n = strspn(name, letters);
        if (!n || name[n] || n > 31 || *name <= '9')
            return usage(
                c, "--memory '%.80s': at most 31 letters and digits are wanted, a letter first",
                name);
        for (int j = 0; j < i; j++)
            if (!strcasecmp(o->memories[j].name, name))
                return usage(c, "--memory '%s': there are two of this name", name);
        if (o->memories[i].bytes < 0 || (!o->memories[i].bytes && i + 1 < o->nmemory))
            return usage(c, "--memory '%s': only the last one may be without a size", name);
    }
    return true;
}

/* --no-rewrite: names of rules, with commas between. */
static bool check_rules(Context *c, const char *list)
{
    for (const char *at = list; at && *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        const char *name = rewrite_name(0);
        for (int i = 0; name && (strlen(name) != n || strncmp(at, name, n)); i++)
            name = rewrite_name(i + 1);
        if (!name) {
            StrBuf all = {0};
            for (int i = 0; rewrite_name(i); i++)
                sb_printf(&all, "%s%s", i ? ", " : "", rewrite_name(i));
            (void)usage(c, "--no-rewrite '%.*s': there are %s", (int)(n < 80 ? n : 80), at,
                        all.data);
            sb_free(&all);
            return false;
        }
        at += n;
    }
    return true;
}

static bool package_is_known(Context *c, const char *name)
{
    static const char *const packages[] = {"cmake",   "make",    "zephyr",
                                           "esp-idf", "arduino", "cmsis"};
    for (size_t i = 0; i < sizeof packages / sizeof packages[0]; i++)
        if (!strcmp(name, packages[i]))
            return true;
    return usage(c, "--package '%.80s': choose cmake, make, zephyr, esp-idf, arduino or cmsis",
                 name);
}

/* What the target's name stands for, in the arena; NULL after an error. */
static const Target *check_options(Context *c, const ingot_options *o, Arena *a)
{
    if (c->nerror)
        return NULL;
    static const char *const weights[] = {"auto", "array", "blob", "incbin"};
    bool known = !o->weights;
    for (size_t i = 0; i < sizeof weights / sizeof weights[0] && !known; i++)
        known = !strcmp(o->weights, weights[i]);
    if (!known && !usage(c, "--weights '%.80s': choose auto, array, blob or incbin", o->weights))
        return NULL;
    if (o->name && !name_is_good(c, o->name))
        return NULL;
    if (o->package && !package_is_known(c, o->package))
        return NULL;
    const char *name = o->target ? o->target : "c";
    Target *t = NEW(a, Target);
    ingot_status status;
    const char *why = target_make(t, a, name, &status);
    if (why) {
        context_report(c, INGOT_ERROR, status,
                       target_is_file(name) ? arena_printf(a, "--target: %s", why)
                                            : arena_printf(a, "--target '%.80s': %s", name, why));
        return NULL;
    }
    bool ram = o->prefer && !strcmp(o->prefer, "ram");
    if (o->prefer)
        t->byte = ram ? DEAR : 0;
    if (o->prefer && !ram && strcmp(o->prefer, "time") != 0) {
        usage(c, "--prefer '%.80s': choose ram or time", o->prefer);
        return NULL;
    }
    if (!check_memories(c, o, t) || !check_rules(c, o->no_rewrite))
        return NULL;
    if ((o->sched || o->save_sched) && o->naive) {
        usage(c, "--sched, --save-sched: not with -O0");
        return NULL;
    }
    bool preset = !o->fuse;
    for (int i = 0; i < 3 && !preset; i++)
        preset = !strcmp(o->fuse, presets[i]);
    if (!preset) {
        usage(c, "--fuse '%.80s': choose auto, none or all", o->fuse);
        return NULL;
    }
    return t;
}

/* Fields that the caller's header does not have yet keep their defaults. */
static ingot_options complete(Context *c, const ingot_options *o)
{
    ingot_options full = {0};
    size_t n = o ? o->struct_size : 0;
    if (o && !n && (o->name || o->target || o->weights || o->max_ram))
        usage(c, "ingot_options: struct_size is 0, so what it says would not be seen; set it to "
                 "sizeof(ingot_options)");
    if (n)
        memcpy(&full, o, n < sizeof full ? n : sizeof full);
    return full;
}

/* ---- timing ------------------------------------------------------------------------------ */

typedef struct {
    Context *c;
    int verbose;
    struct timespec since;
} Clock;

static Clock clock_start(Context *c, const ingot_options *o)
{
    Clock k = {.c = c, .verbose = o->verbose};
    clock_gettime(CLOCK_MONOTONIC, &k.since);
    return k;
}

/* -v: how long the pass took. */
static void passed(Clock *k, const char *pass)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (k->verbose) {
        char text[128];
        double ms = (double)(now.tv_sec - k->since.tv_sec) * 1e3 +
                    (double)(now.tv_nsec - k->since.tv_nsec) * 1e-6;
        snprintf(text, sizeof text, "%10.1f ms  %s", ms, pass);
        context_report(k->c, INGOT_NOTE, INGOT_OK, text);
    }
    k->since = now;
}

/* ---- passes ------------------------------------------------------------------------------ */

static void verify_graph(Context *c, const char *after)
{
    if (!INGOT_VERIFY)
        return;
    for (int i = 0; i < c->noutput; i++)
        verify(1, &c->outputs[i].node, 0, after);
}

static void verify_kernels(const Plan *p, const char *after)
{
    for (int i = 0; INGOT_VERIFY && i < p->nkernel; i++)
        verify(1, &p->kernels[i]->sink, 1, after);
}

/* Fails, naming the tensors to blame: those of this memory, or of all (-1). */
static bool too_much(const Plan *p, int memory, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool too_much(const Plan *p, int memory, const char *format, ...)
{
    StrBuf sb = {0};
    const Buffer *worst[5];
    int n = memplan_peak(p, memory, worst, 5);
    va_list ap;
    sb_printf(&sb, "%s: ", p->c->file ? p->c->file : "model");
    va_start(ap, format);
    sb_vprintf(&sb, format, ap);
    va_end(ap);
    sb_puts(&sb, "; the largest tensors at the peak:");
    for (int i = 0; i < n; i++) {
        const Origin *o = worst[i]->node ? node_origin(p->c, worst[i]->node) : NULL;
        sb_puts(&sb, i ? ", " : " ");
        if (worst[i]->name)
            sb_printf(&sb, "'%s' ", worst[i]->name);
        else if (o)
            sb_printf(&sb, "output of '%s' (%s) ", o->node, o->op);
        print_shape(&sb, p->c, worst[i]->dtype, worst[i]->rank, worst[i]->dims);
        sb_printf(&sb, " %lld bytes", (long long)worst[i]->bytes);
    }
    context_report(p->c, INGOT_ERROR, INGOT_UNSUPPORTED, sb.data);
    sb_free(&sb);
    return false;
}

/* --memory and --max-ram */
static bool fits(const Plan *p, int64_t limit)
{
    int last = p->nmemory - 1;
    const Memory *m = &p->memories[last];
    if (m->limit && m->bytes > m->limit)
        return too_much(p, last, "--memory '%s' of %lld bytes is %lld bytes too small for what %s",
                        m->name, (long long)m->limit, (long long)(m->bytes - m->limit),
                        last ? "the memories before it do not hold" : "has to lie in it");
    if (limit && p->arena_bytes > limit)
        return too_much(p, -1, "needs %lld bytes of RAM, --max-ram allows %lld",
                        (long long)p->arena_bytes, (long long)limit);
    return true;
}

static void set_memories(Plan *p, const ingot_options *o)
{
    for (int i = 0; i < o->nmemory; i++) {
        Memory m = {.name = o->memories[i].name, .limit = o->memories[i].bytes};
        vec_push(p->arena, p->memories, p->nmemory, m);
    }
}

/* What a file says of values, and the variants it asks for. */
static bool begin_decisions(Plan *p, const ingot_options *o, GraphRoots *keep)
{
    Preset preset = PRESET_AUTO;
    for (int i = 0; o->fuse && i < 3; i++)
        preset = strcmp(o->fuse, presets[i]) ? preset : (Preset)i;
    values_begin(p, preset);
    if (o->sched && !sched_parse(p, o->sched, o->target ? o->target : "c"))
        return false;
    values_match(p);
    variants_apply(p, keep);
    return true;
}

/* Layouts and opts, by the heuristic or a file; the record of them if it is wanted: later on equal kernels are one. */
static bool decide(Plan *p, const Target *t, const ingot_options *o, StrBuf *record)
{
    if (t->lanes && values_preset(p) != PRESET_ALL) /* a copy is a launch */
        copy_inputs(p);
    kernel_keys(p);
    if (!t->gpu)
        choose_layouts(p, t);
    optimise(p, t);
    if (o->sched && !choices_report(p))
        return false;
    if (o->save_sched)
        sched_print_kernels(record, p);
    return true;
}

/* What was decided about values, memories too, and about kernels. */
static bool save(const Plan *p, const ingot_options *o, const StrBuf *kernels)
{
    StrBuf text = {0}, why = {0};
    sched_print_values(&text, p, o->target ? o->target : "c");
    if (kernels->len)
        sb_write(&text, kernels->data, kernels->len);
    FILE *f = fopen(o->save_sched, "w");
    bool ok = f && fwrite(text.data, 1, text.len, f) == text.len;
    if (f)
        ok &= fclose(f) == 0;
    sb_free(&text);
    if (ok)
        return true;
    sb_printf(&why, "%s: %s", o->save_sched, strerror(errno));
    context_report(p->c, INGOT_ERROR, INGOT_IO, why.data);
    sb_free(&why);
    return false;
}

/* Everything up to the finished plan; NULL after a reported error. */
static Plan *make_plan(Context *c, const Target *t, const ingot_options *o, Clock *k)
{
    if (c->nerror)
        return NULL;
    if (!c->noutput && !c->noutput_group) {
        ingot_error(c, INGOT_INVALID, "the model has no outputs");
        return NULL;
    }
    verify_graph(c, "import");
    if (t->gpu)
        graph_custom_calls(c);
    if (!o->naive) {
        (void)graph_rewrite(c, t, o->no_rewrite);
        verify_graph(c, "rewrite");
        passed(k, "rewrite");
    }
    Plan *p = plan_new(c);
    GraphRoots keep = {0};
    p->verbose = o->verbose > 0;
    bool ready = o->naive || begin_decisions(p, o, &keep);
    ready = ready && plan_schedule(p, opt_level(o), t);
    roots_restore(c, &keep);
    passed(k, "schedule");
    StrBuf record = {0};
    if (!ready || (!o->naive && !decide(p, t, o, &record))) {
        plan_free(p);
        return NULL;
    }
    passed(k, "optimise");
    kernel_share(p);
    verify_kernels(p, "schedule");
    set_memories(p, o);
    bool ok = memplan(p, t->gpu ? GPU_ALIGN : 64) && fits(p, o->max_ram);
    passed(k, "memplan");
    ok = ok && (!o->save_sched || save(p, o, &record));
    sb_free(&record);
    verify_kernels(p, "memplan");
    if (ok)
        plan_tell(p, o->verbose);
    if (ok)
        return p;
    plan_free(p);
    return NULL;
}

Plan *plan_make(Context *c, const ingot_options *options)
{
    ingot_options o = complete(c, options);
    Arena *a = arena_new(); /* a plan does not refer to its target */
    const Target *t = check_options(c, &o, a);
    Clock k = clock_start(c, &o);
    Plan *p = t ? make_plan(c, t, &o, &k) : NULL;
    arena_free(a);
    return p;
}

/* What a kernel has to do: operations, or bytes to move where it computes nothing. */
static double work_of(const Kernel *k)
{
    return (double)(k->flops > k->bytes ? k->flops : k->bytes);
}

static int heaviest_first(const void *x, const void *y)
{
    const Kernel *a = *(const Kernel *const *)x, *b = *(const Kernel *const *)y;
    double p = work_of(a), q = work_of(b);
    return p != q ? (p < q ? 1 : -1) : strcmp(a->name, b->name);
}

/* "out: 7 kernels, arena 7296 bytes, weights 39552 bytes"; then the heaviest kernels that have no fast form, and why. */
static void summary(Context *c, const Plan *p, const Target *t, const ingot_options *o,
                    const char *dir)
{
    enum { TOLD = 3 };
    Arena *a = arena_new();
    context_report(c, INGOT_NOTE, INGOT_OK,
                   arena_printf(a, "%s: %d kernels, arena %lld bytes, weights %lld bytes", dir,
                                p->nkernel, (long long)p->arena_bytes,
                                (long long)p->weights_bytes));
    const Kernel **plain = NEWN(a, const Kernel *, p->nkernel + 1);
    int n = 0, told = 0;
    double all = 0, rest = 0;
    for (int i = 0; i < p->nkernel && !o->naive && !t->gpu && t->lanes; i++) {
        const Kernel *k = p->kernels[i];
        all += k->check ? 0 : work_of(k);
        if (!k->check && kernel_is_plain(k))
            plain[n++] = k;
    }
    qsort((void *)plain, (size_t)n, sizeof *plain, heaviest_first);
    for (; told < n && told < TOLD && work_of(plain[told]) >= 0.01 * all; told++)
        context_report(c, INGOT_NOTE, INGOT_OK,
                       arena_printf(a, "%s: %s, %.0f %% of the work, is not in lanes: %s", dir,
                                    plain[told]->name, 100 * work_of(plain[told]) / all,
                                    plain_reason(a, plain[told])));
    for (int i = told; i < n; i++)
        rest += work_of(plain[i]);
    if (rest >= 0.01 * all && n > told)
        context_report(c, INGOT_NOTE, INGOT_OK,
                       arena_printf(a, "%s: nor are %d more kernels, %.0f %% of the work", dir,
                                    n - told, 100 * rest / all));
    arena_free(a);
}

static ingot_status failure(const Context *c)
{
    return c->status == INGOT_OK ? INGOT_BUG : c->status;
}

ingot_status ingot_compile(ingot_context *c, const ingot_options *options, const char *dir)
{
    ingot_options o = complete(c, options);
    Arena *a = arena_new();
    const Target *t = check_options(c, &o, a);
    Clock k = clock_start(c, &o);
    Plan *p = t ? make_plan(c, t, &o, &k) : NULL;
    ingot_status status = p ? bundle_write(p, t, &o, dir) : failure(c);
    if (p)
        passed(&k, "bundle");
    if (status == INGOT_OK && o.summary)
        summary(c, p, t, &o, dir);
    plan_free(p);
    arena_free(a);
    return status;
}

bool inspection_make(Context *c, const ingot_options *options, Inspection *x)
{
    Arena *a = arena_new();
    ingot_options *o = NEW(a, ingot_options);
    *o = complete(c, options);
    *x = (Inspection){.arena = a, .o = o, .t = check_options(c, o, a)};
    if (!x->t)
        return false;
    for (int i = 0; i < c->noutput; i++)
        vec_push(a, x->imported, x->nimported, c->outputs[i].node);
    for (int i = 0; i < c->nstate; i++)
        if (c->states[i].next)
            vec_push(a, x->imported, x->nimported, c->states[i].next);
    Clock k = clock_start(c, o);
    x->p = make_plan(c, x->t, o, &k);
    x->times = times_nominal(x->t);
    return x->p != NULL;
}

void inspection_free(Inspection *x)
{
    plan_free(x->p);
    arena_free(x->arena);
    x->p = NULL;
    x->arena = NULL;
}

char *ingot_inspect_json(ingot_context *c, const ingot_options *options)
{
    Inspection x;
    StrBuf sb = {0};
    if (inspection_make(c, options, &x))
        inspect_json(&sb, &x);
    inspection_free(&x);
    return sb.data;
}

/* pass: "graph" (as built), "plan" (docs/sched.md), "kernels" (as they are emitted). */
char *ingot_dump(ingot_context *c, const ingot_options *options, const char *pass)
{
    StrBuf sb = {0};
    if (!strcmp(pass, "graph")) {
        Node **roots = NEWN(c->arena, Node *, c->noutput + 1);
        for (int i = 0; i < c->noutput; i++)
            roots[i] = c->outputs[i].node;
        text_print(&sb, c->noutput, roots);
        return sb.data;
    }
    if (strcmp(pass, "plan") && strcmp(pass, "kernels")) {
        usage(c, "--dump '%.80s': choose graph, plan or kernels", pass);
        return NULL;
    }
    ingot_options o = complete(c, options);
    Arena *a = arena_new();
    const Target *t = check_options(c, &o, a);
    Clock k = clock_start(c, &o);
    Plan *p = t ? make_plan(c, t, &o, &k) : NULL;
    if (p && !strcmp(pass, "plan"))
        plan_print(&sb, p);
    for (int i = 0; p && i < p->nkernel && strcmp(pass, "plan"); i++)
        render_kernel(&sb, t, p->kernels[i], p->kernels[i]->name);
    plan_free(p);
    arena_free(a);
    return sb.data;
}
