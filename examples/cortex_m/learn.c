/* learn.c - keyword spotting on a Cortex-M4F that learns a word which it has never heard: the
 * layers of int8 stay as they are, the last one is trained, a sound a step, in a few kilobytes.
 * What it has learned is kept in flash: after a reset it is read back. */
#include <string.h>

#include "board.h"
#include "igrt_flash.h"
#include "kws.h"
#include "sounds.h"

#define ELEMENTS(array) (sizeof(array) / sizeof *(array))

enum { ROUNDS = 8, SLOT_BYTES = 4096 };

static _Alignas(KWS_ARENA_ALIGN) unsigned char arena[KWS_ARENA_BYTES(1)];
static kws_ctx ctx;
static igrt_state state[KWS_STATES];
static float sound[sizeof *sounds], scores[WORDS];

/* ---- states in flash ----------------------------------------------------------------------- */

/* This board's flash is memory here; on another one these three would be of its driver. */
static unsigned char flash[2][SLOT_BYTES];

static int flash_erase(void *user, int slot)
{
    (void)user;
    memset(flash[slot], 0xff, SLOT_BYTES);
    return 1;
}

static int flash_write(void *user, int slot, size_t at, const void *block)
{
    (void)user;
    memcpy(flash[slot] + at, block, IGRT_FLASH_BLOCK);
    return 1;
}

static int flash_read(void *user, int slot, size_t at, void *block)
{
    (void)user;
    memcpy(block, flash[slot] + at, IGRT_FLASH_BLOCK);
    return 1;
}

static const igrt_flash kept = {NULL, flash_erase, flash_write, flash_read, SLOT_BYTES};

/* ---- learning ------------------------------------------------------------------------------ */

static void load(int i)
{
    for (size_t k = 0; k < ELEMENTS(sound); k++)
        sound[k] = (float)sounds[i][k] * (1.0f / 24);
}

/* How many of the sounds that nothing is learned from are heard as the words they are: of the new
 * one, or of the others. */
static unsigned heard(int new_word)
{
    unsigned right = 0;
    for (int i = LESSONS; i < SOUNDS; i++) {
        const kws_inputs in = {sound};
        kws_outputs out = {scores};
        unsigned best = 0;
        if ((words[i] == NEW_WORD) != new_word)
            continue;
        load(i);
        if (kws_run(&ctx, &in, &out) != IGRT_OK)
            return 0;
        for (unsigned k = 1; k < ELEMENTS(scores); k++)
            best = scores[k] > scores[best] ? k : best;
        right += best == words[i];
    }
    return right;
}

static void say(const char *when)
{
    board_say(when);
    board_say_number(": of 25 sounds of the new word are heard: ", heard(1));
    board_say_number("    and of 75 of the others: ", heard(0));
}

static kws_status learn(void)
{
    float loss;
    kws_status status = IGRT_OK;
    for (int i = 0; i < ROUNDS * LESSONS && status == IGRT_OK; i++) {
        const int64_t word = words[i % LESSONS];
        const kws_train_step_inputs in = {.sound = sound, .target = &word};
        kws_train_step_outputs out = {&loss};
        load(i % LESSONS);
        status = kws_train_step(&ctx, &in, &out);
    }
    return status;
}

int main(void)
{
    kws_config config = {.struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena};
    if (kws_init(&ctx, &config) != IGRT_OK)
        return 1;
    for (int i = 0; i < KWS_STATES; i++)
        if (kws_state(&ctx, i, &state[i]) != IGRT_OK)
            return 1;
    board_say_number("bytes of the arena: ", sizeof arena);
    say("as it was made");
    board_clock_start();
    if (learn() != IGRT_OK)
        return 1;
    board_say_number("thousands of instructions a step: ", board_clock() / 25 / (ROUNDS * LESSONS));
    say("after the lessons");
    if (!igrt_flash_save(&kept, state, KWS_STATES))
        return 1;
    if (kws_reset(&ctx) != IGRT_OK)
        return 1;
    say("after a reset");
    if (!igrt_flash_load(&kept, state, KWS_STATES))
        return 1;
    say("with what the flash has");
    return 0;
}
