/*
 * gguf_vocab.h - the vocabulary of a GGUF file, as a bundle's text functions read it.
 */
#ifndef GGUF_VOCAB_H
#define GGUF_VOCAB_H

#include "base.h"
#include "gguf.h"
#include "importer.h"

enum { GGUF_VOCAB_WHY = 200, GGUF_CHAT_WHY = 160 };

/* The file <model>.vocab (runtime_min/igrt_vocab.h), malloc'd; NULL: why says what is not known.
 * Else why is empty, or says why there are no texts of chats. */
void *gguf_vocabulary(const ingot_gguf *, size_t *bytes, char why[GGUF_VOCAB_WHY]);

/* ---- gguf_chat.c: the texts of chats --------------------------------------------------------- */

/* Tokens that templates name, as text. */
typedef struct {
    const char *begin, *end;
    bool begins; /* the first one comes before any text by itself */
} GgufChatTokens;

/* As igrt_chat_form has them, in its order. */
typedef struct {
    const char *text[5];
    bool trims; /* white space around a message is left out */
    bool told;  /* before a first turn without a system prompt there is one of the template */
} GgufChat;

/* By a template; false: why says why not. */
bool gguf_chat(Arena *, ingot_gguf_bytes template_text, const GgufChatTokens *, GgufChat *,
               char why[GGUF_CHAT_WHY]);

#endif
