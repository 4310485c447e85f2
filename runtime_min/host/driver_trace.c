/*
 * driver_trace.c - what each step has written goes to a file, and what another run has written may
 * take its place.
 */
#include "driver_session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A line for each place: step, output, offset, bytes; of the arena, or the first memory, -1 in
 * place of the output, of the next memories -2, -3, .. */
int driver_open_trace(DriverSession *s)
{
    const DriverOptions *o = s->options;
    DriverTrace *t = &s->trace;
    FILE *f = fopen(o->places, "r");
    long long at[4];
    while (f && fscanf(f, "%lld %lld %lld %lld", &at[0], &at[1], &at[2], &at[3]) == 4) {
        TracePlace *grown =
            t->n % 64 ? t->place : realloc(t->place, (size_t)(t->n + 64) * sizeof *grown);
        if (!grown)
            break;
        t->place = grown;
        t->place[t->n++] = (TracePlace){(int)at[0], (int)at[1], (size_t)at[2], (size_t)at[3]};
    }
    const int whole = f && feof(f);
    if (f)
        fclose(f);
    if (!whole)
        return driver_fail(IGRT_EXIT_INPUT, "%s: no list of places", o->places);
    t->to = fopen(o->trace, "wb");
    if (!t->to)
        return driver_fail(IGRT_EXIT_OUTPUT, "%s: %s", o->trace, strerror(errno));
    t->from = o->follow ? fopen(o->follow, "rb") : NULL;
    if (o->follow && !t->from)
        return driver_fail(IGRT_EXIT_INPUT, "%s: %s", o->follow, strerror(errno));
    return IGRT_EXIT_OK;
}

static char *place_data(const DriverSession *s, const TracePlace *p)
{
    const igrt_io *io;
    size_t room;
    const igrt_memory arena = {s->config.arena, s->config.arena_bytes};
    if (p->output < 0) {
        const int memory = -1 - p->output, in_arena = !s->model->n_memories && !memory;
        if (!in_arena && memory >= s->model->n_memories)
            return NULL;
        const igrt_memory *block = in_arena ? &arena : &s->memory[memory];
        return p->bytes <= block->bytes && p->offset <= block->bytes - p->bytes
                   ? (char *)block->data + p->offset
                   : NULL;
    }
    if (p->output >= s->model->n_outputs)
        return NULL;
    io = &s->model->outputs[p->output];
    room = npy_count(io->max_dims, io->rank) * igrt_dtype_bytes(io->dtype);
    return p->offset == 0 && p->bytes <= room ? driver_pointer(s->outputs, io) : NULL;
}

void driver_trace_step(void *user, int step, const char *name, uint64_t nanoseconds)
{
    DriverSession *s = user;
    DriverTrace *t = &s->trace;
    (void)name, (void)nanoseconds;
    for (int i = 0; i < t->n && !t->failed; i++) {
        const TracePlace *p = &t->place[i];
        char *data = p->step == step ? place_data(s, p) : NULL;
        if (p->step != step)
            continue;
        t->failed = !data || fwrite(&i, sizeof i, 1, t->to) != 1 ||
                    fwrite(data, 1, p->bytes, t->to) != p->bytes || fflush(t->to) ||
                    (t->from && fread(data, 1, p->bytes, t->from) != p->bytes);
    }
}
