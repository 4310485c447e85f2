/*
 * show.c - pictures of digits, with what the compiled classifier says they are.
 *
 * The whole use of an emitted model: a context, an arena, init, run. The weights of this model are
 * const arrays in its source, so nothing is loaded. samples.txt is one picture after another: the
 * label, then 8 rows of 8 values 0..16; '#' starts a comment line.
 */
#include <stdio.h>

#include "digits.h"

/* An arena may be any memory; the spare bytes are for its alignment. */
static unsigned char memory[DIGITS_ARENA_BYTES(1) + DIGITS_ARENA_ALIGN];

static void *arena(void)
{
    const uintptr_t at = (uintptr_t)memory % DIGITS_ARENA_ALIGN;
    return at ? memory + DIGITS_ARENA_ALIGN - at : memory;
}

/* The next label and picture of the file; 0 at its end, -1 if it is malformed. */
static int read_picture(FILE *f, int *label, float image[64])
{
    char line[256];
    do {
        if (!fgets(line, sizeof line, f))
            return 0;
    } while (line[0] == '#');
    if (sscanf(line, "%d", label) != 1)
        return -1;
    for (int i = 0; i < 64; i++)
        if (fscanf(f, "%f", &image[i]) != 1)
            return -1;
    return fgets(line, sizeof line, f) ? 1 : -1; /* the rest of the last row */
}

static void draw(const float image[64])
{
    static const char shade[] = " .:-=+*#%@";
    for (int row = 0; row < 8; row++) {
        printf("    ");
        for (int column = 0; column < 8; column++) {
            const char c = shade[(int)(image[row * 8 + column] * 9 / 16)];
            printf("%c%c", c, c);
        }
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    FILE *f = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (!f) {
        fprintf(stderr, "usage: %s samples.txt\n", argv[0]);
        return 2;
    }

    static digits_ctx ctx;
    igrt_config config = {0};
    config.struct_size = sizeof config;
    config.arena = arena();
    config.arena_bytes = DIGITS_ARENA_BYTES(1);
    igrt_status status = digits_init(&ctx, &config);

    float image[64], probability[10];
    digits_inputs in = {0};
    digits_outputs out = {0};
    in.image = image;
    out.probabilities = probability;

    int label = 0, right = 0, total = 0, more = 0;
    while (status == IGRT_OK && (more = read_picture(f, &label, image)) > 0) {
        status = digits_run(&ctx, &in, &out);
        if (status != IGRT_OK)
            break;
        int best = 0;
        for (int i = 1; i < 10; i++)
            if (probability[i] > probability[best])
                best = i;
        draw(image);
        printf("    is a %d, with %.0f%%%s\n\n", best, 100 * probability[best],
               best == label ? "" : " - and that is wrong");
        right += best == label;
        total++;
    }
    digits_deinit(&ctx);
    fclose(f);
    if (status != IGRT_OK || more < 0) {
        fprintf(stderr, "%s: %s\n", argv[0],
                more < 0 ? "the file of samples is malformed" : igrt_status_text(status));
        return 1;
    }
    printf("%d of %d right\n", right, total);
    return total == 0;
}
