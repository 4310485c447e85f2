/*
 * gguf_vocab.c - the vocabulary of a file as the tables that igrt_vocab.c reads: a search by text,
 * one by pairs of tokens, and the texts themselves as bytes.
 *
 * Byte-level vocabularies write each byte as a character that can be seen (space as U+0120),
 * SentencePiece writes a space as U+2581; here they are what they stand for.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "gguf_vocab.h"
#include "igrt_vocab.h"

static const struct {
    const char *name;
    uint32_t rule, flags;
} word_rules[] = {
#define PRE(name, rule, flags) {name, rule, flags},
#include "gguf_words.def"
#undef PRE
};

/* Texts of tokens that end an answer, whatever keys a file has. */
static const char *const endings[] = {
    "</s>",          "<eos>",      "<EOT>",         "<|end|>",       "<|eot_id|>",
    "<|eom_id|>",    "<|im_end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>",
    "<|return|>",    "<|call|>",   "[EOS]",         "[EOT]",         "<|END_OF_TURN_TOKEN|>",
    "[|endofturn|]",
};

enum { MOST_TEXT = 4096, MOST_ENDS = 32, CHAT_TEXTS = 5 };

typedef struct {
    const ingot_gguf *file;
    const ingot_gguf_value *tokens;
    uint32_t word[IGRT_VOCAB_WORDS];
    uint32_t n;
    uint32_t *at, *slot, *special, byte[256];
    uint32_t *literal; /* as slot, by the texts as the file has them */
    igrt_merge *merge;
    float *score;
    unsigned char *type, *pool;
    uint32_t ends[MOST_ENDS];
    char *chat;
    uint8_t byte_of[512]; /* of a character of byte-level texts; */
    bool is_byte[512];    /* whether there is one */
    char *why;
} VocabMaker;

static bool fail(VocabMaker *m, const char *format, ...) IMPORT_PRINTF(2, 3);
static bool fail(VocabMaker *m, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(m->why, GGUF_VOCAB_WHY, format, args);
    va_end(args);
    return false;
}

static const ingot_gguf_value *key(const VocabMaker *m, const char *name)
{
    char full[96];
    snprintf(full, sizeof full, "tokenizer.ggml.%s", name);
    return ingot_gguf_key(m->file, full);
}

static bool bytes_are(ingot_gguf_bytes text, const char *what)
{
    return text.at && text.len == strlen(what) && !memcmp(text.at, what, text.len);
}

/* ---- search by text -------------------------------------------------------------------------- */

static uint32_t power_of_two(uint32_t least)
{
    uint32_t n = 1;
    while (n < least)
        n *= 2;
    return n;
}

static void put_slot(uint32_t *slot, uint32_t slots, uint32_t hash, uint32_t id)
{
    while (slot[hash & (slots - 1)])
        hash++;
    slot[hash & (slots - 1)] = id + 1;
}

/* The token that the file writes so. */
static uint32_t find_literal(const VocabMaker *m, const char *text, size_t len)
{
    const uint32_t mask = m->word[IGRT_VOCAB_SLOTS] - 1;
    for (uint32_t i = igrt_hash_text((const unsigned char *)text, len);; i++) {
        const uint32_t id = m->literal[i & mask];
        if (!id)
            return IGRT_NO_TOKEN;
        const ingot_gguf_bytes t = ingot_gguf_text(m->tokens, id - 1);
        if (t.len == len && !memcmp(t.at, text, len))
            return id - 1;
    }
}

/* ---- texts as bytes -------------------------------------------------------------------------- */

/* GPT-2's: printable bytes are themselves, the others are counted on from U+0100. */
static void map_bytes(VocabMaker *m)
{
    int next = 256;
    for (int b = 0; b < 256; b++) {
        const bool seen = (b >= 33 && b < 127) || (b >= 161 && b < 173) || b >= 174;
        const int c = seen ? b : next++;
        m->byte_of[c] = (uint8_t)b;
        m->is_byte[c] = true;
    }
}

