/*
 * chat_texts.c - a chat template, applied to a conversation.
 *
 *     chat_texts TEMPLATE BOS EOS [ROLE CONTENT]..      the text, or (status 3) why there is none
 *     chat_texts TEMPLATE BOS EOS form                  the texts around turns, each with a zero
 * behind it
 */
#include "gguf_vocab.h"
#include "jinja.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    JinjaMessage message[16];
    JinjaChat chat = {.messages = message, .dated = true};
    char why[160], text[1 << 17];
    FILE *f = argc > 4 ? fopen(argv[1], "rb") : NULL;
    if (!f)
        return 2;
    const size_t len = fread(text, 1, sizeof text, f);
    fclose(f);
    chat.bos = argv[2];
    chat.eos = argv[3];
    for (int i = 4; i + 1 < argc && chat.n < 16; i += 2)
        message[chat.n++] = (JinjaMessage){argv[i], argv[i + 1]};
    Arena *a = arena_new();
    if (argc == 5) {
        const GgufChatTokens tokens = {chat.bos, chat.eos, true};
        GgufChat form = {.trims = false};
        const bool good = gguf_chat(a, (ingot_gguf_bytes){text, len}, &tokens, &form, why);
        for (int i = 0; i < 5 && good; i++)
            fwrite(form.text[i], 1, strlen(form.text[i]) + 1, stdout);
        fputs(good ? form.trims ? "trims" : "" : why, stdout);
        arena_free(a);
        return good ? 0 : 3;
    }
    const char *out = jinja_chat(a, text, len, &chat, why);
    fputs(out ? out : why, stdout);
    arena_free(a);
    return out ? 0 : 3;
}
