/* items.cpp - the items of a group, and of all groups of a cluster, are fibers of one thread.
 *
 * A warp runs until all of its items wait for others; then the next one does. So a warp is as far
 * ahead of the others as barriers let it be, and what is read before it is written, or overwritten
 * before it is read, is NaN or another's value. With $EMULATED_ORDER=backward the last warp and the
 * last item are first, and what happens asynchronously does so at once, not when it is waited for:
 * whichever of two items needs the other one, one of both orders has it too early. Memory of a
 * group begins as NaN.
 *
 * What a GPU would answer with undefined results is told, and ends the process: fault(). */
#undef _FORTIFY_SOURCE /* its longjmp() goes nowhere but up the same stack */
#include "items.h"

#include <setjmp.h>
#include <ucontext.h>
#include <unistd.h>

/* Neither asks the system for anything, as swapcontext() does. The compiler's own, where both have
 * it, keep three registers instead of all, in place of calls. */
#ifdef __x86_64__
typedef void *Place[5];
#define STAYS(at) __builtin_setjmp(at)
#define GO_TO(at) __builtin_longjmp(at, 1)
#else
typedef jmp_buf Place;
#define STAYS(at) _setjmp(at)
#define GO_TO(at) _longjmp(at, 1)
#endif

namespace gpu
{

struct Stack {
    Place at;
    std::unique_ptr<char[]> bytes;
};

Here here;
std::vector<Group> groups;
std::vector<Item> items;
Barrier cluster;
Item *now;
static std::vector<Stack *> idle;
static unsigned long went_on; /* how often an item began, ended, or had what it waited for */
static Place scheduler;
static size_t asked; /* bytes of a group's memory that the launch asks for */
static const Entry *kernel;
static void **arguments;
static int memories; /* whose groups' memory it is: the queue at hand has its own */

void fault(const char *why)
{
    fprintf(stderr, "emulator: %s, item %d of group %d: %s\n", kernel ? kernel->name : "no kernel",
            now ? (int)now->number : -1, now ? (int)now->group->number : -1, why);
    fflush(stderr);
    _exit(86);
}

bool is_backward()
{
    static const char *order = getenv("EMULATED_ORDER");
    static const bool backward = order && !strcmp(order, "backward");
    return backward;
}

__attribute__((noinline)) static void yield()
{
    if (!STAYS(now->on->at))
        GO_TO(scheduler);
}

/* It is asked without its stack, and goes on once it may. */
void wait_until(bool (*ready)(const void *), const void *of)
{
    if (!ready(of)) {
        now->ready = ready;
        now->waits_for = of;
        yield();
        now->ready = NULL;
    }
    went_on++;
}

static bool may_go_on(Item &item)
{
    now = &item;
    return !item.ready || item.ready(item.waits_for);
}

/* It asks again. */
void pause()
{
    yield();
}

void arrive(Barrier &b, int of)
{
    if (++b.arrived == of) {
        b.arrived = 0;
        b.turn++;
    }
}

void meet(Barrier &b, int of)
{
    const int turn = b.turn;
    arrive(b, of);
    wait_until([&] { return b.turn != turn; });
}

void meet()
{
    meet(now->group->barrier[0], now->group->items);
}

/* What they gave before is read until the last one of them has come here: two places in turn. */
const Slot *together(const Slot &mine, void (*work)(Slot *lanes))
{
    Warp &w = now->group->warp[now->number / WARP];
    Slot *const lane = w.lane[now->given++ % 2];
    const int first = (int)now->number / WARP * WARP, left = now->group->items - first,
              of = left < WARP ? left : WARP;
    lane[now->number % WARP] = mine;
    if (work && w.barrier.arrived + 1 == of)
        work(lane);
    meet(w.barrier, of);
    return lane;
}

unsigned char *shared(size_t bytes)
{
    unsigned char *at = now->group->memory + now->shared;
    now->shared += (bytes + 127) / 128 * 128;
    if (now->shared + asked > GROUP_BYTES)
        fault("more memory than a group has");
    return at;
}

uint32_t address(const void *p)
{
    const Group *g = now->group;
    const ptrdiff_t at = (const unsigned char *)p - g->memory;
    if (at < 0 || at >= GROUP_BYTES)
        fault("an address that is not of the group's memory");
    return (uint32_t)g->rank << 24 | (uint32_t)at;
}

unsigned char *at(uint32_t address)
{
    if (address >> 24 >= groups.size() || (address & 0xffffff) >= GROUP_BYTES)
        fault("an address of no group's memory");
    return groups[address >> 24].memory + (address & 0xffffff);
}

/* A stack runs one item after the other. */
static void run_items()
{
    for (;;) {
        kernel->run(arguments);
        now->done = true;
        end_of_item();
        went_on++;
        yield();
    }
}

static void begin(Stack *on)
{
    ucontext_t context;
    on->bytes.reset(new char[STACK]);
    getcontext(&context);
    context.uc_stack.ss_sp = on->bytes.get();
    context.uc_stack.ss_size = STACK;
    makecontext(&context, run_items, 0);
    setcontext(&context);
}

/* Until it waits or ends. */
__attribute__((noinline)) static void resume(Item &item)
{
    now = &item;
    here.item.x = item.number;
    here.group.x = item.group->number;
    if (STAYS(scheduler))
        return;
    if (now->on)
        GO_TO(now->on->at);
    went_on++;
    if (idle.empty())
        begin(now->on = new Stack);
    now->on = idle.back();
    idle.pop_back();
    GO_TO(now->on->at);
}

/* All of them wait, or are done. */
static void run_warp(size_t first, size_t n)
{
    for (unsigned long before = went_on - 1; before != went_on;) {
        before = went_on;
        for (size_t i = 0; i < n; i++) {
            Item &item = items[first + (is_backward() ? n - 1 - i : i)];
            if (item.done || !may_go_on(item))
                continue;
            resume(item);
            if (item.done)
                idle.push_back(item.on);
        }
    }
}

/* That of the group of this rank, all NaN: end_of_memory() leaves it so. */
static unsigned char *memory_of(size_t rank)
{
    static std::map<int, std::vector<unsigned char *>> all;
    std::vector<unsigned char *> &of = all[memories];
    while (rank >= of.size()) {
        of.push_back((unsigned char *)aligned_alloc(1024, GROUP_BYTES));
        memset(of.back(), 0xff, GROUP_BYTES);
    }
    return of[rank];
}

size_t used_memory()
{
    return now->shared + (asked + 15) / 16 * 16;
}

static void end_of_memory(const Group &g)
{
    const size_t used = used_memory(), beyond = used + 4096;
    for (size_t i = used; i < beyond && i < GROUP_BYTES; i++)
        if (g.memory[i] != 0xff)
            fault("writes beyond the memory of the group");
    memset(g.memory, 0xff, used);
}

static void begin_cluster(unsigned first, size_t size, unsigned n)
{
    groups.assign(size, Group());
    items.assign(size * n, Item());
    cluster = Barrier();
    for (size_t g = 0; g < size; g++) {
        groups[g].memory = memory_of(g);
        groups[g].warp.resize((n + WARP - 1) / WARP);
        groups[g].rank = (int)g;
        groups[g].items = (int)n;
        groups[g].number = first + (unsigned)g;
    }
    for (size_t i = 0; i < items.size(); i++) {
        items[i].group = &groups[i / n];
        items[i].number = (unsigned)(i % n);
    }
}

static bool all_done()
{
    for (Item &item : items)
        if (!item.done) {
            now = &item;
            return false;
        }
    return true;
}

/* What other devices do meanwhile; false: nothing. They have items and groups of their own. */
static bool run_others()
{
    const Here h = here;
    const Barrier c = cluster;
    Item *const n = now;
    const size_t a = asked;
    const Entry *const k = kernel;
    void **const p = arguments;
    const int m = memories;
    const ptrdiff_t at = n - items.data();
    std::vector<Group> own_groups;
    std::vector<Item> own_items;
    own_groups.swap(groups);
    own_items.swap(items);
    const bool moved = leave_queue();
    groups.swap(own_groups);
    items.swap(own_items);
    here = h, cluster = c, asked = a, kernel = k, arguments = p, memories = m;
    now = items.data() + at;
    return moved;
}

static void run_cluster(size_t size, unsigned n)
{
    const size_t warps = (n + WARP - 1) / WARP;
    do {
        const unsigned long before = went_on;
        for (size_t i = 0; i < size * warps; i++) {
            const size_t w = is_backward() ? size * warps - 1 - i : i, at = w % warps * WARP;
            run_warp(w / warps * n + at, n - at < WARP ? n - at : WARP);
        }
        if (before == went_on && !all_done() && !run_others())
            fault("waits for what does not come");
    } while (!all_done());
    for (Group &g : groups) {
        now = &items[(size_t)g.rank * n];
        end_of_group(g);
        end_of_memory(g);
    }
}

void launch(const Entry &entry, void **args, unsigned grid, unsigned n, size_t shared)
{
    const unsigned size = (unsigned)entry.cluster;
    memories = queue_at_hand();
    kernel = &entry;
    arguments = args;
    now = NULL;
    here.items.x = n;
    asked = shared;
    if (grid % size)
        fault("the grid is no multiple of the cluster");
    for (unsigned g = 0; g < grid; g += size) {
        begin_cluster(is_backward() ? grid - size - g : g, size, n);
        run_cluster(size, n);
    }
}

} // namespace gpu
