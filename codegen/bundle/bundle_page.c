/* bundle_page.c - --package web, for WebAssembly.
 *
 * <name>_page.c exports pointers and functions, and `make web` makes a module of it that imports
 * its memory alone: what threads share. Each of them is an instance of the module in a worker
 * (runtime_min/page_wasm.mjs), with a stack of its own behind the data, and takes tasks of the pool
 * that bundles have elsewhere too (runtime_min/host/igrt_pool.c). */
#include "bundle.h"

enum {
    PAGE_UNIT = 1 << 16,
    PAGE_MAIN_STACK = 1 << 20,
    PAGE_STACK = 1 << 17, /* of a worker: docs/abi.md, Threads */
    PAGE_THREADS = 8,
    PAGE_APART = 64,
    PAGE_CODE = 4 << 20 /* tables of the code */
};

static void page_tensors(StrBuf *sb, const char *what, const Port *p, int n)
{
    for (int i = 0; i < n; i++)
        sb_printf(sb, "static _Alignas(64) unsigned char %s%d[%lld];\n", what, i,
                  (long long)(p[i].b->bytes ? p[i].b->bytes : 1));
}

static void page_members(StrBuf *sb, const char *what, const Port *p, int n)
{
    for (int i = 0; i < n; i++)
        sb_printf(sb, "%s.%s = (void *)%s%d", i ? ", " : "", p[i].field, what, i);
    sb_puts(sb, n ? "" : ".none = 0");
}

static void page_source(Bundle *b)
{
    StrBuf sb = {0};
    const char *n = b->name, *u = b->upper;
    const bool blob = b->mode == WEIGHTS_BLOB;
    sb_printf(
        &sb,
        "/* %s_page.c - the model as a WebAssembly module that imports its memory alone: `make "
        "web`.\n *\n * Each thread is an instance of it, with a stack of its own behind the data; "
        "%s.mjs starts them. */\n#include \"%s.h\"\n#include \"host/igrt_pool.h\"\n\n"
        "#define EXPORT(name) __attribute__((export_name(#name)))\n"
        "enum { STACK = %d };\n\n"
        "static _Alignas(%s_ARENA_ALIGN) unsigned char arena[%s_ARENA_BYTES(%d) + 1];\n",
        n, n, n, PAGE_STACK, u, u, PAGE_THREADS);
    if (blob)
        sb_printf(&sb, "static _Alignas(64) unsigned char weights[%lld];\n",
                  (long long)b->p->weights_bytes);
    page_tensors(&sb, "in", b->in, b->nin);
    page_tensors(&sb, "out", b->out, b->nout);
    sb_printf(&sb,
              "static %s_ctx ctx;\nstatic igrt_pool pool;\nextern unsigned char __heap_base;\n\n"
              "/* Weights, inputs, outputs: in this order. */\n"
              "EXPORT(page_memory) void *page_memory(int i)\n{\n"
              "    static unsigned char *const memory[] = {%s",
              n, blob ? "weights" : "arena");
    for (int i = 0; i < b->nin; i++)
        sb_printf(&sb, ", in%d", i);
    for (int i = 0; i < b->nout; i++)
        sb_printf(&sb, ", out%d", i);
    sb_printf(
        &sb,
        "};\n    return memory[i];\n}\n\n"
        "/* Where the stack of thread k begins, which grows downwards. */\n"
        "EXPORT(page_stack) void *page_stack(int k)\n{\n    return &__heap_base + k * STACK;\n}\n\n"
        "EXPORT(page_init) int page_init(int threads)\n{\n    const %s_config config = "
        "{.struct_size "
        "= sizeof config,\n        .arena = arena,\n        .arena_bytes = sizeof arena%s,\n"
        "        .threads = igrt_pool_start(&pool, threads),\n        .parallel_for = "
        "igrt_pool_for,\n        .parallel_user = &pool};\n"
        "    return %s_init(&ctx, &config);\n}\n\n"
        "/* Of another instance: it does tasks from now on. */\n"
        "EXPORT(page_work) void page_work(int k)\n{\n    igrt_pool_work(&pool, k);\n}\n\n"
        "EXPORT(page_reset) int page_reset(void)\n{\n    return %s_reset(&ctx);\n}\n\n"
        "EXPORT(page_run) int page_run(void)\n{\n    const %s_inputs in = {",
        n, blob ? ",\n        .weights = weights,\n        .weights_bytes = sizeof weights" : "", n,
        n, n);
    page_members(&sb, "in", b->in, b->nin);
    sb_printf(&sb, "};\n    %s_outputs out = {", n);
    page_members(&sb, "out", b->out, b->nout);
    sb_printf(&sb, "};\n    return %s_run(&ctx, &in, &out);\n}\n", n);
    bundle_file(b, arena_printf(b->a, "%s_page.c", n), &sb);
}

static int64_t ports_bytes(const Port *p, int n)
{
    int64_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += p[i].b->bytes + PAGE_APART;
    return bytes;
}

/* The memory, which does not grow: what has no data, stacks, weights wherever they are, and what
 * code has of its own. */
static int64_t page_units(const Bundle *b)
{
    const int64_t bytes = b->p->arena_bytes + b->p->weights_bytes + ports_bytes(b->in, b->nin) +
                          ports_bytes(b->out, b->nout) + PAGE_MAIN_STACK +
                          PAGE_THREADS * PAGE_STACK + PAGE_CODE;
    return (bytes + PAGE_UNIT - 1) / PAGE_UNIT;
}

void page_make(StrBuf *sb, const Bundle *b)
{
    const char *n = b->name;
    const long long memory = page_units(b) * PAGE_UNIT;
    sb_printf(sb,
              "\n# The module of a page. Its memory may be shared by threads; nothing but the pool "
              "is atomic, so the model's\n# objects are those of the library.\n"
              "web: %s_page.wasm\n"
              "SHARED = -matomics -mbulk-memory -mmutable-globals -DIGRT_POOL_WASM=1 -nostartfiles "
              "-Wl,--no-entry \\\n    "
              "-Wl,--import-memory,--shared-memory,--no-check-features,--export=__stack_pointer "
              "\\\n    -Wl,--stack-first,-z,stack-size=%d,--initial-memory=%lld,"
              "--max-memory=%lld\n"
              "%s_page.wasm: %s_page.c host/igrt_pool.c lib%s.a $(HEADERS)\n"
              "\t$(CC) $(FLAGS) $(CFLAGS) $(SHARED) -o $@ %s_page.c host/igrt_pool.c lib%s.a "
              "-lm\n.PHONY: web\n",
              n, PAGE_MAIN_STACK, memory, memory, n, n, n, n, n);
}

void page_wasm(StrBuf *sb, Bundle *b)
{
    const int64_t most = (int64_t)1 << 32;
    if (page_units(b) > most / PAGE_UNIT)
        bundle_fail(b, INGOT_UNSUPPORTED,
                    "--package web: the model needs %lld MB, and WebAssembly has %lld: %lld MB are "
                    "weights, and --max-ram N plans for less besides",
                    (long long)(page_units(b) * PAGE_UNIT >> 20), (long long)(most >> 20),
                    (long long)(b->p->weights_bytes >> 20));
    sb_printf(sb, "  wasm: {file: \"%s_page.wasm\", memory: %lld, threads: %d", b->name,
              (long long)page_units(b), PAGE_THREADS);
    if (b->mode == WEIGHTS_BLOB)
        sb_printf(sb, ", weights: \"%s.weights\", bytes: %lld", weights_prefix(b),
                  (long long)b->p->weights_bytes);
    sb_puts(sb, "},\n");
    page_source(b);
}
