/* figures.c - the figures of a machine as text, "level1.bytes = 32768": what target files say, and
 * what `ingot targets --machine` prints. The list is figures.def. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "targets.h"
#include "tc.h"

#define OF_KIND(path)                     \
    _Generic(((Machine *)0)->path, double \
             : FIGURE_DOUBLE, int         \
             : FIGURE_INT, uint64_t       \
             : FIGURE_UNITS, bool         \
             : FIGURE_BOOL)
#define ROW(key, path, least, most, of)                                                            \
    {                                                                                              \
        key, #path, offsetof(Machine, path), sizeof((Machine *)0)->path, OF_KIND(path), of, least, \
            most                                                                                   \
    }

const Figure figures[] = {
#define FIGURE(key, path, least, most) ROW(key, path, least, most, OF_ALL),
#define CPU_FIGURE(key, path, least, most) ROW(key, path, least, most, OF_CPUS),
#define GPU_FIGURE(key, path, least, most) ROW(key, path, least, most, OF_GPUS),
#include "figures.def"
    {NULL, NULL, 0, 0, FIGURE_DOUBLE, OF_ALL, 0, 0}};

bool figure_is_of(const Figure *f, bool gpu)
{
    return f->of == OF_ALL || (f->of == OF_GPUS) == gpu;
}

const Figure *figure_find(const char *key)
{
    for (const Figure *f = figures; f->key; f++)
        if (!strcmp(f->key, key))
            return f;
    return NULL;
}

const char *figure_near(const char *key)
{
    const char *near = NULL;
    int best = 3;
    for (const Figure *f = figures; f->key; f++)
        near = closer(key, f->key, near, &best);
    return near;
}

/* "amx.i8 amx.bf16": the bits of these units; or "none". */
static const char *units_read(Arena *a, const char *value, uint64_t *units)
{
    *units = 0;
    if (!strcmp(value, "none"))
        return NULL;
    for (const char *at = value; *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        int i = 0;
        while (i < TC_COUNT && (strlen(tc_units[i].name) != n || strncmp(tc_units[i].name, at, n)))
            i++;
        if (i == TC_COUNT) {
            StrBuf sb = {0};
            sb_printf(&sb, "there is no unit '%.*s': none, or some of", n < 40 ? (int)n : 40, at);
            for (i = 0; i < TC_COUNT; i++)
                sb_printf(&sb, " %s", tc_units[i].name);
            return sb_take(&sb, a);
        }
        *units |= UINT64_C(1) << i;
        at += n;
    }
    return *units ? NULL : "names of units are wanted, or none";
}

static const char *number_read(Arena *a, const Figure *f, const char *value, double *x)
{
    char *end;
    *x = strtod(value, &end);
    if (end != value && !*end && *x >= f->least && *x <= f->most &&
        (f->kind == FIGURE_DOUBLE || *x == floor(*x)))
        return NULL;
    return arena_printf(a, "'%.40s': %s is a %snumber in %.12g..%.12g", value, f->key,
                        f->kind == FIGURE_DOUBLE ? "" : "whole ", f->least, f->most);
}

const char *figure_read(Machine *m, Arena *a, const Figure *f, const char *value)
{
    unsigned char *at = (unsigned char *)m + f->at;
    double x = 0;
    uint64_t units;
    const char *why = NULL;
    if (f->kind == FIGURE_UNITS) {
        why = units_read(a, value, &units);
        if (!why)
            memcpy(at, &units, sizeof units);
        return why;
    }
    if (f->kind == FIGURE_BOOL) {
        const bool yes = !strcmp(value, "yes");
        if (!yes && strcmp(value, "no") != 0)
            return arena_printf(a, "'%.40s': %s is yes or no", value, f->key);
        memcpy(at, &yes, sizeof yes);
        return NULL;
    }
    why = number_read(a, f, value, &x);
    const int n = why ? 0 : (int)(f->kind == FIGURE_INT ? x : 0);
    if (!why)
        memcpy(at, f->kind == FIGURE_INT ? (const void *)&n : &x, f->size);
    return why;
}

/* The fewest digits that read back as the same number. */
static void number_print(StrBuf *sb, double x)
{
    char text[40];
    const bool whole = x == floor(x) && x < 1e15;
    snprintf(text, sizeof text, "%.0f", x);
    for (int digits = 1; digits <= 17 && !whole; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    sb_puts(sb, text);
}

static void units_print(StrBuf *sb, uint64_t units)
{
    if (!units)
        sb_puts(sb, " none");
    for (int i = 0; i < TC_COUNT; i++)
        if (units >> i & 1)
            sb_printf(sb, " %s", tc_units[i].name);
}

void figures_print(StrBuf *sb, const Machine *m, bool gpu)
{
    for (const Figure *f = figures; f->key; f++) {
        const unsigned char *at = (const unsigned char *)m + f->at;
        double x;
        int n;
        uint64_t units;
        bool yes;
        if (!figure_is_of(f, gpu))
            continue;
        sb_printf(sb, "%s =%s", f->key, f->kind == FIGURE_UNITS ? "" : " ");
        switch (f->kind) {
        case FIGURE_DOUBLE:
            memcpy(&x, at, sizeof x);
            number_print(sb, x);
            break;
        case FIGURE_INT:
            memcpy(&n, at, sizeof n);
            sb_printf(sb, "%d", n);
            break;
        case FIGURE_UNITS:
            memcpy(&units, at, sizeof units);
            units_print(sb, units);
            break;
        case FIGURE_BOOL:
            memcpy(&yes, at, sizeof yes);
            sb_puts(sb, yes ? "yes" : "no");
            break;
        }
        sb_puts(sb, "\n");
    }
}

const char *figures_wrong(const Machine *m, bool gpu)
{
    int n = 0;
    while (n < LEVELS - 1 && m->level[n].bytes > 0)
        n++;
    for (int i = 0; i <= n; i++)
        if (m->level[i].rate <= 0)
            return i == 1   ? "level2.rate has to be above 0: level1 does not hold all"
                   : i == 2 ? "level3.rate has to be above 0: level2 does not hold all"
                            : "level4.rate has to be above 0: level3 does not hold all";
    if (m->lanes & (m->lanes - 1) || m->lanes == 1 || m->lanes == 2)
        return "lanes are 0, 4, 8 or 16";
    if (m->subgroup & (m->subgroup - 1) || m->access & (m->access - 1) ||
        (gpu && m->warp & (m->warp - 1)))
        return "subgroup, access and warp are powers of two";
    if (gpu && (m->group < 2 * m->warp || m->items < m->warp))
        return "group is at least two warps, and items at least one";
    return NULL;
}
