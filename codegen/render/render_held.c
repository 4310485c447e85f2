/* render_held.c - weights come before a kernel waits for those before it.
 *
 * What a matrix times a vector costs is reading the matrix, which no kernel writes.  A kernel that
 * begins while the one before it ends (igrt_before_others()) has its weights on their way when it
 * comes to the wait, and is behind it with them in registers:
 *
 *     const uint4 h3[4] = {igrt_hold_16(a3 + ..), ..};
 *     igrt_after_others();
 *     #pragma unroll
 *     for (int r0_o = 0; r0_o < 4; r0_o++) {
 *         #pragma unroll
 *         for (int r0_i = 0; r0_i < 8; r0_i++) {
 *             const float v7 = igrt_run_f32(a2 + .., r0_i);
 *             s5 = igrt_muladd_f32(v7, igrt_f16_to_f32(igrt_held_u16(h3 + r0_o, r0_i)), s5);
 *
 * So are loads in loops that are straight-line, which every item makes: their addresses, with the
 * loops' counters as numbers, are what the item's number says.  As many are held as leave a group
 * its registers. */
#include <string.h>

#include "render.h"

enum { MOST_LOOPS = 4, MOST_OPEN = 8, WORD = 4, PIECE = 16 };

/* A load that is held: hN[] by the counters of the loops that it moves with, the run apart. */
typedef struct HeldLoad {
    Node *load, *run; /* the loop along its run, NULL: it is an element */
    Node *loop[MOST_LOOPS];
    int64_t extent[MOST_LOOPS];
    int nloop, pieces; /* pieces: of a run */
    int64_t words;
    int number;
    Node *of;   /* the address of the load that was held, of which this one is the same; or NULL */
    bool ahead; /* render_loops.c: by the number of an iteration among those that come together */
} HeldLoad;

typedef struct {
    Node *loop[MOST_OPEN];
    bool straight[MOST_OPEN];
    int n;
} Open;

/* Do items share the terms of a row, 16 bytes at a time? They are under way together. */
bool render_goes_along_rows(const Render *r)
{
    bool shares = false, staged = false;
    for (int i = 0; i < r->of->nopt; i++) {
        const Opt *o = &r->of->opts[i];
        shares |= o->kind == OPT_BIND && o->amount == BOUND_LANE && o->axis[0] == 'r';
        staged |= o->kind == OPT_STAGE || o->kind == OPT_TC;
    }
    return r->lang->runs && r->nrun && shares && !staged;
}

/* How many steps of loops over terms are straight-line code: more of what is in words, which are
 * under way together, and have several steps each. */
static int straight(const Render *r)
{
    enum { OF_WORDS = 64 };
    if (render_goes_along_rows(r))
        return OF_WORDS;
    bool words = r->lang->runs && r->l.tile->across && !r->l.tile->tc;
    for (int i = 0; words && i < r->k->narg; i++)
        if (r->k->args[i].dtype == INGOT_U8 && r->k->args[i].early && !r->k->args[i].written)
            return OF_WORDS;
    return tc_straight(r->l.tile->tc);
}

/* A loop over the terms of a sum that is short with all loops in it, such as those over a window.
 * Of rows in registers nothing else is a loop: a product each must not be longer than what a
 * processor keeps of its instructions. */
bool render_is_short(const Render *r, const Node *range, bool *rolled)
{
    enum { PRODUCTS = 128 };
    int64_t terms = 1, products = 0, extent;
    bool sum = false;
    for (int i = 0; i < r->l.tile->nreduce; i++)
        sum |= r->l.tile->reduce[i].range == range;
    int at = 0, open = 0, later = 0; /* depth of a loop that a later iteration is filled for */
    while (sum && at < r->l.n && (r->l.stmt[at].kind != STMT_LOOP || r->l.stmt[at].node != range))
        at++;
    if (!sum || at == r->l.n) { /* items that BIND gave terms to are no loop */
        *rolled = false;
        return false;
    }
    do {
        const Stmt *s = &r->l.stmt[at++];
        open += (s->kind == STMT_LOOP) - (s->kind == STMT_END);
        if (s->kind == STMT_LOOP && s->from)
            later = open;
        if (open < later)
            later = 0;
        if (s->kind == STMT_LOOP && !later)
            terms = idx_value(s->node->src[0], &extent) ? sat_mul(terms, extent) : INT64_MAX;
        if (r->l.tile->quad && s->kind == STMT_UPDATE && s->reduce == REDUCE_PRODUCTS)
            products += r->l.tile->tc->products;
    } while (open && at < r->l.n);
    *rolled = sat_mul(terms, products) > PRODUCTS;
    return terms <= straight(r);
}

