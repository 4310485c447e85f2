/*
 * igrt_vocab.c - text to tokens and back.
 *
 *     text -> (tokens that stand for themselves) and pieces between -> words -> symbols, joined
 *
 * A word begins as its bytes (or characters), and of all neighbours the best pair is joined until
 * there is none. Words of more than MOST_SYMBOLS are cut: a run of so many letters is no word.
 */
#include "igrt_vocab.h"

#include <math.h>
#include <string.h>

#include "igrt_letters.h"

enum { MOST_SYMBOLS = 1024 };

/* ---- characters ------------------------------------------------------------------------------ */

typedef struct TextRange {
    uint32_t first, last;
} TextRange;

#define TEXT_RANGE(first, last) {first, last},
static const TextRange letters[] = {IGRT_LETTERS(TEXT_RANGE)};
static const TextRange digits[] = {IGRT_DIGITS(TEXT_RANGE)};
static const TextRange marks[] = {IGRT_MARKS(TEXT_RANGE)};
static const TextRange points[] = {IGRT_PUNCTUATION(TEXT_RANGE)};
static const TextRange cased[] = {IGRT_CASED(TEXT_RANGE)};

/* Kinds of characters; a set of them is their sum. */
enum { NOTHING = 0, LETTER = 1, DIGIT = 2, SPACE = 4, MARK = 8, POINT = 16, SYMBOL = 32 };
enum { OTHER = MARK | POINT | SYMBOL };

typedef struct NextChar {
    unsigned kind;
    unsigned char byte; /* of ASCII; else 0 */
    unsigned len;
    uint32_t code;
} NextChar;

#define IS_IN(ranges, c) in_ranges(ranges, sizeof(ranges) / sizeof *(ranges), c)

static int in_ranges(const TextRange *r, size_t n, uint32_t c)
{
    size_t low = 0, high = n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (c > r[mid].last)
            low = mid + 1;
        else
            high = mid;
    }
    return low < n && c >= r[low].first;
}

