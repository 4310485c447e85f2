/*
 * gguf_chat.c - a chat template as the texts around what is said (igrt_chat.h).
 *
 * The template is applied to short conversations, and what lies between their messages is cut out:
 *
 *     user A                      [user 0] A [user 1]
 *     system S, user A            [system 0] S [system 1] A [user 1]
 *     user A, assistant B, user C ..    B [between] C [user 1]
 *
 * So any template will do whose messages stand in the text once, in their order.
 */
#include <string.h>

#include "gguf_vocab.h"
#include "jinja.h"

static const char first[] = "FIRST-QUESTION", answer[] = "ITS-ANSWER", second[] = "SECOND-QUESTION",
                  system_text[] = "SYSTEM-PROMPT";

typedef struct {
    Arena *a;
    ingot_gguf_bytes text;
    const GgufChatTokens *tokens;
    char *why;
} ChatTemplate;

static const char *applied(const ChatTemplate *t, const JinjaMessage *messages, int n)
{
    const JinjaChat chat = {messages, n, t->tokens->begin, t->tokens->end, true};
    return jinja_chat(t->a, t->text.at, t->text.len, &chat, t->why);
}

/* What stands before the only place of a message from `text` on; *rest: what stands behind it.
 * NULL: there is none, or another one. */
static const char *before(Arena *a, const char *text, const char *message, const char **rest)
{
    const char *at = text ? strstr(text, message) : NULL;
    if (!at || strstr(at + 1, message))
        return NULL;
    *rest = at + strlen(message);
    return arena_printf(a, "%.*s", (int)(at - text), text);
}

/* The begin token is there, and comes by itself. */
static const char *without_begin(const GgufChatTokens *t, const char *text)
{
    const size_t n = strlen(t->begin);
    return t->begins && n && !strncmp(text, t->begin, n) ? text + n : text;
}

/* Whether a text is `begin`, something, `end`. */
static bool is_around(const char *text, const char *begin, const char *end)
{
    const size_t n = strlen(text), a = strlen(begin), b = strlen(end);
    return n > a + b && !strncmp(text, begin, a) && !strcmp(text + n - b, end);
}

/* A template that knows no system prompt: that one is the beginning of the first question. */
static void put_system(const ChatTemplate *t, GgufChat *chat)
{
    const JinjaMessage messages[] = {{"system", system_text}, {"user", first}};
    const char *rest = NULL;
    chat->text[0] = before(t->a, applied(t, messages, 2), system_text, &rest);
    chat->text[1] = chat->text[0] ? before(t->a, rest, first, &rest) : NULL;
    if (chat->text[1]) {
        chat->text[0] = without_begin(t->tokens, chat->text[0]);
        chat->told = is_around(chat->text[2], chat->text[0], chat->text[1]);
        return;
    }
    chat->text[0] = chat->text[2];
    chat->text[1] = "\n\n";
}

/* A template that tells nobody where an answer begins: it begins as answers of the past do. White
 * space is for the model to write. */
static void put_answer(const ChatTemplate *t, const char *whole, GgufChat *chat)
{
    const char *rest = NULL,
               *to = before(t->a, whole, first, &rest) ? before(t->a, rest, answer, &rest) : NULL;
    const size_t n = strlen(chat->text[3]);
    const char *asked = arena_printf(t->a, "%.*s", (int)t->text.len, t->text.at);
    if (to && !strncmp(to, chat->text[3], n) && to[n + strspn(to + n, " \n")] &&
        !strstr(asked, "add_generation_prompt"))
        chat->text[3] = to;
}

bool gguf_chat(Arena *a, ingot_gguf_bytes text, const GgufChatTokens *tokens, GgufChat *chat,
               char why[GGUF_CHAT_WHY])
{
    const ChatTemplate t = {a, text, tokens, why};
    const char *spaced = arena_printf(a, " %s\n", first), *rest = NULL;
    const JinjaMessage one[] = {{"user", first}}, padded[] = {{"user", spaced}},
                       three[] = {{"user", first}, {"assistant", answer}, {"user", second}};
    const char *text_of_one = applied(&t, one, 1);
    if (!text_of_one)
        return false;
    chat->text[2] = before(a, text_of_one, first, &chat->text[3]);
    const char *whole = chat->text[2] ? applied(&t, three, 3) : NULL;
    if (whole && before(a, whole, answer, &rest))
        chat->text[4] = before(a, rest, second, &rest);
    if (!chat->text[2] || !chat->text[4]) {
        if (!*why)
            snprintf(why, GGUF_CHAT_WHY, "a message is not in it once");
        return false;
    }
    const char *trimmed = applied(&t, padded, 1);
    chat->trims = trimmed && !strcmp(trimmed, text_of_one);
    chat->text[2] = without_begin(tokens, chat->text[2]);
    put_system(&t, chat);
    put_answer(&t, whole, chat);
    *why = 0;
    return true;
}
