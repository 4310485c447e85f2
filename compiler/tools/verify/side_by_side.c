/* side_by_side.c - every step of a compiled model beside the naive form of the same step.
 *
 * Both programs come from one plan: the same steps, buffers and layouts; one has the opts, the
 * other has not. After each step a program hands out what it wrote (the driver's --trace), and the
 * one with opts goes on with what the naive one wrote (--follow). So both arenas stay the same,
 * every kernel is judged on the same inputs as its naive form, and a fault is told where it is made
 * and not where it ends up. The naive program runs as it would alone: what it gives in the end is
 * the result of all naive kernels. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "plan_interp.h"
#include "verify.h"

/* The largest difference that the order of a sum makes, as a share of the largest value. */
#define TOLERANCE 1e-4
/* A kernel that rounds may fall to either side of a half: of so many elements one may. */
enum { ROUNDED = 1000 };

/* What one step writes, and the worst that was seen there. */
typedef struct {
    const Step *step;
    const Buffer *buffer;
    int64_t offset; /* bytes in the arena */
    bool rounds;
    int runs;
    double worst, got, want; /* a share of the largest value; of the worst element */
    size_t at, ndiffer;      /* where it is stored; elements beyond the tolerance, */
    size_t nrounded;         /* but for these, which are as near as their sums can be known */
} StepResult;

typedef struct {
    const Session *s;
    const Plan *p;
    StepResult *place;
    int n;
    char *bytes[2]; /* of the place at hand: the program's, the naive one's */
    double *number[2];
    int leader; /* whose bytes the next steps read */
    Rounding *rounding;
    const PlanInterp *running; /* or NULL */
} Lockstep;

/* ---- places ------------------------------------------------------------------------------ */

static bool writes(const Step *s, int i)
{
    switch (s->kind) {
    case STEP_KERNEL: return s->kernel->args[i].written;
    case STEP_CALL: return i >= s->call->n_in;
    case STEP_COPY: return i == 0;
    default: return false;
    }
}

/* Whether a difference of rounding may become one of a whole number. */
static bool kernel_rounds(Arena *a, const Kernel *k)
{
    int n;
    Node **node = graph_toposort(a, 1, &k->sink, &n);
    for (int i = 0; i < n; i++) {
        bool from_float = node[i]->nsrc && dtype_is_float(node[i]->src[0]->dtype);
        switch (node[i]->op) {
        case OP_ROUND:
        case OP_FLOOR:
        case OP_CEIL:
        case OP_TRUNC: return true;
        case OP_CAST:
            if (from_float && !dtype_is_float(node[i]->dtype))
                return true;
            break;
        default: break;
        }
    }
    return false;
}

/* Where a buffer lies; of a view that moves (in a loop) or that begins at a slice, the whole of
 * what it is a view of. */
static StepResult place_of(const Buffer *b)
{
    int64_t offset = 0, at;
    const Buffer *root = b;
    for (; root->base; root = root->base) {
        if (root->base_offset && !idx_value(root->base_offset, &at))
            return place_of(root->base);
        offset += root->base_offset ? at * element_bytes(b->dtype) : 0;
    }
    if ((root->kind == BUF_OUTPUT && offset) || offset + b->bytes > root->bytes)
        return place_of(root);
    return (StepResult){.buffer = b,
                        .offset = root->kind == BUF_OUTPUT ? 0 : root->offset + offset};
}

static void add_places(Lockstep *l, const Block *b)
{
    Arena *a = l->s->a;
    for (int i = 0; i < b->n; i++) {
        const Step *s = b->step[i];
        int first = l->n;
        for (int j = 0; j < s->nbuf; j++) {
            StepResult p = place_of(s->bufs[j]);
            bool known = !writes(s, j) || !p.buffer->bytes ||
                         p.buffer->dtype == INGOT_STRING; /* pointers are a process's own */
            for (int k = first; k < l->n; k++)
                known |= l->place[k].buffer == p.buffer;
            if (known)
                continue;
            p.step = s;
            p.rounds = s->kind == STEP_KERNEL && kernel_rounds(a, s->kernel);
            vec_push(a, l->place, l->n, p);
        }
        add_places(l, &s->body);
        add_places(l, &s->other);
    }
}

