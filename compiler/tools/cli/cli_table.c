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
    MERGE = 1 << 14,
    EXECUTE = RUN | VERIFY | BENCH,
    BUNDLE = COMPILE | INSPECT,
    MODEL = EXECUTE | BUNDLE | EXPLAIN | CHAT,
    GRAPH = MODEL | CHECK,
    TRAINED = COMPILE | VERIFY | BENCH | INSPECT | EXPLAIN
};

#define WORD(member) .word = true, .at = offsetof(Options, member)
#define SET(member) .set = true, .at = offsetof(Options, member)

/* clang-format off */
const CliOption cli_options[] = {
    {"-o", "DIR", COMPILE, "the folder to write; an older bundle in it is replaced", WORD(output), .path = CLI_FOLDER},
    {"-o", "FILE", INSPECT, "one page with the graph, the plan and the kernels (docs/report.md): open it in a browser",
     WORD(output), .path = CLI_FILE},
    {"-o", "FILE", TUNE, "the file to write, for --sched (docs/sched.md)", WORD(output), .path = CLI_FILE},
    {"-o", "FILE", MERGE, "the file to write. NAME.onnx: the model with the trained weights; NAME.safetensors: only the weights", WORD(output),
     .path = CLI_FILE},
    {"--data", "DIR", RUN, "read DIR/input_N.pb (or .npy), and compare the results with DIR/output_N if it exists",
     WORD(data), .path = CLI_FOLDER},
    {"--data", "DIR", VERIFY | BENCH | TUNE, "read the inputs from DIR/input_N.pb (or .npy); default: random inputs, the same in each run", WORD(data),
     .path = CLI_FOLDER},
    {"--input", "FILE", EXECUTE | TUNE, "an input, .npy or .pb; repeat it for each input, in the model's order, or as NAME=FILE", .take = option_input,
     .path = CLI_FILE},
    {"--output-dir", "DIR", RUN, "write DIR/output_N.pb (.npy if the inputs are); default: print them", WORD(output_dir),
     .path = CLI_FOLDER},
    {"--tolerance", "T", RUN | VERIFY, "the largest error that passes, as a share of the largest expected value. Default: "
     "f64 1e-6, f32 1e-3, f16 1e-2, bf16 4e-2, f8 0.25; i8 and u8 may be off by 1; everything else has to be equal", .take = option_tolerance},
    {"--interpret", NULL, VERIFY, "run the kernels in an interpreter, without a C compiler or a device. This is the default for targets "
     "whose programs cannot run on this machine", SET(interpret)},
    {"--threads", "N", EXECUTE, "how many threads run the kernels (default 1)", .take = option_threads},
    {"--threads", "N", BUNDLE | EXPLAIN, "the number of threads to compile for, if the --sched file was tuned for several",
     .take = option_threads},
    {"--threads", "N[,N]", TUNE, "how many threads run the network; with several numbers, the file gets decisions for each", .take = option_thread_counts},
    {"--threads", "N", CHAT, "how many threads run the kernels (default 1)", .take = option_threads},
    {"--prompt", "TEXT", CHAT, "answer this text and exit; default: answer each line that you type", WORD(chat[0])},
    {"--system", "TEXT", CHAT, "the system prompt", WORD(chat[1])},
    {"--tokens", "N", CHAT, "the largest number of tokens in an answer (default 512)", WORD(chat[2])},
    {"--temperature", "T", CHAT, "0: always the most likely token (default)", WORD(chat[3])},
    {"--top-k", "N", CHAT, "only the N most likely tokens (default 1024)", WORD(chat[4])},
    {"--top-p", "P", CHAT, "only the most likely tokens that together have this probability", WORD(chat[5])},
    {"--min-p", "P", CHAT, "only tokens at least P times as likely as the most likely one", WORD(chat[6])},
    {"--repeat-penalty", "R", CHAT, "above 1, recent tokens become less likely", WORD(chat[7])},
    {"--seed", "N", CHAT, "the same seed gives the same answers (default 0)", WORD(chat[8])},
    {"--ids", NULL, CHAT, "print the numbers of the tokens instead of their text", SET(chat_ids)},
    {"--seconds", "S", BENCH, "how long to measure (default 1)", .take = option_seconds},
    {"--per-kernel", NULL, BENCH, "time every step, list the slowest first, and compare each with the speed that this machine allows", SET(per_kernel)},
    {"--on-device", NULL, BENCH, "time only the work of the GPU: inputs and outputs stay in its memory", SET(on_device)},
    {"--trace", "FILE", BENCH, "also write one run as a timeline with a row for each thread (.json, for ui.perfetto.dev or chrome://tracing)", WORD(trace),
     .path = CLI_FILE},
    {"--json", NULL, BENCH, "print one line of JSON, with \"median_ms\"; for a language model, \"answer_tokens_per_second\"", SET(json)},
    {"--json", NULL, INSPECT, "print everything that the page shows, as JSON (docs/report.md)", SET(json)},
    {"--times", "FILE", INSPECT | EXPLAIN, "the output of `ingot bench --per-kernel --json`: show measured times", WORD(times),
     .path = CLI_FILE},
    {"--diff", "FILE", INSPECT, "the JSON of another model, target or plan, to compare with", WORD(diff),
     .path = CLI_FILE},
    {"--dot", NULL, INSPECT, "print steps and tensors for Graphviz", SET(dot)},
    {"--assembly", NULL, INSPECT, "with --json: include the assembly of the innermost loops", SET(assembly)},
    {"--no-assembly", NULL, INSPECT, "with -o: leave the assembly out", SET(no_assembly)},
    {"--json", NULL, AUDIT, "print JSON", SET(json)},
    {"--dump", "WHAT", INSPECT, "print the graph, the plan, the kernels after a pass, or their code; separate several by commas", WORD(dump),
     .choices = "@dumps"},
    {"--target", "T", MODEL | TUNE, "c, c:native, c:x86-64-v3 ...: `ingot targets` lists them. Default: c for compile, "
     "c:native for commands that run the model. A name with a '/', or X.target, is a file (docs/targets.md). cuda:sm_90a+c:native: the GPU if there is one, else the CPU. "
     "c:x86-64-v2,x86-64-v3: the best that the processor supports (compile, run, bench)", WORD(compile.target), .choices = "@targets"},
    {"--name", "NAME", BUNDLE, "the prefix of all emitted names (default: model)", WORD(compile.name)},
    {"--weights", "W", BUNDLE, "array, blob, incbin; default: array up to 64 KB and for microcontrollers, then blob", WORD(compile.weights),
     .choices = "array blob incbin"},
    {"--package", "P", COMPILE, "the build system: cmake and make (default), zephyr, esp-idf, arduino, cmsis (docs/bundle.md), web (docs/web.md)",
     WORD(compile.package), .choices = "cmake make zephyr esp-idf arduino cmsis web"},
    {"--memory", "NAME=SIZE", BUNDLE, "divide the arena among memories (dtcm=64k); repeat it in order of preference. The "
     "last memory needs no size; it takes the rest", .take = option_memory},
    {"--devices", "N", MODEL, "divide the work among N devices, each with its own memory (docs/devices.md); for C targets, a device is a thread", .take = option_devices},
    {"--parallel", "HOW", MODEL, "how --devices divides the work. batch: each device computes some rows of the batch; tensor: each has a part of the weights of "
     "every layer; layers: each computes some layers", WORD(compile.parallel), .choices = "batch tensor layers"},
    {"--max-vram", "N", BUNDLE, "refuse the model if arena, weights, inputs and outputs take more GPU memory (512M, 8G)", .take = option_max_vram},
    {"--max-ram", "N", EXECUTE | BUNDLE, "use at most this much RAM (256k, 2M), with a slower plan if necessary. If no plan fits, refuse the model and list the largest tensors", .take = option_max_ram},
    {"--max-flash", "N", COMPILE, "for microcontrollers: fail if code and constants take more than this (256k). The target's compiler links them; if it is not "
     "installed, their size is an estimate", .take = option_max_flash},
    {"--io", "FORM", BUNDLE, "the form of inputs and outputs: int8, uint8 (the caller quantises inputs and dequantises outputs; model.h "
     "has scale and zero point) or nhwc (channels last). For all inputs and outputs that allow it", .take = option_io},
    {"--io", "NAME=FORM", BUNDLE, "the same, for this input or output; may be repeated", .take = option_io},
    {"--io-in-arena", NULL, BUNDLE, "place inputs and outputs in the arena, at addresses that model.h declares. A run may overwrite an input "
     "once it has been read", SET(compile.io_in_arena)},
    {"--dim", "NAME=N", GRAPH | TUNE, "set the size of a dim that the model leaves open", .take = option_dim},
    {"--dim", "NAME=LO..HI", GRAPH | TUNE, "each run chooses its size, within these bounds", .take = option_dim},
    {"--dim", "NAME=OTHER", GRAPH | TUNE, "two open dims are equal", .take = option_dim},
    {"--dim", "TENSOR=LO..HI", GRAPH | TUNE, "bounds for the elements of an integer tensor (an input, or inside the model)",
     .take = option_dim},
    {"--dim", "TENSOR_A=LO..HI", GRAPH | TUNE, "bounds for the size of a tensor along axis A, if it depends on the data",
     .take = option_dim},
    {"--entry", "NAME", GRAPH | TUNE, "compile only this network of a file that has several (default: all; the first one becomes run())", WORD(entry)},
    {"--function", "NAME", INSPECT | EXPLAIN, "the function to show, if the model has several: decode, train_step .. (default: run). The page of -o has all of them, and shows this one first", WORD(function)},
    {"--state", "INPUT=OUTPUT", GRAPH | TUNE, "keep a tensor from run to run: the output becomes the input of the next run. It starts as zeros. 'past.*=present.*' declares one for each input whose name begins with 'past.'",
     .take = option_state},
    {"--kv", "TYPE", GRAPH | TUNE, "the type in which a language model keeps keys and values: f16 (default), f32, or q8: bytes", .take = option_kv, .choices = "f16 f32 q8"},
    {"--weights-type", "TYPE", GRAPH | TUNE, "convert the matrices of a Hugging Face folder to f16, bf16, q8_0, q4_0 or q4_k (default: as in the file)", WORD(weights_type), .choices = "f16 bf16 q8_0 q4_0 q4_k"},
    {"--slots", "N", GRAPH | TUNE, "how many sequences a language model continues in one run, each with its own states (docs/llm.md; default: 1)", .take = option_slots},
    {"--train", NULL, TRAINED, "also compile <name>_train_step(), a training step (docs/training.md); bench: time the training step", SET(train)},
    {"--loss", "LOSS", TRAINED, "cross_entropy:OUTPUT, mse:OUTPUT, or the name of an output that is the loss", WORD(training.loss)},
    {"--optimizer", "OPT", TRAINED, "sgd, momentum, adam or adamw; with numbers: adamw:rate=1e-3,decay=0.01 (beta1, "
     "beta2, epsilon, nesterov). Without a rate, it is an input of each step", .take = option_optimizer},
    {"--trainable", "GLOB", TRAINED, "train only the weights whose names match ('fc.*'); may be repeated", .take = option_trainable},
    {"--frozen", "GLOB", TRAINED, "do not train the weights whose names match; may be repeated", .take = option_frozen},
    {"--lora", "r=N[:alpha=A]:GLOB", TRAINED, "do not change the weights whose names match, but train corrections of rank N for them, multiplied by A / N (default: A = N) "
     "(docs/training.md); may be repeated", .take = option_lora},
    {"--clip", "NORM", TRAINED, "scale the gradients so that their total norm is at most this", .take = option_clip},
    {"--loss-scale", "S", TRAINED, "multiply the loss by S before taking gradients, for --precision f16. S adapts: a step whose gradients are not finite "
     "is skipped and halves it", .take = option_loss_scale},
    {"--quantised", NULL, TRAINED, "train a quantised model as it computes: rounding to integers has the gradient 1, and int8 weights are trained as rounded floats "
     "(docs/training.md)", SET(training.quantised)},
    {"--accumulate", "N", TRAINED, "update the weights in every Nth step, by the mean of the gradients", .take = option_accumulate},
    {"--processes", NULL, TRAINED, "average the gradients and the loss over all processes, with config.comm (docs/devices.md)", SET(optimizer.processes)},
    {"--class-axis", "A", TRAINED, "for cross_entropy: the axis of the classes (default 1; -1: the last)", .take = option_class_axis},
    {"--label-smoothing", "S", TRAINED, "for cross_entropy: spread this share of each label over all classes", .take = option_smoothing},
    {"--ignore-index", "I", TRAINED, "for cross_entropy: ignore labels with this number", .take = option_ignore_index},
    {"--op", "D:TYPE=F.c[:FN]", GRAPH | TUNE, "nodes of type TYPE in domain D call function FN of the C file F.c "
     "(docs/custom_ops.md)", .take = option_op},
    {"--bind", "NAME=V,V..", GRAPH | TUNE, "an input (or open dim) always has this value", .take = option_bind},
    {"--no-bind", NULL, EXECUTE, "do not bind inputs that decide shapes to their values in the data", SET(no_bind)},
    {"--string-bytes", "N", MODEL | TUNE, "average number of bytes to reserve for each string that the model makes (default 256)", .take = option_string_bytes},
    {"--subnormals", "WHAT", MODEL | TUNE, "flush (default): treat f32 values below the smallest normal number as zero; keep: do not", .take =
     option_subnormals, .choices = "keep flush"},
    {"--rounding", "HOW", MODEL | TUNE, "how TensorFlow Lite models of int8 and uint8 round. reference (default): like the reference kernels and tflite-micro; xnnpack: like LiteRT's default delegate, once, in floats", .take =
     option_rounding, .choices = "reference xnnpack"},
    {"--precision", "WHAT[:GLOB]", MODEL | TUNE, "the type in which f32 numbers are multiplied. f32 (default); 1e-5: f32, but by faster forms with an error of up to 1e-5 of the range; "
     "bf16; bf16x3, bf16x6: three or six bf16 products; f16, tf32; fp8, fp8-fast: weights in 8-bit floats; q8: quantised blocks of weights as bytes, the default for GGUF files if the "
     "machine has dot products of bytes; q16: the same with two bytes for each activation; narrow: weights of 16 bits or less multiply activations "
     "in f16 (bf16 weights: in bf16), the default for GGUF files on GPUs with matrix units. With GLOB: only nodes whose names match, or MODULE.NAME; may be repeated, the last match counts", .take =
     option_precision, .choices = "f32 1e-5 bf16 bf16x3 bf16x6 f16 tf32 fp8 fp8-fast q8 q16 narrow"},
    {"--no-check", NULL, BUNDLE | EXECUTE, "skip the check that compares some results of each step with the graph",
     SET(compile.no_check)},
    {"-O0", NULL, MODEL, "naive kernels", .take = option_level},
    {"-O2", NULL, MODEL, "optimised kernels (default)", .take = option_level},
    {"--no-rewrite", "NAME,NAME..", MODEL, "do not apply these rewrites of the graph; a wrong name prints the list", WORD(compile.no_rewrite),
     .choices = "@rewrites"},
    {"--fuse", "HOW", MODEL, "auto (default); none: store every value; all: as few kernels as possible", WORD(compile.fuse),
     .choices = "auto none all"},
    {"--prefer", "WHAT", MODEL, "what to save when a decision trades one for the other: ram or time. Default: ram for microcontrollers, else time", WORD(compile.prefer),
     .choices = "ram time"},
    {"--sched", "FILE", MODEL, "follow the decisions in this file (docs/sched.md)", WORD(compile.sched), .path = CLI_FILE},
    {"--sched", "FILE", TUNE, "for a GPU: start from the decisions in this file", WORD(compile.sched), .path = CLI_FILE},
    {"--save-sched", "FILE", COMPILE, "write the compiler's decisions, for --sched", WORD(compile.save_sched),
     .path = CLI_FILE},
    {"--selftest", "DIR", COMPILE, "use DIR/input_N and output_N (.pb, .npy) as the golden data of <name>_selftest(). Default: "
     "computed data, for models that the interpreter runs quickly", WORD(selftest), .path = CLI_FOLDER},
    {"--depfile", "FILE", COMPILE, "write the list of files that were read, as a make rule",
     WORD(depfile), .path = CLI_FILE},
    {"--no-cache", NULL, EXECUTE | CHAT, "compile again, even if the cache has the model", SET(no_cache)},
    {"--triple", "T", AUDIT, "x86_64-linux-gnu, aarch64-linux-gnu, thumbv7em-none-eabi, riscv32 ...; default: this machine",
     WORD(triple), .choices = "x86_64-linux-gnu aarch64-linux-gnu thumbv7em-none-eabi riscv32"},
    {"--headers", "DIR", AUDIT, "the folder of the C library's headers for T, if it is not the usual one", WORD(headers),
     .path = CLI_FOLDER},
    {"--probe", "CC FLAGS..", TARGETS, "ask a C compiler about its machine, and print a target file for --target FILE "
     "(docs/targets.md)", WORD(probe)},
    {"--machine", "T", TARGETS, "print a target as a target file, with all figures of its machine; c:native, cuda:native and opencl:native are "
     "this machine", WORD(machine), .choices = "@targets"},
    {"--budget", "TIME", TUNE, "how long to search: 90s, 10m (default), 2h; 0: use only what the database knows", .take = option_budget},
    {"--beam", "N", TUNE, "how many candidates of a kernel the search continues from (default 4)", .take = option_beam},
    {"--kernels", "PATTERN", TUNE, "only kernels whose name, or a name of a node that they compute, matches: k07*, *conv1*", WORD(kernels)},
    {"--database", "FILE", TUNE, "the database of candidates that were tried; default: $INGOT_TUNE, or tune.db in the cache", WORD(database),
     .path = CLI_FILE},
    {"--explain", NULL, TUNE, "for each kernel, print what was tried, what won, and why; -v: every candidate", SET(why)},
    {"--prepare", "DIR", TUNE, "write and build the first candidates, without timing them", WORD(prepare), .path = CLI_FOLDER},
    {"--lot", "N", TUNE, "with --prepare: also take N random candidates of each kernel", .take = option_lot},
    {"--measure", "DIR", TUNE, "time the candidates that --prepare wrote to DIR; an interrupted run continues where it stopped", WORD(measure), .path = CLI_FOLDER},
    {"--remote", "CMD", TUNE, "CMD DIR ARGS.. has to copy the folder DIR to another machine, run make and ./tune_run ARGS there, and print "
     "the output (docs/tune.md)", WORD(remote)},
    {"--export", "FILE", TUNE, "write the database as lines of JSON; takes no model", WORD(export_to), .path = CLI_FILE},
    {"--import", "FILE", TUNE, "add the lines of such a file to the database; takes no model", WORD(import), .path = CLI_FILE},
    {"--size", "N", CACHE, "remove the least recently used models until at most this is left (500M, 2G)", .take = option_cache_bytes},
    {"--clear", NULL, CACHE, "remove everything", SET(clear)},
    {"-q", NULL, COMPILE | EXECUTE | TUNE | CHAT, "print errors only: no notes, no progress", SET(quiet)},
    {"-v", NULL, (GRAPH & ~EXPLAIN) | TUNE, "print times and the steps of the plan; -vv: its kernels too; -vvv: decisions and their "
     "alternatives; -vvvv: nodes and statements of kernels", .take = option_verbose},
    {"-v", NULL, EXPLAIN, "print more than 40 lines, with the loops of kernels; -vv: their statements; -vvv: their text, and the opts that "
     "were considered; -vvvv: their nodes", .take = option_verbose},
    {NULL, NULL, 0, NULL, .path = CLI_NONE},
};

