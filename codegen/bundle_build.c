/* bundle_build.c - what builds the bundle: the runtime's sources, copied as they are and only those
 * that are needed, a Makefile and a CMakeLists.txt. */
#include <string.h>

#include "bundle.h"

/* ---- runtime ----------------------------------------------------------------------------- */

static const RuntimeFile *find(const char *name, size_t n)
{
    for (const RuntimeFile *f = runtime_files; *f->name; f++)
        if (strlen(f->name) == n && !memcmp(f->name, name, n))
            return f;
    return NULL;
}

typedef struct {
    const RuntimeFile **file;
    int n;
} FileList;

static void need(Bundle *b, FileList *list, const char *name, size_t n)
{
    const RuntimeFile *f = find(name, n);
    if (!f)
        return; /* a header of the system or of the model */
    for (int i = 0; i < list->n; i++)
        if (list->file[i] == f)
            return;
    vec_push(b->a, list->file, list->n, f);
}

/* <name>_op_swish.c: the user's source and what calls it. */
static void need_custom(Bundle *b, const CustomOp *op)
{
    const char *file = arena_printf(b->a, "%s_%s.c", b->name, op->name);
    for (int i = 0; i < b->nfile; i++)
        if (!strcmp(b->files[i], file))
            return;
    StrBuf sb = {0};
    custom_source(&sb, op, b->name);
    bundle_file(b, file, &sb);
}

static void need_calls(Bundle *b, FileList *list, const Block *block)
{
    for (int i = 0; i < block->n; i++) {
        const Step *s = block->step[i];
        if (s->kind == STEP_CALL && s->call->custom) {
            need(b, list, "igrt_lib.h", 10);
            need_custom(b, s->call->custom);
        } else if (s->kind == STEP_CALL) {
            const char *file = arena_printf(b->a, "%s.c", s->call->name);
            if (!find(file, strlen(file)))
                bundle_fail(b, INGOT_UNSUPPORTED, "there is no library kernel '%s'", s->call->name);
            need(b, list, file, strlen(file));
        }
        need_calls(b, list, &s->body);
        need_calls(b, list, &s->other);
    }
}

/* Headers bring what they include, and igrt_pool.h its igrt_pool.c. */
static void need_includes(Bundle *b, FileList *list)
{
    for (int i = 0; i < list->n; i++) {
        const char *text = (const char *)list->file[i]->data, *end = text + list->file[i]->bytes;
        for (const char *p = text; p < end;) {
            const char *eol = memchr(p, '\n', (size_t)(end - p));
            eol = eol ? eol : end;
            static const char include[] = "#include \"";
            if ((size_t)(eol - p) > sizeof include && !memcmp(p, include, sizeof include - 1)) {
                const char *name = p + sizeof include - 1;
                const char *quote = memchr(name, '"', (size_t)(eol - name));
                if (quote) {
                    need(b, list, name, (size_t)(quote - name));
                    if (quote[-1] == 'h') {
                        char *source = arena_printf(b->a, "%.*s", (int)(quote - name), name);
                        source[quote - name - 1] = 'c';
                        need(b, list, source, strlen(source));
                    }
                }
            }
            p = eol + 1;
        }
    }
}

static void copy_runtime(Bundle *b)
{
    static const char *const always[] = {"igrt.h", "igrt.c", "driver.h", "driver.c", "igrt_pool.h"};
    FileList list = {0};
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
        need(b, &list, always[i], strlen(always[i]));
    need(b, &list, "igrt_num.h", 10);
    if (b->target->lanes)
        need(b, &list, "igrt_vec.h", 10);
    for (int i = 0; i < b->p->nkernel; i++)
        for (int j = 0; j < b->p->kernels[i]->nopt; j++)
            if (b->p->kernels[i]->opts[j].kind == OPT_DOT)
                need(b, &list, b->target->lanes ? "igrt_dot_vec.h" : "igrt_dot.h",
                     b->target->lanes ? 14 : 10);
    if (b->gpu) {
        const char *adapter = arena_printf(b->a, "igrt_gpu_%s.h", b->target->name);
        need(b, &list, adapter, strlen(adapter));
    }
    if (b->target->wasm)
        need(b, &list, "run.mjs", 7);
    need_calls(b, &list, &b->p->main);
    need_includes(b, &list);
    for (int i = 0; i < list.n && !b->failed; i++) {
        StrBuf sb = {0};
        sb_write(&sb, list.file[i]->data, list.file[i]->bytes);
        bundle_file(b, list.file[i]->name, &sb);
    }
}

