/* cli_audit.c - audit: reads an emitted folder and tells what breaks the rules (docs/audit.md). */
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "audit.h"
#include "cli.h"

/* That of this machine: the processor's name as clang has it, and Linux. */
static const char *native_triple(Arena *a)
{
    struct utsname u;
    return uname(&u) == 0 ? arena_printf(a, "%s-linux-gnu", u.machine) : "x86_64-linux-gnu";
}

ingot_status command_audit(Options *o)
{
    size_t n = strlen(o->model);
    while (n > 1 && o->model[n - 1] == '/')
        n--;
    AuditOptions options = {.dir = arena_printf(o->a, "%.*s", (int)n, o->model),
                            .triple = o->triple ? o->triple : native_triple(o->a),
                            .headers = o->headers,
                            .json = o->json};
    StrBuf out = {0}, problem = {0};
    ingot_status status = audit_folder(o->a, &options, &out, &problem);
    if (out.data)
        fputs(out.data, stdout);
    if (problem.data)
        complain(status, "%s: %s", options.dir, problem.data);
    sb_free(&out);
    sb_free(&problem);
    return status;
}
