/* libclang.c - finds and loads libclang, and opens a file with it.
 *
 * The names that are tried: $INGOT_LIBCLANG and nothing else if that is set; the file that CMake
 * found when ingot was built, its name without a folder (the loader looks where it always does),
 * then the names that distributions give it. Clang's own headers lie beside the library that was
 * really loaded, at lib/clang/VERSION/include; libclang seldom finds them itself when another
 * program loads it. */
#define _GNU_SOURCE
#include "libclang.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

Libclang libclang;
static char resources[PATH_MAX];

static void *open_any(void)
{
    static const char *const names[] = {INGOT_LIBCLANG_FILE, INGOT_LIBCLANG_NAME, "libclang.so",
                                        "libclang.so.1",     "libclang.so.13",    "libclang.dylib"};
    const char *told = getenv("INGOT_LIBCLANG");
    void *handle = told && *told ? dlopen(told, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !handle && !(told && *told); i++)
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return handle;
}

/* Is there a stddef.h in a folder of this pattern? */
static bool resources_in(const char *pattern)
{
    glob_t found = {0};
    bool good = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc;
    if (good) {
        snprintf(resources, sizeof resources, "%s", found.gl_pathv[0]);
        *strstr(resources, "/include/stddef.h") = 0;
    }
    globfree(&found);
    return good;
}

/* Debian has /usr/lib/x86_64-linux-gnu/libclang-14.so.14.0.6 and
 * /usr/lib/llvm-14/lib/clang/14.0.6. */
static void find_resources(void)
{
    Dl_info info;
    void *symbol;
    memcpy(&symbol, &libclang.createIndex, sizeof symbol);
    char real[PATH_MAX] = "", pattern[PATH_MAX + 64];
    if (dladdr(symbol, &info) && info.dli_fname)
        if (!realpath(info.dli_fname, real))
            *real = 0;
    char *file = strrchr(real, '/');
    if (!file)
        return;
    *file++ = 0;
    snprintf(pattern, sizeof pattern, "%s/clang/*/include/stddef.h", real);
    if (resources_in(pattern))
        return;
    int version = 0;
    if (sscanf(file, "libclang-%d", &version) == 1) {
        snprintf(pattern, sizeof pattern, "%s/../llvm-%d/lib/clang/*/include/stddef.h", real,
                 version);
        if (resources_in(pattern))
            return;
    }
    resources_in(INGOT_CLANG_RESOURCES "/include/stddef.h");
}

const char *libclang_load(void)
{
    static const char *problem = "";
    if (!problem || *problem)
        return problem;
    void *handle = open_any();
    problem =
        handle
            ? NULL
            : "libclang cannot be loaded (Debian: libclang1, or name its file in INGOT_LIBCLANG)";
    void *symbol;
#define CLANG(name)                                 \
    symbol = dlsym(handle, "clang_" #name);         \
    memcpy(&libclang.name, &symbol, sizeof symbol); \
    if (!symbol)                                    \
        problem = "libclang is too old: it has no clang_" #name;
    if (handle) {
#include "libclang.def"
    }
    if (!problem)
        find_resources();
    return problem;
}

/* ---- a translation unit ------------------------------------------------------------------- */

bool cunit_open(CUnit *u, Arena *a, const char *file, const struct CXUnsavedFile *text, int n,
                const char *const *argument, unsigned flags)
{
    const char **all = NEWN(a, const char *, n + 2);
    int count = 0;
    if (*resources) {
        all[count++] = "-resource-dir";
        all[count++] = resources;
    }
    for (int i = 0; i < n; i++)
        all[count++] = argument[i];
    *u = (CUnit){.index = libclang.createIndex(0, 0)};
    return libclang.parseTranslationUnit2(u->index, file, all, count,
                                          (struct CXUnsavedFile *)(uintptr_t)text, text != NULL,
                                          flags, &u->unit) == CXError_Success;
}

void cunit_close(CUnit *u)
{
    if (u->unit)
        libclang.disposeTranslationUnit(u->unit);
    if (u->index)
        libclang.disposeIndex(u->index);
    *u = (CUnit){0};
}

/* ---- what all readers of C need ------------------------------------------------------------ */

const char *clang_text(Arena *a, CXString s)
{
    const char *text = libclang.getCString(s), *copy = arena_strdup(a, text ? text : "");
    libclang.disposeString(s);
    return copy;
}

bool clang_is_const(CXType t)
{
    for (;;) {
        if (libclang.isConstQualifiedType(t))
            return true;
        t = libclang.getCanonicalType(t);
        if (libclang.isConstQualifiedType(t))
            return true;
        CXType element = libclang.getArrayElementType(t);
        if (element.kind == CXType_Invalid)
            return false;
        t = element;
    }
}
