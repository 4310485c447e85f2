/* bundle_gpu_kernels.c - the program that runs on the device: one text, <name>_kernels.cl or .cu, which is also inside <name>_kernels.c, as it
 * is, or compiled where the target can do that offline. */
#include <string.h>

#include "bundle_gpu.h"

/* The text in one C string literal a line; long lines in several. */
static void print_lines(StrBuf *sb, const char *text, int *n)
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

/* The kernel file: <name>_kernels.cl or .cu. */
static void kernels_text(StrBuf *sb, Bundle *b)
{
    StrBuf body = {0};
    for (int i = 0; i < b->p->nkernel; i++) {
        const Kernel *k = b->p->kernels[i];
        kernel_comment(&body, b, k);
        b->kernel_needs |=
            render_kernel(&body, b->target, k, arena_printf(b->a, "%s_%s", b->name, k->name));
    }
    sb_printf(sb, "/* %s_kernels%s - the kernels of ", b->name, b->target->suffix);
    print_comment_text(sb, b->source);
    sb_puts(sb, ". */\n");
    sb_puts(sb, b->target->pragma);
    if (b->kernel_needs & (NEED_NUM | NEED_DOT | NEED_ACROSS))
        runtime_whole(sb, b->kernel_needs & NEED_DOT ? "igrt_dot.h" : "igrt_num.h");
    else
        sb_puts(sb, b->target->prologue);
    if (b->kernel_needs & NEED_ACROSS)
        sb_puts(sb, runtime_text("igrt_across.h"));
    if (b->kernel_needs & NEED_RUN)
        sb_puts(sb, runtime_text("igrt_run.h"));
    if (b->kernel_needs & NEED_MMA)
        sb_puts(sb, runtime_text("igrt_mma.h"));
    if (b->kernel_needs & NEED_WGMMA)
        sb_puts(sb, runtime_text("igrt_wgmma.h"));
    sb_puts(sb, body.data);
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
        n, u, u, u, b->p->nkernel, u, b->gpu->nline, n, u, n, u);
    for (int i = 0; i < b->p->nkernel; i++)
        sb_printf(&sb, "    %s%s\n", upper_case(b->a, b->p->kernels[i]->name),
                  i + 1 < b->p->nkernel ? "," : "");
    sb_puts(&sb, "};\n\n#endif\n");
    bundle_source(b, arena_printf(b->a, "%s_kernels.h", n), &sb);
}

/* Compiles the text for one machine (NULL: any) if the target has a compiler; false: the source itself has to do. */
static bool compiled(Bundle *b, const char *text, const char *machine, StrBuf *image)
{
    switch (b->target->compile ? b->target->compile(image, text, machine, !b->c->keep_subnormals)
                               : COMPILE_ABSENT) {
    case COMPILE_DONE: return true;
    case COMPILE_FAILED:
        bundle_fail(b, machine ? INGOT_USAGE : INGOT_BUG, "the %s kernels do not compile%s%s: %s",
                    b->target->name, machine ? " for " : "", machine ? machine : "",
                    image->data ? image->data : "");
        return false;
    case COMPILE_ABSENT: break;
    }
    if (b->target->compile)
        context_report(
            b->c, INGOT_WARNING, INGOT_OK,
            "the compiler of %s kernels is not installed: the bundle has their source only, and "
            "init gives IGRT_ERR_BUILD",
            b->target->name);
    return false;
}

/* An image for each machine that the target names, in that order ("cuda:sm_90+sm_80+ptx"; of ptx every machine makes its own): how many. */
static int images(StrBuf *sb, Bundle *b, const char *text)
{
    const char *colon = b->o->target ? strchr(b->o->target, ':') : NULL;
    const char *machine = colon ? colon + 1 : "ptx";
    int n = 0;
    for (bool more = true; more; n++) {
        size_t length = strcspn(machine, "+");
        const char *name = arena_printf(b->a, "%.*s", (int)length, machine);
        bool any = !strcmp(name, "ptx");
        StrBuf image = {0};
        bool done = compiled(b, text, any ? NULL : name, &image);
        if (done) {
            sb_printf(sb,
                      "\n/* %s_kernels%s, compiled for %s */\n"
                      "static const unsigned char image%d[] = {\n",
                      b->name, b->target->suffix, any ? "any machine" : name, n);
            print_bytes(sb, image.data, image.len);
            sb_puts(sb, "\n};\n");
        }
        sb_free(&image);
        if (!done)
            return 0;
        more = machine[length] != 0;
        machine += length + more;
    }
    return n;
}

void gpu_kernels(Bundle *b)
{
    StrBuf text = {0}, sb = {0};
    const char *n = b->name, *u = b->upper;
    kernels_text(&text, b);
    sb_printf(
        &sb,
        "/* %s_kernels.c - the program that runs on the device. */\n#include \"%s_kernels.h\"\n", n,
        n);
    int count = b->target->compile ? images(&sb, b, text.data) : 0;
    sb_puts(&sb, "\n");
    if (!b->target->compile)
        sb_printf(&sb, "/* %s_kernels%s */\n", n, b->target->suffix);
    else if (!count)
        sb_printf(&sb, "/* %s_kernels%s was not compiled */\n", n, b->target->suffix);
    sb_printf(&sb, "const char *const %s_program[%s_PROGRAM_PARTS] = {\n", n, u);
    for (int i = 0; i < count; i++)
        sb_printf(&sb, "    (const char *)image%d,\n", i);
    b->gpu->nline = count;
    if (!b->target->compile)
        print_lines(&sb, text.data, &b->gpu->nline);
    else if (!count) {
        sb_puts(&sb, "    \"\",\n");
        b->gpu->nline = 1;
    }
    sb_puts(&sb, "};\n");
    sb_printf(&sb, "\nconst char *const %s_kernel_name[%s_KERNELS] = {\n", n, u);
    for (int i = 0; i < b->p->nkernel; i++)
        sb_printf(&sb, "    \"%s_%s\",\n", n, b->p->kernels[i]->name);
    sb_puts(&sb, "};\n");
    bundle_source(b, arena_printf(b->a, "%s_kernels%s", n, b->target->suffix), &text);
    bundle_source(b, arena_printf(b->a, "%s_kernels.c", n), &sb);
    kernel_header(b);
}
