/* pitch.c - how far apart the rows of a stored value begin, where it is not as far as they are
 * long.
 *
 * Matrix units read and write blocks of rows, and so do tiles of sums in registers, of up to 16
 * rows.  Two things make that slow, and some elements behind each row mend both:
 *
 *   f16[12,197,197]   394 bytes a row: on a GPU all copies of 16 bytes begin at multiples of 16, so
 *                     none could be made of these rows.  pitch(2,208): whole sectors of memory, if
 *                     that takes little, or else multiples of 16 bytes.
 *   bf16[1024,1024]   2048 bytes a row: the index of a cache's set is a part of the address below
 *                     4096, so that the 32 rows which two fragments have lie in 2 of 64 sets, and
 *                     drive each other out.  pitch(1,1056): a line more.
 *   f32[197,3072]     three pages a row: the 11 rows of a tile lie in one set of 8 ways.
 *                     pitch(1,3088): 197x3072x768 takes 0.96 of the time (Zen 4).
 *
 * What is behind a row belongs to nobody: nothing clears it, and whoever reads whole pieces of a
 * row takes as much as there is (store_whole()). Inputs and outputs stay as the model declares
 * them.  Where memory is dear no row is longer than it has to be. */
#include "cpu.h"

enum {
    WAYS =
        /* lines of a set that rows may have: others are for what is read beside, and what is loaded
         * ahead */
    4,
    ROWS = 2 * MAX_ROWS, /* of a block: two fragments */
    SHARE = 16,          /* of a product's time that rows in few sets cost */
    READ = 2 * SHARE,    /* the same of a tile that reads them, */
    WRITTEN = 4 * SHARE, /* and of one that writes them */
    MAX_SETS = 256
};

typedef struct {
    Arena *a;
    const Target *t;
    double *gain; /* by buffer: cycles */
} Pitches;

/* How far rows are to be apart: behind what the layout does; false: they are well as they are. */
static bool wanted(const Buffer *b, const Layout *l, const Target *t, LayoutOp *op)
{
    int64_t dims[INGOT_MAX_RANK], size[2 * INGOT_MAX_RANK], rows = 1;
    const int64_t bytes = elem_bytes(b->dtype);
    for (int i = 0; i < b->rank; i++)
        if (!idx_value(b->dims[i], &dims[i]) || dims[i] < 1)
            return false;
    int n = layout_storage(l, b->rank, dims, size);
    while (n > 1 && size[n - 1] == 1)
        n--;
    *op = (LayoutOp){.kind = LAYOUT_PITCH, .axis = (int8_t)(n - 1)};
    for (int i = 0; i < n - 1; i++)
        rows = sat_mul(rows, size[i]);
    const int64_t row = sat_mul(size[n - 1], bytes), line = t->machine.line;
    if (n < 2 || rows < 2 || l->n == (int)(sizeof l->op / sizeof *l->op))
        return false;
    if (t->gpu) {
        const int64_t piece = t->machine.access, sector = t->machine.sector;
        int64_t whole = ceil_div(row, sector) * sector;
        if (whole - row > row / piece)
            whole = ceil_div(row, piece) * piece;
        op->a = whole / bytes;
        return row % piece && whole <= 2 * row && whole % bytes == 0;
    }
    bool used[MAX_SETS] = {false};
    /* of a first level of cache: a page has so many lines */
    const int64_t all = t->machine.page / line < MAX_SETS ? t->machine.page / line : MAX_SETS;
    int sets = 0;
    const int block =
                  has_units(&t->machine) ? ROWS : MAX_ROWS, /* a tile may have all lines of a set */
        ways = has_units(&t->machine) ? WAYS : t->machine.ways;
    for (int64_t i = 0; i < block && i < rows; i++) {
        bool *set = &used[i * row / line % all];
        sets += !*set;
        *set = true;
    }
    op->a = size[n - 1] + line / bytes;
    return row % line == 0 && rows >= block && sets * ways < block;
}

