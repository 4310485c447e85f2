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
