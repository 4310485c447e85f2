/*
 * hf_config.c - config.json as the keys of a GGUF file.
 *
 * What a key that is not known changes is not known either: it is a fault, unless it says "none"
 * (null, false, 0, "", [], {}). So is one without which nothing is known.
 */
#include <math.h>
#include <string.h>

#include "hf_folder.h"

/* model_type -> architecture, and what its files leave out. */
static const struct {
    const char *type, *arch;
    bool tied; /* head and embedding are one where nothing is said */
} model_types[] = {
    {"llama", "llama", false},       {"mistral", "llama", false}, {"qwen2", "qwen2", false},
    {"qwen3", "qwen3", false},       {"gemma", "gemma", true},    {"gemma2", "gemma2", true},
    {"gemma3_text", "gemma3", true}, {"phi3", "phi3", false},     {"smollm3", "smollm3", true},
    {"granite", "granite", false},
};

typedef enum { WHOLE, REAL, ELSEWHERE } ConfigKind;

/* Keys as they are; ELSEWHERE: read below, or they say nothing of what is computed. */
static const struct {
    const char *name;
    ConfigKind kind;
    const char *key;
} config_keys[] = {
    {"num_hidden_layers", WHOLE, "block_count"},
    {"max_position_embeddings", WHOLE, "context_length"},
    {"hidden_size", WHOLE, "embedding_length"},
    {"intermediate_size", WHOLE, "feed_forward_length"},
    {"num_attention_heads", WHOLE, "attention.head_count"},
    {"num_key_value_heads", WHOLE, "attention.head_count_kv"},
    {"head_dim", WHOLE, "attention.key_length"},
    {"rms_norm_eps", REAL, "attention.layer_norm_rms_epsilon"},
    {"rope_theta", REAL, "rope.freq_base"},
    {"rope_local_base_freq", REAL, "rope.freq_base_swa"},
    {"attn_logit_softcapping", REAL, "attn_logit_softcapping"},
    {"final_logit_softcapping", REAL, "final_logit_softcapping"},
    {"embedding_multiplier", REAL, "embedding_scale"},
    {"residual_multiplier", REAL, "residual_scale"},
    {"attention_multiplier", REAL, "attention.scale"},
    {"logits_scaling", REAL, "logit_scale"},
    {"sliding_window", ELSEWHERE, "attention.sliding_window"},
    {"original_max_position_embeddings", ELSEWHERE, "rope.scaling.original_context_length"},
    {"partial_rotary_factor", ELSEWHERE, "rope.dimension_count"},
    {"rope_scaling", ELSEWHERE, "rope.scaling.type"},
    {"rope_parameters", ELSEWHERE, NULL},
    {"layer_types", ELSEWHERE, "attention.sliding_window_pattern"},
    {"sliding_window_pattern", ELSEWHERE, NULL},
    {"_sliding_window_pattern", ELSEWHERE, NULL},
    {"use_sliding_window", ELSEWHERE, NULL},
    {"max_window_layers", ELSEWHERE, NULL},
    {"query_pre_attn_scalar", ELSEWHERE, NULL},
    {"hidden_act", ELSEWHERE, NULL},
    {"hidden_activation", ELSEWHERE, NULL},
    {"no_rope_layers", ELSEWHERE, NULL},
    {"no_rope_layer_interval", ELSEWHERE, NULL},
    {"tie_word_embeddings", ELSEWHERE, NULL},
    {"attention_bias", ELSEWHERE, NULL}, /* the tensors tell */
    {"mlp_bias", ELSEWHERE, NULL},
    {"model_type", ELSEWHERE, "general.architecture"},
    {"vocab_size", ELSEWHERE, NULL},
    {"architectures", ELSEWHERE, NULL},
    {"auto_map", ELSEWHERE, NULL},
    {"torch_dtype", ELSEWHERE, NULL},
    {"dtype", ELSEWHERE, NULL},
    {"transformers_version", ELSEWHERE, NULL},
    {"transformers.js_config", ELSEWHERE, NULL},
    {"unsloth_version", ELSEWHERE, NULL},
    {"_name_or_path", ELSEWHERE, NULL},
    {"use_cache", ELSEWHERE, NULL},
    {"cache_implementation", ELSEWHERE, NULL},
    {"_attn_implementation", ELSEWHERE, NULL},
    {"initializer_range", ELSEWHERE, NULL},
    {"bos_token_id", ELSEWHERE, NULL},
    {"eos_token_id", ELSEWHERE, NULL},
    {"pad_token_id", ELSEWHERE, NULL},
    {"pretraining_tp", ELSEWHERE, NULL},
    {"is_llama_config", ELSEWHERE, NULL},
    {"attention_dropout", ELSEWHERE, NULL},
    {"resid_pdrop", ELSEWHERE, NULL},
    {"embd_pdrop", ELSEWHERE, NULL},
};