static unsigned kind_of(uint32_t c)
{
    if (c == ' ' || (c >= 9 && c <= 13) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
        (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
        c == 0x3000)
        return SPACE;
    return IS_IN(letters, c)  ? LETTER
           : IS_IN(digits, c) ? DIGIT
           : IS_IN(marks, c)  ? MARK
           : IS_IN(points, c) ? POINT
                              : SYMBOL;
}

/* Bytes of a character; a malformed one is a byte, and its code none. */
static unsigned decode(const unsigned char *p, const unsigned char *end, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned n = *p < 0x80 ? 1 : *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : *p >= 0xc0 ? 2 : 0;
    uint32_t c = n == 1 ? *p : *p & (0xffu >> (n + 1));
    int good = n != 0 && *p < 0xf8 && (size_t)(end - p) >= n;
    for (unsigned i = 1; good && i < n; i++) {
        good = (p[i] & 0xc0) == 0x80;
        c = c << 6 | (p[i] & 0x3fu);
    }
    good = good && c >= least[n] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
    *code = good ? c : 0xfffd;
    return good ? n : 1;
}

static NextChar next_char(const unsigned char *p, const unsigned char *end)
{
    NextChar x = {NOTHING, 0, 0, 0};
    if (p >= end)
        return x;
    x.len = decode(p, end, &x.code);
    x.kind = kind_of(x.code);
    x.byte = x.code < 0x80 ? (unsigned char)x.code : 0;
    return x;
}

static const unsigned char *skip_kinds(const unsigned char *p, const unsigned char *end,
                                       unsigned kinds, unsigned most)
{
    for (NextChar x = next_char(p, end); most-- > 0 && (x.kind & kinds); x = next_char(p, end))
        p += x.len;
    return p;
}

/* ---- words -----------------------------------------------------------------------------------
 *
 * A rule is one expression or a few, one after the other: what one of them finds is cut out, and
 * the next one looks into all pieces that there are then. Below is a function for each expression:
 * the end of what it finds at p, or p. */

enum { ALL = -1 };

/* 's 't 're 've 'm 'll 'd; any_case: of either case. The bytes of one at p, or 0. */
static size_t contraction(const unsigned char *p, const unsigned char *end, int any_case)
{
    const unsigned lower = any_case ? 0x20 : 0;
    if (end - p < 2 || *p != '\'')
        return 0;
    const unsigned char a = (unsigned char)(p[1] | lower);
    const unsigned char b = end - p > 2 ? (unsigned char)(p[2] | lower) : 0;
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return 2;
    return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

/* Spaces from p on; where something that is no space follows, all but the last, which is that
 * one's. */
static const unsigned char *space_word(const unsigned char *p, const unsigned char *end)
{
    const unsigned char *last = p;
    NextChar x = next_char(p, end);
    for (; x.kind == SPACE; x = next_char(p, end)) {
        last = p;
        p += x.len;
    }
    return x.kind == NOTHING || last == p ? p : last;
}

/* '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
static const unsigned char *word_gpt2(const unsigned char *p, const unsigned char *end)
{
    const size_t n = contraction(p, end, 0);
    if (n)
        return p + n;
    const unsigned char *begin = p;
    NextChar x = next_char(p, end);
    if (x.byte == ' ' && (next_char(p + 1, end).kind & (LETTER | DIGIT | OTHER)))
        x = next_char(++p, end);
    if (x.kind != SPACE)
        return skip_kinds(p, end, x.kind & OTHER ? OTHER : x.kind, (unsigned)ALL);
    const unsigned char *stop = space_word(begin, end);
    return stop > begin ? stop : begin + x.len;
}

/* Spaces up to the last line break among them; NULL: there is none. */
static const unsigned char *line_breaks(const unsigned char *p, const unsigned char *end)
{
    const unsigned char *stop = NULL;
    for (NextChar x = next_char(p, end); x.kind == SPACE; x = next_char(p, end)) {
        p += x.len;
        if (x.byte == '\r' || x.byte == '\n')
            stop = p;
    }
    return stop;
}

/* Letters from p on: capitals, then others; a letter that is not of ASCII is either. Where no other
 * one follows capitals, all but those behind the last letter that may be one. */
static const unsigned char *cased_letters(const unsigned char *p, const unsigned char *end)
{
    const unsigned char *other = NULL;
    NextChar x = next_char(p, end);
    for (; x.kind == LETTER && !(x.byte >= 'a' && x.byte <= 'z'); x = next_char(p, end)) {
        p += x.len;
        if (!x.byte)
            other = p;
    }
    if (x.kind != LETTER)
        return other ? other : p;
    for (; x.kind == LETTER && !(x.byte >= 'A' && x.byte <= 'Z'); x = next_char(p, end))
        p += x.len;
    return p;
}

/* '(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|
 * \s+(?!\S)|\s+
 * letters: what \p{L} is. */
static const unsigned char *word_of_letters(const unsigned char *p, const unsigned char *end,
                                            unsigned letters_are, unsigned most_digits,
                                            int has_cases)
{
    const unsigned other = OTHER & ~letters_are;
    const size_t n = has_cases ? 0 : contraction(p, end, 1);
    if (n)
        return p + n;
    NextChar x = next_char(p, end);
    const NextChar after = next_char(p + x.len, end);
    const int breaks = x.byte == '\r' || x.byte == '\n', is_letter = (x.kind & letters_are) != 0;
    const int begins = x.kind != DIGIT && !is_letter && !breaks && (after.kind & letters_are) != 0;
    if (has_cases && (begins || is_letter)) {
        p = cased_letters(begins ? p + x.len : p, end);
        return most_digits > 1 ? p + contraction(p, end, 1) : p; /* of GPT-4o's */
    }
    if (begins || is_letter)
        return skip_kinds(p + x.len, end, letters_are, (unsigned)ALL);
    if (x.kind == DIGIT)
        return skip_kinds(p, end, DIGIT, most_digits);
    if ((x.kind & other) || (x.byte == ' ' && (after.kind & other))) {
        p = skip_kinds(x.kind & other ? p : p + 1, end, other, (unsigned)ALL);
        while (p < end && (*p == '\r' || *p == '\n' || (has_cases && *p == '/')))
            p++;
        return p;
    }
    const unsigned char *stop = line_breaks(p, end);
    if (!stop)
        stop = space_word(p, end);
    return stop > p ? stop : p + x.len;
}

static const unsigned char *word_llama3(const unsigned char *p, const unsigned char *end)
{
    return word_of_letters(p, end, LETTER, 3, 0);
}

static const unsigned char *word_qwen2(const unsigned char *p, const unsigned char *end)
{
    return word_of_letters(p, end, LETTER, 1, 0);
}

static const unsigned char *word_qwen35(const unsigned char *p, const unsigned char *end)
{
    return word_of_letters(p, end, LETTER | MARK, 1, 0);
}

static const unsigned char *word_gpt4o(const unsigned char *p, const unsigned char *end)
{
    return word_of_letters(p, end, LETTER, 3, 1);
}

static const unsigned char *word_tekken(const unsigned char *p, const unsigned char *end)
{
    return word_of_letters(p, end, LETTER, 1, 1);
}

static const unsigned char *one_digit(const unsigned char *p, const unsigned char *end)
{
    return skip_kinds(p, end, DIGIT, 1);
}

static const unsigned char *all_digits(const unsigned char *p, const unsigned char *end)
{
    return skip_kinds(p, end, DIGIT, (unsigned)ALL);
}

/* [0-9][0-9][0-9] */
static const unsigned char *three_digits(const unsigned char *p, const unsigned char *end)
{
    int n = 0;
    while (n < 3 && end - p > n && p[n] >= '0' && p[n] <= '9')
        n++;
    return n == 3 ? p + 3 : p;
}

/* [\r\n] */
static const unsigned char *line_break(const unsigned char *p, const unsigned char *end)
{
    return p < end && (*p == '\r' || *p == '\n') ? p + 1 : p;
}

/* [\p{P}$+<=>^~|`]+ */
static const unsigned char *falcon_points(const unsigned char *p, const unsigned char *end)
{
    NextChar x = next_char(p, end);
    for (; x.kind == POINT || (x.byte && strchr("$+<=>^~|`", x.byte)); x = next_char(p, end))
        p += x.len;
    return p;
}

/* \s?\p{L}+ and \s?\p{P}+ */
static const unsigned char *after_space(const unsigned char *p, const unsigned char *end,
                                        unsigned kind)
{
    const unsigned char *from = skip_kinds(p, end, SPACE, 1);
    const unsigned char *stop = skip_kinds(from, end, kind, (unsigned)ALL);
    return stop > from ? stop : p;
}

static const unsigned char *spaced_letters(const unsigned char *p, const unsigned char *end)
{
    return after_space(p, end, LETTER);
}

static const unsigned char *spaced_points(const unsigned char *p, const unsigned char *end)
{
    return after_space(p, end, POINT);
}

/* \s?[..]+ of the letters that have cases, as DeepSeek LLM lists them */
static const unsigned char *spaced_cased(const unsigned char *p, const unsigned char *end)
{
    const unsigned char *from = skip_kinds(p, end, SPACE, 1), *q = from;
    for (NextChar x = next_char(q, end); x.kind && IS_IN(cased, x.code); x = next_char(q, end))
        q += x.len;
    return q > from ? q : p;
}

/* \s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3001-\u3002]+ */
static const unsigned char *spaced_signs(const unsigned char *p, const unsigned char *end)
{
    static const TextRange signs[] = {{0x21, 0x2f},     {0x3a, 0x7e},     {0x2018, 0x201f},
                                      {0x3001, 0x3002}, {0xff01, 0xff0f}, {0xff1a, 0xff5e}};
    const unsigned char *from = skip_kinds(p, end, SPACE, 1), *q = from;
    for (NextChar x = next_char(q, end); x.kind && IS_IN(signs, x.code); x = next_char(q, end))
        q += x.len;
    return q > from ? q : p;
}

/* [\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+, without spaces */
static const unsigned char *scripts_of_asia(const unsigned char *p, const unsigned char *end)
{
    static const TextRange all[] = {{0x800, 0x9fa5}, {0xac00, 0xd7ff}};
    for (NextChar x = next_char(p, end); x.kind & ~(unsigned)SPACE && IS_IN(all, x.code);
         x = next_char(p, end))
        p += x.len;
    return p;
}

/* \s+$: asked at the first of some spaces alone. */
static const unsigned char *last_spaces(const unsigned char *p, const unsigned char *end)
{
    const unsigned char *stop = skip_kinds(p, end, SPACE, (unsigned)ALL);
    return stop == end ? stop : p;
}

/* Spaces, then what is none. */
static const unsigned char *word_spaces(const unsigned char *p, const unsigned char *end)
{
    while (p < end && *p == ' ')
        p++;
    while (p < end && *p != ' ')
        p++;
    return p;
}

typedef const unsigned char *(*FindWord)(const unsigned char *p, const unsigned char *end);

enum { MOST_FINDS = 6 };

static const FindWord rules[][MOST_FINDS] = {
    {word_gpt2},                                                             /* IGRT_WORDS_GPT2 */
    {one_digit, word_gpt2},                                                  /* _GPT2_DIGITS */
    {word_llama3},                                                           /* _LLAMA3 */
    {word_qwen2},                                                            /* _QWEN2 */
    {word_spaces},                                                           /* _SPACES */
    {word_tekken},                                                           /* _TEKKEN */
    {word_gpt4o},                                                            /* _GPT4O */
    {word_qwen35},                                                           /* _QWEN35 */
    {falcon_points, word_gpt2, three_digits},                                /* _FALCON */
    {line_break, spaced_letters, spaced_points, scripts_of_asia, one_digit}, /* _DEEPSEEK_CODER */
    {line_break, spaced_cased, spaced_signs, last_spaces, scripts_of_asia, all_digits},
};

/* Where the pieces end that the next word is in, by expression. */
typedef struct WordCuts {
    const unsigned char *stop[MOST_FINDS];
} WordCuts;

/* The end of what is found at p, or of what is before the next that is. */
static const unsigned char *piece_end(FindWord find, const unsigned char *p,
                                      const unsigned char *end)
{
    const unsigned char *stop = find(p, end), *q = p;
    while (stop == q && q < end) {
        const NextChar x = next_char(q, end);
        q += x.len;
        if (find == last_spaces && x.kind == SPACE) /* those behind it are not the last, either */
            q = skip_kinds(q, end, SPACE, (unsigned)ALL);
        stop = find(q, end);
    }
    return q == p ? stop : q;
}

static const unsigned char *word_end(const igrt_vocab *v, WordCuts *cuts, const unsigned char *p,
                                     const unsigned char *end)
{
    const uint32_t rule = v->word[IGRT_VOCAB_RULE];
    const FindWord *find = rules[rule < sizeof rules / sizeof *rules ? rule : IGRT_WORDS_SPACES];
    for (int i = 0; i < MOST_FINDS && find[i]; i++) {
        if (!cuts->stop[i] || cuts->stop[i] <= p)
            cuts->stop[i] = piece_end(find[i], p, end);
        end = cuts->stop[i];
    }
    return end;
}

/* ---- tables ---------------------------------------------------------------------------------- */

uint32_t igrt_hash_text(const unsigned char *p, size_t len)
{
    uint32_t h = UINT32_C(2166136261); /* FNV-1a */
    while (len-- > 0)
        h = (h ^ *p++) * UINT32_C(16777619);
    return h ^ h >> 15;
}

uint32_t igrt_hash_pair(uint32_t left, uint32_t right)
{
    uint32_t h = left * UINT32_C(0x9e3779b1) ^ right * UINT32_C(0x85ebca6b);
    h ^= h >> 15;
    return h * UINT32_C(0xc2b2ae35) ^ h >> 13;
}

static int is_text(const igrt_vocab *v, uint32_t id, const unsigned char *p, size_t len)
{
    const uint32_t at = v->at[id];
    return v->at[id + 1] - at == len && !memcmp(v->pool + at, p, len);
}

/* The token of text that these bytes are. */
static uint32_t find_text(const igrt_vocab *v, const unsigned char *p, size_t len)
{
    const uint32_t mask = v->word[IGRT_VOCAB_SLOTS] - 1;
    for (uint32_t i = igrt_hash_text(p, len), k = 0; k <= mask; i++, k++) {
        const uint32_t id = v->slot[i & mask];
        if (!id)
            break;
        if (is_text(v, id - 1, p, len))
            return id - 1;
    }
    return IGRT_NO_TOKEN;
}

static const igrt_merge *find_merge(const igrt_vocab *v, uint32_t left, uint32_t right)
{
    const uint32_t mask = v->word[IGRT_VOCAB_MERGES] - 1;
    for (uint32_t i = igrt_hash_pair(left, right), k = 0; k <= mask; i++, k++) {
        const igrt_merge *m = &v->merge[i & mask];
        if (m->left == IGRT_NO_TOKEN)
            break;
        if (m->left == left && m->right == right)
            return m;
    }
    return NULL;
}

int32_t igrt_token_find(const igrt_vocab *v, const char *text, size_t len)
{
    const unsigned char *p = (const unsigned char *)text;
    for (uint32_t i = 0; i < v->word[IGRT_VOCAB_SPECIALS]; i++)
        if (is_text(v, v->special[i], p, len))
            return (int32_t)v->special[i];
    return (int32_t)find_text(v, p, len);
}

/* ---- joining --------------------------------------------------------------------------------- */

typedef struct TokensOut {
    int32_t *ids;
    size_t n, room;
} TokensOut;

static void put_token(TokensOut *out, uint32_t id)
{
    if (id == IGRT_NO_TOKEN) /* the vocabulary has nothing for it */
        return;
    if (out->n < out->room)
        out->ids[out->n] = (int32_t)id;
    out->n++;
}

/* A part of a word: bytes from..to, which are a token or (id IGRT_NO_TOKEN) none. */
typedef struct WordSymbol {
    uint32_t from, to, id;
    float rank;    /* of joining it with the next one; INFINITY: never */
    uint32_t made; /* what that gives */
} WordSymbol;

static void rank_pair(const igrt_vocab *v, const unsigned char *word, WordSymbol *s)
{
    s[0].rank = INFINITY;
    if (v->word[IGRT_VOCAB_KIND] == IGRT_VOCAB_BPE) {
        const igrt_merge *m = find_merge(v, s[0].id, s[1].id);
        if (m) {
            s[0].rank = (float)m->rank;
            s[0].made = m->made;
        }
        return;
    }
    const uint32_t id = find_text(v, word + s[0].from, s[1].to - s[0].from);
    if (id != IGRT_NO_TOKEN) {
        s[0].rank = -v->score[id];
        s[0].made = id;
    }
}

/* Joins the best pair of neighbours until there is none; how many symbols are left. */
static size_t join_symbols(const igrt_vocab *v, const unsigned char *word, WordSymbol *s, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++)
        rank_pair(v, word, &s[i]);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (s[i].rank < s[best].rank)
                best = i;
        if (s[best].rank == INFINITY)
            break;
        s[best].to = s[best + 1].to;
        s[best].id = s[best].made;
        memmove(&s[best + 1], &s[best + 2], (n - best - 2) * sizeof *s);
        n--;
        if (best + 1 < n)
            rank_pair(v, word, &s[best]);
        if (best > 0)
            rank_pair(v, word, &s[best - 1]);
    }
    return n;
}

