/* bundle.c - writes a plan as a folder of plain source.
 *
 * All files are written into a folder beside the target and moved when they are complete, so a
 * failure leaves nothing behind. A folder with a manifest is a bundle and may be replaced, file by
 * file of its manifest; any other folder that holds something is refused. Nothing in a bundle
 * depends on the time, the machine or the current folder: equal input gives equal bytes. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bundle_gpu.h"

#define MANIFEST "ingot.manifest"
static const char manifest_head[] = "ingot bundle 1\n";

enum { ARRAY_LIMIT = 64 * 1024 };

void bundle_fail(Bundle *b, ingot_status status, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    context_vreport(b->c, INGOT_ERROR, status, format, ap);
    va_end(ap);
    b->failed = whole_of(b)->failed = true;
}

/* Makes the folder that a file is to be in. */
static bool make_parent(Arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    return !slash || slash == path || make_dirs(arena_printf(a, "%.*s", (int)(slash - path), path));
}

/* Removes the folders that files were in and that are empty now, down to dir. */
static void remove_folders(Arena *a, const char *dir, const char *file)
{
    char *path = arena_printf(a, "%s/%s", dir, file);
    for (char *slash; (slash = strrchr(path + strlen(dir) + 1, '/'));) {
        *slash = 0;
        if (rmdir(path))
            return;
    }
}

const char *bundle_path(Bundle *b, const char *name)
{
    Bundle *all = whole_of(b);
    char *path = arena_printf(b->a, "%s/%s", all->dir, name);
    vec_push(b->a, all->files, all->nfile, arena_strdup(b->a, name));
    if (!make_parent(b->a, path) && !b->failed)
        bundle_fail(b, INGOT_IO, "%s: %s", part_shown(b->a, path), strerror(errno));
    return path;
}

/* Builds that take -Os, and give a library no flags of its own. */
static const char optimised[] = "#if defined(__GNUC__) && !defined(__clang__)\n"
                                "#pragma GCC optimize(\"O2\")\n#endif\n";

void bundle_source(Bundle *b, const char *name, const StrBuf *text)
{
    const size_t n = strlen(name);
    if (!strcmp(b->package, "arduino") && n > 2 && !strcmp(name + n - 2, ".c")) {
        StrBuf sb = {0}, old = *text;
        sb_puts(&sb, optimised);
        sb_puts(&sb, old.data);
        sb_free(&old);
        bundle_file(b, arena_printf(b->a, "%s%s", b->folder, name), &sb);
        return;
    }
    bundle_file(b, arena_printf(b->a, "%s%s", b->folder, name), text);
}

static void bundle_text(Bundle *b, const char *name, const StrBuf *text)
{
    StrBuf sb = *text;
    if (!b->failed) {
        const char *path = bundle_path(b, name);
        if (!b->failed && !file_write(path, sb.data, sb.len))
            bundle_fail(b, INGOT_IO, "%s: %s", part_shown(b->a, path), strerror(errno));
    }
    sb_free(&sb);
}

/* Copies of the runtime are under MIT-0, and what is made of the user's model is the user's
 * (LICENSE): a line at the top of each file that may have comments. */
static void licence(StrBuf *sb, const char *name, bool runtime)
{
    static const struct {
        const char *end, *before, *after;
    } comment[] = {
        {".c", "/* ", " */\n"},       {".h", "/* ", " */\n"},      {".hpp", "/* ", " */\n"},
        {".S", "/* ", " */\n"},       {".cl", "/* ", " */\n"},     {".cu", "/* ", " */\n"},
        {".hip", "/* ", " */\n"},     {".wgsl", "/* ", " */\n"},   {".ts", "// ", "\n"},
        {".mts", "// ", "\n"},        {".mjs", "// ", "\n"},       {"Makefile", "# ", "\n"},
        {".html", "<!-- ", " -->\n"}, {".txt", "# ", "\n"},        {"Kconfig", "# ", "\n"},
        {".yml", "# ", "\n"},         {".properties", "# ", "\n"}, {".conf", "# ", "\n"},
        {".ino", "// ", "\n"}};
    const size_t n = strlen(name);
    for (size_t i = 0; i < sizeof comment / sizeof *comment; i++) {
        const size_t m = strlen(comment[i].end);
        if (n >= m && !strcmp(name + n - m, comment[i].end)) {
            sb_printf(sb, "%sSPDX-License-Identifier: %s%s", comment[i].before,
                      runtime ? "MIT-0" : "LicenseRef-ModelOwner", comment[i].after);
            return;
        }
    }
}

