/*
 * gguf_facts.c - what the keys of a file say of its network.
 *
 * A key that is not known may change what is computed, so one is a fault, unless it says "none"
 * (0, false). So is one without which nothing is known. All faults are told.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gguf_model.h"

static const GgufArch archs[] = {
#define ARCH(name, pairs, gate, has, pattern, window, base, rope, scaled) \
    {#name, pairs, gate, has, pattern, window, base, rope, scaled},
#include "gguf_archs.def"
#undef ARCH
};

enum { ARCHS = sizeof archs / sizeof *archs, MOST = 1 << 24, MOST_FAULTS = 40 };

/* Keys of an architecture that are asked for below, or that say nothing of what is computed. */
static const char *const known[] = {
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "vocab_size",
    "tensor_data_layout",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.layer_norm_rms_epsilon",
    "attention.sliding_window",
    "attention.sliding_window_pattern",
    "attention.scale",
    "attn_logit_softcapping",
    "final_logit_softcapping",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.freq_base_swa",
    "rope.scale_linear",
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scaling.original_context_length",
    "rope.scaling.attn_factor",
    "rope.scaling.finetuned",
    "rope.scaling.yarn_ext_factor",
    "rope.scaling.yarn_attn_factor",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
    "embedding_scale",
    "residual_scale",
    "logit_scale",
};

void gguf_fault(GgufModel *m, ingot_status status, const char *name, const char *format, ...)
{
    char text[400], shown[GGUF_SHOWN];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (m->faults++ > MOST_FAULTS)
        return;
    if (name && m->shown)
        name = m->shown(m, name, shown);
    ingot_set_origin(m->c, NULL, NULL);
    if (m->faults > MOST_FAULTS)
        ingot_error(m->c, status, "there are more faults");
    else if (name)
        ingot_error(m->c, status, "'%s': %s", name, text);
    else
        ingot_error(m->c, status, "%s", text);
}

/* The value of a key of the architecture: ".block_count"; NULL: there is none. */
static const ingot_gguf_value *find_key(GgufModel *m, const char *name, char key[128])
{
    snprintf(key, 128, "%s.%s", m->facts.arch->name, name);
    return ingot_gguf_key(m->file, key);
}

/* One number, or an array of equal ones (a layer each). */
static double number_key(GgufModel *m, const char *name, double none)
{
    char key[128];
    const ingot_gguf_value *v = find_key(m, name, key);
    double x = none, other;
    if (!v)
        return none;
    bool good = v->count > 0;
    for (size_t i = 0; good && i < v->count; i++) {
        good = ingot_gguf_number(v, i, i ? &other : &x) && isfinite(x);
        if (good && i && other != x) {
            gguf_fault(m, INGOT_UNSUPPORTED, key, "layers that differ in it are not supported");
            return x;
        }
    }
    if (good)
        return x;
    gguf_fault(m, INGOT_INVALID, key, "its value is no number");
    return none;
}

/* A whole number from `least` on; none < least: it has to be there. */
static int64_t count_key(GgufModel *m, const char *name, int64_t least, int64_t none)
{
    char key[128];
    double x = number_key(m, name, (double)none);
    if (x >= (double)least && x <= MOST && x == floor(x))
        return (int64_t)x;
    const bool there = find_key(m, name, key) != NULL;
    if (there)
        gguf_fault(m, INGOT_INVALID, key, "its value is %g, not a whole number from %lld to %d", x,
                   (long long)least, MOST);
    else
        gguf_fault(m, INGOT_INVALID, key, "the file lacks this key");
    m->unsized = true;
    return least;
}

static bool text_is(ingot_gguf_bytes text, const char *what)
{
    return text.len == strlen(what) && !memcmp(text.at, what, text.len);
}

