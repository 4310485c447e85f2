/* targets.c - the list, and finding one by name. */
#include <dlfcn.h>
#include <string.h>

#include "targets.h"

#define TARGET(name) extern const Target target_##name;
#include "targets.def"

const Target *const targets[] = {
#define TARGET(name) &target_##name,
#include "targets.def"
    NULL};

static const Target *find_language(const char *name, size_t n)
{
    for (int i = 0; targets[i]; i++)
        if (strlen(targets[i]->name) == n && !memcmp(targets[i]->name, name, n))
            return targets[i];
    return NULL;
}

const Target *target_find(const char *name)
{
    return target_is_file(name) ? NULL : find_language(name, strcspn(name, ":"));
}

const char *target_machine(const Target *t, int i)
{
    return t->machine_name ? t->machine_name(i) : NULL;
}

static const char *unknown(Arena *a, const char *name)
{
    const char *near = NULL;
    int best = 3;
    for (int i = 0; targets[i]; i++) {
        near = closer(name, targets[i]->name, near, &best);
        for (int k = 0; target_machine(targets[i], k); k++)
            near = closer(name,
                          arena_printf(a, "%s:%s", targets[i]->name, target_machine(targets[i], k)),
                          near, &best);
    }
    return near ? arena_printf(a, "unknown; did you mean %s? `ingot targets` lists them", near)
                : "unknown; `ingot targets` lists them";
}

const char *target_everywhere(Arena *a, const char *name)
{
    const char *here = !strcmp(name, "c:native")      ? native_name(a)
                       : !strcmp(name, "cuda:native") ? gpu_native_name(a)
                                                      : NULL;
    return here ? arena_printf(a, "%.*s:%s", (int)strcspn(name, ":"), name, here) : name;
}

const char *target_make(Target *t, Arena *a, const char *name, ingot_status *status)
{
    const Target *known = target_find(name);
    const char *machine = strchr(name, ':');
    if (known)
        *t = *known;
    *status = INGOT_USAGE;
    TargetName *list;
    const int n = target_list(a, name, &list);
    if (n > 1)
        return arena_printf(
            a, "compile, run and bench take several targets; here give one of them: %s",
            target_list_text(a, n, list));
    if (target_is_file(name))
        return target_read(t, a, name, status);
    if (!known || (machine && !t->gpu && !target_tune(t, machine + 1)))
        return unknown(a, name);
    const char *why = machine && t->tune ? t->tune(t, a, machine + 1, status) : NULL;
    if (!why)
        *status = INGOT_OK;
    return why;
}

bool library_find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}
