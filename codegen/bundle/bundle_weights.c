/* bundle_weights.c - the constants of a model, written one at a time.
 *
 *   array    small models: typed const arrays in <name>_weights.c, one a tensor
 *   blob     <name>.weights: the tensors at the plan's offsets, 64-byte aligned, gaps zero
 *   incbin   the same file, linked in by <name>_weights.S
 *
 * Each is dropped as soon as it is written (weight_value.c), so the memory needed is one tensor's,
 * not the model's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bundle.h"
#include "float_text.h"
#include "igrt.h"
#include "weight_value.h"

enum { STAGE_BYTES = 1 << 20 };

/* Whether the elements, f32 or pairs of them, are to be flushed. */
static bool flushes(const Bundle *b, const Buffer *w)
{
    return (w->dtype == INGOT_F32 || w->dtype == INGOT_C64) && !b->c->keep_subnormals;
}

/* A subnormal number becomes a zero of its sign, so that no target has to. */
static void flush(uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i + 4 <= n; i += 4) {
        uint32_t u;
        memcpy(&u, bytes + i, 4);
        u &= u & 0x7f800000u ? UINT32_MAX : 0x80000000u;
        memcpy(bytes + i, &u, 4);
    }
}

/* The same in a copy of a value that lies in the model's file. */
static void value_flush(WeightValue *v, const Buffer *w)
{
    if (!v->packed && (v->packed = malloc((size_t)w->bytes + 1)))
        v->bytes = memcpy(v->packed, v->bytes, (size_t)w->bytes);
    if (!v->packed)
        BUG("out of memory");
    flush(v->packed, (size_t)w->bytes);
}

/* ---- arrays ------------------------------------------------------------------------------ */

static unsigned print_float(StrBuf *sb, double v, const char *suffix)
{
    char text[FLOAT_TEXT];
    if (v != v) {
        sb_puts(sb, "NAN");
        return NEED_MATH;
    }
    if (v - v != 0) {
        sb_puts(sb, v > 0 ? "INFINITY" : "-INFINITY");
        return NEED_MATH;
    }
    if (*suffix)
        float_text(text, (float)v);
    for (int p = 14; p <= 17 && !*suffix; p++) { /* the shortest that reads back the same */
        snprintf(text, sizeof text, "%.*g", p, v);
        if (strtod(text, NULL) == v)
            break;
    }
    sb_puts(sb, text);
    sb_puts(sb, strpbrk(text, ".e") ? "" : ".0");
    sb_puts(sb, suffix);
    return 0;
}

static unsigned print_element(StrBuf *sb, ingot_dtype d, const uint8_t *p)
{
    union {
        float f;
        double d;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
    } v = {0};
    int bytes = dtype_info[d].bytes, kind = dtype_info[d].kind;
    memcpy(&v, p, (size_t)(bytes < 8 ? bytes : 8));
    if (d == INGOT_F32) {
        return print_float(sb, (double)v.f, "f");
    }
    if (d == INGOT_F64)
        return print_float(sb, v.d, "");
    if (kind == 'i') {
        int64_t x = bytes == 1 ? v.i8 : bytes == 2 ? v.i16 : bytes == 4 ? v.i32 : v.i64;
        if (x == INT64_MIN)
            sb_puts(sb, "INT64_MIN");
        else if (x == INT32_MIN && bytes == 4)
            sb_puts(sb, "INT32_MIN");
        else
            sb_printf(sb, bytes == 8 ? "INT64_C(%lld)" : "%lld", (long long)x);
    } else {
        uint64_t x = bytes == 1 ? v.u8 : bytes == 2 ? v.u16 : bytes == 4 ? v.u32 : v.u64;
        sb_printf(sb,
                  bytes == 8   ? "UINT64_C(%llu)"
                  : bytes == 4 ? "%lluu"
                               : "%llu",
                  (unsigned long long)x);
    }
    return 0;
}

unsigned print_array(StrBuf *sb, ingot_dtype d, const uint8_t *bytes, int64_t n)
{
    if (dtype_info[d].kind == 'c') { /* pairs */
        n *= 2;
        d = d == INGOT_C64 ? INGOT_F32 : INGOT_F64;
    }
    sb_puts(sb, "{");
    unsigned needs = 0;
    size_t start = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || sb->len - start > 88) {
            sb_puts(sb, i ? ",\n    " : "\n    ");
            start = sb->len;
        } else {
            sb_puts(sb, ", ");
        }
        needs |= print_element(sb, d, bytes + i * dtype_info[d].bytes);
    }
    sb_puts(sb, n ? "\n}" : "0}");
    return needs;
}

