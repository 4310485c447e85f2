/* target_wgsl.c - WebGPU: in pages, and by wgpu-native or Dawn in programs, on whatever GPU there
 * is.
 *
 * Figures are those of any GPU, and what a group may have is what every WebGPU device has: 256
 * items, 16 KB.  What goes beyond is named by the target, "wgsl:f16+subgroups32+items1024": a
 * bundle's init looks whether its adapter has that. */
#include <string.h>

#include "language_wgsl.h"
#include "targets.h"

typedef struct {
    const char *name, *extension;
    bool dot;
    int subgroup, items;
    const char *define;
} WgslFeature;

static const WgslFeature features[] = {
#define FEATURE(...) {__VA_ARGS__},
#include "wgsl_features.def"
};
enum { FEATURES = sizeof features / sizeof *features };

const char *wgsl_feature(int i)
{
    return i < FEATURES ? features[i].name : NULL;
}

static const WgslFeature *find_feature(const char *name, size_t n)
{
    for (int i = 0; i < FEATURES; i++)
        if (strlen(features[i].name) == n && !memcmp(features[i].name, name, n))
            return &features[i];
    return NULL;
}

const char *wgsl_tune(Target *t, Arena *a, const char *name, ingot_status *status)
{
    Extension *extension = NEWN(a, Extension, FEATURES + 1);
    int n = 0;
    (void)status;
    for (const char *at = name; *at;) {
        const size_t length = strcspn(at, "+");
        const WgslFeature *f = find_feature(at, length);
        if (!f) {
            StrBuf sb = {0};
            sb_printf(&sb, "WGSL has no feature '%.*s': there are", length < 40 ? (int)length : 40,
                      at);
            for (int i = 0; i < FEATURES; i++)
                sb_printf(&sb, "%s %s", i ? "," : "", features[i].name);
            return sb_take(&sb, a);
        }
        extension[n++] = (Extension){
            f->extension,
            arena_printf(a, "the adapter lacks %s; --target wgsl does without", f->extension)};
        t->machine.dot |= f->dot;
        t->machine.any_sign = t->machine.takes_fours = t->machine.dot;
        t->machine.subgroup = f->subgroup > t->machine.subgroup ? f->subgroup : t->machine.subgroup;
        t->machine.joins_subgroups = t->machine.subgroup > 0;
        t->machine.items = f->items > t->machine.items ? f->items : t->machine.items;
        if (f->define)
            t->features = f->define;
        at += length + (at[length] != 0);
        for (int i = 0; i + 1 < n; i++) /* said twice */
            n -= !strcmp(extension[i].name, f->extension);
    }
    extension[n] = (Extension){NULL, NULL};
    t->extensions = n ? extension : NULL;
    return NULL;
}

extern const Target target_wgsl;
const Target target_wgsl = {
    .name = "wgsl",
    .language = &wgsl_language,
    .gpu = true,
    .machine = {GPU_FIGURES, .items = 256, .shared = 16 << 10, .shared_static = 16 << 10,
                .place_word = 4},
    .runtime = "igrt_wg",
    .branches = 8,
    .tune = wgsl_tune,
    .machine_name = wgsl_feature,
};
