/*
 * hf_vocab.c - tokenizer.json as the keys of a GGUF file's vocabulary.
 *
 *     byte-level BPE  a text is cut into words, bytes of a word are joined by rank (GPT-2, Llama 3)
 *     the same with   characters that are no tokens become their bytes, "<0x0A>": SentencePiece's
 *     byte_fallback   (Llama 2, Mistral, Gemma), whose pieces' scores are the ranks
 *
 * How words are cut is an expression, of which those of gguf_words.def are known. Whatever else is
 * in the way leaves the model without text: the bundle takes tokens, and a warning says why.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hf_folder.h"
#include "igrt_vocab.h"

#define LETTERS "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
#define CONTRACTED "(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
#define OTHERS "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* Expressions that cut words, and a name of gguf_words.def that cuts so. */
static const struct {
    const char *expression, *pre;
} expressions[] = {
    {CONTRACTED LETTERS "\\p{N}{1,3}" OTHERS, "llama-bpe"},
    {CONTRACTED LETTERS "\\p{N}" OTHERS, "qwen2"},
    {"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", "gpt-2"},
};

typedef struct {
    const char *text;
    uint32_t id;
} HfToken;

typedef struct {
    HfFolder *h;
    const Json *root, *model, *config; /* tokenizer_config.json, or NULL */
    const char *why;
    const char **text; /* of each id */
    uint8_t *type;
    float *score; /* SentencePiece */
    uint32_t n;
    HfToken *sorted;
    uint32_t n_sorted;
    bool pieces, adds_space;
} HfVocab;

static bool lacks(HfVocab *v, const char *why)
{
    v->why = why;
    return false;
}

static const char *type_of(const Json *v)
{
    return json_text(json_member(v, "type"), "");
}

static bool is_true(const Json *v, const char *name)
{
    const Json *m = json_member(v, name);
    return m && m->kind == JSON_TRUE;
}

/* Element i of a Sequence's list; of another one, itself is the first. NULL: no more. */
static const Json *step_of(const Json *v, const char *list, int i)
{
    if (!v || v->kind != JSON_OBJECT)
        return NULL;
    if (strcmp(type_of(v), "Sequence") != 0)
        return i ? NULL : v;
    const Json *all = json_member(v, list), *s = all ? all->item : NULL;
    while (s && i-- > 0)
        s = s->next;
    return s;
}

/* ---- how words are cut ------------------------------------------------------------------------
 */

/* {"String": " "} or {"Regex": ..} */
static const char *pattern_of(const Json *step)
{
    const Json *p = json_member(step, "pattern");
    return json_text(json_member(p, "Regex"), json_text(json_member(p, "String"), ""));
}

/* Of byte-level BPE; NULL: it is not known. */
static const char *words_of(const HfVocab *v)
{
    const Json *pre = json_member(v->root, "pre_tokenizer"), *s;
    const char *name = NULL;
    bool bytes = false, digits = false;
    for (int i = 0; (s = step_of(pre, "pretokenizers", i)); i++) {
        if (!strcmp(type_of(s), "ByteLevel")) {
            const Json *use = json_member(s, "use_regex");
            if (bytes || is_true(s, "add_prefix_space"))
                return NULL;
            bytes = true;
            if (!name && (!use || use->kind != JSON_FALSE))
                name = digits ? "smollm" : "gpt-2";
            else if (name && (!use || use->kind != JSON_FALSE))
                return NULL;
        } else if (!strcmp(type_of(s), "Digits") && is_true(s, "individual_digits") && !i) {
            digits = true;
        } else if (!strcmp(type_of(s), "Split") && !i && !is_true(s, "invert") &&
                   !strcmp(json_text(json_member(s, "behavior"), ""), "Isolated")) {
            for (size_t k = 0; k < sizeof expressions / sizeof *expressions; k++)
                if (!strcmp(pattern_of(s), expressions[k].expression))
                    name = expressions[k].pre;
            if (!name)
                return NULL;
        } else {
            return NULL;
        }
    }
    return bytes ? name : NULL;
}

