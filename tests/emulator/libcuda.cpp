/* libcuda.cpp - the calls of a driver that runs kernels on the host, in the place of those that
 * cuda_stub.c writes down. */
#include <malloc.h>
#include <unistd.h>

#include <map>
#include <string>

#include "boxes.h"
#include "graphs.h"
#include "items.h"

enum { CUDA_ERROR_OUT_OF_MEMORY = 2 };

/* $EMULATED_FAIL: "launch 12", "memory 3": the call of this number finds no memory. */
static bool fails(const char *what)
{
    static std::map<std::string, int> calls;
    const char *fail = getenv("EMULATED_FAIL");
    return fail && fail == what + (" " + std::to_string(++calls[what]));
}

static std::map<uint64_t, void *> owner; /* of device memory: its context */

/* $EMULATED_APART: no device reaches another one's memory. */
void gpu::reach(uint64_t memory)
{
    sent++;
    const auto behind = owner.upper_bound(memory);
    if (!getenv("EMULATED_APART") || behind == owner.begin())
        return;
    const auto &block = *std::prev(behind);
    if (memory < block.first + malloc_usable_size((void *)(uintptr_t)block.first) &&
        block.second != gpu::context) {
        fprintf(stderr, "a device writes to memory of another one, which it does not reach\n");
        _exit(1);
    }
}

