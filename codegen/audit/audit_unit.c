/* audit_unit.c - one file through libclang: its diagnostics, and for each function what it calls,
 * which loops it has, which variables change. A function of a header is looked at in the first unit
 * that includes it.
 *
 * libclang's C interface has no operators. What it does have: a read of a variable lies within an
 * implicit conversion (an unexposed expression), an assignment, an increment or & does not.
 * Conditions of loops are read from the function's text as clang prints it, with macros expanded
 * (audit_loops.c); loops are in the same order there. */
#include <string.h>

#include "audit.h"
#include "libclang.h"

typedef struct {
    Audit *a;
    CXTranslationUnit unit;
    int file; /* of the function */
    Function *f;
    CXFile last; /* the file seen last, and which of the folder's it is */
    int last_index;
} UnitReader;

typedef struct CursorWalk CursorWalk;
struct CursorWalk {
    UnitReader *r;
    const CursorWalk *up;
    enum CXCursorKind kind; /* of the cursor whose children are walked */
    int nth;                /* child */
    int loop;
};

const char *clang_version(Arena *a)
{
    return clang_text(a, libclang.getClangVersion());
}

/* ---- places -------------------------------------------------------------------------------- */

typedef struct {
    int file, line, column; /* file -1: not of the folder */
} SourcePlace;

static SourcePlace place_of(UnitReader *r, CXSourceLocation at)
{
    CXFile file;
    unsigned line, column;
    libclang.getFileLocation(at, &file, &line, &column, NULL);
    if (!file)
        return (SourcePlace){-1, 0, 0};
    if (file != r->last) {
        CXString name = libclang.getFileName(file);
        r->last = file;
        r->last_index = file_by_path(r->a, libclang.getCString(name));
        libclang.disposeString(name);
    }
    return (SourcePlace){r->last_index, (int)line, (int)column};
}

static SourcePlace place_of_cursor(UnitReader *r, CXCursor c)
{
    return place_of(r, libclang.getCursorLocation(c));
}

/* Functions of one name in two units are two if they are static. */
static const char *key_of(UnitReader *r, CXCursor function)
{
    Arena *a = r->a->a;
    const char *name = clang_text(a, libclang.getCursorSpelling(function));
    if (libclang.Cursor_getStorageClass(function) != CX_SC_Static)
        return name;
    SourcePlace p = place_of_cursor(r, function);
    return p.file < 0 ? name : arena_printf(a, "%s@%s", name, r->a->file[p.file].name);
}

/* ---- types --------------------------------------------------------------------------------- */

static CXType element_type(CXType t)
{
    t = libclang.getCanonicalType(t);
    while (t.kind == CXType_ConstantArray || t.kind == CXType_IncompleteArray ||
           t.kind == CXType_VariableArray)
        t = libclang.getCanonicalType(libclang.getArrayElementType(t));
    return t;
}

static bool is_unsigned(CXType t)
{
    t = libclang.getCanonicalType(t);
    return t.kind >= CXType_Bool && t.kind <= CXType_UInt128;
}

static const char *function_type(UnitReader *r, CXType t)
{
    t = libclang.getCanonicalType(t);
    if (t.kind == CXType_Pointer)
        t = libclang.getCanonicalType(libclang.getPointeeType(t));
    return clang_text(r->a->a, libclang.getTypeSpelling(t));
}

/* ---- expressions --------------------------------------------------------------------------- */

static enum CXChildVisitResult first_child(CXCursor c, CXCursor parent, CXClientData data)
{
    (void)parent;
    *(CXCursor *)data = c;
    return CXChildVisit_Break;
}

static void see_call(CursorWalk *w, CXCursor c)
{
    UnitReader *r = w->r;
    SourcePlace p = place_of_cursor(r, c);
    CXCursor to = libclang.getCursorReferenced(c);
    Edge e = {.line = p.line, .column = p.column};
    if (to.kind == CXCursor_FunctionDecl) {
        e.kind = EDGE_CALL;
        e.to = key_of(r, to);
        SourcePlace home = place_of_cursor(r, to);
        if (home.file < 0) {
            CXFile file;
            libclang.getFileLocation(libclang.getCursorLocation(to), &file, NULL, NULL, NULL);
            const char *path = file ? clang_text(r->a->a, libclang.getFileName(file)) : "";
            e.intrinsic = strstr(path, "/clang/") != NULL;
        }
    } else {
        CXCursor callee = libclang.getNullCursor();
        libclang.visitChildren(c, first_child, &callee);
        e.kind = EDGE_POINTER;
        e.to = function_type(r, libclang.getCursorType(callee));
    }
    vec_push(r->a->a, r->f->edge, r->f->nedge, e);
}

