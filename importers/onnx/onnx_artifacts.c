/*
 * onnx_artifacts.c - the artifacts of ONNX Runtime's on-device training as the model that they were
 * made of.
 *
 *     PREFIXtraining_model.onnx    the network, its loss and the nodes of the gradients; the file
 *                                  that is given
 *     PREFIXeval_model.onnx        the network and its loss in operators of the standard, in
 *                                  inference
 *     PREFIXoptimizer_model.onnx   a node that is the optimizer, and one that clips; may be missing
 *     PREFIXcheckpoint             parameters, and what the optimizer has kept of them
 *
 * None of ONNX Runtime's own operators is lowered, for what they compute follows from the rest: the
 * nodes are those of the eval model, with the checkpoint's parameters as initializers, and their
 * gradients are derived as for any model. The training model tells which statistics follow the
 * batch, the checkpoint which parameters are trained.
 *
 * What only the loss reads, labels, no parameter is ever combined with. So inputs and nodes fall
 * into two parts, and the first is the network as it runs:
 *
 *     input   what reaches a parameter | labels
 *     node    what reads no label      | the loss
 *     output  what the loss reads      | the loss
 */
#include <stdlib.h>
#include <string.h>

#include "onnx.h"
#include "onnx_checkpoint.h"

enum { MOST_INPUTS = 64, MOST_PASSES = 8 };
static const char training_name[] = "training_model.onnx";

/* What a value depends on. */
typedef struct {
    uint64_t from; /* inputs that are no parameters, by number */
    bool weighed;  /* a parameter */
    bool parameter, taken;
} Flow;

/* A list of a graph, of which `run` come first that inference has. */
typedef struct {
    size_t n, run;
} SplitCount;

struct OnnxArtifacts {
    OnnxFile *training; /* m->file is the eval model */
    Checkpoint checkpoint;
    ImportedTraining says;
    ingot_optimizer optimizer;
    Onnx__GraphProto was; /* the eval model's lists, which the message owns */
    SplitCount input, node, output;
    Names parameter;  /* CheckpointTensor */
    Names statistic;  /* those that follow the batch */
    Names flow;       /* Flow */
    uint64_t network; /* inputs that reach a parameter */
};

static bool is_of_microsoft(const Onnx__NodeProto *n, const char *name)
{
    return !strcmp(n->domain, "com.microsoft") && !strcmp(n->op_type, name);
}

