/* audit.c - the order in which an audit goes: files, clang, loops and calls, report. */
#include "audit.h"

#ifdef INGOT_LIBCLANG

#include "libclang.h"

ingot_status audit_folder(Arena *arena, const AuditOptions *o, StrBuf *out, StrBuf *problem)
{
    const char *absent = libclang_load();
    if (absent) {
        sb_puts(problem, absent);
        return INGOT_UNSUPPORTED;
    }
    Audit a = {.a = arena, .o = o, .clang = clang_version(arena)};
    ingot_status status = files_read(&a, problem);
    if (status == INGOT_OK)
        status = triple_find(&a, problem);
    for (int i = 0; i < a.nfile && status == INGOT_OK; i++)
        if (a.file[i].unit && (a.hosted || a.file[i].part != PART_HOST) &&
            !unit_read(&a, i, problem))
            status = INGOT_TOOL;
    if (status == INGOT_OK) {
        calls_judge(&a);
        graph_judge(&a);
        findings_sort(&a);
        (o->json ? report_json : report_text)(&a, out);
        status = a.nfinding ? INGOT_DIFFERS : INGOT_OK;
    }
    map_free(&a.by_key);
    return status;
}

#else

ingot_status audit_folder(Arena *arena, const AuditOptions *o, StrBuf *out, StrBuf *problem)
{
    (void)arena, (void)o, (void)out;
    sb_puts(problem,
            "this ingot was built without libclang; install libclang-dev and build it again");
    return INGOT_UNSUPPORTED;
}

#endif
