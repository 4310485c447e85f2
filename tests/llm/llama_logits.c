/* llama_logits.c - llama.cpp's logits after each token of a prompt and of its own greedy
 * continuation, for llama_cpp.py; how unlikely tokens are to it, for perplexity.py.
 *
 *     llama_logits MODEL.gguf POSITIONS ID..      for each position: the token, then all logits
 *     llama_logits MODEL.gguf 0 ID..              how many were foretold, and the sum of -log p of
 *                                                 them: each but the first of every WINDOW
 *
 * Keys, values and attention are f32: its own choice, f16, costs 1.5 % of a perplexity. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "llama.h"

enum { WINDOW = 1024 };

static void quiet(enum ggml_log_level level, const char *text, void *user)
{
    (void)user;
    if (level == GGML_LOG_LEVEL_ERROR)
        fputs(text, stderr);
}

/* -log p of a token, by the logits before it. */
static double loss(const float *logits, int words, int id)
{
    double most = logits[0], sum = 0;
    for (int k = 1; k < words; k++)
        most = logits[k] > most ? logits[k] : most;
    for (int k = 0; k < words; k++)
        sum += exp(logits[k] - most);
    return most + log(sum) - logits[id];
}

static int losses(struct llama_context *c, int words, int n, char **ids)
{
    double sum = 0;
    int count = 0;
    for (int i = 0; i < n; i++) {
        llama_token id = atoi(ids[i]);
        if (i % WINDOW == 0)
            llama_memory_clear(llama_get_memory(c), true);
        if (llama_decode(c, llama_batch_get_one(&id, 1)))
            return 1;
        if (i + 1 < n && (i + 1) % WINDOW) {
            sum += loss(llama_get_logits_ith(c, -1), words, atoi(ids[i + 1]));
            count++;
        }
    }
    printf("%d %.9g\n", count, sum);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    llama_log_set(quiet, NULL);
    llama_backend_init();
    struct llama_model_params of_model = llama_model_default_params();
    of_model.n_gpu_layers = 0;
    struct llama_model *m = llama_model_load_from_file(argv[1], of_model);
    if (!m)
        return 1;
    struct llama_context_params of_context = llama_context_default_params();
    of_context.n_ctx = WINDOW;
    of_context.n_threads = of_context.n_threads_batch = 1;
    of_context.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    of_context.type_k = of_context.type_v = GGML_TYPE_F32;
    struct llama_context *c = llama_init_from_model(m, of_context);
    const int words = llama_vocab_n_tokens(llama_model_get_vocab(m)), n = atoi(argv[2]);
    if (c && !n)
        return losses(c, words, argc - 3, argv + 3);
    llama_token id = 0;
    for (int i = 0; i < n && c; i++) {
        id = i + 3 < argc ? atoi(argv[i + 3]) : id;
        if (llama_decode(c, llama_batch_get_one(&id, 1)))
            return 1;
        const float *logits = llama_get_logits_ith(c, -1);
        printf("%d\n", (int)id);
        id = 0;
        for (int k = 0; k < words; k++) {
            printf("%.9g\n", (double)logits[k]);
            id = logits[k] > logits[id] ? k : id;
        }
    }
    return c ? 0 : 1;
}
