/*
 * onnx_checkpoint.h - checkpoints of ONNX Runtime's on-device training: what parameters are, and
 * what the optimizer has kept of them.
 *
 * A FlatBuffer "ODTC" (ort_training_checkpoint.fbs, ort.fbs of ONNX Runtime 1.15 and later):
 *
 *     Checkpoint      0 version  1 module  2 [OptimizerGroup]  3 properties
 *     module          0 [Tensor] trained  1 [Tensor] frozen  2 nominal  3 has external data
 *     OptimizerGroup  0 name  1 i64 step  2 f32 rate  3 [of a parameter]
 *     of a parameter  0 its name  1 [Tensor] "momentum0", "momentum1"
 *     Tensor          0 name  2 [i64] dims  3 i32 type  4 [u8] data  6 i64 place in PATH.data
 */
#ifndef INGOT_ONNX_CHECKPOINT_H
#define INGOT_ONNX_CHECKPOINT_H

#include "importer.h"
#include "tflite.h"

typedef struct {
    const char *name; /* in the file */
    int32_t dtype;    /* TensorProto.DataType */
    int rank;
    int64_t dims[INGOT_MAX_RANK];
    Span data;    /* dense, little-endian, of any alignment */
    bool trained; /* a parameter with a gradient */
} CheckpointTensor;

typedef struct {
    const char *path;
    ImportSink sink;
    MapFile map;  /* of the file, */
    MapFile more; /* and of the one with its data, if it has one: both are others' */
    ingot_tflite_table root, module;
    bool external;
} Checkpoint;

/** Whether its data lie in a file of their own, PATH.data, which has to be in .more for the rest.
 * False after an error. */
bool checkpoint_open(Checkpoint *, const char *path, const MapFile *, const ImportSink *,
                     bool *external);
/** How many parameters there are, those with gradients first; number i. False after an error. */
size_t checkpoint_count(const Checkpoint *);
bool checkpoint_parameter(const Checkpoint *, size_t i, CheckpointTensor *);
/** Steps that the optimizer has done; -1: it has kept nothing. */
int64_t checkpoint_steps(const Checkpoint *);
/** What it has of a parameter. NULL name: nothing. False after an error. */
bool checkpoint_moment(const Checkpoint *, const char *parameter, int which, CheckpointTensor *);

#endif