extern "C" {
int cuModuleGetFunction(void **function, void *, const char *name)
{
    static const char *table = getenv("EMULATED_TABLE");
    for (const gpu::Entry *e = gpu::tables[table ? atoi(table) : 0]; e->name; e++)
        if (!strcmp(e->name, name)) {
            *function = (void *)(uintptr_t)e;
            return 0;
        }
    *function = (void *)(uintptr_t)&gpu::decide;
    return strcmp(name, gpu::decide.name) ? 500 : 0;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **args, void **)
{
    if (gy != 1 || gz != 1 || by != 1 || bz != 1)
        return 1;
    if (fails("launch"))
        return CUDA_ERROR_OUT_OF_MEMORY;
    const auto &entry = *(const gpu::Entry *)function;
    if (gpu::Node *n = gpu::record(stream)) {
        n->entry = &entry;
        n->args = entry.keep(args);
        n->grid = gx;
        n->items = bx;
        n->shared = shared;
    } else {
        gpu::launch(entry, args, gx, bx, shared);
    }
    return 0;
}

int cuMemAlloc_v2(uint64_t *memory, size_t bytes)
{
    void *p = NULL;
    if (fails("memory") || posix_memalign(&p, 256, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    memset(p, 0xff, bytes);
    *memory = (uint64_t)(uintptr_t)p;
    owner[*memory] = gpu::context;
    return 0;
}

int cuMemFree_v2(uint64_t memory)
{
    owner.erase(memory);
    free((void *)(uintptr_t)memory);
    return 0;
}

int cuMemHostAlloc(void **memory, size_t bytes, unsigned)
{
    return posix_memalign(memory, 256, bytes) ? CUDA_ERROR_OUT_OF_MEMORY : 0;
}

int cuMemHostGetDevicePointer_v2(uint64_t *seen, void *memory, unsigned)
{
    *seen = (uint64_t)(uintptr_t)memory;
    return 0;
}

int cuMemFreeHost(void *memory)
{
    free(memory);
    return 0;
}

/* Now, or when what the stream records is launched. */
static int enqueue(void *stream, const std::function<void()> &what)
{
    if (gpu::Node *n = gpu::record(stream))
        n->run = what;
    else
        what();
    return 0;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream)
{
    return enqueue(stream, [=] { memcpy((void *)(uintptr_t)to, from, bytes); });
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream)
{
    return enqueue(stream, [=] { memcpy(to, (const void *)(uintptr_t)from, bytes); });
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
    if (!to || !from)
        return 1;
    return enqueue(stream,
                   [=] { memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes); });
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *stream)
{
    return enqueue(stream, [=] { memset((void *)(uintptr_t)to, value, bytes); });
}

int cuLaunchHostFunc(void *stream, void (*does)(void *), void *with)
{
    return enqueue(stream, [=] { does(with); });
}

/* What they ask for is in the driver's reference: addresses and strides of 16 bytes, lines of at
 * most what is swizzled. */
static bool is_map(gpu::Map &m, int type, unsigned rank, const void *memory, const uint64_t *extent,
                   const uint64_t *stride, int interleave, int swizzle, int fill)
{
    const int none = 0, by_64 = 2, by_128 = 3;
    m = {};
    m.memory = (const unsigned char *)memory;
    m.rank = (uint16_t)rank;
    m.line = swizzle == by_64 ? gpu::HALF : gpu::LINE;
    m.element = (uint16_t)(type == 0 ? 1 : type == 1 ? 2 : type == 2 ? 4 : 0);
    if (!m.element || rank < 1 || rank > gpu::AXES || !memory || (uintptr_t)memory % 16 ||
        interleave != none || (swizzle != by_128 && swizzle != by_64) || fill)
        return false;
    for (unsigned i = 0; i < rank; i++) {
        m.extent[i] = (uint32_t)extent[i];
        m.stride[i] = i ? stride[i - 1] : m.element;
        m.box[i] = 1;
        if (!extent[i] || extent[i] > UINT32_MAX || (i && (m.stride[i] % 16 || m.stride[i] >> 40)))
            return false;
    }
    return true;
}

static int keep_map(void *map, const gpu::Map &m)
{
    if (m.box[0] * m.element > m.line || m.box[0] * m.element % 16)
        return 1;
    memset(map, 0xff, gpu::MAP_BYTES);
    memcpy(map, &m, sizeof m);
    return 0;
}

/* Boxes of at most 256. */
int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *memory, const uint64_t *extent,
                           const uint64_t *stride, const unsigned *box, const unsigned *step,
                           int interleave, int swizzle, int, int fill)
{
    gpu::Map m;
    if (!is_map(m, type, rank, memory, extent, stride, interleave, swizzle, fill))
        return 1;
    for (unsigned i = 0; i < rank; i++) {
        m.box[i] = (uint16_t)box[i];
        if (!box[i] || box[i] > 256 || step[i] != 1)
            return 1;
    }
    return keep_map(map, m);
}

/* Corners of 16, 8 or 5 bits, steps of at most 8, at most 256 channels and 1024 positions. */
int cuTensorMapEncodeIm2col(void *map, int type, unsigned rank, void *memory,
                            const uint64_t *extent, const uint64_t *stride, const int *low,
                            const int *high, unsigned channels, unsigned positions,
                            const unsigned *step, int interleave, int swizzle, int, int fill)
{
    gpu::Map m;
    if (rank < 3 || !is_map(m, type, rank, memory, extent, stride, interleave, swizzle, fill) ||
        !channels || channels > 256 || !positions || positions > 1024)
        return 1;
    const int most = rank == 3 ? 1 << 15 : rank == 4 ? 1 << 7 : 1 << 4;
    m.window = true;
    m.box[0] = (uint16_t)channels;
    m.box[1] = (uint16_t)positions;
    for (unsigned i = 1; i + 1 < rank; i++) {
        const int from = low[i - 1], to = high[i - 1];
        const int64_t positions_here =
            ((int64_t)extent[i] + to - from + (int)step[i] - 1) / (int)step[i];
        m.low[i] = (int16_t)from;
        m.step[i] = (uint8_t)step[i];
        m.many[i] = (int16_t)positions_here;
        if (from < -most || from >= most || to < -most || to >= most || !step[i] || step[i] > 8 ||
            positions_here < 1 || positions_here > INT16_MAX)
            return 1;
    }
    return keep_map(map, m);
}
}
