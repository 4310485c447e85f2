/* ptx.cpp - units of sm_80, and clusters. */
#include "ptx.h"

#include "items.h"

namespace gpu
{

/* ldmatrix: item 8 i + j says where line j of block i begins. */
void load_blocks(uint32_t *x, int blocks, bool turned, uint32_t address)
{
    const int row = (int)now->number % WARP / 4, pair = (int)now->number % 4 * 2;
    const Slot *s = together({{address}});
    for (int i = 0; i < blocks; i++) {
        uint16_t e[2];
        for (int j = 0; j < 2; j++) {
            const int line = turned ? pair + j : row, place = turned ? row : pair + j;
            const uint32_t from = s[8 * i + line].word[0];
            if (from % 16)
                fault("ldmatrix: a line that does not begin at 16 bytes");
            memcpy(&e[j], at(from) + 2 * place, 2);
        }
        x[i] = e[0] | (uint32_t)e[1] << 16;
    }
}

static std::vector<float> all_f16()
{
    std::vector<float> x(1 << 16);
    for (uint32_t i = 0; i < x.size(); i++)
        x[i] = igrt_f16_to_f32((uint16_t)i);
    return x;
}

float term(Terms terms, uint32_t word, int i)
{
    static const std::vector<float> f16 = all_f16();
    if (terms == OF_F16)
        return f16[word >> 16 * i & 0xffff];
    if (terms == OF_BF16)
        return bits_as<float>(word >> 16 * i << 16);
    return bits_as<float>(word & 0xffffe000u);
}

/* Words 0 to 3 of a slot are a's, 4 and 5 b's. */
void products(float *c, const Slot &mine, Terms terms)
{
    const int g = (int)now->number % WARP / 4, t = (int)now->number % 4,
              per = terms == OF_TF32 ? 1 : 2; /* terms in a word */
    const Slot *s = together(mine);
    double a[2][16], b[2][16]; /* rows g and g + 8; columns 2 t and 2 t + 1 */
    for (int k = 0; k < 8 * per; k++) {
        const int half = k / (4 * per), in = k % (4 * per), lane = in / per;
        for (int j = 0; j < 2; j++) {
            a[j][k] = term(terms, s[g * 4 + lane].word[2 * half + j], in % per);
            b[j][k] = term(terms, s[(2 * t + j) * 4 + lane].word[4 + half], in % per);
        }
    }
    for (int i = 0; i < 4; i++) {
        double sum = c[i];
        for (int k = 0; k < 8 * per; k++)
            sum += a[i / 2][k] * b[i % 2][k];
        c[i] = (float)sum;
    }
}

/* mma.m16n8k32 of bytes. "Matrix fragments for mma.m16n8k32": of thread 4 g + t of a warp
 *     a0 .. a15   row g of a0-3 and a8-11, else g + 8; column 4 t + (i & 3), 16 more of a8-15
 *     b0 .. b7    row 4 t + (i & 3), 16 more of b4-7; column g
 *     c0 .. c3    row g of c0 and c1, else g + 8; column 2 t + (i & 1) */
void byte_products(int32_t *c, const Slot &mine, bool a_signed, bool b_signed)
{
    const Slot *s = together(mine);
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
    const int g = (int)now->number % WARP / 4, t = (int)now->number % 4;
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 32; k++)
            c[i] = (int32_t)((uint32_t)c[i] +
                             (uint32_t)(a[i < 2 ? g : g + 8][k] * b[k][2 * t + i % 2]));
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
