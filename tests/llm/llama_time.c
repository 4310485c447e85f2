/* llama_time.c - how many tokens a second llama.cpp computes, for tests/bench/scoreboard.py.
 *
 *     llama_time MODEL.gguf THREADS PROMPT ANSWER
 *
 * prints two numbers: for a prompt of PROMPT tokens, computed together, and for ANSWER tokens,
 * computed one by one. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "llama.h"

enum { FIRST = 1000 }; /* ids of ordinary words in any vocabulary that is large enough */

static void quiet(enum ggml_log_level level, const char *text, void *user)
{
    (void)user;
    if (level == GGML_LOG_LEVEL_ERROR)
        fputs(text, stderr);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    const int threads = atoi(argv[2]), prompt = atoi(argv[3]), answer = atoi(argv[4]);
    llama_log_set(quiet, NULL);
    llama_backend_init();
    struct llama_model *m = llama_model_load_from_file(argv[1], llama_model_default_params());
    struct llama_context_params how = llama_context_default_params();
    how.n_ctx = (unsigned)(prompt + answer + 1);
    how.n_batch = how.n_ubatch = (unsigned)prompt;
    how.n_threads = how.n_threads_batch = threads;
    struct llama_context *c = m ? llama_init_from_model(m, how) : NULL;
    llama_token *ids = calloc((size_t)prompt, sizeof *ids);
    if (!c || !ids)
        return 1;
    for (int i = 0; i < prompt; i++)
        ids[i] = FIRST + i;
    double best = 0, begin = 0;
    for (int round = 0; round < 4; round++) { /* the first one warms up */
        llama_memory_clear(llama_get_memory(c), true);
        begin = now();
        if (llama_decode(c, llama_batch_get_one(ids, prompt)))
            return 1;
        llama_synchronize(c);
        const double rate = prompt / (now() - begin);
        best = rate > best ? rate : best;
    }
    begin = now();
    for (int i = 0; i < answer; i++) {
        llama_token id = FIRST + i;
        if (llama_decode(c, llama_batch_get_one(&id, 1)))
            return 1;
        llama_synchronize(c);
    }
    printf("%.2f %.2f\n", best, answer / (now() - begin));
    return 0;
}
