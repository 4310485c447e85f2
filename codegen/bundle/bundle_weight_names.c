/* bundle_weight_names.c - weights are named after the tensors of the model file that they are made
 * of: w_layer1_0_conv1_weight.
 *
 * Of several (a weight and its scale) it is the largest. A name that is taken gets a number: _2,
 * _3. What is made of none is called after the node that it is for. */
#include <string.h>

#include "bundle.h"

enum { MAX_TEXT = 44 };

static const Data *largest(Arena *a, Node *root)
{
    int n;
    Node **order = graph_toposort(a, 1, &root, &n);
    const Data *best = NULL;
    for (int i = 0; i < n; i++) {
        const Data *d = order[i]->op == OP_DATA ? order[i]->arg.ptr : NULL;
        if (d && d->name && *d->name && (!best || d->nbytes > best->nbytes))
            best = d;
    }
    return best;
}

/* Of a long path the end. */
static const char *short_text(const char *text)
{
    size_t n = strlen(text);
    if (n <= MAX_TEXT)
        return text;
    const char *end = text + n - MAX_TEXT, *part = strpbrk(end, "/.:");
    return part && part[1] ? part + 1 : end;
}

/* What an exporter calls a tensor for want of a name: 1178, onnx::Conv_193. */
static bool is_number(const char *name)
{
    return !strncmp(name, "onnx::", 6) || !name[strspn(name, "0123456789")];
}

static const char *base_name(Bundle *b, const Buffer *w)
{
    Arena *scratch = arena_new();
    const Data *d = largest(scratch, w->node);
    const Origin *o = node_origin(b->c, w->node);
    const char *text = d && !is_number(d->name) ? d->name
                       : o && *o->node          ? o->node
                       : o && *o->op            ? o->op
                       : d                      ? d->name
                                                : "constant";
    text = arena_printf(b->a, "w_%s", identifier(b->a, short_text(text)));
    arena_free(scratch);
    return text;
}

void name_weights(Bundle *b)
{
    Map taken = {0}; /* hash of a name -> how often it was asked for */
    b->weight_name = NEWN(b->a, const char *, b->nweight + 1);
    b->weight_named = NEWN(b->a, bool, b->nweight + 1);
    for (int i = 0; i < b->nweight; i++) {
        const char *base = base_name(b, b->weight[i]), *name = base;
        uint64_t key = hash_bytes(0, base, strlen(base));
        int n = (int)(uintptr_t)map_get(&taken, key);
        for (bool again = n > 0; again;) {
            name = arena_printf(b->a, "%s_%d", base, ++n);
            again = map_get(&taken, hash_bytes(0, name, strlen(name)));
        }
        map_put(&taken, key, (void *)(uintptr_t)(n ? n : 1));
        if (name != base)
            map_put(&taken, hash_bytes(0, name, strlen(name)), (void *)(uintptr_t)1);
        b->weight_name[i] = name;
    }
    map_free(&taken);
}

const char *weight_name(const Bundle *b, const Buffer *w)
{
    int i = 0;
    while (i < b->nweight &&
           (b->weight[i]->offset != w->offset || !b->weight[i]->bytes != !w->bytes))
        i++;
    if (i == b->nweight)
        BUG("a weight that is not listed");
    b->weight_named[i] = true;
    const char *name = b->weight_name[i];
    return b->mode == WEIGHTS_ARRAY ? arena_printf(b->a, "%s_%s", weights_prefix(b), name) : name;
}

/* Where those lie in the blob that were named since this was asked last. */
void weight_offsets(StrBuf *sb, const Bundle *b)
{
    bool large = b->p->weights_bytes > INT32_MAX; /* more than an enumerator can be */
    sb_puts(sb,
            large ? "\n/* places of the weights */\n" : "\n/* places of the weights */\nenum {\n");
    for (int i = 0; i < b->nweight; i++) {
        const Buffer *w = b->weight[i];
        if (!b->weight_named[i])
            continue;
        b->weight_named[i] = false;
        sb_printf(sb, large ? "#define %s INT64_C(%lld) /* " : "    %s = %lld, /* ",
                  b->weight_name[i], (long long)w->offset);
        print_shape(sb, b->c, w->dtype, w->rank, w->dims);
        sb_puts(sb, " */\n");
    }
    sb_puts(sb, large ? "" : "};\n");
}
