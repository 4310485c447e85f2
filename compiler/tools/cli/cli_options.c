/* cli_options.c - the command line's arguments, by the table of options (cli_table.c). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static bool wrong(const Options *o, const char *flag, const char *value, const char *why)
{
    return complain(INGOT_USAGE, "ingot %s: %s '%.200s': %s", o->command, flag, value, why) ==
           INGOT_OK;
}

/* A bound: of a tensor's value it may be less than 0. */
static bool bound_number(const char *text, size_t n, int64_t *out)
{
    const bool less = n && *text == '-';
    if (!option_number(text + less, n - less, out))
        return false;
    *out = less ? -*out : *out;
    return true;
}

/* NAME=N, NAME=LO..HI or NAME=OTHER */
bool option_dim(Options *o, const char *value)
{
    const char *equals = strchr(value, '='), *dots = equals ? strstr(equals, "..") : NULL;
    ingot_model_dim d = {0};
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
    if (!bound_number(lo, dots ? (size_t)(dots - lo) : strlen(lo), &d.lo) ||
        (dots && !bound_number(dots + 2, strlen(dots + 2), &d.hi)))
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
bool option_bind(Options *o, const char *value)
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

bool option_max_ram(Options *o, const char *value)
{
    return option_size(value, &o->compile.max_ram) ||
           wrong(o, "--max-ram", value, "a number of bytes is wanted: 4096, 256k, 2M");
}

bool option_max_flash(Options *o, const char *value)
{
    return option_size(value, &o->max_flash) ||
           wrong(o, "--max-flash", value, "a number of bytes is wanted: 65536, 256k, 2M");
}

bool option_max_vram(Options *o, const char *value)
{
    return option_size(value, &o->compile.max_vram) ||
           wrong(o, "--max-vram", value, "a number of bytes is wanted: 512M, 8G");
}

bool option_devices(Options *o, const char *value)
{
    int64_t n;
    const bool good = option_number(value, strlen(value), &n) && n >= 1 && n <= MOST_DEVICES;
    o->compile.devices = good ? (int)n : 0;
    return good || wrong(o, "--devices", value, "a number from 1 to 16 is wanted");
}

bool option_cache_bytes(Options *o, const char *value)
{
    return option_size(value, &o->cache_bytes) ||
           wrong(o, "--size", value, "a number of bytes is wanted: 500M, 2G");
}

bool option_string_bytes(Options *o, const char *value)
{
    return (option_size(value, &o->string_bytes) && o->string_bytes > 0) ||
           wrong(o, "--string-bytes", value, "a number of bytes is wanted: 64, 4k");
}

bool option_kv(Options *o, const char *value)
{
    o->cache = !strcmp(value, "f16") ? INGOT_F16 : !strcmp(value, "q8") ? INGOT_I8 : INGOT_F32;
    return o->cache != INGOT_F32 || !strcmp(value, "f32") ||
           wrong(o, "--kv", value, "f16, f32 or q8 is wanted");
}

bool option_slots(Options *o, const char *value)
{
    char *end;
    const long n = strtol(value, &end, 10);
    o->slots = (int)n;
    return (end != value && !*end && n >= 1 && n <= 64) ||
           wrong(o, "--slots", value, "a number from 1 to 64 is wanted");
}

/* FORM, or NAME=FORM; a name may hold '=', a form may not */
bool option_io(Options *o, const char *value)
{
    const char *equals = strrchr(value, '=');
    if (equals == value || (equals && !equals[1]))
        return wrong(o, "--io", value, "FORM or NAME=FORM is wanted: int8, input=int8");
    const IoFlag io = {.name =
                           equals ? arena_printf(o->a, "%.*s", (int)(equals - value), value) : NULL,
                       .form = equals ? equals + 1 : value};
    vec_push(o->a, o->io, o->nio, io);
    return true;
}

/* INPUT=OUTPUT */
bool option_state(Options *o, const char *value)
{
    const char *equals = strchr(value, '=');
    if (!equals || equals == value || !equals[1])
        return wrong(o, "--state", value, "INPUT=OUTPUT is wanted");
    ingot_model_state s = {arena_printf(o->a, "%.*s", (int)(equals - value), value), equals + 1};
    vec_push(o->a, o->state, o->nstate, s);
    return true;
}

/* NAME=SIZE, or NAME */
bool option_memory(Options *o, const char *value)
{
    size_t n = strcspn(value, "=");
    ingot_memory m = {.name = arena_printf(o->a, "%.*s", (int)n, value)};
    if (value[n] && !option_size(value + n + 1, &m.bytes))
        return wrong(o, "--memory", value, "NAME=SIZE is wanted, a size like 4096, 256k, 2M");
    vec_push(o->a, o->memory, o->nmemory, m);
    o->compile.memories = o->memory;
    o->compile.nmemory = o->nmemory;
    return true;
}

static bool threads(const char *text, size_t n, int *count)
{
    int64_t v;
    const bool good = option_number(text, n, &v) && v >= 1 && v <= 64;
    *count = good ? (int)v : 0;
    return good;
}

bool option_threads(Options *o, const char *value)
{
    if (!threads(value, strlen(value), &o->threads))
        return wrong(o, "--threads", value, "a number from 1 to 64 is wanted");
    o->compile.threads = o->threads;
    return true;
}

bool option_thread_counts(Options *o, const char *value)
{
    o->ncount = 0;
    for (const char *at = value;; at++) {
        const size_t n = strcspn(at, ",");
        if (o->ncount == MOST_COUNTS || !threads(at, n, &o->count[o->ncount++]))
            return wrong(o, "--threads", value, "numbers from 1 to 64 are wanted, like 1,4");
        at += n;
        if (!*at)
            return true;
    }
}

bool option_beam(Options *o, const char *value)
{
    int64_t v;
    if (!option_number(value, strlen(value), &v) || v < 1 || v > 32)
        return wrong(o, "--beam", value, "a number from 1 to 32 is wanted");
    o->beam = (int)v;
    return true;
}

bool option_lot(Options *o, const char *value)
{
    int64_t v;
    if (!option_number(value, strlen(value), &v) || v > 200)
        return wrong(o, "--lot", value, "a number up to 200 is wanted");
    o->lot = (int)v;
    return true;
}

/* 90, 90s, 10m, 2h */
bool option_budget(Options *o, const char *value)
{
    char *end;
    double n = strtod(value, &end);
    double unit = !*end || !strcmp(end, "s") ? 1
                  : !strcmp(end, "m")        ? 60
                  : !strcmp(end, "h")        ? 3600
                                             : 0;
    if (end == value || unit == 0 || !(n >= 0 && n * unit <= 30 * 24 * 3600.0))
        return wrong(o, "--budget", value, "a time is wanted: 90s, 10m, 2h");
    o->budget = n * unit;
    return true;
}

bool option_subnormals(Options *o, const char *value)
{
    o->keep_subnormals = !strcmp(value, "keep");
    return o->keep_subnormals || !strcmp(value, "flush") ||
           wrong(o, "--subnormals", value, "choose flush or keep");
}

bool option_rounding(Options *o, const char *value)
{
    const bool xnnpack = !strcmp(value, "xnnpack");
    o->rounding = xnnpack ? INGOT_ROUNDING_XNNPACK : INGOT_ROUNDING_REFERENCE;
    return xnnpack || !strcmp(value, "reference") ||
           wrong(o, "--rounding", value, "choose reference or xnnpack");
}

bool option_precision(Options *o, const char *value)
{
    static const char *const name[] = {
        [INGOT_PRECISION_F32] = "f32",       [INGOT_PRECISION_BF16] = "bf16",
        [INGOT_PRECISION_BF16X3] = "bf16x3", [INGOT_PRECISION_BF16X6] = "bf16x6",
        [INGOT_PRECISION_F16] = "f16",       [INGOT_PRECISION_TF32] = "tf32",
        [INGOT_PRECISION_1E5] = "1e-5",      [INGOT_PRECISION_Q8] = "q8",
        [INGOT_PRECISION_Q16] = "q16",       [INGOT_PRECISION_NARROW] = "narrow",
        [INGOT_PRECISION_FP8] = "fp8",       [INGOT_PRECISION_FP8_FAST] = "fp8-fast"};
    const size_t n = strcspn(value, ":");
    const char *nodes = value[n] ? value + n + 1 : NULL;
    if (nodes && !*nodes)
        return wrong(o, "--precision", value, "WHAT:GLOB is wanted, as in f32:/classifier/*");
    for (int i = 0; i < (int)(sizeof name / sizeof *name); i++) {
        if (strlen(name[i]) != n || strncmp(value, name[i], n) != 0)
            continue;
        if (nodes && (i == INGOT_PRECISION_1E5 || i == INGOT_PRECISION_FP8_FAST))
            return wrong(o, "--precision", value,
                         i == INGOT_PRECISION_1E5
                             ? "1e-5 is for all nodes of a model, or none"
                             : "fp8-fast is for all nodes of a model, or none: use fp8");
        if (nodes) {
            const NodePrecision one = {.nodes = nodes, .precision = (ingot_precision)i};
            vec_push(o->a, o->precisions, o->nprecision, one);
        } else {
            o->precision = (ingot_precision)i;
            o->precision_said = true;
        }
        return true;
    }
    return wrong(o, "--precision", value,
                 "choose f32, 1e-5, bf16, bf16x3, bf16x6, f16, tf32, fp8, fp8-fast, q8, q16 or "
                 "narrow");
}

bool option_seconds(Options *o, const char *value)
{
    char *end;
    o->seconds = strtod(value, &end);
    if (!*value || *end || !(o->seconds >= 0 && o->seconds <= 3600))
        return wrong(o, "--seconds", value, "a number from 0 to 3600 is wanted");
    return true;
}

bool option_tolerance(Options *o, const char *value)
{
    char *end;
    o->tolerance = strtod(value, &end);
    if (!*value || *end || !(o->tolerance >= 0 && o->tolerance <= 1e30))
        return wrong(o, "--tolerance", value, "a share of the range is wanted: 0, 1e-3, 0.5");
    return true;
}

/* DOMAIN:TYPE=FILE[:FUNCTION]; a file's name may hold colons, a function's may not */
bool option_op(Options *o, const char *value)
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

bool option_input(Options *o, const char *value)
{
    if (!o->input)
        o->input = NEWN(o->a, const char *, 1024);
    if (o->ninput == 1024)
        return wrong(o, "--input", value, "too many of them");
    o->input[o->ninput++] = value;
    return true;
}

/* -O0, -O2 */
bool option_level(Options *o, const char *value)
{
    o->compile.naive = value[2] == '0';
    return true;
}

bool option_verbose(Options *o, const char *value)
{
    o->compile.verbose += (int)strspn(value + 1, "v");
    return true;
}

static const CliOption *find_option(const Command *c, const char *flag)
{
    for (const CliOption *p = cli_options; p->flag; p++)
        if ((p->on & c->bit) && !strcmp(p->flag, flag))
            return p;
    return NULL;
}

/* Carries out an option; value is NULL, or what was given. */
static bool carry_out(Options *o, const CliOption *p, const char *value)
{
    char *at = (char *)o + p->at;
    if (p->set)
        *(bool *)at = true;
    else if (p->word)
        memcpy(at, &value, sizeof value);
    else
        return p->take(o, value);
    return !p->word || *value || !strcmp(p->flag, "--name") ||
           wrong(o, p->flag, value, "the value is empty");
}

static bool refuse(const Options *o, const char *flag)
{
    const Command *c = cli_command(o->command);
    const char *near = NULL, *elsewhere = NULL;
    int best = 3;
    for (const CliOption *p = cli_options; p->flag; p++) {
        if (p->on & c->bit)
            near = closer(flag, p->flag, near, &best);
        else if (!strcmp(flag, p->flag))
            for (const Command *k = cli_commands; k->name && !elsewhere; k++)
                elsewhere = p->on & k->bit ? k->name : NULL;
    }
    if (!strcmp(flag, "-o") && find_option(c, "--output-dir")) /* what it means elsewhere */
        near = "--output-dir", elsewhere = NULL;
    if (elsewhere)
        return complain(INGOT_USAGE,
                        "ingot %s: unknown option '%.200s', which is one of `ingot %s`", o->command,
                        flag, elsewhere) == INGOT_OK;
    return complain(INGOT_USAGE,
                    near ? "ingot %s: unknown option '%.200s'; did you mean %s?"
                         : "ingot %s: unknown option '%.200s'",
                    o->command, flag, near) == INGOT_OK;
}

/* Operands behind the first: words of the synopsis before its options, "A.sched B.sched". */
static int more_operands(const Command *c)
{
    int n = 0;
    for (const char *at = c->synopsis; *at && *at != '-' && *at != '['; n++) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    return n;
}

/* A word that is no option. */
static bool operand(Options *o, const Command *c, const char *word)
{
    if (o->model && !o->node && !strncmp(c->synopsis, "[NODE]", 6)) {
        o->node = word;
        return true;
    }
    if (o->model && c->operand && o->nmore < more_operands(c)) {
        o->more[o->nmore++] = word;
        return true;
    }
    if (o->model || !c->operand)
        return complain(INGOT_USAGE, "ingot %s: unexpected argument '%.200s'", o->command, word) ==
               INGOT_OK;
    char *file = ingot_model_path(word);
    o->model = file ? arena_strdup(o->a, file) : word;
    free(file);
    return true;
}

static bool is_verbose(const char *flag)
{
    return flag[1] == 'v' && strspn(flag + 1, "v") == strlen(flag + 1);
}

bool options_parse(Options *o, int argc, char **argv, const Command *c)
{
    o->compile = (ingot_options){.struct_size = sizeof o->compile};
    o->threads = 1;
    o->count[o->ncount++] = 1;
    o->seconds = 1;
    o->tolerance = -1;
    o->beam = 4;
    o->budget = 600;
    for (int i = 2; i < argc; i++) {
        const char *flag = argv[i];
        if (flag[0] != '-' || !flag[1]) {
            if (!operand(o, c, flag))
                return false;
            continue;
        }
        if (!strcmp(flag, "--help") || !strcmp(flag, "-h")) {
            o->help = true;
            return true;
        }
        const char *equals = flag[1] == '-' ? strchr(flag, '=') : NULL; /* --name=value */
        const char *name = equals ? arena_printf(o->a, "%.*s", (int)(equals - flag), flag)
                           : is_verbose(flag) ? "-v"
                                              : flag;
        const CliOption *p = find_option(c, name);
        if (!p)
            return refuse(o, flag);
        if (!p->value && equals)
            return complain(INGOT_USAGE, "ingot %s: %s takes no value", o->command, name) ==
                   INGOT_OK;
        const char *value = equals         ? equals + 1
                            : !p->value    ? flag
                            : i + 1 < argc ? argv[++i]
                                           : NULL;
        if (!value)
            return complain(INGOT_USAGE, "ingot %s: %s needs a value", o->command, name) ==
                   INGOT_OK;
        if (!carry_out(o, p, value))
            return false;
    }
    if (c->operand && *c->operand != '[' && (!o->model || !*o->model))
        return complain(INGOT_USAGE, "ingot %s: %s is missing", o->command,
                        !strcmp(c->operand, "MODEL") ? "the model file"
                        : !strcmp(c->operand, "DIR") ? "the folder"
                        : *c->synopsis ? arena_printf(o->a, "%s %s", c->operand, c->synopsis)
                                       : c->operand) == INGOT_OK;
    o->compile.source = o->model;
    return train_options_good(o);
}
