/*
 * igrt_turns.h - CUDA, sm_90a: attention whose blocks overlap; igrt_wgmma.h comes before.
 *
 *     igrt_wgmma_until<1>(&c, token)    products of all groups but the last one are done; the sums
 *                                       c of the others may be read
 *     igrt_turns_begin(warpgroups)      by all of these, before the first turn,
 *     igrt_turns_end(warpgroups)        and after the last one: each has had as many
 *     igrt_turn_take()                  until the warpgroup may ask for products
 *     igrt_turn_pass(warpgroups)        the next one may
 */
/* All products but those of the last GROUPS groups are done; `token` has come (see _done). */
template <int GROUPS, typename Sums>
static __device__ __forceinline__ void igrt_wgmma_until(Sums *c, uint64_t *token)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(GROUPS) : "memory");
    igrt_token_wait(igrt_token(token, 0), 0);
#pragma unroll
    for (int i = 0; i < (int)(sizeof c->v / sizeof c->v[0]); i++)
        igrt_changed(&c->v[i]);
}

/* Warpgroups ask for products in turn: while one waits for its own, and makes something of them,
 * the unit has those of the others. The last one lets the first begin, and the first one takes the
 * turn that is left at the end; the others meet where nobody else does. */
enum { IGRT_TURNS = 8, IGRT_NO_TURN = 15 };
static __device__ __forceinline__ void igrt_turns_begin(int groups)
{
    const bool last = (int)threadIdx.x / 128 == groups - 1;
    asm volatile("bar.arrive %0, %1;"
                 :
                 : "r"(last ? IGRT_TURNS : IGRT_NO_TURN), "r"(last ? 256 : 128 * (groups - 1))
                 : "memory");
}

static __device__ __forceinline__ void igrt_turns_end(int groups)
{
    const bool first = threadIdx.x < 128;
    asm volatile("bar.sync %0, %1;"
                 :
                 : "r"(first ? IGRT_TURNS : IGRT_NO_TURN), "r"(first ? 256 : 128 * (groups - 1))
                 : "memory");
}

static __device__ __forceinline__ void igrt_turn_take(void)
{
    asm volatile("bar.sync %0, 256;" : : "r"(IGRT_TURNS + (int)threadIdx.x / 128) : "memory");
}

static __device__ __forceinline__ void igrt_turn_pass(int groups)
{
    const int next = (int)threadIdx.x / 128 + 1;
    asm volatile("bar.arrive %0, 256;"
                 :
                 : "r"(IGRT_TURNS + (next == groups ? 0 : next))
                 : "memory");
}
