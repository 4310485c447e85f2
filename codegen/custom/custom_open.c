/* custom_open.c - a custom operator as it is named: by a file and a function. Nothing is read
 * before a node uses it, so that what is wrong is told at that node. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "custom.h"
#ifdef INGOT_LIBCLANG
#include "libclang.h"
#endif

enum { SOURCE_BYTES = 1 << 22 };

bool custom_fault(Context *c, const CustomOp *op, int line, const char *format, ...)
{
    StrBuf sb = {0};
    va_list ap;
    va_start(ap, format);
    sb_vprintf(&sb, format, ap);
    va_end(ap);
    ingot_error(c, INGOT_INVALID, "%s:%d: %s", op->file, line, sb.data);
    sb_free(&sb);
    return false;
}

static bool has_suffix(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && !strcasecmp(s + n - m, suffix);
}

static bool is_cplusplus(const char *file)
{
    static const char *const suffixes[] = {".cpp", ".cc", ".cxx", ".c++", ".hpp", ".hh"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (has_suffix(file, suffixes[i]))
            return true;
    return false;
}

static bool load(Context *c, CustomOp *op)
{
    FILE *f = fopen(op->file, "rb");
    if (!f) {
        ingot_error(c, INGOT_IO, "%s:1: the source of the operator cannot be opened: %s", op->file,
                    strerror(errno));
        return false;
    }
    StrBuf sb = {0};
    char part[4096];
    for (size_t n; sb.len <= SOURCE_BYTES && (n = fread(part, 1, sizeof part, f)) > 0;)
        sb_write(&sb, part, n);
    bool bad = ferror(f) || sb.len > SOURCE_BYTES || (sb.len && memchr(sb.data, 0, sb.len));
    fclose(f);
    op->bytes = sb.len;
    op->text = arena_strdup(c->arena, sb.len && !bad ? sb.data : "");
    sb_free(&sb);
    if (bad)
        return custom_fault(c, op, 1, "this is no C source of at most 4 MB that can be read");
    return true;
}

/* op_swish, or op_swish_2 where another file has a function of that name. */
static void name_op(Context *c, CustomOp *op)
{
    const char *base = arena_printf(c->arena, "op_%s", op->function);
    op->name = base;
    for (int k = 2, i = 0; i < c->ncustom; i++)
        if (c->customs[i] != op && c->customs[i]->name && !strcmp(c->customs[i]->name, op->name)) {
            op->name = arena_printf(c->arena, "%s_%d", base, k++);
            i = -1;
        }
}

static bool read_op(Context *c, CustomOp *op)
{
    if (is_cplusplus(op->file))
        return custom_fault(c, op, 1, "this is C++; a custom operator is written in C99");
    if (!load(c, op))
        return false;
#ifdef INGOT_LIBCLANG
    const char *absent = libclang_load();
    if (!absent && !custom_read(c, op))
        return false;
#else
    const char *absent = "this ingot was built without libclang";
#endif
    if (absent) {
        ingot_error(c, INGOT_UNSUPPORTED, "%s:1: custom operators are read by libclang: %s",
                    op->file, absent);
        return false;
    }
    name_op(c, op);
    return true;
}

ingot_custom_op *ingot_custom_open(ingot_context *c, const char *file, const char *function)
{
    for (int i = 0; i < c->ncustom; i++) {
        CustomOp *op = c->customs[i];
        bool same = op->unnamed == !function;
        if (same && !strcmp(op->file, file) && (!function || !strcmp(op->function, function)))
            return op;
    }
    CustomOp *op = NEW(c->arena, CustomOp);
    op->file = arena_strdup(c->arena, file);
    op->function = function ? arena_strdup(c->arena, function) : NULL;
    op->unnamed = !function;
    op->read = read_op;
    op->run = custom_run;
    vec_push(c->arena, c->customs, c->ncustom, op);
    return op;
}
