/* train.c - teaches the network of net.c to read digits, with plain C and its bundle.
 *
 *     train digits.csv digits.weights [SPLIT..]
 *
 * digits.csv: 1797 lines of 64 pixels (0..16) and the digit (UCI, "Optical Recognition of
 * Handwritten Digits").  They are put in a fixed random order; split k of 5 holds out the images k,
 * k + 5, k + 10 .. of it.  Each split begins with the same weights and has the same number of
 * steps; nothing is decided by what is held out, which is looked at once, at the end. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "digits.h"
#include "igrt_weights.h"

#ifndef EPOCHS
#define EPOCHS 60
#endif
enum { SPLITS = 5, BATCH = 64, MOST = 2000 };

typedef struct {
    float pixel[8][8];
    int32_t digit;
} Image;

static Image image[MOST];
static int nimage;

/* ---- random numbers ------------------------------------------------------------------------ */

static uint64_t random_state;

static double uniform(double lo, double hi)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return lo + (hi - lo) * (double)(random_state >> 32) / 4294967296.0;
}

static void shuffle(int *list, int n)
{
    for (int i = n - 1; i > 0; i--) {
        const int k = (int)uniform(0, i + 1), other = list[k];
        list[k] = list[i];
        list[i] = other;
    }
}

/* ---- images -------------------------------------------------------------------------------- */

static int read_images(const char *path)
{
    FILE *f = fopen(path, "r");
    for (; f && nimage < MOST; nimage++) {
        Image *to = &image[nimage];
        int value, good = 1;
        for (int i = 0; i < 64 && good; i++) {
            good = fscanf(f, "%d,", &value) == 1;
            to->pixel[i / 8][i % 8] = (float)value / 16;
        }
        if (!good || fscanf(f, "%d", &value) != 1)
            break;
        to->digit = value;
    }
    if (f)
        fclose(f);
    return nimage;
}

static float pixel_at(const Image *from, int y, int x)
{
    return x < 0 || y < 0 || x > 7 || y > 7 ? 0 : from->pixel[y][x];
}

/* Between four pixels. */
static double between(const Image *from, double y, double x)
{
    const int top = (int)floor(y), left = (int)floor(x);
    const double down = y - top, right = x - left;
    return (1 - down) *
               ((1 - right) * pixel_at(from, top, left) + right * pixel_at(from, top, left + 1)) +
           down * ((1 - right) * pixel_at(from, top + 1, left) +
                   right * pixel_at(from, top + 1, left + 1));
}

/* The digit as somebody else may have written it: turned, sheared, of another size, moved. */
static void vary(const Image *from, float to[8][8])
{
    const double turn = uniform(-0.2, 0.2), shear = uniform(-0.2, 0.2);
    const double size = 1 / uniform(0.9, 1.1), wide = 1 / uniform(0.9, 1.1);
    const double move_y = uniform(-0.7, 0.7), move_x = uniform(-0.7, 0.7);
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x++) {
            const double v = (y - 3.5) * size - move_y, u = (x - 3.5) * size * wide - move_x;
            const double w = u + shear * v;
            to[y][x] = (float)between(from, 3.5 + cos(turn) * v + sin(turn) * w,
                                      3.5 - sin(turn) * v + cos(turn) * w);
        }
}

/* ---- one split ----------------------------------------------------------------------------- */

typedef struct {
    digits_ctx ctx;
    void *arena;
    igrt_weights weights;
    int train[MOST], test[MOST], ntrain, ntest;
} TrainingRun;

static float batch[BATCH][8][8], rate, loss, score[BATCH][10];
static int32_t label[BATCH];

static void check(digits_status status)
{
    if (status == IGRT_OK)
        return;
    fprintf(stderr, "%s\n", igrt_status_text(status));
    exit(1);
}

