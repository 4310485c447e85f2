/* cli_options.c - flags and their values. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static bool wrong(const Options *o, const char *flag, const char *value, const char *why)
{
    return complain(INGOT_USAGE, "ingot %s: %s '%.200s': %s", o->command, flag, value, why) ==
           INGOT_OK;
}

/* A whole number of at most 18 digits. */
static bool number(const char *text, size_t n, int64_t *out)
{
    *out = 0;
    if (n == 0 || n > 18)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        *out = *out * 10 + (text[i] - '0');
    }
    return true;
}

/* NAME=N, NAME=LO..HI or NAME=OTHER */
static bool flag_dim(Options *o, const char *value)
{
    const char *equals = strchr(value, '='), *dots = equals ? strstr(equals, "..") : NULL;
    ingot_onnx_dim d = {0};
    if (!equals || equals == value || !equals[1])
        return wrong(o, "--dim", value, "NAME=N, NAME=LO..HI or NAME=OTHER is wanted");
    const char *lo = equals + 1;
    bool digit = *lo >= '0' && *lo <= '9';
    if (!digit && *lo != '-' && *lo != '.') {
        d.same_as = lo;
        d.name = arena_printf(o->a, "%.*s", (int)(equals - value), value);
        vec_push(o->a, o->dim, o->ndim, d);
        return true;
    }
    if (!number(lo, dots ? (size_t)(dots - lo) : strlen(lo), &d.lo) ||
        (dots && !number(dots + 2, strlen(dots + 2), &d.hi)))
        return wrong(o, "--dim", value, "a bound is no whole number within reach");
    if (!dots)
        d.hi = d.lo;
    if (d.hi < d.lo)
        return wrong(o, "--dim", value, "the second bound is less than the first");
    d.name = arena_printf(o->a, "%.*s", (int)(equals - value), value);
    vec_push(o->a, o->dim, o->ndim, d);
    return true;
}

/* NAME=VALUES */
static bool flag_bind(Options *o, const char *value)
{
    const char *equals = strchr(value, '=');
    if (!equals || equals == value || !equals[1])
        return wrong(o, "--bind", value, "NAME=VALUE is wanted");
    if (o->nbind >= 256)
        return wrong(o, "--bind", value, "too many of them");
    if (!o->bind_name) {
        o->bind_name = NEWN(o->a, const char *, 256);
        o->bind_text = NEWN(o->a, const char *, 256);
    }
    o->bind_name[o->nbind] = arena_printf(o->a, "%.*s", (int)(equals - value), value);
    o->bind_text[o->nbind++] = arena_strdup(o->a, equals + 1);
    return true;
}

/* 4096, 256k, 2M, 1G */
static bool size(const char *value, int64_t *out)
{
    size_t n = strlen(value);
    int shift = 0;
    if (n && strchr("kKmMgG", value[n - 1])) {
        char unit = value[--n];
        shift = unit == 'k' || unit == 'K' ? 10 : unit == 'm' || unit == 'M' ? 20 : 30;
    }
    int64_t v;
    if (!number(value, n, &v) || v == 0 || v > (INT64_MAX >> shift))
        return false;
    *out = v << shift;
    return true;
}

static bool flag_max_ram(Options *o, const char *value)
{
    return size(value, &o->compile.max_ram) ||
           wrong(o, "--max-ram", value, "a number of bytes is wanted: 4096, 256k, 2M");
}

static bool flag_string_bytes(Options *o, const char *value)
{
    return (size(value, &o->string_bytes) && o->string_bytes > 0) ||
           wrong(o, "--string-bytes", value, "a number of bytes is wanted: 64, 4k");
}

/* NAME=SIZE, or NAME */
static bool flag_memory(Options *o, const char *value)
{
    size_t n = strcspn(value, "=");
    ingot_memory m = {.name = arena_printf(o->a, "%.*s", (int)n, value)};
    if (value[n] && !size(value + n + 1, &m.bytes))
        return wrong(o, "--memory", value, "NAME=SIZE is wanted, a size like 4096, 256k, 2M");
    vec_push(o->a, o->memory, o->nmemory, m);
    o->compile.memories = o->memory;
    o->compile.nmemory = o->nmemory;
    return true;
}

static bool flag_threads(Options *o, const char *value)
{
    int64_t v;
    if (!number(value, strlen(value), &v) || v < 1 || v > 64)
        return wrong(o, "--threads", value, "a number from 1 to 64 is wanted");
    o->threads = (int)v;
    return true;
}

static bool flag_subnormals(Options *o, const char *value)
{
    o->keep_subnormals = !strcmp(value, "keep");
    return o->keep_subnormals || !strcmp(value, "flush") ||
           wrong(o, "--subnormals", value, "choose flush or keep");
}

static bool flag_seconds(Options *o, const char *value)
{
    char *end;
    o->seconds = strtod(value, &end);
    if (!*value || *end || !(o->seconds >= 0 && o->seconds <= 3600))
        return wrong(o, "--seconds", value, "a number from 0 to 3600 is wanted");
    return true;
}

static bool flag_tolerance(Options *o, const char *value)
{
    char *end;
    o->tolerance = strtod(value, &end);
    if (!*value || *end || !(o->tolerance >= 0 && o->tolerance <= 1e30))
        return wrong(o, "--tolerance", value, "a share of the range is wanted: 0, 1e-3, 0.5");
    return true;
}

