/* runtime_text.c - the sources of runtime_min as text. */
#include <string.h>

#include "codegen.h"

const RuntimeFile *runtime_file(const char *name, size_t n)
{
    for (const RuntimeFile *f = runtime_files; *f->name; f++)
        if (strlen(f->name) == n && !memcmp(f->name, name, n))
            return f;
    return NULL;
}

const char *runtime_text(const char *name)
{
    const RuntimeFile *f = runtime_file(name, strlen(name));
    if (!f)
        BUG("no %s in the compiler", name);
    return (const char *)f->data; /* ended by a zero */
}

const RuntimeFile *runtime_included(const char *line, size_t n)
{
    static const char include[] = "#include \"";
    const size_t before = sizeof include - 1;
    if (n <= before || memcmp(line, include, before))
        return NULL;
    const char *name = line + before, *quote = memchr(name, '"', n - before);
    return quote ? runtime_file(name, (size_t)(quote - name)) : NULL;
}

void runtime_whole(StrBuf *sb, const char *name)
{
    for (const char *p = runtime_text(name); *p;) {
        const char *eol = strchr(p, '\n');
        const size_t n = eol ? (size_t)(eol - p) + 1 : strlen(p);
        const RuntimeFile *f = runtime_included(p, n);
        if (f)
            runtime_whole(sb, f->name);
        else
            sb_write(sb, p, n);
        p += n;
    }
}

/* The headers of kernels, those that bring others first. */
static const struct {
    const char *file;
    unsigned need, brings;
} header_rows[] = {
    {"igrt_vec64.h", NEED_VEC64,
     NEED_VEC_ROWS | NEED_VEC_APART | NEED_VEC_NARROW | NEED_VEC | NEED_NUM},
    {"igrt_vec_rows.h", NEED_VEC_ROWS, NEED_VEC_NARROW | NEED_VEC | NEED_NUM},
    {"igrt_vec_apart.h", NEED_VEC_APART, NEED_VEC_NARROW | NEED_VEC | NEED_NUM},
    {"igrt_vec_i32.h", NEED_VEC_I32, NEED_VEC_NARROW | NEED_VEC | NEED_NUM},
    {"igrt_vec_narrow.h", NEED_VEC_NARROW, NEED_VEC | NEED_NUM},
    {"igrt_vec_math.h", NEED_VEC_MATH, NEED_VEC | NEED_NUM},
    {"igrt_vec_f32.h", NEED_VEC, NEED_NUM},
    {"igrt_four.h", NEED_DOT_WIDE, NEED_DOT | NEED_NUM},
    {"igrt_dot_vec.h", NEED_VEC | NEED_DOT, NEED_DOT | NEED_NUM},
    {"igrt_dot.h", NEED_DOT, NEED_NUM},
    {"igrt_dot_bf16.h", NEED_DOT_BF16, NEED_VEC | NEED_DOT | NEED_NUM},
    {"igrt_dot_i16.h", NEED_DOT_I16, NEED_NUM},
    {"igrt_amx.h", NEED_AMX, NEED_NUM},
    {"igrt_table.h", NEED_TABLE, 0},
    {"igrt_num.h", NEED_NUM, 0},
};

enum { HEADERS = sizeof header_rows / sizeof *header_rows };
_Static_assert((int)HEADERS <= (int)MAX_KERNEL_HEADERS,
               "codegen.h: MAX_KERNEL_HEADERS is too small");

int kernel_headers(unsigned needs, const char *file[MAX_KERNEL_HEADERS])
{
    unsigned brought = 0;
    int n = 0;
    for (int i = 0; i < HEADERS; i++) {
        const unsigned need = header_rows[i].need;
        if ((needs & need) != need || (brought & need) == need)
            continue;
        brought |= need | header_rows[i].brings;
        file[n++] = header_rows[i].file;
    }
    return n;
}

void print_kernel_headers(StrBuf *sb, unsigned needs)
{
    const char *file[MAX_KERNEL_HEADERS];
    const int n = kernel_headers(needs, file);
    if (!n)
        sb_puts(sb, "\n#include <math.h>\n#include <string.h>\n");
    for (int i = 0; i < n; i++)
        sb_printf(sb, "#include \"%s\"\n", file[i]);
}

unsigned header_need(const char *file)
{
    for (int i = 0; i < HEADERS; i++)
        if (!strcmp(header_rows[i].file, file))
            return header_rows[i].need;
    BUG("no kernel includes %s", file);
}
