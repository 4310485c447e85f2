/*
 * page.c - the digits classifier as a WebAssembly module that imports nothing.
 *
 * Everything the model needs lies in the module's own memory: its context, its arena, the picture
 * and the probabilities. The page writes 64 floats where image() points to, calls recognise(), and
 * reads 10 floats where probabilities() points to. No pointer is ever made in JavaScript.
 */
#include "digits.h"

#define EXPORT(name) __attribute__((export_name(#name)))

static _Alignas(DIGITS_ARENA_ALIGN) unsigned char arena[DIGITS_ARENA_BYTES(1)];
static float pixels[64];
static float scores[10];

EXPORT(image) float *image(void)
{
    return pixels;
}

EXPORT(probabilities) float *probabilities(void)
{
    return scores;
}

/* An igrt_status: 0 is success. */
EXPORT(recognise) int recognise(void)
{
    static digits_ctx ctx;
    static int ready;
    if (!ready) {
        const digits_config config = {
            .struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena};
        const digits_status status = digits_init(&ctx, &config);
        if (status != IGRT_OK)
            return status;
        ready = 1;
    }
    const digits_inputs in = {.image = pixels};
    digits_outputs out = {.probabilities = scores};
    return digits_run(&ctx, &in, &out);
}