/* Is it the array of run-time sizes, where it is not just read? */
static bool changes_sizes(const CursorWalk *w, CXCursor variable)
{
    CXString name = libclang.getCursorSpelling(variable);
    CXType t = libclang.getCanonicalType(libclang.getCursorType(variable));
    bool sizes = !strcmp(libclang.getCString(name), "sym") && t.kind == CXType_Pointer &&
                 !libclang.isConstQualifiedType(libclang.getPointeeType(t));
    libclang.disposeString(name);
    while (sizes && w->up && (w->kind == CXCursor_UnexposedExpr || w->kind == CXCursor_ParenExpr))
        w = w->up;
    if (!sizes || w->kind != CXCursor_ArraySubscriptExpr)
        return sizes;
    w = w->up;
    while (w->up && w->kind == CXCursor_ParenExpr)
        w = w->up;
    return w->kind != CXCursor_UnexposedExpr;
}

/* The use of a name: of a function that is not called, of a variable that may change here. */
static void see_use(CursorWalk *w, CXCursor c)
{
    UnitReader *r = w->r;
    Audit *a = r->a;
    CXCursor to = libclang.getCursorReferenced(c);
    const CursorWalk *up = w;
    if (to.kind == CXCursor_FunctionDecl) {
        while (up->up && (up->kind == CXCursor_UnexposedExpr || up->kind == CXCursor_ParenExpr))
            up = up->up;
        if (up->kind == CXCursor_CallExpr && up->nth == 0)
            return;
        SourcePlace p = place_of_cursor(r, c);
        Edge e = {EDGE_ADDRESS, key_of(r, to), function_type(r, libclang.getCursorType(to)),
                  p.line,       p.column,      false};
        if (r->f)
            vec_push(a->a, r->f->edge, r->f->nedge, e);
        return;
    }
    if (to.kind != CXCursor_VarDecl && to.kind != CXCursor_ParmDecl)
        return;
    if (to.kind == CXCursor_VarDecl && place_of_cursor(r, to).file < 0) {
        SourcePlace p = place_of_cursor(r, c);
        if (p.file >= 0 && !clang_is_const(libclang.getCursorType(to)))
            finding_add(a, RULE_global, p.file, p.line, p.column,
                        "'%s' is a variable of the C library",
                        clang_text(a->a, libclang.getCursorSpelling(to)));
    }
    if (!r->f)
        return;
    if (changes_sizes(w, to)) {
        SourcePlace p = place_of_cursor(r, c);
        vec_push(a->a, r->f->size_line, r->f->nsize, p.line);
    }
    while (up->up && (up->kind == CXCursor_ParenExpr || up->kind == CXCursor_MemberRefExpr))
        up = up->up;
    if (up->kind == CXCursor_UnexposedExpr)
        return;
    Write write = {clang_text(a->a, libclang.getCursorSpelling(to)), w->loop};
    vec_push(a->a, r->f->write, r->f->nwrite, write);
}

static void see_variable(CursorWalk *w, CXCursor c)
{
    UnitReader *r = w->r;
    Audit *a = r->a;
    SourcePlace p = place_of_cursor(r, c);
    CXType t = libclang.getCursorType(c);
    const char *name = clang_text(a->a, libclang.getCursorSpelling(c));
    if (p.file < 0)
        return;
    bool outlives = !r->f || libclang.Cursor_getStorageClass(c) == CX_SC_Static ||
                    libclang.Cursor_getStorageClass(c) == CX_SC_Extern;
    if (outlives && c.kind == CXCursor_VarDecl) {
        if (!clang_is_const(t))
            finding_add(a, RULE_global, p.file, p.line, p.column,
                        "'%s' can change and outlives a call", name);
        return;
    }
    if (!r->f)
        return;
    Variable v = {name, clang_text(a->a, libclang.getTypeSpelling(t)), is_unsigned(t)};
    vec_push(a->a, r->f->variable, r->f->nvariable, v);
    if (c.kind != CXCursor_VarDecl)
        return;
    CXType canonical = libclang.getCanonicalType(t);
    if (canonical.kind == CXType_VariableArray)
        finding_add(a, RULE_stack, p.file, p.line, p.column,
                    "the length of array '%s' is known at run time only", name);
    long long bytes = libclang.Type_getSizeOf(t);
    r->f->frame += bytes > 0 ? bytes : 0;
}

/* A function of the runtime: in a bundle it has the model's prefix. */
static bool is_called(const char *name, const char *runtime)
{
    size_t n = strlen(name), m = strlen(runtime);
    return n >= m && !strcmp(name + n - m, runtime) && (n == m || name[n - m - 1] == '_');
}

