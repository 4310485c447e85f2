/* run_firmware.c - what a bundle takes on a microcontroller: flash, RAM, stack.
 *
 * The target's compiler, where it is there, links the bundle into a program that does nothing but
 * run the model, and one that does nothing: the difference of their sections is what a firmware
 * grows by, the C library's functions among it.  Stack is the deepest chain of calls, by frames
 * that the compiler tells (-fcallgraph-info=su, gcc 10 and later): recursion there is none
 * (docs/audit.md), and a call by pointer may be of any function.  Without the compiler, flash is an
 * estimate. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base.h"
#include "run.h"
#include "targets.h"

enum {
    OUTSIDE = 128, /* bytes of stack for a function of the C library */
    MAX_ARGUMENTS = 512
};
/* Bytes of code for each byte of a source's text: of MLPerf Tiny's networks 0.14 to 0.20, and what
 * they take of the C library. */
#define CODE_OF_TEXT 0.2

/* ---- the stack: calls, and frames of functions ----------------------------------------------- */

typedef struct {
    const char *name;
    long frame; /* -1: of another library */
    bool entered, known;
    long depth;
} CallNode;
typedef struct {
    int from, to;
} CallEdge;
typedef struct {
    Arena *a;
    CallNode *node;
    int n;
    CallEdge *edge;
    int nedge;
    bool dynamic; /* some frame has no bound */
} CallGraph;

static int call_node(CallGraph *g, const char *name, size_t len)
{
    for (int i = 0; i < g->n; i++)
        if (strlen(g->node[i].name) == len && !strncmp(g->node[i].name, name, len))
            return i;
    CallNode x = {.name = arena_printf(g->a, "%.*s", (int)len, name), .frame = -1};
    vec_push(g->a, g->node, g->n, x);
    return g->n - 1;
}

/* What stands in quotes behind a word of the line; *len is 0 if there is none. */
static const char *quoted(const char *line, const char *end, const char *word, size_t *len)
{
    const char *at = strstr(line, word);
    *len = 0;
    if (!at || at >= end)
        return line;
    at += strlen(word);
    *len = strcspn(at, "\"");
    return at;
}

/* node: { title: "f" label: "f\nm.c:25:17\n40 bytes (static)" } and
 * edge: { sourcename: "f" targetname: "g" ... } */
static void read_calls(CallGraph *g, const char *text)
{
    for (const char *line = text; *line;) {
        const char *end = line + strcspn(line, "\n");
        size_t n, m;
        if (!strncmp(line, "node:", 5)) {
            const char *name = quoted(line, end, "title: \"", &n),
                       *label = quoted(line, end, "label: \"", &m),
                       *bytes = strstr(label, " bytes (");
            const int i = call_node(g, name, n); /* may move the nodes */
            CallNode *x = &g->node[i];
            if (bytes && bytes < end) {
                g->dynamic |= !strncmp(bytes, " bytes (dynamic)", 16);
                while (bytes > label && bytes[-1] >= '0' && bytes[-1] <= '9')
                    bytes--;
                x->frame = strtol(bytes, NULL, 10);
            }
        } else if (!strncmp(line, "edge:", 5)) {
            const char *from = quoted(line, end, "sourcename: \"", &n),
                       *to = quoted(line, end, "targetname: \"", &m);
            const CallEdge e = {call_node(g, from, n), call_node(g, to, m)};
            vec_push(g->a, g->edge, g->nedge, e);
        }
        line = *end ? end + 1 : end;
    }
}

static long depth_of(CallGraph *g, int i, int pointer);

/* Of what a pointer may point to: functions that call by none themselves. */
static long depth_by_pointer(CallGraph *g, int pointer)
{
    long most = OUTSIDE;
    for (int i = 0; i < g->n; i++) {
        bool calls = i == pointer;
        for (int k = 0; k < g->nedge; k++)
            calls |= g->edge[k].from == i && g->edge[k].to == pointer;
        const long d = calls || g->node[i].frame < 0 ? 0 : depth_of(g, i, pointer);
        most = d > most ? d : most;
    }
    return most;
}