void bundle_runtime(Bundle *b, const char *name, const StrBuf *text)
{
    StrBuf sb = {0};
    licence(&sb, name, true);
    sb_write(&sb, text->data, text->len);
    sb_free(&(StrBuf){.data = text->data});
    bundle_text(b, arena_printf(b->a, "%s%s", b->folder, name), &sb);
}

void bundle_file(Bundle *b, const char *name, const StrBuf *text)
{
    StrBuf sb = {0};
    licence(&sb, name, false);
    sb_write(&sb, text->data, text->len);
    sb_free(&(StrBuf){.data = text->data});
    bundle_text(b, name, &sb);
}

/* ---- the target folder ------------------------------------------------------------------- */

/* The names in an old bundle's manifest, which may be removed. NULL: no manifest. */
static const char **manifest_read(Arena *a, const char *dir, int *n)
{
    FILE *f = fopen(arena_printf(a, "%s/%s", dir, MANIFEST), "rb");
    if (!f)
        return NULL;
    char text[1024];
    const char **names = NEWN(a, const char *, 1);
    *n = 0;
    if (!fgets(text, sizeof text, f) || strcmp(text, manifest_head)) {
        fclose(f);
        return NULL;
    }
    while (fgets(text, sizeof text, f)) {
        text[strcspn(text, "\n")] = 0;
        if (*text && *text != '.' && *text != '/' && !strstr(text, "/."))
            vec_push(a, names, *n, arena_strdup(a, text));
    }
    fclose(f);
    return names;
}

typedef enum { DIR_ABSENT, DIR_EMPTY, DIR_BUNDLE, DIR_FOREIGN, DIR_NOT, DIR_UNKNOWN } DirKind;

static DirKind dir_kind(Arena *a, const char *dir)
{
    struct stat st;
    if (stat(dir, &st))
        return errno == ENOENT ? DIR_ABSENT : DIR_UNKNOWN;
    if (!S_ISDIR(st.st_mode))
        return DIR_NOT;
    int n;
    if (manifest_read(a, dir, &n))
        return DIR_BUNDLE;
    DIR *d = opendir(dir);
    if (!d)
        return DIR_UNKNOWN;
    bool empty = true;
    for (struct dirent *e; empty && (e = readdir(d));)
        empty = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
    closedir(d);
    return empty ? DIR_EMPTY : DIR_FOREIGN;
}

static void remove_built(Arena *a, const char *dir, const char *file)
{
    unlink(arena_printf(a, "%s/%s", dir, file));
    const char *dot = strrchr(file, '.');
    if (dot && (!strcmp(dot, ".c") || !strcmp(dot, ".S"))) {
        unlink(arena_printf(a, "%s/%.*s.o", dir, (int)(dot - file), file));
        unlink(arena_printf(a, "%s/%.*s.pic.o", dir, (int)(dot - file), file));
    }
}

/* Moves the finished files to where they belong. */
static void install(Bundle *b, const char *dir, DirKind kind)
{
    int n = 0;
    const char **old = kind == DIR_BUNDLE ? manifest_read(b->a, dir, &n) : NULL;
    if (kind == DIR_ABSENT) {
        if (!part_keep(b->dir, dir))
            bundle_fail(b, INGOT_IO, "%s: %s", dir, strerror(errno));
        return;
    }
    for (int i = 0; i < n; i++)
        remove_built(b->a, dir, old[i]);
    for (int i = 0; i < n; i++)
        remove_folders(b->a, dir, old[i]);
    for (int i = 0; i < b->nfile && !b->failed; i++) {
        char *to = arena_printf(b->a, "%s/%s", dir, b->files[i]);
        if (!make_parent(b->a, to) || rename(arena_printf(b->a, "%s/%s", b->dir, b->files[i]), to))
            bundle_fail(b, INGOT_IO, "%s/%s: %s", dir, b->files[i], strerror(errno));
    }
    part_discard(b->dir);
}

/* ---- preparation ------------------------------------------------------------------------- */

