/* run_chat.c - chat: a language model is compiled into the cache and talks, as its bundle's program
 * does (runtime_min/host/driver_chat.c). */
#include <unistd.h>

#include "run.h"

/* By number of Options.chat: what the program calls it. */
static const char *const chat_names[CHAT_OPTIONS] = {
    "--prompt", "--system", "--tokens",         "--temperature", "--top-k",
    "--top-p",  "--min-p",  "--repeat-penalty", "--seed"};

/* No inputs: sizes are the importer's, or --dim's. */
ingot_status session_talks(Session *s, LoadedModel *m)
{
    s->bound = NEWN(s->a, bool, 1);
    return session_find_entry(s, m);
}

ingot_status command_chat(Options *o)
{
    Session s = {.o = o, .a = o->a};
    LoadedModel m;
    const char *argv[8 + 2 * CHAT_OPTIONS] = {NULL};
    int n = 0;
    if (!o->compile.target)
        o->compile.target = "c:native";
    ingot_status status = model_open(&m, o, false);
    if (status == INGOT_OK && !ingot_model_has_text(m.file))
        status = complain(INGOT_UNSUPPORTED,
                          "%s: it is no language model with a vocabulary that "
                          "is known, so there is no chat",
                          o->model);
    if (status == INGOT_OK)
        status = session_talks(&s, &m);
    model_close(&m);
    if (status != INGOT_OK)
        return status;
    argv[n++] = arena_printf(o->a, "%s/model", s.entry);
    argv[n++] = "-t";
    argv[n++] = arena_printf(o->a, "%d", o->threads);
    argv[n++] = "--chat";
    for (int i = 0; i < CHAT_OPTIONS; i++)
        if (o->chat[i]) {
            argv[n++] = chat_names[i];
            argv[n++] = o->chat[i];
        }
    if (o->chat_ids)
        argv[n++] = "--ids";
    fflush(stdout);
    const int code = process_run(argv);
    return code == 0 ? INGOT_OK : code < 0 ? INGOT_TOOL : driver_failed(&s, code);
}