enum { CONFIG_KEYS = sizeof config_keys / sizeof *config_keys };

const char *hf_config_name(const char *name)
{
    for (int i = 0; i < CONFIG_KEYS; i++)
        if (config_keys[i].key && !strcmp(config_keys[i].key, name))
            return config_keys[i].name;
    return NULL;
}

/* NULL: not there, or null. */
static const Json *find(const Json *object, const char *name)
{
    const Json *v = json_member(object, name);
    return v && v->kind != JSON_NULL ? v : NULL;
}

static bool text_is(const Json *v, const char *what)
{
    return !strcmp(json_text(v, ""), what);
}

static double number(HfFolder *h, const Json *object, const char *name, double none)
{
    const Json *v = find(object, name);
    if (v && v->kind != JSON_NUMBER)
        gguf_fault(h->m, INGOT_INVALID, name, "its value is no number");
    return json_number(v, none);
}

/* As a whole number that a file's key may be: what is none is told by who reads the key. */
static void put_whole(HfFolder *h, const char *key, double x)
{
    if (x == floor(x) && fabs(x) < 1e15)
        hf_key_whole(h, key, (int64_t)x);
    else
        hf_key_real(h, key, x);
}

static bool says_none(const Json *v)
{
    return v->kind == JSON_NULL || v->kind == JSON_FALSE ||
           (v->kind == JSON_NUMBER && v->number == 0) || (v->kind == JSON_STRING && !*v->text) ||
           ((v->kind == JSON_LIST || v->kind == JSON_OBJECT) && !v->item);
}

static void read_keys(HfFolder *h)
{
    for (const Json *v = h->config->item; v; v = v->next) {
        int i = 0;
        while (i < CONFIG_KEYS && strcmp(config_keys[i].name, v->name) != 0)
            i++;
        for (const Json *w = h->config->item; w != v; w = w->next)
            if (!strcmp(w->name, v->name)) {
                gguf_fault(h->m, INGOT_INVALID, v->name, "this key is there twice");
                return;
            }
        if (i == CONFIG_KEYS && !says_none(v))
            gguf_fault(h->m, INGOT_UNSUPPORTED, v->name,
                       "this key is not known, so what it changes is not either");
        if (i == CONFIG_KEYS || config_keys[i].kind == ELSEWHERE || v->kind == JSON_NULL)
            continue;
        if (v->kind != JSON_NUMBER)
            gguf_fault(h->m, INGOT_INVALID, v->name, "its value is no number");
        else if (config_keys[i].kind == WHOLE)
            put_whole(h, config_keys[i].key, v->number);
        else
            hf_key_real(h, config_keys[i].key, v->number);
    }
}

/* ---- rope ------------------------------------------------------------------------------------ */

static double head_size(HfFolder *h)
{
    const double heads = number(h, h->config, "num_attention_heads", 1);
    return number(h, h->config, "head_dim",
                  floor(number(h, h->config, "hidden_size", 0) / (heads >= 1 ? heads : 1)));
}

/* Llama 3: slow angles are divided by the factor, fast ones are as they are, between them it
 * changes by the length of the wave. */
static void llama3_divisors(HfFolder *h, const Json *rope, double base, int64_t turned)
{
    const double factor = number(h, rope, "factor", 8), low = number(h, rope, "low_freq_factor", 1),
                 high = number(h, rope, "high_freq_factor", 4),
                 context = number(h, rope, "original_max_position_embeddings", 8192);
    float *divisor = NEWN(h->a, float, turned / 2 + 1);
    if (!(factor > 0 && low > 0 && high > low && context > 0 && base > 0)) {
        gguf_fault(h->m, INGOT_INVALID, "rope_scaling", "factors %g, %g to %g, context %g are none",
                   factor, low, high, context);
        return;
    }
    for (int64_t i = 0; i < turned / 2; i++) {
        const double wave = 2 * 3.14159265358979323846 * pow(base, 2 * (double)i / (double)turned),
                     mix = (context / wave - low) / (high - low);
        divisor[i] = (float)(wave < context / high  ? 1
                             : wave > context / low ? factor
                                                    : 1 / ((1 - mix) / factor + mix));
    }
    hf_make_tensor(h, "rope_freqs.weight", divisor, turned / 2);
}

