/*
 * fuzz_gguf.c - libFuzzer target: any bytes as a .gguf file.
 *
 * What is accepted has to keep the reader's promises: data and texts inside the file.
 */
#include "gguf.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char err[200];
    const ingot_gguf_tensor *t;
    const ingot_gguf_value *v;
    ingot_gguf *g = ingot_gguf_open_memory("fuzz", data, size, err, sizeof err);
    if (!g) {
        if (strlen(err) < 8)
            abort();
        return 0;
    }
    for (size_t i = 0; (t = ingot_gguf_get(g, i)); i++) {
        const uint8_t *at = t->data;
        if (at < data || at > data + size || t->bytes > (size_t)(data + size - at) ||
            ingot_gguf_find(g, t->name) != t)
            abort();
    }
    for (size_t i = 0; (v = ingot_gguf_key_get(g, i)); i++)
        for (size_t k = 0; v->texts && k < v->count; k++)
            if (v->texts[k].len > (size_t)((const char *)data + size - v->texts[k].at))
                abort();
    ingot_gguf_close(g);
    return 0;
}
