/* main.c - keyword spotting on a Cortex-M4F: the golden sound that is inside of the model has to be
 * heard as the word it is; then one run is timed. Everything is static: the arena, the context,
 * inputs and outputs. */
#include "board.h"
#include "kws.h"

#define ELEMENTS(array) (sizeof(array) / sizeof *(array))

static _Alignas(KWS_ARENA_ALIGN) unsigned char arena[KWS_ARENA_BYTES(1)];
static kws_ctx ctx;
static float sound[SOUND], word[WORDS]; /* run.sh has the sizes from kws.h */

int main(void)
{
    kws_config config = {.struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena};
    kws_status status = kws_init(&ctx, &config);
    if (status == IGRT_OK)
        status = kws_selftest(&ctx);
    board_say(status == IGRT_OK ? "selftest: ok\n" : "selftest: FAILED\n");
    if (status != IGRT_OK) {
        board_say(igrt_status_text(status));
        return 1;
    }
    const kws_inputs in = {sound};
    kws_outputs out = {word};
    board_clock_start();
    status = kws_run(&ctx, &in, &out);
    board_say_number("thousands of instructions: ", board_clock() / 25);
    unsigned best = 0;
    for (unsigned i = 1; i < ELEMENTS(word); i++)
        best = word[i] > word[best] ? i : best;
    board_say_number("silence is heard as word ", best);
    return status == IGRT_OK ? 0 : 1;
}
