/* cli_compile.c - compile: a model becomes a folder of source. */
#include <string.h>

#include "cli.h"

static ingot_value *values(Arena *a, int n, const Value *v)
{
    ingot_value *out = NEWN(a, ingot_value, n + 1);
    for (int i = 0; i < n; i++) {
        out[i] = (ingot_value){.data = v[i].data, .rank = v[i].rank, .dtype = v[i].dtype};
        memcpy(out[i].dims, v[i].dims, sizeof out[i].dims);
    }
    return out;
}

/* --selftest DIR: the bundle holds the inputs and outputs that lie there. */
static ingot_status read_selftest(Options *o, const Model *m)
{
    Session s = {.o = o, .a = o->a};
    o->data = o->selftest;
    ingot_status status = session_read(&s, m, false);
    for (int i = 0; i < s.nout && status == INGOT_OK; i++)
        if (!s.want_file[i])
            status = complain(INGOT_IO, "%s: --selftest: there is no output_%d.pb or .npy",
                              o->selftest, i);
    if (status != INGOT_OK)
        return status;
    o->compile.selftest_in = values(o->a, s.nin, s.in);
    o->compile.selftest_out = values(o->a, s.nout, s.want);
    return INGOT_OK;
}

ingot_status command_compile(Options *o)
{
    if (!o->output)
        return complain(INGOT_USAGE, "ingot compile: -o DIR is missing");
    Model m;
    ingot_status status = model_open(&m, o, false);
    if (status == INGOT_OK && o->selftest)
        status = read_selftest(o, &m);
    if (status == INGOT_OK)
        status = model_build(&m, o, NULL, NULL);
    if (status == INGOT_OK)
        status = ingot_compile(m.c, &o->compile, o->output);
    model_close(&m);
    return status;
}
