/* items.h - items, groups, and what they wait for: fibers of one thread, a warp after the other
 * (items.cpp). */
#ifndef EMULATOR_ITEMS_H
#define EMULATOR_ITEMS_H

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "ptx.h"

namespace gpu
{

enum { WARP = 32, WARPGROUP = 128, BARRIERS = 16, GROUP_BYTES = 256 << 10, STACK = 256 << 10 };

struct Barrier {
    int arrived = 0, turn = 0;
};
struct Warp {
    Barrier barrier;
    Slot lane[2][WARP];
};
struct Copy {
    void *to;
    const void *from;
    int bytes, given;
};
struct Stack;
struct Units; /* those of sm_90a: ptx_wgmma.cpp */
struct Group {
    unsigned char *memory = NULL;
    std::vector<Warp> warp;
    std::shared_ptr<Units> units;
    Barrier barrier[BARRIERS];
    int rank = 0, items = 0;
    unsigned number = 0;
};
struct Item {
    Stack *on = NULL;
    std::vector<std::vector<Copy>> copies{1}; /* by their groups, the last of which is open */
    Group *group = NULL;
    bool (*ready)(const void *) = NULL; /* what it waits for, if it does */
    const void *waits_for = NULL;
    unsigned given = 0; /* how often it gave the lanes of its warp something */
    unsigned number = 0;
    size_t shared = 0;     /* bytes of memory that it has declared */
    int cluster_turn = -1; /* of the barrier, when it arrived */
    bool done = false;
};

extern std::vector<Group> groups; /* of the cluster */
extern std::vector<Item> items;
extern Barrier cluster;
extern Item *now;

void wait_until(bool (*ready)(const void *), const void *of); /* others make it so */
template <class Ready> static inline void wait_until(const Ready &ready)
{
    wait_until([](const void *of) -> bool { return (*(const Ready *)of)(); }, &ready);
}
/* graphs.cpp: a queue of a graph that waits lets the others go on; false: none of them can. */
bool leave_queue();
int queue_at_hand();
void arrive(Barrier &b, int of);
void meet(Barrier &b, int of);
bool is_backward();
size_t used_memory();              /* bytes of the group's */
void end_of_item();                /* ptx.cpp */
void end_of_group(const Group &g); /* ptx_wgmma.cpp */

const float *all_f16(); /* by their bits: ptx.cpp */
/* One of those that a word has. */
static inline float term(Terms terms, uint32_t word, int i)
{
    static const float *const f16 = all_f16();
    if (terms == OF_F16)
        return f16[word >> 16 * i & 0xffff];
    if (terms == OF_BF16)
        return bits_as<float>(word >> 16 * i << 16);
    return bits_as<float>(word & 0xffffe000u);
}

void launch(const Entry &entry, void **args, unsigned grid, unsigned items, size_t shared);

} // namespace gpu

#endif
