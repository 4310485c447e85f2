/* bundle_functions.c - what a model has of further functions, and of the states that they share.
 *
 *     <name>.h               their structs and declarations, behind those of run()
 *     <name>_<function>.c    their steps
 *
 * A further function is a copy of the first one's record with a plan and ports of its own: context,
 * weights, states, run-time integers and kernels are the model's. */
#include <string.h>

#include "bundle_writer.h"
#include "language.h"

/* ---- kernels ------------------------------------------------------------------------------- */

/* "k07_conv_8" with another number. */
static void rename_kernel(Kernel *k, int number)
{
    char rest[sizeof k->name];
    const size_t word = strcspn(k->name, "0123456789"),
                 digits = strspn(k->name + word, "0123456789");
    snprintf(rest, sizeof rest, "%s", k->name + word + digits);
    snprintf(k->name + word, sizeof k->name - word, "%02d%.80s", number, rest);
}

/* All kernels in one list: one with the text of an earlier one gets its name, and is not written.
 */
static void gather_kernels(Bundle *b, int n, Plan *const *plan)
{
    Map text_of = {0}, named = {0};
    b->kernel = NULL;
    b->nkernel = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < plan[i]->nkernel; j++) {
            Kernel *k = plan[i]->kernels[j];
            StrBuf text = {0};
            if (k->only_together)
                continue;
            render_kernel(&text, b->target, k, k->check ? "check" : "k");
            const uint64_t key = hash_bytes(k->narg, text.data, text.len);
            sb_free(&text);
            const Kernel *same = map_get(&text_of, key);
            if (same) {
                memcpy(k->name, same->name, sizeof k->name);
                continue;
            }
            map_put(&text_of, key, k);
            for (int number = b->nkernel;; number++) {
                const uint64_t name = hash_bytes(0, k->name, strlen(k->name));
                if (!map_get(&named, name)) {
                    map_put(&named, name, k);
                    break;
                }
                rename_kernel(k, number);
            }
            vec_push(b->a, b->kernel, b->nkernel, k);
        }
    map_free(&text_of);
    map_free(&named);
}

/* ---- functions ----------------------------------------------------------------------------- */

void functions_prepare(Bundle *b, int n, Plan *const *plan)
{
    Context *c = b->c;
    gather_kernels(b, n, plan);
    b->function = NEWN(b->a, Bundle, n);
    for (int i = 1; i < n; i++) {
        Bundle *f = &b->function[i - 1];
        function_select(c, i);
        *f = *b;
        f->first = b;
        f->function = NULL;
        f->nfunction = 0;
        f->p = plan[i];
        f->io = f->entry = arena_printf(b->a, "%s_%s", b->name, function_name(c));
        bundle_ports(f);
    }
    function_select(c, 0);
    b->nfunction = n - 1;
    if (b->target->gpu)
        gpu_prepare(b);
}

void functions_header(StrBuf *sb, Bundle *b)
{
    for (int i = 0; i < b->nfunction; i++) {
        Bundle *f = &b->function[i];
        function_select(b->c, i + 1);
        sb_printf(sb, "\n/* %s()\n *\n * inputs\n", f->entry);
        ports_comment(sb, f);
        sb_puts(sb, " */\n");
        if (b->whole)
            sb_printf(sb, "typedef %s_%s_inputs %s_inputs;\ntypedef %s_%s_outputs %s_outputs;\n",
                      b->whole->name, function_name(b->c), f->io, b->whole->name,
                      function_name(b->c), f->io);
        else if (!b->sub)
            io_structs(sb, f);
        sb_printf(
            sb,
            "\n/* Another function over the same states: like %s_run() in every other respect. */\n"
            "%s_status %s(%s_ctx *ctx, const %s_inputs *in, %s_outputs *out);\n",
            b->name, b->name, f->entry, b->name, f->io, f->io);
    }
    function_select(b->c, 0);
}

void functions_io(StrBuf *sb, Bundle *b)
{
    for (int i = 0; i < b->nfunction; i++) {
        function_select(b->c, i + 1);
        io_structs(sb, &b->function[i]);
    }
    function_select(b->c, 0);
}

void functions_run(Bundle *b)
{
    for (int i = 0; i < b->nfunction && !b->failed; i++) {
        function_select(b->c, i + 1);
        bundle_function(&b->function[i]);
    }
    function_select(b->c, 0);
}

