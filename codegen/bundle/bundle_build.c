/* bundle_build.c - what builds the bundle: the runtime's sources, copied as they are and only those
 * that are needed, a Makefile and a CMakeLists.txt. What the model needs lies in the folder itself,
 * what a program for an operating system may want beside it (main, .npy files, threads, a file of
 * weights) in host/. */
#include <string.h>

#include "bundle.h"

static bool has_suffix(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n > m && !strcmp(s + n - m, suffix);
}

/* ---- runtime ----------------------------------------------------------------------------- */

typedef struct {
    const RuntimeFile **file;
    int n;
} FileList;

static void need(Bundle *b, FileList *list, const char *name)
{
    const RuntimeFile *f = runtime_file(name, strlen(name));
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
    const Bundle *all = whole_of(b);
    const char *file = arena_printf(b->a, "%s_%s.c", all->name, op->name);
    for (int i = 0; i < all->nfile; i++)
        if (!strcmp(all->files[i], file))
            return;
    StrBuf sb = {0};
    custom_source(&sb, op, all->name);
    bundle_source(b, file, &sb);
}

static void need_calls(Bundle *b, FileList *list, const Block *block)
{
    for (int i = 0; i < block->n; i++) {
        const Step *s = block->step[i];
        if (s->kind == STEP_CALL && s->call->custom) {
            need(b, list, "igrt_lib.h");
            need_custom(b, s->call->custom);
        } else if (s->kind == STEP_CALL) {
            const char *file = arena_printf(b->a, "%s.c", s->call->name);
            if (!runtime_file(file, strlen(file)))
                bundle_fail(b, INGOT_UNSUPPORTED, "there is no library kernel '%s'", s->call->name);
            need(b, list, file);
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
            const RuntimeFile *f = runtime_included(p, (size_t)(eol - p));
            if (f) {
                char *source = arena_printf(b->a, "%s", f->name);
                need(b, list, source);
                source[strlen(source) - 1] = 'c'; /* none if that was a .c */
                need(b, list, source);
            }
            p = eol + 1;
        }
    }
}

/* Whether a line of C begins the definition of a function or a variable that the linker sees; then
 * its name. */
static bool defined_name(const char *at, const char *eol, const char **name, size_t *n)
{
    static const char lib[] = "IGRT_LIB(";
    if ((*at < 'a' || *at > 'z') && strncmp(at, lib, sizeof lib - 1))
        return false;
    if (!strncmp(at, "static", 6) || !strncmp(at, "typedef", 7) || !strncmp(at, "enum", 4))
        return false;
    const char *open = memchr(at, '(', (size_t)(eol - at));
    if (!open)
        return false;
    const char *end = open, *from = open;
    if (*at == 'I') {
        from = open + 1;
        end = memchr(from, ')', (size_t)(eol - from));
        *name = from;
        *n = end ? (size_t)(end - from) : 0;
        return end != NULL;
    }
    while (from > at && (from[-1] == '_' || (from[-1] >= '0' && from[-1] <= '9') ||
                         (from[-1] >= 'a' && from[-1] <= 'z')))
        from--;
    *name = from;
    *n = (size_t)(end - from);
    return *n > 5 && !strncmp(from, "igrt_", 5);
}

/* <name>_igrt.h: the runtime's functions under names of this model, so that two models need not
 * share a runtime. */
static void private_names(Bundle *b, const FileList *list)
{
    StrBuf sb = {0};
    sb_printf(&sb,
              "/* %s_igrt.h - the runtime's functions as this model's own: several models, of "
              "different versions of ingot too, fit "
              "into\n * one program. */\n#ifndef %s_IGRT_H\n#define %s_IGRT_H\n\n"
              "#define IGRT_FUNCTIONS\n",
              b->name, b->upper, b->upper);
    for (int i = 0; i < list->n; i++) {
        const char *text = (const char *)list->file[i]->data, *end = text + list->file[i]->bytes;
        if (!has_suffix(list->file[i]->name, ".c"))
            continue;
        for (const char *p = text; p < end;) {
            const char *eol = memchr(p, '\n', (size_t)(end - p)), *name;
            size_t n;
            eol = eol ? eol : end;
            if (defined_name(p, eol, &name, &n)) {
                const char *prefix = *p == 'I' ? "igrt_lib_" : "";
                const char *define = arena_printf(b->a, "#define %s%.*s %s_%s%.*s\n", prefix,
                                                  (int)n, name, b->name, prefix, (int)n, name);
                if (!strstr(sb.data, define)) /* igrt_fp_mode has a definition for each machine */
                    sb_puts(&sb, define);
            }
            p = eol + 1;
        }
    }
    sb_puts(&sb, "\n#endif\n");
    bundle_source(b, arena_printf(b->a, "%s_igrt.h", b->name), &sb);
}