static void begin(TrainingRun *s, const char *weights, int split)
{
    int order[MOST];
    random_state = 1;
    for (int i = 0; i < nimage; i++)
        order[i] = i;
    shuffle(order, nimage);
    for (int i = 0; i < nimage; i++)
        if (i % SPLITS == split)
            s->test[s->ntest++] = order[i];
        else
            s->train[s->ntrain++] = order[i];
    const size_t align = DIGITS_ARENA_ALIGN;
    s->arena = malloc(DIGITS_ARENA_BYTES(1) + align);
    digits_config config = {.struct_size = sizeof config,
                            .arena = (void *)(((uintptr_t)s->arena + align - 1) / align * align),
                            .arena_bytes = DIGITS_ARENA_BYTES(1)};
#ifdef DIGITS_WEIGHTS_BYTES
    const char *why = igrt_weights_open(&s->weights, weights, DIGITS_WEIGHTS_BYTES);
    if (why) {
        fprintf(stderr, "%s: %s\n", weights, why);
        exit(1);
    }
    config.weights = s->weights.data;
    config.weights_bytes = s->weights.bytes;
#endif
    (void)weights;
    check(digits_init(&s->ctx, &config));
}

/* Once through all images, in batches drawn anew. The rate rises, then falls as a cosine. */
static double epoch(TrainingRun *s, int number)
{
    const int steps = s->ntrain / BATCH;
    double sum = 0;
    shuffle(s->train, s->ntrain);
    for (int k = 0; k < steps; k++) {
        const double done = (number + (double)k / steps) / EPOCHS, rise = 0.05;
        rate = (float)(2e-3 * (done < rise
                                   ? done / rise
                                   : 0.5 + 0.5 * cos(3.14159265 * (done - rise) / (1 - rise))));
        for (int i = 0; i < BATCH; i++) {
            const Image *from = &image[s->train[k * BATCH + i]];
            vary(from, batch[i]);
            label[i] = from->digit;
        }
        digits_train_step_inputs in = {.image = batch[0][0], .label = label, .rate = &rate};
        digits_train_step_outputs out = {.loss = &loss};
        check(digits_train_step(&s->ctx, &in, &out));
        sum += loss;
    }
    return sum / steps;
}

/* How many of the images that were held out are read. */
static int count_right(TrainingRun *s)
{
    int right = 0;
    for (int at = 0; at < s->ntest; at += BATCH) {
        const int n = s->ntest - at < BATCH ? s->ntest - at : BATCH;
        for (int i = 0; i < n; i++)
            memcpy(batch[i], image[s->test[at + i]].pixel, sizeof batch[i]);
        digits_inputs in = {.image = batch[0][0]};
        digits_outputs out = {.score = score[0]};
        check(digits_run(&s->ctx, &in, &out));
        for (int i = 0; i < n; i++) {
            int best = 0;
            for (int d = 1; d < 10; d++)
                best = score[i][d] > score[i][best] ? d : best;
            right += best == image[s->test[at + i]].digit;
        }
    }
    return right;
}

static double run_split(const char *weights, int split)
{
    static TrainingRun s;
    memset(&s, 0, sizeof s);
    const clock_t start = clock();
    begin(&s, weights, split);
    const int before = count_right(&s);
    double first = 0, last = 0;
    for (int e = 0; e < EPOCHS; e++) {
        last = epoch(&s, e);
        first = e ? first : last;
    }
    const double share = 100.0 * count_right(&s) / s.ntest;
    printf("split %d: %d images teach, %d are held out; loss %.3f -> %.3f, right %.1f -> %.2f %%, "
           "%.1f s\n",
           split, s.ntrain, s.ntest, first, last, 100.0 * before / s.ntest, share,
           (double)(clock() - start) / CLOCKS_PER_SEC);
    fflush(stdout);
    digits_deinit(&s.ctx);
    igrt_weights_close(&s.weights);
    free(s.arena);
    return share;
}

int main(int argc, char **argv)
{
    if (argc < 3 || read_images(argv[1]) < BATCH * SPLITS) {
        fprintf(stderr, "usage: %s digits.csv digits.weights [SPLIT..]\n", argv[0]);
        return 2;
    }
    double sum = 0;
    int n = 0;
    for (int k = 0; k < SPLITS; k++) {
        int wanted = argc == 3;
        for (int i = 3; i < argc; i++)
            wanted |= atoi(argv[i]) == k;
        if (wanted) {
            sum += run_split(argv[2], k);
            n++;
        }
    }
    if (n)
        printf("mean of %d: %.2f %%\n", n, sum / n);
    return 0;
}
