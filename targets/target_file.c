/* target_file.c - a target in a file of its own: `ingot targets --probe` writes such files,
 * `--target FILE` reads them (docs/targets.md). Lines are "key = value" or begin with '#'. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "targets.h"

enum { MAX_FILE = 1 << 16 };

bool target_is_file(const char *name)
{
    size_t n = strlen(name);
    return strchr(name, '/') || (n > 7 && !strcmp(name + n - 7, ".target"));
}

typedef struct {
    Target *t;
    Arena *a;
    const char *file, *why;
    ingot_status status;
    int line;
    const char *machine;
    bool prefer_ram;
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

static bool yes(Reading *r, const char *value)
{
    if (strcmp(value, "yes") && strcmp(value, "no"))
        wrong(r, INGOT_INVALID, arena_printf(r->a, "'%.40s': yes or no is wanted", value));
    return !strcmp(value, "yes");
}

static void key(Reading *r, const char *name, const char *value)
{
    static const char *const told[] = {"probe", "version", "pointer",    "float_abi",
                                       "simd",  "fma",     "intrinsics", "instructions"};
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
    } else if (!strcmp(name, "lanes")) {
        t->machine.lanes = whole(r, value, 0, 16);
        if (t->machine.lanes & (t->machine.lanes - 1) || t->machine.lanes == 1 ||
            t->machine.lanes == 2)
            wrong(r, INGOT_INVALID, "lanes are 0, 4, 8 or 16");
    } else if (!strcmp(name, "registers")) {
        t->machine.registers = whole(r, value, 0, 64);
    } else if (!strcmp(name, "prefer")) {
        r->prefer_ram = !strcmp(value, "ram");
        if (!r->prefer_ram && strcmp(value, "time"))
            wrong(r, INGOT_INVALID, arena_printf(r->a, "'%.40s': ram or time is wanted", value));
    } else if (!strcmp(name, "dot")) {
        t->machine.dot = yes(r, value);
    } else if (!strcmp(name, "int")) {
        if (whole(r, value, 8, 64) < 32)
            wrong(r, INGOT_UNSUPPORTED, "an int of fewer than 32 bits: kernels count with it");
    } else if (!strcmp(name, "endian")) {
        if (strcmp(value, "little"))
            wrong(r, INGOT_UNSUPPORTED,
                  "only machines that store the low byte first are supported");
    } else {
        for (size_t i = 0; i < sizeof told / sizeof *told; i++)
            if (!strcmp(name, told[i]))
                return;
        wrong(r, INGOT_INVALID, arena_printf(r->a, "unknown key '%.40s'", name));
    }
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
    key(r, s, value);
}

const char *target_read(Target *t, Arena *a, const char *file, ingot_status *status)
{
    Reading r = {.t = t, .a = a, .file = file, .status = INGOT_OK, .prefer_ram = true};
    char *text = arena_alloc(a, MAX_FILE + 1);
    FILE *f = fopen(file, "rb");
    size_t n = f ? fread(text, 1, MAX_FILE, f) : 0;
    if (!f || ferror(f)) {
        *status = INGOT_IO;
        r.why = arena_printf(a, "%s: %s", file, strerror(errno));
    }
    if (f)
        fclose(f);
    text[n] = 0;
    t->flags = "";
    t->machine.lanes = t->machine.registers = 0;
    t->machine.dot = t->machine.any_sign = t->machine.pairs = false;
    for (char *s = text, *next; s && !r.why; s = next) {
        r.line++;
        next = strchr(s, '\n');
        if (next)
            *next++ = 0;
        line(&r, s);
    }
    if (!r.why && !r.machine)
        wrong(&r, INGOT_INVALID,
              "there is no line 'machine = ...': `ingot targets --probe` writes "
              "target files");
    t->triple = r.machine;
    target_costs(t, false, r.prefer_ram);
    if (r.why && r.status != INGOT_OK)
        *status = r.status;
    return r.why;
}