/* A byte-level text, to out; its bytes, or -1: it is none. */
static int64_t decoded(const VocabMaker *m, ingot_gguf_bytes t, unsigned char *out)
{
    int64_t n = 0;
    for (size_t i = 0; i < t.len; n++) {
        const unsigned char a = (unsigned char)t.at[i];
        unsigned c = a;
        if (a >= 0x80) {
            if (a < 0xc2 || a > 0xc7 || i + 1 == t.len)
                return -1;
            c = (a & 0x1fu) << 6 | ((unsigned char)t.at[i + 1] & 0x3fu);
        }
        if (!m->is_byte[c])
            return -1;
        out[n] = m->byte_of[c];
        i += a >= 0x80 ? 2 : 1;
    }
    return n;
}

static const char shown_space[] = "\xe2\x96\x81";

static size_t with_spaces(ingot_gguf_bytes t, unsigned char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < t.len;) {
        if (t.len - i >= 3 && !memcmp(t.at + i, shown_space, 3)) {
            out[n++] = ' ';
            i += 3;
        } else {
            out[n++] = (unsigned char)t.at[i++];
        }
    }
    return n;
}

/* <0x0A> */
static bool byte_text(ingot_gguf_bytes t, unsigned char *out)
{
    char text[8] = "", *end;
    if (t.len != 6 || memcmp(t.at, "<0x", 3) || t.at[5] != '>')
        return false;
    memcpy(text, t.at + 3, 2);
    *out = (unsigned char)strtoul(text, &end, 16);
    return end == text + 2;
}

/* The bytes of token id, to out. */
static size_t token_bytes(VocabMaker *m, uint32_t id, unsigned char *out)
{
    const ingot_gguf_bytes t = ingot_gguf_text(m->tokens, id);
    int64_t n = -1;
    if (m->type[id] == IGRT_TOKEN_BYTE && byte_text(t, out))
        return 1;
    if (m->type[id] == IGRT_TOKEN_TEXT && m->word[IGRT_VOCAB_KIND] == IGRT_VOCAB_BPE)
        n = decoded(m, t, out);
    else if (m->word[IGRT_VOCAB_KIND] == IGRT_VOCAB_SPM && m->type[id] != IGRT_TOKEN_CONTROL)
        return with_spaces(t, out);
    if (n < 0) {
        memcpy(out, t.at, t.len);
        n = (int64_t)t.len;
    }
    return (size_t)n;
}

static bool is_searched(unsigned char type)
{
    return type == IGRT_TOKEN_TEXT || type == IGRT_TOKEN_ADDED;
}

static void put_texts(VocabMaker *m)
{
    uint32_t pool = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        m->at[i] = pool;
        unsigned char *text = m->pool + pool;
        const size_t len = token_bytes(m, i, text);
        pool += (uint32_t)len;
        if (is_searched(m->type[i]))
            put_slot(m->slot, m->word[IGRT_VOCAB_SLOTS], igrt_hash_text(text, len), i);
        const bool byte = m->word[IGRT_VOCAB_KIND] == IGRT_VOCAB_BPE
                              ? m->type[i] == IGRT_TOKEN_TEXT
                              : m->type[i] == IGRT_TOKEN_BYTE;
        if (byte && len == 1 && m->byte[*text] == IGRT_NO_TOKEN)
            m->byte[*text] = i;
    }
    m->at[m->n] = m->word[IGRT_VOCAB_POOL] = pool;
}

/* ---- tokens that stand for themselves -------------------------------------------------------- */

static const uint32_t *sorted_at; /* qsort has no argument for its function */

static int longer_first(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const uint32_t m = sorted_at[x + 1] - sorted_at[x], n = sorted_at[y + 1] - sorted_at[y];
    return m != n ? (m > n ? -1 : 1) : x < y ? -1 : 1;
}

