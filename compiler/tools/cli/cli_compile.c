/* cli_compile.c - compile: a model becomes a folder of source. */
#include <errno.h>
#include <string.h>

#include "cli.h"

static ingot_value *values(Arena *a, int n, const HostTensor *v)
{
    ingot_value *out = NEWN(a, ingot_value, n + 1);
    for (int i = 0; i < n; i++) {
        out[i] = (ingot_value){.data = v[i].data, .rank = v[i].rank, .dtype = v[i].dtype};
        memcpy(out[i].dims, v[i].dims, sizeof out[i].dims);
    }
    return out;
}

/* --selftest DIR: the bundle holds the inputs and outputs that lie there. */
static ingot_status read_selftest(Options *o, const LoadedModel *m)
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

/* A path as make reads it. */
static void make_word(StrBuf *sb, const char *path)
{
    for (const char *p = path; *p; p++) {
        if (strchr(" \t#\\", *p))
            sb_puts(sb, "\\");
        sb_puts(sb, *p == '$' ? "$" : "");
        sb_write(sb, p, 1);
    }
}

static void make_dependency(StrBuf *sb, const char *path)
{
    sb_puts(sb, " \\\n  ");
    make_word(sb, path);
}

/* --depfile: the manifest is older than what it was made from. */
static ingot_status write_depfile(const Options *o, const LoadedModel *m, OutFile *f)
{
    StrBuf sb = {0};
    make_word(&sb, o->output);
    sb_puts(&sb, sb.len && sb.data[sb.len - 1] == '/' ? "ingot.manifest:" : "/ingot.manifest:");
    const char *file;
    for (int i = 0; (file = ingot_model_file(m->file, i)); i++)
        make_dependency(&sb, file);
    for (int i = 0; i < o->nop; i++)
        make_dependency(&sb, o->op[i].file);
    if (o->compile.sched)
        make_dependency(&sb, o->compile.sched);
    sb_puts(&sb, "\n");
    const bool ok =
        output_begin(f, o->a, o->depfile) && (output_put(f, sb.data, sb.len), output_written(f));
    sb_free(&sb);
    return ok ? INGOT_OK : complain(INGOT_IO, "%s: %s", o->depfile, strerror(errno));
}

/* What the bundle takes on a microcontroller; --max-flash. */
static ingot_status tell_firmware(Options *o, const LoadedModel *m)
{
    TargetName *list;
    const char *target = o->compile.target ? o->compile.target : "c";
    const Target t =
        target_list(o->a, target, &list) > 1 ? (Target){0} : machine_target(o->a, target);
    if (!t.bare || !t.cc || m->c->nfunction)
        return !o->max_flash ? INGOT_OK
                             : complain(INGOT_USAGE,
                                        "ingot compile: --max-flash: '%s' is no target "
                                        "of a microcontroller",
                                        target);
    if (o->quiet && !o->max_flash)
        return INGOT_OK;
    const Firmware f = firmware_sizes(o, m, &t);
    if (!o->quiet)
        firmware_tell(o, &t, &f);
    if (!o->max_flash || f.flash <= o->max_flash)
        return INGOT_OK;
    return complain(INGOT_UNSUPPORTED, "%s: needs %s%lld bytes of flash, --max-flash allows %lld",
                    o->model, f.measured ? "" : "about ", (long long)f.flash,
                    (long long)o->max_flash);
}

ingot_status command_compile(Options *o)
{
    if (!o->output)
        return complain(INGOT_USAGE, "ingot compile: -o DIR is missing");
    LoadedModel m;
    ingot_status status = model_open(&m, o, false);
    if (status == INGOT_OK && o->selftest)
        status = read_selftest(o, &m);
    if (status == INGOT_OK)
        m.functions = true, status = model_build(&m, o, NULL, NULL);
    OutFile depfile;
    if (status == INGOT_OK && o->depfile)
        status = write_depfile(o, &m, &depfile);
    const bool depends = status == INGOT_OK && o->depfile;
    progress_begin("compile", 0);
    if (status == INGOT_OK)
        o->compile.summary = true, status = ingot_compile(m.c, &o->compile, o->output);
    progress_end();
    if (status == INGOT_OK)
        status = tell_firmware(o, &m);
    if (depends && status != INGOT_OK)
        output_drop(&depfile);
    else if (depends && !output_keep(&depfile))
        status = complain(INGOT_IO, "%s: %s", o->depfile, strerror(errno));
    model_close(&m);
    return status;
}