static bool is_item(const Render *r, const Node *range)
{
    for (int i = 0; i < r->l.n && r->l.stmt[i].kind == STMT_ITEM; i++)
        if (r->l.stmt[i].node == range)
            return true;
    return false;
}

/* The loops that an address moves with; false: it is made of something else, or of too many. */
static bool find_counters(const Render *r, const Open *open, Node *n, HeldLoad *h)
{
    if (n->op == OP_LOAD || n->op == OP_REDUCE || n->op == OP_SCAN || n->dtype != INGOT_INDEX)
        return false;
    if (n->op == OP_RANGE) {
        bool known = is_item(r, n) || n == h->run;
        for (int i = 0; i < h->nloop && !known; i++)
            known = h->loop[i] == n;
        for (int i = 0; i < open->n && !known; i++)
            if (open->loop[i] == n && h->nloop < MOST_LOOPS) {
                h->loop[h->nloop] = n;
                known = idx_value(n->src[0], &h->extent[h->nloop++]);
            }
        return known;
    }
    for (uint32_t i = 0; i < n->nsrc; i++)
        if (!find_counters(r, open, n->src[i], h))
            return false;
    return true;
}

static int64_t count_of(const HeldLoad *h)
{
    int64_t n = 1;
    for (int i = 0; i < h->nloop; i++)
        n = sat_mul(n, h->extent[i]);
    return n;
}

static int bytes_of(const HeldLoad *h)
{
    return dtype_info[h->load->dtype].bytes;
}

/* A run of bytes may be one word. */
static bool is_word(const HeldLoad *h)
{
    return h->run && bytes_of(h) == 1 && h->run->hi + 1 == WORD;
}

/* A load of what nobody writes meanwhile, and as it stands. */
static bool is_plain(const Render *r, const Node *n)
{
    const int64_t arg = n->src[0]->op == OP_BUFFER ? n->src[0]->arg.i : r->narg;
    return n->nsrc == 3 && arg < r->narg && !r->k->args[arg].written &&
           node_is_const_i(n->src[1], 1) && !n->arg.i && n->id < r->l.nknown &&
           !r->l.vector[n->id] && !r->l.fragment[n->id] && !copy_base(r->l.tile, n) &&
           (!r->nrun || !r->run_of[n->id]) && !render_is_bulk(r, n);
}

static bool is_weight(const Render *r, const Node *n)
{
    return is_plain(r, n) && r->k->args[n->src[0]->arg.i].early;
}

const HeldLoad *render_held_of(const Render *r, const Node *load)
{
    for (int i = 0; i < r->nheld; i++)
        if (r->held[i].load == load)
            return &r->held[i];
    return NULL;
}

/* All loads of a value that can be held. */
static void find_held(Render *r, const Open *open, Node *n)
{
    if (n->dtype == INGOT_INDEX || is_named(r, n))
        return;
    if (n->op == OP_LOAD && is_weight(r, n) && !render_held_of(r, n)) {
        HeldLoad h = {.load = n, .run = render_run_of(r, n), .pieces = 1};
        const bool found = find_counters(r, open, n->src[2], &h);
        h.words = h.run ? (h.run->hi + 1) * bytes_of(&h) / WORD : 1;
        h.pieces = (int)(h.words * WORD / PIECE);
        h.words = sat_mul(h.words, count_of(&h));
        if (found && bytes_of(&h) <= WORD)
            vec_push(r->arena, r->held, r->nheld, h);
    }
    if (n->op == OP_REDUCE || n->op == OP_PROJ)
        return;
    for (uint32_t i = 0; i < n->nsrc; i++)
        find_held(r, open, n->src[i]);
}