static void put_specials(VocabMaker *m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        const ingot_gguf_bytes t = ingot_gguf_text(m->tokens, i);
        const bool spaces = m->at[i + 1] - m->at[i] != t.len; /* no text that is typed has these */
        if ((m->type[i] == IGRT_TOKEN_CONTROL || m->type[i] == IGRT_TOKEN_ADDED ||
             m->type[i] == IGRT_TOKEN_UNKNOWN) &&
            t.len && !spaces)
            m->special[n++] = i;
    }
    m->word[IGRT_VOCAB_SPECIALS] = n;
    sorted_at = m->at;
    if (n)
        qsort(m->special, n, sizeof *m->special, longer_first);
}

/* ---- pairs ----------------------------------------------------------------------------------- */

static bool put_merges(VocabMaker *m, const ingot_gguf_value *merges)
{
    char both[MOST_TEXT];
    for (size_t i = 0; i < merges->count; i++) {
        const ingot_gguf_bytes t = ingot_gguf_text(merges, i);
        const char *space = t.len ? memchr(t.at + 1, ' ', t.len - 1) : NULL;
        if (t.len > sizeof both)
            continue;
        if (!space)
            return fail(m, "merge %zu of its tokenizer is no pair of texts", i);
        const size_t first = (size_t)(space - t.at), second = t.len - first - 1;
        memcpy(both, t.at, first);
        memcpy(both + first, space + 1, second);
        const uint32_t left = find_literal(m, both, first),
                       right = find_literal(m, both + first, second),
                       made = find_literal(m, both, t.len - 1);
        if (left == IGRT_NO_TOKEN || right == IGRT_NO_TOKEN || made == IGRT_NO_TOKEN)
            continue; /* of texts that are no tokens nothing comes */
        uint32_t at = igrt_hash_pair(left, right), mask = m->word[IGRT_VOCAB_MERGES] - 1;
        while (m->merge[at & mask].left != IGRT_NO_TOKEN &&
               (m->merge[at & mask].left != left || m->merge[at & mask].right != right))
            at++;
        if (m->merge[at & mask].left == IGRT_NO_TOKEN)
            m->merge[at & mask] = (igrt_merge){left, right, (uint32_t)i, made};
    }
    return true;
}

/* ---- what keys say --------------------------------------------------------------------------- */

static uint32_t token_key(const VocabMaker *m, const char *name)
{
    const ingot_gguf_value *v = key(m, name);
    int64_t id;
    return v && ingot_gguf_integer(v, 0, &id) && id >= 0 && id < m->n ? (uint32_t)id
                                                                      : IGRT_NO_TOKEN;
}

static void flag_key(VocabMaker *m, const char *name, uint32_t flag)
{
    const ingot_gguf_value *v = key(m, name);
    int64_t on;
    if (v && ingot_gguf_integer(v, 0, &on))
        m->word[IGRT_VOCAB_FLAGS] = (m->word[IGRT_VOCAB_FLAGS] & ~flag) | (on ? flag : 0);
}

static bool is_special(const VocabMaker *m, uint32_t id)
{
    return m->type[id] == IGRT_TOKEN_CONTROL || m->type[id] == IGRT_TOKEN_ADDED;
}

static void put_end(VocabMaker *m, uint32_t id)
{
    uint32_t *n = &m->word[IGRT_VOCAB_ENDS];
    for (uint32_t i = 0; i < *n; i++)
        if (m->ends[i] == id)
            return;
    if (id != IGRT_NO_TOKEN && *n < MOST_ENDS)
        m->ends[(*n)++] = id;
}

/* The longest token that stands for itself at the beginning of what comes behind an answer. */
static uint32_t end_in(const VocabMaker *m, const char *text)
{
    text += strspn(text, " \n");
    for (uint32_t i = 0; i < m->word[IGRT_VOCAB_SPECIALS]; i++) {
        const ingot_gguf_bytes t = ingot_gguf_text(m->tokens, m->special[i]);
        if (is_special(m, m->special[i]) && t.len && !strncmp(text, t.at, t.len))
            return m->special[i];
    }
    return IGRT_NO_TOKEN;
}

