/* graphs.cpp - the driver's graphs: nodes that run one after the other, each time the graph is
 * launched, some behind a condition. Nothing is let go: a program that is tested ends soon. */
#include "graphs.h"

#include <map>
#include <memory>
#include <vector>

#include "items.h"

namespace gpu
{

typedef std::vector<std::unique_ptr<Node>> Graph;

static std::map<void *, Graph *> captured;
static std::vector<unsigned> handles{0}; /* values; the first is none */

Node *record(void *stream)
{
    const auto at = captured.find(stream);
    if (at == captured.end())
        return NULL;
    at->second->emplace_back(new Node);
    return at->second->back().get();
}

static void run(const Graph &graph)
{
    for (const auto &node : graph)
        if (node->entry)
            launch(*node->entry, node->args, node->grid, node->items, node->shared);
        else
            node->run();
}

/* igrt_cuda.c: (then, other, condition, both) */
static void run_decide(void **args)
{
    const bool holds = **(unsigned char **)args[2];
    handles.at(*(uint64_t *)args[0]) = holds;
    if (*(unsigned *)args[3])
        handles.at(*(uint64_t *)args[1]) = !holds;
}

static void **keep_decide(void **args)
{
    return new void *[4] {
        new uint64_t(*(uint64_t *)args[0]), new uint64_t(*(uint64_t *)args[1]),
            new uint64_t(*(uint64_t *)args[2]), new unsigned(*(unsigned *)args[3])
    };
}

const Entry decide = {"decide", run_decide, keep_decide, 1};

} // namespace gpu

extern "C" {
int cuStreamCreate(void **stream, unsigned)
{
    *stream = new char;
    return 0;
}

int cuStreamBeginCapture_v2(void *stream, int)
{
    gpu::captured[stream] = new gpu::Graph;
    return 0;
}

int cuStreamBeginCaptureToGraph(void *stream, void *graph, void *const *, const void *, size_t n,
                                int)
{
    gpu::captured[stream] = (gpu::Graph *)graph;
    return n ? 1 : 0;
}

int cuStreamEndCapture(void *stream, void **graph)
{
    *graph = gpu::captured.at(stream);
    gpu::captured.erase(stream);
    return 0;
}

int cuStreamGetCaptureInfo_v3(void *stream, int *, uint64_t *, void **graph, void *const **last,
                              const void **, size_t *n)
{
    static void *node[1];
    gpu::Graph *const g = gpu::captured.at(stream);
    *n = !g->empty();
    node[0] = *n ? g->back().get() : NULL;
    *last = node;
    if (graph)
        *graph = g;
    return 0;
}

/* Nodes are in the order of their making: so are what they wait for. */
int cuStreamUpdateCaptureDependencies(void *, void **, size_t, unsigned)
{
    return 0;
}

int cuGraphConditionalHandleCreate(uint64_t *handle, void *, void *, unsigned first, unsigned)
{
    *handle = gpu::handles.size();
    gpu::handles.push_back(first);
    return 0;
}

int cuGraphAddNode(void **node, void *graph, void *const *, size_t, void *parameters)
{
    struct Conditional {
        int node, reserved[3];
        uint64_t handle;
        int type;
        unsigned bodies;
        void **body;
    } *const p = (Conditional *)parameters;
    const int conditional = 13, loop = 1;
    const uint64_t handle = p->handle;
    const bool again = p->type == loop;
    if (p->node != conditional || p->bodies != 1)
        return 1;
    auto *const body = new gpu::Graph;
    auto *const g = (gpu::Graph *)graph;
    p->body = new void *[1] { body };
    g->emplace_back(new gpu::Node);
    *node = g->back().get();
    g->back()->run = [body, handle, again] {
        while (gpu::handles.at(handle)) {
            gpu::run(*body);
            if (!again)
                break;
        }
    };
    return 0;
}

/* The graph as it is recorded is what runs. */
int cuGraphInstantiateWithFlags(void **ready, void *graph, uint64_t)
{
    *ready = graph;
    return 0;
}

int cuGraphLaunch(void *ready, void *)
{
    gpu::run(*(gpu::Graph *)ready);
    return 0;
}

int cuGraphExecUpdate(void *, void *, void **, int *)
{
    return 910; /* it is to be made anew */
}

int cuGraphExecKernelNodeSetParams_v2(void *, void *node, const void *parameters)
{
    struct Kernel {
        const gpu::Entry *entry;
        unsigned grid[3], block[3], shared;
        void **args;
    } const *const p = (const Kernel *)parameters;
    auto *const n = (gpu::Node *)node;
    if (n->entry != p->entry)
        return 1;
    n->args = p->entry->keep(p->args);
    n->grid = p->grid[0];
    n->items = p->block[0];
    n->shared = p->shared;
    return 0;
}

int cuGraphExecDestroy(void *)
{
    return 0;
}

int cuGraphDestroy(void *)
{
    return 0;
}
}