/* Whether a member of one tensor or group would have the name of a member of another. */
static bool names_clash(const char *x, const char *y)
{
    static const char *const member[] = {"", "_dims", "_length", "_present"};
    for (size_t i = 0; i < sizeof member / sizeof *member; i++) {
        size_t bare = strlen(x), len = strlen(y), more = strlen(member[i]);
        if ((bare == len + more && !strncmp(x, y, len) && !strcmp(x + len, member[i])) ||
            (len == bare + more && !strncmp(x, y, bare) && !strcmp(y + bare, member[i])))
            return true;
    }
    return false;
}

/* A member for the tensor or group of that name. */
static const char *new_field(Bundle *b, const char *name, const char *what, int number,
                             const char ***taken, int *ntaken)
{
    const char *base = *name ? identifier(b->a, name) : arena_printf(b->a, "%s_%d", what, number),
               *field = base;
    bool clash = true;
    for (int k = 2; clash; k++) {
        clash = false;
        for (int i = 0; i < *ntaken; i++)
            clash |= names_clash(field, (*taken)[i]);
        if (clash)
            field = arena_printf(b->a, "%s_%d", base, k);
    }
    vec_push(b->a, *taken, *ntaken, field);
    return field;
}

static void port_check(Bundle *b, const Port *p, const char *what)
{
    if (p->b->rank - p->lead > 8)
        bundle_fail(
            b, INGOT_UNSUPPORTED,
            "%s: %s '%s': rank %d, and tensors of the emitted interface have 8 dims at most",
            b->source, what, p->b->name, p->b->rank);
}

/* Plain tensors and groups in the order of their declaration. */
static Port *ports(Bundle *b, Buffer **buffers, const NamedNode *nodes, int n, const IoGroup *group,
                   int ngroup, PortGroup **groups, const char *what)
{
    Port *p = NEWN(b->a, Port, n + 1);
    const char **taken = NULL;
    int ntaken = 0, number = 0, at = 0;
    *groups = NEWN(b->a, PortGroup, ngroup + 1);
    for (int i = 0; i < n || at < ngroup; number++) {
        bool grouped = at < ngroup && group[at].first == i;
        if (i < n && !buffers[i]->name)
            buffers[i]->name = nodes[i].name;
        const char *field = new_field(b, grouped ? group[at].name : buffers[i]->name, what, number,
                                      &taken, &ntaken);
        int first = i, end = grouped ? i + group[at].n : i + 1, rank = 0;
        bool array = grouped && group[at].length;
        for (; i < end; i++) {
            Buffer *buffer = buffers[i];
            p[i] =
                (Port){.b = buffer, .field = field, .dims = arena_printf(b->a, "%s_dims", field)};
            if (!buffer->name)
                buffer->name = nodes[i].name;
            if (array) {
                p[i].dims = arena_printf(b->a, "%s_dims[%d]", field, i - first);
                p[i].field = arena_printf(b->a, "%s[%d]", field, i - first);
            }
            p[i].here = nodes[i].here;
            p[i].form = nodes[i].form;
            p[i].lead = nodes[i].here != NULL;
            p[i].dynamic = array && buffer->rank > p[i].lead;
            for (int d = p[i].lead; d < buffer->rank; d++)
                p[i].dynamic |= buffer->dims[d]->op != OP_CONST;
            rank = buffer->rank - p[i].lead > rank ? buffer->rank - p[i].lead : rank;
            port_check(b, &p[i], what);
        }
        if (grouped)
            (*groups)[at] = (PortGroup){&group[at], field, rank}, at++;
    }
    return p;
}

