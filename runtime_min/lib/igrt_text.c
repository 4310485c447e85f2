/*
 * igrt_text.c - UTF-8 and the cases of characters.
 *
 * Malformed bytes are kept: each is a character of its own, which no case or class has.
 */
#include "igrt_text.h"

#include "igrt_case.h"

int32_t igrt_text_next(const char **s)
{
    static const int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *p = (const unsigned char *)*s;
    const int n = *p < 0x80 ? 1 : *p >= 0xf0 && *p < 0xf8 ? 4 : *p >= 0xe0 ? 3 : *p >= 0xc0 ? 2 : 0;
    int32_t c = n == 1 ? *p : n ? *p & (0xff >> (n + 1)) : 0;
    int ok = n != 0 && *p < 0xf8;
    for (int i = 1; ok && i < n; i++) { /* a zero at the end is no continuation */
        ok = (p[i] & 0xc0) == 0x80;
        c = c << 6 | (p[i] & 0x3f);
    }
    if (!ok || c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
        *s += 1;
        return -1 - (int32_t)*p;
    }
    *s += n;
    return c;
}

int igrt_text_encode(int32_t c, char out[4])
{
    if (c < 0x80) { /* or a malformed byte */
        out[0] = (char)(c < 0 ? -1 - c : c);
        return 1;
    }
    const int n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(unsigned char)(0x80 | (c & 0x3f));
    out[0] = (char)(unsigned char)((0xf00 >> n & 0xff) | c);
    return n;
}

/* ---- cases ---------------------------------------------------------------------------------- */

typedef struct CaseRun {
    int32_t first, last, step, difference;
} CaseRun;

#define CASE_RUN(first, last, step, difference) {first, last, step, difference},
static const CaseRun lower[] = {CASE_LOWER(CASE_RUN)};
static const CaseRun upper[] = {CASE_UPPER(CASE_RUN)};

/* The runs are in order and do not overlap: the first that ends at or after c decides. */
static int32_t mapped(const CaseRun *run, int n, int32_t c)
{
    int lo = 0, hi = n;
    for (int step = 0; lo < hi && step < 32; step++) { /* each halves what is left */
        const int mid = lo + (hi - lo) / 2;
        if (run[mid].last < c)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == n || c < run[lo].first || (c - run[lo].first) % run[lo].step)
        return c;
    return c + run[lo].difference;
}

int32_t igrt_text_lower(int32_t c)
{
    return mapped(lower, (int)(sizeof lower / sizeof *lower), c);
}

int32_t igrt_text_upper(int32_t c)
{
    return mapped(upper, (int)(sizeof upper / sizeof *upper), c);
}

int igrt_text_is_space(int32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}
