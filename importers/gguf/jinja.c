/*
 * jinja.c - a template as text and tags, and the statements.
 *
 *     "a {% if x %} b {% endif %}" -> out "a ", statement "if x", out " b ", statement "endif"
 */
#include "jinja.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STEPS = 1 << 20, MOST_DEPTH = 120, MOST_BYTES = 1 << 25, WHY = 160 };

JinjaValue jinja_fail(Jinja *j, const char *format, ...)
{
    va_list args;
    if (!jinja_idle(j)) {
        va_start(args, format);
        vsnprintf(j->why, WHY, format, args);
        va_end(args);
        j->failed = true;
    }
    return (JinjaValue){0};
}

void *jinja_alloc(Jinja *j, size_t bytes)
{
    j->bytes += bytes;
    if (j->bytes > MOST_BYTES)
        jinja_fail(j, "it needs too much memory");
    return arena_alloc(j->a, bytes ? bytes : 1);
}

bool jinja_enter(Jinja *j)
{
    if (++j->steps <= MOST_STEPS && j->depth < MOST_DEPTH && j->bytes <= MOST_BYTES)
        return true;
    j->dead = 0;
    jinja_fail(j, j->depth < MOST_DEPTH ? "it takes too long" : "it is nested too deep");
    j->p = j->end;
    return false;
}

/* ---- text and tags --------------------------------------------------------------------------- */

static bool is_white(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

/* The end of a tag, by its two last characters, which strings in it may have; NULL: none. */
static const char *tag_end(const char *p, const char *end, char first)
{
    char quote = 0;
    for (; p + 1 < end; p++) {
        if (quote && *p == '\\')
            p++;
        else if (quote)
            quote = *p == quote ? 0 : quote;
        else if (*p == '}' && first == '}' && p[1] == '}')
            return p;
        else if (*p == first && p[1] == '}' && first != '}')
            return p;
        else if (first != '#' && (*p == '"' || *p == '\''))
            quote = *p;
    }
    return NULL;
}

static void add_node(Jinja *j, JinjaTag tag, const char *text, const char *end)
{
    if (tag == JINJA_OUT && text == end)
        return;
    if (j->n_nodes % 64 == 0) {
        JinjaNode *more = jinja_alloc(j, (j->n_nodes + 64) * sizeof *more);
        if (j->n_nodes)
            memcpy(more, j->nodes, j->n_nodes * sizeof *more);
        j->nodes = more;
    }
    j->nodes[j->n_nodes++] = (JinjaNode){tag, text, end};
}

/* Text before a tag, less what the tag takes of it. */
static const char *text_end(const char *from, const char *tag, const char *begin)
{
    const char *p = tag;
    if (tag[2] == '-') {
        while (p > from && is_white(p[-1]))
            p--;
        return p;
    }
    if (tag[1] == '{' || tag[2] == '+')
        return p;
    while (p > from && (p[-1] == ' ' || p[-1] == '\t'))
        p--;
    return p == begin || p[-1] == '\n' ? p : tag; /* alone in its line so far */
}

static const char *begin_of_tag(const char *p, const char *end)
{
    while (p + 1 < end && !(*p == '{' && (p[1] == '{' || p[1] == '%' || p[1] == '#')))
        p++;
    return p + 1 < end ? p : end;
}

static void read_nodes(Jinja *j, const char *text, size_t len)
{
    const char *p = text, *end = text + len;
    while (p < end && !j->failed) {
        const char *tag = begin_of_tag(p, end);
        if (tag == end) {
            add_node(j, JINJA_OUT, p, end);
            return;
        }
        const char kind = tag[1], *stop = tag_end(tag + 2, end, kind == '{' ? '}' : kind);
        if (!stop || (size_t)(end - tag) < 4) {
            jinja_fail(j, "a tag has no end");
            return;
        }
        add_node(j, JINJA_OUT, p, text_end(p, tag, text));
        const char *from = tag + 2 + (tag[2] == '-' || tag[2] == '+'), *to = stop;
        const bool strips = to > from && to[-1] == '-';
        to -= to > from && (to[-1] == '-' || to[-1] == '+');
        if (kind != '#')
            add_node(j, kind == '{' ? JINJA_EXPRESSION : JINJA_STATEMENT, from, to);
        p = stop + 2;
        if (strips)
            while (p < end && is_white(*p))
                p++;
        else if (kind != '{' && p < end && *p == '\n')
            p++;
    }
}

/* ---- variables ------------------------------------------------------------------------------- */

JinjaVar *jinja_find(Jinja *j, const char *name, size_t len)
{
    for (size_t i = j->n_vars; i > 0; i--) {
        JinjaVar *v = &j->vars[i - 1];
        if ((i > j->base || i <= j->globals) && v->len == len && !memcmp(v->name, name, len))
            return v;
    }
    return NULL;
}

void jinja_set(Jinja *j, JinjaValue name, JinjaValue value)
{
    if (jinja_idle(j))
        return;
    for (size_t i = j->n_vars; i > j->frame; i--)
        if (j->vars[i - 1].len == name.len && !memcmp(j->vars[i - 1].name, name.text, name.len)) {
            j->vars[i - 1].value = value;
            return;
        }
    if (j->n_vars == j->room_vars) {
        j->room_vars = 2 * j->room_vars + 16;
        JinjaVar *more = jinja_alloc(j, j->room_vars * sizeof *more);
        if (j->n_vars)
            memcpy(more, j->vars, j->n_vars * sizeof *more);
        j->vars = more;
    }
    j->vars[j->n_vars++] = (JinjaVar){name.text, name.len, value};
    if (!j->frame)
        j->globals = j->n_vars;
}

/* ---- statements ------------------------------------------------------------------------------ */

static size_t run(Jinja *j, size_t i, const char *const *ends);

static void put_out(Jinja *j, const char *text, size_t len)
{
    if (jinja_idle(j) || !len)
        return;
    if (len > j->room_out - j->n_out) {
        j->room_out = 2 * (j->room_out + len);
        char *more = jinja_alloc(j, j->room_out);
        if (j->n_out)
            memcpy(more, j->out, j->n_out);
        j->out = more;
    }
    memcpy(j->out + j->n_out, text, len);
    j->n_out += len;
}

/* Reads a tag's text. */
static void open_tag(Jinja *j, size_t i)
{
    j->p = j->nodes[i].text;
    j->end = j->nodes[i].end;
}

static void close_tag(Jinja *j)
{
    while (j->p < j->end && is_white(*j->p))
        j->p++;
    if (j->p < j->end)
        jinja_fail(j, "'%.*s' is not known there", (int)(j->end - j->p < 40 ? j->end - j->p : 40),
                   j->p);
}

/* Nodes up to the tag that ends them, which is read up to behind its word; what they give. */
static JinjaValue captured(Jinja *j, size_t *i, const char *const *ends)
{
    char *out = j->out;
    const size_t n = j->n_out, room = j->room_out;
    j->out = NULL;
    j->n_out = j->room_out = 0;
    *i = run(j, *i, ends);
    const JinjaValue v = jinja_text(j->out, j->n_out);
    j->out = out;
    j->n_out = n;
    j->room_out = room;
    return v;
}

static size_t run_if(Jinja *j, size_t i)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    bool done = false, on = jinja_truth(jinja_expression(j));
    close_tag(j);
    for (;;) {
        const int off = !on || done;
        j->dead += off;
        i = run(j, i + 1, ends);
        j->dead -= off;
        done = done || on;
        if (i >= j->n_nodes)
            return i;
        open_tag(j, i);
        if (jinja_word(j, "endif"))
            return i + 1;
        on = true;
        if (jinja_word(j, "elif")) {
            j->dead += done;
            on = jinja_truth(jinja_expression(j));
            j->dead -= done;
        }
    }
}