static long depth_of(CallGraph *g, int i, int pointer)
{
    CallNode *x = &g->node[i];
    if (x->known || x->entered)
        return x->depth;
    x->entered = true;
    long most = 0;
    for (int k = 0; k < g->nedge; k++)
        if (g->edge[k].from == i && g->edge[k].to != pointer) {
            const long d = depth_of(g, g->edge[k].to, pointer);
            most = d > most ? d : most;
        }
    for (int k = 0; k < g->nedge; k++)
        if (g->edge[k].from == i && g->edge[k].to == pointer) {
            const long d = depth_by_pointer(g, pointer);
            most = d > most ? d : most;
            break;
        }
    x->known = true;
    x->depth = most + (x->frame < 0 ? OUTSIDE : x->frame);
    return x->depth;
}

/* From the function that the program begins with; -1: not known. */
static long stack_of(Arena *a, const char *dir)
{
    CallGraph g = {.a = a};
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        const size_t n = strlen(e->d_name);
        const char *text = n > 3 && !strcmp(e->d_name + n - 3, ".ci")
                               ? read_text(a, arena_printf(a, "%s/%s", dir, e->d_name))
                               : NULL;
        if (text)
            read_calls(&g, text);
    }
    if (d)
        closedir(d);
    const int nodes = g.n, from = call_node(&g, "ingot_entry", 11),
              pointer = call_node(&g, "__indirect_call", 15);
    return from >= nodes || g.dynamic ? -1 : depth_of(&g, from, pointer);
}

/* ---- the programs ---------------------------------------------------------------------------- */

/* A program that has the model in static memory, inputs and outputs aside. */
static const char *program_text(const Options *o, Arena *a, const char *name)
{
    char *upper = arena_strdup(a, name);
    StrBuf sb = {0};
    for (char *p = upper; *p; p++)
        *p = *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
    sb_printf(&sb,
              "#include \"%s.h\"\nstatic %s_ctx ctx;\n#ifdef %s_ARENA_BYTES\n"
              "static unsigned char arena[%s_ARENA_BYTES(1)] __attribute__((aligned(64)));\n"
              "#endif\nint ingot_entry(void);\nint ingot_entry(void)\n{\n"
              "    %s_config config = {0};\n    %s_inputs in = {0};\n    %s_outputs out = {0};\n",
              name, name, upper, upper, name, name, name);
    sb_printf(&sb, "#ifdef %s_ARENA_BYTES\n    config.arena = arena;\n#endif\n", upper);
    for (int i = 0; i < o->compile.nmemory; i++) {
        char *memory = arena_strdup(a, o->compile.memories[i].name);
        for (char *p = memory; *p; p++)
            *p = *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
        sb_printf(&sb,
                  "    {\n        static unsigned char m[%s_MEMORY_%s_BYTES];\n"
                  "        config.user = m;\n    }\n",
                  upper, memory);
    }
    sb_printf(
        &sb,
        "    return %s_init(&ctx, &config) != IGRT_OK || %s_run(&ctx, &in, &out) != IGRT_OK;\n}\n",
        name, name);
    return sb_take(&sb, a);
}

static int split_words(Arena *a, const char *text, const char **argv, int n)
{
    while (text && *text) {
        const size_t skip = strspn(text, " "), len = strcspn(text + skip, " ");
        if (len && n < MAX_ARGUMENTS - 1)
            argv[n++] = arena_printf(a, "%.*s", (int)len, text + skip);
        text += skip + len;
    }
    return n;
}