/* ---- build files ------------------------------------------------------------------------- */

static bool has_suffix(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n > m && !strcmp(s + n - m, suffix);
}

/* The driver's own sources, which do not belong in a library. */
static bool is_driver(const char *file)
{
    return !strcmp(file, "main.c") || !strcmp(file, "driver.c") || !strcmp(file, "igrt_pool.c");
}

static void sources(StrBuf *sb, const Bundle *b, bool driver, const char *suffix)
{
    size_t width = 0;
    for (int i = 0; i < b->nfile; i++) {
        const char *f = b->files[i], *dot = strrchr(f, '.');
        if (!(has_suffix(f, ".c") || has_suffix(f, ".S")) || is_driver(f) != driver)
            continue;
        if (width + strlen(f) > 80) {
            sb_puts(sb, *suffix ? " \\\n   " : "\n   ");
            width = 0;
        }
        size_t before = sb->len;
        sb_printf(sb, " %.*s%s", *suffix ? (int)(dot - f) : (int)strlen(f), f, suffix);
        width += sb->len - before;
    }
}

/* For which machine the C compiler builds: the target's choice, and no part of what a user sets as CFLAGS. */
static const char *machine_flags(const Bundle *b)
{
    return b->target->flags ? b->target->flags : "";
}

/* What make builds with: a name that it has of its own counts as not given. */
static void tools(StrBuf *sb, const Target *t)
{
    const char *name[] = {"CC", "AR"}, *tool[] = {t->cc, t->ar}, *usual[] = {"cc", "ar"};
    for (int i = 0; i < 2; i++)
        if (tool[i])
            sb_printf(sb, "ifeq ($(origin %s),default)\n%s = %s\nendif\n", name[i], name[i],
                      tool[i]);
        else
            sb_printf(sb, "%s ?= %s\n", name[i], usual[i]);
}

static void makefile(Bundle *b)
{
    const char *machine = machine_flags(b);
    bool generic = b->target->lanes && !*machine;
    StrBuf sb = {0};
    const char *n = b->name, *program = b->target->wasm ? arena_printf(b->a, "%s.wasm", n) : n;
    sb_printf(
        &sb,
        "# Builds ./%s, the driver, and lib%s.a, the model for use in other programs.\n"
        "#\n"
        "# Several models link into one program: every name of this one starts with %s_, and the\n"
        "# runtime (igrt*) is the same in all bundles, so the linker takes it from one of the "
        "archives.\n"
        "%s"
        "%s",
        program, n, n,
        generic ? "#\n# The kernels suit every processor; `ingot compile --target c:native` makes "
                  "faster ones for this one.\n"
                : "",
        b->target->wasm ? "#\n# clang and wasi-libc build it (Debian: clang lld llvm wasi-libc "
                          "libclang-rt-dev-wasm32); `node run.mjs` runs it.\n"
                        : "");
    tools(&sb, b->target);
    sb_printf(&sb, "CFLAGS ?= -O2\nLDLIBS ?= -lm%s\n\n", b->gpu ? " -ldl" : "");
    sb_puts(&sb, "MODEL =");
    sources(&sb, b, false, ".o");
    sb_puts(&sb, "\nDRIVER =");
    sources(&sb, b, true, ".o");
    sb_puts(&sb, "\nHEADERS = $(wildcard *.h)\n");
    sb_printf(&sb,
              "\n# Contraction would make results depend on the compiler; kernels spell fma where "
              "they want it.\n"
              "FLAGS = -std=c99 -ffp-contract=off%s -I.%s%s\n",
              b->target->wasm ? "" : " -pthread", *machine ? " " : "", machine);
    if (b->target->link)
        sb_printf(&sb, "LINK = %s\n", b->target->link);
    sb_printf(&sb,
              "\nall: %s lib%s.a\n"
              "\n%s: $(DRIVER) lib%s.a\n\t$(CC) $(FLAGS) $(CFLAGS)%s $(LDFLAGS) -o $@ $(DRIVER) "
              "lib%s.a $(LDLIBS)\n"
              "\nlib%s.a: $(MODEL)\n\trm -f $@\n\t$(AR) rcs $@ $(MODEL)\n"
              "\n%%.o: %%.c $(HEADERS)\n\t$(CC) $(FLAGS) $(CFLAGS) $(CPPFLAGS) -c -o $@ $<\n",
              program, n, program, n, b->target->link ? " $(LINK)" : "", n, n);
    if (b->mode == WEIGHTS_INCBIN)
        sb_printf(
            &sb,
            "\n%s_weights.o: %s_weights.S %s.weights\n\t$(CC) $(CPPFLAGS) -I.%s%s -c -o $@ $<\n", n,
            n, n, *machine ? " " : "", machine);
    sb_printf(&sb,
              "\nclean:\n\trm -f %s lib%s.a $(MODEL) $(DRIVER)\n"
              "\n.PHONY: all clean\n",
              program, n);
    bundle_file(b, "Makefile", &sb);
}