static void declare(StrBuf *sb, Bundle *b, const Buffer *w)
{
    int64_t n = w->bytes / element_bytes(w->dtype) * (dtype_info[w->dtype].kind == 'c' ? 2 : 1);
    sb_printf(sb, "const %s %s[%lld]", c_type(w->dtype), weight_name(b, w), (long long)(n ? n : 1));
}

/* Arrays begin at lines of a cache; those of a microcontroller, which has many small ones, at what
 * its widest load asks for. */
enum { LINE = 64, WORDS = 8 };

static void write_arrays(Bundle *b)
{
    StrBuf sb = {0}, h = {0};
    const char *n = weights_prefix(b), *u = upper_case(b->a, n);
    sb_printf(&sb, "/* %s_weights.c - the constants of ", n);
    print_comment_text(&sb, b->source);
    sb_printf(&sb, ". */\n#include \"%s_weights.h\"\n", n);
    sb_printf(&h,
              "/* %s_weights.h - the constants of the model. */\n"
              "#ifndef %s_WEIGHTS_H\n#define %s_WEIGHTS_H\n\n#include <stdint.h>\n\n"
              "#if defined(__GNUC__)\n#define %s_ALIGNED __attribute__((aligned(%d)))\n"
              "#else\n#define %s_ALIGNED\n#endif\n\n"
              "/* For all of them: -D'%s_WEIGHTS_ATTR=__attribute__((section(\".qspi\")))' */\n"
              "#ifndef %s_WEIGHTS_ATTR\n#define %s_WEIGHTS_ATTR\n#endif\n\n",
              n, u, u, u, b->target->bare ? WORDS : LINE, u, u, u, u);
    StrBuf body = {0};
    unsigned needs = 0;
    for (int i = 0; i < b->nweight && !b->failed; i++) {
        const Buffer *w = b->weight[i];
        WeightValue v = weight_value(b, w);
        if (v.bytes && flushes(b, w))
            value_flush(&v, w);
        if (v.bytes) {
            const Data *d = w->node->op == OP_DATA ? w->node->arg.ptr : NULL;
            sb_puts(&h, "extern ");
            declare(&h, b, w);
            sb_printf(&h, " %s_ALIGNED %s_WEIGHTS_ATTR;\n", u, u);
            sb_puts(&body, "\n/* ");
            print_comment_text(&body, d && d->name ? d->name : "computed by the compiler");
            sb_puts(&body, ": ");
            print_shape(&body, b->c, w->dtype, w->rank, w->dims);
            sb_puts(&body, " */\n");
            declare(&body, b, w);
            sb_puts(&body, " = ");
            needs |= print_array(&body, w->dtype, v.bytes, w->bytes / element_bytes(w->dtype));
            sb_puts(&body, ";\n");
        }
        weight_value_close(&v);
    }
    if (needs & NEED_MATH)
        sb_puts(&sb, "\n#include <math.h>\n");
    sb_puts(&sb, body.data ? body.data : "");
    sb_free(&body);
    sb_puts(&h, "\n#endif\n");
    bundle_source(b, arena_printf(b->a, "%s_weights.h", n), &h);
    bundle_source(b, arena_printf(b->a, "%s_weights.c", n), &sb);
}

/* ---- blob -------------------------------------------------------------------------------- */

typedef struct {
    FILE *f;
    igrt_sum sum;
    uint8_t *stage; /* pieces of the checksum are multiples of 32 bytes: STAGE_BYTES is one */
    size_t used;
    int64_t written;
    int64_t there;   /* bytes to come that the GPU's has written */
    igrt_sum *whole; /* of the file of several targets, or NULL */
    int error;       /* errno of the first failure */
} Blob;

static void blob_flush(Blob *o)
{
    const size_t there = o->there < (int64_t)o->used ? (size_t)o->there : o->used,
                 more = o->used - there;
    igrt_sum_add(&o->sum, o->stage, o->used);
    if (o->whole)
        igrt_sum_add(o->whole, o->stage + there, more);
    if (!o->error && fwrite(o->stage + there, 1, more, o->f) != more)
        o->error = errno;
    o->there -= (int64_t)there;
    o->used = 0;
}

/* Without bytes: zeros. */
static void blob_add(Blob *o, const uint8_t *bytes, int64_t n, bool flushed)
{
    o->written += n;
    while (n > 0) {
        size_t piece = STAGE_BYTES - o->used;
        piece = (int64_t)piece < n ? piece : (size_t)n;
        if (bytes)
            memcpy(o->stage + o->used, bytes, piece);
        else
            memset(o->stage + o->used, 0, piece);
        if (flushed)
            flush(o->stage + o->used, piece);
        o->used += piece;
        n -= (int64_t)piece;
        bytes = bytes ? bytes + piece : NULL;
        if (o->used == STAGE_BYTES)
            blob_flush(o);
    }
}