static void copy_file(Bundle *b, const RuntimeFile *f)
{
    StrBuf sb = {0};
    bool source = has_suffix(f->name, ".c") && strncmp(f->name, "host/", 5);
    if (source)
        sb_printf(&sb, "#include \"%s_igrt.h\"\n", b->name);
    sb_write(&sb, f->data, f->bytes);
    bundle_runtime(b, source ? arena_printf(b->a, "%s_%s", b->name, f->name) : f->name, &sb);
}

/* Does one of its functions exchange values with other processes? */
static bool bundle_of_processes(const Bundle *b)
{
    bool any = plan_of_processes(b->p);
    for (int i = 0; i < b->nfunction; i++)
        any |= plan_of_processes(b->function[i].p);
    return any;
}

/* What a bundle, or one of its targets, has beside what all have. */
static void need_own(Bundle *b, FileList *list)
{
    const char *header[MAX_KERNEL_HEADERS];
    const int nheader = b->gpu ? 0 : kernel_headers(b->kernel_needs, header);
    if (b->gpu)
        need(b, list, arena_printf(b->a, "igrt_gpu_%s.h", b->target->name));
    for (int i = 0; i < nheader; i++)
        need(b, list, header[i]);
    need_calls(b, list, &b->p->main);
    for (int i = 0; i < b->nfunction; i++)
        need_calls(b, list, &b->function[i].p->main);
    if (b->p->ndevice > 1)
        need(b, list, b->gpu ? "igrt_gpus.c" : "igrt_devices.c");
    if (b->gpu && gpu_aside_marks(b))
        need(b, list, "igrt_aside.c");
    if (bundle_of_processes(b))
        need(b, list, b->gpu ? "igrt_comm_cuda.c" : "igrt_comm.c");
    if (bundle_asks_machine(b))
        need(b, list, "igrt_cpu.c");
}

/* Of host/: the file of states is for models that have some, --chat for those of language. */
static bool wants_host_file(const Bundle *b, const char *name)
{
    if (!strcmp(name, b->gpu ? "host/igrt_nccl.h" : "host/igrt_mpi.h"))
        return bundle_of_processes(b);
    if (!strcmp(name, b->gpu ? "host/igrt_mpi.h" : "host/igrt_nccl.h"))
        return false;
    if (!strcmp(name, "host/driver_chat.c"))
        return b->c->vocabulary != NULL;
    return bundle_has_states(b) ||
           (!strstr(name, "/igrt_states.") && strcmp(name, "host/safetensors.h") != 0);
}

static void copy_runtime(Bundle *b)
{
    static const char *const always[] = {"igrt.h", "igrt.hpp", "igrt.c"};
    FileList list = {0};
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
        need(b, &list, always[i]);
    need(b, &list, "igrt_num.h");
    if (bundle_has_states(b))
        need(b, &list, "igrt_flash.h");
    if (b->c->vocabulary) {
        need(b, &list, "igrt_vocab.c");
        need(b, &list, "igrt_sample.c");
        need(b, &list, "igrt_chat.c");
        need(b, &list, "igrt_chat.hpp");
    }
    if (b->target->wasm)
        need(b, &list, "run.mjs");
    for (int i = 0; i < (b->sub ? b->nsub : 1); i++)
        need_own(b->sub ? &b->sub[i] : b, &list);
    need_includes(b, &list);
    for (int i = 0; i < list.n && !b->failed; i++)
        copy_file(b, list.file[i]);
    private_names(b, &list);
    if (b->c->vocabulary) {
        StrBuf sb = {0};
        sb_write(&sb, b->c->vocabulary, b->c->vocabulary_bytes);
        bundle_file(b, arena_printf(b->a, "%s%s.vocab", b->folder, b->name), &sb);
    }
    for (const RuntimeFile *f = runtime_files; *f->name && !bundle_is_bare(b); f++)
        if (!strncmp(f->name, "host/", 5) && wants_host_file(b, f->name))
            copy_file(b, f);
}

