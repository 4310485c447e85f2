/* ptx.cpp - units of sm_80, and clusters. */
#include "ptx.h"

#include "items.h"

namespace gpu
{

/* ldmatrix: item 8 i + j says where line j of block i begins, word 0; item 4 g + t gets terms 2 t
 * and 2 t + 1 of line g, or turned those of lines 2 t and 2 t + 1 at g, word 1 + i. */
template <int blocks, bool turned> static void load_all(Slot *s)
{
    for (int i = 0; i < blocks; i++) {
        const unsigned char *line[8];
        for (int j = 0; j < 8; j++) {
            const uint32_t from = s[8 * i + j].word[0];
            if (from % 16)
                fault("ldmatrix: a line that does not begin at 16 bytes");
            line[j] = at(from);
        }
        for (int lane = 0; lane < WARP; lane++) {
            const int g = lane / 4, t = lane % 4 * 2;
            uint16_t e[2];
            for (int j = 0; j < 2; j++)
                memcpy(&e[j], turned ? line[t + j] + 2 * g : line[g] + 2 * (t + j), 2);
            s[lane].word[1 + i] = e[0] | (uint32_t)e[1] << 16;
        }
    }
}

void load_blocks(uint32_t *x, int blocks, bool turned, uint32_t address)
{
    const auto work = blocks == 4 ? (turned ? load_all<4, true> : load_all<4, false>)
                                  : (turned ? load_all<2, true> : load_all<2, false>);
    memcpy(x, together({{address}}, work)[now->number % WARP].word + 1, 4 * (size_t)blocks);
}

const float *all_f16()
{
    static std::vector<float> x;
    if (x.empty())
        for (uint32_t i = 0; i < 1 << 16; i++)
            x.push_back(igrt_f16_to_f32((uint16_t)i));
    return x.data();
}

/* c += a b, of 16 rows and 8 columns. Words 0 to 3 of slot 4 g + t are a's: rows g and g + 8; 4 and
 * 5 are b's: column g; 6 to 9 are c's, rows g and g + 8, columns 2 t and 2 t + 1. */
template <Terms terms> static void products_of_all(Slot *s)
{
    const int per = terms == OF_TF32 ? 1 : 2, depth = 8 * per; /* terms in a word, in a row */
    double a[16][16], b[16][8];
    for (int k = 0; k < depth; k++) {
        const int half = k / (4 * per), in = k % (4 * per), lane = in / per;
        for (int i = 0; i < 16; i++)
            a[i][k] = term(terms, s[i % 8 * 4 + lane].word[2 * half + i / 8], in % per);
        for (int j = 0; j < 8; j++)
            b[k][j] = term(terms, s[j * 4 + lane].word[4 + half], in % per);
    }
    for (int i = 0; i < 16; i++) {
        double sum[8];
        uint32_t *c[8];
        for (int j = 0; j < 8; j++) {
            c[j] = &s[i % 8 * 4 + j / 2].word[6 + i / 8 * 2 + j % 2];
            sum[j] = bits_as<float>(*c[j]);
        }
        for (int k = 0; k < depth; k++)
            for (int j = 0; j < 8; j++)
                sum[j] += a[i][k] * b[k][j];
        for (int j = 0; j < 8; j++)
            *c[j] = bits_as<uint32_t>((float)sum[j]);
    }
}

void products(float *c, Slot mine, Terms terms)
{
    memcpy(mine.word + 6, c, 4 * sizeof *c);
    const Slot *s = together(mine, terms == OF_F16    ? products_of_all<OF_F16>
                                   : terms == OF_BF16 ? products_of_all<OF_BF16>
                                                      : products_of_all<OF_TF32>);
    memcpy(c, s[now->number % WARP].word + 6, 4 * sizeof *c);
}

/* mma.m16n8k32 of bytes. "Matrix fragments for mma.m16n8k32": of thread 4 g + t of a warp
 *     a0 .. a15   row g of a0-3 and a8-11, else g + 8; column 4 t + (i & 3), 16 more of a8-15
 *     b0 .. b7    row 4 t + (i & 3), 16 more of b4-7; column g
 *     c0 .. c3    row g of c0 and c1, else g + 8; column 2 t + (i & 1)
 * in the words of a slot as above. */
template <bool a_signed, bool b_signed> static void byte_products_of_all(Slot *s)
{
    const auto byte = [&](int lane, int word, int i, bool is_signed) {
        const int x = (int)(s[lane].word[word + i / 4] >> 8 * (i % 4) & 255);
        return is_signed && x > 127 ? x - 256 : x;
    };
    int a[16][32], b[32][8];
    for (int lane = 0; lane < WARP; lane++) {
        const int g = lane / 4, t = lane % 4;
        for (int i = 0; i < 16; i++)
            a[i / 4 % 2 ? g + 8 : g][4 * t + i % 4 + i / 8 * 16] = byte(lane, 0, i, a_signed);
        for (int i = 0; i < 8; i++)
            b[4 * t + i % 4 + i / 4 * 16][g] = byte(lane, 4, i, b_signed);
    }
    for (int i = 0; i < 16; i++) {
        int sum[8] = {0};
        for (int k = 0; k < 32; k++)
            for (int j = 0; j < 8; j++)
                sum[j] += a[i][k] * b[k][j];
        for (int j = 0; j < 8; j++)
            s[i % 8 * 4 + j / 2].word[6 + i / 8 * 2 + j % 2] += (uint32_t)sum[j];
    }
}

void byte_products(int32_t *c, Slot mine, bool a_signed, bool b_signed)
{
    memcpy(mine.word + 6, c, 4 * sizeof *c);
    const Slot *s = together(
        mine, a_signed ? (b_signed ? byte_products_of_all<true, true>
                                   : byte_products_of_all<true, false>)
                       : (b_signed ? byte_products_of_all<false, true>
                                   : byte_products_of_all<false, false>));
    memcpy(c, s[now->number % WARP].word + 6, 4 * sizeof *c);
}

float f8_value(int byte, bool e5m2)
{
    return e5m2 ? igrt_f8e5m2_to_f32((uint8_t)byte) : igrt_f8e4m3fn_to_f32((uint8_t)byte);
}

float f8_sum(double c, const double *product, int n)
{
    enum { BITS = 13 };
    double most = fabs(c), sum = 0;
    for (int i = 0; i < n; i++)
        most = fabs(product[i]) > most ? fabs(product[i]) : most;
    if (!(most > 0) || !std::isfinite(most)) {
        for (int i = 0; i < n; i++)
            c += product[i];
        return (float)c;
    }
    const double step = ldexp(1, ilogb(most) - BITS);
    for (int i = 0; i < n; i++)
        sum += trunc(product[i] / step);
    return (float)((sum + trunc(c / step)) * step);
}

/* Of f8: elements as those of bytes below. */
template <bool a_e5m2, bool b_e5m2> static void f8_products_of_all(Slot *s)
{
    const auto value = [&](int lane, int word, int i, bool e5m2) {
        return f8_value((int)(s[lane].word[word + i / 4] >> 8 * (i % 4) & 255), e5m2);
    };
    double a[16][32], b[32][8], product[32];
    for (int lane = 0; lane < WARP; lane++) {
        const int g = lane / 4, t = lane % 4;
        for (int i = 0; i < 16; i++)
            a[i / 4 % 2 ? g + 8 : g][4 * t + i % 4 + i / 8 * 16] = value(lane, 0, i, a_e5m2);
        for (int i = 0; i < 8; i++)
            b[4 * t + i % 4 + i / 4 * 16][g] = value(lane, 4, i, b_e5m2);
    }
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++) {
            uint32_t *const c = &s[i % 8 * 4 + j / 2].word[6 + i / 8 * 2 + j % 2];
            for (int k = 0; k < 32; k++)
                product[k] = a[i][k] * b[k][j];
            *c = bits_as<uint32_t>(f8_sum((double)bits_as<float>(*c), product, 32));
        }
}

