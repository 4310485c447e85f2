/*
 * onnx_checkpoint.c - reads checkpoints of ONNX Runtime's training; onnx_checkpoint.h has their
 * form. Every offset and length is checked (tflite.h has what reads a FlatBuffer).
 */
#include "onnx_checkpoint.h"

#include <string.h>

#include "onnx_read.h"

enum { MODULE = 1, GROUPS, TRAINED = 0, FROZEN, NOMINAL, EXTERNAL };
enum { GROUP_STEP = 1, GROUP_STATES = 3, STATE_NAME = 0, STATE_MOMENTS };
enum { TENSOR_NAME, TENSOR_DIMS = 2, TENSOR_TYPE, TENSOR_DATA, TENSOR_PLACE = 6 };

static bool broken(const Checkpoint *c, const char *what, const char *why)
{
    import_error(&c->sink, "%s: %s%s", c->path, what, why);
    return false;
}

bool checkpoint_open(Checkpoint *c, const char *path, const MapFile *map, const ImportSink *sink,
                     bool *external)
{
    *c = (Checkpoint){.path = path, .sink = *sink, .map = *map};
    if (!ingot_tflite_root_of(map->data, map->len, "ODTC", &c->root) ||
        !ingot_tflite_inner(&c->root, MODULE, &c->module))
        return broken(c, "no checkpoint of ONNX Runtime's training, or one that is broken", "");
    if (!c->module.file)
        return broken(c, "a checkpoint without parameters", "");
    if (ingot_tflite_int(&c->module, NOMINAL, 1, 0))
        return broken(c,
                      "a nominal checkpoint, which has names of parameters and no values: the "
                      "whole one is wanted",
                      "");
    *external = c->external = ingot_tflite_int(&c->module, EXTERNAL, 1, 0);
    return true;
}

static size_t count_in(const Checkpoint *c, unsigned field)
{
    return ingot_tflite_elements(&c->module, field, 4).n;
}

size_t checkpoint_count(const Checkpoint *c)
{
    return count_in(c, TRAINED) + count_in(c, FROZEN);
}

/* `needed` bytes, in the table or in the file of data. */
static bool data_of(const Checkpoint *c, const ingot_tflite_table *t, uint64_t needed, Span *data)
{
    const ingot_tflite_list own = ingot_tflite_elements(t, TENSOR_DATA, 1);
    const int64_t place = ingot_tflite_int(t, TENSOR_PLACE, 8, -1);
    static const uint8_t nothing[1];
    *data = (Span){needed ? own.at : nothing, (size_t)needed};
    if (place < 0 || !c->external)
        return own.n == needed;
    if ((uint64_t)place > c->more.len || needed > c->more.len - (uint64_t)place)
        return false;
    data->data = c->more.data + place;
    return true;
}

static bool read_tensor(const Checkpoint *c, const ingot_tflite_table *t, CheckpointTensor *to)
{
    const ingot_tflite_list dims = ingot_tflite_elements(t, TENSOR_DIMS, 8);
    const char *name = ingot_tflite_text(t, TENSOR_NAME);
    *to = (CheckpointTensor){.name = name, .rank = (int)dims.n};
    to->dtype = (int32_t)ingot_tflite_int(t, TENSOR_TYPE, 4, 0);
    const unsigned bits = onnx_dtype_bits(to->dtype);
    uint64_t bytes = bits / 8;
    if (!*name || dims.n > INGOT_MAX_RANK || !bits || bits % 8)
        return broken(c, *name ? name : "a tensor",
                      ": it has no name, a rank that is too high, or a type that is not known");
    for (int a = 0; a < to->rank; a++) {
        to->dims[a] = ingot_tflite_i64(&dims, (size_t)a);
        if (to->dims[a] < 0 || (to->dims[a] && bytes > (uint64_t)INT64_MAX / (uint64_t)to->dims[a]))
            return broken(c, name, ": its dims cannot be");
        bytes *= (uint64_t)to->dims[a];
    }
    return data_of(c, t, bytes, &to->data) ||
           broken(c, name, ": its data are not those of its type and dims");
}

bool checkpoint_parameter(const Checkpoint *c, size_t i, CheckpointTensor *to)
{
    const size_t trained = count_in(c, TRAINED);
    const bool first = i < trained;
    ingot_tflite_table t;
    if (!ingot_tflite_entry(&c->module, first ? TRAINED : FROZEN, first ? i : i - trained, &t))
        return broken(c, "a parameter is no part of the file", "");
    if (!read_tensor(c, &t, to))
        return false;
    to->trained = first;
    return true;
}

/* The first group, of all parameters: ONNX Runtime knows no others. */
static bool group_of(const Checkpoint *c, ingot_tflite_table *group)
{
    return ingot_tflite_entry(&c->root, GROUPS, 0, group);
}

int64_t checkpoint_steps(const Checkpoint *c)
{
    ingot_tflite_table group;
    return group_of(c, &group) ? ingot_tflite_int(&group, GROUP_STEP, 8, 0) : -1;
}

bool checkpoint_moment(const Checkpoint *c, const char *parameter, int which, CheckpointTensor *to)
{
    const char name[] = {'m', 'o', 'm', 'e', 'n', 't', 'u', 'm', (char)('0' + which), 0};
    ingot_tflite_table group, state, t;
    *to = (CheckpointTensor){0};
    if (!group_of(c, &group))
        return true;
    for (size_t i = 0; ingot_tflite_entry(&group, GROUP_STATES, i, &state); i++) {
        if (strcmp(ingot_tflite_text(&state, STATE_NAME), parameter) != 0)
            continue;
        for (size_t k = 0; ingot_tflite_entry(&state, STATE_MOMENTS, k, &t); k++)
            if (!strcmp(ingot_tflite_text(&t, TENSOR_NAME), name))
                return read_tensor(c, &t, to);
    }
    return true;
}
