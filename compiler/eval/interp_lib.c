/* interp_lib.c - library kernels by name.  The interpreter calls the very functions that ship with
 * a bundle; they are judged by their own tests. */
#include "interp.h"

#include <string.h>

#include "igrt_lib.h"

static const struct {
    const char *name;
    LibFn fn;
} libs[] = {
#define LIB(name) {#name, igrt_lib_##name},
    LIB(compress) LIB(det) LIB(lookup) LIB(lsh_projection) LIB(nms) LIB(nonzero) LIB(readint)
        LIB(regex_match) LIB(skip_gram) LIB(string_concat) LIB(string_equal) LIB(string_normalize)
            LIB(string_split) LIB(text) LIB(topk) LIB(unique)
#undef LIB
};

LibFn lib_find(const char *name)
{
    for (size_t i = 0; i < sizeof libs / sizeof *libs; i++)
        if (strcmp(libs[i].name, name) == 0)
            return libs[i].fn;
    return NULL;
}
