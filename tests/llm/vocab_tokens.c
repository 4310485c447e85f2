/*
 * vocab_tokens.c - the tokens of texts, by the vocabulary of a GGUF file.
 *
 *     vocab_tokens FILE.gguf FLAGS <TEXTS      of each text (u32 length, bytes) a line of ids
 *     vocab_tokens FILE.gguf mutate N          N mutations of the tables: refused, or harmless
 *
 * Status 3: the tokens of a text are not its bytes, of which those without a token become U+FFFD;
 * or one of them is a control token.
 */
#include "gguf_vocab.h"
#include "igrt_vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int32_t *ids;
static char *back;

static uint32_t drawn(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525 + 1013904223;
    return (*seed >> 8) % below;
}

/* The text as its tokens give it back: what no token stands for is U+FFFD. Its bytes. */
static size_t mended(const igrt_vocab *v, const char *text, size_t len, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        const int known = v->word[IGRT_VOCAB_KIND] != IGRT_VOCAB_BPE ||
                          v->byte[(unsigned char)text[i]] != IGRT_NO_TOKEN;
        memcpy(out + n, known ? text + i : "\xef\xbf\xbd", known ? 1 : 3);
        n += known ? 1 : 3;
    }
    return n;
}

/* Whether the texts of the tokens are that text, but for a space that was put before it; and none
 * of them is a control token. */
static int comes_back(const igrt_vocab *v, size_t n, const char *text, size_t len, unsigned how)
{
    size_t m = 0;
    char *want = malloc(3 * len + 1);
    const size_t bytes = mended(v, text, len, want);
    int good = 1;
    for (size_t i = 0; i < n; i++) {
        m += igrt_token_text(v, ids[i], how, back + m, 4096);
        good &= (how & IGRT_TEXT_CONTROL) || v->type[ids[i]] != IGRT_TOKEN_CONTROL;
    }
    const size_t space = m == bytes + 1 && back[0] == ' ';
    good &= m - space == bytes && !memcmp(back + space, want, bytes);
    free(want);
    return good;
}

static int texts(const igrt_vocab *v, unsigned how)
{
    unsigned char head[4];
    while (fread(head, 1, 4, stdin) == 4) {
        const size_t len =
            head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
        char *text = malloc(len + 1); /* of its exact size */
        ids = malloc((3 * len + 8) * sizeof *ids);
        back = malloc(3 * len + 8192);
        if (fread(text, 1, len, stdin) != len)
            return 2;
        const size_t n = igrt_tokenize(v, text, len, how, ids, 3 * len + 8);
        for (size_t i = 0; i < n; i++)
            printf("%d ", ids[i]);
        putchar('\n');
        if (!(how & IGRT_TEXT_WHOLE) && !comes_back(v, n, text, len, how))
            return 3;
        free(text);
        free(ids);
        free(back);
    }
    return 0;
}

static int mutations(const unsigned char *block, size_t bytes, int count)
{
    static const char text[] = "the cat's 2000 <|im_end|> \xff naps";
    uint32_t seed = 1;
    int taken = 0;
    int32_t some[64];
    char token[256];
    for (int i = 0; i < count; i++) {
        const size_t len = drawn(&seed, 8) ? bytes : drawn(&seed, (uint32_t)bytes);
        unsigned char *exact = malloc(len + 1);
        igrt_vocab v;
        memcpy(exact, block, len);
        for (uint32_t k = drawn(&seed, 4); k-- > 0 && len;)
            exact[drawn(&seed, (uint32_t)len)] = (unsigned char)drawn(&seed, 256);
        if (igrt_vocab_open(&v, exact, len) == IGRT_OK) {
            const size_t n = igrt_tokenize(&v, text, sizeof text - 1, 1, some, 64);
            for (size_t k = 0; k < n && k < 64; k++)
                igrt_token_text(&v, some[k], 1, token, sizeof token);
            taken++;
        }
        free(exact);
    }
    printf("%d of %d taken\n", taken, count);
    return 0;
}

int main(int argc, char **argv)
{
    char why[GGUF_VOCAB_WHY];
    size_t bytes;
    igrt_vocab v;
    if (argc < 3)
        return 2;
    ingot_gguf *g = ingot_gguf_open(argv[1], why, sizeof why);
    void *block = g ? gguf_vocabulary(g, &bytes, why) : NULL;
    int status = 4;
    if (!block)
        fprintf(stderr, "%s\n", why);
    else if (igrt_vocab_open(&v, block, bytes) != IGRT_OK)
        fprintf(stderr, "its tables are not sound\n");
    else if (!strcmp(argv[2], "mutate"))
        status = mutations(block, bytes, atoi(argv[3]));
    else
        status = texts(&v, (unsigned)atoi(argv[2]));
    free(block);
    ingot_gguf_close(g);
    return status;
}