static ingot_status write_places(const Lockstep *l, const char *path)
{
    FILE *f = fopen(path, "w");
    for (int i = 0; f && i < l->n; i++) {
        const StepResult *p = &l->place[i];
        const Buffer *root = buffer_root(p->buffer);
        fprintf(f, "%d %d %lld %lld\n", p->step->number,
                root->kind == BUF_OUTPUT ? root->slot : -1 - root->memory, (long long)p->offset,
                (long long)p->buffer->bytes);
    }
    if (!f || fclose(f))
        return complain(INGOT_IO, "%s: %s", path, strerror(errno));
    return INGOT_OK;
}

/* ---- comparing --------------------------------------------------------------------------- */

/* How many real numbers a buffer holds: a complex number is two. */
static size_t numbers(const Buffer *b)
{
    return (size_t)b->bytes / (size_t)element_bytes(b->dtype) *
           (dtype_info[b->dtype].kind == 'c' ? 2 : 1);
}

enum { CHUNK = 4096 }; /* so many numbers at a time are looked at as doubles */

/* Those from `from` on; how many. */
static size_t to_numbers(const Buffer *b, const char *bytes, size_t from, double *out)
{
    const ingot_dtype part = b->dtype == INGOT_C64    ? INGOT_F32
                             : b->dtype == INGOT_C128 ? INGOT_F64
                                                      : b->dtype;
    const size_t left = numbers(b) - from, n = left < CHUNK ? left : CHUNK;
    interp_to_f64(part, n, out, bytes + from * (size_t)element_bytes(part));
    return n;
}

/* How far two results of one rounding may be apart, as a share of the value. */
static double rounding(ingot_dtype d)
{
    switch (d) {
    case INGOT_F16: return 0x1p-10;
    case INGOT_BF16: return 0x1p-7;
    case INGOT_F8E4M3FN:
    case INGOT_F8E4M3FNUZ: return 0x1p-3;
    case INGOT_F8E5M2:
    case INGOT_F8E5M2FNUZ: return 0x1p-2;
    case INGOT_F8E8M0:
    case INGOT_F4E2M1: return 1;
    default: return 0;
    }
}

/* A sum of terms that nearly cancel is far from what another order of them gives. */
static bool is_rounding(Lockstep *l, const StepResult *p, size_t ndiffer, size_t i,
                        double difference)
{
    enum { MANY = 1000 }; /* are no exceptions */
    return ndiffer < MANY && isfinite(difference) &&
           difference <= rounding_bound(l->rounding, p->step, p->buffer, i);
}

/* The largest number of the naive form. */
static double scale_of(Lockstep *l, const Buffer *b)
{
    double scale = 0, *want = l->number[1];
    for (size_t from = 0, n; from < numbers(b); from += n) {
        n = to_numbers(b, l->bytes[1], from, want);
        for (size_t i = 0; i < n; i++)
            if (isfinite(want[i]))
                scale = fmax(scale, fabs(want[i]));
    }
    return scale;
}

/* What one run of a step has shown. */
typedef struct {
    double scale;
    size_t ndiffer, nrounded;
} StepRun;

static void compare_number(Lockstep *l, StepResult *p, StepRun *run, size_t at, double got,
                           double want)
{
    const ingot_dtype type = p->buffer->dtype;
    const bool exact = !dtype_is_float(type) && dtype_info[type].kind != 'c';
    const double apart = fabs(got - want);
    if (got == want || (isnan(got) && isnan(want)) || apart <= rounding(type) * fabs(want))
        return;
    const double d = !(apart <= INFINITY) || isinf(got) || isinf(want) ? INFINITY
                     : run->scale > 0                                  ? apart / run->scale
                                                                       : apart;
    if (!exact && d > TOLERANCE && is_rounding(l, p, run->ndiffer + run->nrounded, at, apart))
        run->nrounded++;
    else
        run->ndiffer += exact || d > TOLERANCE;
    if (d > p->worst) {
        p->worst = d;
        p->at = at;
        p->got = got;
        p->want = want;
    }
}