static int by_offset(const void *x, const void *y)
{
    const Buffer *a = *(Buffer *const *)x, *b = *(Buffer *const *)y;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

/* The weights that some step uses, one for each place in the blob. */
static void list_weights(Bundle *b, int nplan, Plan *const *plan)
{
    int n = 0;
    for (int k = 0; k < nplan; k++)
        for (int i = 0; i < plan[k]->nbuffer; i++) {
            Buffer *w = plan[k]->buffers[i];
            if (w->kind == BUF_WEIGHT && !w->base && w->last >= 0)
                vec_push(b->a, b->weight, n, w);
        }
    if (n)
        qsort(b->weight, (size_t)n, sizeof *b->weight, by_offset);
    for (int i = 0; i < n; i++) {
        Buffer *last = b->nweight ? b->weight[b->nweight - 1] : NULL;
        if (last && last->offset == b->weight[i]->offset && last->bytes && b->weight[i]->bytes)
            continue;
        b->weight[b->nweight++] = b->weight[i];
    }
    name_weights(b);
}

WeightsMode weights_mode(const Bundle *b, int nweight, int64_t bytes)
{
    const char *asked = b->o->weights ? b->o->weights : "auto";
    if (!nweight)
        return WEIGHTS_NONE;
    if (bundle_is_web(b) && !strcmp(asked, "auto") && bytes)
        return WEIGHTS_BLOB;
    if (!strcmp(asked, "array"))
        return WEIGHTS_ARRAY;
    if (!strcmp(asked, "auto") && (bytes <= ARRAY_LIMIT || bundle_is_bare(b)))
        return WEIGHTS_ARRAY;
    if (!bytes) /* empty tensors only */
        return WEIGHTS_ARRAY;
    return !strcmp(asked, "incbin") ? WEIGHTS_INCBIN : WEIGHTS_BLOB;
}

char *upper_case(Arena *a, const char *s)
{
    char *u = arena_strdup(a, s);
    for (char *p = u; *p; p++)
        if (*p >= 'a' && *p <= 'z')
            *p = (char)(*p - 'a' + 'A');
    return u;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void name_memories(Bundle *b)
{
    const Plan *p = b->p;
    if (!p->memories[0].name || b->target->gpu)
        return;
    b->memory = NEWN(b->a, MemoryNames, p->nmemory);
    for (int i = 0; i < p->nmemory; i++) {
        const char *name = p->memories[i].name,
                   *index = arena_printf(b->a, "%s_MEMORY_%s", b->upper, upper_case(b->a, name));
        b->memory[i] = (MemoryNames){.base = arena_printf(b->a, "memory_%s", name),
                                     .index = index,
                                     .bytes = arena_printf(b->a, "%s_BYTES", index)};
    }
}

/* Without an operating system: no driver, no files, no threads. */
bool bundle_is_bare(const Bundle *b)
{
    static const char *const bare[] = {"zephyr", "esp-idf", "arduino", "cmsis"};
    bool found = b->target->bare;
    for (size_t i = 0; i < sizeof bare / sizeof bare[0]; i++)
        found |= !strcmp(b->package, bare[i]);
    return found;
}

/* Emitted kernels know no complex numbers: they would move and compute halves of them. */
static void refuse_complex(Bundle *b)
{
    for (int i = 0; i < b->p->nbuffer; i++) {
        const Buffer *buffer = b->p->buffers[i];
        if (buffer->dtype != INGOT_C64 && buffer->dtype != INGOT_C128)
            continue;
        bundle_fail(b, INGOT_UNSUPPORTED,
                    "%s: '%s' is of type %s: complex numbers are not compiled", b->source,
                    buffer->name ? buffer->name : "a value inside", dtype_info[buffer->dtype].name);
        return;
    }
}

void bundle_ports(Bundle *b)
{
    const Context *c = b->c;
    b->nin = c->ninput;
    b->nout = c->noutput;
    b->nin_group = c->ninput_group;
    b->nout_group = c->noutput_group;
    b->in = ports(b, b->p->input, c->inputs, c->ninput, c->input_groups, c->ninput_group,
                  &b->in_group, "input");
    b->out = ports(b, b->p->output, c->outputs, c->noutput, c->output_groups, c->noutput_group,
                   &b->out_group, "output");
}

/* A communicator takes part in a run on a processor, or in the one stream of a GPU of NVIDIA's. */
static void refuse_processes(Bundle *b, int nplan, Plan *const *plan)
{
    const bool cuda = !strcmp(b->target->name, "cuda");
    for (int i = 0; i < nplan && b->target->gpu; i++) {
        if (plan_of_processes(plan[i]) && !cuda)
            bundle_fail(b, INGOT_UNSUPPORTED,
                        "%s: --processes: for the targets c and cuda so far, and this is '%s'",
                        b->source, b->target->name);
        else if (plan_of_processes(plan[i]) && b->p->ndevice > 1)
            bundle_fail(b, INGOT_UNSUPPORTED,
                        "%s: --processes with --devices: a process has one GPU; start one process "
                        "for each",
                        b->source);
    }
}

static void prepare(Bundle *b, int nplan, Plan *const *plan)
{
    const Context *c = b->c;
    b->name = b->o->name ? b->o->name : "model";
    b->io = b->name;
    b->entry = arena_printf(b->a, "%s_run", b->name);
    for (int i = 0; b->target->gpu && b->p->ndevice > 1 && i < nplan; i++)
        gpu_devices_kernels(b, plan[i]);
    for (int i = 0; b->target->gpu && i < nplan; i++)
        gpu_together_kernels(plan[i]);
    bool parts = false;
    for (int i = 0; i < b->p->nkernel; i++)
        parts |= b->p->kernels[i]->only_together;
    b->kernel = parts ? NULL : b->p->kernels;
    b->nkernel = parts ? 0 : b->p->nkernel;
    for (int i = 0; i < b->p->nkernel && parts; i++)
        if (!b->p->kernels[i]->only_together)
            vec_push(b->a, b->kernel, b->nkernel, b->p->kernels[i]);
    b->upper = upper_case(b->a, b->name);
    name_memories(b);
    b->source = b->o->source ? base_name(b->o->source) : c->file ? base_name(c->file) : b->name;
    bundle_ports(b);
    b->sym = NEWN(b->a, int, c->nvar + 1);
    for (int i = 0; i < c->nvar; i++)
        b->sym[i] = c->vars[i].folded ? -1 : b->nsym++;
    b->package = b->o->package ? b->o->package : "";
    b->folder = !strcmp(b->package, "arduino") ? "src/" : "";
    refuse_complex(b);
    refuse_processes(b, nplan, plan);
    list_weights(b, nplan, plan);
    b->mode = weights_mode(b, b->nweight, b->p->weights_bytes);
    if (b->target->gpu && nplan == 1) /* else functions_prepare() does */
        gpu_prepare(b);
}

void bundle_prepare(Bundle *b, int nplan, Plan *const *plan)
{
    prepare(b, nplan, plan);
}

/* What a page has for WebGPU beside WebAssembly: a list of steps, kernels and weights. */
static void write_page(Bundle *b, Bundle *gpu)
{
    StrBuf text = {0};
    b->no_gpu = web_may(b, gpu, b) ? web_needs_host(gpu) : NULL;
    if (b->failed)
        return;
    if (b->no_gpu) {
        ingot_warning(b->c, "--package web: %s: pages run this model by WebAssembly alone",
                      b->no_gpu);
        bundle_web(b, NULL, b);
        return;
    }
    gpu->whole = NULL; /* weights in a file of their own */
    gpu->dir = b->dir;
    bundle_weights(gpu);
    gpu->whole = b;
    for (int i = 0; i < gpu->nfile; i++)
        vec_push(b->a, b->files, b->nfile, gpu->files[i]);
    b->failed |= gpu->failed;
    gpu_kernels_text(&text, gpu, gpu->p->kernels, gpu->p->nkernel);
    bundle_source(gpu, arena_printf(b->a, "%s_kernels.wgsl", gpu->name), &text);
    bundle_web(b, gpu, b);
}

static void write_all(Bundle *b)
{
    bundle_weights(b);
    for (int i = 0; i < b->nsub; i++) {
        bundle_kernels(&b->sub[i]);
        bundle_header(&b->sub[i]);
        bundle_run(&b->sub[i]);
        functions_run(&b->sub[i]);
    }
    if (b->sub)
        bundle_io_header(b);
    else
        bundle_kernels(b);
    bundle_selftest(b);
    bundle_header(b);
    bundle_hpp(b);
    if (b->sub)
        fat_run(b);
    else
        bundle_run(b);
    if (!b->sub)
        functions_run(b);
    bundle_main(b);
    bundle_build(b);
    if (b->page)
        write_page(b, b->page);
    else if (bundle_is_web(b) && web_may(b, b->gpu ? b : NULL, b->gpu ? NULL : b))
        bundle_web(b, b->gpu ? b : NULL, b->gpu ? NULL : b);
    StrBuf sb = {0};
    sb_puts(&sb, manifest_head);
    for (int i = 0; i < b->nfile; i++)
        sb_printf(&sb, "%s\n", b->files[i]);
    sb_puts(&sb, MANIFEST "\n");
    bundle_file(b, MANIFEST, &sb);
}

static const char *parent_of(Arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    return !slash ? "." : slash == path ? "/" : arena_printf(a, "%.*s", (int)(slash - path), path);
}

/* The files, then all of them to where they belong. A signal in between leaves nothing; while they
 * move it waits. */
static void write_files(Bundle *b, const char *path, DirKind kind)
{
    const char *parent = parent_of(b->a, path);
    const size_t there = folders_there(parent);
    pending_folders(parent, there);
    b->dir = make_dirs(parent)
                 ? part_folder(b->a, kind == DIR_ABSENT ? path : arena_printf(b->a, "%s/", path))
                 : NULL;
    if (!b->dir)
        bundle_fail(b, INGOT_IO, "%s: no folder can be made there: %s", path, strerror(errno));
    else
        write_all(b);
    pending_hold();
    if (!b->failed)
        install(b, path, kind);
    if (b->failed && b->dir)
        part_discard(b->dir);
    if (b->failed)
        remove_empty(parent, there);
    pending_folders_drop(parent);
    pending_release();
}

/* Of n functions; of: several targets, or NULL. */
static ingot_status write_to(Bundle *b, int n, Plan *const *p, int ntarget, const FatTarget *of,
                             int64_t shared, const char *dir)
{
    int errors = b->c->nerror;
    char *path = arena_strdup(b->a, dir);
    for (size_t end = strlen(path); end > 1 && path[end - 1] == '/'; end--)
        path[end - 1] = 0;
    parts_clean(b->a, path, false); /* of what was killed, whether there was a folder then or not */
    parts_clean(b->a, arena_printf(b->a, "%s/", path), false);
    DirKind kind = dir_kind(b->a, path);
    if (kind == DIR_UNKNOWN)
        bundle_fail(b, INGOT_IO, "%s: %s", path, strerror(errno));
    else if (kind == DIR_NOT)
        bundle_fail(b, INGOT_IO, "%s: exists and is not a folder that can be read", path);
    else if (kind == DIR_FOREIGN)
        bundle_fail(b, INGOT_IO,
                    "%s: holds other files than a bundle's; choose an empty or a new folder", path);
    if (!b->failed)
        prepare(b, n, p);
    if (!b->failed && n > 1)
        functions_prepare(b, n, p);
    if (!b->failed && b->page)
        prepare(b->page, 1, &b->page->p);
    if (!b->failed && of)
        fat_prepare(b, ntarget, of, shared);
    if (!b->failed)
        write_files(b, path, kind);
    arena_free(b->a);
    return b->c->nerror == errors ? INGOT_OK : ingot_context_status(b->c);
}

ingot_status bundle_write(Plan *p, const Target *target, const ingot_options *o, const char *dir)
{
    if (p->ndevice > 1 && !p->peers)
        return context_report(p->c, INGOT_ERROR, INGOT_UNSUPPORTED,
                              "--target '%s': bundles are for one device, and it has %d; the "
                              "interpreter runs its plan",
                              target->name, p->ndevice),
               INGOT_UNSUPPORTED;
    Bundle b = {.p = p, .c = p->c, .a = arena_new(), .target = target, .o = o};
    return write_to(&b, 1, &p, 1, NULL, 0, dir);
}

ingot_status bundle_write_functions(int n, Plan *const *p, const Target *target,
                                    const ingot_options *o, const char *dir)
{
    Bundle b = {.p = p[0], .c = p[0]->c, .a = arena_new(), .target = target, .o = o};
    return write_to(&b, n, p, 1, NULL, 0, dir);
}

ingot_status bundle_write_fat(int n, const FatTarget *of, int64_t shared, const ingot_options *o,
                              const char *dir)
{
    Plan *p = of[n - 1].p;
    Bundle b = {.p = p, .c = p->c, .a = arena_new(), .target = of[n - 1].target, .o = o};
    if (n == 2 && o->package &&
        !strcmp(o->package, "web")) { /* one program has the other beside it */
        ingot_options own = *o;
        own.name = arena_printf(b.a, "%s_wgsl", o->name ? o->name : "model");
        Bundle page = {.p = of[0].p,
                       .c = of[0].p->c,
                       .a = b.a,
                       .target = of[0].target,
                       .o = &own,
                       .whole = &b,
                       .writes_weights = true};
        b.page = &page;
        return write_to(&b, 1, &p, 1, NULL, 0, dir);
    }
    return write_to(&b, p->c->nfunction ? p->c->nfunction : 1, of[n - 1].plans, n, of, shared, dir);
}
