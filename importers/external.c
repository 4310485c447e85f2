/*
 * external.c - files that a model names: its weights may lie in others beside it. Each is mapped
 * once, and none that is outside the model's folder.
 */
#include <stdlib.h>
#include <string.h>

#include "importer.h"

struct ExternalFile {
    ExternalFile *next;
    const char *location; /* the end of path */
    MapFile map;
    char path[];
};

const MapFile *external_map(ExternalFile **all, const char *model, const char *location,
                            const char **why)
{
    for (ExternalFile *e = *all; e; e = e->next)
        if (!strcmp(e->location, location))
            return &e->map;
    const char *slash = strrchr(model, '/');
    const size_t dir = slash ? (size_t)(slash - model) : 0, n = strlen(location) + 1;
    const size_t name = slash ? dir + 1 : 0;
    ExternalFile *e = calloc(1, sizeof *e + name + n + 1);
    *why = "out of memory";
    if (!e)
        return NULL;
    memcpy(e->path, slash ? model : ".", slash && dir ? dir : 1);
    *why = mapfile_open_within(&e->map, e->path, location);
    if (*why) {
        free(e);
        return NULL;
    }
    memcpy(e->path, model, name);
    e->location = memcpy(e->path + name, location, n);
    e->next = *all;
    *all = e;
    return &e->map;
}

const char *external_path(const ExternalFile *all, int i)
{
    while (all && i-- > 0)
        all = all->next;
    return all ? all->path : NULL;
}

void external_close(ExternalFile **all)
{
    while (*all) {
        ExternalFile *e = *all;
        *all = e->next;
        mapfile_close(&e->map);
        free(e);
    }
}
