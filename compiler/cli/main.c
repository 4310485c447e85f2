/* main.c - the command line of ingot: its commands, their help, and where messages go. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "targets.h"

#ifndef INGOT_VERSION
#define INGOT_VERSION "0.1.0"
#endif

/* ---- messages ---------------------------------------------------------------------------- */

enum { MESSAGE_BYTES = 1800 };

static void print_ascii(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fputc(s[i] >= ' ' && s[i] <= '~' ? s[i] : '?', stderr);
}

/* One line of printable ASCII, whatever the model's names hold; of a long one both ends. */
static void print_line(const char *prefix, const char *message)
{
    size_t n = strlen(message), half = MESSAGE_BYTES / 2;
    fputs(prefix, stderr);
    print_ascii(message, n > MESSAGE_BYTES ? half : n);
    if (n > MESSAGE_BYTES) {
        fputs(" ... ", stderr);
        print_ascii(message + n - half, half);
    }
    fputc('\n', stderr);
}

void sink(void *quiet, ingot_level level, const char *message)
{
    static const char *const prefix[] = {"  ", "  warning: ", ""};
    if (!quiet)
        print_line(prefix[level], message);
}

static void print_format(const char *format, va_list ap)
{
    StrBuf sb = {0};
    sb_vprintf(&sb, format, ap);
    print_line("", sb.data);
    sb_free(&sb);
}

void say(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    print_format(format, ap);
    va_end(ap);
}

ingot_status complain(ingot_status status, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    print_format(format, ap);
    va_end(ap);
    return status;
}

/* ---- commands ---------------------------------------------------------------------------- */

static ingot_status command_check(Options *o)
{
    Model m;
    ingot_status status = model_open(&m, o, false);
    bool whole = o->ndim || o->nbind;
    if (status == INGOT_OK && whole)
        status = model_build(&m, o, NULL, NULL);
    else if (status == INGOT_OK && !ingot_onnx_check(m.onnx))
        status = ingot_context_status(m.c);
    if (status == INGOT_OK)
        printf("%s: every %s is supported\n", o->model, whole ? "node" : "operator");
    model_close(&m);
    return status;
}

static ingot_status command_inspect(Options *o)
{
    Model m;
    ingot_status status = model_open(&m, o, false);
    if (status == INGOT_OK)
        status = model_build(&m, o, NULL, NULL);
    if (status == INGOT_OK) {
        char *text =
            o->dump ? ingot_dump(m.c, &o->compile, o->dump) : ingot_inspect_json(m.c, &o->compile);
        if (text)
            fputs(text, stdout);
        else
            status = ingot_context_status(m.c);
        free(text);
    }
    model_close(&m);
    return status;
}

static ingot_status command_targets(Options *o)
{
    (void)o;
    for (int i = 0; targets[i]; i++) {
        printf("%s", targets[i]->name);
        for (int k = 0; !targets[i]->gpu && machine_name(k); k++)
            printf(" %s:%s", targets[i]->name, machine_name(k));
        printf("\n");
    }
    return INGOT_OK;
}

static ingot_status command_tune(Options *o)
{
    return complain(INGOT_UNSUPPORTED,
                    "%s: ingot tune is not available yet; the compiler's own choices are used",
                    o->model ? o->model : "ingot");
}

/* ---- help -------------------------------------------------------------------------------- */

#define DIM_HELP                                                                                  \
    "  --dim NAME=N        a free dim of an input has this size\n"                                \
    "  --dim NAME=LO..HI   it is known at run time only, within these bounds\n"                   \
    "  --dim NAME=OTHER    two free dims are equal\n"                                             \
    "  --dim TENSOR=LO..HI the elements of this integer tensor are (inputs, or inside)\n"         \
    "  --dim TENSOR_A=LO..HI  the size of any tensor along axis A is: for what the data decide\n" \
    "  --op DOMAIN:TYPE=FILE.c[:FUNCTION]  nodes of this type call a C function of yours "        \
    "(docs/custom_ops.md)\n"                                                                      \
    "  --bind NAME=V,V..   an input (or free dim) has this value, known now\n"
#define MODEL_HELP                                                                \
    DIM_HELP                                                                      \
    "  --string-bytes N    room for each string that is made, on average (256)\n" \
    "  --subnormals keep   f32 below the smallest normal number is no zero\n"     \
    "  -O0                 naive kernels\n"                                       \
    "  --sched FILE        layouts and opts as this file says (docs/sched.md)\n"  \
    "  -v                  tell what takes how long\n"
#define TOLERANCE_HELP                                                                           \
    "  --tolerance T       the largest error that passes, as a share of the largest wanted "     \
    "value. Unless told: f64 1e-6,\n"                                                            \
    "                      f32 1e-3, f16 1e-2, bf16 4e-2, f8 0.25; i8 and u8 may be 1 off; all " \
    "else is exact\n"
