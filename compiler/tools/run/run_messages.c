/* run_messages.c - where messages go: one line each on stderr. */
#include "run.h"
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_BYTES = 1800 };

static void print_part(const char *s, size_t n)
{
    char part[MESSAGE_BYTES + 1];
    memcpy(part, s, n);
    part[n] = 0;
    fputs(hide_unprintable(part), stderr);
}

/* One line, whatever the model's names hold; of a long one both ends. Names stay as the model has
 * them where they are UTF-8, so that an option that a message suggests can be copied. */
static void print_line(const char *prefix, const char *message)
{
    size_t n = strlen(message), half = MESSAGE_BYTES / 2;
    fputs(prefix, stderr);
    print_part(message, n > MESSAGE_BYTES ? half : n);
    if (n > MESSAGE_BYTES) {
        fputs(" ... ", stderr);
        print_part(message + n - half, half);
    }
    fputc('\n', stderr);
}

char sink_errors[1];

/* A command that opens a model again, to ask for its inputs and then to build it, warns once. */
static bool was_said(const char *message)
{
    enum { MOST = 64 };
    static uint64_t said[MOST];
    static int n;
    const uint64_t hash = hash_bytes(0, message, strlen(message));
    for (int i = 0; i < n; i++)
        if (said[i] == hash)
            return true;
    if (n < MOST)
        said[n++] = hash;
    return false;
}

void sink(void *quiet, ingot_level level, const char *message)
{
    static const char *const prefix[] = {"  ", "  warning: ", ""};
    const bool wanted = !quiet || (quiet == sink_errors && level == INGOT_ERROR);
    if (wanted && !(level == INGOT_WARNING && was_said(message))) {
        progress_end();
        print_line(prefix[level], message);
    }
}

static void print_format(const char *format, va_list ap)
{
    progress_end();
    StrBuf sb = {0};
    sb_vprintf(&sb, format, ap);
    print_line("", sb.data);
    sb_free(&sb);
}

void say(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    print_format(format, ap);
    va_end(ap);
}

void note(const char *format, ...)
{
    va_list ap;
    if (progress_is_quiet())
        return;
    va_start(ap, format);
    print_format(format, ap);
    va_end(ap);
}

ingot_status complain(ingot_status status, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    print_format(format, ap);
    va_end(ap);
    return status;
}

/* A whole number of at most 18 digits. */
bool option_number(const char *text, size_t n, int64_t *out)
{
    *out = 0;
    if (n == 0 || n > 18)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        *out = *out * 10 + (text[i] - '0');
    }
    return true;
}

/* 4096, 256k, 2M, 1G */
bool option_size(const char *value, int64_t *out)
{
    size_t n = strlen(value);
    int shift = 0;
    if (n && strchr("kKmMgG", value[n - 1])) {
        char unit = value[--n];
        shift = unit == 'k' || unit == 'K' ? 10 : unit == 'm' || unit == 'M' ? 20 : 30;
    }
    int64_t v;
    if (!option_number(value, n, &v) || v == 0 || v > (INT64_MAX >> shift))
        return false;
    *out = v << shift;
    return true;
}