static void compare(Lockstep *l, StepResult *p)
{
    const Buffer *b = p->buffer;
    p->runs++;
    rounding_wrote(l->rounding, p->step, b, p->offset, l->bytes[l->leader]);
    if (!memcmp(l->bytes[0], l->bytes[1], (size_t)b->bytes))
        return;
    StepRun run = {.scale = scale_of(l, b)};
    for (size_t from = 0, n; from < numbers(b); from += n) {
        (void)to_numbers(b, l->bytes[0], from, l->number[0]);
        n = to_numbers(b, l->bytes[1], from, l->number[1]);
        for (size_t i = 0; i < n; i++)
            compare_number(l, p, &run, from + i, l->number[0][i], l->number[1][i]);
    }
    if (run.ndiffer > p->ndiffer)
        p->ndiffer = run.ndiffer;
    if (run.nrounded > p->nrounded)
        p->nrounded = run.nrounded;
}

static bool place_is_good(const StepResult *p)
{
    return p->ndiffer <= (p->rounds ? 1 + numbers(p->buffer) / ROUNDED : 0);
}

/* ---- the two programs -------------------------------------------------------------------- */

/* One record of a trace: the number of a place, and its bytes. */
static bool read_record(Lockstep *l, FILE *f, int which, int *place)
{
    if (fread(place, sizeof *place, 1, f) != 1 || *place < 0 || *place >= l->n)
        return false;
    size_t bytes = (size_t)l->place[*place].buffer->bytes;
    return fread(l->bytes[which], 1, bytes, f) == bytes;
}

/* Until one of the two ends. */
static void follow(Lockstep *l, FILE *program, FILE *naive, FILE *onward)
{
    int a, b;
    progress_begin("verify, kernel by kernel", 0);
    while (read_record(l, program, 0, &a) && read_record(l, naive, 1, &b) && a == b) {
        compare(l, &l->place[a]);
        progress_at((double)(a + 1) / l->n);
        size_t bytes = (size_t)l->place[a].buffer->bytes;
        if (fwrite(l->bytes[l->leader], 1, bytes, onward) != bytes || fflush(onward))
            return;
    }
}

/* The ends that the children get stay open in the next child only. */
enum { PROGRAM, NAIVE, ONWARD, NPIPE };

static const char *ended_how(Arena *a, int fd)
{
    fcntl(fd, F_SETFD, 0);
    return arena_printf(a, "/dev/fd/%d", fd);
}

static ingot_status run_both(Lockstep *l, const char *twin, const char *places, const char *out)
{
    const Session *s = l->s;
    Arena *a = s->a;
    int fd[NPIPE][2];
    for (int i = 0; i < NPIPE; i++)
        if (pipe2(fd[i], O_CLOEXEC))
            return complain(INGOT_IO, "%s: %s", s->o->model, strerror(errno));
    const char *in = arena_printf(a, "%s/in", s->work);
    const char *program[] = {arena_printf(a, "%s/model", s->entry),
                             "-t",
                             arena_printf(a, "%d", s->o->threads),
                             "--trace",
                             places,
                             ended_how(a, fd[PROGRAM][1]),
                             "--follow",
                             ended_how(a, fd[ONWARD][0]),
                             in,
                             arena_printf(a, "%s/traced", s->work),
                             NULL};
    pid_t pid[2] = {process_start(program), -1};
    close(fd[PROGRAM][1]);
    close(fd[ONWARD][0]);
    const char *naive[] = {arena_printf(a, "%s/model", twin),
                           "-t",
                           arena_printf(a, "%d", cores()),
                           "--trace",
                           places,
                           ended_how(a, fd[NAIVE][1]),
                           in,
                           arena_printf(a, "%s/%s", s->work, out),
                           NULL};
    if (pid[0] >= 0)
        pid[1] = process_start(naive);
    close(fd[NAIVE][1]);
    FILE *f[NPIPE] = {fdopen(fd[PROGRAM][0], "rb"), fdopen(fd[NAIVE][0], "rb"),
                      fdopen(fd[ONWARD][1], "wb")};
    if (pid[1] >= 0 && f[PROGRAM] && f[NAIVE] && f[ONWARD])
        follow(l, f[PROGRAM], f[NAIVE], f[ONWARD]);
    progress_end();
    ingot_status status = pid[1] >= 0 ? INGOT_OK : INGOT_TOOL;
    for (int i = 0; i < NPIPE; i++)
        if (f[i])
            fclose(f[i]);
    for (int i = 0; i < 2; i++) {
        int code = pid[i] >= 0 ? process_wait(pid[i]) : 0;
        if (code && status == INGOT_OK)
            status = driver_failed(s, code);
    }
    return status;
}

