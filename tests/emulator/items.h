/* items.h - items, groups, and what they wait for: fibers of one thread, a warp after the other
 * (items.cpp). */
#ifndef EMULATOR_ITEMS_H
#define EMULATOR_ITEMS_H

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "cuda.h"

namespace gpu
{

enum { WARP = 32, WARPGROUP = 128, BARRIERS = 16, GROUP_BYTES = 256 << 10, STACK = 256 << 10 };

struct Barrier {
    int arrived = 0, turn = 0;
};
struct Warp {
    Barrier barrier;
    Slot lane[WARP];
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
    Slot lanes[WARP];
    Group *group = NULL;
    unsigned number = 0;
    size_t shared = 0;     /* bytes of memory that it has declared */
    int cluster_turn = -1; /* of the barrier, when it arrived */
    bool done = false;
};

extern std::vector<Group> groups; /* of the cluster */
extern std::vector<Item> items;
extern Barrier cluster;
extern Item *now;

void wait_until(const std::function<bool()> &ready); /* others make it so */
/* graphs.cpp: a queue of a graph that waits lets the others go on; false: none of them can. */
bool leave_queue();
int queue_at_hand();
void arrive(Barrier &b, int of);
void meet(Barrier &b, int of);
bool is_backward();
size_t used_memory();              /* bytes of the group's */
void end_of_item();                /* ptx.cpp */
void end_of_group(const Group &g); /* ptx_wgmma.cpp */
void launch(const Entry &entry, void **args, unsigned grid, unsigned items, size_t shared);

} // namespace gpu

#endif
