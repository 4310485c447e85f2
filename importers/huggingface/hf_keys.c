/*
 * hf_keys.c - keys and values written as a GGUF file has them, for those who read such files.
 */
#include "hf_folder.h"

#include <string.h>

void hf_put(HfFolder *h, const void *data, size_t bytes)
{
    sb_write(&h->keys, data, bytes);
}

void hf_put_text(HfFolder *h, const char *first, const char *second)
{
    const uint64_t len = strlen(first) + strlen(second);
    hf_put(h, &len, sizeof len);
    hf_put(h, first, strlen(first));
    hf_put(h, second, strlen(second));
}

static void begin(HfFolder *h, const char *name, uint32_t type)
{
    if (strchr(name, '.') && (!strncmp(name, "tokenizer.", 10) || !strncmp(name, "general.", 8)))
        hf_put_text(h, name, "");
    else
        hf_put_text(h, arena_printf(h->a, "%s.", h->arch), name);
    hf_put(h, &type, sizeof type);
    h->n_keys++;
}

void hf_key_whole(HfFolder *h, const char *name, int64_t v)
{
    begin(h, name, INGOT_GGUF_I64_VALUE);
    hf_put(h, &v, sizeof v);
}

/* f32, as llama.cpp's files have such numbers. */
void hf_key_real(HfFolder *h, const char *name, double v)
{
    const float f = (float)v;
    begin(h, name, INGOT_GGUF_F32_VALUE);
    hf_put(h, &f, sizeof f);
}

void hf_key_bool(HfFolder *h, const char *name, bool v)
{
    const uint8_t b = v;
    begin(h, name, INGOT_GGUF_BOOL_VALUE);
    hf_put(h, &b, sizeof b);
}

void hf_key_text(HfFolder *h, const char *name, const char *v)
{
    begin(h, name, INGOT_GGUF_TEXT_VALUE);
    hf_put_text(h, v, "");
}

void hf_key_array(HfFolder *h, const char *name, ingot_gguf_value_type type, uint64_t n)
{
    const uint32_t of = type;
    begin(h, name, INGOT_GGUF_ARRAY_VALUE);
    hf_put(h, &of, sizeof of);
    hf_put(h, &n, sizeof n);
}

ingot_gguf *hf_header(HfFolder *h, const char *path, char *why, size_t room)
{
    const uint32_t version = 3;
    const uint64_t tensors = 0;
    StrBuf all = {0};
    sb_write(&all, "GGUF", 4);
    sb_write(&all, &version, sizeof version);
    sb_write(&all, &tensors, sizeof tensors);
    sb_write(&all, &h->n_keys, sizeof h->n_keys);
    sb_write(&all, h->keys.data ? h->keys.data : "", h->keys.len);
    sb_free(&h->keys);
    const size_t len = all.len;
    void *at = arena_alloc(h->a, len);
    memcpy(at, all.data, len);
    sb_free(&all);
    return ingot_gguf_open_memory(path, at, len, why, room);
}