/* ---- states -------------------------------------------------------------------------------- */

static const char *state_memory(const Bundle *b)
{
    return b->memory ? arena_printf(b->a, "memory[%s]", b->memory[b->p->state_memory].index)
                     : "arena";
}

void states_begin(StrBuf *sb, Bundle *b)
{
    for (int i = 0; i < b->c->nstate; i++) {
        const Buffer *from = b->p->begin[i], *to = b->p->state[i];
        if (!from || !from->bytes)
            continue;
        const char *name = weight_name(b, from);
        if (b->target->language->binds) {
            bundle_fail(b, INGOT_UNSUPPORTED,
                        "--target '%s': state '%s' begins as data: that is for C, CUDA and OpenCL "
                        "so far",
                        b->target->name, b->c->states[i].name);
            return;
        }
        if (b->mode != WEIGHTS_ARRAY)
            b->all_needs |= NEED_WEIGHTS;
        const char *weights = b->mode == WEIGHTS_ARRAY ? "" : "ctx->weights + ";
        if (b->gpu)
            sb_printf(sb, "    TRY(igrt_gpu_write(%s, ctx->mem[%s], %lld, %s%s, %lld, 1));\n",
                      gpu_device(b, to->device), gpu_arena(b, to->device), (long long)to->offset,
                      weights, name, (long long)to->bytes);
        else
            sb_printf(sb, "    memcpy((unsigned char *)ctx->%s + %lld, %s%s, %lld);\n",
                      state_memory(b), (long long)to->offset, weights, name, (long long)to->bytes);
    }
}

bool bundle_has_states(const Bundle *b)
{
    const Bundle *all = b->whole ? b->whole : b;
    const bool page = b->whole && !all->sub, gpu = all->sub && all->sub[0].target->gpu;
    return b->c->nstate && !b->gpu && !page && !gpu;
}

void states_header(StrBuf *sb, const Bundle *b)
{
    if (bundle_has_states(b))
        sb_printf(sb,
                  "\n/* The states, from 0 to %s_STATES - 1: name, type, dims, and where its "
                  "elements lie, row-major,\n * which may be read and written between runs. */\n"
                  "#define %s_STATES %d\n"
                  "%s_status %s_state(const %s_ctx *ctx, int i, igrt_state *state);\n",
                  b->upper, b->upper, b->c->nstate, b->name, b->name, b->name);
}

/* Of one that grows the room that it has. More than eight axes are one. */
static void state_entry(StrBuf *sb, const Bundle *b, int i)
{
    const Buffer *state = b->p->state[i];
    const int rank = state->rank <= 8 ? state->rank : 1;
    sb_puts(sb, "        {");
    print_string(sb, b->c->states[i].name);
    sb_printf(sb, ", IGRT_%s, %d, {", dtype_enum(state->dtype), rank);
    for (int d = 0; d < rank; d++)
        sb_printf(sb, "%s%lld", d ? ", " : "",
                  state->rank <= 8 ? (long long)state->dims[d]->hi
                                   : (long long)dims_bound(state->rank, state->dims));
    sb_printf(sb, "%s}, NULL, %lld},\n", rank ? "" : "0", (long long)state->bytes);
}

void states_run(StrBuf *sb, Bundle *b)
{
    if (!bundle_has_states(b))
        return;
    sb_printf(sb,
              "\n%s_status %s_state(const %s_ctx *ctx, int i, igrt_state *state)\n{\n"
              "    static const igrt_state all[%s_STATES] = {\n",
              b->name, b->name, b->name, b->upper);
    for (int i = 0; i < b->c->nstate; i++)
        state_entry(sb, b, i);
    sb_printf(sb, "    };\n    static const size_t at[%s_STATES] = {", b->upper);
    for (int i = 0; i < b->c->nstate; i++)
        sb_printf(sb, "%s%lld", i ? ", " : "", (long long)b->p->state[i]->offset);
    sb_printf(sb,
              "};\n"
              "    if (!ctx || !state)\n        return IGRT_ERR_NULL;\n"
              "    if (i < 0 || i >= %s_STATES)\n        return IGRT_ERR_DIM;\n"
              "    *state = all[i];\n"
              "    state->data = (unsigned char *)ctx->%s + at[i];\n"
              "    return IGRT_OK;\n}\n",
              b->upper, state_memory(b));
}
