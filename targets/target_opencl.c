/* target_opencl.c - OpenCL C 1.2.  A work item computes an element, or a tile of them (BIND).
 *
 * What goes beyond 1.2 is named by the target, "opencl:dot8+subgroups32": kernels then have other
 * forms, and a bundle's init looks whether its device has the extensions. */
#include <string.h>

#include "language_c.h"
#include "targets.h"

#define PRAGMA "#pragma OPENCL FP_CONTRACT OFF\n"

/* What the text of kernels then begins with. */
#define HALF "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n#define IGRT_HALF\n"
#define SUBGROUP                                                               \
    "#undef IGRT_SUBGROUP\n#ifdef cl_intel_required_subgroup_size\n"           \
    "#define IGRT_SUBGROUP(n) __attribute__((intel_reqd_sub_group_size(n)))\n" \
    "#else\n#define IGRT_SUBGROUP(n)\n#endif\n"

const OpenclFeature opencl_features[] = {
#define FEATURE(...) {__VA_ARGS__},
#include "opencl_features.def"
    {NULL, NULL, false, false, 0, NULL}};
enum { FEATURES = sizeof opencl_features / sizeof *opencl_features - 1 };

const char *opencl_feature(int i)
{
    return i ? opencl_features[i - 1].name : "native";
}

static const char *no_feature(Arena *a, const char *name)
{
    const int length = (int)strcspn(name, "+");
    StrBuf sb = {0};
    sb_printf(&sb, "OpenCL has no feature '%.*s': there are", length < 40 ? length : 40, name);
    for (int i = 0; opencl_feature(i); i++)
        sb_printf(&sb, "%s %s", i ? "," : "", opencl_feature(i));
    return sb_take(&sb, a);
}

/* The feature whose name begins a list of them, and where the next name is; NULL: there is none. */
static const OpenclFeature *next_feature(const char **list)
{
    const size_t length = strcspn(*list, "+");
    const OpenclFeature *f = opencl_features;
    while (f->name && (strncmp(f->name, *list, length) || f->name[length]))
        f++;
    if (!f->name)
        return NULL;
    *list += length + ((*list)[length] != 0);
    return f;
}

/* The target for a device that lacks an extension, but has what else the features ask for. */
static const char *target_without(Arena *a, const char *features, const char *extension)
{
    const char *name = "opencl";
    while (*features) {
        const OpenclFeature *f = next_feature(&features);
        if (strcmp(f->extension, extension))
            name = arena_printf(a, "%s%c%s", name, strchr(name, ':') ? '+' : ':', f->name);
    }
    return name;
}

static void require(Target *t, Arena *a, Extension *extension, const OpenclFeature *f)
{
    int n = 0;
    while (extension[n].name && strcmp(extension[n].name, f->extension))
        n++;
    extension[n].name = f->extension;
    t->extensions = extension;
    t->machine.dot |= f->dot;
    t->machine.images |= f->images;
    t->machine.any_sign |= t->machine.dot;
    t->machine.takes_fours |= t->machine.dot;
    t->machine.subgroup = f->subgroup > t->machine.subgroup ? f->subgroup : t->machine.subgroup;
    t->machine.joins_subgroups = t->machine.subgroup > 0;
    if (f->define)
        t->features = arena_printf(a, "%s%s", t->features ? t->features : "", f->define);
}

/* A device whose compute units are cores of a CPU, each with caches of its own before the one that
 * the driver tells of. */
static void cores_tune(Machine *m, const OpenclDevice *d)
{
    static const Machine core = {CORE_APPLICATION};
    const double cores = d->processors > 0 ? (double)d->processors : 1;
    m->core_lanes = (int)d->core_lanes;
    m->start = CORE_START;
    memcpy(m->level, core.level, sizeof m->level);
    m->level[2].bytes = d->cache > 0 ? (double)d->cache : m->level[2].bytes;
    core_rates(m, m->core_lanes);
    for (int i = 0; i < UNITS; i++)
        m->rate[i] *= cores;
    for (int i = 0; i < LEVELS; i++)
        m->level[i].rate *= cores;
}