/* ---- telling ----------------------------------------------------------------------------- */

/* "[0,3,5,6]" of an element that is stored at `at`; nothing for one of a border. */
static void print_coordinates(StrBuf *sb, const Buffer *b, size_t at)
{
    int64_t dims[INGOT_MAX_RANK], coord[INGOT_MAX_RANK];
    for (int i = 0; i < b->rank; i++)
        dims[i] = b->dims[i]->hi;
    at /= dtype_info[b->dtype].kind == 'c' ? 2 : 1;
    const bool inside = layout_find(&b->layout, b->rank, dims, (int64_t)at, coord);
    sb_puts(sb, inside ? " [" : " its border");
    for (int i = 0; i < b->rank && inside; i++)
        sb_printf(sb, "%s%lld", i ? "," : "", (long long)coord[i]);
    sb_puts(sb, inside ? "]" : "");
}

/* The file of the bundle that defines the kernel. */
static const char *kernel_file(const Session *s, const char *kernel)
{
    const char *start = arena_printf(s->a, " model_%s(", kernel);
    for (int i = 0;; i++) {
        const char *name = arena_printf(s->a, "model_kernels_%d.c", i);
        MapFile map;
        if (mapfile_open(&map, arena_printf(s->a, "%s/%s", s->entry, name)))
            return "";
        bool found = memmem(map.data, map.len, start, strlen(start)) != NULL;
        mapfile_close(&map);
        if (found)
            return arena_printf(s->a, ", %s", name);
    }
}

/* "step 12, k07_conv (model_kernels_1.c), 'conv1' (Conv): ..." */
static void print_step(StrBuf *sb, const Lockstep *l, const Step *s)
{
    bool kernel = s->kind == STEP_KERNEL;
    sb_printf(sb, "step %d, %s%s", s->number, kernel ? s->kernel->name : s->name,
              kernel ? kernel_file(l->s, s->kernel->name) : "");
    for (int i = 0; i < s->norigin && i < 4; i++)
        sb_printf(sb, "%s'%s' (%s)", i ? " + " : ", ", s->origins[i]->node, s->origins[i]->op);
    if (s->norigin > 4)
        sb_printf(sb, " + %d more", s->norigin - 4);
}

static void tell(const Lockstep *l, const StepResult *p, bool good)
{
    StrBuf sb = {0};
    print_step(&sb, l, p->step);
    if (!p->runs)
        sb_puts(&sb, ": not run");
    else if (p->worst == 0)
        sb_puts(&sb, ": equal");
    else {
        sb_puts(&sb, ":");
        print_coordinates(&sb, p->buffer, p->at);
        sb_printf(&sb, " is %.9g, its naive form gives %.9g, %.2g of the largest value", p->got,
                  p->want, p->worst);
        if (p->ndiffer)
            sb_printf(&sb, "; %zu of %zu numbers differ", p->ndiffer, numbers(p->buffer));
        if (p->nrounded)
            sb_printf(&sb, "; %zu are sums that cancel, as near as f32 can have them", p->nrounded);
    }
    if (good)
        printf("%s\n", printable(l->s->a, sb.data));
    else
        complain(INGOT_DIFFERS, "%s: %s", l->s->o->model, sb.data);
    sb_free(&sb);
}

static ingot_status report(const Lockstep *l)
{
    const StepResult *worst = NULL;
    int bad = 0, ran = 0;
    for (int i = 0; i < l->n; i++) {
        const StepResult *p = &l->place[i];
        bool good = place_is_good(p);
        if (!good || l->s->o->compile.verbose)
            tell(l, p, good);
        bad += !good;
        ran += p->runs > 0;
        if (p->worst > 0 && (!worst || p->worst > worst->worst))
            worst = p;
    }
    printf("%d steps compared with their naive forms: ", ran);
    if (bad)
        printf("%d differ, ", bad);
    if (worst)
        printf("largest difference %.3g of the largest value, in step %d\n", worst->worst,
               worst->step->number);
    else
        printf("all equal\n");
    return bad ? INGOT_DIFFERS : INGOT_OK;
}

