/* bundle_address.c - where a buffer is, as the host side of a bundle spells it: (float *)(arena +
 * 4096), (const float *)(weights + 64), in->x, out->y. */
#include "bundle_writer.h"

/* Elements of the C type in one element: a complex number is two. */
static int parts(ingot_dtype d)
{
    return dtype_info[d].kind == 'c' ? 2 : 1;
}

int64_t c_element_bytes(ingot_dtype d)
{
    return element_bytes(d) / parts(d);
}

const char *memory_base(Bundle *b, const Buffer *r)
{
    if (!b->memory) {
        b->needs |= NEED_ARENA;
        return "arena";
    }
    b->memory[r->memory].needed = true;
    return b->memory[r->memory].base;
}

static void address_root(StrBuf *sb, Bundle *b, const Buffer *r, ingot_dtype as, bool written)
{
    const char *type = c_type(as);
    const char *qualifier = written || as == INGOT_STRING ? "" : "const ";
    switch (r->kind) {
    case BUF_INPUT:
        b->needs |= NEED_INPUTS;
        if (as != r->dtype)
            sb_printf(sb, "(%s%s *)", qualifier, type);
        sb_printf(sb, "in->%s", b->in[r->slot].field);
        return;
    case BUF_OUTPUT:
        b->needs |= NEED_OUTPUTS;
        if (as != r->dtype)
            sb_printf(sb, "(%s%s *)", qualifier, type);
        sb_printf(sb, "out->%s", b->out[r->slot].field);
        return;
    case BUF_WEIGHT:
        if (b->mode == WEIGHTS_ARRAY) {
            if (as != r->dtype)
                sb_printf(sb, "(%s%s *)", qualifier, type);
            sb_puts(sb, weight_name(b, r));
        } else {
            b->needs |= NEED_WEIGHTS;
            sb_printf(sb, "(%s%s *)(weights + %s)", qualifier, type, weight_name(b, r));
        }
        return;
    case BUF_ARENA:
    case BUF_STATE:
        sb_printf(sb, "(%s%s *)(%s + %lld)", qualifier, type, memory_base(b, r),
                  (long long)r->offset);
        return;
    case BUF_LOCAL: sb_puts(sb, "&index"); return;
    }
}

void address(StrBuf *sb, Bundle *b, const Buffer *buffer, Node *offset, bool written)
{
    ingot_dtype as = buffer->dtype;
    const char *scale = parts(as) == 2 ? "2 * " : "";
    address_root(sb, b, buffer_root(buffer), as, written);
    for (; buffer->base; buffer = buffer->base) {
        if (!buffer->base_offset || idx_is(buffer->base_offset, 0))
            continue;
        sb_printf(sb, " + %s", scale);
        print_expr(sb, b, buffer->base_offset);
    }
    if (offset && !idx_is(offset, 0)) {
        sb_printf(sb, " + %s", scale);
        print_expr(sb, b, offset);
    }
}

bool is_bytes(const Bundle *b, const Buffer *buffer)
{
    const Buffer *r = buffer_root(buffer);
    if (buffer->dtype == INGOT_STRING) /* whose size is the target's */
        return false;
    return r->kind == BUF_ARENA || r->kind == BUF_STATE ||
           (r->kind == BUF_WEIGHT && b->mode != WEIGHTS_ARRAY);
}

int64_t known_offset(const Buffer *buffer)
{
    int64_t elements = 0, size = element_bytes(buffer->dtype);
    for (; buffer->base; buffer = buffer->base)
        if (buffer->base_offset && buffer->base_offset->op == OP_CONST)
            elements += buffer->base_offset->arg.i;
    return elements * size;
}

void address_in_bytes(StrBuf *sb, Bundle *b, const Buffer *buffer)
{
    const Buffer *r = buffer_root(buffer);
    int64_t known = known_offset(buffer), size = element_bytes(buffer->dtype);
    if (r->kind == BUF_WEIGHT) {
        b->needs |= NEED_WEIGHTS;
        sb_printf(sb, "weights + %s", weight_name(b, r));
    } else {
        sb_puts(sb, memory_base(b, r));
        known += r->offset;
    }
    if (known)
        sb_printf(sb, " + %lld", (long long)known);
    for (; buffer->base; buffer = buffer->base)
        if (buffer->base_offset && buffer->base_offset->op != OP_CONST) {
            sb_printf(sb, " + %lld*", (long long)size);
            print_expr(sb, b, buffer->base_offset);
        }
}
