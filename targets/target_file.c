/* target_file.c - a target in a file of its own: `ingot targets --probe` writes such files,
 * `--target FILE` reads them (docs/targets.md). Lines are "key = value" or begin with '#'. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cost.h"
#include "targets.h"

enum { MAX_FILE = 1 << 16 };

bool target_is_file(const char *name)
{
    size_t n = strlen(name);
    return strchr(name, '/') || (n > 7 && !strcmp(name + n - 7, ".target"));
}

enum { MAX_LINES = 512 };
/* "key = value" */
typedef struct {
    const char *key, *value;
    int line;
} Pair;
typedef struct {
    Target *t;
    Arena *a;
    const char *file, *why;
    ingot_status status;
    int line;
    Pair pair[MAX_LINES];
    int npair;
    const char *machine, *base;
    bool prefers, prefer_ram; /* it says so; what */
} Reading;

static void wrong(Reading *r, ingot_status status, const char *what)
{
    if (!r->why) {
        r->why = arena_printf(r->a, "%s:%d: %s", r->file, r->line, what);
        r->status = status;
    }
}

static int whole(Reading *r, const char *value, int least, int most)
{
    char *end;
    long v = strtol(value, &end, 10);
    if (end == value || *end || v < least || v > most)
        wrong(r, INGOT_INVALID,
              arena_printf(r->a, "'%.40s': a number in %d..%d is wanted", value, least, most));
    return (int)v;
}

/* Lines that are for people, and the one that was read before. */
static bool is_told(const char *name)
{
    static const char *const told[] = {"probe", "version",    "pointer",      "float_abi", "simd",
                                       "fma",   "intrinsics", "instructions", "target"};
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        if (!strcmp(name, told[i]))
            return true;
    return false;
}

static void unknown_key(Reading *r, const char *name)
{
    const char *near = figure_near(name);
    wrong(r, INGOT_INVALID,
          near ? arena_printf(r->a, "unknown key '%.40s'; did you mean %s?", name, near)
               : arena_printf(r->a,
                              "unknown key '%.40s'; `ingot targets --machine NAME` prints all "
                              "figures of a machine",
                              name));
}

/* What is no figure. */
static void key(Reading *r, const char *name, const char *value)
{
    Target *t = r->t;
    if (!strcmp(name, "compiler")) {
        t->cc = value;
    } else if (!strcmp(name, "archiver")) {
        t->ar = value;
    } else if (!strcmp(name, "flags")) {
        t->flags = value;
    } else if (!strcmp(name, "machine")) {
        r->machine = value;
        t->bare = strstr(value, "none") || strstr(value, "unknown-elf");
    } else if (!strcmp(name, "prefer")) {
        r->prefers = true;
        r->prefer_ram = !strcmp(value, "ram");
        if (!r->prefer_ram && strcmp(value, "time"))
            wrong(r, INGOT_INVALID, arena_printf(r->a, "'%.40s': ram or time is wanted", value));
    } else if (!strcmp(name, "int")) {
        if (whole(r, value, 8, 64) < 32)
            wrong(r, INGOT_UNSUPPORTED, "an int of fewer than 32 bits: kernels count with it");
    } else if (!strcmp(name, "endian")) {
        if (strcmp(value, "little"))
            wrong(r, INGOT_UNSUPPORTED,
                  "only machines that store the low byte first are supported");
    } else if (!figure_find(name) && !is_told(name)) {
        unknown_key(r, name);
    }
}

static void take_figure(Reading *r, const Pair *p)
{
    const Figure *f = figure_find(p->key);
    const char *why = NULL;
    if (f && !figure_is_of(f, r->t->gpu))
        why = arena_printf(r->a, "'%s' is a figure of %s", p->key,
                           f->of == OF_GPUS ? "GPUs: a line 'target = cuda:..' is wanted"
                                            : "CPUs, and this is a GPU");
    else if (f)
        why = figure_read(&r->t->machine, r->a, f, p->value);
    r->line = p->line;
    if (why)
        wrong(r, INGOT_INVALID, why);
    else if (f && (why = figures_wrong(&r->t->machine, r->t->gpu)) && !strcmp(p->key, "lanes"))
        wrong(r, INGOT_INVALID, why);
}

/* "target = cuda:sm_90a": whose figures count where no line has another one. */
static void take_base(Reading *r)
{
    TargetName *list;
    for (int i = 0; i < r->npair && !r->why; i++) {
        if (strcmp(r->pair[i].key, "target") != 0)
            continue;
        r->line = r->pair[i].line;
        r->base = r->pair[i].value;
        if (target_is_file(r->base) || target_list(r->a, r->base, &list) > 1)
            wrong(
                r, INGOT_INVALID,
                arena_printf(r->a, "'%.80s': the name of one target is wanted, no file", r->base));
        else if (!target_find(r->base))
            wrong(r, INGOT_INVALID, arena_printf(r->a, "target '%.80s': unknown", r->base));
        if (r->why)
            return;
        const char *why = target_make(r->t, r->a, r->base, &r->status);
        if (why)
            wrong(r, r->status == INGOT_USAGE ? INGOT_INVALID : r->status,
                  arena_printf(r->a, "target '%.80s': %s", r->base, why));
        if (!why && !r->t->base) /* of "native" what that is */
            r->t->base = r->base;
    }
}