/* For a byte that a byte-level vocabulary has no token for: it was made of valid text, where some
 * bytes never are. U+FFFD stands for it, or nothing. */
static void put_replacement(const igrt_vocab *v, TokensOut *out)
{
    static const unsigned char text[] = {0xef, 0xbf, 0xbd};
    WordSymbol s[3];
    for (uint32_t i = 0; i < 3; i++) {
        const WordSymbol byte = {i, i + 1, v->byte[text[i]], INFINITY, IGRT_NO_TOKEN};
        if (byte.id == IGRT_NO_TOKEN)
            return;
        s[i] = byte;
    }
    const size_t n = join_symbols(v, text, s, 3);
    for (size_t i = 0; i < n; i++)
        put_token(out, s[i].id);
}

/* What no token stands for; a control token never does. */
static void put_unknown(const igrt_vocab *v, TokensOut *out)
{
    const uint32_t id = v->word[IGRT_VOCAB_UNKNOWN];
    if (v->word[IGRT_VOCAB_KIND] == IGRT_VOCAB_BPE)
        put_replacement(v, out);
    else if (id != IGRT_NO_TOKEN && v->type[id] != IGRT_TOKEN_CONTROL)
        put_token(out, id);
}

static void put_symbol(const igrt_vocab *v, const unsigned char *word, const WordSymbol *s,
                       TokensOut *out)
{
    if (s->id != IGRT_NO_TOKEN) {
        put_token(out, s->id);
        return;
    }
    for (uint32_t i = s->from; i < s->to; i++) {
        const uint32_t id = v->byte[word[i]];
        if (id != IGRT_NO_TOKEN)
            put_token(out, id);
        else
            put_unknown(v, out);
    }
}

