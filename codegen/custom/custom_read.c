/* custom_read.c - reads a custom operator's source by libclang: that it compiles, the function's
 * declaration, and the rules in the comment above it (docs/custom_ops.md).
 *
 *     pointer to const   input, in the order of the node's        n_x, x_dim0    sizes of tensor x
 *     pointer            output; named scratch; state[s] = ...    other names    attributes of the
 *                                                                               node */
#include <ctype.h>
#include <string.h>

#include "custom.h"
#include "libclang.h"

typedef struct {
    Context *c;
    CustomOp *op;
    CXTranslationUnit unit;
    CXCursor function;
    bool found, ok;
    StrBuf names; /* of functions that could be meant */
    int nname;
    const char *only; /* the one */
} SourceReader;

static int line_at(CXSourceLocation at)
{
    unsigned line;
    libclang.getExpansionLocation(at, NULL, &line, NULL, NULL);
    return line ? (int)line : 1;
}

static int line_of(CXCursor cursor)
{
    return line_at(libclang.getCursorLocation(cursor));
}

static bool reader_fault(SourceReader *r, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool reader_fault(SourceReader *r, int line, const char *format, ...)
{
    StrBuf sb = {0};
    va_list ap;
    va_start(ap, format);
    sb_vprintf(&sb, format, ap);
    va_end(ap);
    if (r->ok)
        custom_fault(r->c, r->op, line, "%s", sb.data);
    sb_free(&sb);
    r->ok = false;
    return false;
}

/* ---- the translation unit -------------------------------------------------------------------- */

static void check_diagnostics(SourceReader *r)
{
    for (unsigned i = 0; i < libclang.getNumDiagnostics(r->unit) && r->ok; i++) {
        CXDiagnostic d = libclang.getDiagnostic(r->unit, i);
        if (libclang.getDiagnosticSeverity(d) >= CXDiagnostic_Error)
            reader_fault(r, line_at(libclang.getDiagnosticLocation(d)), "%s",
                         clang_text(r->c->arena, libclang.getDiagnosticSpelling(d)));
        libclang.disposeDiagnostic(d);
    }
}

/* The bundle gets this one file: what it includes has to be there too. */
static void check_include(CXFile file, CXSourceLocation *stack, unsigned depth, CXClientData data)
{
    SourceReader *r = data;
    if (depth == 1 &&
        !libclang.Location_isInSystemHeader(libclang.getLocation(r->unit, file, 1, 1)))
        reader_fault(r, line_at(stack[0]),
                     "it includes '%s', which is no header of the system; a custom operator is one "
                     "file",
                     clang_text(r->c->arena, libclang.getFileName(file)));
}

/* Contexts and threads share what is static; a bundle has nothing of the kind. */
static bool outlives(SourceReader *r, CXCursor cursor, CXCursor parent)
{
    bool local = libclang.getCursorKind(parent) != CXCursor_TranslationUnit;
    if (libclang.getCursorKind(cursor) != CXCursor_VarDecl ||
        clang_is_const(libclang.getCursorType(cursor)) ||
        (local && libclang.Cursor_getStorageClass(cursor) != CX_SC_Static))
        return false;
    reader_fault(r, line_of(cursor),
                 "variable '%s' outlives a call; what is kept between runs is a state "
                 "(state[s] = [4])",
                 clang_text(r->c->arena, libclang.getCursorSpelling(cursor)));
    return true;
}

static enum CXChildVisitResult look_inside(CXCursor cursor, CXCursor parent, CXClientData data)
{
    return outlives(data, cursor, parent) ? CXChildVisit_Break : CXChildVisit_Recurse;
}

static bool is_identifier(const char *s)
{
    bool good = isalpha((unsigned char)*s) || *s == '_';
    for (; *s && good; s++)
        good = isalnum((unsigned char)*s) || *s == '_';
    return good;
}

/* What the file declares, so that several sources can stand in one file. */
static enum CXChildVisitResult look_at_name(CXCursor cursor, CXCursor parent, CXClientData data)
{
    (void)parent;
    SourceReader *r = data;
    CustomOp *op = r->op;
    const char *name = clang_text(r->c->arena, libclang.getCursorSpelling(cursor));
    enum CXCursorKind kind = libclang.getCursorKind(cursor);
    if (!libclang.Location_isFromMainFile(libclang.getCursorLocation(cursor)))
        return CXChildVisit_Continue;
    if (kind == CXCursor_MacroDefinition)
        vec_push(r->c->arena, op->macro, op->nmacro, name);
    bool named = kind == CXCursor_FunctionDecl || kind == CXCursor_VarDecl ||
                 kind == CXCursor_TypedefDecl || kind == CXCursor_StructDecl ||
                 kind == CXCursor_UnionDecl || kind == CXCursor_EnumDecl ||
                 kind == CXCursor_EnumConstantDecl;
    bool visible = (kind == CXCursor_FunctionDecl || kind == CXCursor_VarDecl) &&
                   libclang.getCursorLinkage(cursor) == CXLinkage_External;
    if (named && is_identifier(name) && !visible)
        vec_push(r->c->arena, op->internal, op->ninternal, name);
    return kind == CXCursor_EnumDecl ? CXChildVisit_Recurse : CXChildVisit_Continue;
}

static enum CXChildVisitResult look_at(CXCursor cursor, CXCursor parent, CXClientData data)
{
    SourceReader *r = data;
    Context *c = r->c;
    enum CXCursorKind kind = libclang.getCursorKind(cursor);
    if (!libclang.Location_isFromMainFile(libclang.getCursorLocation(cursor)))
        return CXChildVisit_Continue;
    if (outlives(r, cursor, parent))
        return CXChildVisit_Break;
    if (kind == CXCursor_FunctionDecl && libclang.visitChildren(cursor, look_inside, r))
        return CXChildVisit_Break;
    const char *name = clang_text(c->arena, libclang.getCursorSpelling(cursor));
    bool defined = libclang.isCursorDefinition(cursor) != 0;
    if ((kind != CXCursor_FunctionDecl && kind != CXCursor_VarDecl) || !defined ||
        libclang.getCursorLinkage(cursor) != CXLinkage_External)
        return CXChildVisit_Continue;
    vec_push(c->arena, r->op->external, r->op->nexternal, name);
    if (kind == CXCursor_VarDecl)
        return CXChildVisit_Continue;
    sb_printf(&r->names, "%s%s", r->nname++ ? ", " : "", name);
    if (!r->op->function || !strcmp(r->op->function, name)) {
        r->function = cursor;
        r->found = true;
        r->only = name;
    }
    return CXChildVisit_Continue;
}

/* ---- the comment ----------------------------------------------------------------------------- */

static const char *trimmed(Context *c, const char *s, const char *end)
{
    while (s < end && isspace((unsigned char)*s))
        s++;
    while (end > s && isspace((unsigned char)end[-1]))
        end--;
    return arena_printf(c->arena, "%.*s", (int)(end - s), s);
}

/* "out[y] = in[x]", "scratch = 4*n_x", "elementwise"; other lines are prose. */
static void read_line(SourceReader *r, const char *s, const char *end, int line)
{
    static const char *const words[] = {"out[", "state[", "scratch", "default["};
    while (s < end && (isspace((unsigned char)*s) || *s == '*' || *s == '/'))
        s++;
    while (end > s && (isspace((unsigned char)end[-1]) || end[-1] == '*' || end[-1] == '/'))
        end--;
    size_t n = (size_t)(end - s);
    if (n == 11 && !memcmp(s, "elementwise", 11))
        r->op->elementwise = true;
    for (int k = 0; k < 4; k++) {
        size_t len = strlen(words[k]);
        if (n < len || memcmp(s, words[k], len))
            continue;
        CustomRule rule = {.name = "", .line = line};
        rule.kind = k == 0   ? CUSTOM_OUT_RULE
                    : k == 1 ? CUSTOM_STATE_RULE
                    : k == 2 ? CUSTOM_SCRATCH_RULE
                             : CUSTOM_DEFAULT_RULE;
        const char *p = s + len;
        if (k != 2) {
            const char *close = memchr(p, ']', (size_t)(end - p));
            if (!close) {
                reader_fault(r, line, "'%.*s': a ']' is missing", (int)n, s);
                return;
            }
            rule.name = trimmed(r->c, p, close);
            p = close + 1;
        }
        while (p < end && isspace((unsigned char)*p))
            p++;
        if (p == end || *p != '=') {
            if (k != 2) /* "scratch is ..." is prose */
                reader_fault(r, line, "'%.*s': a '=' is missing", (int)n, s);
            return;
        }
        rule.text = trimmed(r->c, p + 1, end);
        vec_push(r->c->arena, r->op->rule, r->op->nrule, rule);
    }
}

static void read_comment(SourceReader *r)
{
    const char *text = clang_text(r->c->arena, libclang.Cursor_getRawCommentText(r->function));
    int line = line_at(libclang.getRangeStart(libclang.Cursor_getCommentRange(r->function)));
    for (const char *s = text; *s; line++) {
        size_t n = strcspn(s, "\n");
        read_line(r, s, s + n, line);
        s += n + (s[n] == '\n');
    }
}

/* ---- the declaration ------------------------------------------------------------------------- */

/* What a tensor of such elements is; false: none. `long` has no size of its own. */
static bool element_dtype(CXType type, ingot_dtype *out)
{
    enum CXTypeKind bare = type.kind, kind = libclang.getCanonicalType(type).kind;
    long long bytes = libclang.Type_getSizeOf(type);
    if (bare == CXType_Long || bare == CXType_ULong)
        return false;
    switch (kind) {
    case CXType_Float: *out = INGOT_F32; return true;
    case CXType_Double: *out = INGOT_F64; return true;
    case CXType_Bool: *out = INGOT_BOOL; return true;
    case CXType_SChar:
    case CXType_Short:
    case CXType_Int:
    case CXType_Long:
    case CXType_LongLong:
        *out = bytes == 1 ? INGOT_I8 : bytes == 2 ? INGOT_I16 : bytes == 4 ? INGOT_I32 : INGOT_I64;
        return true;
    case CXType_UChar:
    case CXType_UShort:
    case CXType_UInt:
    case CXType_ULong:
    case CXType_ULongLong:
        *out = bytes == 1 ? INGOT_U8 : bytes == 2 ? INGOT_U16 : bytes == 4 ? INGOT_U32 : INGOT_U64;
        return true;
    default: return false;
    }
}

static bool is_integer(CXType type)
{
    enum CXTypeKind kind = libclang.getCanonicalType(type).kind;
    ingot_dtype d;
    return kind == CXType_Long || kind == CXType_ULong ||
           (element_dtype(type, &d) && d != INGOT_F32 && d != INGOT_F64);
}

static const CustomRule *rule_named(const CustomOp *op, int kind, const char *name)
{
    for (int i = 0; i < op->nrule; i++)
        if ((int)op->rule[i].kind == kind && !strcmp(op->rule[i].name, name))
            return &op->rule[i];
    return NULL;
}

static void read_pointer(SourceReader *r, CustomParam *p, CXType pointee)
{
    CustomOp *op = r->op;
    bool constant = libclang.isConstQualifiedType(pointee) != 0;
    if (!constant && !strcmp(p->name, "scratch")) {
        p->kind = CUSTOM_SCRATCH;
        return;
    }
    if (!element_dtype(pointee, &p->dtype)) {
        reader_fault(r, p->line,
                     "parameter '%s' is '%s': a tensor's elements are float, double, bool or an "
                     "integer of stdint.h",
                     p->name, p->type);
        return;
    }
    bool state = rule_named(op, CUSTOM_STATE_RULE, p->name) != NULL;
    if (state && constant)
        reader_fault(r, p->line, "parameter '%s' is a state and has to be no pointer to const",
                     p->name);
    p->kind = constant ? CUSTOM_INPUT : state ? CUSTOM_STATE : CUSTOM_OUTPUT;
    p->slot = constant ? op->nin++ : state ? op->nstate++ : op->nout++;
}

/* n_x, x_dim0: a size of a tensor that is a parameter. */
static bool read_size(CustomOp *op, CustomParam *p)
{
    for (int i = 0; i < op->nparam; i++) {
        const CustomParam *t = &op->param[i];
        size_t len = strlen(t->name);
        if (t->kind != CUSTOM_INPUT && t->kind != CUSTOM_OUTPUT && t->kind != CUSTOM_STATE)
            continue;
        p->of = i;
        p->kind = CUSTOM_COUNT;
        if (!strncmp(p->name, "n_", 2) && !strcmp(p->name + 2, t->name))
            return true;
        if (strncmp(p->name, t->name, len) || strncmp(p->name + len, "_dim", 4))
            continue;
        const char *digits = p->name + len + 4;
        size_t n = strspn(digits, "0123456789");
        if (!n || digits[n] || n > 2)
            continue;
        p->kind = CUSTOM_DIM;
        p->axis = digits[0] - '0';
        if (n > 1)
            p->axis = p->axis * 10 + digits[1] - '0';
        return p->axis < INGOT_MAX_RANK;
    }
    return false;
}

static void read_scalar(SourceReader *r, CustomParam *p, CXType type)
{
    CustomOp *op = r->op;
    enum CXTypeKind kind = libclang.getCanonicalType(type).kind;
    p->bytes = (int)libclang.Type_getSizeOf(type);
    if (kind == CXType_Float || kind == CXType_Double) {
        p->kind = CUSTOM_FLOAT;
        p->slot = op->nfloat++;
        return;
    }
    if (!is_integer(type)) {
        reader_fault(r, p->line,
                     "parameter '%s' is '%s': only pointers (tensors), integers, float and double "
                     "can be passed",
                     p->name, p->type);
        return;
    }
    if (!strcmp(p->name, "scratch_bytes")) {
        p->kind = CUSTOM_SCRATCH_BYTES;
        return;
    }
    if (read_size(op, p))
        return;
    p->of = 0;
    p->kind = CUSTOM_INT;
    p->slot = op->nint++;
}

/* A function of elements: those that have no default are inputs. */
static void read_element(SourceReader *r, CustomParam *p, CXType type)
{
    CustomOp *op = r->op;
    if (rule_named(op, CUSTOM_DEFAULT_RULE, p->name)) {
        read_scalar(r, p, type);
        return;
    }
    if (!element_dtype(type, &p->dtype)) {
        reader_fault(r, p->line, "parameter '%s' is '%s', which is no element of a tensor", p->name,
                     p->type);
        return;
    }
    p->kind = CUSTOM_INPUT;
    p->slot = op->nin++;
}

/* Without the const of a parameter itself, so that values can be cast to it. */
static const char *type_spelling(Context *c, CXType type)
{
    const char *s = clang_text(c->arena, libclang.getTypeSpelling(type));
    bool constant = type.kind != CXType_Pointer && !strncmp(s, "const ", 6);
    return constant ? s + 6 : s;
}

static void read_result(SourceReader *r)
{
    CustomOp *op = r->op;
    CXType type = libclang.getCursorResultType(r->function);
    enum CXTypeKind kind = libclang.getCanonicalType(type).kind;
    if (op->elementwise) {
        CustomParam p = {.kind = CUSTOM_OUTPUT,
                         .name = "y",
                         .type = type_spelling(r->c, type),
                         .line = op->line};
        if (!element_dtype(type, &p.dtype))
            reader_fault(r, op->line, "elementwise function '%s' returns no element of a tensor",
                         op->function);
        op->nout = 1;
        vec_push(r->c->arena, op->param, op->nparam, p);
        return;
    }
    op->returns_int = kind == CXType_Int;
    if (kind != CXType_Void && kind != CXType_Int)
        reader_fault(r, op->line,
                     "function '%s' has to return void, or int (0: it went well), unless it is "
                     "marked elementwise",
                     op->function);
}

static void read_function(SourceReader *r)
{
    CustomOp *op = r->op;
    int n = libclang.Cursor_getNumArguments(r->function);
    CXType type = libclang.getCursorType(r->function);
    op->line = line_of(r->function);
    if (type.kind == CXType_FunctionNoProto || libclang.isFunctionTypeVariadic(type))
        reader_fault(r, op->line, "function '%s' has to declare all of its parameters",
                     op->function);
    /* sizes refer to tensors that may come later: two walks */
    op->param = NEWN(r->c->arena, CustomParam, 1);
    CustomParam *all = NEWN(r->c->arena, CustomParam, n + 1);
    for (int walk = 0; walk < 2; walk++) {
        for (int i = 0; i < n && r->ok; i++) {
            CXCursor at = libclang.Cursor_getArgument(r->function, (unsigned)i);
            CXType t = libclang.getCursorType(at), canonical = libclang.getCanonicalType(t);
            bool pointer = canonical.kind == CXType_Pointer;
            CustomParam *p = &all[i];
            if (!walk)
                *p = (CustomParam){.name = clang_text(r->c->arena, libclang.getCursorSpelling(at)),
                                   .type = type_spelling(r->c, t),
                                   .kind = CUSTOM_INT,
                                   .line = line_of(at)};
            if (!*p->name)
                reader_fault(r, p->line, "parameter %d of '%s' has no name", i, op->function);
            else if (op->elementwise && !walk)
                read_element(r, p, t);
            else if (!op->elementwise && pointer && !walk)
                read_pointer(r, p, libclang.getPointeeType(t));
            else if (!op->elementwise && !pointer && walk) {
                op->param = all;
                op->nparam = n;
                read_scalar(r, p, t);
            }
        }
    }
    op->param = NULL;
    op->nparam = 0;
    for (int i = 0; i < n; i++)
        vec_push(r->c->arena, op->param, op->nparam, all[i]);
    if (r->ok)
        read_result(r);
    if (r->ok && !op->nout)
        reader_fault(r, op->line, "function '%s' has no output: no pointer to what it may write",
                     op->function);
}

static bool is_kind(const CustomOp *op, const char *name, CustomKind kind)
{
    for (int i = 0; i < op->nparam; i++)
        if (op->param[i].kind == kind && !strcmp(op->param[i].name, name))
            return true;
    return false;
}

/* Rules are about parameters that there are. */
static void check_rules(SourceReader *r)
{
    const CustomOp *op = r->op;
    bool scratch = false;
    for (int i = 0; i < op->nrule && r->ok; i++) {
        const CustomRule *rule = &op->rule[i];
        bool known = true;
        switch (rule->kind) {
        case CUSTOM_OUT_RULE: known = is_kind(op, rule->name, CUSTOM_OUTPUT); break;
        case CUSTOM_STATE_RULE: known = is_kind(op, rule->name, CUSTOM_STATE); break;
        case CUSTOM_SCRATCH_RULE: known = is_kind(op, "scratch", CUSTOM_SCRATCH); break;
        case CUSTOM_DEFAULT_RULE:
            known = is_kind(op, rule->name, CUSTOM_INT) || is_kind(op, rule->name, CUSTOM_FLOAT);
            break;
        }
        scratch |= rule->kind == CUSTOM_SCRATCH_RULE;
        if (!known)
            reader_fault(r, rule->line,
                         "this is a rule about '%s', which is no such parameter of '%s'",
                         *rule->name ? rule->name : "scratch", op->function);
    }
    for (int i = 0; i < op->nparam && r->ok; i++)
        if (op->param[i].kind == CUSTOM_SCRATCH && !scratch)
            reader_fault(r, op->param[i].line,
                         "nothing above function '%s' says how many bytes of scratch it needs; say "
                         "scratch = 4*n_x",
                         op->function);
}

static void find_function(SourceReader *r)
{
    CustomOp *op = r->op;
    CXCursor all = libclang.getTranslationUnitCursor(r->unit);
    libclang.visitChildren(all, look_at, r);
    if (!r->ok)
        return;
    libclang.visitChildren(all, look_at_name, r);
    if (!op->function && r->nname > 1)
        reader_fault(r, 1, "it defines several functions (%s): name one, as in %s:%s",
                     r->names.data, op->file, r->only);
    else if (!r->found && op->function)
        reader_fault(r, 1, "it defines no function '%s' that other files can see; there %s %s",
                     op->function, r->nname == 1 ? "is" : "are", r->nname ? r->names.data : "none");
    else if (!r->found)
        reader_fault(r, 1, "it defines no function that other files can see");
    else
        op->function = r->only;
}

bool custom_read(Context *c, CustomOp *op)
{
    static const char *const arguments[] = {"-x", "c", "-std=c99", "-fparse-all-comments"};
    SourceReader r = {.c = c, .op = op, .ok = true};
    struct CXUnsavedFile source = {op->file, op->text, op->bytes}; /* what the bundle will have */
    CUnit unit;
    if (!cunit_open(&unit, c->arena, op->file, &source, (int)(sizeof arguments / sizeof *arguments),
                    arguments, CXTranslationUnit_DetailedPreprocessingRecord))
        reader_fault(&r, 1, "libclang cannot read it");
    r.unit = unit.unit;
    if (r.ok)
        check_diagnostics(&r);
    if (r.ok)
        libclang.getInclusions(r.unit, check_include, &r);
    if (r.ok)
        find_function(&r);
    if (r.ok)
        read_comment(&r);
    if (r.ok)
        read_function(&r);
    if (r.ok)
        check_rules(&r);
    sb_free(&r.names);
    cunit_close(&unit);
    return r.ok;
}
