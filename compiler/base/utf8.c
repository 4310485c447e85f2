/* utf8.c - UTF-8 as RFC 3629 has it, and names as they may be printed: those of a model may hold
 * any bytes. */
#include "base.h"

int utf8_bytes(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    int n = *s >= 0xc2 && *s < 0xe0   ? 2
            : *s >= 0xe0 && *s < 0xf0 ? 3
            : *s >= 0xf0 && *s < 0xf5 ? 4
                                      : 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xf0 && s[1] < 0x90)) /* longer than it has to be */
        return 0;
    if ((*s == 0xed && s[1] > 0x9f) || (*s == 0xf4 && s[1] > 0x8f)) /* a surrogate, or beyond */
        return 0;
    return n;
}

char *hide_unprintable(char *text)
{
    for (char *s = text; *s;) {
        const int n = utf8_bytes(s);
        const bool control = (unsigned char)s[0] == 0xc2 && (unsigned char)s[1] < 0xa0;
        if (n && !control) {
            s += n;
            continue;
        }
        if (*s < ' ' || *s > '~')
            *s = '?';
        s++;
    }
    return text;
}

const char *printable(Arena *a, const char *text)
{
    return hide_unprintable(arena_strdup(a, text));
}
