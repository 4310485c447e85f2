/*
 * fuzz_tflite.c - libFuzzer target: any bytes as a .tflite file.
 *
 * What is accepted has to keep the reader's promises: data inside the file.
 */
#include "tflite.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char err[200];
    const ingot_tflite_graph *g;
    ingot_tflite *f = ingot_tflite_open_memory("fuzz", data, size, err, sizeof err);
    if (!f) {
        if (strlen(err) < 8)
            abort();
        return 0;
    }
    for (size_t i = 0; (g = ingot_tflite_graph_get(f, i)); i++) {
        for (size_t k = 0; k < g->n_tensors; k++) {
            const ingot_tflite_tensor *t = &g->tensors[k];
            if (t->data && (t->data < data || t->data > data + size ||
                            t->bytes > (size_t)(data + size - t->data)))
                abort();
        }
        for (size_t k = 0; k < g->n_ops; k++)
            for (unsigned n = 0; n < 12; n++) {
                const ingot_tflite_table *t = &g->ops[k].options;
                const ingot_tflite_list l = ingot_tflite_elements(t, n, 4);
                if (l.at && (l.at < data || l.n > (size_t)(data + size - l.at) / 4))
                    abort();
                if (strlen(ingot_tflite_text(t, n)) > size || ingot_tflite_int(t, n, 1, 0) > 127)
                    abort();
            }
    }
    ingot_tflite_close(f);
    return 0;
}