/* Of all sources of the bundle but the selftest, or of none. */
static bool link_program(Arena *a, const Target *t, const char *tmp, const char *bundle,
                         const char *name, const char *out)
{
    static const char *const flags[] = {"-O2",
                                        "-std=c99",
                                        "-ffp-contract=off",
                                        "-ffunction-sections",
                                        "-fdata-sections",
                                        "-fcallgraph-info=su",
                                        "-nostartfiles",
                                        "-Wl,--gc-sections",
                                        "-Wl,--entry=ingot_entry"};
    const char *argv[MAX_ARGUMENTS] = {"sh", "-c", "exec \"$@\" >/dev/null 2>&1", "sh", t->cc};
    int n = split_words(a, t->flags, argv, 5);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        argv[n++] = flags[i];
    argv[n++] = "-I";
    argv[n++] = bundle ? bundle : tmp;
    argv[n++] = "-o";
    argv[n++] = arena_printf(a, "%s/%s", tmp, out);
    argv[n++] = arena_printf(a, "%s/%s.c", tmp, out);
    const char *selftest = arena_printf(a, "%s_selftest.c", name);
    DIR *d = bundle ? opendir(bundle) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        const size_t len = strlen(e->d_name);
        const bool source =
            len > 2 && (!strcmp(e->d_name + len - 2, ".c") || !strcmp(e->d_name + len - 2, ".S"));
        if (source && strcmp(e->d_name, selftest) != 0 && n < MAX_ARGUMENTS - 2)
            argv[n++] = arena_printf(a, "%s/%s", bundle, e->d_name);
    }
    if (d)
        closedir(d);
    argv[n++] = "-lm";
    argv[n] = NULL;
    return process_run(argv) == 0;
}

/* Text and data, and zeros, of a program, by the compiler's `size`. */
static bool sizes_of(Arena *a, const Target *t, const char *tmp, const char *program,
                     int64_t *flash, int64_t *zeros)
{
    const size_t n = strlen(t->cc);
    const char *tool = n > 3 && !strcmp(t->cc + n - 3, "gcc")
                           ? arena_printf(a, "%.*ssize", (int)n - 3, t->cc)
                           : "size";
    const char *file = arena_printf(a, "%s/size", tmp);
    const char *const argv[] = {tool, arena_printf(a, "%s/%s", tmp, program), NULL};
    long long text, data, bss;
    if (process_run_to(argv, file) != 0)
        return false;
    const char *said = read_text(a, file), *line = said ? strchr(said, '\n') : NULL;
    if (!line || sscanf(line, "%lld %lld %lld", &text, &data, &bss) != 3)
        return false;
    *flash = text + data;
    *zeros = data + bss;
    return true;
}

static bool measure(const Options *o, Arena *a, const Target *t, const char *name, Firmware *f)
{
    char *tmp = temporary_folder(a, "firmware");
    if (!tmp || !find_program(a, t->cc))
        return false;
    const char *text = program_text(o, a, name),
               *none = "int ingot_entry(void);\nint ingot_entry(void)\n{\n    return 0;\n}\n";
    int64_t base = 0, zeros = 0;
    const bool good = file_write(arena_printf(a, "%s/none.c", tmp), none, strlen(none)) &&
                      file_write(arena_printf(a, "%s/whole.c", tmp), text, strlen(text)) &&
                      link_program(a, t, tmp, NULL, name, "none") &&
                      sizes_of(a, t, tmp, "none", &base, &zeros);
    unlink(arena_printf(a, "%s/none-none.ci", tmp));
    int64_t whole = 0, ram = 0;
    f->measured = good && link_program(a, t, tmp, o->output, name, "whole") &&
                  sizes_of(a, t, tmp, "whole", &whole, &ram);
    f->flash = whole - base;
    f->fixed = ram - zeros;
    f->stack = f->measured ? stack_of(a, tmp) : -1;
    remove_tree(tmp);
    return f->measured;
}

