/* linear_memory.c - memory with shadow memory: for each cell who wrote it last, and who has read it
 * since.
 *
 * The shadow is that of FastTrack (Flanagan and Freund, 2009): an epoch for the last write, one for
 * the last read, and a mark where several threads have read. */
#include <string.h>

#include "linear_code.h"

enum { CLOCK_GIVEN = 1 };
static const Epoch UNDER_WAY = ~UINT64_C(0);

ShadowMemory *shadow_new(Arena *a, int64_t size, int cell)
{
    ShadowMemory *m = NEW(a, ShadowMemory);
    int64_t cells = ceil_div(size, cell);
    *m = (ShadowMemory){.bytes = arena_alloc(a, (size_t)size + 1), .size = size, .cell = cell};
    while (1 << m->shift < cell)
        m->shift++;
    m->wrote = NEWN(a, Epoch, cells + 1);
    m->read = NEWN(a, Epoch, cells + 1);
    m->within = NEWN(a, uint64_t, cells + 1);
    m->busy = NEWN(a, uint8_t, cells + 1);
    return m;
}

ShadowMemory *shadow_sparse(Arena *a, int64_t size, int cell)
{
    ShadowMemory *m = NEW(a, ShadowMemory);
    const size_t cells = (size_t)ceil_div(size, cell) + 1;
    *m = (ShadowMemory){.size = size, .cell = cell};
    while (1 << m->shift < cell)
        m->shift++;
    m->bytes = arena_sparse(a, (size_t)size + 1);
    m->wrote = arena_sparse(a, cells * sizeof *m->wrote);
    m->read = arena_sparse(a, cells * sizeof *m->read);
    m->within = arena_sparse(a, cells * sizeof *m->within);
    m->busy = arena_sparse(a, cells * sizeof *m->busy);
    return m;
}

static void set_cells(ShadowMemory *m, int64_t from, int64_t size, Epoch e)
{
    for (int64_t i = from / m->cell; i < ceil_div(from + size, m->cell); i++) {
        m->wrote[i] = e;
        m->read[i] = 0;
        m->busy[i] = 0;
    }
}

void shadow_given(ShadowMemory *m, int64_t from, int64_t size)
{
    set_cells(m, from, size, (Epoch)CLOCK_GIVEN << 32);
}

void shadow_forget(ShadowMemory *m, int64_t from, int64_t size)
{
    set_cells(m, from, size, 0);
}

bool shadow_written(const ShadowMemory *m, int64_t at)
{
    return m->wrote[at >> m->shift] != 0;
}

/* Threads of one launch are not ordered; what came before the launch happened before all of
 * them. */
static bool happened_before(const ShadowMemory *m, Epoch e, Epoch now)
{
    const uint32_t thread = (uint32_t)e, own = (uint32_t)now;
    const int of_group =
        m->warp && thread / (uint32_t)m->warp != own / (uint32_t)m->warp ? 32 + WARP_CLOCK : 32;
    return e >> of_group < now >> of_group || thread == own;
}

/* Items of a group have read it, and a barrier of theirs came after. */
static bool behind_barrier(uint64_t read, uint64_t within)
{
    return read && read >> 32 == within >> 32 && read < within;
}

AccessFault shadow_read(ShadowMemory *m, int64_t at, int64_t size, Epoch now, uint64_t within,
                        int64_t *where)
{
    const int64_t end = (at + size + (INT64_C(1) << m->shift) - 1) >> m->shift;
    for (int64_t i = at >> m->shift; i < end; i++) {
        const Epoch wrote = m->wrote[i];
        if (!wrote || wrote == UNDER_WAY || !happened_before(m, wrote, now)) {
            *where = i << m->shift;
            return !wrote ? ACCESS_UNWRITTEN : wrote == UNDER_WAY ? ACCESS_UNDER_WAY : ACCESS_RACE;
        }
        if (m->read[i] == now && m->within[i] == within)
            continue; /* by this thread, since the last barrier */
        /* What items of its group read in front of a barrier is read once this is. */
        const bool now_too = m->warp ? !happened_before(m, m->read[i], now)
                                     : m->read[i] >> 32 == now >> 32,
                   again = now_too && !behind_barrier(m->within[i], within),
                   shared = again && m->read[i] != now;
        m->within[i] = !again || m->within[i] >> 32 == within >> 32 ? within : 0;
        m->read[i] = shared ? now | THREAD_SEVERAL : now;
    }
    return ACCESS_GOOD;
}

AccessFault shadow_write(ShadowMemory *m, int64_t at, int64_t size, Epoch now, uint64_t within,
                         int64_t *where)
{
    for (int64_t i = at >> m->shift; i << m->shift < at + size; i++) {
        *where = i << m->shift;
        if (m->wrote[i] == UNDER_WAY)
            return ACCESS_UNDER_WAY;
        if (!happened_before(m, m->wrote[i], now))
            return ACCESS_RACE;
        if (m->busy[i])
            return ACCESS_BUSY;
        if (!happened_before(m, m->read[i], now) && !behind_barrier(m->within[i], within))
            return ACCESS_READ_RACE;
        m->wrote[i] = now;
        m->read[i] = 0;
    }
    return ACCESS_GOOD;
}

AccessFault shadow_begin(ShadowMemory *m, int64_t at, int64_t size, Epoch now, int64_t *where)
{
    AccessFault how = shadow_write(m, at, size, now, 0, where);
    if (how == ACCESS_GOOD)
        shadow_done(m, at, size, UNDER_WAY);
    return how;
}

void shadow_done(ShadowMemory *m, int64_t at, int64_t size, Epoch now)
{
    for (int64_t i = at >> m->shift; i << m->shift < at + size; i++)
        m->wrote[i] = now;
}

void shadow_landed(ShadowMemory *m, int64_t at, int64_t size)
{
    shadow_done(m, at, size, (Epoch)CLOCK_GIVEN << 32);
}

AccessFault shadow_use(ShadowMemory *m, int64_t at, int64_t size, int64_t *where)
{
    for (int64_t i = at >> m->shift; i << m->shift < at + size; i++) {
        *where = i << m->shift;
        if (!m->wrote[i])
            return ACCESS_UNWRITTEN;
        if (m->wrote[i] == UNDER_WAY)
            return ACCESS_UNDER_WAY;
    }
    for (int64_t i = at >> m->shift; i << m->shift < at + size; i++)
        m->busy[i]++;
    return ACCESS_GOOD;
}

void shadow_used(ShadowMemory *m, int64_t at, int64_t size)
{
    for (int64_t i = at >> m->shift; i << m->shift < at + size; i++)
        m->busy[i]--;
}