/* A result whose bound is larger than any memory: of a loop that has no bound, and is trained. */
static ingot_status too_large(const Lockstep *l, const StepResult *p)
{
    StrBuf sb = {0};
    print_step(&sb, l, p->step);
    const ingot_status status = complain(
        INGOT_UNSUPPORTED,
        "%s: %s: a result of up to %lld bytes is too large; --dim bounds sizes and integers",
        l->s->o->model, sb.data, (long long)p->buffer->bytes);
    sb_free(&sb);
    return status;
}

static ingot_status lockstep_new(Lockstep *l, const Session *s, const Plan *p, Arena *a)
{
    const int64_t most = INT64_C(1) << 34;
    int64_t bytes = 1;
    const StepResult *large = NULL;
    *l = (Lockstep){.s = s, .p = p};
    add_places(l, &p->main);
    for (int i = 0; i < l->n; i++) {
        const Buffer *b = l->place[i].buffer;
        if (b->bytes > most && (!large || !large->step->norigin)) /* one that has a name */
            large = &l->place[i];
        bytes = b->bytes > bytes ? b->bytes : bytes;
    }
    if (large)
        return too_large(l, large);
    for (int i = 0; i < 2; i++) {
        l->bytes[i] = arena_alloc(a, (size_t)bytes);
        l->number[i] = NEWN(a, double, CHUNK);
    }
    l->rounding = rounding_new(s, p, a);
    return INGOT_OK;
}

ingot_status lockstep(const Session *s, const Plan *p, const char *twin, const char *out)
{
    Arena *a = arena_new();
    Lockstep l;
    ingot_status status = lockstep_new(&l, s, p, a);
    l.leader = NAIVE;
    const char *places = arena_printf(s->a, "%s/places", s->work);
    if (status == INGOT_OK)
        status = write_places(&l, places);
    signal(SIGPIPE, SIG_IGN); /* a program that ends early is told by its status */
    if (status == INGOT_OK)
        status = run_both(&l, twin, places, out);
    if (status == INGOT_OK)
        status = report(&l);
    if (l.rounding)
        rounding_free(l.rounding);
    arena_free(a);
    return status;
}

ingot_status interpreter_failed(const Session *s, const PlanInterp *x)
{
    if (x->most && x->done >= x->most)
        return complain(INGOT_UNSUPPORTED, "%s: this takes too long to be interpreted: %s",
                        s->o->model, x->fault);
    return complain(INGOT_DIFFERS, "%s: %s", s->o->model, x->fault);
}

static void interpreted(void *user, const Step *step, const Buffer *b, const unsigned char *got,
                        const unsigned char *naive)
{
    Lockstep *l = user;
    rounding_sizes(l->rounding, l->running->ip);
    for (int i = 0; i < l->n; i++) {
        StepResult *p = &l->place[i];
        if (p->step != step || p->buffer != b)
            continue;
        if (step->kind != STEP_KERNEL) {
            rounding_wrote(l->rounding, step, b, p->offset, (const char *)got);
            continue;
        }
        memcpy(l->bytes[0], got, (size_t)b->bytes);
        memcpy(l->bytes[1], naive, (size_t)b->bytes);
        compare(l, p);
    }
}

ingot_status lockstep_interpreted(const Session *s, PlanInterp *x, const ingot_value *in,
                                  ingot_value *out)
{
    Arena *a = arena_new();
    Lockstep l;
    bool good = true;
    ingot_status status = lockstep_new(&l, s, x->p, a);
    if (status == INGOT_OK) {
        l.running = x;
        x->wrote = interpreted;
        x->user = &l;
        good = plan_interpret(x, s->a, in, out);
        status = report(&l);
    }
    if (l.rounding)
        rounding_free(l.rounding);
    arena_free(a);
    return good ? status : interpreter_failed(s, x);
}