/* Those for C come behind those of a GPU, less what that has written of them. */
static void write_blob(Bundle *b)
{
    Bundle *all = whole_of(b);
    const char *name = arena_printf(b->a, "%s%s.weights", all->folder, all->name),
               *path = all->weights_there ? arena_printf(b->a, "%s/%s", all->dir, name)
                                          : bundle_path(b, name);
    Blob o = {.f = fopen(path, all->weights_there ? "ab" : "wb"),
              .stage = arena_alloc(b->a, STAGE_BYTES),
              .there = all->weights_there - b->weights_at,
              .whole = b->whole ? &all->weights_sum : NULL};
    if (b->whole && !all->weights_there)
        igrt_sum_begin(&all->weights_sum);
    if (b->failed) {
        if (o.f)
            fclose(o.f);
        return;
    }
    if (!o.f) {
        bundle_fail(b, INGOT_IO, "%s: %s", part_shown(b->a, path), strerror(errno));
        return;
    }
    setvbuf(o.f, NULL, _IONBF, 0);
    igrt_sum_begin(&o.sum);
    Map last = weight_last_readers(b);
    for (int i = 0; i < b->nweight && !b->failed && !o.error; i++) {
        const Buffer *w = b->weight[i];
        WeightValue v = weight_value(b, w);
        blob_add(&o, NULL, w->offset - o.written, false);
        if (v.bytes)
            blob_add(&o, v.bytes, w->bytes, flushes(b, w));
        weight_value_close(&v);
        weight_forget_sources(b, i, &last);
    }
    map_free(&last);
    blob_add(&o, NULL, b->p->weights_bytes - o.written, false);
    blob_flush(&o);
    b->sum = igrt_sum_end(&o.sum);
    all->weights_there = b->weights_at + b->p->weights_bytes;
    if (b->whole)
        all->sum = igrt_sum_end(&all->weights_sum);
    if (fclose(o.f) && !o.error)
        o.error = errno;
    if (o.error)
        bundle_fail(b, INGOT_IO, "%s: %s", part_shown(b->a, path), strerror(o.error));
}

/* A file that is linked in: name_WHAT_blob are the bytes of name.WHAT. */
static void blob_symbol(StrBuf *sb, const Bundle *b, const char *what)
{
    const char *n = b->name;
    sb_printf(sb,
              "#if defined(__APPLE__)\n"
              "#define SYMBOL _%s_%s_blob\n    .const_data\n"
              "#elif defined(__wasm__)\n"
              "#define SYMBOL %s_%s_blob\n    .section .rodata.SYMBOL,\"\",@\n"
              "    .type SYMBOL,@object\n"
              "#else\n"
              "#define SYMBOL %s_%s_blob\n"
              "#if defined(%s_WEIGHTS_SECTION) /* -D'%s_WEIGHTS_SECTION=.qspi' */\n"
              "    .section %s_WEIGHTS_SECTION,\"a\"\n#else\n    .section .rodata\n#endif\n"
              "#endif\n"
              "    .balign 64\n    .globl SYMBOL\nSYMBOL:\n    .incbin \"%s.%s\"\n"
              "#if defined(__wasm__)\n    .size SYMBOL, . - SYMBOL\n#endif\n",
              n, what, n, what, n, what, b->upper, b->upper, b->upper, n, what);
}

static void write_incbin(Bundle *b)
{
    StrBuf sb = {0};
    const char *n = b->name;
    sb_printf(&sb,
              "/* %s_weights.S - %s.weights, linked into the program%s; the assembler looks for it "
              "in the\n"
              " * current folder and with -I. */\n",
              n, n, b->c->vocabulary ? arena_printf(b->a, ", and %s.vocab", n) : "");
    blob_symbol(&sb, b, "weights");
    if (b->c->vocabulary) {
        sb_puts(&sb, "#undef SYMBOL\n");
        blob_symbol(&sb, b, "vocab");
    }
    sb_puts(&sb, "#if defined(__ELF__)\n    .section .note.GNU-stack,\"\",%progbits\n#endif\n");
    bundle_source(b, arena_printf(b->a, "%s_weights.S", n), &sb);
}

void bundle_weights(Bundle *b)
{
    for (int i = 0; i < b->nsub; i++) {
        if (b->sub[i].writes_weights)
            bundle_weights(&b->sub[i]);
        else
            b->sub[i].sum = b->sub[i - 1].sum;
    }
    if (b->mode == WEIGHTS_ARRAY && !b->sub)
        write_arrays(b);
    if ((b->mode == WEIGHTS_BLOB || b->mode == WEIGHTS_INCBIN) && !b->sub)
        write_blob(b);
    if (b->mode == WEIGHTS_INCBIN && !b->failed)
        write_incbin(b);
}