static void read_arch(GgufModel *m)
{
    const ingot_gguf_value *v = ingot_gguf_key(m->file, "general.architecture");
    ingot_gguf_bytes name = ingot_gguf_text(v, 0);
    char list[256] = "";
    if (!name.at) {
        gguf_fault(m, INGOT_INVALID, "general.architecture", "the file lacks this key");
        return;
    }
    for (int i = 0; i < ARCHS; i++) {
        if (text_is(name, archs[i].name)) {
            m->facts.arch = &archs[i];
            m->facts.pairs = m->folder ? HALVES : archs[i].pairs;
            return;
        }
        size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", archs[i].name);
    }
    gguf_fault(m, INGOT_UNSUPPORTED, "general.architecture",
               "models of architecture '%.*s' are not supported; those that are: %s",
               name.len < 64 ? (int)name.len : 64, name.at, list);
}

static bool says_none(const ingot_gguf_value *v)
{
    double x;
    return !v->is_array && ingot_gguf_number(v, 0, &x) && x == 0;
}

static void refuse_unknown_keys(GgufModel *m)
{
    const size_t len = strlen(m->facts.arch->name);
    const ingot_gguf_value *v;
    for (size_t i = 0; (v = ingot_gguf_key_get(m->file, i)); i++) {
        if (strncmp(v->key, m->facts.arch->name, len) || v->key[len] != '.' || says_none(v))
            continue;
        bool found = false;
        for (size_t k = 0; k < sizeof known / sizeof *known && !found; k++)
            found = !strcmp(v->key + len + 1, known[k]);
        if (!found && !strncmp(v->key + len + 1, "expert_", 7))
            gguf_fault(m, INGOT_UNSUPPORTED, v->key, "networks with experts are not supported");
        else if (!found)
            gguf_fault(m, INGOT_UNSUPPORTED, v->key,
                       "this key is not known, so what it changes is not either");
    }
}

static void read_rope(GgufModel *m)
{
    static const char *const names[] = {"none", "linear", "yarn", "longrope"};
    Facts *f = &m->facts;
    RopeFacts *r = &f->rope;
    char key[128];
    const ingot_gguf_value *v = find_key(m, "rope.scaling.type", key);
    r->turned = count_key(m, "rope.dimension_count", 2, f->head);
    r->base = number_key(m, "rope.freq_base", 10000);
    r->window_base =
        number_key(m, "rope.freq_base_swa", f->arch->window_base ? f->arch->window_base : r->base);
    r->factor = number_key(m, "rope.scaling.factor", number_key(m, "rope.scale_linear", 0));
    r->original = number_key(m, "rope.scaling.original_context_length", (double)f->context);
    r->strength = number_key(m, "rope.scaling.attn_factor", 1);
    r->extrapolated = number_key(m, "rope.scaling.yarn_ext_factor", 1);
    r->beta_fast = number_key(m, "rope.scaling.yarn_beta_fast", 32);
    r->beta_slow = number_key(m, "rope.scaling.yarn_beta_slow", 1);
    r->scaling = ROPE_LINEAR;
    r->none = f->arch->has & TURNS_BY_KEY && number_key(m, "rope.scaling.finetuned", 1) == 0;
    r->window_scaled = f->arch->window_base == 0;
    if (r->factor == 0)
        r->factor = 1;
    if (r->turned % 2 || r->turned > f->head || !(r->base > 0) || !(r->window_base > 0) ||
        !(r->factor > 0) || !(r->original > 0))
        gguf_fault(m, INGOT_INVALID, NULL,
                   "rope of %lld of %lld elements, base %g, factor %g, context %g is "
                   "none",
                   (long long)r->turned, (long long)f->head, r->base, r->factor, r->original);
    for (int i = 0; v && i < 4; i++)
        if (text_is(ingot_gguf_text(v, 0), names[i])) {
            r->scaling = (RopeScaling)i;
            return;
        }
    const ingot_gguf_bytes told = ingot_gguf_text(v, 0);
    if (v)
        gguf_fault(m, INGOT_UNSUPPORTED, key,
                   "rope scaling '%.*s' is not supported, only none, linear, yarn and longrope",
                   told.len < 40 ? (int)told.len : 40, told.at ? told.at : "");
}

