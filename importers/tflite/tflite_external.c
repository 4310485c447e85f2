/*
 * tflite_external.c - weights in files beside the model.
 *
 *     tensor: id  ->  external buffer of that id: group, offset, bytes  ->  group: name of a file
 *
 * The file is looked for in the folder of the model, and nowhere else.
 */
#include <string.h>

#include "tflite_model.h"

/* Fields of the schema: of the model, of a group, of an external buffer. */
enum { MODEL_GROUPS = 8, MODEL_BUFFERS = 9 };
enum { GROUP_NAME = 0 };
enum { BUFFER_ID = 0, BUFFER_GROUP, BUFFER_OFFSET, BUFFER_LENGTH, BUFFER_PACKING };

static uint32_t unsigned_of(const ingot_tflite_table *t, unsigned field)
{
    return (uint32_t)ingot_tflite_int(t, field, 4, 0);
}

static bool find_buffer(const ingot_tflite_table *root, uint32_t id, ingot_tflite_table *buffer)
{
    for (size_t i = 0; ingot_tflite_entry(root, MODEL_BUFFERS, i, buffer); i++)
        if (unsigned_of(buffer, BUFFER_ID) == id)
            return true;
    return false;
}

bool tflite_external(TfliteModel *m, const ingot_tflite_tensor *t, ingot_tflite_tensor *is)
{
    const ingot_tflite_table *root = ingot_tflite_root(m->file);
    ingot_tflite_table buffer, group;
    unsigned bits;
    uint64_t needed = 1;
    const char *why = NULL;
    is->data = NULL;
    ingot_tflite_type_name((int)t->type, &bits);
    for (size_t i = 0; i < t->shape.n; i++) /* their product is checked by the reader */
        needed *= (uint64_t)ingot_tflite_i32(&t->shape, i);
    needed = (needed * bits + 7) / 8;
    if (!find_buffer(root, t->external, &buffer) ||
        !ingot_tflite_entry(root, MODEL_GROUPS, unsigned_of(&buffer, BUFFER_GROUP), &group)) {
        ingot_error(m->c, INGOT_INVALID,
                    "tensor '%.100s': its external buffer %u, or the group of that, is not there",
                    t->name, t->external);
        return false;
    }
    const char *name = ingot_tflite_text(&group, GROUP_NAME),
               *packing = ingot_tflite_text(&buffer, BUFFER_PACKING);
    const uint64_t offset = (uint64_t)ingot_tflite_int(&buffer, BUFFER_OFFSET, 8, 0),
                   length = (uint64_t)ingot_tflite_int(&buffer, BUFFER_LENGTH, 8, 0);
    if (packing[0] && strcmp(packing, "unpacked") != 0) {
        ingot_error(m->c, INGOT_UNSUPPORTED,
                    "tensor '%.100s': its external buffer is packed as '%.40s', which is not "
                    "supported",
                    t->name, packing);
        return false;
    }
    const MapFile *map = external_map(&m->external, m->path, name, &why);
    if (!map)
        ingot_error(m->c, INGOT_INVALID, "tensor '%.100s': external file '%.100s': %s", t->name,
                    name, why);
    else if (!bits || length < needed || offset > map->len || length > map->len - offset)
        ingot_error(m->c, INGOT_INVALID,
                    "tensor '%.100s': external file '%.100s': %llu bytes at %llu of its %zu are "
                    "not the %llu of the tensor",
                    t->name, name, (unsigned long long)length, (unsigned long long)offset, map->len,
                    (unsigned long long)needed);
    else
        *is = *t, is->data = map->data + offset, is->bytes = (size_t)needed;
    return is->data != NULL;
}

bool tflite_mentions(const MapFile *map, const char *dir, const char *own,
                     void (*each)(void *user, Span location), void *user)
{
    (void)dir;
    (void)own;
    ingot_tflite *f = ingot_tflite_open_memory("", map->data, map->len, NULL, 0);
    ingot_tflite_table group;
    size_t n = 0;
    for (; f && ingot_tflite_entry(ingot_tflite_root(f), MODEL_GROUPS, n, &group); n++) {
        const char *name = ingot_tflite_text(&group, GROUP_NAME);
        each(user, (Span){(const uint8_t *)name, strlen(name)});
    }
    ingot_tflite_close(f);
    return n > 0;
}
