/*
 * fuzz_safetensors.c - libFuzzer target: any bytes as a .safetensors file.
 *
 * What is accepted has to keep the reader's promises: data inside the file, found by its name.
 */
#include "safetensors.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char err[200];
    ingot_safetensors *st = ingot_safetensors_open_memory("fuzz", data, size, err, sizeof err);
    if (!st) {
        if (strlen(err) < 8)
            abort();
        return 0;
    }
    size_t covered = 0;
    for (size_t i = 0; i < ingot_safetensors_count(st); i++) {
        const ingot_safetensors_tensor *t = ingot_safetensors_get(st, i);
        const uint8_t *at = t->data;
        if (at < data || at > data + size || t->bytes > (size_t)(data + size - at) ||
            ingot_safetensors_find(st, t->name) != t)
            abort();
        covered += t->bytes;
    }
    if (covered > size)
        abort();
    ingot_safetensors_close(st);
    return 0;
}