static void read_windows(GgufModel *m)
{
    Facts *f = &m->facts;
    char key[128];
    const ingot_gguf_value *v = find_key(m, "attention.sliding_window_pattern", key);
    int64_t of_pattern = -1;
    f->window = count_key(m, "attention.sliding_window", 0, f->arch->window);
    f->pattern = f->arch->pattern;
    if (v && v->is_array && v->type == INGOT_GGUF_BOOL_VALUE && v->count >= (size_t)f->layers)
        f->pattern_list = v;
    else if (v)
        of_pattern = count_key(m, "attention.sliding_window_pattern", 0, 1);
    if (of_pattern == 1) /* the last of each one sees all, so all do; 0: none does */
        f->window = 0;
    else if (of_pattern >= 0)
        f->pattern = of_pattern ? (int)of_pattern : 1;
    if (!f->arch->pattern && f->window && !v)
        gguf_fault(m, INGOT_UNSUPPORTED, key,
                   "the file lacks this key: which layers have a window of %lld is "
                   "not known",
                   (long long)f->window);
}

static void read_scales(GgufModel *m)
{
    Facts *f = &m->facts;
    const bool by_keys = f->arch->has & SCALES;
    const double width = f->arch->width_scaled == f->layers && f->layers
                             ? (double)(f->width / f->heads)
                             : (double)f->head;
    f->score_scale = by_keys ? number_key(m, "attention.scale", 0) : 0;
    if (f->score_scale == 0)
        f->score_scale = 1 / sqrt(width);
    f->score_cap = number_key(m, "attn_logit_softcapping", f->arch->has & CAPS ? 50 : 0);
    f->logit_cap = number_key(m, "final_logit_softcapping", f->arch->has & CAPS ? 30 : 0);
    f->embedding_scale = f->arch->has & ROOT_OF_WIDTH ? sqrt((double)f->width) : 1;
    if (by_keys) {
        f->embedding_scale = number_key(m, "embedding_scale", 0);
        f->residual_scale = number_key(m, "residual_scale", 0);
        f->logit_scale = number_key(m, "logit_scale", 0);
    }
    f->embedding_scale = f->embedding_scale != 0 ? f->embedding_scale : 1;
    f->residual_scale = f->residual_scale != 0 ? f->residual_scale : 1;
    f->logit_scale = f->logit_scale != 0 ? f->logit_scale : 1;
}

bool gguf_read_facts(GgufModel *m)
{
    Facts *f = &m->facts;
    read_arch(m);
    if (!f->arch)
        return false;
    refuse_unknown_keys(m);
    f->layers = count_key(m, "block_count", 1, 0);
    f->width = count_key(m, "embedding_length", 1, 0);
    f->ffn = count_key(m, "feed_forward_length", 1, 0);
    f->context = count_key(m, "context_length", 1, 0);
    f->heads = count_key(m, "attention.head_count", 1, 0);
    f->kv_heads = count_key(m, "attention.head_count_kv", 1, f->heads);
    f->head = count_key(m, "attention.key_length", 1, f->width / f->heads);
    f->eps = number_key(m, "attention.layer_norm_rms_epsilon", -1);
    if (!(f->eps >= 0))
        gguf_fault(m, INGOT_INVALID, NULL,
                   "key '%s.attention.layer_norm_rms_epsilon' is missing or negative",
                   f->arch->name);
    if (f->heads % f->kv_heads)
        gguf_fault(m, INGOT_INVALID, NULL, "its %lld heads are no multiple of its %lld key heads",
                   (long long)f->heads, (long long)f->kv_heads);
    if (count_key(m, "attention.value_length", 1, f->head) != f->head)
        gguf_fault(m, INGOT_UNSUPPORTED, NULL,
                   "values of another length than keys are not supported");
    read_rope(m);
    read_windows(m);
    read_scales(m);
    return !m->unsized;
}
