/* llama_logits.c - llama.cpp's logits after each token of a prompt and of its own greedy
 * continuation, for llama_cpp.py.
 *
 *     llama_logits MODEL.gguf POSITIONS ID..      for each position: the token, then all logits */
#include <stdio.h>
#include <stdlib.h>

#include "llama.h"

static void quiet(enum ggml_log_level level, const char *text, void *user)
{
    (void)user;
    if (level == GGML_LOG_LEVEL_ERROR)
        fputs(text, stderr);
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
    of_context.n_ctx = 512;
    of_context.n_threads = of_context.n_threads_batch = 1;
    struct llama_context *c = llama_init_from_model(m, of_context);
    const int words = llama_vocab_n_tokens(llama_model_get_vocab(m)), n = atoi(argv[2]);
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