bool is_training_artifact(const OnnxFile *f)
{
    const Onnx__GraphProto *g = f->model->graph;
    for (size_t i = g->n_node; i-- > 0;)
        if (is_of_microsoft(g->node[i], "InPlaceAccumulatorV2") ||
            is_of_microsoft(g->node[i], "InPlaceAccumulator"))
            return true;
    return false;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* The path of another artifact, or its name in their folder. NULL: the training model is named
 * otherwise. */
static char *beside(Model *m, const char *path, const char *name, bool whole)
{
    const size_t n = strlen(path), k = sizeof training_name - 1;
    if (n < k || strcmp(path + n - k, training_name) != 0)
        return NULL;
    const char *slash = strrchr(path, '/');
    const size_t from = whole || !slash ? 0 : (size_t)(slash + 1 - path), prefix = n - k - from;
    char *other = ingot_alloc(m->c, prefix + strlen(name) + 1);
    memcpy(other, path + from, prefix);
    strcpy(other + prefix, name);
    return other;
}

static bool missing(Model *m, const char *name, const char *why)
{
    ingot_error(m->c, INGOT_INVALID,
                "it is the training model of ONNX Runtime's artifacts, and '%s' in the same folder "
                "cannot be "
                "read: %s",
                name, why);
    return false;
}

/* Maps a file that lies with the others. NULL: *why says why not. */
static const MapFile *map_beside(Model *m, const char *name, const char **why)
{
    return external_map(&m->file->externals, m->file->path, name, why);
}

static bool open_checkpoint(Model *m, const char *path)
{
    OnnxArtifacts *a = m->artifacts;
    const char *why, *name = beside(m, path, "checkpoint", false),
                     *data = beside(m, path, "checkpoint.data", false);
    bool external;
    const MapFile *map = map_beside(m, name, &why);
    if (!map)
        return missing(m, name, why);
    if (!checkpoint_open(&a->checkpoint, beside(m, path, "checkpoint", true), map, &m->file->sink,
                         &external))
        return false;
    map = external ? map_beside(m, data, &why) : NULL;
    if (external && !map)
        return missing(m, data, why);
    if (external)
        a->checkpoint.more = *map;
    return true;
}

/* ---- parameters ------------------------------------------------------------------------------ */

static bool out_of_memory(Model *m)
{
    ingot_error(m->c, INGOT_IO, "out of memory");
    return false;
}

/* A tensor of the checkpoint as an initializer. NULL: out of memory. */
static Onnx__TensorProto *initializer_of(OnnxFile *f, const CheckpointTensor *t)
{
    Onnx__TensorProto *p = onnx_file_alloc(f, sizeof *p);
    int64_t *dims = onnx_file_alloc(f, INGOT_MAX_RANK * sizeof *dims);
    if (!p || !dims)
        return NULL;
    onnx__tensor_proto__init(p);
    memcpy(dims, t->dims, sizeof t->dims);
    p->name = (char *)(uintptr_t)t->name;
    p->n_dims = (size_t)t->rank;
    p->dims = dims;
    p->has_data_type = p->has_raw_data = true;
    p->data_type = t->dtype;
    p->raw_data = (ProtobufCBinaryData){t->data.len, (uint8_t *)(uintptr_t)t->data.data};
    return p;
}

/* The graph's initializers, and behind them the parameters of the checkpoint that are inputs. */
static bool take_parameters(Model *m)
{
    OnnxArtifacts *a = m->artifacts;
    Onnx__GraphProto *g = m->file->model->graph;
    const size_t n = checkpoint_count(&a->checkpoint);
    Onnx__TensorProto **list =
        onnx_file_alloc(m->file, (g->n_initializer + n + 1) * sizeof(Onnx__TensorProto *));
    Names inputs = {0};
    if (!list)
        return out_of_memory(m);
    if (g->n_initializer)
        memcpy(list, g->initializer, g->n_initializer * sizeof *list);
    for (size_t i = 0; i < g->n_input; i++)
        names_put(m->c, &inputs, g->input[i]->name, g->input[i]);
    g->initializer = list;
    for (size_t i = 0; i < n; i++) {
        CheckpointTensor *t = ingot_alloc(m->c, sizeof *t);
        if (!checkpoint_parameter(&a->checkpoint, i, t))
            return false;
        if (!names_get(&inputs, t->name))
            continue;
        names_put(m->c, &a->parameter, t->name, t);
        if (!(list[g->n_initializer] = initializer_of(m->file, t)))
            return out_of_memory(m);
        g->n_initializer++;
    }
    return true;
}

static double float_attribute(const Onnx__NodeProto *n, const char *name, double otherwise)
{
    for (size_t i = 0; i < n->n_attribute; i++)
        if (!strcmp(n->attribute[i]->name, name))
            return (double)n->attribute[i]->f;
    return otherwise;
}

/* Of which nodes the training model has the statistics of the batch. */
static void note_statistics(Model *m)
{
    OnnxArtifacts *a = m->artifacts;
    const Onnx__GraphProto *g = a->training->model->graph;
    for (size_t i = 0; i < g->n_node; i++) {
        const Onnx__NodeProto *n = g->node[i];
        const bool norm = !strcmp(n->op_type, "BatchNormalization");
        if (n->n_input == 5 && (is_of_microsoft(n, "BatchNormInternal") ||
                                (norm && int_attribute(n, "training_mode", 0)))) {
            names_put(m->c, &a->statistic, n->input[3], a);
            names_put(m->c, &a->statistic, n->input[4], a);
        }
    }
}

void artifacts_wish(const Model *m, ingot_model_weight *w)
{
    const OnnxArtifacts *a = m->artifacts;
    if (!a)
        return;
    const CheckpointTensor *t = names_get(&a->parameter, w->name);
    w->wanted = w->statistic ? names_get(&a->statistic, w->name) != NULL : t && t->trained;
    w->unwanted = !w->wanted;
}

/* ---- network and loss ------------------------------------------------------------------------ */

static void add_flow(const OnnxArtifacts *a, Flow *sum, const char *name)
{
    const Flow *f = *name ? names_get(&a->flow, name) : NULL;
    if (f) {
        sum->from |= f->from;
        sum->weighed |= f->weighed;
        sum->parameter |= f->parameter;
    }
}

/* All that a node reads, in its bodies too; their depth is bounded by wire.c. */
static void add_reads(const OnnxArtifacts *a, Flow *sum, const Onnx__NodeProto *n)
{
    for (size_t i = 0; i < n->n_input; i++)
        add_flow(a, sum, n->input[i]);
    for (size_t i = 0; i < n->n_attribute; i++) {
        const Onnx__AttributeProto *attr = n->attribute[i];
        for (size_t k = 0; k < attr->n_graphs + (attr->g != NULL); k++) {
            const Onnx__GraphProto *g = k < attr->n_graphs ? attr->graphs[k] : attr->g;
            for (size_t j = 0; j < g->n_node; j++)
                add_reads(a, sum, g->node[j]);
            for (size_t j = 0; j < g->n_output; j++)
                add_flow(a, sum, g->output[j]->name);
        }
    }
}

static Flow *flow_of(Model *m, const char *name)
{
    OnnxArtifacts *a = m->artifacts;
    Flow *f = names_get(&a->flow, name);
    if (!f)
        names_put(m->c, &a->flow, name, f = ingot_alloc(m->c, sizeof *f));
    return f;
}

/* One pass over all nodes. True: something was new. */
static bool flow_pass(Model *m)
{
    OnnxArtifacts *a = m->artifacts;
    const Onnx__GraphProto *g = m->file->model->graph;
    bool more = false;
    for (size_t i = 0; i < g->n_node; i++) {
        Flow sum = {0};
        add_reads(a, &sum, g->node[i]);
        if (sum.parameter)
            a->network |= sum.from;
        for (size_t k = 0; k < g->node[i]->n_output; k++) {
            if (!*g->node[i]->output[k])
                continue;
            Flow *to = flow_of(m, g->node[i]->output[k]);
            more |= (sum.from & ~to->from) != 0 || (sum.weighed && !to->weighed);
            to->from |= sum.from;
            to->weighed |= sum.weighed;
        }
    }
    return more;
}

/* Inputs that are no initializers, in `own`; their number, or -1 after an error. */
static int64_t own_inputs(Model *m, Onnx__ValueInfoProto **own)
{
    const Onnx__GraphProto *g = m->file->model->graph;
    Names known = {0};
    int64_t n = 0;
    for (size_t i = 0; i < g->n_initializer; i++)
        names_put(m->c, &known, g->initializer[i]->name, m);
    for (size_t i = 0; i < g->n_input; i++)
        if (!names_get(&known, g->input[i]->name))
            own[n++] = g->input[i];
    if (n <= MOST_INPUTS)
        return n;
    ingot_error(m->c, INGOT_UNSUPPORTED,
                "%lld inputs of the eval model are no parameters of the checkpoint; at most %d are "
                "supported",
                (long long)n, MOST_INPUTS);
    return -1;
}

static bool is_label(const OnnxArtifacts *a, uint64_t from)
{
    return (from & ~a->network) != 0;
}

/* An output of the run: a value that the loss reads. */
static Onnx__ValueInfoProto *output_of(Model *m, const char *name)
{
    const Onnx__GraphProto *g = m->file->model->graph;
    for (size_t i = 0; i < g->n_value_info; i++)
        if (!strcmp(g->value_info[i]->name, name))
            return g->value_info[i];
    Onnx__ValueInfoProto *info = onnx_file_alloc(m->file, sizeof *info);
    if (info) {
        onnx__value_info_proto__init(info);
        info->name = (char *)(uintptr_t)name;
    }
    return info;
}

/* Values of the network that nodes of the loss read become outputs, behind those that there are. */
static bool add_results(Model *m, Onnx__ValueInfoProto **output)
{
    OnnxArtifacts *a = m->artifacts;
    const Onnx__GraphProto *g = m->file->model->graph;
    for (size_t i = 0; i < g->n_node; i++) {
        Flow sum = {0};
        add_reads(a, &sum, g->node[i]);
        for (size_t k = 0; k < g->node[i]->n_input && is_label(a, sum.from); k++) {
            Flow *f = names_get(&a->flow, g->node[i]->input[k]);
            if (!f || f->parameter || !f->weighed || f->taken || is_label(a, f->from))
                continue;
            f->taken = true;
            if (!(output[a->output.run++] = output_of(m, g->node[i]->input[k])))
                return out_of_memory(m);
        }
    }
    return true;
}

/* Items of the network first, then those of the loss, which have a label. */
static void split(void **list, size_t n, const bool *label, void **to, SplitCount *count)
{
    size_t at = 0;
    for (int late = 0; late < 2; late++) {
        for (size_t i = 0; i < n; i++)
            if (label[i] == (late != 0))
                to[at++] = list[i];
        if (!late)
            count->run = at;
    }
    count->n = at;
}

static bool split_outputs(Model *m)
{
    OnnxArtifacts *a = m->artifacts;
    Onnx__GraphProto *g = m->file->model->graph;
    Onnx__ValueInfoProto **list =
        onnx_file_alloc(m->file, (g->n_output + a->flow.n + 1) * sizeof(void *));
    if (!list)
        return out_of_memory(m);
    for (int late = 0; late < 2; late++) {
        for (size_t i = 0; i < g->n_output; i++) {
            Flow *f = flow_of(m, g->output[i]->name);
            if (is_label(a, f->from) == (late != 0)) {
                f->taken = true;
                list[late ? a->output.n++ : a->output.run++] = g->output[i];
            }
        }
        if (!late && !add_results(m, list))
            return false;
        if (!late)
            a->output.n = a->output.run;
    }
    g->output = list;
    return true;
}

/* Sorts the lists of the eval model. */
static bool split_graph(Model *m)
{
    OnnxArtifacts *a = m->artifacts;
    Onnx__GraphProto *g = m->file->model->graph;
    Onnx__ValueInfoProto **own = ingot_alloc(m->c, (g->n_input + 1) * sizeof(void *)),
                         **inputs = onnx_file_alloc(m->file, (g->n_input + 1) * sizeof(void *));
    Onnx__NodeProto **nodes = onnx_file_alloc(m->file, (g->n_node + 1) * sizeof(void *));
    bool *late = ingot_alloc(m->c, g->n_node + g->n_input + 1);
    const int64_t n = own_inputs(m, own);
    if (!inputs || !nodes)
        return out_of_memory(m);
    if (n < 0)
        return false;
    for (size_t i = 0; i < g->n_initializer; i++) {
        const char *name = g->initializer[i]->name;
        if (names_get(&a->parameter, name))
            *flow_of(m, name) = (Flow){.weighed = true, .parameter = true};
    }
    for (int64_t i = 0; i < n; i++)
        flow_of(m, own[i]->name)->from = UINT64_C(1) << i;
    for (int pass = 0; flow_pass(m); pass++)
        if (pass == MOST_PASSES) {
            ingot_error(m->c, INGOT_INVALID, "its nodes are not in an order in which they can run");
            return false;
        }
    for (int64_t i = 0; i < n; i++)
        late[i] = is_label(a, UINT64_C(1) << i);
    split((void **)own, (size_t)n, late, (void **)inputs, &a->input);
    if (!split_outputs(m))
        return false;
    for (size_t i = 0; i < g->n_node; i++) {
        Flow sum = {0};
        add_reads(a, &sum, g->node[i]);
        late[i] = is_label(a, sum.from);
    }
    split((void **)g->node, g->n_node, late, (void **)nodes, &a->node);
    g->input = inputs;
    g->node = nodes;
    return true;
}

void artifacts_select(Model *m, bool step)
{
    OnnxArtifacts *a = m->artifacts;
    if (!a)
        return;
    Onnx__GraphProto *g = m->file->model->graph;
    g->n_input = step ? a->input.n : a->input.run;
    g->n_node = step ? a->node.n : a->node.run;
    g->n_output = step ? a->output.n : a->output.run;
}

/* ---- the optimizer --------------------------------------------------------------------------- */

/* A tensor of the checkpoint, for a state of the parameter's type and shape. */
static ingot_tensor *moment(Model *m, const char *parameter, int which)
{
    const OnnxArtifacts *a = m->artifacts;
    const CheckpointTensor *p = names_get(&a->parameter, parameter);
    CheckpointTensor t;
    ingot_dtype dtype;
    if (!p || !checkpoint_moment(&a->checkpoint, parameter, which, &t) || !t.name)
        return NULL;
    if (t.dtype != p->dtype || t.rank != p->rank || memcmp(t.dims, p->dims, sizeof t.dims) != 0 ||
        !ingot_onnx_dtype(t.dtype, &dtype))
        return ingot_error(m->c, INGOT_INVALID,
                           "%s: what the optimizer has kept of '%s' has another type or shape",
                           a->checkpoint.path, parameter);
    return ingot_data(m->c, NULL, dtype, t.rank, t.dims, t.data.data);
}

/* What a state begins as, for a run that goes on where the checkpoint is. */
static ingot_tensor *begins(void *user, const char *state)
{
    Model *m = user;
    const size_t n = strlen(state);
    const int64_t steps = checkpoint_steps(&m->artifacts->checkpoint);
    if (steps < 0)
        return NULL;
    if (!strcmp(state, "train.step"))
        return ingot_scalar_i(m->c, INGOT_I64, steps);
    if (n < 2 || (strcmp(state + n - 2, ".m") != 0 && strcmp(state + n - 2, ".v") != 0))
        return NULL;
    char *parameter = ingot_alloc(m->c, n);
    memcpy(parameter, state, n - 2);
    return moment(m, parameter, state[n - 1] == 'v');
}

/* One node of the optimizer's model. */
static bool optimizer_node(Model *m, const Onnx__NodeProto *n)
{
    ingot_optimizer *o = &m->artifacts->optimizer;
    const double clip = o->clip;
    if (is_of_microsoft(n, "SGDOptimizerV2")) {
        *o = ingot_optimizer_new(INGOT_SGD);
    } else if (is_of_microsoft(n, "AdamWOptimizer")) {
        *o = ingot_optimizer_new(INGOT_ADAMW);
        o->beta1 = float_attribute(n, "alpha", 0.9);
        o->beta2 = float_attribute(n, "beta", 0.999);
        o->epsilon = float_attribute(n, "epsilon", 1e-8);
        o->decay = float_attribute(n, "weight_decay", 1e-2);
        o->early = int_attribute(n, "adam_mode", 0) == 1;
        o->uncorrected = int_attribute(n, "correct_bias", 1) == 0;
    } else if (is_of_microsoft(n, "InplaceClipGradNorm")) {
        o->clip = float_attribute(n, "max_norm", 1);
        return true;
    } else {
        return false;
    }
    o->clip = clip;
    return true;
}

/* The optimizer's model, if there is one. What it has that is not known is told where it would be
 * needed: there is no optimizer. */
static bool take_optimizer(Model *m, const char *path)
{
    OnnxArtifacts *a = m->artifacts;
    const char *why, *name = beside(m, path, "optimizer_model.onnx", false),
                     *whole = beside(m, path, "optimizer_model.onnx", true);
    const MapFile *map = map_beside(m, name, &why);
    if (!map)
        return true;
    OnnxFile *f =
        onnx_file_load_memory(whole, (Span){map->data, map->len}, ONNX_MODEL, &m->file->sink);
    if (!f)
        return false;
    const Onnx__GraphProto *g = f->model->graph;
    bool known = true;
    for (size_t i = 0; i < g->n_node && known; i++)
        if (!(known = optimizer_node(m, g->node[i])))
            ingot_warning(m->c,
                          "%s: the optimizer's node '%s' (%s) is not known: --optimizer "
                          "has to say what is meant",
                          whole, node_label(g->node[i]), g->node[i]->op_type);
    if (known && a->optimizer.struct_size) {
        a->optimizer.begins = begins;
        a->optimizer.user = m;
        a->says.optimizer = &a->optimizer;
    }
    onnx_file_close(f);
    return true;
}

/* ---- all together ---------------------------------------------------------------------------- */

bool artifacts_open(Model *m)
{
    OnnxFile *training = m->file;
    const char *path = training->path, *eval = beside(m, path, "eval_model.onnx", true), *why;
    MapFile there = {0};
    if (!eval) {
        ingot_error(m->c, INGOT_USAGE,
                    "it is the training model of ONNX Runtime's artifacts; its name has to end in "
                    "'%s', so that the files next to it are found: eval_model.onnx, checkpoint, "
                    "optimizer_model.onnx",
                    training_name);
        return false;
    }
    why = mapfile_open(&there, eval);
    if (why)
        return missing(m, eval, why);
    mapfile_close(&there);
    OnnxFile *f = onnx_file_load(eval, &training->sink);
    OnnxArtifacts *a = f ? calloc(1, sizeof *a) : NULL;
    if (!a) {
        onnx_file_close(f);
        return f ? out_of_memory(m) : false;
    }
    *a = (OnnxArtifacts){.training = training, .was = *f->model->graph};
    m->file = f;
    m->artifacts = a;
    if (!f->model->graph->n_output) {
        ingot_error(m->c, INGOT_INVALID, "%s: it has no output, so no loss", eval);
        return false;
    }
    a->says.loss = f->model->graph->output[0]->name;
    if (!open_checkpoint(m, path) || !take_parameters(m))
        return false;
    note_statistics(m);
    if (!split_graph(m) || !take_optimizer(m, path))
        return false;
    artifacts_select(m, true);
    return true;
}

void artifacts_close(Model *m)
{
    OnnxArtifacts *a = m->artifacts;
    if (!a)
        return;
    *m->file->model->graph = a->was;
    onnx_file_close(a->training);
    free(a);
    m->artifacts = NULL;
}

int artifacts_inputs(const Model *m)
{
    return (int)m->artifacts->input.run;
}

int artifacts_outputs(const Model *m)
{
    return (int)m->artifacts->output.run;
}

const char *artifacts_path(const Model *m)
{
    return m->artifacts->training->path;
}

const ImportedTraining *artifacts_training(const Model *m)
{
    return &m->artifacts->says;
}

void artifacts_mention(const char *own, void (*each)(void *user, Span location), void *user)
{
    static const char *const names[] = {"eval_model.onnx", "optimizer_model.onnx", "checkpoint",
                                        "checkpoint.data"};
    const size_t n = strlen(own), k = sizeof training_name - 1;
    char name[256];
    for (size_t i = 0; i < COUNT(names) && n >= k && n < sizeof name - sizeof training_name; i++) {
        memcpy(name, own, n - k);
        strcpy(name + n - k, names[i]);
        each(user, (Span){(const uint8_t *)name, strlen(name)});
    }
}
