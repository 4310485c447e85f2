/* cli_explain.c - explain: where a node of the file went, what it costs, why it was stored or
 * not. */
#include "cli.h"
#include "inspect.h"

static ingot_status print_explanation(Options *o, const Inspection *x)
{
    StrBuf text = {0}, near = {0};
    ingot_status status = INGOT_OK;
    int verbose = o->explain_verbose;
    if (explain(&text, x, o->node, verbose, &near))
        fputs(text.data, stdout);
    else
        status = complain(INGOT_USAGE, "%s: no node, kernel or tensor is called '%.200s'; %s",
                          o->model, o->node, near.data);
    sb_free(&text);
    sb_free(&near);
    return status;
}

ingot_status command_explain(Options *o)
{
    LoadedModel m;
    Inspection x = {0};
    if (o->node && !*o->node)
        return complain(INGOT_USAGE, "ingot explain: the name of a node is empty");
    o->explain_verbose = o->compile.verbose; /* of the node, not of the whole plan */
    o->compile.verbose = 0;
    ingot_status status = model_open(&m, o, false);
    if (status == INGOT_OK)
        m.functions = true, status = model_build(&m, o, NULL, NULL);
    if (status == INGOT_OK)
        status = inspection_make(m.c, &o->compile, &x) &&
                         (!o->function || inspection_select(m.c, &x, o->function))
                     ? INGOT_OK
                     : ingot_context_status(m.c);
    if (status == INGOT_OK && o->times)
        status = times_of_file(o, &x);
    if (status == INGOT_OK)
        status = print_explanation(o, &x);
    inspection_free(&x);
    model_close(&m);
    return status;
}