static const char *token_literal(const VocabMaker *m, Arena *a, int word)
{
    const uint32_t id = m->word[word];
    const ingot_gguf_bytes t = ingot_gguf_text(m->tokens, id == IGRT_NO_TOKEN ? 0 : id);
    return id == IGRT_NO_TOKEN ? "" : arena_printf(a, "%.*s", (int)t.len, t.at ? t.at : "");
}

/* The beginning of a turn: what stands behind the end of a system prompt's. NULL: that is not
 * known. */
static const char *turn_begin(const VocabMaker *m, Arena *a, const char *behind, const char *before,
                              const char *begin)
{
    const uint32_t end = end_in(m, behind);
    if (end == IGRT_NO_TOKEN)
        return NULL;
    behind += strspn(behind, " \n") + ingot_gguf_text(m->tokens, end).len;
    behind += strspn(behind, " \n");
    return arena_printf(a, "%s%s", strncmp(before, begin, strlen(begin)) ? "" : begin, behind);
}

/* The texts around turns, each with a zero behind it. */
static bool read_chat(VocabMaker *m, Arena *a, ingot_gguf_bytes text)
{
    GgufChat chat = {.trims = false};
    const GgufChatTokens tokens = {token_literal(m, a, IGRT_VOCAB_BEGIN),
                                   token_literal(m, a, IGRT_VOCAB_END),
                                   m->word[IGRT_VOCAB_FLAGS] & IGRT_VOCAB_ADDS_BEGIN};
    char *p, why[GGUF_CHAT_WHY];
    size_t bytes = 0;
    if (!gguf_chat(a, text, &tokens, &chat, why))
        return fail(m, "%s", why);
    if (chat.told) { /* who says no system prompt gets none */
        const char *turn = turn_begin(m, a, chat.text[1], chat.text[2], tokens.begin);
        chat.text[2] = turn ? turn : chat.text[2];
    }
    for (int i = 0; i < CHAT_TEXTS; i++)
        bytes += strlen(chat.text[i]) + 1;
    p = m->chat = malloc(bytes);
    if (!p)
        return fail(m, "out of memory");
    for (int i = 0; i < CHAT_TEXTS; i++) {
        const size_t n = strlen(chat.text[i]) + 1;
        memcpy(p, chat.text[i], n);
        p += n;
    }
    m->word[IGRT_VOCAB_CHAT] = (uint32_t)bytes;
    m->word[IGRT_VOCAB_FLAGS] |= chat.trims ? IGRT_VOCAB_TRIMS : 0;
    const uint32_t end = end_in(m, chat.text[4]);
    put_end(m, end);
    if (m->word[IGRT_VOCAB_TURN] == IGRT_NO_TOKEN)
        m->word[IGRT_VOCAB_TURN] = end;
    return true;
}

static void read_ends(VocabMaker *m)
{
    put_end(m, m->word[IGRT_VOCAB_END]);
    put_end(m, m->word[IGRT_VOCAB_TURN]);
    put_end(m, token_key(m, "eom_token_id"));
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const uint32_t id = find_literal(m, endings[i], strlen(endings[i]));
        if (id != IGRT_NO_TOKEN && is_special(m, id))
            put_end(m, id);
    }
}

/* Bytes of a name that a message tells. */
static int shown(ingot_gguf_bytes name)
{
    return name.len < 64 ? (int)name.len : 64;
}