static void listed_divisors(HfFolder *h, const Json *rope, const char *name, const char *tensor,
                            int64_t turned)
{
    const Json *list = find(rope, name);
    float *divisor = NEWN(h->a, float, turned / 2 + 1);
    int64_t n = 0;
    if (!list || list->kind != JSON_LIST) {
        gguf_fault(h->m, INGOT_INVALID, "rope_scaling", "'%s' is no list", name);
        return;
    }
    for (const Json *v = list->item; v; v = v->next, n++)
        if (n < turned / 2)
            divisor[n] = (float)json_number(v, 0);
    for (int64_t i = 0; i < n && i < turned / 2; i++)
        if (!(divisor[i] > 0))
            n = -1;
    if (n != turned / 2)
        gguf_fault(h->m, INGOT_INVALID, "rope_scaling",
                   "'%s' has to be %lld numbers above 0, one for each pair", name,
                   (long long)(turned / 2));
    else
        hf_make_tensor(h, tensor, divisor, n);
}

/* Of models with a short and a long list: sizes of cos and sin, and from which context on. */
static void read_longrope(HfFolder *h, const Json *rope, int64_t turned)
{
    const double most = number(h, h->config, "max_position_embeddings", 1),
                 original = number(h, h->config, "original_max_position_embeddings",
                                   number(h, rope, "original_max_position_embeddings", most)),
                 longer = number(h, rope, "factor", most / original);
    if (!(original > 1)) {
        gguf_fault(h->m, INGOT_INVALID, "original_max_position_embeddings",
                   "a context of %g is none", original);
        return;
    }
    listed_divisors(h, rope, "long_factor", "rope_factors_long.weight", turned);
    listed_divisors(h, rope, "short_factor", "rope_factors_short.weight", turned);
    put_whole(h, "rope.scaling.original_context_length", original);
    hf_key_real(h, "rope.scaling.attn_factor",
                number(h, rope, "attention_factor",
                       longer > 1 ? sqrt(1 + log(longer) / log(original)) : 1));
}

/* Of YaRN: the size of cos and sin for contexts that are longer by the factor. */
static double yarn_size(double factor, double weight)
{
    return factor > 1 ? 1 + 0.1 * weight * log(factor) : 1;
}

static void read_yarn(HfFolder *h, const Json *rope)
{
    const double factor = number(h, rope, "factor", 1), told = number(h, rope, "mscale", 0),
                 all = number(h, rope, "mscale_all_dim", 0), size = yarn_size(factor, 1),
                 by_scales = told != 0 && all != 0
                                 ? yarn_size(factor, told) / yarn_size(factor, all)
                                 : size,
                 wanted = number(h, rope, "attention_factor", by_scales);
    const Json *whole = find(rope, "truncate");
    if (wanted != size) /* readers of the file multiply by `size` themselves */
        hf_key_real(h, "rope.scaling.attn_factor", wanted / size);
    if (find(rope, "beta_fast"))
        hf_key_real(h, "rope.scaling.yarn_beta_fast", number(h, rope, "beta_fast", 0));
    if (find(rope, "beta_slow"))
        hf_key_real(h, "rope.scaling.yarn_beta_slow", number(h, rope, "beta_slow", 0));
    if (whole && whole->kind != JSON_TRUE)
        gguf_fault(h->m, INGOT_UNSUPPORTED, "rope_scaling",
                   "'truncate' of type 'yarn' may only be true");
}

/* What a key that is not known changes where it is false or 0 is not known either: "truncate" is
 * true where it is not there. */
static void refuse_others(HfFolder *h, const Json *rope, const char *type)
{
    static const char *const known[] = {"rope_type",
                                        "type",
                                        "rope_theta",
                                        "factor",
                                        "attention_factor",
                                        "low_freq_factor",
                                        "high_freq_factor",
                                        "original_max_position_embeddings",
                                        "beta_fast",
                                        "beta_slow",
                                        "mscale",
                                        "mscale_all_dim",
                                        "truncate",
                                        "long_factor",
                                        "short_factor",
                                        "partial_rotary_factor",
                                        NULL};
    for (const Json *v = rope->item; v; v = v->next) {
        int i = 0;
        while (known[i] && strcmp(known[i], v->name) != 0)
            i++;
        if (!known[i] && v->kind != JSON_NULL)
            gguf_fault(h->m, INGOT_UNSUPPORTED, "rope_scaling", "'%s' of type '%s' is not known",
                       v->name, type);
    }
}