static void set_loop(Jinja *j, const JinjaItems *all, size_t i)
{
    JinjaValue loop = jinja_list(j, true);
    const double at = (double)i, n = (double)all->n;
    jinja_add(j, loop.items, jinja_string("index0"), jinja_number(at));
    jinja_add(j, loop.items, jinja_string("index"), jinja_number(at + 1));
    jinja_add(j, loop.items, jinja_string("first"), jinja_bool(i == 0));
    jinja_add(j, loop.items, jinja_string("last"), jinja_bool(i + 1 == all->n));
    jinja_add(j, loop.items, jinja_string("length"), jinja_number(n));
    jinja_add(j, loop.items, jinja_string("revindex"), jinja_number(n - at));
    jinja_add(j, loop.items, jinja_string("revindex0"), jinja_number(n - at - 1));
    if (i > 0)
        jinja_add(j, loop.items, jinja_string("previtem"), all->value[i - 1]);
    if (i + 1 < all->n)
        jinja_add(j, loop.items, jinja_string("nextitem"), all->value[i + 1]);
    jinja_set(j, jinja_string("loop"), loop);
}

/* The names of a loop get an element: of several names each a part of it. */
static void set_names(Jinja *j, const JinjaValue name[2], JinjaValue x)
{
    if (name[1].kind == JINJA_UNDEFINED) {
        jinja_set(j, name[0], x);
    } else if (x.kind != JINJA_LIST || x.items->n != 2) {
        jinja_fail(j, "a loop of two names needs pairs");
    } else {
        jinja_set(j, name[0], x.items->value[0]);
        jinja_set(j, name[1], x.items->value[1]);
    }
}

