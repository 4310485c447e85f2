/* cli_plan.c - `ingot plan diff A.sched B.sched`: what two plans decide otherwise, in words.
 *
 * The files are compared as text: entries are paired by their keys, and sizes are read from the
 * comments that --save-sched writes, so that no model is needed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

typedef struct PlanEntry {
    struct PlanEntry *next;
    const char *key;     /* "value 0123.. only 1 of 2": what it speaks of */
    const char *said;    /* of a value: "stored alone" */
    const char *comment; /* of its first line */
    const char **body;   /* of a kernel: its lines */
    int nbody;
    bool value, paired;
    double bytes, operations;
} PlanEntry;
typedef struct {
    Arena *a;
    PlanEntry *entry[1 << 12]; /* by hash of section and key */
    PlanEntry **list;
    int n;
} File;

static unsigned slot(const char *key)
{
    return (unsigned)(hash_bytes(0, key, strlen(key)) & 0xfff);
}

static PlanEntry *find_entry(const File *f, const char *key)
{
    PlanEntry *e = f->entry[slot(key)];
    while (e && strcmp(e->key, key))
        e = e->next;
    return e;
}

/* ..., 4096 bytes, 147456 operations */
static double number_before(const char *comment, const char *unit)
{
    const char *at = strstr(comment, unit);
    if (!at)
        return 0;
    while (at > comment && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return strtod(at, NULL);
}

/* The words of a value's or kernel's line: those that tell which, and what is said of it. */
static void split_words(File *f, PlanEntry *e, char *text, const char *section)
{
    StrBuf key = {0}, said = {0};
    int skip = 0, keep = 2;
    sb_printf(&key, "%s|", section);
    for (char *word = strtok(text, " \t"); word; word = strtok(NULL, " \t")) {
        if (skip > 0) {
            skip--;
        } else if (keep > 0 || !strcmp(word, "only") || !strcmp(word, "copy")) {
            keep += !strcmp(word, "only") ? 4 : !strcmp(word, "copy") ? 2 : 0;
            keep--;
            sb_printf(&key, " %s", word);
        } else if (!strcmp(word, "near") || !strcmp(word, "at")) {
            skip = !strcmp(word, "near") ? 5 : 3;
        } else {
            sb_printf(&said, "%s%s", said.len ? " " : "", word);
        }
    }
    e->key = arena_strdup(f->a, key.data);
    e->said = arena_strdup(f->a, said.data ? said.data : "");
    sb_free(&key);
    sb_free(&said);
}

static ingot_status read_plan(File *f, const char *path)
{
    FILE *in = fopen(path, "r");
    if (!in)
        return complain(INGOT_IO, "%s: %s", path, strerror(errno));
    char line[4096];
    const char *section = "";
    PlanEntry *now = NULL;
    bool known = false;
    while (fgets(line, sizeof line, in)) {
        line[strcspn(line, "\r\n")] = 0;
        char *text = arena_strdup(f->a, line), *comment = strchr(text, '#');
        if (comment)
            *comment++ = 0;
        char *at = text + strspn(text, " ");
        if (!strncmp(at, "sched ", 6)) {
            known |= !strcmp(at, "sched 2");
        } else if (!strncmp(at, "target ", 7)) {
            section = arena_strdup(f->a, at + 7);
            now = NULL;
        } else if (!strncmp(at, "value ", 6) || !strncmp(at, "kernel ", 7)) {
            now = NEW(f->a, PlanEntry);
            now->value = *at == 'v';
            now->comment = comment ? comment + strspn(comment, " ") : "";
            now->bytes = number_before(now->comment, " bytes");
            now->operations = number_before(now->comment, " operations");
            split_words(f, now, at, section);
            now->next = f->entry[slot(now->key)];
            f->entry[slot(now->key)] = now;
            vec_push(f->a, f->list, f->n, now);
        } else if (*at && now) {
            size_t end = strlen(at);
            while (end && at[end - 1] == ' ')
                at[--end] = 0;
            vec_push(f->a, now->body, now->nbody, at);
        }
    }
    const int unread = ferror(in) ? errno : 0; /* a folder, say */
    fclose(in);
    if (unread)
        return complain(INGOT_IO, "%s: %s", path, strerror(unread));
    return known ? INGOT_OK
                 : complain(INGOT_USAGE, "%s: this is no .sched file of version 2", path);
}

/* ---- words ----------------------------------------------------------------------------------- */

static bool says(const PlanEntry *e, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = e ? e->said : ""; (at = strstr(at, word)); at += n)
        if ((at == e->said || at[-1] == ' ') && (!at[n] || at[n] == ' '))
            return true;
    return false;
}

