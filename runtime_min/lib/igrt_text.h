/*
 * igrt_text.h - what the library kernels on strings share: room for the text that they write, and
 * UTF-8.
 *
 * A kernel that makes strings has two outputs: the pointers, and the bytes they point to, one
 * string after another, each ended by a zero. The bytes are a u8 tensor of the size that the model
 * was compiled with; text beyond it is IGRT_ERR_TEXT. A NULL string is an empty one.
 */
#ifndef IGRT_TEXT_H
#define IGRT_TEXT_H

#include "igrt_lib.h"

typedef struct igrt_text {
    char *at, *end;
} igrt_text;

IGRT_INLINE igrt_text igrt_text_begin(const igrt_tensor *bytes)
{
    char *first = (char *)bytes->data;
    const igrt_text text = {first, first + igrt_lib_numel(bytes, 0, bytes->rank)};
    return text;
}

/* Appends n bytes; 0 if they find no room. */
IGRT_INLINE int igrt_text_add(igrt_text *text, const char *s, size_t n)
{
    if (n > (size_t)(text->end - text->at))
        return 0;
    memcpy(text->at, s, n);
    text->at += n;
    return 1;
}

IGRT_INLINE const char *igrt_text_of(const char *s)
{
    return s ? s : "";
}

/* The character at *s, which is moved past it; a byte that is no UTF-8 is -1 - byte. */
int32_t igrt_text_next(const char **s);
/* The UTF-8 of what igrt_text_next gave, in out; its length, 1 to 4. */
int igrt_text_encode(int32_t c, char out[4]);
/* The other case of a character; itself if it has none. */
int32_t igrt_text_lower(int32_t c);
int32_t igrt_text_upper(int32_t c);
/* What Python and Unicode call white space. */
int igrt_text_is_space(int32_t c);

#endif
