/* text_loss.c - how unlikely a text is to the model of a bundle, for perplexity.py.
 *
 *     text_loss model.weights model.vocab <TEXT      the ids; a line that says how many were
 *                                                    foretold, and the sum of -log p of them: each
 *                                                    but the first of every WINDOW */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_igrt.h"

#include "igrt_vocab.h"

#include "model.h"

enum { TEXT = 1 << 16, WINDOW = 1024 };

static void *file(FILE *f, size_t most, size_t *bytes)
{
    void *p = aligned_alloc(64, most);
    if (!f || !p)
        exit(2);
    *bytes = fread(p, 1, most, f);
    return p;
}

static double loss(const float *logits, int words, int id)
{
    double most = logits[0], sum = 0;
    for (int k = 1; k < words; k++)
        most = logits[k] > most ? logits[k] : most;
    for (int k = 0; k < words; k++)
        sum += exp(logits[k] - most);
    return most + log(sum) - logits[id];
}

int main(int argc, char **argv)
{
    static float logits[WORDS];
    static int32_t ids[TEXT];
    size_t bytes, n;
    igrt_vocab v;
    if (argc < 3)
        return 2;
    const void *weights = file(fopen(argv[1], "rb"), (MODEL_WEIGHTS_BYTES + 63) / 64 * 64, &bytes);
    model_config config = {.struct_size = sizeof config,
                           .weights = weights,
                           .weights_bytes = bytes,
                           .arena = aligned_alloc(64, MODEL_ARENA_BYTES(1)),
                           .arena_bytes = MODEL_ARENA_BYTES(1)};
    model_ctx ctx;
    const void *vocab = file(fopen(argv[2], "rb"), (MODEL_VOCAB_BYTES + 63) / 64 * 64, &bytes);
    if (model_init(&ctx, &config) || igrt_vocab_open(&v, vocab, bytes))
        return 1;
    const char *text = file(stdin, TEXT, &bytes);
    n = igrt_tokenize(&v, text, bytes, 0, ids, TEXT);
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        const model_decode_inputs in = {.ids = ids + i};
        model_decode_outputs out = {.logits = logits};
        printf("%d ", (int)ids[i]);
        if (i % WINDOW == 0 && model_reset(&ctx))
            return 1;
        if (model_decode(&ctx, &in, &out))
            return 1;
        if (i + 1 < n && (i + 1) % WINDOW) {
            sum += loss(logits, WORDS, ids[i + 1]);
            count++;
        }
    }
    printf("\n%zu %.9g\n", count, sum);
    return 0;
}