/* Of all arrays that <name>_weights.h declares: extern const int8_t model_w_conv[432]; */
static double declared_bytes(const char *text)
{
    static const struct {
        const char *type;
        int bytes;
    } types[] = {{"int8_t", 1},   {"uint8_t", 1}, {"int16_t", 2}, {"uint16_t", 2}, {"int32_t", 4},
                 {"uint32_t", 4}, {"float", 4},   {"int64_t", 8}, {"uint64_t", 8}, {"double", 8}};
    double sum = 0;
    for (const char *at = text; at && (at = strstr(at, "extern const ")); at++) {
        const char *type = at + strlen("extern const "), *dim = strchr(type, '[');
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
            if (dim && strcspn(type, " ") == strlen(types[i].type) &&
                !strncmp(type, types[i].type, strlen(types[i].type)))
                sum += types[i].bytes * strtod(dim + 1, NULL);
    }
    return sum;
}

/* By the length of what was written. */
static void estimate(const Options *o, Arena *a, const char *name, Firmware *f)
{
    DIR *d = opendir(o->output);
    double text = 0;
    const char *weights = read_text(a, arena_printf(a, "%s/%s_weights.h", o->output, name));
    for (struct dirent *e; d && (e = readdir(d));) {
        struct stat s;
        const size_t n = strlen(e->d_name);
        if (n < 3 || stat(arena_printf(a, "%s/%s", o->output, e->d_name), &s) != 0)
            continue;
        const bool source = !strcmp(e->d_name + n - 2, ".c") && !strstr(e->d_name, "_weights") &&
                            !strstr(e->d_name, "_selftest");
        text += source ? (double)s.st_size : 0;
    }
    if (d)
        closedir(d);
    f->flash = (int64_t)(declared_bytes(weights) + CODE_OF_TEXT * text);
    const char *header = read_text(a, arena_printf(a, "%s/%s.h", o->output, name));
    const char *arena = header ? strstr(header, "_ARENA_BYTES(threads) ((size_t)") : NULL;
    f->fixed = arena ? strtoll(strstr(arena, "size_t)") + strlen("size_t)"), NULL, 10) : 0;
    f->stack = -1;
}

Firmware firmware_sizes(const Options *o, const LoadedModel *m, const Target *t)
{
    Arena *a = arena_new();
    const Context *c = m->c;
    const char *name = o->compile.name ? o->compile.name : "model";
    Firmware f = {.stack = -1};
    for (int i = 0; i < c->ninput && !o->compile.io_in_arena; i++)
        f.io += (int64_t)node_bytes(c->inputs[i].node);
    for (int i = 0; i < c->noutput && !o->compile.io_in_arena; i++)
        f.io += (int64_t)node_bytes(c->outputs[i].node);
    if (!measure(o, a, t, name, &f))
        estimate(o, a, name, &f);
    struct stat s; /* weights in a file of their own */
    if (f.measured && !stat(arena_printf(a, "%s/%s.weights", o->output, name), &s) &&
        stat(arena_printf(a, "%s/%s_weights.S", o->output, name), &(struct stat){0}) != 0)
        f.flash += s.st_size;
    arena_free(a);
    return f;
}

void firmware_tell(const Options *o, const Target *t, const Firmware *f)
{
    char stack[64] = "";
    if (f->stack >= 0)
        snprintf(stack, sizeof stack, " and at most %ld of stack", f->stack);
    if (f->measured)
        say("  %s: flash %lld bytes, RAM %lld%s (arena and context %lld, inputs and outputs %lld), "
            "by %s -O2",
            o->output, (long long)f->flash, (long long)(f->fixed + f->io), stack,
            (long long)f->fixed, (long long)f->io, t->cc);
    else
        say("  %s: flash about %lld bytes, RAM %lld and stack (arena %lld, inputs and outputs "
            "%lld): "
            "an estimate, for %s is not there, or does not link",
            o->output, (long long)f->flash, (long long)(f->fixed + f->io), (long long)f->fixed,
            (long long)f->io, t->cc);
}
