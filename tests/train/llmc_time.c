/* llmc_time.c - CPU time (of several threads: time) of a training step of llm.c's GPT-2 124M, 4
 * rows of 64 words, AdamW: milliseconds, the least of all steps.
 *
 *     cc -Ofast -march=native -ILLMC -o llmc_time llmc_time.c -lm     (-fopenmp)
 *     llmc_time SECONDS [--threads N]
 *
 * LLMC is a checkout of llm.c. Weights are drawn, as no file of them is needed for the time. */
#define _GNU_SOURCE
#define TESTING
#include "train_gpt2.c"

enum { ROWS = 4, WORDS = 64 };

static uint32_t noise_state = 7;

static float noise(void)
{
    noise_state = noise_state * 1664525u + 1013904223u;
    return (float)(int32_t)noise_state / 2147483648.0f;
}

static GPT2 drawn(void)
{
    GPT2 m = {.config = {.max_seq_len = 1024,
                         .vocab_size = 50257,
                         .padded_vocab_size = 50304,
                         .num_layers = 12,
                         .num_heads = 12,
                         .channels = 768}};
    fill_in_parameter_sizes(m.param_sizes, m.config);
    for (size_t i = 0; i < NUM_PARAMETER_TENSORS; i++)
        m.num_parameters += m.param_sizes[i];
    m.params_memory = malloc_and_point_parameters(&m.params, m.param_sizes);
    for (size_t i = 0; i < m.num_parameters; i++)
        m.params_memory[i] = 0.02f * noise();
    const size_t each = (size_t)m.config.num_layers * (size_t)m.config.channels;
    for (size_t i = 0; i < each; i++)
        m.params.ln1w[i] = m.params.ln2w[i] = 1;
    for (int i = 0; i < m.config.channels; i++)
        m.params.lnfw[i] = 1;
    return m;
}

int main(int argc, char **argv)
{
    const double seconds = argc > 1 ? atof(argv[1]) : 1;
    const int threads = argc > 3 && !strcmp(argv[2], "--threads") ? atoi(argv[3]) : 1;
    const clockid_t measured = threads > 1 ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID;
#ifdef OMP
    omp_set_num_threads(threads);
#endif
    GPT2 m = drawn();
    int ids[ROWS * WORDS], next[ROWS * WORDS];
    for (int i = 0; i < ROWS * WORDS; i++) {
        ids[i] = i * 37 % 100;
        next[i] = i;
    }
    double best = 1e300, all = 0;
    for (int n = 0; n < 3 || all < seconds; n++) {
        struct timespec since, end;
        clock_gettime(measured, &since);
        gpt2_forward(&m, ids, next, ROWS, WORDS);
        gpt2_zero_grad(&m);
        gpt2_backward(&m);
        gpt2_update(&m, 1e-3f, 0.9f, 0.999f, 1e-8f, 0.01f, n + 1);
        clock_gettime(measured, &end);
        const double s =
            (double)(end.tv_sec - since.tv_sec) + 1e-9 * (double)(end.tv_nsec - since.tv_nsec);
        all += s;
        best = s < best ? s : best;
    }
    printf("%.3f ms, loss %.6g\n", 1e3 * best, (double)m.mean_loss);
    gpt2_free(&m);
    return 0;
}