static int see_loop(CursorWalk *w, CXCursor c)
{
    UnitReader *r = w->r;
    SourcePlace p = place_of_cursor(r, c);
    CLoop l = {.parent = w->loop, .line = p.line, .column = p.column};
    l.kind = c.kind == CXCursor_ForStmt     ? LOOP_FOR
             : c.kind == CXCursor_WhileStmt ? LOOP_WHILE
                                            : LOOP_DO;
    vec_push(r->a->a, r->f->loop, r->f->nloop, l);
    return r->f->nloop - 1;
}

static enum CXChildVisitResult visit(CXCursor c, CXCursor parent, CXClientData data)
{
    (void)parent;
    CursorWalk *w = data;
    UnitReader *r = w->r;
    w->nth++;
    CursorWalk down = {r, w, c.kind, -1, w->loop};
    switch (c.kind) {
    case CXCursor_CallExpr:
        if (r->f)
            see_call(w, c);
        break;
    case CXCursor_DeclRefExpr: see_use(w, c); return CXChildVisit_Continue;
    case CXCursor_VarDecl: see_variable(w, c); break;
    case CXCursor_ForStmt:
    case CXCursor_WhileStmt:
    case CXCursor_DoStmt:
        if (r->f)
            down.loop = see_loop(w, c);
        break;
    case CXCursor_GotoStmt:
    case CXCursor_IndirectGotoStmt: {
        SourcePlace p = place_of_cursor(r, c);
        finding_add(r->a, RULE_jump, p.file, p.line, p.column, "goto");
        break;
    }
    case CXCursor_GCCAsmStmt:
    case CXCursor_MSAsmStmt: {
        SourcePlace p = place_of_cursor(r, c);
        static const char *const may[] = {
            "igrt_fp_mode",      "igrt_fp_restore",     "igrt_cpu_id",
            "igrt_cpu_xcr0",     "igrt_cpu_tiles",      "igrt_cpu_vector_bytes",
            "igrt_mulhi_i32",    "igrt_mulhi_half_i32", "igrt_mulhi_low_i32",
            "igrt_shrr_i32",     "igrt_shrr_word_i32",  "igrt_load_i8x4",
            "igrt_load_u8x4",    "igrt_pairs",          "igrt_quantize_f32",
            "igrt_four_join_i32"};
        bool known = false;
        for (size_t i = 0; i < sizeof may / sizeof *may && r->f; i++)
            known |= is_called(r->f->name, may[i]);
        if (!known)
            finding_add(r->a, RULE_assembly, p.file, p.line, p.column, "assembly");
        break;
    }
    case CXCursor_IntegerLiteral:
    case CXCursor_FloatingLiteral:
    case CXCursor_StringLiteral:
    case CXCursor_TypeRef: return CXChildVisit_Continue;
    default: break;
    }
    libclang.visitChildren(c, visit, &down);
    return CXChildVisit_Continue;
}

/* ---- declarations of a file ---------------------------------------------------------------- */

static void read_function(UnitReader *r, CXCursor c, SourcePlace p)
{
    Audit *a = r->a;
    const char *key = key_of(r, c);
    if (function_by_key(a, key))
        return; /* of a header that was read before */
    Function *f = NEW(a->a, Function);
    unsigned end;
    libclang.getFileLocation(libclang.getRangeEnd(libclang.getCursorExtent(c)), NULL, &end, NULL,
                             NULL);
    *f = (Function){.key = key,
                    .name = clang_text(a->a, libclang.getCursorSpelling(c)),
                    .file = p.file,
                    .line = p.line,
                    .column = p.column,
                    .end_line = (int)end,
                    .deepest = -1};
    function_put(a, f);
    r->f = f;
    a->in = f;
    r->file = p.file;
    if (libclang.Cursor_isVariadic(c))
        finding_add(a, RULE_variadic, p.file, p.line, p.column,
                    "'%s' takes a variable number of arguments", f->name);
    for (int i = 0, n = libclang.Cursor_getNumArguments(c); i < n; i++) {
        CXCursor parameter = libclang.Cursor_getArgument(c, (unsigned)i);
        CXType t = libclang.getCursorType(parameter);
        Variable v = {clang_text(a->a, libclang.getCursorSpelling(parameter)),
                      clang_text(a->a, libclang.getTypeSpelling(t)), is_unsigned(t)};
        vec_push(a->a, f->variable, f->nvariable, v);
    }
    CursorWalk w = {r, NULL, c.kind, -1, -1};
    libclang.visitChildren(c, visit, &w);
    if (f->nloop && rule_holds(RULE_loop, a->file[p.file].part)) {
        CXPrintingPolicy policy = libclang.getCursorPrintingPolicy(c);
        CXString text = libclang.getCursorPrettyPrinted(c, policy);
        loops_judge(a, f, libclang.getCString(text));
        libclang.disposeString(text);
        libclang.PrintingPolicy_dispose(policy);
    }
    sizes_judge(a, f);
    r->f = NULL;
    a->in = NULL;
}

