/* libclang.h - libclang, loaded when a command first reads C: a start costs nothing, and ingot runs
 * where there is none. libclang.getCursorType() is clang_getCursorType(); libclang.def lists those
 * that are called. */
#ifndef LIBCLANG_H
#define LIBCLANG_H

#include <clang-c/Index.h>

#include "compiler.h"

typedef struct {
#define CLANG(name) __typeof__(clang_##name) *name;
#include "libclang.def"
} Libclang;
extern Libclang libclang; /* valid after libclang_load() */

/* NULL, or why it cannot be loaded. */
const char *libclang_load(void);

/* ---- a translation unit ------------------------------------------------------------------- */

typedef struct {
    CXIndex index;
    CXTranslationUnit unit;
} CUnit;
/* text: what stands for the contents of the file, or NULL.  flags: CXTranslationUnit_*.  False:
 * clang cannot read it at all; otherwise its diagnostics say what is wrong.  cunit_close() in
 * either case. */
bool cunit_open(CUnit *, Arena *, const char *file, const struct CXUnsavedFile *text, int n,
                const char *const *argument, unsigned flags);
void cunit_close(CUnit *);

/* ---- what all readers of C need ------------------------------------------------------------ */

/* A copy; the original is disposed of. */
const char *clang_text(Arena *, CXString);
/* Of an array: its elements'. */
bool clang_is_const(CXType);

#endif