/* What is told is the device's. Rates of all compute units, and of the memory that feeds them, are
 * by their number. */
void opencl_device_tune(Machine *m, const OpenclDevice *d)
{
    const int64_t most = 1024; /* items of a group, in any form of kernel */
    if (d->processors > 0 && d->processors < 1 << 16) {
        const double share = (double)d->processors / m->processors;
        for (int i = 0; i < UNITS; i++)
            m->rate[i] *= share;
        for (int i = 0; i < LEVELS; i++)
            m->level[i].rate *= share;
        m->processors = m->close = (int)d->processors;
    }
    if (d->items > 0)
        m->items = (int)(d->items < most ? d->items : most);
    if (d->shared > 0)
        m->shared = m->shared_static = (int)(d->shared < 1 << 20 ? d->shared : 1 << 20);
    if (d->core_lanes >= 4 && d->core_lanes <= 16)
        cores_tune(m, d);
    else if (d->cache > 0)
        m->level[0].bytes = (double)d->cache;
    if (d->line >= 8 && d->line <= 4096)
        m->line = (int)d->line;
}

const char *opencl_tune(Target *t, Arena *a, const char *features, ingot_status *status)
{
    Extension *extension = NEWN(a, Extension, FEATURES + 1);
    OpenclDevice device = {0};
    const bool native = !strcmp(features, "native");
    if (native)
        features = opencl_native(a, &device);
    if (!features) {
        *status = INGOT_UNSUPPORTED;
        return "there is no OpenCL device here (libOpenCL.so.1 and a driver)";
    }
    if (native) {
        opencl_device_tune(&t->machine, &device);
        t->base = arena_printf(a, *features ? "%s:%s" : "%s%s", t->name, features);
    }
    for (const char *at = features; *at;) {
        const OpenclFeature *f = next_feature(&at);
        if (!f)
            return no_feature(a, at);
        require(t, a, extension, f);
    }
    for (Extension *e = extension; e->name; e++)
        e->lacks = arena_printf(a, "%s; --target %s does without", e->name,
                                target_without(a, features, e->name));
    return NULL;
}

static const CWords words = {
    .kernel_word = "__kernel ",
    .global_word = "__global ",
    .restrict_word = "restrict",
    .local_word = "__local __attribute__((aligned(16))) ",
    .group_word = "__attribute__((reqd_work_group_size(%d, 1, 1))) ",
    .subgroup_word = "IGRT_SUBGROUP(%d) ",
    .pragma = PRAGMA,
    .prologue = "typedef char int8_t;\ntypedef uchar uint8_t;\ntypedef short int16_t;\n"
                "typedef ushort uint16_t;\ntypedef int int32_t;\ntypedef uint uint32_t;\n"
                "typedef long int64_t;\ntypedef ulong uint64_t;\n"
                "#define INT64_C(x) x##L\n#define UINT64_C(x) x##UL\n",
};

static const Language opencl_language = {
    C_FAMILY,
    .type = c_device_type,
    .file = c_file,
    .suffix = ".cl",
    .group = "(int)get_group_id(0)",
    .item = "(int)get_local_id(0)",
    .barrier = "barrier(CLK_LOCAL_MEM_FENCE);",
    .work_item = {"(int)get_global_id(0)", "get_global_id(0)"},
    .float_suffix = "", /* functions are overloaded */
    .c = &words,
};

extern const Target target_opencl;
const Target target_opencl = {
    .name = "opencl",
    .language = &opencl_language,
    .gpu = true,
    .machine = {GPU_FIGURES, .items = 256, .shared = 32 << 10, .shared_static = 32 << 10},
    .runtime = "igrt_cl",
    .images = true,
    .branches = 8,
    .tune = opencl_tune,
    .machine_name = opencl_feature,
};