#define COMPILE_HELP                                                                              \
    "  --target T          c (default), c:native, c:x86-64-v3 ...: `ingot targets` lists them\n"  \
    "  --name NAME         prefix of everything emitted (default: model)\n"                       \
    "  --weights W         array, blob, incbin; default: array up to 64 KB, then blob\n"          \
    "  --memory NAME=SIZE  a memory to divide the arena among (dtcm=64k); several: in order of\n" \
    "                      preference; the last may be without a size, and takes the rest\n"      \
    "  --max-ram N         refuse if more RAM is needed (256k, 2M), and say which tensors do\n"

typedef struct {
    const char *name;
    ingot_status (*run)(Options *);
    bool takes_model;
    const char *flags; /* what options_parse lets pass */
    const char *what, *help;
} Command;

static const Command commands[] = {
    {"compile", command_compile, true,
     "-o --target --name -O0 -O2 --dim --bind --op --string-bytes --subnormals --weights --memory "
     "--max-ram --sched "
     "--save-sched "
     "--selftest "
     "-v ",
     "write a model as a folder of C",
     "usage: ingot compile MODEL.onnx -o DIR [options]\n\n"
     "  -o DIR              where the bundle goes; an older bundle there is replaced\n" COMPILE_HELP
         MODEL_HELP "  --save-sched FILE   write the layouts and opts chosen, for --sched\n"
     "  --selftest DIR      DIR/input_N and output_N (.pb, .npy) are the golden data of "
     "<name>_selftest();\n"
     "                      without it, a formula makes them for models that the interpreter runs "
     "quickly\n"
     "\nexamples:\n"
     "  ingot compile resnet18.onnx -o out && make -C out && out/model IN OUT\n"
     "  ingot compile bert.onnx -o out --dim batch=1..8 --dim seq=128 --name bert\n"
     "  ingot compile kws.onnx -o out --target c:cortex-m4 --max-ram 256k\n"},
    {"run", command_run, true,
     "--data --input --output-dir --tolerance --target --sched -O0 -O2 --dim --bind --op "
     "--string-bytes "
     "--subnormals "
     "--no-bind "
     "--no-cache -v --threads ",
     "compile into the cache, run, write the outputs",
     "usage: ingot run MODEL.onnx --data DIR | --input FILE...  [--output-dir D] [options]\n\n"
     "  --data DIR          reads DIR/input_N.pb (or .npy); output_N there are compared with what "
     "the model gives\n"
     "  --input FILE        the inputs in order, .npy or .pb\n"
     "  --output-dir D      writes D/output_N.pb (.npy where inputs are); without it, prints "
     "them\n" TOLERANCE_HELP
     "  --no-bind           never bind inputs that decide shapes to the data's values\n"
     "  --no-cache          compile anew\n"
     "  --threads N\n" MODEL_HELP "\nAn index that is out of range in the data (of a Gather or "
     "Scatter) ends the run; docs/abi.md tells what a bundle does.\n"
     "\nFree dims take their size from the data. --target is c:native unless told, this "
     "processor.\nThe cache is $INGOT_CACHE, or ~/.cache/ingot.\n"
     "\nexamples:\n"
     "  ingot run resnet18.onnx --data test_data_set_0 --output-dir out\n"
     "  ingot run add.onnx --input x.npy --input y.npy\n"},
    {"verify", command_verify, true,
     "--data --input --tolerance --target --sched -O0 -O2 --dim --bind --op --string-bytes "
     "--subnormals "
     "--no-bind "
     "--no-cache -v "
     "--threads ",
     "check every kernel of the compiled model",
     "usage: ingot verify MODEL.onnx [--data DIR | --input FILE...] [options]\n\n"
     "Runs every step beside the naive form of its kernel, on the same inputs, and the naive "
     "kernels beside the reference\n"
     "interpreter. Each step that differs is told with its kernel, its nodes and the worst "
     "element; -v tells all.\n\n"
     "  --data DIR          inputs; without it, reproducible random ones. Outputs there are "
     "compared, as `ingot run` does\n" TOLERANCE_HELP MODEL_HELP
     "\nexample:\n  ingot verify resnet18.onnx\n"},
    {"bench", command_bench, true,
     "--data --input --threads --json --per-kernel --seconds --target --sched -O0 -O2 --dim --bind "
     "--op "
     "--string-bytes --subnormals "
     "--no-bind --no-cache -v ",
     "time the compiled model",
     "usage: ingot bench MODEL.onnx [--data DIR] [--threads N] [--json] [options]\n\n"
     "  --data DIR          inputs; without it, reproducible random ones\n"
     "  --threads N         1 unless told\n"
     "  --seconds S         how long to measure (default 1)\n"
     "  --per-kernel        time every step, slowest first, beside what this machine could do\n"
     "  --json              only the JSON line, with \"median_ms\"\n" MODEL_HELP
     "\nexample:\n  ingot bench resnet18.onnx --threads 4 --json\n"},
    {"check", command_check, true, "--dim --bind --op -v ",
     "list every operator that is not supported",
     "usage: ingot check MODEL.onnx [--dim NAME=LO..HI] [--bind NAME=V]\n\n"
     "With --dim or --bind every node is built, and the shapes are checked too.\n" DIM_HELP
     "\nexample:\n  ingot check model.onnx --dim batch=1..8\n"},
    {"inspect", command_inspect, true,
     "--json --dump --target --name -O0 -O2 --dim --bind --op --string-bytes --subnormals "
     "--weights "
     "--memory "
     "--max-ram --sched -v ",
     "what a model becomes",
     "usage: ingot inspect MODEL.onnx --json | --dump graph|plan|kernels [options]\n\n"
     "  --json              sizes, and every step with its kind, sources, opts, flops, bytes\n"
     "  --dump WHAT         the graph, the plan, or the text of all kernels\n" COMPILE_HELP
         MODEL_HELP "\nexample:\n  ingot inspect resnet18.onnx --json | jq .arena_bytes\n"},
    {"audit", command_audit, true, "--triple --headers --json ",
     "prove by rules what emitted C does not do",
     "usage: ingot audit DIR [--triple T] [--headers DIR] [--json]\n\n"
     "Reads a bundle, or any folder of C, as clang does for machine T, and prints what breaks the "
     "rules: the heap, recursion,\nloops without a bound, variables that outlive a call, "
     "conversions that lose bits (docs/audit.md). Exit status 7 if\nthere is anything.\n\n"
     "  --triple T          x86_64-linux-gnu, aarch64-linux-gnu, thumbv7em-none-eabi, riscv32 ...; "
     "this machine unless told\n"
     "  --headers DIR       the C library's headers for T, where they are not in their usual "
     "place\n"
     "  --json              the same for programs\n"
     "\nexample:\n  ingot audit out --triple thumbv7em-none-eabi > audit.txt\n"},
    {"targets", command_targets, false, "", "what can be emitted", "usage: ingot targets\n"},
    {"tune", command_tune, true,
     "-o --beam --budget --dim --bind --op --string-bytes --subnormals ",
     "search for better kernels (not available yet)",
     "usage: ingot tune MODEL.onnx -o model.sched\n\nNot available yet.\n"},
};
enum { NCOMMAND = sizeof commands / sizeof commands[0] };