/* Bytes of the buffer: of large ones each element is read by few groups, and comes from memory. */
static int64_t buffer_bytes(const Render *r, const HeldLoad *h)
{
    const KernelArg *arg = &r->k->args[h->load->src[0]->arg.i];
    int64_t n = dtype_info[arg->dtype].bytes;
    for (int i = 0; i < arg->rank; i++)
        n = sat_mul(n, arg->dims[i]->hi);
    return n;
}

/* Words that items hold: as many as leave each its registers. Where fewer are half of all that
 * there are, three groups are beside each other, not two: more words are under way, and one of them
 * multiplies meanwhile (H200, two matrices of 8,192 rows of 2,048 f16: 15.99 us for 16.65). */
static int64_t held_words(Render *r)
{
    enum { GROUPS = 3, FEWER = HELD_WORDS * 3 / 4, BESIDE = HELD_WORDS / 2 };
    const int64_t items = (int64_t)GROUPS * tile_group(r->l.tile);
    int64_t all = 0;
    for (int i = 0; i < r->nheld; i++)
        all += r->held[i].words;
    if (r->group || all <= HELD_WORDS || all > 2 * FEWER ||
        items * (FEWER + BESIDE) > r->t->machine.file)
        return HELD_WORDS;
    r->crowd = GROUPS;
    return FEWER;
}

/* As many as there are registers for, in the order in which they were found; of digits those of the
 * largest buffers first (a vector that is held besides f16 is worth more: 1B f16 on an H200, a
 * token 0.713 ms, and 0.724). */
static void choose_held(Render *r)
{
    bool *taken = NEWN(r->arena, bool, r->nheld + 1), words = false;
    int n = 0;
    for (int i = 0; i < r->nheld; i++)
        words |= is_word(&r->held[i]);
    for (int64_t left = words ? HELD_WORDS : held_words(r), most; (most = 0, left > 0);) {
        int best = -1;
        for (int i = 0; i < r->nheld; i++) {
            const int64_t bytes = words ? buffer_bytes(r, &r->held[i]) : 1;
            if (!taken[i] && r->held[i].words <= left && bytes > most) {
                most = bytes;
                best = i;
            }
        }
        if (best < 0)
            break;
        taken[best] = true;
        left -= r->held[best].words;
    }
    for (int i = 0; i < r->nheld; i++)
        if (taken[i])
            r->held[n++] = r->held[i];
    r->nheld = n;
}

static const char *type_of(Render *r, const HeldLoad *h)
{
    return is_word(h) ? "uint32_t" : h->run ? "uint4" : r->lang->type(h->load->dtype, false);
}

/* {igrt_hold_16(a3 + ..), ..}: in the order of the counters, the last of them the fastest. */
static void hold(Render *r, HeldLoad *h)
{
    Context *c = r->k->c;
    Node *from[MOST_LOOPS + 1], *to[MOST_LOOPS + 1];
    const int64_t count = count_of(h);
    const int pieces = h->pieces ? h->pieces : 1;
    h->number = r->nvalue++;
    render_indent(r, 0);
    sb_printf(r->sb, "const %s h%d[%lld] = {", type_of(r, h), h->number, (long long)count * pieces);
    for (int64_t at = 0; at < count * pieces; at++) {
        int64_t rest = at / pieces;
        for (int i = h->nloop; i-- > 0; rest /= h->extent[i]) {
            from[i] = h->loop[i];
            to[i] = idx(c, rest % h->extent[i]);
        }
        from[h->nloop] = h->run;
        to[h->nloop] = idx(c, at % pieces * (PIECE / bytes_of(h)));
        Node *where = substitute(c, h->load->src[2], h->nloop + (h->run != NULL), from, to);
        put(r, at ? ",\n        " : "");
        sb_printf(r->sb, "igrt_hold_%s(a%lld + ",
                  h->pieces    ? "16"
                  : is_word(h) ? "word"
                               : "one",
                  (long long)h->load->src[0]->arg.i);
        render_expr(r, where);
        put(r, ")");
    }
    put(r, "};\n");
}

