/* cli_table.c - the commands and their options. What is parsed, the help, the manual and the
 * completion of shells are all made from these two tables. */
#include <stddef.h>
#include <string.h>

#include "cli.h"

enum {
    COMPILE = 1 << 0,
    RUN = 1 << 1,
    VERIFY = 1 << 2,
    BENCH = 1 << 3,
    CHECK = 1 << 4,
    INSPECT = 1 << 5,
    AUDIT = 1 << 6,
    TARGETS = 1 << 7,
    TUNE = 1 << 8,
    CACHE = 1 << 20,
    COMPLETION = 1 << 9,
    MANUAL = 1 << 10,
    EXPLAIN = 1 << 11,
    PLAN = 1 << 12,
    CHAT = 1 << 13,
    EXECUTE = RUN | VERIFY | BENCH,
    BUNDLE = COMPILE | INSPECT,
    MODEL = EXECUTE | BUNDLE | EXPLAIN | CHAT,
    GRAPH = MODEL | CHECK
};

#define WORD(member) .word = true, .at = offsetof(Options, member)
#define SET(member) .set = true, .at = offsetof(Options, member)

/* clang-format off */
const CliOption cli_options[] = {
    {"-o", "DIR", COMPILE, "where the bundle goes; an older bundle there is replaced", WORD(output), .path = CLI_FOLDER},
    {"-o", "FILE", INSPECT, "one page with the graph, the plan and the kernels (docs/report.md): open it in a browser",
     WORD(output), .path = CLI_FILE},
    {"-o", "FILE", TUNE, "where the decisions go, for --sched (docs/sched.md)", WORD(output), .path = CLI_FILE},
    {"--data", "DIR", RUN, "reads DIR/input_N.pb (or .npy); output_N there are compared with what the model gives",
     WORD(data), .path = CLI_FOLDER},
    {"--data", "DIR", VERIFY | BENCH | TUNE, "inputs, DIR/input_N.pb (or .npy); without it, reproducible random ones", WORD(data),
     .path = CLI_FOLDER},
    {"--input", "FILE", EXECUTE | TUNE, "an input, .npy or .pb; once for each, in the model's order, or NAME=FILE", .take = option_input,
     .path = CLI_FILE},
    {"--output-dir", "DIR", RUN, "writes DIR/output_N.pb (.npy where inputs are); without it, prints them", WORD(output_dir),
     .path = CLI_FOLDER},
    {"--tolerance", "T", RUN | VERIFY, "the largest error that passes, as a share of the largest wanted value. Unless told: "
     "f64 1e-6, f32 1e-3, f16 1e-2, bf16 4e-2, f8 0.25; i8 and u8 may be 1 off; all else is exact", .take = option_tolerance},
    {"--interpret", NULL, VERIFY, "without a compiler or a device: the interpreter runs the kernels' statements. So it is done anyway for a "
     "target whose programs do not run here", SET(interpret)},
    {"--threads", "N", EXECUTE, "how many run the kernels; 1 unless told", .take = option_threads},
    {"--threads", "N", BUNDLE | EXPLAIN, "for how many it is: of a --sched file that was tuned for several, the decisions for so many",
     .take = option_threads},
    {"--threads", "N[,N]", TUNE, "how many run the network; several: the file has decisions for each", .take = option_thread_counts},
    {"--threads", "N", CHAT, "how many run the kernels; 1 unless told", .take = option_threads},
    {"--prompt", "TEXT", CHAT, "answers this alone; without it, each line that is typed", WORD(chat[0])},
    {"--system", "TEXT", CHAT, "what the model is told first", WORD(chat[1])},
    {"--tokens", "N", CHAT, "of an answer, at most (default 512)", WORD(chat[2])},
    {"--temperature", "T", CHAT, "0: always the most likely token (default)", WORD(chat[3])},
    {"--top-k", "N", CHAT, "only the N most likely tokens (default 1024)", WORD(chat[4])},
    {"--top-p", "P", CHAT, "only the likeliest, as many as have this much of all probability", WORD(chat[5])},
    {"--min-p", "P", CHAT, "only those at least so many times as likely as the first", WORD(chat[6])},
    {"--repeat-penalty", "R", CHAT, "above 1: tokens that came lately are less likely", WORD(chat[7])},
    {"--seed", "N", CHAT, "the same seed gives the same answers (default 0)", WORD(chat[8])},
    {"--ids", NULL, CHAT, "the numbers of an answer's tokens, in place of its text", SET(chat_ids)},
    {"--seconds", "S", BENCH, "how long to measure (default 1)", .take = option_seconds},
    {"--per-kernel", NULL, BENCH, "time every step, slowest first, beside what this machine could do", SET(per_kernel)},
    {"--on-device", NULL, BENCH, "of a GPU: inputs and outputs lie there, and what is timed is its work alone, without transfers", SET(on_device)},
    {"--trace", "FILE", BENCH, "also write one run as a timeline, a row a thread (.json, for chrome://tracing or ui.perfetto.dev)", WORD(trace),
     .path = CLI_FILE},
    {"--json", NULL, BENCH, "only the JSON line, with \"median_ms\", or of a language model \"answer_tokens_per_second\"", SET(json)},
    {"--json", NULL, INSPECT, "all that the page shows, for programs (docs/report.md)", SET(json)},
    {"--times", "FILE", INSPECT | EXPLAIN, "what `ingot bench --per-kernel --json` printed: steps take what was measured", WORD(times),
     .path = CLI_FILE},
    {"--diff", "FILE", INSPECT, "the JSON of another model, target or plan, to be shown beside this one", WORD(diff),
     .path = CLI_FILE},
    {"--dot", NULL, INSPECT, "steps and tensors for Graphviz", SET(dot)},
    {"--assembly", NULL, INSPECT, "with --json: what the C compiler makes of the innermost loops", SET(assembly)},
    {"--no-assembly", NULL, INSPECT, "with -o: not that", SET(no_assembly)},
    {"--json", NULL, AUDIT, "the same for programs", SET(json)},
    {"--dump", "WHAT", INSPECT, "the graph, the plan, what a pass makes of all kernels, or their text", WORD(dump),
     .choices = "@dumps"},
    {"--target", "T", MODEL | TUNE, "c, c:native, c:x86-64-v3 ...: `ingot targets` lists them. Unless told: c for a bundle, "
     "c:native for what runs here. A name with a '/' or of the form X.target is a file (docs/targets.md). cuda:sm_90a+c:native: the GPU's where there is one, else C's; "
     "c:x86-64-v2,x86-64-v3: the fastest that the processor is (compile, run, bench)", WORD(compile.target), .choices = "@targets"},
    {"--name", "NAME", BUNDLE, "prefix of everything emitted (default: model)", WORD(compile.name)},
    {"--weights", "W", BUNDLE, "array, blob, incbin; default: array up to 64 KB and for microcontrollers, then blob", WORD(compile.weights),
     .choices = "array blob incbin"},
    {"--package", "P", COMPILE, "for which build: cmake, make (both unless told), zephyr, esp-idf, arduino, cmsis (docs/bundle.md), web (docs/web.md)",
     WORD(compile.package), .choices = "cmake make zephyr esp-idf arduino cmsis web"},
    {"--memory", "NAME=SIZE", BUNDLE, "a memory to divide the arena among (dtcm=64k); several: in order of preference; the "
     "last may be without a size, and takes the rest", .take = option_memory},
    {"--max-vram", "N", BUNDLE, "of a GPU: refuse if more of its memory is needed (512M, 8G), for the arena, weights, inputs and outputs", .take = option_max_vram},
    {"--max-ram", "N", BUNDLE, "take no more RAM (256k, 2M), if that is slower; refuse if it cannot be, and say which tensors do", .take = option_max_ram},
    {"--io", "FORM", BUNDLE, "what the caller has: int8, uint8 (the QuantizeLinear at an input, the DequantizeLinear at an output are "
     "left to it; model.h has scale and zero point), or nhwc (channels last); of all inputs and outputs that can be so", .take = option_io},
    {"--io", "NAME=FORM", BUNDLE, "the same of this input or output; may be said again", .take = option_io},
    {"--io-in-arena", NULL, BUNDLE, "inputs and outputs have places in the arena, of which model.h tells: what a run makes may lie on an "
     "input that was read, an output on what was", SET(compile.io_in_arena)},
    {"--dim", "NAME=N", GRAPH | TUNE, "a free dim of an input has this size", .take = option_dim},
    {"--dim", "NAME=LO..HI", GRAPH | TUNE, "it is known at run time only, within these bounds", .take = option_dim},
    {"--dim", "NAME=OTHER", GRAPH | TUNE, "two free dims are equal", .take = option_dim},
    {"--dim", "TENSOR=LO..HI", GRAPH | TUNE, "the elements of this integer tensor are (inputs, or inside)",
     .take = option_dim},
    {"--dim", "TENSOR_A=LO..HI", GRAPH | TUNE, "the size of any tensor along axis A is: for what the data decide",
     .take = option_dim},
    {"--entry", "NAME", GRAPH | TUNE, "the network of this name, of a file that has several (default: the first)", WORD(entry)},
    {"--state", "INPUT=OUTPUT", GRAPH | TUNE, "they are one tensor, which lives in the context from run to run; zeros at first",
     .take = option_state},
    {"--kv", "TYPE", GRAPH | TUNE, "what a language model keeps of keys and values: f16 (unless told), f32", .take = option_kv, .choices = "f16 f32"},
    {"--train", NULL, COMPILE | VERIFY, "a second function, <name>_train_step(): a step of training (docs/training.md)", SET(train)},
    {"--loss", "LOSS", COMPILE | VERIFY, "cross_entropy:OUTPUT, mse:OUTPUT, or an output that is the loss", WORD(training.loss)},
    {"--optimizer", "OPT", COMPILE | VERIFY, "sgd, momentum, adam or adamw; with numbers: adamw:rate=1e-3,decay=0.01 (beta1, "
     "beta2, epsilon, nesterov). Without a rate it is an input of each step", .take = option_optimizer},
    {"--trainable", "GLOB", COMPILE | VERIFY, "only weights of such names ('fc.*') are trained; may be said again", .take = option_trainable},
    {"--frozen", "GLOB", COMPILE | VERIFY, "weights of such names are not trained; may be said again", .take = option_frozen},
    {"--clip", "NORM", COMPILE | VERIFY, "gradients are scaled so that the norm of all together is at most this", .take = option_clip},
    {"--accumulate", "N", COMPILE | VERIFY, "weights change in every Nth step, by the mean of the gradients", .take = option_accumulate},
    {"--class-axis", "A", COMPILE | VERIFY, "of cross_entropy: where the classes are (default 1; -1: the last axis)", .take = option_class_axis},
    {"--label-smoothing", "S", COMPILE | VERIFY, "of cross_entropy: so much of each label is spread over all classes", .take = option_smoothing},
    {"--ignore-index", "I", COMPILE | VERIFY, "of cross_entropy: labels of this number do not count", .take = option_ignore_index},
    {"--op", "D:TYPE=F.c[:FN]", GRAPH | TUNE, "nodes of type TYPE, domain D, call function FN of C file F.c "
     "(docs/custom_ops.md)", .take = option_op},
    {"--bind", "NAME=V,V..", GRAPH | TUNE, "an input (or free dim) has this value, known now", .take = option_bind},
    {"--no-bind", NULL, EXECUTE, "never bind inputs that decide shapes to the data's values", SET(no_bind)},
    {"--string-bytes", "N", MODEL | TUNE, "room for each string that is made, on average (256)", .take = option_string_bytes},
    {"--subnormals", "WHAT", MODEL | TUNE, "keep: f32 below the smallest normal number is no zero; or flush", .take =
     option_subnormals, .choices = "keep flush"},
    {"--precision", "WHAT[:GLOB]", MODEL | TUNE, "what products of f32 multiply: f32 (1e-5: by forms that may err by as much of the range), bf16, or sums of three or six products of bf16; f16, tf32; q8: of weights with a scale for each block bytes, usual for GGUF files where the machine has dots of bytes; q16: two bytes of a number in place of one. With GLOB: those of nodes with such names; may be said again, the last one that matches counts", .take =
     option_precision, .choices = "f32 1e-5 bf16 bf16x3 bf16x6 f16 tf32 q8 q16"},
    {"--no-check", NULL, BUNDLE | EXECUTE, "some results of each step are not looked at, beside the graph's, before anything is written",
     SET(compile.no_check)},
    {"-O0", NULL, MODEL, "naive kernels", .take = option_level},
    {"-O2", NULL, MODEL, "the compiler's own choices, as without it", .take = option_level},
    {"--no-rewrite", "NAME,NAME..", MODEL, "rewrites of the graph that are not done", WORD(compile.no_rewrite),
     .choices = "@rewrites"},
    {"--fuse", "HOW", MODEL, "auto (default); none: every value is stored; all: as few kernels as may be", WORD(compile.fuse),
     .choices = "auto none all"},
    {"--prefer", "WHAT", MODEL, "what is dear, ram or time; without it, as the target has it: ram for microcontrollers", WORD(compile.prefer),
     .choices = "ram time"},
    {"--sched", "FILE", MODEL, "decide as this file says (docs/sched.md)", WORD(compile.sched), .path = CLI_FILE},
    {"--sched", "FILE", TUNE, "of a GPU: begin with what this file says, and look for better", WORD(compile.sched), .path = CLI_FILE},
    {"--save-sched", "FILE", COMPILE, "write what was decided, for --sched", WORD(compile.save_sched),
     .path = CLI_FILE},
    {"--selftest", "DIR", COMPILE, "DIR/input_N and output_N (.pb, .npy) are the golden data of <name>_selftest(); without "
     "it, a formula makes them for models that the interpreter runs quickly", WORD(selftest), .path = CLI_FOLDER},
    {"--depfile", "FILE", COMPILE, "write the files that were read as a rule of make, for the manifest of the bundle",
     WORD(depfile), .path = CLI_FILE},
    {"--no-cache", NULL, EXECUTE | CHAT, "compile anew", SET(no_cache)},
    {"--triple", "T", AUDIT, "x86_64-linux-gnu, aarch64-linux-gnu, thumbv7em-none-eabi, riscv32 ...; this machine unless told",
     WORD(triple), .choices = "x86_64-linux-gnu aarch64-linux-gnu thumbv7em-none-eabi riscv32"},
    {"--headers", "DIR", AUDIT, "the C library's headers for T, where they are not in their usual place", WORD(headers),
     .path = CLI_FOLDER},
    {"--probe", "CC FLAGS..", TARGETS, "asks a C compiler what its machine has, and prints that as a target file, for --target FILE "
     "(docs/targets.md)", WORD(probe)},
    {"--machine", "T", TARGETS, "prints a target as such a file, with all figures of its machine: c:native, cuda:native and opencl:native as they "
     "are found here", WORD(machine), .choices = "@targets"},
    {"--budget", "TIME", TUNE, "how long to search: 90s, 10m (default), 2h; 0: only what the database knows", .take = option_budget},
    {"--beam", "N", TUNE, "how many candidates of a kernel are gone on from (default 4)", .take = option_beam},
    {"--kernels", "PATTERN", TUNE, "only kernels whose name, or a node's that they compute, matches: k07*, *conv1*", WORD(kernels)},
    {"--database", "FILE", TUNE, "what was tried so far; otherwise $INGOT_TUNE, or tune.db in the folder of the cache", WORD(database),
     .path = CLI_FILE},
    {"--explain", NULL, TUNE, "tell of each kernel what was tried, what won, and why; -v: every candidate", SET(why)},
    {"--prepare", "DIR", TUNE, "write and build the candidates to begin with, and time nothing", WORD(prepare), .path = CLI_FOLDER},
    {"--lot", "N", TUNE, "with --prepare: so many more of each kernel, drawn by lot from all that were estimated", .take = option_lot},
    {"--measure", "DIR", TUNE, "time what --prepare left there; goes on where it was cut off", WORD(measure), .path = CLI_FOLDER},
    {"--remote", "CMD", TUNE, "CMD DIR ARGS.. copies the folder to another machine, runs make and ./tune_run ARGS there, and prints "
     "what that prints (docs/tune.md)", WORD(remote)},
    {"--export", "FILE", TUNE, "write the database as lines of JSON; no model is wanted", WORD(export_to), .path = CLI_FILE},
    {"--import", "FILE", TUNE, "read such lines into the database; no model is wanted", WORD(import), .path = CLI_FILE},
    {"--size", "N", CACHE, "remove what was used least recently until no more than this is left (500M, 2G)", .take = option_cache_bytes},
    {"--clear", NULL, CACHE, "remove all of it", SET(clear)},
    {"-q", NULL, COMPILE | EXECUTE | TUNE | CHAT, "no notes, and no word on how far it is", SET(quiet)},
    {"-v", NULL, (GRAPH & ~EXPLAIN) | TUNE, "tell what takes how long, and the steps of the plan; -vv: its kernels too; -vvv: what was decided and "
     "thought of; -vvvv: nodes and statements of kernels", .take = option_verbose},
    {"-v", NULL, EXPLAIN, "more than 40 lines, with the loops of kernels; -vv: their statements; -vvv: their text, and opts that were "
     "thought of; -vvvv: their nodes", .take = option_verbose},
    {NULL, NULL, 0, NULL, .path = CLI_NONE},
};