const Command cli_commands[] = {
    {"compile", command_compile, COMPILE, "MODEL", "-o DIR", "write a model as a folder of C", NULL,
     "ingot compile resnet18.onnx -o out && make -C out && out/model IN OUT\n"
     "ingot compile bert.onnx -o out --dim batch=1..8 --dim seq=128 --name bert\n"
     "ingot compile kws.onnx -o out --target c:cortex-m4 --max-ram 256k\n"},
    {"run", command_run, RUN, "MODEL", "--data DIR | --input FILE... [--output-dir D]",
     "compile into the cache, run, write the outputs",
     "Open dims take their size from the data. An index that is out of range (of a Gather or Scatter) ends the "
     "run; docs/abi.md says what a bundle does. The cache is $INGOT_CACHE, or ~/.cache/ingot.",
     "ingot run resnet18.onnx --data test_data_set_0 --output-dir out\n"
     "ingot run add.onnx --input x.npy --input y.npy\n"},
    {"verify", command_verify, VERIFY, "MODEL", "[--data DIR | --input FILE...]",
     "check every kernel of the compiled model",
     "Compares every kernel with a naive version on the same inputs, and the naive kernels with the reference "
     "interpreter. For each step that differs it prints the kernel, its nodes and the worst element; -v prints all steps. "
     "Outputs in the data folder are compared as in `ingot run`. For another machine (and with --interpret) an "
     "interpreter runs the kernels: it also finds elements that nothing has written, accesses "
     "outside of buffers, and races between threads or work items.",
     "ingot verify resnet18.onnx\n"
     "ingot verify kws.onnx --target c:cortex-m4\n"
     "ingot verify digits.onnx --target cuda --interpret\n"},
    {"bench", command_bench, BENCH, "MODEL", "[--data DIR] [--threads N] [--json]", "time the compiled model",
     "For a language model (a GGUF file with a known vocabulary) it prints tokens per second of a prompt and of an answer, and compares that with "
     "the speed of reading the weights. With --data, --per-kernel, --trace or --on-device, it times run() as for any model.",
     "ingot bench resnet18.onnx --threads 4 --json\n"},
    {"chat", command_chat, CHAT, "MODEL", "[--prompt TEXT]", "talk with a language model",
     "The model, a GGUF file, is compiled into the cache. What you type is put into the model's chat template "
     "(docs/llm.md).",
     "ingot chat SmolLM2-135M-Instruct.Q4_1.gguf\n"
     "ingot chat llama.gguf --temperature 0.8 --top-p 0.95 --seed 1 --prompt \"Tell me a story.\"\n"},
    {"check", command_check, CHECK, "MODEL", "[--dim NAME=LO..HI] [--bind NAME=V]",
     "list every operator that is not supported",
     "With --dim or --bind it also builds every node and checks the shapes.",
     "ingot check model.onnx --dim batch=1..8\n"},
    {"inspect", command_inspect, INSPECT, "MODEL", "-o FILE.html | --json | --dot | --dump graph|plan|PASS|kernels",
     "show what a model is compiled to: as a page, JSON, Graphviz or text", NULL,
     "ingot inspect resnet18.onnx -o report.html\n"
     "ingot inspect resnet18.onnx --json | jq .arena_bytes\n"
     "ingot inspect llama.gguf --function decode -o report.html\n"
     "ingot bench resnet18.onnx --per-kernel --json >times && ingot inspect resnet18.onnx --target c:native --times times -o report.html\n"},
    {"explain", command_explain, EXPLAIN, "MODEL", "[NODE]", "show how a node is computed, what it costs, and why it is stored or not",
     "NODE is the name of a node in the file, a kernel (k07), a step (12) or a tensor. For a node, it prints the steps that compute it, "
     "the decisions about its values, and their estimated costs. Without NODE it prints one line for each step of the model, "
     "and then describes the slowest.",
     "ingot explain resnet18.onnx --target c:native\n"
     "ingot explain resnet18.onnx /layer1/layer1.0/conv1/Conv --target c:native\n"
     "ingot explain resnet18.onnx k07 -v\n"},
    {"audit", command_audit, AUDIT, "DIR", "[--triple T] [--headers DIR] [--json]",
     "prove that emitted C uses no heap, recursion or unbounded loops",
     "Reads a bundle, or any folder of C, as clang does for machine T, and prints everything that breaks the rules: the heap, recursion, "
     "loops without a bound, variables that outlive a call, conversions that lose bits (docs/audit.md). The exit status is 7 if "
     "it finds anything.",
     "ingot audit out --triple thumbv7em-none-eabi > audit.txt\n"},
    {"targets", command_targets, TARGETS, NULL, "[--probe \"CC FLAGS..\" | --machine T]", "list the targets",
     "--probe runs the compiler three times, as `CC FLAGS.. -dM -E`, `-dumpmachine` and `-print-file-name=include`, and nothing else.",
     "ingot targets --probe \"arm-none-eabi-gcc -mcpu=cortex-m55 -mthumb\" >m55.target\n"
     "ingot compile kws.onnx -o out --target m55.target\n"},
    {"operators", command_operators, 0, NULL, "", "list the operators that models may contain",
     "Prints one line for each operator of each format: name, version, number of inputs, element types. "
     "docs/operators.md also has the limits.",
     "ingot operators | grep Conv\n"},
    {"plan", command_plan, PLAN, "diff", "A.sched B.sched", "describe the differences between two plans",
     "Compares two files of --save-sched, edited or not: stored values, merges, variants, layouts "
     "and opts, with the bytes and operations of each difference.",
     "ingot plan diff saved.sched edited.sched\n"},
    {"merge", command_merge, MERGE, "MODEL", "STATES -o FILE", "put trained weights into a model",
     "STATES is a file that a model compiled with --train has saved. Its weights replace those of the model; adapters "
     "(--lora) are added to their weights.",
     "ingot merge net.onnx trained.safetensors -o trained.onnx\n"
     "ingot merge net.onnx trained.safetensors -o weights.safetensors\n"},
    {"tune", command_tune, TUNE, "[MODEL]", "-o model.sched [--budget 10m]", "search for faster kernels, by timing candidates",
     "Tries other tiles, vectors and loop orders for each kernel, times them on this machine against the compiler's "
     "choice, checks their results, and writes those that make the whole network faster to a file for --sched. A database "
     "keeps the results: an interrupted search continues, and another model with the same kernels costs nothing (docs/tune.md).",
     "ingot tune resnet18.onnx -o resnet18.sched --budget 10m\n"
     "ingot compile resnet18.onnx -o out --target c:native --sched resnet18.sched\n"
     "ingot tune resnet18.onnx --explain --budget 0 --kernels 'k0*'\n"
     "ingot tune resnet18.onnx --prepare candidates && ingot tune resnet18.onnx --measure candidates\n"
     "ingot tune resnet18.onnx -o pi.sched --target c:cortex-a72 --remote ./on_board.sh\n"
     "ingot tune --export tuned.json\n"},
    {"cache", command_cache, CACHE, NULL, "[--size N | --clear]", "show or clear the cache of compiled models",
     "Prints the folder and the size of the cache. When a model is added, the least recently used ones are removed until at most 2 GB are left, or "
     "the size that $INGOT_CACHE_SIZE gives (500M).",
     "ingot cache --size 500M\n"},
    {"completion", command_completion, COMPLETION, "bash|zsh|fish", "", "print the completion script of a shell",
     "The installed package contains these scripts. Use this command if ingot is not installed.",
     "source <(ingot completion bash)\n"},
    {"manual", command_manual, MANUAL, "[COMMAND]", "", "print the manual page of a command, or of ingot",
     "The output is input for man. The installed package contains all pages: man ingot-COMMAND.",
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