static bool bpe_normalizer(const HfVocab *v)
{
    const Json *s;
    for (int i = 0; (s = step_of(json_member(v->root, "normalizer"), "normalizers", i)); i++)
        if (strcmp(type_of(s), "NFC") != 0) /* as llama.cpp: text is taken as it is */
            return false;
    return true;
}

#define SHOWN_SPACE "\xe2\x96\x81"

/* Of SentencePiece: spaces become U+2581, and there may be one in front. */
static bool piece_rules(HfVocab *v)
{
    const Json *s, *pre = json_member(v->root, "pre_tokenizer");
    bool spaces = false;
    for (int i = 0; (s = step_of(json_member(v->root, "normalizer"), "normalizers", i)); i++) {
        if (!strcmp(type_of(s), "Prepend") &&
            !strcmp(json_text(json_member(s, "prepend"), ""), SHOWN_SPACE))
            v->adds_space = true;
        else if (!strcmp(type_of(s), "Replace") && !strcmp(pattern_of(s), " ") &&
                 !strcmp(json_text(json_member(s, "content"), ""), SHOWN_SPACE))
            spaces = true;
        else
            return false;
    }
    for (int i = 0; (s = step_of(pre, "pretokenizers", i)); i++) {
        if (!strcmp(type_of(s), "Metaspace")) {
            const char *scheme = json_text(json_member(s, "prepend_scheme"), "always");
            const Json *add = json_member(s, "add_prefix_space");
            spaces = true;
            v->adds_space = strcmp(scheme, "never") != 0 && (!add || add->kind != JSON_FALSE);
        } else if (strcmp(type_of(s), "Split") != 0 || strcmp(pattern_of(s), " ") != 0) {
            return false; /* a split at spaces finds none: they are replaced */
        }
    }
    return spaces;
}

/* ---- tokens -----------------------------------------------------------------------------------
 */

static int by_text(const void *a, const void *b)
{
    return strcmp(((const HfToken *)a)->text, ((const HfToken *)b)->text);
}

static int64_t find_token(const HfVocab *v, const char *text)
{
    const HfToken wanted = {text, 0};
    const HfToken *t =
        v->n_sorted ? bsearch(&wanted, v->sorted, v->n_sorted, sizeof wanted, by_text) : NULL;
    return t ? (int64_t)t->id : -1;
}

static bool put_token(HfVocab *v, const char *text, double id, int type)
{
    if (!text || !(id >= 0 && id < v->n) || id != (uint32_t)id)
        return lacks(v, "an id of a token is none of the embedding's rows");
    v->text[(uint32_t)id] = text;
    v->type[(uint32_t)id] = (uint8_t)type;
    return true;
}

static int type_of_piece(const HfVocab *v, const char *text)
{
    if (v->pieces && strlen(text) == 6 && !strncmp(text, "<0x", 3) && text[5] == '>')
        return IGRT_TOKEN_BYTE;
    return IGRT_TOKEN_TEXT;
}

static bool read_tokens(HfVocab *v)
{
    const Json *vocab = json_member(v->model, "vocab"),
               *added = json_member(v->root, "added_tokens");
    const char *unknown = json_text(json_member(v->model, "unk_token"), NULL);
    v->text = NEWN(v->h->a, const char *, v->n);
    v->type = NEWN(v->h->a, uint8_t, v->n);
    v->score = NEWN(v->h->a, float, v->n);
    if (!vocab || vocab->kind != JSON_OBJECT)
        return lacks(v, "tokenizer.json has no list of tokens");
    for (const Json *t = vocab->item; t; t = t->next)
        if (!put_token(v, t->name, json_number(t, -1), type_of_piece(v, t->name)))
            return false;
    for (const Json *t = added && added->kind == JSON_LIST ? added->item : NULL; t; t = t->next) {
        const char *text = json_text(json_member(t, "content"), NULL);
        const bool is_unknown = text && unknown && !strcmp(text, unknown);
        if (!put_token(v, text, json_number(json_member(t, "id"), -1),
                       is_unknown              ? IGRT_TOKEN_UNKNOWN
                       : is_true(t, "special") ? IGRT_TOKEN_CONTROL
                                               : IGRT_TOKEN_ADDED))
            return false;
    }
    v->sorted = NEWN(v->h->a, HfToken, v->n);
    for (uint32_t i = 0; i < v->n; i++)
        if (v->text[i])
            v->sorted[v->n_sorted++] = (HfToken){v->text[i], i};
    qsort(v->sorted, v->n_sorted, sizeof *v->sorted, by_text);
    for (uint32_t i = 0; i < v->n; i++)
        if (!v->text[i]) { /* rows of the embedding beyond the tokens */
            v->text[i] = arena_printf(v->h->a, "[PAD%u]", i);
            v->type[i] = IGRT_TOKEN_UNUSED;
        }
    return true;
}