void f8_products(float *c, Slot mine, bool a_e5m2, bool b_e5m2)
{
    memcpy(mine.word + 6, c, 4 * sizeof *c);
    const Slot *s = together(
        mine,
        a_e5m2 ? (b_e5m2 ? f8_products_of_all<true, true> : f8_products_of_all<true, false>)
               : (b_e5m2 ? f8_products_of_all<false, true> : f8_products_of_all<false, false>));
    memcpy(c, s[now->number % WARP].word + 6, 4 * sizeof *c);
}

/* ---- copies that are waited for -------------------------------------------------------------- */

static void finish(const Copy &c)
{
    memset(c.to, 0, (size_t)c.bytes);
    memcpy(c.to, c.from, (size_t)c.given);
}

void copy(uint32_t to, const void *from, int bytes, int given)
{
    if (given < 0 || given > bytes || to % (uint32_t)bytes ||
        (given && (uintptr_t)from % (uintptr_t)bytes))
        fault("cp.async: not aligned");
    const Copy c = {at(to), from, bytes, given};
    if (is_backward())
        finish(c);
    else
        now->copies.back().push_back(c);
}

void commit_copies()
{
    now->copies.emplace_back();
}

void wait_for_copies(int left)
{
    auto &copies = now->copies;
    for (; copies.size() > (size_t)left + 1; copies.erase(copies.begin()))
        for (const Copy &c : copies.front())
            finish(c);
}

/* ---- clusters -------------------------------------------------------------------------------- */

/* All items have arrived but those that have ended, which nobody waits for. */
static void settle_cluster()
{
    int ended = 0, ended_before = 0;
    for (const Item &item : items) {
        ended += item.done;
        ended_before += item.done && item.cluster_turn != cluster.turn;
    }
    if (cluster.arrived + ended_before < (int)items.size() || ended == (int)items.size())
        return;
    cluster.arrived = 0;
    cluster.turn++;
}

void arrive_at_cluster()
{
    now->cluster_turn = cluster.turn;
    cluster.arrived++;
    settle_cluster();
}

void end_of_item()
{
    if (cluster.arrived)
        settle_cluster();
}

void wait_for_cluster()
{
    wait_until([] { return cluster.turn != now->cluster_turn; });
}

uint32_t cluster_rank()
{
    return (uint32_t)now->group->rank;
}

} // namespace gpu