static bool read_rule(VocabMaker *m)
{
    const ingot_gguf_bytes model = ingot_gguf_text(key(m, "model"), 0),
                           pre = ingot_gguf_text(key(m, "pre"), 0);
    m->word[IGRT_VOCAB_MAGIC_AT] = IGRT_VOCAB_MAGIC;
    m->word[IGRT_VOCAB_VERSION] = 2;
    if (bytes_are(model, "llama")) {
        m->word[IGRT_VOCAB_KIND] = IGRT_VOCAB_SPM;
        m->word[IGRT_VOCAB_RULE] = IGRT_WORDS_SPACES;
        m->word[IGRT_VOCAB_FLAGS] = IGRT_VOCAB_ADDS_BEGIN | IGRT_VOCAB_ADDS_SPACE;
        return true;
    }
    if (!bytes_are(model, "gpt2"))
        return fail(m, "tokenizers of kind '%.*s' are not supported", shown(model),
                    model.at ? model.at : "");
    for (size_t i = 0; i < sizeof word_rules / sizeof *word_rules; i++)
        if (bytes_are(pre, word_rules[i].name)) {
            m->word[IGRT_VOCAB_KIND] = IGRT_VOCAB_BPE;
            m->word[IGRT_VOCAB_RULE] = word_rules[i].rule;
            m->word[IGRT_VOCAB_FLAGS] = word_rules[i].flags;
            return true;
        }
    return fail(m, "tokenizers that cut words as '%.*s' does are not supported", shown(pre),
                pre.at ? pre.at : "");
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool make_room(VocabMaker *m, size_t merges)
{
    size_t pool = 1;
    for (uint32_t i = 0; i < m->n; i++)
        pool += ingot_gguf_text(m->tokens, i).len;
    if (pool > UINT32_MAX / 2 || merges > UINT32_MAX / 4)
        return fail(m, "its tokenizer is too large");
    const uint32_t slots = m->word[IGRT_VOCAB_SLOTS] = power_of_two(2 * m->n),
                   pairs = m->word[IGRT_VOCAB_MERGES] =
                       power_of_two((uint32_t)(merges * 3 / 2 + 1));
    m->at = calloc(m->n + 1, sizeof *m->at);
    m->slot = calloc(slots, sizeof *m->slot);
    m->literal = calloc(slots, sizeof *m->literal);
    m->merge = malloc(pairs * sizeof *m->merge);
    m->score = calloc(m->n, sizeof *m->score);
    m->special = calloc(m->n, sizeof *m->special);
    m->type = malloc(m->n);
    m->pool = malloc(pool);
    if (!m->at || !m->slot || !m->literal || !m->merge || !m->score || !m->special || !m->type ||
        !m->pool)
        return fail(m, "out of memory");
    memset(m->merge, 0xff, pairs * sizeof *m->merge);
    memset(m->byte, 0xff, sizeof m->byte);
    memset(m->type, IGRT_TOKEN_TEXT, m->n);
    return true;
}

static void read_tokens(VocabMaker *m)
{
    const ingot_gguf_value *types = key(m, "token_type"), *scores = key(m, "scores");
    for (uint32_t i = 0; i < m->n; i++) {
        const ingot_gguf_bytes t = ingot_gguf_text(m->tokens, i);
        int64_t type;
        double score;
        if (types && ingot_gguf_integer(types, i, &type) && type > 0 && type <= IGRT_TOKEN_BYTE)
            m->type[i] = (unsigned char)type;
        if (scores && ingot_gguf_number(scores, i, &score))
            m->score[i] = (float)score;
        put_slot(m->literal, m->word[IGRT_VOCAB_SLOTS],
                 igrt_hash_text((const unsigned char *)t.at, t.len), i);
    }
}

static bool make(VocabMaker *m)
{
    const ingot_gguf_value *merges = key(m, "merges");
    m->tokens = key(m, "tokens");
    if (!m->tokens || !m->tokens->texts || !m->tokens->count || m->tokens->count > 1 << 24)
        return fail(m, "it has no list of tokens");
    m->n = m->word[IGRT_VOCAB_TOKENS] = (uint32_t)m->tokens->count;
    if (!read_rule(m))
        return false;
    const bool pairs = m->word[IGRT_VOCAB_KIND] == IGRT_VOCAB_BPE;
    if (pairs && (!merges || !merges->texts))
        return fail(m, "its tokenizer has no merges");
    if (!make_room(m, pairs ? merges->count : 0))
        return false;
    map_bytes(m);
    read_tokens(m);
    put_texts(m);
    put_specials(m);
    if (pairs && !put_merges(m, merges))
        return false;
    m->word[IGRT_VOCAB_BEGIN] = token_key(m, "bos_token_id");
    m->word[IGRT_VOCAB_END] = token_key(m, "eos_token_id");
    m->word[IGRT_VOCAB_TURN] = token_key(m, "eot_token_id");
    m->word[IGRT_VOCAB_UNKNOWN] = token_key(m, "unknown_token_id");
    flag_key(m, "add_bos_token", IGRT_VOCAB_ADDS_BEGIN);
    flag_key(m, "add_eos_token", IGRT_VOCAB_ADDS_END);
    flag_key(m, "add_space_prefix", IGRT_VOCAB_ADDS_SPACE);
    read_ends(m);
    const ingot_gguf_bytes chat =
        ingot_gguf_text(ingot_gguf_key(m->file, "tokenizer.chat_template"), 0);
    *m->why = 0;
    if (chat.len) {
        Arena *a = arena_new();
        read_chat(m, a, chat); /* without one chats go on with the text */
        arena_free(a);
    }
    return true;
}

static void put_table(unsigned char **p, const void *data, size_t bytes)
{
    if (bytes)
        memcpy(*p, data, bytes);
    *p += bytes;
}

/* One block of all tables, in the order of igrt_vocab. */
static void *joined_tables(VocabMaker *m, size_t *bytes)
{
    const uint32_t *w = m->word;
    const size_t slots = w[IGRT_VOCAB_SLOTS] * sizeof *m->slot,
                 merges = w[IGRT_VOCAB_MERGES] * sizeof *m->merge,
                 specials = w[IGRT_VOCAB_SPECIALS] * sizeof *m->special,
                 ends = w[IGRT_VOCAB_ENDS] * sizeof *m->ends;
    *bytes = sizeof m->word + (m->n + 1) * sizeof *m->at + slots + merges +
             m->n * sizeof *m->score + sizeof m->byte + specials + ends + m->n +
             w[IGRT_VOCAB_POOL] + w[IGRT_VOCAB_CHAT];
    unsigned char *block = malloc(*bytes), *p = block;
    if (!block)
        return NULL;
    put_table(&p, m->word, sizeof m->word);
    put_table(&p, m->at, (m->n + 1) * sizeof *m->at);
    put_table(&p, m->slot, slots);
    put_table(&p, m->merge, merges);
    put_table(&p, m->score, m->n * sizeof *m->score);
    put_table(&p, m->byte, sizeof m->byte);
    put_table(&p, m->special, specials);
    put_table(&p, m->ends, ends);
    put_table(&p, m->type, m->n);
    put_table(&p, m->pool, w[IGRT_VOCAB_POOL]);
    put_table(&p, m->chat, w[IGRT_VOCAB_CHAT]);
    return block;
}

void *gguf_vocabulary(const ingot_gguf *file, size_t *bytes, char why[GGUF_VOCAB_WHY])
{
    VocabMaker *m = calloc(1, sizeof *m);
    void *block = NULL;
    snprintf(why, GGUF_VOCAB_WHY, "out of memory");
    if (!m)
        return NULL;
    m->file = file;
    m->why = why;
    if (make(m))
        block = joined_tables(m, bytes);
    void *parts[] = {m->at,      m->slot, m->literal, m->merge, m->score,
                     m->special, m->type, m->pool,    m->chat,  m};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        free(parts[i]);
    return block;
}