/* A merge, "a b" or ["a", "b"]: both parts, of which the first has `len` bytes. */
static const char *merge_parts(const Json *m, size_t *len, const char **second)
{
    const char *first = json_text(m, NULL);
    if (first) {
        const char *space = *first ? strchr(first + 1, ' ') : NULL;
        *len = space ? (size_t)(space - first) : 0;
        *second = space ? space + 1 : NULL;
        return space ? first : NULL;
    }
    const Json *a = m->kind == JSON_LIST ? m->item : NULL, *b = a ? a->next : NULL;
    first = json_text(a, NULL);
    *second = json_text(b, NULL);
    *len = first ? strlen(first) : 0;
    return first && *second && !b->next ? first : NULL;
}

/* The first merge that makes a piece is the best one: pieces that are made of none are last. */
static bool read_scores(HfVocab *v, const Json *merges)
{
    StrBuf whole = {0};
    float rank = 0;
    bool good = true;
    for (uint32_t i = 0; i < v->n; i++)
        v->score[i] = -1e9f;
    for (const Json *m = merges->item; m && good; m = m->next, rank--) {
        size_t len;
        const char *second, *first = merge_parts(m, &len, &second);
        good = first != NULL;
        whole.len = 0;
        sb_write(&whole, first, good ? len : 0);
        sb_puts(&whole, good ? second : "");
        const int64_t id = find_token(v, whole.data);
        if (id >= 0 && v->score[id] < rank)
            v->score[id] = rank;
    }
    sb_free(&whole);
    return good || lacks(v, "a merge of tokenizer.json is no pair of texts");
}

/* ---- keys -------------------------------------------------------------------------------------
 */

static bool put_merges(HfVocab *v, const Json *merges)
{
    uint64_t n = 0;
    for (const Json *m = merges->item; m; m = m->next, n++) {
        size_t len;
        const char *second;
        if (!merge_parts(m, &len, &second))
            return lacks(v, "a merge of tokenizer.json is no pair of texts");
    }
    hf_key_array(v->h, "tokenizer.ggml.merges", INGOT_GGUF_TEXT_VALUE, n);
    for (const Json *m = merges->item; m; m = m->next) {
        size_t len;
        const char *second, *first = merge_parts(m, &len, &second);
        hf_put_text(v->h, arena_printf(v->h->a, "%.*s ", (int)len, first), second);
    }
    return true;
}

static void put_tokens(HfVocab *v)
{
    hf_key_array(v->h, "tokenizer.ggml.tokens", INGOT_GGUF_TEXT_VALUE, v->n);
    for (uint32_t i = 0; i < v->n; i++)
        hf_put_text(v->h, v->text[i], "");
    hf_key_array(v->h, "tokenizer.ggml.token_type", INGOT_GGUF_U8_VALUE, v->n);
    hf_put(v->h, v->type, v->n);
    if (!v->pieces)
        return;
    hf_key_array(v->h, "tokenizer.ggml.scores", INGOT_GGUF_F32_VALUE, v->n);
    hf_put(v->h, v->score, v->n * sizeof *v->score);
}

/* "<s>", or an object with it. */
static void put_special(HfVocab *v, const char *name, const char *key)
{
    const Json *t = json_member(v->config, name);
    const char *text = json_text(t, json_text(json_member(t, "content"), NULL));
    int64_t id = text ? find_token(v, text) : -1;
    if (id < 0) {
        const Json *told = json_member(v->h->config, arena_printf(v->h->a, "%s_id", name));
        if (told && told->kind == JSON_LIST)
            told = told->item;
        id = json_number(told, -1) >= 0 ? (int64_t)fmin(json_number(told, -1), v->n) : -1;
    }
    if (id >= 0)
        hf_key_whole(v->h, key, id);
}

