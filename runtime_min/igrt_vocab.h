/*
 * igrt_vocab.h - text to tokens and back, by a vocabulary that was made when the model was
 * compiled.
 *
 *     igrt_vocab v;
 *     status = igrt_vocab_open(&v, bytes, n);             the file <model>.vocab, 4-byte aligned
 *     n = igrt_tokenize(&v, text, strlen(text), 0, ids, room);
 *     n = igrt_token_text(&v, ids[i], 0, buffer, sizeof buffer);
 *
 * Any bytes go in, valid UTF-8 or not, and the texts of their tokens are these bytes again; but
 * some byte-level vocabularies have no token for bytes that valid text never has, which become
 * U+FFFD. What a user has typed becomes tokens of text alone: "<|im_end|>" is ten characters,
 * unless IGRT_TEXT_CONTROL is said. Nothing is allocated.
 *
 * The bytes are u32, little-endian: IGRT_VOCAB_WORDS of them as below, then the tables in the order
 * of igrt_vocab's members.
 */
#ifndef IGRT_VOCAB_H
#define IGRT_VOCAB_H

#include <stddef.h>
#include <stdint.h>

#include "igrt.h"

#ifdef __cplusplus
extern "C" {
#endif

#define IGRT_VOCAB_MAGIC UINT32_C(0x4f434f56) /* "VOCO" */
#define IGRT_NO_TOKEN UINT32_C(0xffffffff)

/* What the words at the beginning say. */
enum {
    IGRT_VOCAB_MAGIC_AT,
    IGRT_VOCAB_VERSION,  /* 2 */
    IGRT_VOCAB_KIND,     /* how pairs are joined: below */
    IGRT_VOCAB_RULE,     /* how text is cut into words */
    IGRT_VOCAB_TOKENS,   /* how many */
    IGRT_VOCAB_SLOTS,    /* of the table of texts, a power of two */
    IGRT_VOCAB_MERGES,   /* of the table of pairs */
    IGRT_VOCAB_SPECIALS, /* tokens that are no text, longest first */
    IGRT_VOCAB_POOL,     /* bytes of all texts */
    IGRT_VOCAB_FLAGS,
    IGRT_VOCAB_BEGIN, /* tokens, or IGRT_NO_TOKEN: before a text */
    IGRT_VOCAB_END,   /* after it, */
    IGRT_VOCAB_TURN,  /* and after a turn of a chat */
    IGRT_VOCAB_UNKNOWN,
    IGRT_VOCAB_CHAT, /* bytes of the texts of chats; 0: none */
    IGRT_VOCAB_ENDS, /* tokens that end an answer */
    IGRT_VOCAB_WORDS
};

/* Pairs by a list of merges (byte-level BPE; Sennrich et al., arXiv:1508.07909), or what is joined
 * is a token, by its score (SentencePiece; Kudo and Richardson, arXiv:1808.06226). */
enum { IGRT_VOCAB_BPE, IGRT_VOCAB_SPM };

/* Words: those of GPT-2; the same with each digit a word; those of Llama 3, with digits by three;
 * the same with each digit a word (Qwen 2); a word begins with spaces; capitals begin a word, and
 * each digit is one (Mistral NeMo); the same with digits by three (GPT-4o); Qwen 2's with marks as
 * letters (Qwen 3.5); Falcon's; those of DeepSeek Coder and DeepSeek LLM. */
enum {
    IGRT_WORDS_GPT2,
    IGRT_WORDS_GPT2_DIGITS,
    IGRT_WORDS_LLAMA3,
    IGRT_WORDS_QWEN2,
    IGRT_WORDS_SPACES,
    IGRT_WORDS_TEKKEN,
    IGRT_WORDS_GPT4O,
    IGRT_WORDS_QWEN35,
    IGRT_WORDS_FALCON,
    IGRT_WORDS_DEEPSEEK_CODER,
    IGRT_WORDS_DEEPSEEK_LLM
};

enum {
    IGRT_VOCAB_ADDS_BEGIN = 1,
    IGRT_VOCAB_ADDS_END = 2,
    IGRT_VOCAB_ADDS_SPACE = 4, /* before a text */
    IGRT_VOCAB_WHOLE = 8,      /* a word that is a token is that, whatever its merges */
    IGRT_VOCAB_TRIMS = 16      /* turns of chats have no white space around them */
};

/* Types of tokens, as GGUF numbers them. */
enum {
    IGRT_TOKEN_TEXT = 1,
    IGRT_TOKEN_UNKNOWN,
    IGRT_TOKEN_CONTROL,
    IGRT_TOKEN_ADDED, /* text that is this token wherever it stands */
    IGRT_TOKEN_UNUSED,
    IGRT_TOKEN_BYTE
};

/* A pair that is joined, the sooner the lower its rank. Free: left is IGRT_NO_TOKEN. */
typedef struct igrt_merge {
    uint32_t left, right, rank, made;
} igrt_merge;

/* Texts of chats (igrt_chat.h). */
typedef struct igrt_chat_form {
    const char *system[2]; /* before the first turn, around a system prompt */
    const char *user[2];   /* before the first turn, without one; behind each turn */
    const char *between;   /* behind an answer, up to the next turn */
} igrt_chat_form;

typedef struct igrt_vocab {
    const uint32_t *word;      /* the words at the beginning */
    const uint32_t *at;        /* [tokens + 1]: where a text begins in the pool */
    const uint32_t *slot;      /* [slots]: a token + 1; 0: free */
    const igrt_merge *merge;   /* [merges] */
    const float *score;        /* [tokens] */
    const uint32_t *byte;      /* [256]: the token that a byte is */
    const uint32_t *special;   /* [specials] */
    const uint32_t *ends;      /* [ends] */
    const unsigned char *type; /* [tokens] */
    const unsigned char *pool;
    igrt_chat_form form;
} igrt_vocab;

/* Whether an answer ends with this token. */
static inline int igrt_token_ends(const igrt_vocab *v, int32_t id)
{
    uint32_t i = 0;
    while (i < v->word[IGRT_VOCAB_ENDS] && v->ends[i] != (uint32_t)id)
        i++;
    return i < v->word[IGRT_VOCAB_ENDS];
}

/* Checks all of it; IGRT_ERR_CONFIG: it is no vocabulary, or cut off. */
igrt_status igrt_vocab_open(igrt_vocab *v, const void *data, size_t bytes);

enum {
    IGRT_TEXT_CONTROL = 1, /* texts of control tokens become them */
    IGRT_TEXT_WHOLE =
        2, /* a whole text: with the tokens before and after it that the model wants */
    IGRT_TEXT_GOES_ON = 4, /* more of a text: no space is put before it */
    IGRT_TEXT_BEGINS = 8   /* with the tokens before it that the model wants */
};

/* The tokens of len bytes: their number, of which no more than room are written. */
size_t igrt_tokenize(const igrt_vocab *v, const char *text, size_t len, unsigned how, int32_t *ids,
                     size_t room);
/* A text of which a user has typed parts, the bytes from[0]..to[0] and so on: in these, and across
 * their ends, no text becomes a control token. */
typedef struct igrt_typed {
    size_t from, to;
} igrt_typed;
size_t igrt_tokenize_typed(const igrt_vocab *v, const char *text, size_t len, unsigned how,
                           const igrt_typed *typed, size_t n, int32_t *ids, size_t room);
/* The bytes of a token, of which no more than room are written; control tokens have none unless
 * how is IGRT_TEXT_CONTROL. No zero is put behind them. */
size_t igrt_token_text(const igrt_vocab *v, int32_t id, unsigned how, char *out, size_t room);
/* The token whose text this is, control tokens too; -1: none is. */
int32_t igrt_token_find(const igrt_vocab *v, const char *text, size_t len);

/* Of tables of texts and of pairs: where a search begins, of which the slots' number masks. */
uint32_t igrt_hash_text(const unsigned char *p, size_t len);
uint32_t igrt_hash_pair(uint32_t left, uint32_t right);

#ifdef __cplusplus
}
#endif
#endif
