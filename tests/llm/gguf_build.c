/*
 * gguf_build.c - graphs and vocabularies of GGUF files that may be anything, for mutate.py.
 *
 *     gguf_build FILE...      of each a line "= STATUS" behind what was told: a message a line
 *
 * The graph is built, and not run. A vocabulary that is taken cuts a text into tokens.
 */
#include "gguf_vocab.h"
#include "igrt_vocab.h"
#include "ingot_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void sink(void *user, ingot_level level, const char *message)
{
    (void)user;
    printf("%s: %s\n", level == INGOT_ERROR ? "error" : "note", message);
}

/* 0, or 99: its own tables are refused. */
static int speaks(const char *path)
{
    static const char text[] = "the cat's 2000 <|im_end|> \xff naps";
    char why[GGUF_VOCAB_WHY], token[64];
    int32_t ids[64];
    size_t bytes;
    igrt_vocab v;
    ingot_gguf *g = ingot_gguf_open(path, why, sizeof why);
    void *block = g ? gguf_vocabulary(g, &bytes, why) : NULL;
    const int good = !block || igrt_vocab_open(&v, block, bytes) == IGRT_OK;
    for (unsigned how = 0; block && good && how < 4; how++) {
        const size_t n = igrt_tokenize(&v, text, sizeof text - 1, how, ids, 64);
        for (size_t k = 0; k < n && k < 64; k++)
            igrt_token_text(&v, ids[k], how, token, sizeof token);
    }
    free(block);
    ingot_gguf_close(g);
    return good ? 0 : 99;
}

static int one(const char *path)
{
    ingot_context *c = ingot_context_new(sink, NULL);
    ingot_model *m = ingot_model_open(c, path);
    const ingot_model_options options = {.struct_size = sizeof options, .functions = true};
    const bool built = m && ingot_model_build(m, &options);
    int status = (int)ingot_context_status(c);
    if (built != (status == INGOT_OK))
        status = 98;
    ingot_context_free(c);
    ingot_model_close(m);
    return status ? status : speaks(path);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const int status = one(argv[i]);
        printf("= %d\n", status);
        fflush(stdout);
    }
    return 0;
}
