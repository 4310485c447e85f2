/*
 * driver_options.c - the driver's command line.
 */
#include "driver_session.h"

#include <stdlib.h>
#include <string.h>

static void print_argument(FILE *f, const char *what, int number, const Argument *a)
{
    char text[256];
    const igrt_group *g = a->group;
    const int optional = g ? g->present_offset != IGRT_NO_DIMS : a->io->optional;
    fprintf(f, "%s %d: %s", what, number, g ? g->name : a->io->name);
    if (g && g->length_offset != IGRT_NO_DIMS)
        fprintf(f, " sequence of at most %d", a->n);
    for (int k = 0; k < a->n; k++)
        fprintf(f, "%s%s", k ? ", " : " ", npy_describe(&a->io[k], text, sizeof text));
    fprintf(f, "%s\n", optional ? " (optional)" : "");
}

static void print_function(FILE *f, const igrt_model *m, const igrt_function *g)
{
    const igrt_model it = driver_function(m, g);
    Cursor in = {0, 0}, out = {0, 0};
    Argument a;
    fprintf(f, "function %s:\n", g->name);
    for (int i = 0; driver_next_input(&it, &in, &a); i++)
        print_argument(f, "  input ", i, &a);
    for (int i = 0; driver_next_output(&it, &out, &a); i++)
        print_argument(f, "  output", i, &a);
}

void driver_help(FILE *f, const igrt_model *m, const char *argv0)
{
    fprintf(
        f,
        "usage: %s IN OUT              read IN/input_N.npy, write OUT/output_N.npy\n"
        "       %s --bench SECONDS IN  time it; prints one line of JSON\n"
        "       %s --profile IN        time every step\n"
        "       %s --timeline FILE IN  write when each step and each thread's part of it ran, "
        "as Chrome's trace\n"
        "       %s --selftest          run the golden vectors inside\n"
        "options: -t N       number of threads\n"
        "         --no-checksum  do not check the weights\n"
        "         --seed N   of random numbers; 0 if not given\n"
        "         --gpu N    which one, from 0; or how its UUID begins\n"
        "         --target T  of a bundle for several targets: \"c\", \"cuda\", \"x86-64-v3\" .., "
        "whatever there is\n"
        "                    ($INGOT_TARGET, if not given)\n"
        "         --on-device  of --bench: inputs and outputs lie on the GPU, and it never waits "
        "for the host\n"
        "         --function NAME  of several functions that one, not run; what has no file is "
        "zeros "
        "when it is timed\n"
        "         --poison   fill the arena with 0xff first (to find reads of unset memory)\n"
        "         --trace PLACES FILE  after each step write what it wrote to FILE\n"
        "         --follow FILE        and then take it from FILE\n",
        argv0, argv0, argv0, argv0, argv0);
    if (m->text && igrt_driver_chat)
        fprintf(f,
                "         --chat ..  talk: the last option; --chat --help tells what may follow\n");
    Cursor in = {0, 0}, out = {0, 0};
    Argument a;
    for (int i = 0; driver_next_input(m, &in, &a); i++)
        print_argument(f, "input ", i, &a);
    for (int i = 0; driver_next_output(m, &out, &a); i++)
        print_argument(f, "output", i, &a);
    for (int i = 0; i < m->n_functions; i++)
        print_function(f, m, &m->functions[i]);
    fprintf(f, "exit status: 0 ok, 1 usage, 2 input, 3 weights, 4 model, 5 output, 6 selftest, "
               "7 memory, 8 no selftest, 9 no such device\n");
}

static int usage_error(const char *argv0, const char *why, const char *what)
{
    return driver_fail(IGRT_EXIT_USAGE, "%s%s (%s --help tells more)", why, what, argv0);
}

int driver_options(int argc, char **argv, const igrt_model *model, DriverOptions *o)
{
    const char *place[2] = {NULL, NULL};
    int n = 0;
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        char *end = argv[i];
        if (!strcmp(a, "-t") || !strcmp(a, "--threads")) {
            const long threads = i + 1 < argc ? strtol(argv[i + 1], &end, 10) : 0;
            if (threads < 1 || threads > IGRT_POOL_MAX || *end)
                return usage_error(argv[0], "-t needs a number from 1 to 64", "");
            o->threads = (int)threads;
            i++;
        } else if (!strcmp(a, "--bench")) {
            o->mode = MODE_BENCH;
            o->seconds = i + 1 < argc ? strtod(argv[i + 1], &end) : -1;
            if (!(o->seconds >= 0 && o->seconds <= 1e6) || *end || end == argv[i + 1])
                return usage_error(argv[0], "--bench needs a number of seconds", "");
            i++;
        } else if (!strcmp(a, "--profile")) {
            o->mode = MODE_PROFILE;
        } else if (!strcmp(a, "--selftest")) {
            o->mode = MODE_SELFTEST;
        } else if (!strcmp(a, "--no-checksum")) {
            o->flags |= IGRT_SKIP_CHECKSUM;
        } else if (!strcmp(a, "--on-device")) {
            o->flags |= IGRT_ON_DEVICE;
        } else if (!strcmp(a, "--trace") && i + 2 < argc) {
            o->places = argv[++i];
            o->trace = argv[++i];
        } else if (!strcmp(a, "--timeline") && i + 1 < argc) {
            o->timeline = argv[++i];
        } else if (!strcmp(a, "--follow") && i + 1 < argc) {
            o->follow = argv[++i];
        } else if (!strcmp(a, "--gpu") && i + 1 < argc) {
            o->gpu = argv[++i];
        } else if (!strcmp(a, "--target") && i + 1 < argc) {
            o->target = argv[++i];
        } else if (!strcmp(a, "--function") && i + 1 < argc) {
            o->function = argv[++i];
        } else if (!strcmp(a, "--seed")) {
            o->seed = i + 1 < argc ? strtoull(argv[i + 1], &end, 0) : 0;
            if (*end || end == argv[i])
                return usage_error(argv[0], "--seed needs a number", "");
            i++;
        } else if (!strcmp(a, "--chat") && model->text && igrt_driver_chat) {
            o->mode = MODE_CHAT;
            o->chat_argc = argc - i - 1; /* the rest is the chat's */
            o->chat_argv = argv + i + 1;
            break;
        } else if (!strcmp(a, "--poison")) {
            o->poison = 1;
        } else if (a[0] == '-' && a[1]) {
            return usage_error(argv[0], "unknown option ", a);
        } else if (n < 2) {
            place[n++] = a;
        } else {
            return usage_error(argv[0], "too many arguments: ", a);
        }
    }
    if ((o->flags & IGRT_ON_DEVICE) && (o->mode != MODE_BENCH || !model->memory))
        return usage_error(argv[0], "--on-device is for --bench of a model on a GPU", "");
    if (o->target && !model->target)
        return usage_error(argv[0], "--target is for a bundle of several targets", "");
    if (!o->target && model->target)
        o->target = getenv("INGOT_TARGET");
    const int none = o->mode == MODE_SELFTEST || o->mode == MODE_CHAT;
    const int wanted = o->timeline ? 1 : o->mode == MODE_RUN ? 2 : none ? 0 : 1;
    if (n != wanted)
        return usage_error(argv[0], "wrong number of folders", "");
    o->in = place[0];
    o->out = place[1];
    return IGRT_EXIT_OK;
}
