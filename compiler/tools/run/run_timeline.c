/* run_timeline.c - bench --trace: what a program has recorded (driver_timeline.c), and beside it
 * what the plan knows of each step.
 *
 * A program knows times and numbers of steps.  Each event is a line; to that of a step or a part
 * the nodes of the model are added, what it computes and moves, and its rate:
 *
 *     "args": {"step": 3}}
 *     "args": {"step": 3, "node": "layer1/conv1", "op": "Conv", "kind": "generated",
 *              "flops": 231211008, "bytes": 1605632, "gflops": 97.1, "gbps": 0.67}}
 *
 * The bytes of the arena that are alive in each step are a counter. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect.h"
#include "run.h"

typedef struct {
    int step;
    double begin, duration; /* microseconds */
    bool part;              /* of a step that threads share */
} TimelineEvent;

/* A line of the program's; false: it is no event of a step. */
static bool read_event(const char *line, TimelineEvent *e)
{
    const char *ts = strstr(line, "\"ts\": "), *duration = strstr(line, "\"dur\": "),
               *args = strstr(line, "\"args\": {\"step\": ");
    if (!ts || !duration || !args)
        return false;
    e->begin = strtod(ts + 6, NULL);
    e->duration = strtod(duration + 7, NULL);
    e->step = atoi(strstr(args, "\"step\": ") + 8);
    e->part = strstr(args, "\"part\"") != NULL;
    return true;
}

static void put_rate(StrBuf *out, const char *name, double amount, double microseconds)
{
    if (amount > 0 && microseconds > 0)
        sb_printf(out, ", \"%s\": %.4g", name, amount / microseconds * 1e-3);
}

/* The members that the plan adds. */
static void put_step(StrBuf *out, const Step *s, const TimelineEvent *e)
{
    const double flops = (double)step_flops(s), bytes = (double)step_bytes(s);
    StrBuf nodes = {0}, ops = {0};
    for (int i = 0; i < s->norigin; i++) {
        sb_printf(&nodes, i ? ", %s" : "%s", s->origins[i]->node ? s->origins[i]->node : "");
        sb_printf(&ops, i ? ", %s" : "%s", s->origins[i]->op ? s->origins[i]->op : "");
    }
    if (s->norigin) {
        sb_puts(out, ", \"node\": ");
        json_string(out, nodes.data);
        sb_puts(out, ", \"op\": ");
        json_string(out, ops.data);
    }
    sb_printf(out, ", \"kind\": \"%s\"", step_kind(s));
    if (!e->part) {
        sb_printf(out, ", \"flops\": %.0f, \"bytes\": %.0f", flops, bytes);
        put_rate(out, "gflops", flops, e->duration);
        put_rate(out, "gbps", bytes, e->duration);
    }
    sb_free(&nodes);
    sb_free(&ops);
}

static void put_alive(StrBuf *out, double at, int64_t bytes)
{
    sb_printf(out,
              ",\n{\"ph\": \"C\", \"pid\": 1, \"tid\": 1, \"ts\": %.3f, \"name\": \"live arena "
              "bytes\", \"args\": {\"bytes\": %lld}}",
              at, (long long)bytes);
}

/* Line by line; the list ends with a line that begins with a bracket. */
static void put_events(StrBuf *out, char *text, const Plan *p, Step *const *steps)
{
    double end = 0;
    for (char *line = text; *line;) {
        char *next = strchr(line, '\n');
        const size_t n = next ? (size_t)(next - line) : strlen(line);
        const char *comma = n && line[n - 1] == ',' ? "," : "";
        TimelineEvent e;
        line[n] = 0;
        if (line[0] == ']' && p->nstep)
            put_alive(out, end, 0);
        sb_puts(out, line == text ? "" : "\n");
        if (read_event(line, &e) && e.step >= 0 && e.step < p->nstep && steps[e.step]) {
            const int tail = 2 + (int)strlen(comma); /* }}, */
            sb_printf(out, "%.*s", (int)n - tail, line);
            put_step(out, steps[e.step], &e);
            sb_puts(out, "}}");
            if (!e.part)
                put_alive(out, e.begin, plan_alive(p, e.step));
            sb_puts(out, comma);
            end = e.begin + e.duration;
        } else {
            sb_puts(out, line);
        }
        line += n + (next != NULL);
    }
    sb_puts(out, "\n");
}

bool timeline_tell(Session *s, const char *path)
{
    char *text = read_text(s->a, path);
    if (!text)
        return false;
    LoadedModel m;
    Plan *p = session_plan(s, &m, s->bound);
    StrBuf out = {0};
    if (p)
        put_events(&out, text, p, plan_steps(p, s->a));
    FILE *f = p ? fopen(path, "w") : NULL;
    bool good = f && fwrite(out.data, 1, out.len, f) == out.len;
    if (f && fclose(f))
        good = false;
    sb_free(&out);
    plan_free(p);
    model_close(&m);
    return good;
}
