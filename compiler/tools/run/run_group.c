/* run_group.c - sequences and optionals in files: .pb (a serialized SequenceProto or
 * OptionalProto), or as the driver of bundles has them: a folder of .npy files, and no file for
 * what is absent. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"

bool value_is_group(const HostTensor *v)
{
    return v->sequence || v->absent;
}

static void tell(void *status, const char *message)
{
    *(ingot_status *)status = complain(INGOT_INVALID, "%s", message);
}

static bool wrong(const char *path, const char *what, ingot_status *status)
{
    *status = complain(INGOT_INVALID, "%s: %s", path, what);
    return false;
}

/* ---- reading ----------------------------------------------------------------------------- */

static bool pb_sequence(Arena *a, OnnxFile *f, const Onnx__SequenceProto *s, const char *path,
                        HostTensor *v, ingot_status *status)
{
    *v = (HostTensor){.sequence = true, .nitem = s ? (int)s->n_tensor_values : 0};
    v->item = NEWN(a, HostTensor, v->nitem + 1);
    if (s && (s->n_sequence_values || s->n_optional_values || s->n_map_values ||
              s->n_sparse_tensor_values))
        return wrong(path, "a sequence of something else than tensors, which is not supported",
                     status);
    for (int i = 0; i < v->nitem; i++)
        if (!value_decode(a, f, s->tensor_values[i], path, &v->item[i], status))
            return false;
    return true;
}

static bool pb_group(Arena *a, const char *path, const ingot_onnx_io *io, HostTensor *v,
                     ingot_status *status)
{
    ImportSink sink = {tell, status};
    bool optional = io->kind == INGOT_ONNX_OPTIONAL, ok = true;
    OnnxFile *f = onnx_file_load_value(path, optional ? ONNX_OPTIONAL : ONNX_SEQUENCE, &sink);
    if (!f)
        return false;
    const Onnx__OptionalProto *o = f->optional;
    if (!optional)
        ok = pb_sequence(a, f, f->sequence, path, v, status);
    else if (io->sequence && o->sequence_value)
        ok = pb_sequence(a, f, o->sequence_value, path, v, status);
    else if (!io->sequence && o->tensor_value)
        ok = value_decode(a, f, o->tensor_value, path, v, status);
    else
        *v = (HostTensor){.absent = true, .sequence = io->sequence, .dtype = io->dtype};
    onnx_file_close(f);
    return ok;
}

bool group_read(Arena *a, const char *stem, const ingot_onnx_io *io, HostTensor *v, bool *npy,
                ingot_status *status)
{
    const char *pb = arena_printf(a, "%s.pb", stem), *file = arena_printf(a, "%s.npy", stem);
    *v = (HostTensor){.sequence = io->sequence, .dtype = io->dtype};
    *npy = access(pb, F_OK) != 0;
    if (!*npy)
        return pb_group(a, pb, io, v, status);
    if (access(io->sequence ? stem : file, F_OK)) {
        v->absent = true;
        return io->kind == INGOT_ONNX_OPTIONAL ||
               wrong(stem, "there is no such folder, and no .pb file", status);
    }
    if (!io->sequence)
        return value_read(a, file, v, status);
    for (;;) {
        HostTensor one;
        const char *path = arena_printf(a, "%s/%d.npy", stem, v->nitem);
        if (access(path, F_OK))
            return true;
        if (!value_read(a, path, &one, status))
            return false;
        vec_push(a, v->item, v->nitem, one);
    }
}

/* ---- writing ----------------------------------------------------------------------------- */

bool group_write_npy(Arena *a, const char *stem, const HostTensor *v, ingot_status *status)
{
    if (v->absent)
        return true;
    if (!v->sequence)
        return value_write(a, arena_printf(a, "%s.npy", stem), "", v, status);
    if (!make_dirs(stem)) {
        *status = complain(INGOT_IO, "%s: %s", part_shown(a, stem), strerror(errno));
        return false;
    }
    for (int i = 0; i < v->nitem; i++)
        if (!value_write(a, arena_printf(a, "%s/%d.npy", stem, i), "", &v->item[i], status))
            return false;
    return true;
}

/* A field of a message: its tag, length and bytes. */
static void put_field(StrBuf *sb, int number, const void *bytes, size_t n)
{
    char c = (char)(number << 3 | 2);
    sb_write(sb, &c, 1);
    size_t left = n;
    do {
        c = (char)((left & 127) | (left > 127 ? 128 : 0));
        sb_write(sb, &c, 1);
        left >>= 7;
    } while (left);
    if (n)
        sb_write(sb, bytes, n);
}

static void put_kind(StrBuf *sb, const char *name, int kind)
{
    char field[2] = {2 << 3, (char)kind};
    put_field(sb, 1, name, strlen(name));
    sb_write(sb, field, 2);
}

/* The tensor as a serialized TensorProto in field 3, by way of a file. */
static bool put_tensor(Arena *a, StrBuf *sb, const char *path, const HostTensor *v,
                       ingot_status *status)
{
    const char *part = arena_printf(a, "%s.part.pb", path);
    MapFile map;
    if (!value_write(a, part, "", v, status))
        return false;
    const char *why = mapfile_open(&map, part);
    if (why) {
        *status = complain(INGOT_IO, "%s: %s", part, why);
        return false;
    }
    put_field(sb, 3, map.data, map.len);
    mapfile_close(&map);
    unlink(part);
    return true;
}

enum { KIND_NOTHING = 0, KIND_TENSOR = 1, KIND_SEQUENCE = 3 };

bool group_write_pb(Arena *a, const char *path, const char *name, bool optional,
                    const HostTensor *v, ingot_status *status)
{
    StrBuf sb = {0}, inner = {0};
    bool ok = true;
    if (v->absent) {
        put_kind(&sb, name, KIND_NOTHING);
    } else if (!v->sequence) {
        put_kind(&sb, name, KIND_TENSOR);
        ok = put_tensor(a, &sb, path, v, status);
    } else {
        StrBuf *s = optional ? &inner : &sb;
        put_kind(s, name, KIND_TENSOR);
        for (int i = 0; i < v->nitem && ok; i++)
            ok = put_tensor(a, s, path, &v->item[i], status);
        if (optional) {
            put_kind(&sb, name, KIND_SEQUENCE);
            put_field(&sb, 5, inner.data, inner.len);
        }
    }
    if (ok && !file_write(path, sb.data, sb.len)) {
        *status = complain(INGOT_IO, "%s: %s", part_shown(a, path), strerror(errno));
        ok = false;
    }
    sb_free(&sb);
    sb_free(&inner);
    return ok;
}
