/* targets.c - the list, and finding one by name. */
#include <string.h>

#include "targets.h"

#define TARGET(name) extern const Target target_##name;
#include "targets.def"

const Target *const targets[] = {
#define TARGET(name) &target_##name,
#include "targets.def"
    NULL};

const Target *target_find(const char *name)
{
    size_t n = strcspn(name, ":");
    if (target_is_file(name))
        return target_find("c");
    for (int i = 0; targets[i]; i++)
        if (strlen(targets[i]->name) == n && !memcmp(targets[i]->name, name, n))
            return targets[i];
    return NULL;
}

static const char *unknown(Arena *a, const char *name)
{
    const char *near = NULL;
    int best = 3;
    for (int i = 0; targets[i]; i++) {
        near = closer(name, targets[i]->name, near, &best);
        for (int k = 0; !targets[i]->gpu && machine_name(k); k++)
            near = closer(name, arena_printf(a, "%s:%s", targets[i]->name, machine_name(k)), near,
                          &best);
    }
    return near ? arena_printf(a, "unknown; did you mean %s? `ingot targets` lists them", near)
                : "unknown; `ingot targets` lists them";
}

const char *target_make(Target *t, Arena *a, const char *name, ingot_status *status)
{
    const Target *known = target_find(name);
    const char *machine = strchr(name, ':');
    if (known)
        *t = *known;
    *status = INGOT_USAGE;
    if (target_is_file(name))
        return target_read(t, a, name, status);
    if (!known || (machine && !t->gpu && !target_tune(t, machine + 1)))
        return unknown(a, name);
    if (t->gpu && machine)
        t->units = gpu_units(machine + 1);
    if (t->compile && machine)
        t->shared = gpu_shared_most(machine + 1);
    *status = INGOT_OK;
    return NULL;
}
