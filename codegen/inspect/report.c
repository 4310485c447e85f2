/* report.c - the page in which a plan can be read: codegen/report/index.html with its scripts, its
 * styles and the data in it, as one file that fetches nothing.
 *
 * In JSON "<" stands in strings only.  There it is written \u003c, so that no name of a model's can
 * end the script that holds it. */
#include <stdio.h>
#include <string.h>

#include "inspect.h"

static const RuntimeFile *page_file(const char *name, size_t n)
{
    for (const RuntimeFile *f = report_files; *f->name; f++)
        if (strlen(f->name) == n && !memcmp(f->name, name, n))
            return f;
    BUG("the report has no file '%.*s'", (int)n, name);
}

static void put_data(StrBuf *sb, const char *id, const char *json)
{
    sb_printf(sb, "<script type=\"application/json\" id=\"%s\">", id);
    for (const char *p = json; *p;) {
        size_t n = strcspn(p, "<");
        sb_write(sb, p, n);
        p += n;
        if (*p) {
            sb_puts(sb, "\\u003c");
            p++;
        }
    }
    sb_puts(sb, "</script>\n");
}

/* The file between these two marks of a line: <script src="graph.js"></script> */
static const RuntimeFile *named_in(const char *line, size_t n, const char *before)
{
    size_t skip = strlen(before);
    if (n < skip || memcmp(line, before, skip) != 0)
        return NULL;
    return page_file(line + skip, strcspn(line + skip, "\""));
}

void report_page(StrBuf *sb, int n_data, const StrBuf *json, const char *other)
{
    const RuntimeFile *page = page_file("index.html", 10), *f;
    const char *text = (const char *)page->data, *end = text + page->bytes;
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t n = (size_t)((stop ? stop : end) - text);
        if ((f = named_in(text, n, "<script src=\""))) {
            sb_puts(sb, "<script>\n");
            sb_write(sb, f->data, f->bytes);
            sb_puts(sb, "</script>\n");
        } else if ((f = named_in(text, n, "<link rel=\"stylesheet\" href=\""))) {
            sb_puts(sb, "<style>\n");
            sb_write(sb, f->data, f->bytes);
            sb_puts(sb, "</style>\n");
        } else if (n >= 13 && !memcmp(text, "<!-- data -->", 13)) {
            for (int i = 0; i < n_data; i++) {
                char id[32];
                snprintf(id, sizeof id, i ? "data-%d" : "data", i);
                put_data(sb, id, json[i].data);
            }
            if (other)
                put_data(sb, "other", other);
        } else {
            sb_write(sb, text, n);
            sb_puts(sb, "\n");
        }
        text += n + 1;
    }
}
