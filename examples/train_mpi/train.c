/* train.c - teaches the network of net.c, in as many processes as mpirun starts.
 *
 *     mpirun -n 2 train digits.csv [STEPS]
 *
 * digits.csv: lines of 64 pixels (0..16) and the digit. A step has ALL images, of which each
 * process has the next ALL / size: it is compiled for that many. The first process prints the loss,
 * which is that of all images, so that it does not matter how many processes there are but for
 * rounding. */
#include <stdio.h>
#include <stdlib.h>

#include "digits.h"
#include "igrt_mpi.h"

enum { ALL = 64, MOST = 2000, PIXELS = 64 };

static float pixel[MOST][PIXELS];
static int32_t digit[MOST];

static int read_images(const char *path)
{
    FILE *f = fopen(path, "r");
    int n = 0, value;
    for (int good = f != NULL; good && n < MOST; n += good) {
        for (int i = 0; i < PIXELS && good; i++) {
            good = fscanf(f, "%d,", &value) == 1;
            pixel[n][i] = (float)value / 16;
        }
        good = good && fscanf(f, "%d", &value) == 1;
        digit[n] = good ? value : 0;
    }
    if (f)
        fclose(f);
    return n;
}

static const char *train(const igrt_mpi *mpi, int nimage, int steps)
{
    static digits_ctx ctx;
    static unsigned char arena[DIGITS_ARENA_BYTES(1)] __attribute__((aligned(DIGITS_ARENA_ALIGN)));
    const digits_config config = {.struct_size = sizeof config,
                                  .arena = arena,
                                  .arena_bytes = sizeof arena,
                                  .comm = &mpi->comm};
    const int own = ALL / mpi->comm.size;
    digits_status status = digits_init(&ctx, &config);
    for (int k = 0; k < steps && status == IGRT_OK; k++) {
        const int first = k * ALL % (nimage - ALL + 1) + mpi->comm.rank * own;
        float loss;
        const digits_train_step_inputs in = {.image = pixel[first], .label = &digit[first]};
        digits_train_step_outputs out = {.loss = &loss};
        status = digits_train_step(&ctx, &in, &out);
        if (status == IGRT_OK && !mpi->comm.rank)
            printf("%d %.7g\n", k, loss);
    }
    digits_deinit(&ctx);
    return status == IGRT_OK ? NULL : igrt_status_text(status);
}

int main(int argc, char **argv)
{
    igrt_mpi mpi;
    MPI_Init(&argc, &argv);
    const int nimage = argc > 1 ? read_images(argv[1]) : 0;
    const char *why = igrt_mpi_begin(&mpi, MPI_COMM_WORLD) ? "MPI does not answer"
                      : nimage < ALL ? "usage: mpirun -n 2 train digits.csv [STEPS]"
                                     : train(&mpi, nimage, argc > 2 ? atoi(argv[2]) : 50);
    if (why)
        fprintf(stderr, "%s\n", why);
    igrt_mpi_end(&mpi);
    MPI_Finalize();
    return why != NULL;
}
