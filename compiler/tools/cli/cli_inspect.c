/* cli_inspect.c - inspect: what a model becomes, as JSON, as text, for Graphviz or as a page. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "inspect.h"

static ingot_status file_fault(ingot_status status, const char *path, const char *why)
{
    return complain(status, "%s: %s", path, why);
}

/* --times: what `ingot bench --per-kernel --json` printed. */
ingot_status times_of_file(const Options *o, Inspection *x)
{
    const char *why = NULL, *text = read_text(o->a, o->times);
    if (!text)
        return file_fault(INGOT_IO, o->times, "it cannot be read");
    return times_read(&x->times, x->p, o->compile.target ? o->compile.target : "c", text, o->a,
                      &why)
               ? INGOT_OK
               : file_fault(INGOT_INVALID, o->times, why);
}

/* --diff: another model's, target's or plan's JSON. */
static ingot_status read_other(const Options *o, const char **text)
{
    const char *why = NULL;
    *text = read_text(o->a, o->diff);
    if (!*text)
        return file_fault(INGOT_IO, o->diff, "it cannot be read");
    const Json *told = json_read(o->a, *text, &why);
    if (!told)
        return file_fault(INGOT_INVALID, o->diff, why);
    if (strcmp(json_text(json_member(told, "format"), ""), "ingot inspect") != 0)
        return file_fault(INGOT_INVALID, o->diff, "this is not what `ingot inspect --json` prints");
    if (json_number(json_member(told, "version"), 0) != INSPECT_VERSION)
        return file_fault(INGOT_INVALID, o->diff, "it is of another version of ingot");
    return INGOT_OK;
}

/* Of a microcontroller: the bundle is written, and its program linked, as compile does it. */
static void firmware_make(const Options *o, const LoadedModel *m, Inspection *x)
{
    Options bundle = *o;
    char *work = x->t->bare && x->t->cc ? temporary_folder(o->a, "inspect") : NULL;
    if (!work)
        return;
    bundle.output = arena_printf(o->a, "%s/bundle", work);
    if (ingot_compile(m->c, &bundle.compile, bundle.output) == INGOT_OK) {
        const Firmware f = firmware_sizes(&bundle, m, x->t);
        x->takes = NEW(o->a, struct Takes);
        *x->takes = (struct Takes){f.measured ? x->t->cc : NULL, f.flash, f.fixed + f.io, f.stack};
    }
    remove_tree(work);
}

/* JSON on standard output, or a page in a file. */
static ingot_status tell(Options *o, const LoadedModel *m, Inspection *x)
{
    const char *other = NULL;
    const Plan *asked = x->p;
    ingot_status status = o->times ? times_of_file(o, x) : INGOT_OK;
    if (status == INGOT_OK && o->diff)
        status = read_other(o, &other);
    if (status == INGOT_OK && (o->output ? !o->no_assembly : o->assembly))
        assembly_make(o, x);
    if (status != INGOT_OK)
        return status;
    if (!o->dot)
        firmware_make(o, m, x);
    /* the page has all functions, beginning with the one that is asked for */
    const int n = o->output && x->nplan ? x->nplan : 1;
    StrBuf *json = NEWN(o->a, StrBuf, n), page = {0};
    if (o->dot)
        inspect_dot(&json[0], x);
    else
        inspect_json(&json[0], x);
    for (int i = 0, k = 1; k < n; i++)
        if (x->plans[i] != asked) {
            (void)inspection_select(m->c, x, m->c->functions[i].name);
            if (!o->no_assembly)
                assembly_make(o, x);
            inspect_json(&json[k++], x);
        }
    if (o->output) {
        report_page(&page, n, json, other);
        status = file_replace(o->a, o->output, page.data, page.len)
                     ? INGOT_OK
                     : file_fault(INGOT_IO, o->output, strerror(errno));
    } else {
        fputs(json[0].data, stdout);
    }
    sb_free(&page);
    for (int i = 0; i < n; i++)
        sb_free(&json[i]);
    return status;
}

static ingot_status check_flags(const Options *o)
{
    int ways = !!o->output + o->dot + !!o->dump + o->json;
    if (ways > 1)
        return complain(INGOT_USAGE,
                        "ingot inspect: one of -o, --json, --dot and --dump is wanted");
    if (!o->output && o->diff)
        return complain(INGOT_USAGE,
                        "ingot inspect: --diff: only with -o, which shows the two side by side");
    if ((o->dump || o->dot) && o->times)
        return complain(INGOT_USAGE, "ingot inspect: --times: only with -o or --json");
    return INGOT_OK;
}

ingot_status command_inspect(Options *o)
{
    LoadedModel m;
    Inspection x = {0};
    ingot_status status = check_flags(o);
    if (status != INGOT_OK)
        return status;
    status = model_open(&m, o, false);
    if (status == INGOT_OK)
        m.functions = !o->dump, status = model_build(&m, o, NULL, NULL);
    if (status == INGOT_OK && o->dump && o->function) {
        status = complain(INGOT_USAGE, "ingot inspect: --function: not with --dump");
    } else if (status == INGOT_OK && o->dump) {
        char *text = ingot_dump(m.c, &o->compile, o->dump);
        if (text)
            fputs(text, stdout);
        else
            status = ingot_context_status(m.c);
        free(text);
    } else if (status == INGOT_OK) {
        const bool made = inspection_make(m.c, &o->compile, &x) &&
                          (!o->function || inspection_select(m.c, &x, o->function));
        status = made ? tell(o, &m, &x) : ingot_context_status(m.c);
        inspection_free(&x);
    }
    model_close(&m);
    return status;
}