/* Names of function types that the ABI has: typedefs igrt_*_fn of igrt.h. */
static void read_typedef(UnitReader *r, CXCursor c, SourcePlace p)
{
    Audit *a = r->a;
    const char *name = clang_text(a->a, libclang.getCursorSpelling(c));
    size_t n = strlen(name);
    if (strcmp(a->file[p.file].name, "igrt.h") || strncmp(name, "igrt_", 5) || n < 8 ||
        strcmp(name + n - 3, "_fn"))
        return;
    const char *type = function_type(r, libclang.getTypedefDeclUnderlyingType(c));
    for (int i = 0; i < a->nabi_type; i++)
        if (!strcmp(a->abi_type[i], type))
            return;
    if (a->nabi_type < (int)(sizeof a->abi_type / sizeof *a->abi_type))
        a->abi_type[a->nabi_type++] = type;
}

/* Of large arrays of numbers nothing needs to be looked at. */
static bool holds_numbers(CXCursor c)
{
    CXType t = element_type(libclang.getCursorType(c));
    return t.kind >= CXType_FirstBuiltin && t.kind <= CXType_LastBuiltin;
}

static enum CXChildVisitResult visit_top(CXCursor c, CXCursor parent, CXClientData data)
{
    (void)parent;
    UnitReader *r = data;
    SourcePlace p = place_of_cursor(r, c);
    if (p.file < 0)
        return CXChildVisit_Continue;
    r->a->file[p.file].read = true;
    if (c.kind == CXCursor_FunctionDecl && libclang.isCursorDefinition(c))
        read_function(r, c, p);
    if (c.kind == CXCursor_TypedefDecl)
        read_typedef(r, c, p);
    if (c.kind == CXCursor_VarDecl) {
        CursorWalk w = {r, NULL, CXCursor_TranslationUnit, -1, -1};
        see_variable(&w, c);
        CursorWalk down = {r, &w, c.kind, -1, -1};
        if (!holds_numbers(c))
            libclang.visitChildren(c, visit, &down);
    }
    return CXChildVisit_Continue;
}

/* ---- diagnostics --------------------------------------------------------------------------- */

static bool is_narrowing(const char *option)
{
    static const char *const words[] = {"conversion", "shorten-64-to-32", "float-conversion",
                                        "precision"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(option, words[i]))
            return true;
    return false;
}

/* False if the file could not be read by clang at all. */
static bool diagnostics(UnitReader *r, StrBuf *problem)
{
    Audit *a = r->a;
    for (unsigned i = 0, n = libclang.getNumDiagnostics(r->unit); i < n; i++) {
        CXDiagnostic d = libclang.getDiagnostic(r->unit, i);
        enum CXDiagnosticSeverity severity = libclang.getDiagnosticSeverity(d);
        const char *text = clang_text(a->a, libclang.getDiagnosticSpelling(d));
        const char *option = clang_text(a->a, libclang.getDiagnosticOption(d, NULL));
        SourcePlace p = place_of(r, libclang.getDiagnosticLocation(d));
        libclang.disposeDiagnostic(d);
        if (severity == CXDiagnostic_Ignored || severity == CXDiagnostic_Note)
            continue;
        if (severity == CXDiagnostic_Fatal) {
            sb_printf(problem, "%s:%d: clang: %s", a->file[p.file < 0 ? r->file : p.file].name,
                      p.line, text);
            return false;
        }
        if (p.file < 0 && severity < CXDiagnostic_Error)
            continue; /* of the C library */
        finding_add(a, is_narrowing(option) ? RULE_narrowing : RULE_diagnostic,
                    p.file < 0 ? r->file : p.file, p.line, p.column, "%s%s%s%s", text,
                    *option ? " [" : "", option, *option ? "]" : "");
    }
    return true;
}

bool unit_read(Audit *a, int file, StrBuf *problem)
{
    CUnit unit;
    bool ok = cunit_open(&unit, a->a, a->file[file].path, NULL, a->nargument, a->argument,
                         CXTranslationUnit_KeepGoing);
    UnitReader r = {.a = a, .unit = unit.unit, .file = file};
    if (!ok)
        sb_printf(problem, "%s: libclang cannot read it for the triple %s", a->file[file].name,
                  a->o->triple);
    if (ok) {
        a->file[file].read = true;
        ok = diagnostics(&r, problem);
        r.last = NULL;
        libclang.visitChildren(libclang.getTranslationUnitCursor(r.unit), visit_top, &r);
    }
    cunit_close(&unit);
    return ok;
}