static void put_joined(const igrt_vocab *v, const unsigned char *word, WordSymbol *s, size_t n,
                       TokensOut *out)
{
    n = join_symbols(v, word, s, n);
    for (size_t i = 0; i < n; i++)
        put_symbol(v, word, &s[i], out);
}

static void put_word(const igrt_vocab *v, const unsigned char *word, const unsigned char *end,
                     TokensOut *out)
{
    WordSymbol s[MOST_SYMBOLS];
    const int bytes = v->word[IGRT_VOCAB_KIND] == IGRT_VOCAB_BPE;
    uint32_t code, id = IGRT_NO_TOKEN;
    if (v->word[IGRT_VOCAB_FLAGS] & IGRT_VOCAB_WHOLE)
        id = find_text(v, word, (size_t)(end - word));
    if (id != IGRT_NO_TOKEN) {
        put_token(out, id);
        return;
    }
    while (word < end) {
        size_t n = 0;
        uint32_t at = 0;
        while (n < MOST_SYMBOLS && word + at < end) {
            const uint32_t len = bytes ? 1 : decode(word + at, end, &code);
            s[n].from = at;
            s[n].to = at + len;
            s[n].id = bytes ? v->byte[word[at]] : find_text(v, word + at, len);
            at += len;
            n++;
        }
        put_joined(v, word, s, n, out);
        word += at;
    }
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* The longest token that stands for itself at p. */
static uint32_t special_at(const igrt_vocab *v, const unsigned char *p, const unsigned char *end,
                           unsigned how)
{
    for (uint32_t i = 0; i < v->word[IGRT_VOCAB_SPECIALS]; i++) {
        const uint32_t id = v->special[i], len = v->at[id + 1] - v->at[id];
        const int added = v->type[id] == IGRT_TOKEN_ADDED;
        if (v->pool[v->at[id]] == *p && len <= (size_t)(end - p) &&
            (added || (how & IGRT_TEXT_CONTROL)) && is_text(v, id, p, len))
            return id;
    }
    return IGRT_NO_TOKEN;
}

/* A piece without such tokens; space: one is put before it, which its first word begins with. */
static void put_piece(const igrt_vocab *v, const unsigned char *p, const unsigned char *end,
                      int space, TokensOut *out)
{
    unsigned char first[MOST_SYMBOLS];
    WordCuts cuts = {{NULL}};
    if (space && p < end) {
        size_t n = (size_t)(word_end(v, &cuts, p, end) - p);
        n = n < sizeof first - 1 ? n : sizeof first - 1;
        first[0] = ' ';
        memcpy(first + 1, p, n);
        put_word(v, first, first + 1 + n, out);
        p += n;
    }
    while (p < end) {
        const unsigned char *stop = word_end(v, &cuts, p, end);
        put_word(v, p, stop, out);
        p = stop;
    }
}

/* The same where it is no part of what was typed, with which control tokens have nothing in common.
 */
static uint32_t control_at(const igrt_vocab *v, const unsigned char *text, size_t at, size_t len,
                           unsigned how, const igrt_typed *typed, size_t n)
{
    const uint32_t id = special_at(v, text + at, text + len, how);
    if (id == IGRT_NO_TOKEN || v->type[id] == IGRT_TOKEN_ADDED)
        return id;
    const size_t stop = at + (v->at[id + 1] - v->at[id]);
    for (size_t i = 0; i < n; i++)
        if (at < typed[i].to && stop > typed[i].from)
            return special_at(v, text + at, text + len, how & ~(unsigned)IGRT_TEXT_CONTROL);
    return id;
}

size_t igrt_tokenize(const igrt_vocab *v, const char *text, size_t len, unsigned how, int32_t *ids,
                     size_t room)
{
    return igrt_tokenize_typed(v, text, len, how, NULL, 0, ids, room);
}

size_t igrt_tokenize_typed(const igrt_vocab *v, const char *text, size_t len, unsigned how,
                           const igrt_typed *typed, size_t n, int32_t *ids, size_t room)
{
    const unsigned char *begin = (const unsigned char *)text, *p = begin, *from = p, *end = p + len;
    const uint32_t *w = v->word, flags = w[IGRT_VOCAB_FLAGS];
    int space = (flags & IGRT_VOCAB_ADDS_SPACE) && !(how & IGRT_TEXT_GOES_ON);
    TokensOut out = {ids, 0, room};
    if ((how & (IGRT_TEXT_WHOLE | IGRT_TEXT_BEGINS)) && (flags & IGRT_VOCAB_ADDS_BEGIN) &&
        w[IGRT_VOCAB_BEGIN] != IGRT_NO_TOKEN)
        put_token(&out, w[IGRT_VOCAB_BEGIN]);
    unsigned char begins[256] = {0}; /* a token that stands for itself, with this byte */
    for (uint32_t i = 0; i < w[IGRT_VOCAB_SPECIALS]; i++)
        begins[v->pool[v->at[v->special[i]]]] = 1;
    while (p < end) {
        const uint32_t id = begins[*p]
                                ? control_at(v, begin, (size_t)(p - begin), len, how, typed, n)
                                : IGRT_NO_TOKEN;
        if (id == IGRT_NO_TOKEN) {
            p++;
            continue;
        }
        put_piece(v, from, p, space, &out);
        put_token(&out, id);
        from = p += v->at[id + 1] - v->at[id];
        space = (flags & IGRT_VOCAB_ADDS_SPACE) != 0;
    }
    put_piece(v, from, end, space, &out);
    if ((how & IGRT_TEXT_WHOLE) && (flags & IGRT_VOCAB_ADDS_END) &&
        w[IGRT_VOCAB_END] != IGRT_NO_TOKEN)
        put_token(&out, w[IGRT_VOCAB_END]);
    return out.n;
}

size_t igrt_token_text(const igrt_vocab *v, int32_t id, unsigned how, char *out, size_t room)
{
    if (id < 0 || (uint32_t)id >= v->word[IGRT_VOCAB_TOKENS])
        return 0;
    const int hidden = v->type[id] == IGRT_TOKEN_CONTROL || v->type[id] == IGRT_TOKEN_UNUSED;
    if (hidden && !(how & IGRT_TEXT_CONTROL))
        return 0;
    const size_t len = v->at[id + 1] - v->at[id];
    memcpy(out, v->pool + v->at[id], len < room ? len : room);
    return len;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* A table of n elements of so many bytes; NULL: there is no room. */
static const void *take_table(const unsigned char **p, size_t *left, uint64_t n, size_t size)
{
    const unsigned char *at = *p;
    if (n > *left / size)
        return NULL;
    *p += n * size;
    *left -= (size_t)n * size;
    return at;
}

static int ids_are_tokens(const uint32_t *id, size_t n, uint32_t tokens, uint32_t none)
{
    for (size_t i = 0; i < n; i++)
        if (id[i] != none && (none ? id[i] : id[i] - 1) >= tokens)
            return 0;
    return 1;
}

static int tables_are_sound(const igrt_vocab *v)
{
    const uint32_t *w = v->word, tokens = w[IGRT_VOCAB_TOKENS];
    for (uint32_t i = 0; i < tokens; i++)
        if (v->at[i] > v->at[i + 1] || v->at[i + 1] > w[IGRT_VOCAB_POOL])
            return 0;
    for (uint32_t i = 0; i < w[IGRT_VOCAB_MERGES]; i++)
        if (v->merge[i].left != IGRT_NO_TOKEN && v->merge[i].made >= tokens)
            return 0;
    for (uint32_t i = 0; i < w[IGRT_VOCAB_SPECIALS]; i++)
        if (v->special[i] >= tokens || v->at[v->special[i]] == v->at[v->special[i] + 1])
            return 0;
    return ids_are_tokens(v->slot, w[IGRT_VOCAB_SLOTS], tokens, 0) &&
           ids_are_tokens(v->byte, 256, tokens, IGRT_NO_TOKEN) &&
           ids_are_tokens(v->ends, w[IGRT_VOCAB_ENDS], tokens, IGRT_NO_TOKEN) &&
           ids_are_tokens(w + IGRT_VOCAB_BEGIN, 4, tokens, IGRT_NO_TOKEN);
}

/* Five texts, each with a zero behind it. */
static int take_form(igrt_vocab *v, const unsigned char **p, size_t *left)
{
    static const igrt_chat_form none = {{"", ""}, {"", ""}, ""};
    const char **text[] = {&v->form.system[0], &v->form.system[1], &v->form.user[0],
                           &v->form.user[1], &v->form.between};
    const char *all = (const char *)take_table(p, left, v->word[IGRT_VOCAB_CHAT], 1), *at = all;
    v->form = none;
    if (!all || !v->word[IGRT_VOCAB_CHAT])
        return all != NULL;
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        const char *zero =
            (const char *)memchr(at, 0, v->word[IGRT_VOCAB_CHAT] - (size_t)(at - all));
        if (!zero)
            return 0;
        *text[i] = at;
        at = zero + 1;
    }
    return 1;
}

igrt_status igrt_vocab_open(igrt_vocab *v, const void *data, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)data;
    size_t left = bytes;
    const uint32_t *w = (const uint32_t *)take_table(&p, &left, IGRT_VOCAB_WORDS, 4);
    if (!w || (uintptr_t)data % 4 || w[0] != IGRT_VOCAB_MAGIC || w[IGRT_VOCAB_VERSION] != 2)
        return IGRT_ERR_CONFIG;
    const uint64_t tokens = w[IGRT_VOCAB_TOKENS];
    v->word = w;
    v->at = (const uint32_t *)take_table(&p, &left, tokens + 1, 4);
    v->slot = (const uint32_t *)take_table(&p, &left, w[IGRT_VOCAB_SLOTS], 4);
    v->merge = (const igrt_merge *)take_table(&p, &left, w[IGRT_VOCAB_MERGES], sizeof *v->merge);
    v->score = (const float *)take_table(&p, &left, tokens, 4);
    v->byte = (const uint32_t *)take_table(&p, &left, 256, 4);
    v->special = (const uint32_t *)take_table(&p, &left, w[IGRT_VOCAB_SPECIALS], 4);
    v->ends = (const uint32_t *)take_table(&p, &left, w[IGRT_VOCAB_ENDS], 4);
    v->type = (const unsigned char *)take_table(&p, &left, tokens, 1);
    v->pool = (const unsigned char *)take_table(&p, &left, w[IGRT_VOCAB_POOL], 1);
    const uint32_t slots = w[IGRT_VOCAB_SLOTS], merges = w[IGRT_VOCAB_MERGES];
    if (!v->at || !v->slot || !v->merge || !v->score || !v->byte || !v->special || !v->ends ||
        !v->type || !v->pool || !take_form(v, &p, &left) || !slots || (slots & (slots - 1)) ||
        !merges || (merges & (merges - 1)))
        return IGRT_ERR_CONFIG;
    return tables_are_sound(v) ? IGRT_OK : IGRT_ERR_CONFIG;
}
