/*
 * driver_chat.c - ./model --chat: talks with a language model, a line a turn.
 *
 * What is typed becomes tokens of text; the control tokens around it are those of the form of chats
 * that the model was trained with (igrt_vocab.h).
 */
#include "driver_session.h"
#include "igrt_chat.h"
#include "igrt_sample.h"

#include <stdlib.h>
#include <string.h>

typedef struct Chat {
    DriverSession *s;
    const igrt_text_calls *text;
    igrt_vocab vocab;
    igrt_weights file;
    const igrt_chat_form *form;
    const igrt_function *one; /* decode(); NULL: the model has none */
    igrt_sampling sampling;
    const char *system, *prompt;
    int most, show_ids; /* tokens of an answer */
    double seconds;     /* of --bench; negative: it talks */
    int32_t *ids;       /* all tokens so far; those from `ran` on are not in the context */
    size_t n, room, ran;
    float *logits;
    int32_t words;
    int64_t chunk;
} Chat;

static int chat_usage(const char *why)
{
    if (why)
        return driver_fail(IGRT_EXIT_USAGE, "--chat: %s (--chat --help tells more)", why);
    printf("--chat: reads lines, and answers each; options:\n"
           "  --prompt TEXT         answers this alone\n"
           "  --system TEXT         the system prompt\n"
           "  --tokens N            of an answer, at most (512)\n"
           "  --temperature T       0: always the most likely token (0)\n"
           "  --top-k N  --top-p P  --min-p P  --repeat-penalty R  --seed N\n"
           "  --ids                 the numbers of the answer's tokens, in place of its text\n"
           "  --bench SECONDS       talks not: how fast prompts are read, and answers written, as "
           "JSON\n");
    return IGRT_EXIT_OK;
}

static int chat_options(Chat *c, int argc, char **argv, int *done)
{
    igrt_sampling *g = &c->sampling;
    for (int i = 0; i < argc; i++) {
        const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;
        char *end = argv[i];
        if (!strcmp(a, "--help")) {
            *done = 1;
            return chat_usage(NULL);
        }
        if (!strcmp(a, "--ids")) {
            c->show_ids = 1;
            continue;
        }
        if (!v)
            return chat_usage("an option or its value is not known");
        if (!strcmp(a, "--prompt") || !strcmp(a, "--system")) {
            *(a[2] == 'p' ? &c->prompt : &c->system) = v;
            i++;
            continue;
        }
        const double x = strtod(v, &end);
        float *real = !strcmp(a, "--temperature")      ? &g->temperature
                      : !strcmp(a, "--top-p")          ? &g->top_p
                      : !strcmp(a, "--min-p")          ? &g->min_p
                      : !strcmp(a, "--repeat-penalty") ? &g->repeat_penalty
                                                       : NULL;
        if (real)
            *real = (float)x;
        else if (!strcmp(a, "--top-k"))
            g->top_k = (int32_t)x;
        else if (!strcmp(a, "--tokens"))
            c->most = (int)x;
        else if (!strcmp(a, "--bench"))
            c->seconds = x;
        else if (!strcmp(a, "--seed"))
            g->seed = strtoull(v, &end, 0);
        else
            return chat_usage("an option is not known");
        if (*end || end == v || !(x >= 0 && x < 2e9))
            return chat_usage("an option needs a number from 0 on");
        i++;
    }
    return IGRT_EXIT_OK;
}

/* Text with parts that were typed. */
typedef struct TurnText {
    char *text;
    size_t len;
    igrt_typed typed[2];
    size_t n;
} TurnText;

/* Text behind it, in a place that is large enough. */
static void put_text(TurnText *t, const char *text, size_t len)
{
    memcpy(t->text + t->len, text, len);
    t->len += len;
}