const Command cli_commands[] = {
    {"compile", command_compile, COMPILE, "MODEL", "-o DIR", "write a model as a folder of C", NULL,
     "ingot compile resnet18.onnx -o out && make -C out && out/model IN OUT\n"
     "ingot compile bert.onnx -o out --dim batch=1..8 --dim seq=128 --name bert\n"
     "ingot compile kws.onnx -o out --target c:cortex-m4 --max-ram 256k\n"},
    {"run", command_run, RUN, "MODEL", "--data DIR | --input FILE... [--output-dir D]",
     "compile into the cache, run, write the outputs",
     "Free dims take their size from the data. An index that is out of range in the data (of a Gather or Scatter) ends the "
     "run; docs/abi.md tells what a bundle does. The cache is $INGOT_CACHE, or ~/.cache/ingot.",
     "ingot run resnet18.onnx --data test_data_set_0 --output-dir out\n"
     "ingot run add.onnx --input x.npy --input y.npy\n"},
    {"verify", command_verify, VERIFY, "MODEL", "[--data DIR | --input FILE...]",
     "check every kernel of the compiled model",
     "Runs every step beside the naive form of its kernel, on the same inputs, and the naive kernels beside the reference "
     "interpreter. Each step that differs is told with its kernel, its nodes and the worst element; -v tells all. Outputs "
     "that lie beside the data are compared, as `ingot run` does. For a machine that is not this one (and with --interpret) the "
     "statements of the kernels are run by an interpreter, on any machine: it finds elements that nothing has written, accesses "
     "outside of buffers, and races of threads and work items too.",
     "ingot verify resnet18.onnx\n"
     "ingot verify kws.onnx --target c:cortex-m4\n"
     "ingot verify digits.onnx --target cuda --interpret\n"},
    {"bench", command_bench, BENCH, "MODEL", "[--data DIR] [--threads N] [--json]", "time the compiled model",
     "Of a language model (a GGUF file whose vocabulary is known): tokens a second of a prompt and of an answer, and what share of reading "
     "the weights that is; --data, --per-kernel, --trace and --on-device time run() as of any model.",
     "ingot bench resnet18.onnx --threads 4 --json\n"},
    {"chat", command_chat, CHAT, "MODEL", "[--prompt TEXT]", "talk with a language model",
     "The model, a GGUF file, is compiled into the cache. What is typed is text: control tokens are put around it, as the model was "
     "trained with them. docs/llm.md.",
     "ingot chat SmolLM2-135M-Instruct.Q4_1.gguf\n"
     "ingot chat llama.gguf --temperature 0.8 --top-p 0.95 --seed 1 --prompt \"Tell me a story.\"\n"},
    {"check", command_check, CHECK, "MODEL", "[--dim NAME=LO..HI] [--bind NAME=V]",
     "list every operator that is not supported",
     "With --dim or --bind every node is built, and the shapes are checked too.",
     "ingot check model.onnx --dim batch=1..8\n"},
    {"inspect", command_inspect, INSPECT, "MODEL", "-o FILE.html | --json | --dot | --dump graph|plan|PASS|kernels",
     "what a model becomes: a page to read, JSON, Graphviz, text", NULL,
     "ingot inspect resnet18.onnx -o report.html\n"
     "ingot inspect resnet18.onnx --json | jq .arena_bytes\n"
     "ingot bench resnet18.onnx --per-kernel --json >times && ingot inspect resnet18.onnx --target c:native --times times -o report.html\n"},
    {"explain", command_explain, EXPLAIN, "MODEL", "NODE", "where a node went, what it costs, why it was stored or not",
     "NODE is the name of a node in the file, a kernel (k07), a step (12) or a tensor. Of a node: the steps that compute it, "
     "what was decided about its values and what that was estimated to cost.",
     "ingot explain resnet18.onnx /layer1/layer1.0/conv1/Conv --target c:native\n"
     "ingot explain resnet18.onnx k07 -v\n"},
    {"audit", command_audit, AUDIT, "DIR", "[--triple T] [--headers DIR] [--json]",
     "prove by rules what emitted C does not do",
     "Reads a bundle, or any folder of C, as clang does for machine T, and prints what breaks the rules: the heap, recursion, "
     "loops without a bound, variables that outlive a call, conversions that lose bits (docs/audit.md). Exit status 7 if "
     "there is anything.",
     "ingot audit out --triple thumbv7em-none-eabi > audit.txt\n"},
    {"targets", command_targets, TARGETS, NULL, "[--probe \"CC FLAGS..\" | --machine T]", "what can be emitted",
     "With --probe the compiler named is run, as `CC FLAGS.. -dM -E`, `-dumpmachine` and `-print-file-name=include`; nothing else is.",
     "ingot targets --probe \"arm-none-eabi-gcc -mcpu=cortex-m55 -mthumb\" >m55.target\n"
     "ingot compile kws.onnx -o out --target m55.target\n"},
    {"operators", command_operators, 0, NULL, "", "what models may contain",
     "Prints a line for each operator of each format: its name, the version, how many inputs it takes, and their element types. "
     "docs/operators.md has the same with the limits.",
     "ingot operators | grep Conv\n"},
    {"plan", command_plan, PLAN, "diff", "A.sched B.sched", "what two plans decide otherwise",
     "Compares what --save-sched wrote, or what became of it by hand: values that are stored or not, merges, variants, layouts "
     "and opts, with the bytes and operations that this moves.",
     "ingot plan diff saved.sched edited.sched\n"},
    {"tune", command_tune, TUNE, "[MODEL]", "-o model.sched [--budget 10m]", "search for faster kernels, by timing candidates",
     "Tries other tiles, lanes and orders of loops for each kernel, times them on this machine beside those that the compiler "
     "chose, checks them against the naive form, and writes what is faster in the whole network as a file for --sched. A database "
     "remembers what was tried: a search that was cut off goes on, and another model with equal kernels costs nothing (docs/tune.md).",
     "ingot tune resnet18.onnx -o resnet18.sched --budget 10m\n"
     "ingot compile resnet18.onnx -o out --target c:native --sched resnet18.sched\n"
     "ingot tune resnet18.onnx --explain --budget 0 --kernels 'k0*'\n"
     "ingot tune resnet18.onnx --prepare candidates && ingot tune resnet18.onnx --measure candidates\n"
     "ingot tune resnet18.onnx -o pi.sched --target c:cortex-a72 --remote ./on_board.sh\n"
     "ingot tune --export tuned.json\n"},
    {"cache", command_cache, CACHE, NULL, "[--size N | --clear]", "what `ingot run` and its like have compiled",
     "Prints where it is and how large. Whenever a model is added, what was used least recently goes until 2 GB are left, or "
     "as many bytes as $INGOT_CACHE_SIZE says (500M).",
     "ingot cache --size 500M\n"},
    {"completion", command_completion, COMPLETION, "bash|zsh|fish", "", "what makes a shell complete ingot's command line",
     "The installed package brings these where the shells look for them; this is for an ingot that is not installed.",
     "source <(ingot completion bash)\n"},
    {"manual", command_manual, MANUAL, "[COMMAND]", "", "the manual page of a command, or of ingot",
     "It is written for man: ingot-COMMAND(1). The installed package brings all of them.",
     "ingot manual compile | man -l -\n"},
    {NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL},
};
/* clang-format on */

const Command *cli_command(const char *name)
{
    for (const Command *c = cli_commands; c->name; c++)
        if (!strcmp(c->name, name))
            return c;
    return NULL;
}
