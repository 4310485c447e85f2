/*
 * jinja.h - the template that a model's file has for chats, applied to a conversation.
 *
 * Chat templates are programs (https://jinja.palletsprojects.com). This runs as much of the
 * language as they use, with white space as Hugging Face has it (trim_blocks, lstrip_blocks):
 *
 *     jinja.c         text between tags; for, if, set, macro
 *     jinja_expr.c    expressions
 *     jinja_value.c   values, filters, tests, methods
 *
 * What is not known, and a program that runs too long or needs too much, ends with a reason.
 * Nothing is parsed ahead: a tag is read where it is run, also where it is run for nothing
 * (`dead`), so that its end is found.
 */
#ifndef GGUF_JINJA_H
#define GGUF_JINJA_H

#include "base.h"

typedef struct {
    const char *role, *content;
} JinjaMessage;

typedef struct {
    const JinjaMessage *messages;
    int n;
    const char *bos, *eos; /* texts of tokens */
    bool dated;            /* strftime_now() tells a day; false: there is no such function */
} JinjaChat;

/* The conversation, up to where an answer begins; NULL: why[] says why not. */
const char *jinja_chat(Arena *, const char *text, size_t len, const JinjaChat *, char why[160]);

/* ---- of these files alone -------------------------------------------------------------------- */

typedef enum {
    JINJA_UNDEFINED,
    JINJA_NONE,
    JINJA_BOOL,
    JINJA_NUMBER,
    JINJA_TEXT,
    JINJA_LIST,
    JINJA_DICT,
    JINJA_MACRO,
    JINJA_FUNCTION
} JinjaKind;

typedef struct JinjaItems JinjaItems;

typedef struct {
    JinjaKind kind;
    bool real; /* a number that is no integer's, as 2.0 */
    double number;
    const char *text; /* of a function: its name */
    size_t len;
    JinjaItems *items; /* of lists and dicts, which are shared, as in Python */
    size_t at;         /* of a macro: its tag */
} JinjaValue;

struct JinjaItems {
    JinjaValue *key, *value; /* lists have no keys */
    size_t n, room;
};

typedef struct {
    const char *name;
    size_t len;
    JinjaValue value;
} JinjaVar;

typedef enum { JINJA_OUT, JINJA_EXPRESSION, JINJA_STATEMENT } JinjaTag;

typedef struct {
    JinjaTag tag;
    const char *text, *end;
} JinjaNode;

enum { JINJA_ARGS = 8 };

typedef struct {
    JinjaValue value[JINJA_ARGS];
    const char *name[JINJA_ARGS]; /* NULL: by its place */
    size_t len[JINJA_ARGS];
    int n;
} JinjaArgs;

typedef struct {
    Arena *a;
    char *why;   /* of 160 bytes; */
    bool failed; /* it says why. Nothing is computed any more */
    int dead;    /* nothing is computed now: what is read is not run */
    int depth;
    size_t steps, bytes;
    const char *p, *end; /* what is read of a tag */
    JinjaNode *nodes;
    size_t n_nodes;
    JinjaVar *vars;
    size_t n_vars, room_vars;
    size_t frame, base, globals; /* variables of this scope, of this macro, of no scope */
    enum { JINJA_GO, JINJA_CONTINUE, JINJA_BREAK } leave;
    char *out;
    size_t n_out, room_out;
} Jinja;

static inline bool jinja_idle(const Jinja *j)
{
    return j->dead || j->failed;
}

JinjaValue jinja_fail(Jinja *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void *jinja_alloc(Jinja *, size_t bytes); /* never NULL; too much is a failure */
bool jinja_enter(Jinja *);                /* counts steps and depth; false: too many */

/* Values. */
JinjaValue jinja_text(const char *, size_t len);
JinjaValue jinja_string(const char *);
JinjaValue jinja_number(double);
JinjaValue jinja_bool(bool);
JinjaValue jinja_none(void);
JinjaValue jinja_list(Jinja *, bool dict);
void jinja_add(Jinja *, JinjaItems *, JinjaValue key, JinjaValue value);
void jinja_put(Jinja *, JinjaItems *, JinjaValue key, JinjaValue value); /* replaces */
bool jinja_truth(JinjaValue);
bool jinja_equal(JinjaValue, JinjaValue);
bool jinja_contains(Jinja *, JinjaValue all, JinjaValue x);
bool jinja_is(JinjaValue text, const char *what);
JinjaValue jinja_member(JinjaValue object, JinjaValue key);
JinjaValue jinja_slice(Jinja *, JinjaValue, const JinjaValue part[3]);
JinjaValue jinja_shown(Jinja *, JinjaValue); /* as text */
JinjaValue jinja_joined(Jinja *, JinjaValue, JinjaValue);
JinjaValue jinja_elements(Jinja *, JinjaValue); /* the list that a loop goes over */
JinjaValue jinja_filter(Jinja *, JinjaValue name, JinjaValue x, const JinjaArgs *);
bool jinja_test(Jinja *, JinjaValue name, JinjaValue x, const JinjaArgs *);
JinjaValue jinja_method(Jinja *, JinjaValue name, JinjaValue x, const JinjaArgs *);
JinjaValue jinja_function(Jinja *, JinjaValue function, const JinjaArgs *);
/* The argument of that place or name; undefined: there is none. */
JinjaValue jinja_arg(const JinjaArgs *, int place, const char *name);

/* Expressions, from j->p on. */
JinjaValue jinja_expression(Jinja *);
JinjaValue jinja_condition(Jinja *);    /* without "if .. else" */
bool jinja_word(Jinja *, const char *); /* takes it, if it is next */
bool jinja_sign(Jinja *, const char *);
JinjaValue jinja_name(Jinja *); /* an identifier, as text; undefined: there is none */
JinjaVar *jinja_find(Jinja *, const char *name, size_t len);
void jinja_set(Jinja *, JinjaValue name, JinjaValue value);

JinjaValue jinja_macro(Jinja *, JinjaValue macro, const JinjaArgs *);

#endif
