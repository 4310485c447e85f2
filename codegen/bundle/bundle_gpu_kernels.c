/* bundle_gpu_kernels.c - the program that runs on the device: one text, <name>_kernels.cl or .cu,
 * which is also inside <name>_kernels.c, as it is, or compiled where the target can do that
 * offline. */
#include <string.h>

#include "bundle_gpu.h"
#include "language.h"

/* The text in one C string literal a line; long lines in several. */
void gpu_print_lines(StrBuf *sb, const char *text, int *n)
{
    enum { PIECE = 500 };
    while (*text) {
        const char *eol = strchr(text, '\n');
        size_t len = eol ? (size_t)(eol - text) : strlen(text), piece = len < PIECE ? len : PIECE;
        sb_puts(sb, "    \"");
        for (size_t i = 0; i < piece; i++) {
            if (text[i] == '"' || text[i] == '\\' || text[i] == '?')
                sb_puts(sb, "\\");
            sb_write(sb, text + i, 1);
        }
        bool whole = eol && piece == len;
        sb_puts(sb, whole ? "\\n\",\n" : "\",\n");
        text += piece + (whole ? 1 : 0);
        ++*n;
    }
}

static void print_bytes(StrBuf *sb, const char *data, size_t n)
{
    size_t start = sb->len;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || sb->len - start > 92) {
            sb_puts(sb, i ? ",\n    " : "    ");
            start = sb->len;
        } else {
            sb_puts(sb, ",");
        }
        sb_printf(sb, "%d", (unsigned char)data[i]);
    }
}

/* Kernels as text; what they need of the runtime is noted. */
void gpu_kernel_bodies(StrBuf *sb, Bundle *b, Kernel *const *kernels, int n)
{
    for (int i = 0; i < n; i++) {
        const Kernel *k = kernels[i];
        kernel_comment(sb, b, k);
        b->kernel_needs |=
            render_kernel(sb, b->target, k, arena_printf(b->a, "%s_%s", b->name, k->name));
    }
}

/* What stands above them, of which this is the text. */
static void kernels_head(StrBuf *sb, const Bundle *b, const char *bodies)
{
    sb_printf(sb, "/* %s_kernels%s - the kernels of ", b->name, b->target->language->suffix);
    print_comment_text(sb, b->source);
    sb_puts(sb, ". */\n");
    b->target->language->file(sb, b->target, b->kernel_needs, bodies ? bodies : "");
    if (b->p->ndevice > 1)
        sb_puts(sb, runtime_text("igrt_cross.h"));
}

/* The kernel file, <name>_kernels.cl or .cu, or what it would be with a few kernels. */
void gpu_kernels_text(StrBuf *sb, Bundle *b, Kernel *const *kernels, int n)
{
    StrBuf body = {0};
    gpu_kernel_bodies(&body, b, kernels, n);
    kernels_head(sb, b, body.data);
    sb_puts(sb, body.data ? body.data : "");
    sb_free(&body);
}

/* The nth machine of the target's ("cuda:sm_90+sm_80+ptx"; of ptx every machine makes its own: ""),
 * or NULL. */
const char *gpu_machine(const Bundle *b, int nth)
{
    const char *machine = b->target->archs ? b->target->archs : "ptx";
    for (int i = 0; i < nth && machine; i++) {
        machine = strchr(machine, '+');
        machine = machine ? machine + 1 : NULL;
    }
    if (!machine)
        return NULL;
    const char *name = arena_printf(b->a, "%.*s", (int)strcspn(machine, "+"), machine);
    return strcmp(name, "ptx") ? name : "";
}

static CompileStatus compile_for(const Bundle *b, const char *text, const char *machine,
                                 StrBuf *image)
{
    return b->target->compile(image, text, *machine ? machine : NULL, !b->c->keep_subnormals);
}

void gpu_print_image(StrBuf *sb, const Bundle *b, int n, const char *machine, const StrBuf *image)
{
    sb_printf(sb,
              "\n/* %s_kernels%s, compiled for %s */\nstatic const unsigned char image%d[] = {\n",
              b->name, b->target->language->suffix, *machine ? machine : "any machine", n);
    print_bytes(sb, image->data, image->len);
    sb_puts(sb, "\n};\n");
}

/* An image for each machine, in that order: how many. What the compiler said of the one that it did
 * not take, and of which, is in why then. */
static CompileStatus images(StrBuf *sb, Bundle *b, const char *text, int *n, StrBuf *why)
{
    CompileStatus status = COMPILE_DONE;
    const char *machine;
    for (*n = 0; (machine = gpu_machine(b, *n)) && status == COMPILE_DONE;) {
        StrBuf image = {0};
        status = compile_for(b, text, machine, &image);
        if (status == COMPILE_DONE)
            gpu_print_image(sb, b, (*n)++, machine, &image);
        else
            sb_printf(why, "%s%s: %s", *machine ? " for " : "", machine,
                      image.data ? image.data : "");
        sb_free(&image);
        if (status != COMPILE_DONE)
            *n = 0;
    }
    return status;
}

/* The program that init loads, without a tuner's other kernels: all text was rendered before, so
 * what stands above is known. */