/* ---- build files ------------------------------------------------------------------------- */

bool is_source(const char *file)
{
    return has_suffix(file, ".c") || has_suffix(file, ".S");
}

/* The driver's side: main, .npy files, threads, the file of weights. */
static bool is_driver(const char *file)
{
    return !strncmp(file, "host/", 5);
}

static bool is_any_source(const Bundle *b, const char *file)
{
    (void)b;
    return !is_driver(file);
}

static bool is_driver_source(const Bundle *b, const char *file)
{
    (void)b;
    return is_driver(file);
}

/* The place of the target in b->sub whose machine a file is compiled for; -1: for any. */
static int machine_of(const Bundle *b, const char *file)
{
    const char **suffix = NEWN(b->a, const char *, b->nsub + 1);
    const int gpu = b->sub ? first_for_c(b) : 0;
    for (int i = gpu; i < b->nsub; i++)
        suffix[i - gpu] = b->sub[i].suffix;
    const int i = source_machine(b->a, b->name, b->nsub - gpu, suffix, file);
    return i < 0 ? i : i + gpu;
}

/* Compiled for any machine, or for the target's; of several targets b is one of them. */
static bool is_for_any(const Bundle *b, const char *file)
{
    return !is_driver(file) && machine_of(b, file) < 0;
}

static bool is_for_machine(const Bundle *b, const char *file)
{
    const Bundle *all = b->whole ? b->whole : b;
    const int i = machine_of(all, file);
    return has_suffix(file, ".c") && i >= 0 && (!b->whole || &all->sub[i] == b);
}

