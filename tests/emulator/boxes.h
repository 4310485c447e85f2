/* boxes.h - what a tensor map is here: cuTensorMapEncodeTiled() makes it, or, of windows,
 * cuTensorMapEncodeIm2col(); cp.async.bulk.tensor reads it. */
#ifndef EMULATOR_BOXES_H
#define EMULATOR_BOXES_H

#include <stdint.h>

namespace gpu
{
enum { AXES = 5, MAP_BYTES = 128, LINE = 128, HALF = 64 /* bytes, which are swizzled */ };
struct Map {
    const unsigned char *memory;
    uint16_t rank, element, line; /* bytes */
    uint16_t box[AXES];
    uint32_t extent[AXES];
    uint64_t stride[AXES]; /* bytes; the first is an element's */
    /* Of windows: positions, box[1] at once, along the axes between the first and the last one. */
    bool window;
    uint8_t step[AXES];
    int16_t low[AXES], many[AXES];
};
static_assert(sizeof(Map) <= MAP_BYTES, "a map has so many bytes");

/* Of the 16 bytes that lie at an address, where swizzling by 128 bytes puts them: bits 4 to 6, by
 * those above; by 64 bytes bits 4 and 5, by bits 7 and 8. */
static inline uint32_t swizzled(uint32_t address, uint32_t line)
{
    return address ^ (address >> 7 & (line == HALF ? 3 : 7)) << 4;
}
} // namespace gpu

#endif