/* What is open behind a statement that begins or ends a loop. */
static void pass(const Render *r, Open *open, const Stmt *s)
{
    bool rolled = true;
    if (s->kind == STMT_LOOP && open->n < MOST_OPEN) {
        open->straight[open->n] = !s->from && !s->zero && render_is_short(r, s->node, &rolled) &&
                                  !rolled && idx_value(s->node->src[0], NULL);
        open->loop[open->n++] = s->node;
    } else if (s->kind == STMT_END && open->n) {
        open->n--;
    }
}

static bool is_straight(const Open *open)
{
    bool straight = open->n > 0;
    for (int i = 0; i < open->n; i++)
        straight &= open->straight[i];
    return straight;
}

static bool holds(const Render *r)
{
    return r->lang->begin && r->lang->runs && !r->l.tile->tc && !r->l.wide;
}

/* Of what stands behind the wait. */
void render_hold(Render *r, const Stmt *wait)
{
    Open open = {.n = 0};
    r->nheld = 0;
    r->held = NULL;
    r->walked = NULL;
    render_bulk_begin(r);
    if (!holds(r))
        return;
    for (const Stmt *s = wait; s < r->l.stmt + r->l.n; s++) {
        if (s->kind == STMT_PARTS || s->kind == STMT_LOADER || s->kind == STMT_FILL)
            break;
        if (is_straight(&open) && (s->kind == STMT_LET || s->kind == STMT_UPDATE))
            find_held(r, &open, s->kind == STMT_LET ? s->node : update_value(s));
        pass(r, &open, s);
    }
    choose_held(r);
    bool streams = false; /* elements alone are few bytes */
    for (int i = 0; i < r->nheld; i++)
        streams |= r->held[i].run != NULL;
    if (!streams)
        r->nheld = r->crowd = 0;
    for (int i = 0; i < r->nheld; i++)
        hold(r, &r->held[i]);
    if (r->nheld)
        r->needs |= NEED_RUN;
}

/* ---- rows that are read twice ---------------------------------------------------------------- */

/* Loads of sums behind the wait that go along pieces of 16 bytes. */
typedef struct {
    HeldLoad *load;
    int n;
    Node *turn; /* the loop in which results are stored, or NULL */
} TermLoads;

/* The open loop along which the load goes through whole pieces, or NULL. */
static Node *loop_along(const Render *r, const Open *open, const Node *n)
{
    Context *c = r->k->c;
    const int64_t elements = PIECE / dtype_info[n->dtype].bytes;
    for (int i = open->n; i-- > 0;) {
        Node *range = open->loop[i], *zero = idx(c, 0);
        int64_t stride, extent;
        if (range_stride(c, n->src[2], range, &stride) && stride == 1 &&
            idx_value(range->src[0], &extent) && extent % elements == 0 &&
            idx_is(idx_mod(c, substitute(c, n->src[2], 1, &range, &zero), idx(c, elements)), 0))
            return range;
    }
    return NULL;
}

static void find_terms(Render *r, const Open *open, Node *n, TermLoads *t)
{
    if (n->dtype == INGOT_INDEX || n->op == OP_REDUCE || n->op == OP_PROJ)
        return;
    const bool wide = n->dtype == INGOT_F32 || n->dtype == INGOT_F16 || n->dtype == INGOT_BF16;
    bool known = n->op != OP_LOAD || !wide || !is_plain(r, n) || render_held_of(r, n);
    for (int i = 0; i < t->n && !known; i++)
        known = t->load[i].load == n;
    HeldLoad h = {.load = n, .run = known ? NULL : loop_along(r, open, n)};
    if (h.run && find_counters(r, open, n->src[2], &h)) {
        const int64_t words = (h.run->hi + 1) * bytes_of(&h) / WORD;
        h.pieces = (int)(words * WORD / PIECE);
        h.words = sat_mul(words, count_of(&h));
        vec_push(r->arena, t->load, t->n, h);
    }
    for (uint32_t i = 0; i < n->nsrc; i++)
        find_terms(r, open, n->src[i], t);
}