/* Whether the text of one is a template that begins with a token. */
static bool begins_with_token(const HfVocab *v)
{
    const Json *s, *post = json_member(v->root, "post_processor");
    for (int i = 0; (s = step_of(post, "processors", i)); i++) {
        const Json *one = json_member(s, "single");
        if (!strcmp(type_of(s), "TemplateProcessing") && one && one->kind == JSON_LIST)
            return json_member(one->item, "SpecialToken") != NULL;
    }
    return false;
}

static const char *chat_template(const HfVocab *v)
{
    const Json *t = json_member(v->config, "chat_template");
    if (t && t->kind == JSON_LIST)
        for (const Json *i = t->item; i; i = i->next)
            if (!strcmp(json_text(json_member(i, "name"), ""), "default"))
                return json_text(json_member(i, "template"), NULL);
    const char *text = json_text(t, NULL);
    return text ? text : hf_text(v->h, "chat_template.jinja");
}

static void put_rest(HfVocab *v)
{
    const Json *adds = json_member(v->config, "add_bos_token");
    put_special(v, "bos_token", "tokenizer.ggml.bos_token_id");
    put_special(v, "eos_token", "tokenizer.ggml.eos_token_id");
    hf_key_bool(v->h, "tokenizer.ggml.add_bos_token",
                adds && (adds->kind == JSON_TRUE || adds->kind == JSON_FALSE)
                    ? adds->kind == JSON_TRUE
                    : begins_with_token(v));
    if (v->pieces)
        hf_key_bool(v->h, "tokenizer.ggml.add_space_prefix", v->adds_space);
    const char *unknown = json_text(json_member(v->model, "unk_token"), NULL);
    if (unknown && find_token(v, unknown) >= 0)
        hf_key_whole(v->h, "tokenizer.ggml.unknown_token_id", find_token(v, unknown));
    const char *chat = chat_template(v);
    if (chat)
        hf_key_text(v->h, "tokenizer.chat_template", chat);
}

static bool read_all(HfVocab *v)
{
    const ingot_gguf_tensor *rows = hf_find(v->h, "token_embd.weight");
    const Json *merges = json_member(v->model, "merges");
    const char *words = NULL;
    if (strcmp(type_of(v->model), "BPE") != 0 || !merges || merges->kind != JSON_LIST)
        return lacks(v, "tokenizer.json is of another kind than BPE");
    if (!rows || rows->dims[1] > 1 << 24)
        return lacks(v, "its embedding has too many rows");
    v->n = (uint32_t)rows->dims[1];
    v->pieces = is_true(v->model, "byte_fallback");
    if (v->pieces ? !piece_rules(v) : !bpe_normalizer(v) || !(words = words_of(v)))
        return lacks(v, "how tokenizer.json cuts text into words is not known");
    if (words && !strcmp(words, "llama-bpe") && !is_true(v->model, "ignore_merges"))
        words = "smaug-bpe";
    else if (is_true(v->model, "ignore_merges") && (!words || strcmp(words, "llama-bpe") != 0))
        return lacks(v, "'ignore_merges' of tokenizer.json is not supported here");
    if (!read_tokens(v) || (v->pieces && !read_scores(v, merges)))
        return false;
    if (!v->pieces && !put_merges(v, merges))
        return false;
    hf_key_text(v->h, "tokenizer.ggml.model", v->pieces ? "llama" : "gpt2");
    if (words)
        hf_key_text(v->h, "tokenizer.ggml.pre", words);
    put_tokens(v);
    put_rest(v);
    return true;
}

void hf_read_vocabulary(HfFolder *h)
{
    HfVocab v = {.h = h, .root = hf_json(h, "tokenizer.json", false)};
    v.config = v.root ? hf_json(h, "tokenizer_config.json", false) : NULL;
    if (h->m->faults)
        return;
    v.model = json_member(v.root, "model");
    v.why = v.root ? NULL : "the folder has no tokenizer.json";
    if (v.root)
        read_all(&v);
    h->m->lacks = v.why;
}