/* suffix: of objects, for make; "": the sources, for CMake. */
static void sources(StrBuf *sb, const Bundle *b, bool (*wanted)(const Bundle *, const char *),
                    const char *suffix)
{
    size_t width = 0;
    const Bundle *all = b->whole ? b->whole : b;
    for (int i = 0; i < all->nfile; i++) {
        const char *f = all->files[i], *dot = strrchr(f, '.');
        if (!is_source(f) || !wanted(b, f))
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

/* How many machines of C it is for. */
static int machines_of(const Bundle *b)
{
    return b->sub ? b->nsub - first_for_c(b) : 1;
}

/* For which machine the C compiler builds: the target's choice, and no part of what a user sets as
 * CFLAGS (bundle_machine.c divides them). */
const char *machine_flags(const Bundle *b)
{
    return machines_of(b) > 1 ? flags_for_all(b->a, b->target)
           : b->target->flags ? b->target->flags
                              : "";
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

static void makefile_opening(StrBuf *sb, const Bundle *b, const char *program)
{
    const char *n = b->name;
    if (bundle_is_bare(b))
        sb_printf(sb, "# Builds lib%s.a, the model for use in programs for %s.\n", n,
                  b->o->target ? b->o->target : b->target->name);
    else
        sb_printf(sb,
                  "# Builds ./%s, the driver, and lib%s.a, the model for use in other programs.\n",
                  program, n);
    sb_printf(
        sb, "#\n# Several models link into one program: every name of this one starts with %s_.\n",
        n);
    if (b->target->machine.lanes && !*machine_flags(b))
        sb_puts(
            sb,
            "#\n# The kernels suit every processor; `ingot compile --target c:native` makes faster "
            "ones for this one.\n");
    if (b->target->wasm)
        sb_puts(sb, "#\n# clang and wasi-libc build it (Debian: clang lld llvm wasi-libc "
                    "libclang-rt-dev-wasm32); `node run.mjs` runs it.\n");
    tools(sb, b->target);
    sb_printf(sb, "CFLAGS ?= -O2%s\n",
              b->target->bare ? " -ffunction-sections -fdata-sections" : "");
    if (!bundle_is_bare(b))
        sb_printf(sb, "LDLIBS ?= -lm%s\n", gpu_part(b) ? " -ldl" : "");
    sb_puts(sb, "\n");
}

/* `make lib<name>.so`: for programs in other languages. */
static void make_shared(StrBuf *sb, const Bundle *b)
{
    const char *n = b->name;
    sb_printf(
        sb,
        "\n# The model as a shared library, for programs in other languages: host/table.c has what "
        "they look up.\n"
        "SHARED = $(MODEL:.o=.pic.o) host/table.pic.o host/igrt_pool.pic.o%s\n"
        "\nlib%s.so: $(SHARED)\n"
        "\t$(CC) $(FLAGS) $(CFLAGS) $(LDFLAGS) -shared -o $@ $(SHARED) $(LDLIBS)\n"
        "\n%%.pic.o: %%.c $(HEADERS)\n\t$(CC) $(FLAGS)%s $(CFLAGS) $(CPPFLAGS) -fPIC -c -o $@ $<\n",
        bundle_has_states(b) ? " host/igrt_states.pic.o" : "", n,
        *flags_for_machine(b->a, b->target) || machines_of(b) > 1 ? " $(MACHINE)" : "");
    if (b->mode == WEIGHTS_INCBIN)
        sb_printf(sb, "\n%s_weights.pic.o: %s_weights.o\n\tcp $< $@\n", n, n);
}

/* Which objects are for which machine. */
static void make_machines(StrBuf *sb, const Bundle *b)
{
    sb_puts(sb,
            "\n# Instructions of a machine are only in what runs after init has asked for them.\n"
            "MACHINE =\n");
    for (int i = first_for_c(b); i < b->nsub; i++) {
        const Bundle *s = &b->sub[i];
        const char *u = upper_case(b->a, s->suffix);
        sb_printf(sb, "FOR_%s =", u);
        sources(sb, s, is_for_machine, ".o");
        sb_printf(sb, "\n$(FOR_%s) $(FOR_%s:.o=.pic.o): MACHINE = %s\n", u, u,
                  flags_for_machine(b->a, s->target));
    }
}

static void makefile(Bundle *b)
{
    const char *machine = flags_for_machine(b->a, b->target), *all = flags_for_all(b->a, b->target),
               *n = b->name;
    const bool bare = bundle_is_bare(b);
    StrBuf sb = {0};
    const char *program = b->target->wasm ? arena_printf(b->a, "%s.wasm", n) : n;
    makefile_opening(&sb, b, program);
    sb_puts(&sb, "MODEL =");
    sources(&sb, b, is_any_source, ".o");
    if (!bare) {
        sb_puts(&sb, "\nDRIVER =");
        sources(&sb, b, is_driver_source, ".o");
    }
    sb_puts(&sb, "\nHEADERS = $(wildcard *.h");
    sb_puts(&sb, bare ? ")\n" : " host/*.h)\n");
    sb_printf(&sb,
              "\n# Contraction would make results depend on the compiler; kernels spell fma where "
              "they want it.\n"
              "FLAGS = -std=c99 -ffp-contract=off%s -I.%s%s\n",
              bare || b->target->wasm ? "" : " -pthread", *all ? " " : "", all);
    if (machines_of(b) > 1)
        make_machines(&sb, b);
    else if (*machine) {
        sb_printf(&sb,
                  "\n# Its instructions are only in what runs after init has asked for them.\n"
                  "MACHINE = %s\nANY =",
                  machine);
        sources(&sb, b, is_for_any, ".o");
        sb_puts(&sb, "\n$(DRIVER) $(DRIVER:.o=.pic.o) $(ANY) $(ANY:.o=.pic.o): MACHINE =\n");
    }
    if (b->target->link)
        sb_printf(&sb, "LINK = %s\n", b->target->link);
    if (bare)
        sb_printf(&sb, "\nall: lib%s.a\n", n);
    else
        sb_printf(
            &sb,
            "\nall: %s lib%s.a\n"
            "\n%s: $(DRIVER) lib%s.a\n\t$(CC) $(FLAGS) $(CFLAGS)%s $(LDFLAGS) -o $@ $(DRIVER) "
            "lib%s.a $(LDLIBS)\n",
            program, n, program, n, b->target->link ? " $(LINK)" : "", n);
    sb_printf(&sb,
              "\nlib%s.a: $(MODEL)\n\trm -f $@\n\t$(AR) rcs $@ $(MODEL)\n"
              "\n%%.o: %%.c $(HEADERS)\n\t$(CC) $(FLAGS)%s $(CFLAGS) $(CPPFLAGS) -c -o $@ $<\n",
              n, *machine || machines_of(b) > 1 ? " $(MACHINE)" : "");
    if (b->mode == WEIGHTS_INCBIN)
        sb_printf(
            &sb,
            "\n%s_weights.o: %s_weights.S %s.weights%s\n\t$(CC)%s%s $(CPPFLAGS) -I. -c -o $@ $<\n",
            n, n, n, b->c->vocabulary ? arena_printf(b->a, " %s.vocab", n) : "",
            *machine_flags(b) ? " " : "", machine_flags(b));
    bool shared = !bare && !b->target->wasm;
    if (shared)
        make_shared(&sb, b);
    if (b->target->wasm && bundle_is_web(b))
        page_make(&sb, b);
    sb_printf(&sb, "\nclean:\n\trm -f lib%s.a $(MODEL)", n);
    if (!bare)
        sb_printf(&sb, " %s $(DRIVER)", program);
    if (shared)
        sb_printf(&sb, " lib%s.so $(SHARED)", n);
    sb_puts(&sb, "\n\n.PHONY: all clean\n");
    bundle_file(b, "Makefile", &sb);
}

/* `cmake --install`: find_package(<name>) gives <name>::<name>_model. */
static void cmake_install(StrBuf *sb, const Bundle *b)
{
    const char *n = b->name, *more = "";
    const Bundle *gpu = gpu_part(b);
    if (gpu)
        more = arena_printf(b->a, " igrt_%s.h", gpu->target->name);
    if (b->sub)
        more = arena_printf(b->a, "%s %s_io.h", more, n);
    for (int i = 0; i < b->nsub; i++)
        more = arena_printf(b->a, "%s %s.h", more, b->sub[i].name);
    sb_printf(
        sb,
        "\nif(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)\n    include(GNUInstallDirs)\n"
        "    install(TARGETS %s_model EXPORT %s ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})\n"
        "    install(FILES %s.h %s.hpp igrt.h igrt.hpp%s DESTINATION "
        "${CMAKE_INSTALL_INCLUDEDIR}/%s)\n"
        "    install(EXPORT %s NAMESPACE %s:: FILE %sConfig.cmake DESTINATION "
        "${CMAKE_INSTALL_LIBDIR}/cmake/%s)\n",
        n, n, n, n, more, n, n, n, n, n);
    if (b->mode == WEIGHTS_BLOB)
        sb_printf(sb, "    install(FILES %s.weights DESTINATION ${CMAKE_INSTALL_DATADIR}/%s)\n", n,
                  n);
    sb_puts(sb, "endif()\n");
}

/* A wasm program is cross-compiled and runs here all the same; any other one that is cross-compiled
 * is left out. */
static void cmake_driver(StrBuf *sb, const Bundle *b)
{
    const char *n = b->name;
    sb_printf(sb, "\nif(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR%s)\n",
              b->target->wasm ? "" : " AND NOT CMAKE_CROSSCOMPILING");
    if (!b->target->wasm)
        sb_puts(sb, "    find_package(Threads REQUIRED)\n");
    sb_printf(sb, "    add_executable(%s", n);
    sources(sb, b, is_driver_source, "");
    sb_printf(sb, ")\n    target_link_libraries(%s PRIVATE %s_model%s)\n", n, n,
              b->target->wasm ? "" : " Threads::Threads");
    if (b->target->link) {
        sb_printf(sb, "    target_link_options(%s PRIVATE", n);
        for (const char *p = b->target->link; *p;) {
            size_t len = strcspn(p, " ");
            sb_printf(sb, " %.*s", (int)len, p);
            p += len + strspn(p + len, " ");
        }
        sb_puts(sb, ")\n");
    }
    if (b->mode == WEIGHTS_BLOB)
        sb_printf(
            sb, "    configure_file(%s.weights ${CMAKE_CURRENT_BINARY_DIR}/%s.weights COPYONLY)\n",
            n, n);
    sb_puts(sb, "endif()\n");
}

static const char *cmake_list(Arena *a, const char *words)
{
    char *list = arena_strdup(a, words);
    for (char *p = list; *p; p++)
        if (*p == ' ')
            *p = ';';
    return list;
}

static void cmake_machines(StrBuf *sb, const Bundle *b)
{
    const bool several = machines_of(b) > 1;
    bool any = false;
    for (int i = several ? first_for_c(b) : 0; i < (several ? b->nsub : 1); i++) {
        const Bundle *s = several ? &b->sub[i] : b;
        const char *machine = flags_for_machine(b->a, s->target);
        if (!*machine)
            continue;
        sb_printf(
            sb, "%sset_source_files_properties(\n   ",
            any ? ""
                : "\n# Instructions of the machine are only in what runs after init has asked "
                  "for them.\n");
        any = true;
        sources(sb, s, is_for_machine, "");
        sb_printf(sb,
                  "\n    PROPERTIES COMPILE_OPTIONS "
                  "\"$<$<C_COMPILER_ID:GNU,Clang,AppleClang>:%s>\")\n",
                  cmake_list(b->a, machine));
    }
}

static void cmakelists(Bundle *b)
{
    StrBuf sb = {0};
    const char *n = b->name, *all = flags_for_all(b->a, b->target),
               *flags = cmake_list(b->a, *all ? arena_printf(b->a, "-ffp-contract=off %s", all)
                                              : "-ffp-contract=off");
    sb_printf(
        &sb,
        "# add_subdirectory() this folder and link %s::%s_model; built by itself it %s.\n"
        "cmake_minimum_required(VERSION 3.15)\n"
        "project(%s LANGUAGES C%s)\n"
        "if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES AND CMAKE_SOURCE_DIR STREQUAL "
        "CMAKE_CURRENT_SOURCE_DIR)\n    set(CMAKE_BUILD_TYPE Release)\nendif()\n\n"
        "add_library(%s_model STATIC\n   ",
        n, n, bundle_is_bare(b) ? "can be installed" : "makes the driver too, and can be installed",
        n, b->mode == WEIGHTS_INCBIN ? " ASM" : "", n);
    sources(&sb, b, is_any_source, "");
    sb_printf(
        &sb,
        ")\n"
        "add_library(%s::%s_model ALIAS %s_model)\n"
        "target_include_directories(%s_model PUBLIC "
        "$<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}>\n"
        "    $<INSTALL_INTERFACE:include/%s>)\n"
        "set_target_properties(%s_model PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF OUTPUT_NAME %s)\n"
        "target_compile_options(%s_model PRIVATE "
        "\"$<$<COMPILE_LANG_AND_ID:C,GNU,Clang,AppleClang>:%s>\"\n"
        "    $<$<COMPILE_LANG_AND_ID:C,GNU>:" FLAG_OF_GCC ">)\n"
        "if(NOT MSVC)\n    target_link_libraries(%s_model PUBLIC m%s)\nendif()\n",
        n, n, n, n, n, n, n, n, flags, n, gpu_part(b) ? " ${CMAKE_DL_LIBS}" : "");
    if (b->mode == WEIGHTS_INCBIN)
        sb_printf(&sb,
                  "set_source_files_properties(%s_weights.S PROPERTIES\n"
                  "    COMPILE_OPTIONS \"-Wa,-I${CMAKE_CURRENT_SOURCE_DIR}\"\n"
                  "    OBJECT_DEPENDS \"${CMAKE_CURRENT_SOURCE_DIR}/%s.weights%s\")\n",
                  n, n,
                  b->c->vocabulary ? arena_printf(b->a, ";${CMAKE_CURRENT_SOURCE_DIR}/%s.vocab", n)
                                   : "");
    cmake_machines(&sb, b);
    cmake_install(&sb, b);
    if (!bundle_is_bare(b))
        cmake_driver(&sb, b);
    bundle_file(b, "CMakeLists.txt", &sb);
}

void bundle_build(Bundle *b)
{
    copy_runtime(b);
    if (!*b->package || !strcmp(b->package, "make") || bundle_is_web(b))
        makefile(b);
    if (!*b->package || !strcmp(b->package, "cmake"))
        cmakelists(b);
    bundle_package(b);
}