/* Until the first result is stored. */
static TermLoads term_loads(Render *r, const Stmt *wait)
{
    TermLoads t = {NULL, 0, NULL};
    Open open = {.n = 0};
    for (const Stmt *s = wait; s < r->l.stmt + r->l.n; s++) {
        if (s->kind == STMT_PARTS || s->kind == STMT_LOADER)
            break;
        if (s->kind == STMT_STORE && s->node->src[0]->op == OP_BUFFER &&
            s->node->src[0]->arg.i < r->narg) {
            t.turn = open.n ? open.loop[open.n - 1] : NULL;
            t.n = open.n > 1 ? 0 : t.n;
            return t;
        }
        if (is_straight(&open) && (s->kind == STMT_LET || s->kind == STMT_UPDATE))
            find_terms(r, &open, s->kind == STMT_LET ? s->node : update_value(s), &t);
        pass(r, &open, s);
    }
    t.n = 0;
    return t;
}

/* Where the load reads when its loop is in iteration `turn`, at element `at` along its pieces. */
static Node *address(Render *r, const HeldLoad *h, Node *turn, Node *at)
{
    Node *from[MOST_LOOPS + 1] = {h->run}, *to[MOST_LOOPS + 1] = {at};
    for (int i = 0; i < h->nloop; i++) {
        from[i + 1] = h->loop[i];
        to[i + 1] = turn;
    }
    return substitute(r->k->c, h->load->src[2], h->nloop + 1, from, to);
}

static bool is_read_at(Render *r, const TermLoads *t, const HeldLoad *h, Run *run)
{
    const Node *first = run->access[0];
    int64_t extent = 1;
    if (h->nloop > 1 || (h->nloop == 1) != (t->turn != NULL) || h->load->src[0] != first->src[0] ||
        (t->turn && (!idx_value(t->turn->src[0], &extent) || extent != h->extent[0])))
        return false;
    for (int piece = 0; piece < h->pieces; piece++)
        if (address(r, h, t->turn, idx(r->k->c, (int64_t)piece * run->elements)) == first->src[2]) {
            run->piece = piece;
            return true;
        }
    return false;
}

/* An item walks over the elements that it has summed: it has loaded them once. */
void render_hold_rows(Render *r, const Stmt *wait)
{
    enum { MOST_WORDS = 32 }; /* an item's: others are on the processor, too */
    if (!holds(r) || !r->nrun || r->nheld)
        return;
    TermLoads t = term_loads(r, wait);
    int64_t words = 0;
    for (int i = 0; i < t.n; i++) {
        HeldLoad *h = &t.load[i];
        bool again = false;
        for (int k = 0; k < r->nrun; k++)
            if (r->run[k].n == r->run[k].elements && !r->run[k].held &&
                words + h->words <= MOST_WORDS && is_read_at(r, &t, h, &r->run[k])) {
                again = r->run[k].held = true;
                r->run[k].of = i;
                r->run[k].pieces = h->pieces;
            }
        words += again ? h->words : 0;
        h->of = again ? h->load->src[2] : NULL;
    }
    for (int i = 0; i < t.n; i++) {
        HeldLoad *h = &t.load[i];
        if (h->of == h->load->src[2]) {
            hold(r, h);
            vec_push(r->arena, r->held, r->nheld, *h);
        }
    }
    for (int i = 0; i < t.n; i++) /* another sum over the same row */
        for (int k = 0; k < t.n && !t.load[i].of; k++) {
            HeldLoad *h = &t.load[i];
            const HeldLoad *like = &t.load[k];
            if (like->of != like->load->src[2] || like->load->src[0] != h->load->src[0] ||
                h->nloop != like->nloop || h->pieces != like->pieces ||
                (h->nloop && h->extent[0] != like->extent[0]) ||
                address(r, like, h->loop[0], h->run) != h->load->src[2])
                continue;
            h->number = like->number;
            h->of = like->of;
            vec_push(r->arena, r->held, r->nheld, *h);
        }
    for (int k = 0; k < r->nrun; k++)
        r->run[k].of = r->run[k].held ? t.load[r->run[k].of].number : 0;
    r->walked = r->nheld ? t.turn : NULL;
    r->needs |= r->nheld ? NEED_RUN : 0;
}