/* DOMAIN:TYPE=FILE[:FUNCTION]; a file's name may hold colons, a function's may not */
static bool flag_op(Options *o, const char *value)
{
    size_t n = strcspn(value, "=");
    if (!n || !value[n] || !value[n + 1] || value[n + 1] == ':')
        return wrong(o, "--op", value, "DOMAIN:TYPE=FILE or DOMAIN:TYPE=FILE:FUNCTION is wanted");
    CustomFlag op = {.name = arena_printf(o->a, "%.*s", (int)n, value), .file = value + n + 1};
    const char *colon = strrchr(op.file, ':');
    if (colon && colon[1] && !strcmp(identifier(o->a, colon + 1), colon + 1)) {
        op.function = colon + 1;
        op.file = arena_printf(o->a, "%.*s", (int)(colon - op.file), op.file);
    }
    for (int i = 0; i < o->nop; i++)
        if (!strcmp(o->op[i].name, op.name))
            return wrong(o, "--op", value, "this operator is given twice");
    vec_push(o->a, o->op, o->nop, op);
    return true;
}

static bool flag_input(Options *o, const char *value)
{
    if (!o->input)
        o->input = NEWN(o->a, const char *, 1024);
    if (o->ninput == 1024)
        return wrong(o, "--input", value, "too many of them");
    o->input[o->ninput++] = value;
    return true;
}

static bool with_value(Options *o, const char *flag, const char *value)
{
    static const struct {
        const char *name;
        size_t offset; /* of a const char * in Options */
    } words[] = {
        {"-o", offsetof(Options, output)},
        {"--output-dir", offsetof(Options, output_dir)},
        {"--data", offsetof(Options, data)},
        {"--selftest", offsetof(Options, selftest)},
        {"--dump", offsetof(Options, dump)},
        {"--triple", offsetof(Options, triple)},
        {"--headers", offsetof(Options, headers)},
        {"--target", offsetof(Options, compile.target)},
        {"--name", offsetof(Options, compile.name)},
        {"--weights", offsetof(Options, compile.weights)},
        {"--sched", offsetof(Options, compile.sched)},
        {"--save-sched", offsetof(Options, compile.save_sched)},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strcmp(flag, words[i].name)) {
            memcpy((char *)o + words[i].offset, &value, sizeof value);
            return *value || !strcmp(flag, "--name") || wrong(o, flag, value, "the value is empty");
        }
    if (!strcmp(flag, "--dim"))
        return flag_dim(o, value);
    if (!strcmp(flag, "--op"))
        return flag_op(o, value);
    if (!strcmp(flag, "--bind"))
        return flag_bind(o, value);
    if (!strcmp(flag, "--max-ram"))
        return flag_max_ram(o, value);
    if (!strcmp(flag, "--string-bytes"))
        return flag_string_bytes(o, value);
    if (!strcmp(flag, "--memory"))
        return flag_memory(o, value);
    if (!strcmp(flag, "--subnormals"))
        return flag_subnormals(o, value);
    if (!strcmp(flag, "--threads"))
        return flag_threads(o, value);
    if (!strcmp(flag, "--seconds"))
        return flag_seconds(o, value);
    if (!strcmp(flag, "--tolerance"))
        return flag_tolerance(o, value);
    if (!strcmp(flag, "--input"))
        return flag_input(o, value);
    return true; /* of a command to come: --beam, --budget */
}

/* True if it is a flag without a value; then it has been carried out. */
static bool alone(Options *o, const char *flag)
{
    if (!strcmp(flag, "-O0"))
        o->compile.opt_level = 0;
    else if (!strcmp(flag, "-O2"))
        o->compile.opt_level = 2;
    else if (!strcmp(flag, "--json"))
        o->json = true;
    else if (!strcmp(flag, "--per-kernel"))
        o->per_kernel = true;
    else if (!strcmp(flag, "--no-bind"))
        o->no_bind = true;
    else if (!strcmp(flag, "--no-cache"))
        o->no_cache = true;
    else
        return false;
    return true;
}

static bool allowed(const char *flags, const char *flag)
{
    size_t n = strlen(flag);
    for (const char *p = flags; (p = strstr(p, flag)); p += n)
        if ((p == flags || p[-1] == ' ') && p[n] == ' ')
            return true;
    return false;
}

bool options_parse(Options *o, int argc, char **argv, const char *flags, bool takes_model)
{
    o->compile = (ingot_options){.struct_size = sizeof o->compile, .opt_level = 2};
    o->threads = 1;
    o->seconds = 1;
    o->tolerance = -1;
    for (int i = 2; i < argc; i++) {
        const char *flag = argv[i];
        char name[32];
        if (flag[0] != '-' || !flag[1]) {
            if (o->model || !takes_model)
                return complain(INGOT_USAGE, "ingot %s: unexpected argument '%.200s'", o->command,
                                flag) == INGOT_OK;
            o->model = flag;
            continue;
        }
        if (!strcmp(flag, "--help") || !strcmp(flag, "-h")) {
            o->help = true;
            return true;
        }
        if (!strncmp(flag, "-v", 2) && strspn(flag + 1, "v") == strlen(flag + 1)) {
            o->compile.verbose += (int)strlen(flag + 1);
            continue;
        }
        const char *equals = flag[1] == '-' ? strchr(flag, '=') : NULL; /* --name=value */
        snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - flag) : 31, flag);
        if (!allowed(flags, name))
            return complain(INGOT_USAGE, "ingot %s: unknown option '%.200s'", o->command, flag) ==
                   INGOT_OK;
        if (!equals && alone(o, name))
            continue;
        const char *value = equals ? equals + 1 : i + 1 < argc ? argv[++i] : NULL;
        if (!value)
            return complain(INGOT_USAGE, "ingot %s: %s needs a value", o->command, name) ==
                   INGOT_OK;
        if (!with_value(o, name, value))
            return false;
    }
    if (takes_model && (!o->model || !*o->model))
        return complain(INGOT_USAGE, "ingot %s: the model file is missing", o->command) == INGOT_OK;
    o->compile.source = o->model;
    return true;
}