static void count(Pitches *x, const Step *s, Node *access, double cycles)
{
    x->gain[s->bufs[access->src[0]->arg.i]->id] += cycles;
}

/* Does the target have a matrix unit for what the sum of products reads? */
static bool has_unit(const View *v, const Target *t)
{
    for (const Tc *u = NULL; (u = tc_next(&t->machine, u));) {
        bool takes = true;
        for (int j = 0; j < v->nfactor && takes; j++)
            takes = tc_reads((ingot_dtype)v->factor[j]->dtype, u->a) ||
                    tc_reads((ingot_dtype)v->factor[j]->dtype, u->b);
        if (takes)
            return true;
    }
    return false;
}

/* Has a tile several rows of it side by side, and goes along each from term to term? */
static bool walks_rows(const Kernel *k, const View *v, Node *factor)
{
    bool terms = false, rows = false;
    int64_t stride;
    for (uint32_t i = 1; i < v->dot->nsrc; i++)
        terms |= access_stride(k, factor, v->dot->src[i], &stride) && stride == 1;
    for (int i = 0; i < v->nrange; i++)
        for (int j = 0; j < v->nfactor; j++)
            rows |= depends_on(factor, v->range[i]) && !depends_on(v->factor[j], v->range[i]);
    return terms && rows;
}

/* What tiles of sums in registers read and write. */
static void count_tiles(Pitches *x, const Step *s)
{
    const Kernel *k = s->kernel;
    const View v = kernel_view(k);
    bool tiled = false;
    if (!v.dot || !x->t->machine.lanes || x->t->gpu)
        return;
    const double cycles = cost_kernel(k, x->t);
    for (int i = 0; i < v.nfactor; i++)
        if (walks_rows(k, &v, v.factor[i])) {
            count(x, s, v.factor[i], cycles / READ);
            tiled = true;
        }
    for (int i = 0; i < v.nstore && tiled; i++)
        count(x, s, v.store[i], cycles / WRITTEN);
}

/* What the products of a matrix unit read and write. */
static void count_products(Pitches *x, const Step *s)
{
    View v = kernel_view(s->kernel);
    if (!v.dot || !has_unit(&v, x->t)) {
        count_tiles(x, s);
        return;
    }
    double cycles = cost_kernel(s->kernel, x->t) / (x->t->gpu ? 2 : SHARE);
    for (int i = 0; i < v.nfactor; i++)
        count(x, s, v.factor[i], cycles);
    for (int i = 0; i < v.nstore; i++)
        count(x, s, v.store[i], cycles);
}

void pitch_weight(const Buffer *b, const Target *t, Layout *l)
{
    LayoutOp pitch;
    if (t->machine.byte < DEAR && wanted(b, l, t, &pitch))
        l->op[l->n++] = pitch;
}

void choose_pitches(Plan *p, Step *const *kernel, int n, const bool *kept, const Target *t)
{
    if ((!has_units(&t->machine) && !t->machine.lanes) || t->machine.byte >= DEAR)
        return;
    Pitches x = {.a = arena_new(), .t = t};
    x.gain = NEWN(x.a, double, p->nbuffer);
    for (int i = 0; i < n; i++)
        count_products(&x, kernel[i]);
    const Lives lives = lives_of(x.a, p, &p->main);
    for (int i = 0; i < p->nbuffer; i++) {
        Buffer *b = p->buffers[i];
        LayoutOp pitch;
        if (kept[i] || !(x.gain[i] > 0) || !wanted(b, &b->layout, t, &pitch))
            continue;
        Layout was = b->layout;
        const double dense = (double)b->bytes;
        b->layout.op[b->layout.n++] = pitch;
        buffer_layout_changed(b);
        double more = (double)b->bytes - dense;
        const Life life = lives.of[b->id];
        double grows = life.first < 0 ? more : arena_growth(&lives, life, more);
        if (x.gain[i] > cost_bytes(more, (double)b->bytes, t) + grows * t->machine.byte)
            continue;
        b->layout = was;
        buffer_layout_changed(b);
    }
    arena_free(x.a);
}