static void own_program(StrBuf *sb, Bundle *b)
{
    Gpu *g = b->gpu;
    StrBuf head = {0}, body = {0};
    gpu_kernel_bodies(&body, b, b->kernel, g->nown);
    kernels_head(&head, b, body.data);
    gpu_print_lines(sb, head.data, &g->nline);
    g->nhead = g->nline;
    gpu_print_lines(sb, body.data, &g->nline);
    sb_free(&head);
    sb_free(&body);
}

static void kernel_header(Bundle *b)
{
    StrBuf sb = {0};
    const char *n = b->name, *u = b->upper;
    sb_printf(
        &sb,
        "/* %s_kernels.h - the program that runs on the device, and the names of its kernels. */\n"
        "#ifndef %s_KERNELS_H\n#define %s_KERNELS_H\n\n"
        "enum {\n    %s_KERNELS = %d,\n    %s_PROGRAM_PARTS = %d\n};\n"
        "extern const char *const %s_program[%s_PROGRAM_PARTS];\n"
        "extern const char *const %s_kernel_name[%s_KERNELS];\n\n"
        "/* places in ctx->kernel */\nenum {\n",
        n, u, u, u, b->nkernel, u, b->gpu->nline, n, u, n, u);
    for (int i = 0; i < b->nkernel; i++)
        sb_printf(&sb, "    %s%s\n", upper_case(b->a, b->kernel[i]->name),
                  i + 1 < b->nkernel ? "," : "");
    sb_puts(&sb, "};\n");
    if (b->gpu->nown)
        gpu_ways_header(&sb, b);
    sb_puts(&sb, "\n#endif\n");
    bundle_source(b, arena_printf(b->a, "%s_kernels.h", n), &sb);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Text, and what becomes of it where the target has a compiler: how many images; 0: the source
 * itself has to do. */
static int compiled(StrBuf *text, StrBuf *sb, Bundle *b)
{
    StrBuf why = {0};
    int n = 0;
    const int nkernel = b->nkernel;
    gpu_kernels_text(text, b, b->kernel, nkernel);
    if (!b->target->compile)
        return 0;
    const CompileStatus status =
        b->gpu->nown ? gpu_compile_ways(b, sb, &n, &why) : images(sb, b, text->data, &n, &why);
    if (b->nkernel < nkernel) { /* some were left out */
        sb_free(text);
        gpu_kernels_text(text, b, b->kernel, b->nkernel);
    }
    if (status == COMPILE_FAILED)
        bundle_fail(b, *gpu_machine(b, 0) ? INGOT_USAGE : INGOT_BUG,
                    "the %s kernels do not compile%s", b->target->name, why.data);
    if (status == COMPILE_ABSENT)
        context_report(
            b->c, INGOT_WARNING, INGOT_OK,
            "the compiler of %s kernels is not installed: the bundle has their source only, and "
            "init gives IGRT_ERR_BUILD",
            b->target->name);
    sb_free(&why);
    return n;
}

void gpu_kernels(Bundle *b)
{
    StrBuf text = {0}, images_text = {0}, sb = {0};
    const char *n = b->name, *u = b->upper;
    const int count = compiled(&text, &images_text, b);
    sb_printf(
        &sb,
        "/* %s_kernels.c - the program that runs on the device. */\n#include \"%s_kernels.h\"\n", n,
        n);
    sb_write(&sb, images_text.data ? images_text.data : "", images_text.len);
    sb_free(&images_text);
    sb_puts(&sb, "\n");
    if (!b->target->compile)
        sb_printf(&sb, "/* %s_kernels%s */\n", n, b->target->language->suffix);
    else if (!count)
        sb_printf(&sb, "/* %s_kernels%s was not compiled */\n", n, b->target->language->suffix);
    sb_printf(&sb, "const char *const %s_program[%s_PROGRAM_PARTS] = {\n", n, u);
    for (int i = 0; i < count; i++)
        sb_printf(&sb, "    (const char *)image%d,\n", i);
    b->gpu->nline = count;
    if (b->gpu->nown && !b->target->compile)
        own_program(&sb, b);
    else if (!b->target->compile)
        gpu_print_lines(&sb, text.data, &b->gpu->nline);
    else if (!count) {
        sb_puts(&sb, "    \"\",\n");
        b->gpu->nline = 1;
    }
    sb_puts(&sb, "};\n");
    sb_printf(&sb, "\nconst char *const %s_kernel_name[%s_KERNELS] = {\n", n, u);
    for (int i = 0; i < b->nkernel; i++) {
        sb_printf(&sb, "    \"%s_%s", n, b->kernel[i]->name);
        if (b->target->language->entry)
            b->target->language->entry(&sb, b->kernel[i]);
        sb_puts(&sb, "\",\n");
    }
    sb_puts(&sb, "};\n");
    if (b->gpu->nown)
        gpu_ways_programs(&sb, b);
    bundle_source(b, arena_printf(b->a, "%s_kernels%s", n, b->target->language->suffix), &text);
    bundle_source(b, arena_printf(b->a, "%s_kernels.c", n), &sb);
    kernel_header(b);
}
