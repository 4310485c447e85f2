/*
 * gguf_vocab.h - the vocabulary of a GGUF file, as a bundle's text functions read it.
 */
#ifndef GGUF_VOCAB_H
#define GGUF_VOCAB_H

#include "gguf.h"
#include "importer.h"

enum { GGUF_VOCAB_WHY = 200 };

/* Forms of chats, known by their templates' texts (IGRT_VOCAB_CHAT). */
typedef enum {
    CHAT_NONE,
    CHAT_CHATML,
    CHAT_LLAMA3,
    CHAT_GEMMA,
    CHAT_PHI3,
    CHAT_MISTRAL,
    CHAT_GRANITE
} VocabChat;

/* The file <model>.vocab (runtime_min/igrt_vocab.h), malloc'd; NULL: why says what is not known. */
void *gguf_vocabulary(const ingot_gguf *, size_t *bytes, char why[GGUF_VOCAB_WHY]);
/* The form of its chats. */
VocabChat gguf_vocabulary_chat(const void *block);

#endif