static void cmakelists(Bundle *b)
{
    StrBuf sb = {0}, flags = {0};
    sb_printf(&flags, "-ffp-contract=off%s%s", *machine_flags(b) ? ";" : "", machine_flags(b));
    for (size_t i = 0; i < flags.len; i++)
        if (flags.data[i] == ' ')
            flags.data[i] = ';';
    const char *n = b->name;
    sb_printf(&sb,
              "# add_subdirectory() this folder and link %s_model; built by itself it makes the "
              "driver too.\n"
              "cmake_minimum_required(VERSION 3.13)\n"
              "project(%s LANGUAGES C%s)\n\n"
              "add_library(%s_model STATIC\n   ",
              n, n, b->mode == WEIGHTS_INCBIN ? " ASM" : "", n);
    sources(&sb, b, false, "");
    sb_printf(
        &sb,
        ")\n"
        "target_include_directories(%s_model PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})\n"
        "set_target_properties(%s_model PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF OUTPUT_NAME %s)\n"
        "target_compile_options(%s_model PRIVATE \"$<$<C_COMPILER_ID:GNU,Clang>:%s>\")\n"
        "if(UNIX)\n    target_link_libraries(%s_model PUBLIC m%s)\nendif()\n",
        n, n, n, n, flags.data, n, b->gpu ? " ${CMAKE_DL_LIBS}" : "");
    if (b->mode == WEIGHTS_INCBIN)
        sb_printf(&sb,
                  "set_source_files_properties(%s_weights.S PROPERTIES\n"
                  "    COMPILE_OPTIONS \"-Wa,-I${CMAKE_CURRENT_SOURCE_DIR}\"\n"
                  "    OBJECT_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/%s.weights)\n",
                  n, n);
    sb_puts(&sb, "\nif(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)\n");
    if (!b->target->wasm)
        sb_puts(&sb, "    find_package(Threads REQUIRED)\n");
    sb_printf(&sb, "    add_executable(%s", n);
    sources(&sb, b, true, "");
    sb_printf(&sb,
              ")\n"
              "    target_link_libraries(%s PRIVATE %s_model%s)\n",
              n, n, b->target->wasm ? "" : " Threads::Threads");
    if (b->target->link) {
        sb_printf(&sb, "    target_link_options(%s PRIVATE", n);
        for (const char *p = b->target->link; *p;) {
            size_t len = strcspn(p, " ");
            sb_printf(&sb, " %.*s", (int)len, p);
            p += len + strspn(p + len, " ");
        }
        sb_puts(&sb, ")\n");
    }
    if (b->mode == WEIGHTS_BLOB)
        sb_printf(
            &sb, "    configure_file(%s.weights ${CMAKE_CURRENT_BINARY_DIR}/%s.weights COPYONLY)\n",
            n, n);
    sb_puts(&sb, "endif()\n");
    sb_free(&flags);
    bundle_file(b, "CMakeLists.txt", &sb);
}

void bundle_build(Bundle *b)
{
    copy_runtime(b);
    makefile(b);
    cmakelists(b);
}