static const char *rope_type(const Json *rope)
{
    return json_text(find(rope, "rope_type"), json_text(find(rope, "type"), "default"));
}

/* Gemma 3 as it is written today: {"full_attention": {..}, "sliding_attention": {..}}. The first is
 * what there is to read; layers with a window have an own base, and angles that are not scaled. */
static const Json *rope_of_full_layers(HfFolder *h, const Json *rope)
{
    const Json *full = find(rope, "full_attention"), *window = find(rope, "sliding_attention");
    if (strcmp(h->arch, "gemma3") != 0 || !full || full->kind != JSON_OBJECT)
        return rope;
    for (const Json *v = rope->item; v; v = v->next)
        if (v != full && v != window && v->kind != JSON_NULL)
            gguf_fault(h->m, INGOT_UNSUPPORTED, "rope_parameters", "'%s' is not known", v->name);
    if (!window)
        return full;
    refuse_others(h, window, rope_type(window));
    if (strcmp(rope_type(window), "default") != 0 ||
        number(h, window, "partial_rotary_factor", 1) != 1)
        gguf_fault(h->m, INGOT_UNSUPPORTED, "rope_parameters",
                   "layers with a window may only have rope of type 'default'");
    if (find(window, "rope_theta"))
        hf_key_real(h, "rope.freq_base_swa", number(h, window, "rope_theta", 0));
    return full;
}

static void read_rope(HfFolder *h)
{
    const Json *scaling = find(h->config, "rope_scaling"),
               *told = scaling ? scaling : find(h->config, "rope_parameters"),
               *rope = rope_of_full_layers(h, told);
    const double part = number(h, h->config, "partial_rotary_factor",
                               number(h, rope, "partial_rotary_factor", 1)),
                 size = head_size(h);
    const double base = number(h, h->config, "rope_theta", number(h, rope, "rope_theta", 10000));
    if (!(part > 0 && part <= 1 && size >= 2 && size <= 65536)) {
        gguf_fault(h->m, INGOT_INVALID, "head_dim", "rope of %g of %g elements is none", part,
                   size);
        return;
    }
    const int64_t turned = (int64_t)(part * size);
    if (part != 1)
        hf_key_whole(h, "rope.dimension_count", turned);
    if (!find(h->config, "rope_theta") && find(rope, "rope_theta"))
        hf_key_real(h, "rope.freq_base", base);
    if (!rope)
        return;
    const char *type = rope_type(rope);
    refuse_others(h, rope, type);
    if (!strcmp(type, "llama3")) {
        llama3_divisors(h, rope, base, turned);
    } else if (!strcmp(type, "longrope") || !strcmp(type, "su")) {
        read_longrope(h, rope, turned);
    } else if (!strcmp(type, "linear") || !strcmp(type, "yarn")) {
        hf_key_text(h, "rope.scaling.type", type);
        hf_key_real(h, "rope.scaling.factor", number(h, rope, "factor", 1));
        if (find(rope, "original_max_position_embeddings"))
            put_whole(h, "rope.scaling.original_context_length",
                      number(h, rope, "original_max_position_embeddings", 0));
        if (!strcmp(type, "yarn"))
            read_yarn(h, rope);
    } else if (strcmp(type, "default") != 0) {
        gguf_fault(h->m, INGOT_UNSUPPORTED, "rope_scaling",
                   "'%.40s' is not supported, only default, linear, yarn, llama3 and longrope",
                   type);
    }
}

/* ---- windows, layers that differ --------------------------------------------------------------
 */

static void read_windows(HfFolder *h)
{
    const Json *types = find(h->config, "layer_types"),
               *use = find(h->config, "use_sliding_window");
    const double window = number(h, h->config, "sliding_window", 0);
    const bool qwen = !strncmp(h->arch, "qwen", 4);
    int64_t n = 0, some = 0;
    for (const Json *v = types ? types->item : NULL; v; v = v->next, n++) {
        some += text_is(v, "sliding_attention");
        if (!text_is(v, "sliding_attention") && !text_is(v, "full_attention"))
            gguf_fault(h->m, INGOT_UNSUPPORTED, "layer_types",
                       "layers of '%.40s' are not supported", json_text(v, "?"));
    }
    if (!window || (use && use->kind != JSON_TRUE) || (types && !some) || (qwen && !use))
        return;
    put_whole(h, "attention.sliding_window", window);
    if (types) {
        hf_key_array(h, "attention.sliding_window_pattern", INGOT_GGUF_BOOL_VALUE, (uint64_t)n);
        for (const Json *v = types->item; v; v = v->next) {
            const uint8_t in_window = text_is(v, "sliding_attention");
            hf_put(h, &in_window, 1);
        }
        return;
    }
    if (qwen)
        gguf_fault(h->m, INGOT_UNSUPPORTED, "use_sliding_window",
                   "which layers have a window is known of files with 'layer_types' alone");
    const Json *pattern = find(h->config, "sliding_window_pattern");
    pattern = pattern ? pattern : find(h->config, "_sliding_window_pattern");
    if (pattern)
        put_whole(h, "attention.sliding_window_pattern", json_number(pattern, -1));
    else if (!strcmp(h->arch, "llama")) /* Mistral: all layers */
        hf_key_whole(h, "attention.sliding_window_pattern", 0);
}