/* h3[2*turn + 1] */
void render_piece(Render *r, const Run *run)
{
    sb_printf(r->sb, "h%d[", run->of);
    if (r->walked) {
        render_range(r, r->walked);
        sb_printf(r->sb, "*%d + ", run->pieces);
    }
    sb_printf(r->sb, "%d]", run->piece);
}

/* r0_o + r1*4: which of them it is; behind a name or not. */
static void counters(Render *r, const HeldLoad *h, bool behind)
{
    int64_t step = h->pieces ? h->pieces : 1;
    for (int i = h->nloop; i-- > 0; step *= h->extent[i]) {
        put(r, behind || i < h->nloop - 1 ? " + " : "");
        render_range(r, h->loop[i]);
        if (step > 1)
            sb_printf(r->sb, "*%lld", (long long)step);
    }
}

void render_word_of(Render *r, Node *load, bool ended)
{
    Node *const range = render_run_of(r, load);
    if (render_is_bulk(r, load)) {
        render_bulk_word(r, load, range);
        return;
    }
    const HeldLoad *h = render_held_of(r, load);
    if (h) {
        sb_printf(r->sb, "h%d[", h->number);
        counters(r, h, false);
        put(r, h->nloop ? "]" : "0]");
        return;
    }
    sb_printf(r->sb, "igrt_word_at(a%lld + (", (long long)load->src[0]->arg.i);
    if (ended) {
        Node *zero = idx(r->k->c, 0);
        render_expr(r, substitute(r->k->c, load->src[2], 1, &range, &zero));
    } else {
        render_expr(r, load->src[2]);
        put(r, " - ");
        render_range(r, range);
    }
    put(r, "))");
}

void render_hold_ahead(Render *r, Node *load)
{
    HeldLoad h = {.load = load, .ahead = true, .number = r->nvalue++};
    vec_push(r->arena, r->held, r->nheld, h);
}

void render_declare_ahead(Render *r, int n, int depth)
{
    for (int i = 0; i < r->nheld; i++) {
        render_indent(r, depth);
        sb_printf(r->sb, "%s h%d[%d];\n", type_of(r, &r->held[i]), r->held[i].number, n);
    }
}

void render_load_ahead(Render *r, int depth)
{
    const int n = r->nheld;
    for (int i = 0; i < n; i++) {
        render_indent(r, depth);
        sb_printf(r->sb, "h%d[ahead] = ", r->held[i].number);
        r->nheld = 0; /* it is loaded here */
        render_bare(r, r->held[i].load);
        r->nheld = n;
        put(r, ";\n");
    }
}

/* igrt_held_u16(h3 + r0_o, r0_i) */
void render_held(Render *r, const HeldLoad *h)
{
    if (h->ahead) {
        sb_printf(r->sb, "h%d[ahead]", h->number);
        return;
    }
    if (h->run)
        sb_printf(r->sb, "igrt_held_%s%s(", is_word(h) ? "word_" : "",
                  render_run_word(h->load->dtype));
    sb_printf(r->sb, "h%d%s", h->number, h->run ? "" : "[");
    counters(r, h, h->run != NULL);
    if (h->run) {
        put(r, ", ");
        render_range(r, h->run);
    } else if (!h->nloop) {
        put(r, "0");
    }
    put(r, h->run ? ")" : "]");
}
