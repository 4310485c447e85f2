/*
 * fuzz_onnx_file.c - libFuzzer target: any bytes as an ONNX model and as test data.
 *
 * Loads, then decodes every tensor within reach (initializers, attributes, subgraphs, sparse
 * tensors, functions), and touches each decoded byte so that the sanitizers see it. External data
 * is looked for in a folder that does not exist.
 */
#include "onnx_read.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned touched;

static void tensor(OnnxFile *file, const Onnx__TensorProto *proto)
{
    OnnxTensor t;
    if (!onnx_tensor_read(file, proto, "tensor", &t))
        return;
    for (size_t i = 0; i < t.data.len; i++)
        touched += t.data.data[i];
    for (uint64_t i = 0; t.strings && i < t.count; i++)
        for (size_t k = 0; k < t.strings[i].len; k++)
            touched += t.strings[i].data[k];
}

static void sparse(OnnxFile *file, const Onnx__SparseTensorProto *proto)
{
    OnnxTensor t;
    uint64_t count = 1;
    for (size_t i = 0; i < proto->n_dims; i++)
        count = proto->dims[i] < 0 || proto->dims[i] > 4096 ? 1 << 20 : count * 7 % (1 << 20);
    if (count < 1 << 20 && proto->n_dims < 3)
        onnx_tensor_read_sparse(file, proto, "sparse tensor", &t);
}

static void graph(OnnxFile *file, const Onnx__GraphProto *g);

static void nodes(OnnxFile *file, Onnx__NodeProto *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < list[i]->n_attribute; k++) {
            const Onnx__AttributeProto *a = list[i]->attribute[k];
            if (a->t)
                tensor(file, a->t);
            if (a->sparse_tensor)
                sparse(file, a->sparse_tensor);
            if (a->g)
                graph(file, a->g);
            for (size_t j = 0; j < a->n_tensors; j++)
                tensor(file, a->tensors[j]);
            for (size_t j = 0; j < a->n_graphs; j++)
                graph(file, a->graphs[j]);
        }
    }
}

static void graph(OnnxFile *file, const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_initializer; i++)
        tensor(file, g->initializer[i]);
    for (size_t i = 0; i < g->n_sparse_initializer; i++)
        sparse(file, g->sparse_initializer[i]);
    nodes(file, g->node, g->n_node);
}

static void sink(void *user, const char *message)
{
    (void)user;
    for (; *message; message++)
        touched += (unsigned char)*message;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const OnnxKind kinds[] = {ONNX_MODEL, ONNX_ANY_VALUE, ONNX_SEQUENCE, ONNX_OPTIONAL};
    ImportSink to = {.fn = sink};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        OnnxFile *file =
            onnx_file_load_memory("/nonexistent/fuzz.onnx", (Span){data, size}, kinds[i], &to);
        if (!file)
            continue;
        if (file->model) {
            graph(file, file->model->graph);
            for (size_t k = 0; k < file->model->n_functions; k++)
                nodes(file, file->model->functions[k]->node, file->model->functions[k]->n_node);
        }
        if (file->tensor)
            tensor(file, file->tensor);
        for (size_t k = 0; file->sequence && k < file->sequence->n_tensor_values; k++)
            tensor(file, file->sequence->tensor_values[k]);
        if (file->optional && file->optional->tensor_value)
            tensor(file, file->optional->tensor_value);
        onnx_file_close(file);
    }
    return 0;
}