/* Lanes and registers say what kind of core it is, from which all other figures are. */
static bool makes_kind(const char *name)
{
    return !strcmp(name, "lanes") || !strcmp(name, "registers") || !strcmp(name, "dot");
}

static void take_pairs(Reading *r)
{
    take_base(r);
    for (int i = 0; i < r->npair && !r->why; i++) {
        r->line = r->pair[i].line;
        key(r, r->pair[i].key, r->pair[i].value);
        if (!r->base && makes_kind(r->pair[i].key))
            take_figure(r, &r->pair[i]);
    }
    if (r->why)
        return;
    if (!r->machine && !r->base)
        wrong(r, INGOT_INVALID,
              "there is no line 'machine = ...' and none 'target = ...': `ingot targets --probe` "
              "and `--machine` write target files");
    if (!r->base)
        target_costs(r->t, false, r->prefer_ram);
    else if (r->prefers)
        r->t->machine.byte = r->prefer_ram ? DEAR : 0;
    for (int i = 0; i < r->npair && !r->why; i++)
        if (r->base || !makes_kind(r->pair[i].key))
            take_figure(r, &r->pair[i]);
    const char *why = r->why ? NULL : figures_wrong(&r->t->machine, r->t->gpu);
    for (int i = 0; why && i < r->npair; i++)
        if (!strncmp(r->pair[i].key, why, strlen(r->pair[i].key)))
            r->line = r->pair[i].line;
    if (why)
        wrong(r, INGOT_INVALID, why);
}

static void line(Reading *r, char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    if (!*s || *s == '#')
        return;
    char *value = strchr(s, '='), *end = value;
    if (!value) {
        wrong(r, INGOT_INVALID, "'key = value' is wanted");
        return;
    }
    while (end > s && isspace((unsigned char)end[-1]))
        end--;
    *end = 0;
    for (value++; isspace((unsigned char)*value);)
        value++;
    for (end = value + strlen(value); end > value && isspace((unsigned char)end[-1]);)
        *--end = 0;
    if (r->npair == MAX_LINES) {
        wrong(r, INGOT_INVALID, "there are too many lines");
        return;
    }
    r->pair[r->npair++] = (Pair){s, value, r->line};
}

const char *target_read(Target *t, Arena *a, const char *file, ingot_status *status)
{
    Reading *r = NEW(a, Reading);
    *r = (Reading){.t = t, .a = a, .file = file, .status = INGOT_OK, .prefer_ram = true};
    char *text = arena_alloc(a, MAX_FILE + 1);
    FILE *f = fopen(file, "rb");
    size_t n = f ? fread(text, 1, MAX_FILE, f) : 0;
    if (!f || ferror(f)) {
        r->status = INGOT_IO;
        r->why = arena_printf(a, "%s: %s", file, strerror(errno));
    }
    if (f)
        fclose(f);
    text[n] = 0;
    *t = *target_find("c");
    t->flags = "";
    t->machine.lanes = t->machine.registers = 0;
    t->machine.dot = t->machine.any_sign = t->machine.pairs = t->machine.asks = t->machine.tables =
        false;
    t->machine.dot_bf16 = t->machine.dot_i16 = t->machine.dot_terms = 0;
    for (char *s = text, *next; s && !r->why; s = next) {
        r->line++;
        next = strchr(s, '\n');
        if (next)
            *next++ = 0;
        line(r, s);
    }
    if (!r->why)
        take_pairs(r);
    if (r->machine)
        t->triple = r->machine;
    if (r->why)
        *status = r->status;
    return r->why;
}

/* ---- written --------------------------------------------------------------------------------- */

const char *target_print(StrBuf *sb, Arena *a, const char *name, ingot_status *status)
{
    Target t;
    const char *why = target_make(&t, a, name, status);
    if (why)
        return why;
    sb_printf(sb, "# a target of ingot (docs/targets.md): the figures of %s\n", name);
    if (t.base || !target_is_file(name))
        sb_printf(sb, "target = %s\n", t.base ? t.base : target_everywhere(a, name));
    if (target_is_file(name)) { /* else it is the base's */
        const struct {
            const char *key, *value;
        } lines[] = {
            {"compiler", t.cc}, {"archiver", t.ar}, {"flags", t.flags}, {"machine", t.triple}};
        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
            if (lines[i].value)
                sb_printf(sb, "%s = %s\n", lines[i].key, lines[i].value);
    }
    if (!strcmp(name, "c:native"))
        sb_printf(sb, "# cores: %d; the same plan for any number of threads\n",
                  native_caches().cores);
    figures_print(sb, &t.machine, t.gpu);
    return NULL;
}
