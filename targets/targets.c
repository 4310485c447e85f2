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
    for (int i = 0; targets[i]; i++)
        if (strlen(targets[i]->name) == n && !memcmp(targets[i]->name, name, n))
            return targets[i];
    return NULL;
}
