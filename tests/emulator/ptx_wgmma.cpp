/* ptx_wgmma.cpp - tokens, boxes and products of a warpgroup, by the PTX ISA: "mbarrier",
 * "cp.async.bulk.tensor", "Asynchronous Warpgroup Level Matrix Multiply-Accumulate", "Strides" (of
 * canonical layouts with swizzle of 128 bytes), "Async proxy".
 *
 * What is asynchronous happens when somebody waits for it, or ($EMULATED_ORDER=backward) as soon as
 * it may: a warp's rows of a product when the warp asks for it, whatever the other three do. Sums
 * under way are NaN. Products read memory as the async proxy sees it: what items write is there
 * behind fence.proxy.async. */
#include "ptx_wgmma.h"

#include "boxes.h"
#include "items.h"

namespace gpu
{

struct Box {
    Map map;
    uint32_t to;
    int place[AXES], tap[AXES];
};
/* Bytes that lie side by side. */
struct Piece {
    uint32_t to;
    const unsigned char *from;
    int bytes;
};
struct Token {
    int arrivals, left;
    int64_t bytes = 0; /* that are still to come */
    unsigned phase = 0;
    bool fenced = false;
    unsigned owner;
    std::vector<Box> boxes;
    std::vector<Piece> pieces;
};
/* A product of the 128 items. */
struct Work {
    Product what;
    int issued = 0, of_warp[WARPGROUP / WARP] = {};
    std::vector<uint32_t> rows;
    std::vector<void *> sums;
};
union Sum {
    float real;
    int32_t whole; /* of bytes */
};
struct Sums {
    std::vector<Sum> value;
    size_t last; /* product */
};
/* What an item knows of its products. */
struct Own {
    size_t issued = 0;
    std::vector<size_t> groups; /* committed: the number of the product behind it */
    std::map<void *, Sums> under_way;
    bool fenced = false;
};
struct Warpgroup {
    std::vector<Work> work;
    size_t done = 0; /* the first so many */
    std::vector<Own> own{WARPGROUP};
};
struct Units {
    std::map<uint32_t, Token> token;
    std::map<unsigned, Warpgroup> warpgroup;
    std::map<unsigned, int> fences; /* by warp */
    std::vector<unsigned char> seen =
        std::vector<unsigned char>(GROUP_BYTES, 0xff); /* by the async proxy */
};

static Units &units()
{
    if (!now->group->units)
        now->group->units = std::make_shared<Units>();
    return *now->group->units;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

void begin_token(uint32_t token, int arrivals)
{
    if (token % 8 || arrivals < 1)
        fault("mbarrier.init: not aligned, or of no arrivals");
    Token t;
    t.arrivals = t.left = arrivals;
    t.owner = now->number;
    if (!units().token.emplace(token, t).second)
        fault("mbarrier.init: it is one already");
}

void fence_tokens()
{
    for (auto &t : units().token)
        t.second.fenced = t.second.fenced || t.second.owner == now->number;
}

static Token &token_at(uint32_t token)
{
    auto found = units().token.find(token);
    if (found == units().token.end())
        fault("an mbarrier that has not been initialised");
    return found->second;
}

static void settle(Token &t)
{
    if (t.left || t.bytes)
        return;
    t.left = t.arrivals;
    t.phase++;
}

void arrive_at(uint32_t token, int bytes)
{
    Token &t = token_at(token);
    t.bytes += bytes;
    t.left--;
    settle(t);
}

/* Where line number `left` of a box lies; of a window's, its tap of a position, which are counted
 * on along rows and from image to image. false: beyond the ends. */
static bool line_at(const Box &b, int left, int64_t *offset)
{
    const Map &m = b.map;
    bool inside = true;
    *offset = 0;
    for (int d = 1; d < m.rank; d++) {
        int64_t i = b.place[d] + left % m.box[d];
        if (m.window && d + 1 < m.rank) {
            const int64_t position = (b.place[d] - m.low[d]) / m.step[d] + left;
            if (b.place[d] < m.low[d] || (b.place[d] - m.low[d]) % m.step[d])
                fault("a window at no position of its map");
            i = m.low[d] + position % m.many[d] * m.step[d] + b.tap[d];
            left = (int)(position / m.many[d]);
        } else if (m.window) {
            i = b.place[d] + left;
        } else {
            left /= m.box[d];
        }
        inside = inside && i >= 0 && i < m.extent[d];
        *offset += i * (int64_t)m.stride[d];
    }
    return inside;
}

/* Lines of 128 bytes, or 64, zeros where the map has none. */
static void deliver(Token &t, const Box &b)
{
    const Map &m = b.map;
    const int n = m.box[0] * m.element;
    int lines = 1;
    for (int d = 1; d < m.rank; d++)
        lines *= m.box[d];
    for (int line = 0; line < lines; line++) {
        int64_t offset;
        const bool inside = line_at(b, line, &offset);
        for (int i = 0; i < m.box[0]; i++) {
            const int64_t x = b.place[0] + i;
            const uint32_t to = swizzled(b.to + (uint32_t)(line * m.line + i * m.element), m.line);
            unsigned char *const bytes = at(to);
            if (inside && x >= 0 && x < m.extent[0])
                memcpy(bytes, m.memory + offset + x * m.element, m.element);
            else
                memset(bytes, 0, m.element);
            memcpy(&units().seen[to & 0xffffff], bytes, m.element);
        }
    }
    t.bytes -= (int64_t)n * lines;
    settle(t);
}

static void deliver(Token &t, const Piece &p)
{
    memcpy(at(p.to), p.from, (size_t)p.bytes);
    t.bytes -= p.bytes;
    settle(t);
}

static void deliver_all(Token &t)
{
    const std::vector<Piece> pieces = std::move(t.pieces);
    t.pieces.clear();
    for (const Piece &p : pieces)
        deliver(t, p);
    const std::vector<Box> boxes = std::move(t.boxes);
    t.boxes.clear();
    for (const Box &b : boxes)
        deliver(t, b);
}

/* The phase of this parity has ended: it is the one before the current one. */
void wait_for_token(uint32_t token, int parity)
{
    Token &t = token_at(token);
    wait_until([&] {
        if ((int)(t.phase & 1) == parity)
            deliver_all(t);
        return (int)(t.phase & 1) != parity;
    });
}

void piece(uint32_t to, const void *from, int bytes, uint32_t token)
{
    enum { WHOLE = 16 };
    Token &t = token_at(token);
    const Piece p = {to, (const unsigned char *)from, bytes};
    if (!t.fenced)
        fault("a piece by an mbarrier whose beginning the async proxy may not have seen");
    if (to % WHOLE || (uintptr_t)from % WHOLE || bytes % WHOLE || bytes <= 0)
        fault("cp.async.bulk: no whole pieces of 16 bytes");
    if (is_backward())
        deliver(t, p);
    else
        t.pieces.push_back(p);
}

void box(uint32_t to, const void *map, uint32_t token, const int *place, int rank, const int *tap)
{
    Token &t = token_at(token);
    Box b = {};
    memcpy(&b.map, map, sizeof b.map);
    b.to = to;
    if (!t.fenced)
        fault("a box by an mbarrier whose beginning the async proxy may not have seen");
    if (b.map.rank != rank || b.map.window != (tap != nullptr))
        fault("a box of a map that has other axes, or is not one of windows, or is");
    for (int i = 0; tap && i + 2 < rank; i++) {
        b.tap[i + 1] = tap[i];
        if (tap[i] < 0 || tap[i] >= (rank == 3 ? 1 << 16 : rank == 4 ? 1 << 8 : 1 << 5))
            fault("a tap that a copy has no room for");
    }
    if (b.map.box[0] * b.map.element != b.map.line || to % 1024)
        fault("a box whose lines are not what is swizzled, or not where swizzling begins");
    memcpy(b.place, place, (size_t)rank * sizeof *place);
    if (is_backward())
        deliver(t, b);
    else
        t.boxes.push_back(b);
}

/* ---- products -------------------------------------------------------------------------------- */

static unsigned in_warpgroup()
{
    return now->number % WARPGROUP;
}

static Warpgroup &warpgroup()
{
    return units().warpgroup[now->number / WARPGROUP];
}

/* A descriptor's 14 bits from this one on, in bytes. */
static uint32_t field(uint64_t descriptor, int bit)
{
    return (uint32_t)(descriptor >> bit & 0x3fff) << 4;
}

static uint32_t word_of(const unsigned char *bytes, uint32_t width)
{
    uint32_t word = bytes[0];
    for (uint32_t i = 1; i < width; i++)
        word |= (uint32_t)bytes[i] << 8 * i;
    return word;
}

/* Lines of an operand, a term of all of them after the other. In memory, terms lie side by side,
 * 128 or 64 bytes of them in a line, eight lines in an atom; turned, 64 lines lie side by side, and
 * eight terms are an atom. */
template <uint32_t width>
static void operand(float *x, uint64_t descriptor, bool turned, Terms terms, bool has_sign,
                    int first, int lines, int depth)
{
    const uint32_t leading = field(descriptor, 16), stride = field(descriptor, 32);
    const unsigned char *const seen = units().seen.data();
    const uint32_t run = descriptor >> 62 == 2 ? HALF : LINE;
    if (descriptor >> 62 != 1 && (descriptor >> 62 != 2 || turned))
        fault("wgmma: an operand that is not swizzled by 128 bytes, or lines of terms by 64");
    if ((descriptor >> 49 & 7) != 0 || field(descriptor, 0) % (8 * run) >= run)
        fault("wgmma: an operand that begins amid an atom");
    for (int k = 0; k < depth; k++)
        for (int i = 0; i < lines; i++) {
            const uint32_t line = (uint32_t)(first + i), at = (uint32_t)k;
            const uint32_t place = swizzled(
                field(descriptor, 0) + (turned ? line / 64 * leading + at / 8 * stride +
                                                     at % 8 * LINE + line % 64 * width
                                               : line / 8 * stride + line % 8 * run + at * width),
                run);
            if (place + width > GROUP_BYTES)
                fault("wgmma: an operand that is not in the group's memory");
            const uint32_t word = word_of(seen + place, width);
            x[k * lines + i] = terms == OF_F8      ? f8_value((int)word, has_sign)
                               : terms != OF_BYTES ? term(terms, word, 0)
                               : has_sign          ? (float)(int8_t)word
                                                   : (float)word;
        }
}

static void operand(float *x, uint64_t descriptor, bool turned, Terms terms, bool has_sign,
                    int first, int lines, int depth)
{
    const auto by_width = terms == OF_TF32    ? operand<4>
                          : terms >= OF_BYTES ? operand<1>
                                              : operand<2>;
    by_width(x, descriptor, turned, terms, has_sign, first, lines, depth);
}

/* Words of item 4 g + t: rows g and g + 8 of its warp's 16, terms t; the same, terms t + 4. A word
 * has one of tf32, of 16 bits two. */
static void operand_of_rows(float *x, const uint32_t *words, Terms terms)
{
    const int each = terms == OF_TF32 ? 1 : 2;
    for (int i = 0; i < WARP; i++)
        for (int j = 0; j < 4; j++)
            for (int k = 0; k < each; k++)
                x[((i % 4 + j / 2 * 4) * each + k) * 16 + i / 4 + j % 2 * 8] =
                    term(terms, words[4 * i + j], k);
}

/* A warp's 16 rows. */
static void execute(Warpgroup &g, Work &w, int warp)
{
    enum { ROWS = 16, COLUMNS = 256, DEPTH = 32 };
    const Product &p = w.what;
    const int depth = p.terms == OF_TF32 ? 8 : p.terms >= OF_BYTES ? 32 : 16, first = warp * WARP;
    static float a[ROWS * DEPTH], b[COLUMNS * DEPTH];
    static double sum[ROWS][COLUMNS];
    if (p.of_rows)
        operand_of_rows(a, &w.rows[(size_t)(4 * first)], p.terms);
    else
        operand(a, p.a, p.a_turned, p.terms, p.a_signed, ROWS * warp, ROWS, depth);
    operand(b, p.b, p.b_turned, p.terms, p.b_signed, 0, p.columns, depth);
    for (int i = 0; i < ROWS; i++) {
        if (p.terms == OF_F8)
            break; /* below */
        std::fill(sum[i], sum[i] + p.columns, 0);
        for (int k = 0; k < depth; k++)
            for (int j = 0; j < p.columns; j++)
                sum[i][j] += (double)a[k * ROWS + i] * b[k * p.columns + j];
    }
    for (int i = 0; i < WARP; i++) {
        Sum *const c =
            g.own[(size_t)(first + i)].under_way.at(w.sums[(size_t)(first + i)]).value.data();
        for (int j = 0; j < p.columns / 2; j++) {
            const int row = i / 4 + j / 2 % 2 * 8, column = j / 4 * 8 + i % 4 * 2 + j % 2;
            const double s = sum[row][column];
            double product[DEPTH];
            for (int k = 0; k < depth && p.terms == OF_F8; k++)
                product[k] = (double)a[k * ROWS + row] * b[k * p.columns + column];
            if (p.terms == OF_F8)
                c[j].real = f8_sum(p.adds ? (double)c[j].real : 0, product, depth);
            else if (p.terms == OF_BYTES)
                c[j].whole = (int32_t)((uint32_t)(int32_t)s + (p.adds ? (uint32_t)c[j].whole : 0));
            else
                c[j].real = (float)(s + (p.adds ? (double)c[j].real : 0));
        }
    }
}

static bool same(const Product &a, const Product &b)
{
    return a.columns == b.columns && a.terms == b.terms && a.of_rows == b.of_rows &&
           a.a_turned == b.a_turned && a.b_turned == b.b_turned && a.adds == b.adds && a.a == b.a &&
           a.b == b.b && a.a_signed == b.a_signed && a.b_signed == b.b_signed;
}

void multiply(const Product &p, void *sums)
{
    Sum *const c = (Sum *)sums;
    Warpgroup &g = warpgroup();
    const unsigned item = in_warpgroup();
    Own &own = g.own[item];
    const size_t number = own.issued++;
    together({{0}});
    if (number == g.work.size()) {
        g.work.emplace_back();
        g.work.back().what = p;
        g.work.back().rows.resize(4 * WARPGROUP);
        g.work.back().sums.resize(WARPGROUP);
    }
    Work &w = g.work[number];
    if (!same(w.what, p))
        fault("wgmma: items of a warpgroup do not ask for the same product");
    auto found = own.under_way.find(c);
    if (found == own.under_way.end()) {
        if (!own.fenced)
            fault("wgmma: no wgmma.fence since the sums were the item's own");
        found = own.under_way.emplace(c, Sums{std::vector<Sum>(c, c + p.columns / 2), 0}).first;
        std::fill(c, c + p.columns / 2, Sum{NAN});
    }
    found->second.last = number;
    memcpy(&w.rows[4 * item], p.rows, sizeof p.rows);
    w.sums[item] = c;
    w.issued++;
    if (++w.of_warp[item / WARP] == WARP && is_backward())
        execute(g, w, (int)item / WARP);
}

void fence_products()
{
    warpgroup().own[in_warpgroup()].fenced = true;
}

void commit_products()
{
    Own &own = warpgroup().own[in_warpgroup()];
    own.groups.push_back(own.issued);
}

void wait_for_products(int left)
{
    Warpgroup &g = warpgroup();
    Own &own = g.own[in_warpgroup()];
    if (own.groups.size() <= (size_t)left)
        return;
    const size_t n = own.groups.size() - (size_t)left, end = own.groups[n - 1];
    wait_until([&] { return end == 0 || g.work[end - 1].issued == WARPGROUP; });
    for (; g.done < end; g.done++)
        for (int warp = 0; warp < WARPGROUP / WARP && !is_backward(); warp++)
            execute(g, g.work[g.done], warp);
    own.groups.erase(own.groups.begin(), own.groups.begin() + (ptrdiff_t)n);
    for (auto s = own.under_way.begin(); s != own.under_way.end();) {
        if (s->second.last >= end) {
            ++s;
            continue;
        }
        std::copy(s->second.value.begin(), s->second.value.end(), (Sum *)s->first);
        s = own.under_way.erase(s);
        own.fenced = false;
    }
}

/* ---- the group ------------------------------------------------------------------------------- */

/* What a warp has written, once all of its items have come here. */
void fence_memory()
{
    int &come = units().fences[now->number / WARP];
    if (++come % WARP == 0)
        memcpy(units().seen.data(), now->group->memory, used_memory());
}

void meet_at(int barrier, int n)
{
    if (barrier < 0 || barrier >= BARRIERS)
        fault("bar.sync: no such barrier");
    meet(now->group->barrier[barrier], n);
}

void arrive_for(int barrier, int n)
{
    if (barrier < 0 || barrier >= BARRIERS)
        fault("bar.sync: no such barrier");
    arrive(now->group->barrier[barrier], n);
}

void end_of_group(const Group &g)
{
    if (!g.units)
        return;
    for (const auto &t : g.units->token)
        if (!t.second.boxes.empty() || t.second.bytes)
            fault("ends while boxes are on their way");
    for (const auto &w : g.units->warpgroup)
        for (const Own &own : w.second.own)
            if (!own.under_way.empty())
                fault("ends while products are under way");
}

} // namespace gpu