static int is_white(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void put_typed(const Chat *c, TurnText *t, const char *text, size_t len)
{
    if (c->vocab.word[IGRT_VOCAB_FLAGS] & IGRT_VOCAB_TRIMS) {
        for (; len && is_white(*text); len--)
            text++;
        while (len && is_white(text[len - 1]))
            len--;
    }
    t->typed[t->n].from = t->len;
    put_text(t, text, len);
    t->typed[t->n++].to = t->len;
}

/* Tokens of a text behind those that are there. */
static int add_text(Chat *c, const TurnText *t)
{
    const size_t most = c->n + t->len + 8;
    const unsigned how = IGRT_TEXT_CONTROL | (c->n ? IGRT_TEXT_GOES_ON : IGRT_TEXT_BEGINS);
    if (most > c->room) {
        int32_t *more = realloc(c->ids, 2 * most * sizeof *more);
        if (!more)
            return driver_fail(IGRT_EXIT_MEMORY, "out of memory");
        c->ids = more;
        c->room = 2 * most;
    }
    c->n += c->text->tokenize_typed(&c->vocab, t->text, t->len, how, t->typed, t->n, c->ids + c->n,
                                    c->room - c->n);
    return IGRT_EXIT_OK;
}

/* One token by the function that is made for one. */
static igrt_status decode(Chat *c)
{
    union { /* its structs: an input and an output, with room for dims */
        void *align;
        char bytes[256];
    } in = {0}, out = {0};
    driver_set_pointer(in.bytes, &c->one->inputs[0], c->ids + c->ran);
    driver_set_pointer(out.bytes, &c->one->outputs[0], c->logits);
    return c->one->call(c->s->ctx, in.bytes, out.bytes);
}

/* The same by run(), for n of them. */
static igrt_status prefill(Chat *c, int64_t n)
{
    const igrt_model *m = c->s->model;
    const igrt_io *in = &m->inputs[0];
    driver_set_pointer(c->s->inputs, in, c->ids + c->ran);
    if (in->dims_offset != IGRT_NO_DIMS)
        memcpy((char *)c->s->inputs + in->dims_offset, &n, sizeof n);
    const igrt_status status = m->run(c->s->ctx, c->s->inputs, c->s->outputs);
    driver_set_pointer(c->s->inputs, in, NULL);
    return status;
}

/* Runs the model on what is not in the context yet. */
static int catch_up(Chat *c)
{
    while (c->ran < c->n) {
        const int64_t left = (int64_t)(c->n - c->ran), n = left < c->chunk ? left : c->chunk;
        const igrt_status status = n == 1 && c->one ? decode(c) : prefill(c, n);
        if (status == IGRT_ERR_DIM)
            return driver_fail(IGRT_EXIT_MODEL, "the context is full: it holds %zu tokens", c->ran);
        if (status != IGRT_OK)
            return driver_fail(IGRT_EXIT_MODEL, "the run failed: %s", igrt_status_text(status));
        c->ran += (size_t)n;
    }
    return IGRT_EXIT_OK;
}

static void show(const Chat *c, int32_t id)
{
    char text[4096];
    size_t n = c->text->token_text(&c->vocab, id, 0, text, sizeof text);
    if (c->show_ids)
        printf("%d ", (int)id);
    else
        fwrite(text, 1, n < sizeof text ? n : sizeof text, stdout);
    fflush(stdout);
}

static int answer(Chat *c)
{
    int status = IGRT_EXIT_OK;
    for (int i = 0; i < c->most && status == IGRT_EXIT_OK; i++) {
        status = catch_up(c);
        if (status != IGRT_EXIT_OK)
            break;
        const int32_t id = c->text->sample(&c->sampling, c->logits, c->words, c->ids, c->n);
        const int last = igrt_token_ends(&c->vocab, id);
        if (!last || c->show_ids)
            show(c, id);
        if (last)
            break;
        char empty = 0;
        const TurnText none = {&empty, 0, {{0, 0}, {0, 0}}, 0};
        if (c->n == c->room)
            status = add_text(c, &none); /* room */
        if (status == IGRT_EXIT_OK)
            c->ids[c->n++] = id;
    }
    putchar('\n');
    return status;
}

static int turn(Chat *c, const char *text, size_t len)
{
    const igrt_chat_form *f = c->form;
    const char *system = c->n ? NULL : c->system;
    const char *before = c->n ? f->between : system ? f->system[0] : f->user[0];
    TurnText t = {NULL, 0, {{0, 0}, {0, 0}}, 0};
    size_t room = strlen(before) + len + strlen(f->user[1]) + 1;
    if (system)
        room += strlen(system) + strlen(f->system[1]);
    t.text = malloc(room);
    if (!t.text)
        return driver_fail(IGRT_EXIT_MEMORY, "out of memory");
    put_text(&t, before, strlen(before));
    if (system) {
        put_typed(c, &t, system, strlen(system));
        put_text(&t, f->system[1], strlen(f->system[1]));
    }
    put_typed(c, &t, text, len);
    put_text(&t, f->user[1], strlen(f->user[1]));
    const int status = add_text(c, &t);
    free(t.text);
    return status == IGRT_EXIT_OK ? answer(c) : status;
}

/* A line without its end, in *line, which grows; 0: there is none. */
static int next_line(char **line, size_t *room, size_t *len)
{
    int ch;
    *len = 0;
    while ((ch = getchar()) != EOF && ch != '\n') {
        if (*len == *room) {
            char *more = realloc(*line, 2 * *room + 256);
            if (!more)
                return 0;
            *line = more;
            *room = 2 * *room + 256;
        }
        (*line)[(*len)++] = (char)ch;
    }
    return *len > 0 || ch != EOF;
}

static int talk(Chat *c)
{
    char *line = NULL;
    size_t room = 0, len;
    int status = IGRT_EXIT_OK;
    if (c->prompt)
        return turn(c, c->prompt, strlen(c->prompt));
    while (status == IGRT_EXIT_OK && fputs("> ", stderr) >= 0 && next_line(&line, &room, &len))
        if (len)
            status = turn(c, line, len);
    free(line);
    return status;
}

/* That of the program itself, or the file beside it. */
static int open_vocabulary(Chat *c)
{
    const igrt_text_calls *t = c->text;
    const void *data = t->data;
    char path[PATH_BYTES] = "the vocabulary";
    if (t->file) {
        const int status = driver_beside(c->s, t->file, path);
        if (status != IGRT_EXIT_OK)
            return status;
        const char *why = igrt_weights_open(&c->file, path, t->bytes);
        if (why)
            return driver_fail(IGRT_EXIT_WEIGHTS, "%s: %s", path, why);
        data = c->file.data;
    }
    if (t->open(&c->vocab, data, t->bytes) != IGRT_OK)
        return driver_fail(IGRT_EXIT_WEIGHTS, "%s: it is no vocabulary", path);
    return IGRT_EXIT_OK;
}

/* The vocabulary, and places for what the model reads and writes. */
static int chat_begin(Chat *c)
{
    const igrt_model *m = c->s->model;
    const igrt_io *out = &m->outputs[0];
    int status = open_vocabulary(c);
    if (status != IGRT_EXIT_OK)
        return status;
    c->form = c->text->form(&c->vocab);
    for (int i = 0; i < m->n_functions; i++) {
        const igrt_function *f = &m->functions[i];
        if (!strcmp(f->name, "decode") && f->inputs_bytes <= 256 && f->outputs_bytes <= 256)
            c->one = f;
    }
    if (m->n_inputs != 1)
        return driver_fail(IGRT_EXIT_USAGE, "--chat: the model has %d sequences, not one",
                           m->n_inputs);
    c->words = (int32_t)out->max_dims[0];
    c->chunk = m->inputs[0].max_dims[0];
    if (!c->one && c->chunk > 1 && m->inputs[0].dims_offset == IGRT_NO_DIMS)
        return driver_fail(IGRT_EXIT_USAGE, "--chat: a run takes %lld tokens, and no fewer",
                           (long long)c->chunk);
    status = driver_allocate_outputs(c->s);
    c->logits = driver_pointer(c->s->outputs, out);
    return status;
}

/* ---- --bench ------------------------------------------------------------------------------- */

enum { BENCH_TOKENS = 128, BENCH_ROUNDS = 3 }; /* at most, of a prompt and an answer; at least */

/* The seconds of a token, at best: of prompts that come n tokens at once, or (n = 1) of answers,
 * whose tokens come one after the other, each behind those before it.  Either has c->room tokens,
 * and the context is empty before it.  The first round warms up. */
static int bench_phase(Chat *c, size_t n, double *best)
{
    const uint64_t limit = driver_now(NULL) + (uint64_t)(0.5e9 * c->seconds);
    for (int round = 0; round <= BENCH_ROUNDS || driver_now(NULL) < limit; round++) {
        igrt_status reset = c->s->model->reset(c->s->ctx);
        if (reset != IGRT_OK)
            return driver_fail(IGRT_EXIT_MODEL, "reset: %s", igrt_status_text(reset));
        c->ran = 0;
        const uint64_t begin = driver_now(NULL);
        for (c->n = n; c->n <= c->room; c->n += n) {
            const int status = catch_up(c);
            if (status != IGRT_EXIT_OK)
                return status;
        }
        const double time = (double)(driver_now(NULL) - begin) * 1e-9 / (double)c->room;
        if (round && (round == 1 || time < *best))
            *best = time;
    }
    return IGRT_EXIT_OK;
}

/* A thread's part of the weights, read as fast as may be. */
typedef struct WeightsRead {
    const uint64_t *word;
    size_t n;
    int parts;
    uint64_t sum[IGRT_POOL_MAX];
} WeightsRead;

static void read_part(void *task, int64_t i, int worker)
{
    WeightsRead *r = task;
    const size_t part = (size_t)i, parts = (size_t)r->parts, end = r->n * (part + 1) / parts;
    uint64_t sum = 0;
    (void)worker;
    for (size_t k = r->n * part / parts; k < end; k++)
        sum += r->word[k];
    r->sum[i] = sum;
}

/* Bytes a second, at best, of the weights as they lie, by as many threads as the model has: a
 * token needs nearly all of them, so no answer is written faster.  0: they are no file, or lie on
 * a GPU. */
static double bench_reading(const Chat *c)
{
    const igrt_config *g = &c->s->config;
    WeightsRead r = {.word = g->weights, .n = g->weights_bytes / 8, .parts = g->threads};
    volatile uint64_t keep = 0;
    double best = 0;
    if (c->s->model->memory)
        return 0;
    for (int round = 0; round <= 2 * BENCH_ROUNDS && r.word && r.n; round++) {
        const uint64_t begin = driver_now(NULL);
        if (g->parallel_for)
            g->parallel_for(g->parallel_user, read_part, &r, r.parts);
        else
            read_part(&r, 0, 0);
        const double rate = (double)g->weights_bytes * 1e9 / (double)(driver_now(NULL) - begin + 1);
        best = rate > best ? rate : best;
        for (int i = 0; i < r.parts; i++)
            keep += r.sum[i];
    }
    (void)keep; /* for which nothing is left out */
    return best;
}

/* Of a small context prompts and answers are shorter. */
static int chat_bench(Chat *c)
{
    double read = 0, written = 0;
    c->room = c->chunk < BENCH_TOKENS ? (size_t)c->chunk : BENCH_TOKENS;
    c->ids = malloc(c->room * sizeof *c->ids);
    if (!c->ids)
        return driver_fail(IGRT_EXIT_MEMORY, "out of memory");
    for (size_t i = 0; i < c->room; i++) /* tokens without a meaning: each takes as long */
        c->ids[i] = (int32_t)((i * 7919 + 13) % (size_t)c->words);
    int status = bench_phase(c, c->room, &read);
    if (status == IGRT_EXIT_OK)
        status = bench_phase(c, 1, &written);
    if (status == IGRT_EXIT_OK)
        printf("{\"model\": \"%s\", \"threads\": %d, \"tokens\": %zu, "
               "\"prompt_tokens_per_second\": %.6g, \"answer_tokens_per_second\": %.6g, "
               "\"read_bytes_per_second\": %.6g}\n",
               c->s->model->name, c->s->config.threads, c->room, 1 / read, 1 / written,
               bench_reading(c));
    return status;
}

int driver_chat(DriverSession *s, int argc, char **argv)
{
    Chat c = {.s = s, .text = s->model->text, .most = 512, .seconds = -1};
    int done = 0, status = chat_options(&c, argc, argv, &done);
    if (status == IGRT_EXIT_OK && !done)
        status = chat_begin(&c);
    if (status == IGRT_EXIT_OK && !done)
        status = c.seconds >= 0 ? chat_bench(&c) : talk(&c);
    igrt_weights_close(&c.file);
    free(c.ids);
    return status;
}
