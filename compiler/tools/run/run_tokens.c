/* run_tokens.c - bench of a language model: tokens a second of prompts and of answers, as its
 * bundle's program tells them (runtime_min/host/driver_chat.c), and what share of reading that is.
 *
 * Each token of an answer needs the weights once, and does little with each: it takes at least
 * their bytes over the rate at which the same threads read memory, which is measured beside it.
 *
 *     91.1 MB a token, 20.5 GB/s read: 225 tokens/s at most; 191 tokens/s are 85 % */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inspect.h"
#include "run.h"

/* Bytes of weights that a token of an answer needs: each weight once, or, of a table that is only
 * looked into, no more than the steps touch.  0: there is no plan. */
static double token_bytes(const Session *s)
{
    LoadedModel m;
    Plan *p = NULL;
    double bytes = 0;
    ingot_status status = model_open(&m, s->o, true);
    if (status == INGOT_OK) {
        m.functions = true;
        status = model_build(&m, s->o, s->in, s->bound);
    }
    if (status == INGOT_OK) {
        function_select(m.c, m.c->nfunction - 1); /* decode(); run(), where that is all */
        p = plan_make(m.c, &s->o->compile);
    }
    Step **steps = p ? plan_steps(p, s->a) : NULL;
    double *touched = NEWN(s->a, double, p ? p->nbuffer : 0);
    for (int i = 0; p && i < p->nstep; i++) {
        const int64_t most = step_bytes(steps[i]);
        for (int k = 0; k < steps[i]->nbuf; k++) {
            const Buffer *b = steps[i]->bufs[k];
            if (buffer_root(b)->kind == BUF_WEIGHT)
                touched[b->id] += (double)most;
        }
    }
    for (int i = 0; p && i < p->nbuffer; i++)
        bytes += fmin(touched[i], (double)p->buffers[i]->bytes);
    plan_free(p);
    model_close(&m);
    return bytes;
}

/* A number of the program's line. */
static double told_number(const char *told, const char *name)
{
    const char *at = strstr(told, name);
    return at ? strtod(at + strlen(name), NULL) : 0;
}

static void print_tokens(const Session *s, const char *told, double bytes)
{
    const double written = told_number(told, "\"answer_tokens_per_second\": "),
                 rate = told_number(told, "\"read_bytes_per_second\": "),
                 share = rate > 0 ? 100 * bytes * written / rate : 0;
    const int threads = s->o->threads, tokens = (int)told_number(told, "\"tokens\": ");
    if (s->o->json) {
        printf("%.*s, \"target\": \"%s\", \"weight_bytes_per_token\": %.0f",
               (int)strcspn(told, "}\n"), told, s->o->compile.target, bytes);
        printf(rate > 0 ? ", \"read_percent\": %.2f}\n" : "}\n", share);
        return;
    }
    printf("pp%d %.1f tokens/s, tg%d %.1f tokens/s, %d thread%s; a token needs %.1f MB of weights",
           tokens, told_number(told, "\"prompt_tokens_per_second\": "), tokens, written, threads,
           threads > 1 ? "s" : "", bytes * 1e-6);
    if (rate > 0)
        printf(": %.0f %% of reading them at %.1f GB/s", share, rate * 1e-9);
    printf("\n");
}

ingot_status bench_tokens(Session *s)
{
    const char *work = temporary_folder(s->a, "bench");
    if (!work)
        return complain(INGOT_IO, "ingot: no folder of its own in $TMPDIR, else /tmp");
    const char *out = arena_printf(s->a, "%s/told.txt", work),
               *argv[] = {arena_printf(s->a, "%s/model", s->entry),
                          "-t",
                          arena_printf(s->a, "%d", s->o->threads),
                          "--chat",
                          "--bench",
                          arena_printf(s->a, "%g", s->o->seconds),
                          NULL};
    progress_begin("bench", s->o->seconds);
    const int code = process_run_to(argv, out);
    progress_end();
    const char *told = code ? NULL : read_text(s->a, out);
    const double bytes = told ? token_bytes(s) : 0;
    if (told && bytes > 0)
        print_tokens(s, told, bytes);
    remove_tree(work);
    if (code > 0)
        return driver_failed(s, code);
    if (told && bytes <= 0)
        return complain(INGOT_TOOL, "%s: its weights cannot be counted", s->o->model);
    return told ? INGOT_OK : INGOT_TOOL;
}
