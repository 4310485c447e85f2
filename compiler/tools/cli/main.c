/* main.c - the command line of ingot: where messages go, and the commands that are short. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "probe.h"
#include "targets.h"

/* ---- messages ---------------------------------------------------------------------------- */

/* ---- commands ---------------------------------------------------------------------------- */

ingot_status command_check(Options *o)
{
    LoadedModel m;
    ingot_status status = model_open(&m, o, false);
    bool whole = o->ndim || o->nbind || (m.file && !ingot_model_has_check(m.file));
    if (status == INGOT_OK && whole)
        status = model_build(&m, o, NULL, NULL);
    else if (status == INGOT_OK && !ingot_model_check(m.file))
        status = ingot_context_status(m.c);
    if (status == INGOT_OK)
        printf("%s: every %s is supported\n", o->model, whole ? "node" : "operator");
    model_close(&m);
    return status;
}

static ingot_status probe_compiler(Options *o)
{
    StrBuf out = {0}, problem = {0};
    ingot_status status = probe(o->a, o->probe, &out, &problem);
    if (status == INGOT_OK)
        fputs(out.data, stdout);
    else
        complain(status, "ingot: --probe: %s", problem.data);
    sb_free(&out);
    sb_free(&problem);
    return status;
}

static ingot_status print_machine(Options *o)
{
    StrBuf out = {0};
    ingot_status status = INGOT_OK;
    const char *why = target_print(&out, o->a, o->machine, &status);
    if (why && target_is_file(o->machine)) /* which the reason names */
        complain(status, "ingot: --machine %s", why);
    else if (why)
        complain(status, "ingot: --machine '%.80s': %s", o->machine, why);
    else
        fputs(out.data, stdout);
    sb_free(&out);
    return status;
}

ingot_status command_targets(Options *o)
{
    if (o->probe)
        return probe_compiler(o);
    if (o->machine)
        return print_machine(o);
    for (int i = 0; targets[i]; i++) {
        printf("%s", targets[i]->name);
        for (int k = 0; target_machine(targets[i], k); k++)
            printf(" %s:%s", targets[i]->name, target_machine(targets[i], k));
        printf("\n");
    }
    return INGOT_OK;
}

/* A line an operator, in the order of the importers' tables: format, name, since, inputs, types. */
ingot_status command_operators(Options *o)
{
    (void)o;
    for (int f = 0; importers[f]; f++) {
        ImportedOp op;
        for (int i = 0; importers[f]->op && importers[f]->op(i, &op); i++) {
            char name[128], inputs[32];
            snprintf(name, sizeof name, "%s%s%s", op.domain, *op.domain ? "." : "", op.name);
            if (op.most < 0)
                snprintf(inputs, sizeof inputs, "%d or more", op.least);
            else if (op.most > op.least)
                snprintf(inputs, sizeof inputs, "%d to %d", op.least, op.most);
            else
                snprintf(inputs, sizeof inputs, "%d", op.least);
            printf("%-15s  %-44s  version %-3d %-10s inputs  %s\n", importers[f]->name, name,
                   op.since, inputs, op.inputs);
        }
    }
    return INGOT_OK;
}

/* ---- the program ------------------------------------------------------------------------- */

static ingot_status unknown_command(const char *name)
{
    const char *near = NULL;
    int best = 3;
    for (const Command *c = cli_commands; c->name; c++)
        near = closer(name, c->name, near, &best);
    if (near)
        say("ingot: unknown command '%.200s'; did you mean `ingot %s`?", name, near);
    else
        say("ingot: unknown command '%.200s'", name);
    say("Try `ingot --help`.");
    return INGOT_USAGE;
}

/* ingot --help, ingot help COMMAND */
static ingot_status help(int argc, char **argv)
{
    const Command *c = argc > 2 && !strcmp(argv[1], "help") ? cli_command(argv[2]) : NULL;
    if (argc > 2 && !strcmp(argv[1], "help") && !c)
        return unknown_command(argv[2]);
    print_help(stdout, c);
    return INGOT_OK;
}

static ingot_status run(int argc, char **argv)
{
    if (argc < 2) {
        say("ingot: a command is missing");
        say("Try `ingot --help`.");
        return INGOT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
        return help(argc, argv);
    if (!strcmp(argv[1], "--version")) {
        printf("ingot %s\n", ingot_version());
        return INGOT_OK;
    }
    const Command *command = cli_command(argv[1]);
    if (!command)
        return unknown_command(argv[1]);
    Options o = {.command = command->name, .a = arena_new()};
    ingot_status status = INGOT_USAGE;
    if (options_parse(&o, argc, argv, command)) {
        status = INGOT_OK;
        progress_quiet(o.quiet);
        if (o.help)
            print_help(stdout, command);
        else
            status = command->run(&o);
    } else {
        say("Try `ingot %s --help`.", command->name);
    }
    arena_free(o.a);
    return status;
}

int main(int argc, char **argv)
{
    pending_signals(INGOT_IO);
    ingot_status status = run(argc, argv);
    const bool written = !fflush(stdout) && !ferror(stdout);
    if (!written && status == INGOT_OK)
        status = complain(INGOT_IO, "standard output cannot be written");
    return (int)status;
}