/* Those elements for which the condition of a loop, from j->p on, is true. */
static JinjaValue filtered(Jinja *j, JinjaValue all, const JinjaValue name[2])
{
    JinjaValue some = jinja_list(j, false);
    const char *from = j->p;
    const size_t frame = j->frame, vars = j->n_vars;
    j->frame = vars;
    for (size_t i = 0; !jinja_idle(j) && i < all.items->n; i++) {
        j->p = from;
        j->n_vars = vars;
        set_names(j, name, all.items->value[i]);
        if (jinja_truth(jinja_expression(j)))
            jinja_add(j, some.items, (JinjaValue){0}, all.items->value[i]);
    }
    j->n_vars = vars;
    j->frame = frame;
    j->p = from;
    j->dead++;
    jinja_expression(j);
    j->dead--;
    return some;
}

static size_t run_for(Jinja *j, size_t i)
{
    static const char *const ends[] = {"else", "endfor", NULL};
    JinjaValue name[2] = {jinja_name(j)};
    if (jinja_sign(j, ","))
        name[1] = jinja_name(j);
    if (name[0].kind != JINJA_TEXT || !jinja_word(j, "in")) {
        jinja_fail(j, "a loop has no names");
        return j->n_nodes;
    }
    JinjaValue all = jinja_elements(j, jinja_condition(j));
    if (jinja_word(j, "if"))
        all = filtered(j, all, name);
    close_tag(j);
    const size_t frame = j->frame, vars = j->n_vars;
    const size_t n = jinja_idle(j) ? 0 : all.items->n;
    size_t end = i + 1;
    for (size_t k = 0; k < n && !j->failed && j->leave != JINJA_BREAK; k++) {
        j->leave = JINJA_GO;
        j->frame = j->n_vars = vars;
        set_names(j, name, all.items->value[k]);
        set_loop(j, all.items, k);
        end = run(j, i + 1, ends);
    }
    j->n_vars = vars;
    j->frame = frame;
    j->leave = JINJA_GO;
    if (!n) {
        j->dead++;
        end = run(j, i + 1, ends);
        j->dead--;
    }
    if (end >= j->n_nodes)
        return end;
    open_tag(j, end);
    if (jinja_word(j, "else")) {
        j->dead += n > 0;
        end = run(j, end + 1, ends + 1);
        j->dead -= n > 0;
    }
    return end + 1;
}

static size_t run_set(Jinja *j, size_t i)
{
    static const char *const ends[] = {"endset", NULL};
    const JinjaValue name = jinja_name(j);
    JinjaValue member = {0};
    if (name.kind != JINJA_TEXT)
        jinja_fail(j, "a variable has no name");
    if (jinja_sign(j, "."))
        member = jinja_name(j);
    if (!jinja_sign(j, "=")) {
        close_tag(j);
        i++;
        jinja_set(j, name, captured(j, &i, ends));
        return i + 1;
    }
    const JinjaValue x = jinja_expression(j);
    close_tag(j);
    if (jinja_idle(j))
        return i + 1;
    if (member.kind == JINJA_TEXT) {
        const JinjaVar *v = jinja_find(j, name.text, name.len);
        if (!v || v->value.kind != JINJA_DICT)
            jinja_fail(j, "'%.*s' is no namespace", (int)name.len, name.text);
        else
            jinja_put(j, v->value.items, member, x);
    } else {
        jinja_set(j, name, x);
    }
    return i + 1;
}

static size_t run_macro(Jinja *j, size_t i)
{
    static const char *const ends[] = {"endmacro", NULL};
    const JinjaValue name = jinja_name(j);
    if (name.kind == JINJA_TEXT)
        jinja_set(j, name, (JinjaValue){.kind = JINJA_MACRO, .at = i});
    j->dead++;
    i = run(j, i + 1, ends);
    j->dead--;
    return i + 1;
}

/* (a, b=1): names get arguments, or what is said there. */
static void set_arguments(Jinja *j, const JinjaArgs *args)
{
    for (int place = 0; !j->failed; place++) {
        const JinjaValue name = jinja_name(j);
        if (name.kind != JINJA_TEXT)
            break;
        JinjaValue x = {0};
        char text[64];
        snprintf(text, sizeof text, "%.*s", (int)name.len, name.text);
        x = jinja_arg(args, place, text);
        if (jinja_sign(j, "=")) {
            const JinjaValue without = jinja_expression(j);
            x = x.kind == JINJA_UNDEFINED ? without : x;
        }
        jinja_set(j, name, x);
        if (!jinja_sign(j, ","))
            break;
    }
    if (!jinja_sign(j, ")"))
        jinja_fail(j, "the names of a macro's arguments do not end");
}

