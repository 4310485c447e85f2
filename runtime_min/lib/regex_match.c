/*
 * regex_match.c - whether a regular expression matches the whole of each string (ONNX
 * RegexFullMatch).
 *
 * The expression is a program for a nondeterministic automaton; all of its states are followed at
 * once (Thompson 1968; Pike's machine without captures), so the time is characters times
 * instructions whatever the expression.
 *
 *   in      0: strings [dims]
 *           1: i32, the program: n, then n instructions of three numbers, then pairs of characters
 *              MATCH 0 0     the end
 *              JUMP a 0      goes on at instruction a
 *              FORK a b      goes on at both
 *              RANGES p k    a character in one of the k ranges (first, last) from place p on
 *              OUTSIDE p k   a character in none of them
 *              AT what 0     nothing, at: 0 the beginning, 1 the end, 2 the beginning of a line,
 *                            3 the end of one, 4 the edge of an ASCII word, 5 no edge
 *   out     0: bool [dims]
 *   scratch IGRT_REGEX_MATCH_SCRATCH(n)
 */
#include "igrt_text.h"

enum { MATCH, JUMP, FORK, RANGES, OUTSIDE, AT };
enum { AT_BEGIN, AT_END, AT_LINE_BEGIN, AT_LINE_END, AT_EDGE, AT_NO_EDGE };

typedef struct RegexMachine {
    const int32_t *code;
    int32_t n;
    int32_t *seen;  /* by instruction: the step at which it was reached last */
    int32_t *stack; /* at most n: an instruction is marked when it is pushed */
} RegexMachine;

static int is_word(int32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

/* Before the first character and after the last there is a -1000, which is in no class. */
enum { NONE = -1000 };

static int holds(int32_t what, int32_t before, int32_t after)
{
    switch (what) {
    case AT_BEGIN: return before == NONE;
    case AT_END: return after == NONE;
    case AT_LINE_BEGIN: return before == NONE || before == '\n';
    case AT_LINE_END: return after == NONE || after == '\n';
    case AT_EDGE: return is_word(before) != is_word(after);
    default: return is_word(before) == is_word(after);
    }
}

/* Adds instruction `from` to the list, and all that it leads to without a character. */
static int32_t reach(const RegexMachine *m, int32_t from, int32_t step, int32_t before,
                     int32_t after, int32_t *list, int32_t count)
{
    int32_t depth = 0;
    if (m->seen[from] == step)
        return count;
    m->seen[from] = step;
    m->stack[depth++] = from;
    for (int32_t taken = 0; depth && taken < m->n; taken++) { /* each instruction is pushed once */
        const int32_t at = m->stack[--depth], *i = m->code + 3 * at;
        int32_t next[2], n_next = 0;
        if (i[0] == JUMP || i[0] == FORK)
            next[n_next++] = i[1];
        if (i[0] == FORK)
            next[n_next++] = i[2];
        if (i[0] == AT && holds(i[1], before, after))
            next[n_next++] = at + 1;
        if (i[0] == MATCH || i[0] == RANGES || i[0] == OUTSIDE)
            list[count++] = at;
        for (int32_t k = 0; k < n_next; k++)
            if (m->seen[next[k]] != step) {
                m->seen[next[k]] = step;
                m->stack[depth++] = next[k];
            }
    }
    return count;
}

static int takes(const RegexMachine *m, const int32_t *i, int32_t c)
{
    const int32_t *range = m->code + i[1];
    for (int32_t k = 0; k < i[2]; k++)
        if (c >= range[2 * k] && c <= range[2 * k + 1])
            return i[0] == RANGES;
    return i[0] == OUTSIDE;
}

static int32_t peek(const char *s)
{
    return *s ? igrt_text_next(&s) : NONE;
}

static int matches(const RegexMachine *m, const char *s, int32_t *now, int32_t *next)
{
    int32_t step = 0;
    for (int32_t i = 0; i < m->n; i++)
        m->seen[i] = -1;
    int32_t n_now = reach(m, 0, step, NONE, peek(s), now, 0);
    for (size_t taken = 0, most = strlen(s); taken < most && *s && n_now; taken++) {
        const int32_t c = igrt_text_next(&s), after = peek(s);
        int32_t n_next = 0;
        step++;
        for (int32_t k = 0; k < n_now; k++) {
            const int32_t *i = m->code + 3 * now[k];
            if (i[0] != MATCH && takes(m, i, c))
                n_next = reach(m, now[k] + 1, step, c, after, next, n_next);
        }
        int32_t *swap = now;
        now = next;
        next = swap;
        n_now = n_next;
    }
    for (int32_t k = 0; k < n_now; k++)
        if (m->code[3 * now[k]] == MATCH)
            return 1;
    return 0;
}

IGRT_LIB(regex_match)
{
    (void)attr_i, (void)attr_f, (void)counts;
    if (nin != 2 || nout != 1 || in[0].dtype != IGRT_STRING || in[1].dtype != IGRT_I32 ||
        out->dtype != IGRT_BOOL)
        return IGRT_ERR_UNSUPPORTED;
    const int32_t *program = in[1].data, n = program[0];
    if (scratch_bytes < IGRT_REGEX_MATCH_SCRATCH(n))
        return IGRT_ERR_SCRATCH;
    int32_t *room = scratch;
    const RegexMachine m = {program + 1, n, room, room + n};
    const int64_t count = igrt_lib_numel(in, 0, in->rank);
    const char *const *x = in->data;
    uint8_t *y = out->data;
    for (int64_t i = 0; i < count; i++)
        y[i] = (uint8_t)matches(&m, igrt_text_of(x[i]), room + 2 * n, room + 3 * n);
    return IGRT_OK;
}
