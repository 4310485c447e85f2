/* train.c - teaches the network of net.c to write like a text, with plain C and its bundle.
 *
 *     train text gpt.weights [STEPS [FILE.safetensors]]
 *
 * The last twentieth of the text is held out: the loss there is told, in nats a character, and what
 * the network writes, before and after. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpt.h"
#include "igrt_states.h"
#include "igrt_weights.h"

#ifndef SAMPLE
#define SAMPLE 400 /* characters that it writes */
#endif
enum { BATCH = 16, LENGTH = 64, CHARACTERS = 96, WINDOWS = 32 };

static gpt_ctx ctx;
static unsigned char *text; /* each character from 0 to CHARACTERS - 1 */
static size_t nteach, ntext;
static int32_t seen[BATCH][LENGTH], next[BATCH][LENGTH];
static float score[LENGTH][CHARACTERS], rate, loss;
static uint64_t random_state = 1;

static double uniform(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 32) / 4294967296.0;
}

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void check(gpt_status status)
{
    if (status != IGRT_OK)
        fail("gpt", igrt_status_text(status));
}

/* ---- the text ------------------------------------------------------------------------------ */

/* Space to '~' are 0 to 94, the end of a line is 95; others are left out. */
static void read_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END))
        fail(path, "cannot be read");
    const long size = ftell(f);
    rewind(f);
    text = malloc((size_t)size + 1);
    for (int c; text && (c = getc(f)) != EOF && ntext < (size_t)size;)
        if (c == '\n' || (c >= ' ' && c <= '~'))
            text[ntext++] = (unsigned char)(c == '\n' ? CHARACTERS - 1 : c - ' ');
    fclose(f);
    nteach = ntext - ntext / 20;
    if (ntext < 40 * (LENGTH + 1))
        fail(path, "is too short");
}

static void take_window(int row, size_t at)
{
    for (int i = 0; i < LENGTH; i++) {
        seen[row][i] = text[at + (size_t)i];
        next[row][i] = text[at + (size_t)i + 1];
    }
}

/* ---- inference ----------------------------------------------------------------------------- */

static void run(void)
{
    gpt_inputs in = {.text = seen[0]};
    gpt_outputs out = {.score = score[0]};
    check(gpt_run(&ctx, &in, &out));
}

/* log sum e^score of a row */
static double log_sum(const float *row, double sharp)
{
    double most = row[0], sum = 0;
    for (int i = 1; i < CHARACTERS; i++)
        most = row[i] > most ? row[i] : most;
    for (int i = 0; i < CHARACTERS; i++)
        sum += exp(sharp * (row[i] - most));
    return sharp * most + log(sum);
}

static double held_out_loss(void)
{
    double sum = 0;
    for (int k = 0; k < WINDOWS; k++) {
        take_window(0, nteach + (ntext - nteach - LENGTH - 1) / WINDOWS * (size_t)k);
        run();
        for (int i = 0; i < LENGTH; i++)
            sum += log_sum(score[i], 1) - score[i][next[0][i]];
    }
    return sum / (WINDOWS * LENGTH);
}

/* Characters are drawn by their probabilities, the likely ones more often still. */
static void write_sample(void)
{
    const double sharp = 1.25;
    int n = 1;
    seen[0][0] = CHARACTERS - 1;
    for (int k = 0; k < SAMPLE; k++) {
        run();
        const float *row = score[n - 1];
        double left = uniform();
        const double all = log_sum(row, sharp);
        int32_t c = 0;
        while (c < CHARACTERS - 1 && (left -= exp(sharp * row[c] - all)) > 0)
            c++;
        putchar(c == CHARACTERS - 1 ? '\n' : c + ' ');
        if (n == LENGTH)
            memmove(seen[0], seen[0] + 1, (LENGTH - 1) * sizeof seen[0][0]);
        else
            n++;
        seen[0][n - 1] = c;
    }
    putchar('\n');
}

/* ---- training ------------------------------------------------------------------------------ */

/* The rate rises over 100 steps, then falls as a cosine. */
static void learn(int steps)
{
    const clock_t start = clock();
    double mean = 0;
    for (int k = 0; k < steps; k++) {
        rate = (float)(2e-3 * (k < 100 ? k / 100.0 : 0.55 + 0.45 * cos(3.14159265 * k / steps)));
        for (int i = 0; i < BATCH; i++)
            take_window(i, (size_t)(uniform() * (double)(nteach - LENGTH - 1)));
        gpt_train_step_inputs in = {.text = seen[0], .next = next[0], .rate = &rate};
        gpt_train_step_outputs out = {.loss = &loss};
        check(gpt_train_step(&ctx, &in, &out));
        mean = k ? 0.98 * mean + 0.02 * loss : loss;
        if ((k + 1) % 250 == 0)
            printf("step %d: loss %.3f, %.0f s\n", k + 1, mean,
                   (double)(clock() - start) / CLOCKS_PER_SEC);
        fflush(stdout);
    }
}

static void tell(const char *when)
{
    printf("-- %s: loss of what is held out %.3f; it writes:\n", when, held_out_loss());
    write_sample();
}

static void save(const char *path)
{
    static igrt_state state[GPT_STATES];
    char why[256];
    for (int i = 0; i < GPT_STATES; i++)
        check(gpt_state(&ctx, i, &state[i]));
    if (!igrt_states_save(path, state, GPT_STATES, why, sizeof why))
        fail("save", why);
}

int main(int argc, char **argv)
{
    igrt_weights weights;
    if (argc < 3)
        fail(argv[0], "text gpt.weights [STEPS [FILE.safetensors]]");
    read_text(argv[1]);
    const char *why = igrt_weights_open(&weights, argv[2], GPT_WEIGHTS_BYTES);
    if (why)
        fail(argv[2], why);
    const size_t align = GPT_ARENA_ALIGN;
    void *arena = malloc(GPT_ARENA_BYTES(1) + align);
    gpt_config config = {.struct_size = sizeof config,
                         .arena = (void *)(((uintptr_t)arena + align - 1) / align * align),
                         .arena_bytes = GPT_ARENA_BYTES(1),
                         .weights = weights.data,
                         .weights_bytes = weights.bytes};
    if (!arena)
        fail("gpt", "there is not enough memory");
    check(gpt_init(&ctx, &config));
    printf("%zu characters, of which %zu are held out\n", ntext, ntext - nteach);
    tell("before");
    learn(argc > 3 ? atoi(argv[3]) : 2000);
    tell("after");
    if (argc > 4)
        save(argv[4]);
    gpt_deinit(&ctx);
    igrt_weights_close(&weights);
    free(arena);
    free(text);
    return 0;
}