/* SmolLM3: each fourth layer has no rope; other lists are other networks. */
static void read_rope_layers(HfFolder *h)
{
    const Json *list = find(h->config, "no_rope_layers");
    int64_t layer = 1;
    const bool four = !strcmp(h->arch, "smollm3");
    bool same = number(h, h->config, "no_rope_layer_interval", four ? 4 : 0) == (four ? 4 : 0);
    for (const Json *v = list ? list->item : NULL; v; v = v->next, layer++)
        same = same && json_number(v, -1) == (four && layer % 4 == 0 ? 0 : 1);
    if (!same)
        gguf_fault(h->m, INGOT_UNSUPPORTED, "no_rope_layers",
                   four ? "other layers without rope than each fourth are not supported"
                        : "a model of this type has no layers without rope");
}

static void read_activation(HfFolder *h)
{
    const bool gemma = !strncmp(h->arch, "gemma", 5);
    const Json *v = find(h->config, "hidden_activation");
    v = v ? v : find(h->config, "hidden_act");
    /* older files of Gemma say gelu, and mean its approximation */
    if (v && !text_is(v, gemma ? "gelu_pytorch_tanh" : "silu") && !(gemma && text_is(v, "gelu")))
        gguf_fault(h->m, INGOT_UNSUPPORTED, v->name, "'%.40s' is not supported, only '%s'",
                   json_text(v, "?"), gemma ? "gelu_pytorch_tanh" : "silu");
}

/* Scores of Gemma are divided by the root of this number, which a GGUF file tells by its size. */
static void read_score_scale(HfFolder *h)
{
    const Json *v = find(h->config, "query_pre_attn_scalar");
    const double layers = number(h, h->config, "num_hidden_layers", 0),
                 width = number(h, h->config, "hidden_size", 0),
                 heads = number(h, h->config, "num_attention_heads", 1);
    const bool wide = (!strcmp(h->arch, "gemma2") && layers == 46) ||
                      (!strcmp(h->arch, "gemma3") && layers == 62);
    if (v && json_number(v, 0) != (wide ? floor(width / heads) : head_size(h)))
        gguf_fault(h->m, INGOT_UNSUPPORTED, "query_pre_attn_scalar",
                   "%g is not supported for heads of %g elements", json_number(v, 0), head_size(h));
}

static bool read_type(HfFolder *h)
{
    char list[256] = "";
    const char *type = json_text(find(h->config, "model_type"), "");
    for (size_t i = 0; i < sizeof model_types / sizeof *model_types; i++) {
        if (!strcmp(type, model_types[i].type)) {
            const Json *tied = find(h->config, "tie_word_embeddings");
            h->arch = model_types[i].arch;
            h->tied = tied ? tied->kind == JSON_TRUE : model_types[i].tied;
            return true;
        }
        const size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", model_types[i].type);
    }
    gguf_fault(
        h->m, INGOT_UNSUPPORTED, "model_type",
        "models of type '%.64s' are not supported; those that are: %s. Others become ONNX first: "
        "optimum-cli export onnx (docs/from_frameworks.md)",
        type, list);
    return false;
}

bool hf_read_config(HfFolder *h)
{
    if (h->config->kind != JSON_OBJECT) {
        gguf_fault(h->m, INGOT_INVALID, NULL, "it is no JSON object");
        return false;
    }
    if (!read_type(h))
        return false;
    hf_key_text(h, "general.architecture", h->arch);
    read_keys(h);
    if (!find(h->config, "head_dim") &&
        (!strncmp(h->arch, "gemma", 5) || !strcmp(h->arch, "qwen3")))
        gguf_fault(h->m, INGOT_INVALID, "head_dim", "the file lacks this key");
    read_rope(h);
    read_windows(h);
    read_rope_layers(h);
    read_activation(h);
    read_score_scale(h);
    return !h->m->faults;
}