static void help(FILE *f)
{
    fputs("ingot compiles neural networks (ONNX) to plain C, ahead of time.\n\nusage: ingot "
          "COMMAND ...\n\n",
          f);
    for (int i = 0; i < NCOMMAND; i++)
        fprintf(f, "  %-9s %s\n", commands[i].name, commands[i].what);
    fputs(
        "\n`ingot COMMAND --help` tells more, with examples. ingot --version prints the version.\n"
        "\nexit status: 0 ok, 2 wrong flag or argument, 3 the model or data file is broken,\n"
        "4 a valid model that is not supported, 5 a program we call (cc) or the model failed,\n"
        "6 a file cannot be read or written, 7 the results are not the wanted ones, or an audit "
        "has "
        "findings,\n"
        "70 a fault of the compiler\n",
        f);
}

static const Command *find_command(const char *name)
{
    for (int i = 0; i < NCOMMAND; i++)
        if (!strcmp(commands[i].name, name))
            return &commands[i];
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        say("ingot: a command is missing");
        say("Try `ingot --help`.");
        return INGOT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        help(stdout);
        return INGOT_OK;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("ingot %s\n", INGOT_VERSION);
        return INGOT_OK;
    }
    const Command *command = find_command(argv[1]);
    if (!command) {
        say("ingot: unknown command '%s'", argv[1]);
        say("Try `ingot --help`.");
        return INGOT_USAGE;
    }
    Options o = {.command = command->name, .a = arena_new()};
    ingot_status status = INGOT_USAGE;
    if (options_parse(&o, argc, argv, command->flags, command->takes_model)) {
        status = INGOT_OK;
        if (o.help)
            fputs(command->help, stdout);
        else
            status = command->run(&o);
    } else {
        say("Try `ingot %s --help`.", command->name);
    }
    arena_free(o.a);
    if (fflush(stdout) && status == INGOT_OK)
        status = complain(INGOT_IO, "standard output cannot be written");
    return status;
}