JinjaValue jinja_macro(Jinja *j, JinjaValue macro, const JinjaArgs *args)
{
    static const char *const ends[] = {"endmacro", NULL};
    const char *p = j->p, *end = j->end;
    const size_t frame = j->frame, base = j->base, vars = j->n_vars;
    size_t i = macro.at;
    if (!jinja_enter(j))
        return macro;
    j->depth++;
    open_tag(j, i++);
    jinja_word(j, "macro");
    jinja_name(j);
    j->frame = j->base = vars;
    if (!vars || !jinja_sign(j, "("))
        jinja_fail(j, "a macro has no arguments");
    set_arguments(j, args);
    const JinjaValue v = captured(j, &i, ends);
    j->depth--;
    j->n_vars = vars;
    j->frame = frame;
    j->base = base;
    j->p = p;
    j->end = end;
    return v;
}

static size_t run_statement(Jinja *j, size_t i)
{
    if (jinja_word(j, "if"))
        return run_if(j, i);
    if (jinja_word(j, "for"))
        return run_for(j, i);
    if (jinja_word(j, "set"))
        return run_set(j, i);
    if (jinja_word(j, "macro"))
        return run_macro(j, i);
    const bool stops = jinja_word(j, "break");
    if (stops || jinja_word(j, "continue")) {
        if (!jinja_idle(j))
            j->leave = stops ? JINJA_BREAK : JINJA_CONTINUE;
    } else if (!jinja_word(j, "generation") && !jinja_word(j, "endgeneration")) {
        const JinjaValue word = jinja_name(j);
        j->dead = 0; /* where it ends is not known */
        jinja_fail(j, "the statement '%.*s' is not known", (int)word.len,
                   word.text ? word.text : "");
        return j->n_nodes;
    }
    return i + 1;
}

/* Runs nodes up to the statement that begins with one of the words; NULL: to the end. */
static size_t run(Jinja *j, size_t i, const char *const *ends)
{
    int left = 0;
    j->depth++;
    while (i < j->n_nodes && !j->failed && jinja_enter(j)) {
        if (j->leave && !left && !jinja_idle(j))
            j->dead += left = 1; /* the rest of a loop's body */
        const JinjaNode *n = &j->nodes[i];
        open_tag(j, i);
        if (n->tag == JINJA_STATEMENT) {
            int end = 0;
            while (ends[end] && !jinja_word(j, ends[end]))
                end++;
            if (ends[end])
                break;
            i = run_statement(j, i);
            continue;
        }
        if (n->tag == JINJA_OUT) {
            put_out(j, n->text, (size_t)(n->end - n->text));
        } else {
            const JinjaValue v = jinja_shown(j, jinja_expression(j));
            close_tag(j);
            put_out(j, v.text, v.len);
        }
        i++;
    }
    if (i >= j->n_nodes && ends[0]) {
        j->dead = 0;
        jinja_fail(j, "'%s' is missing", ends[0]);
    } else if (left)
        j->dead--;
    j->depth--;
    return j->failed ? j->n_nodes : i;
}

/* ---- a conversation -------------------------------------------------------------------------- */

static void set_globals(Jinja *j, const JinjaChat *chat)
{
    static const char *const functions[] = {"raise_exception", "namespace", "range", "dict"};
    JinjaValue messages = jinja_list(j, false);
    for (int i = 0; i < chat->n; i++) {
        JinjaValue m = jinja_list(j, true);
        jinja_add(j, m.items, jinja_string("role"), jinja_string(chat->messages[i].role));
        jinja_add(j, m.items, jinja_string("content"), jinja_string(chat->messages[i].content));
        jinja_add(j, messages.items, (JinjaValue){0}, m);
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        jinja_set(j, jinja_string(functions[i]),
                  (JinjaValue){.kind = JINJA_FUNCTION, .text = functions[i]});
    if (chat->dated)
        jinja_set(j, jinja_string("strftime_now"),
                  (JinjaValue){.kind = JINJA_FUNCTION, .text = "strftime_now"});
    jinja_set(j, jinja_string("messages"), messages);
    jinja_set(j, jinja_string("add_generation_prompt"), jinja_bool(true));
    jinja_set(j, jinja_string("bos_token"), jinja_string(chat->bos));
    jinja_set(j, jinja_string("eos_token"), jinja_string(chat->eos));
    jinja_set(j, jinja_string("tools"), jinja_none());
    jinja_set(j, jinja_string("documents"), jinja_none());
}

const char *jinja_chat(Arena *a, const char *text, size_t len, const JinjaChat *chat, char why[160])
{
    static const char *const no_end[] = {NULL};
    Jinja j = {.a = a, .why = why};
    if (len && text[len - 1] == '\n')
        len--;
    *why = 0;
    read_nodes(&j, text, len);
    set_globals(&j, chat);
    if (!j.failed)
        run(&j, 0, no_end);
    put_out(&j, "", 1);
    return j.failed ? NULL : j.out;
}