static const char *variant_of(Arena *a, const PlanEntry *e)
{
    const char *at = e ? strstr(e->said, "as ") : NULL;
    return at ? arena_printf(a, "%.*s", (int)strcspn(at + 3, " "), at + 3) : "direct";
}

/* What a change of one value means. */
static void tell(Arena *a, const PlanEntry *x, const PlanEntry *y)
{
    if (!x || !y) {
        printf("%s: only the %s file speaks of it\n", x ? x->comment : y->comment,
               x ? "first" : "second");
        return;
    }
    printf("%s:", x->comment);
    if (says(x, "stored") && says(y, "recomputed"))
        printf(" stored -> recomputed: %.0f bytes are not written, %.0f operations are done by "
               "each reader;",
               x->bytes, x->operations);
    if (says(x, "recomputed") && says(y, "stored"))
        printf(" recomputed -> stored: %.0f bytes are written, %.0f operations are done once;",
               x->bytes, x->operations);
    if (says(x, "in") != says(y, "in"))
        printf(says(x, "in")
                   ? " in its concat -> in a buffer of its own: %.0f bytes are copied;"
                   : " in a buffer of its own -> in its concat: %.0f bytes are not copied;",
               x->bytes);
    if (says(x, "with") != says(y, "with"))
        printf(says(x, "with") ? " with another value -> by a kernel of its own: one kernel more;"
                               : " by a kernel of its own -> with another value: one kernel less;");
    const char *was = variant_of(a, x), *is = variant_of(a, y);
    if (strcmp(was, is))
        printf(" computed as %s -> as %s;", was, is);
    printf("\n");
}

static bool has_line(const PlanEntry *e, const char *line)
{
    for (int i = 0; i < e->nbody; i++)
        if (!strcmp(e->body[i], line))
            return true;
    return false;
}

/* Whether they differ; prints how. */
static bool tell_kernel(const PlanEntry *x, const PlanEntry *y)
{
    bool head = false;
    for (int side = 0; side < 2; side++) {
        const PlanEntry *of = side ? y : x, *other = side ? x : y;
        for (int i = 0; i < of->nbody; i++) {
            if (has_line(other, of->body[i]))
                continue;
            if (!head)
                printf("kernel of %s:\n", x->comment);
            head = true;
            printf("  %c %s\n", side ? '+' : '-', of->body[i]);
        }
    }
    return head;
}

static double stored_bytes(const File *f)
{
    double sum = 0;
    for (int i = 0; i < f->n; i++)
        sum += says(f->list[i], "stored") ? f->list[i]->bytes : 0;
    return sum;
}

ingot_status command_plan(Options *o)
{
    if (strcmp(o->model, "diff") || o->nmore != 2)
        return complain(INGOT_USAGE, "ingot plan: diff A.sched B.sched is wanted");
    File *f = NEWN(o->a, File, 2);
    for (int i = 0; i < 2; i++) {
        f[i].a = o->a;
        ingot_status status = read_plan(&f[i], o->more[i]);
        if (status != INGOT_OK)
            return status;
    }
    int values = 0, kernels = 0;
    for (int i = 0; i < f[0].n; i++) {
        const PlanEntry *x = f[0].list[i];
        PlanEntry *y = find_entry(&f[1], x->key);
        if (y)
            y->paired = true;
        if (x->value && (!y || strcmp(x->said, y->said))) {
            tell(o->a, x, y);
            values++;
        } else if (!x->value && !y) {
            printf("kernel of %s: only in %s\n", x->comment, o->more[0]);
            kernels++;
        } else if (!x->value) {
            kernels += tell_kernel(x, y);
        }
    }
    for (int i = 0; i < f[1].n; i++) {
        const PlanEntry *y = f[1].list[i];
        if (y->paired)
            continue;
        if (y->value)
            tell(o->a, NULL, y);
        else
            printf("kernel of %s: only in %s\n", y->comment, o->more[1]);
        values += y->value;
        kernels += !y->value;
    }
    printf("%d values and %d kernels differ; stored are %.0f bytes -> %.0f\n", values, kernels,
           stored_bytes(&f[0]), stored_bytes(&f[1]));
    return INGOT_OK;
}
