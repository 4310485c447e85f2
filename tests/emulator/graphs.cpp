/* graphs.cpp - the driver's graphs: nodes that run one after the other, each time the graph is
 * launched, some behind a condition. Nothing is let go: a program that is tested ends soon.
 *
 * Nodes of several streams run as far as one gets, the first stream first; with
 * $EMULATED_ORDER=backward the last. It stops where a node of another one has to be done before
 * (cuStreamWaitEvent), or where its kernel asks for what another one writes. A kernel has its
 * device for itself: on a GPU too one that waits may leave no room for those of other streams. */
#include "graphs.h"

#include <ucontext.h>

#include <map>
#include <memory>
#include <vector>

#include "items.h"

namespace gpu
{

typedef std::vector<std::unique_ptr<Node>> Graph;

static std::map<void *, Graph *> captured;
struct Event {
    Graph *graph; /* that it is recorded in, or NULL */
    long last;    /* node of it that is done then */
};
static std::map<void *, Event> events;
static std::vector<unsigned> handles{0}; /* values; the first is none */
static void *asked;   /* the stream whose graph was asked for, to add a node there */
void *context; /* the current one */
static std::map<void *, void *> context_of; /* of streams and events */

static Node *add(Graph &graph, void *stream)
{
    graph.emplace_back(new Node);
    Node *const n = graph.back().get();
    n->queue = stream;
    n->number = graph.size() - 1;
    return n;
}

Node *record(void *stream)
{
    const auto at = captured.find(stream);
    if (at == captured.end())
        return NULL;
    return add(*at->second, stream);
}

static void run(const Node &node)
{
    if (node.entry)
        launch(*node.entry, node.args, node.grid, node.items, node.shared);
    else if (node.run)
        node.run();
}

/* ---- queues ---------------------------------------------------------------------------------- */

struct Queue {
    std::vector<Node *> nodes;
    size_t next = 0;
    ucontext_t context;
    std::vector<char> stack;
};
static std::vector<Queue *> queues;
static int hand;             /* the queue that runs; 0: it is the only one */
static bool moved;           /* since the others had their turn */
static ucontext_t scheduler; /* of queues */
unsigned long sent;          /* words, to another device, or taken */
static const Graph *of_queues;
static std::map<void *, const Node *> at_work; /* by context: its kernel that has begun */

int queue_at_hand()
{
    return hand;
}

bool leave_queue()
{
    if (!hand)
        return false;
    Queue *const q = queues[(size_t)hand - 1];
    const int own = hand;
    moved = false;
    swapcontext(&q->context, &scheduler);
    hand = own;
    return true;
}

static void run_queue()
{
    Queue *const q = queues[(size_t)hand - 1];
    for (; q->next < q->nodes.size(); q->next++) {
        Node &n = *q->nodes[q->next];
        const Node *&kernel = at_work[context_of[n.queue]];
        while ((n.after >= 0 && !(*of_queues)[(size_t)n.after]->done) || (n.entry && kernel))
            leave_queue();
        if (n.entry)
            kernel = &n;
        run(n);
        if (n.entry)
            kernel = NULL;
        n.done = moved = true;
    }
    while (true)
        swapcontext(&q->context, &scheduler);
}

static void run_queues(const Graph &graph, const std::vector<void *> &streams)
{
    const size_t bytes = 1 << 20;
    of_queues = &graph;
    queues.clear();
    at_work.clear();
    for (void *s : streams) {
        Queue *const q = new Queue;
        for (const auto &n : graph) {
            n->done = false;
            if (n->queue == s)
                q->nodes.push_back(n.get());
        }
        q->stack.resize(bytes);
        getcontext(&q->context);
        q->context.uc_stack.ss_sp = q->stack.data();
        q->context.uc_stack.ss_size = bytes;
        makecontext(&q->context, run_queue, 0);
        queues.push_back(q);
    }
    const int n = (int)queues.size();
    int still = 0; /* so many turns moved nothing */
    bool left = true;
    while (left) {
        left = false;
        for (int i = 0; i < n; i++) {
            Queue *const q = queues[(size_t)(is_backward() ? n - 1 - i : i)];
            const size_t before = q->next;
            const unsigned long sent_before = sent;
            if (before == q->nodes.size())
                continue;
            left = true;
            hand = is_backward() ? n - i : i + 1;
            swapcontext(&scheduler, &q->context);
            still = q->next == before && sent == sent_before ? still + 1 : 0;
        }
        if (still > 4 * n) {
            now = NULL;
            fault("devices wait for each other");
        }
    }
    hand = 0;
}

static void run(const Graph &graph)
{
    std::vector<void *> streams;
    for (const auto &node : graph)
        if (std::find(streams.begin(), streams.end(), node->queue) == streams.end())
            streams.push_back(node->queue);
    if (!hand && streams.size() > 1)
        run_queues(graph, streams);
    else
        for (const auto &node : graph)
            run(*node);
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
int cuCtxSetCurrent(void *context)
{
    gpu::context = context;
    return 0;
}

int cuStreamCreate(void **stream, unsigned)
{
    *stream = new char;
    gpu::context_of[*stream] = gpu::context;
    return 0;
}

int cuEventCreate(void **event, unsigned)
{
    *event = new char;
    gpu::context_of[*event] = gpu::context;
    return 0;
}

int cuEventRecord(void *event, void *stream)
{
    enum { CUDA_ERROR_INVALID_HANDLE = 400 };
    const auto at = gpu::captured.find(stream);
    if (gpu::context_of[event] != gpu::context_of[stream])
        return CUDA_ERROR_INVALID_HANDLE;
    gpu::Event e = {NULL, -1};
    if (at != gpu::captured.end()) {
        e.graph = at->second;
        for (const auto &n : *e.graph)
            if (n->queue == stream)
                e.last = (long)n->number;
    }
    gpu::events[event] = e;
    return 0;
}

/* Of what runs at once, as it is enqueued, there is nothing to wait for. */
int cuStreamWaitEvent(void *stream, void *event, unsigned)
{
    const auto e = gpu::events.find(event);
    if (e == gpu::events.end())
        return 1;
    if (!e->second.graph)
        return 0;
    gpu::captured[stream] = e->second.graph;
    if (e->second.last >= 0)
        gpu::record(stream)->after = e->second.last;
    return 0;
}

int cuDeviceCanAccessPeer(int *can, int, int)
{
    *can = !getenv("EMULATED_APART"); /* devices that do not reach each other */
    return 0;
}

int cuCtxEnablePeerAccess(void *, unsigned)
{
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
    for (auto i = gpu::captured.begin(); i != gpu::captured.end();)
        i = i->second == *graph ? gpu::captured.erase(i) : std::next(i); /* and who joined it */
    return 0;
}

int cuStreamGetCaptureInfo_v3(void *stream, int *, uint64_t *, void **graph, void *const **last,
                              const void **, size_t *n)
{
    static void *node[1];
    gpu::Graph *const g = gpu::captured.at(stream);
    gpu::asked = stream;
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
    gpu::Node *const n = gpu::add(*g, gpu::asked);
    *node = n;
    n->run = [body, handle, again] {
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
