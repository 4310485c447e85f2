/* signature.c - what several files of the emitted C have to agree on: names, types, the parameters
 * of a kernel; and text that is safe inside comments and strings.
 *
 * Names of tensors, dims and nodes come from model files and may be anything. */
#include <string.h>

#include "codegen.h"

/* ---- identifiers ------------------------------------------------------------------------- */

static bool is_keyword(const char *s)
{
    static const char *const words[] = {
        "auto",     "break",    "case",     "char",     "const",     "continue",  "default",
        "do",       "double",   "else",     "enum",     "extern",    "float",     "for",
        "goto",     "if",       "inline",   "int",      "long",      "register",  "restrict",
        "return",   "short",    "signed",   "sizeof",   "static",    "struct",    "switch",
        "typedef",  "union",    "unsigned", "void",     "volatile",  "while",     "asm",
        "typeof",   "bool",     "true",     "false",    "complex",   "imaginary", "kernel",
        "global",   "local",    "constant", "private",  "half",      "unix",      "linux",
        "i386",     "alignas",  "alignof",  "and",      "and_eq",    "bitand",    "bitor",
        "catch",    "class",    "compl",    "concept",  "constexpr", "decltype",  "delete",
        "explicit", "export",   "friend",   "mutable",  "namespace", "new",       "noexcept",
        "not",      "not_eq",   "nullptr",  "operator", "or",        "or_eq",     "protected",
        "public",   "requires", "template", "this",     "throw",     "try",       "typeid",
        "typename", "using",    "virtual",  "xor",      "xor_eq",    "errno",     "stdin",
        "stdout",   "stderr",   "assert",   "NULL",     "EOF",       "NAN",       "INFINITY",
        "I"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strcmp(s, words[i]))
            return true;
    return false;
}

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* At most `bytes` - 2 characters of text, without runs of underscores (reserved in C++). */
static void clean(char *out, size_t bytes, const char *text)
{
    size_t n = 0;
    for (; *text && n + 2 < bytes; text++) {
        if (is_alnum(*text)) {
            if (n == 0 && *text >= '0' && *text <= '9')
                out[n++] = 'x';
            out[n++] = *text;
        } else if (n && out[n - 1] != '_') {
            out[n++] = '_';
        }
    }
    while (n && out[n - 1] == '_')
        n--;
    if (!n)
        out[n++] = 'x';
    out[n] = 0;
    if (is_keyword(out))
        memcpy(out + n, "_", 2);
}

char *identifier(Arena *a, const char *text)
{
    char name[64];
    clean(name, sizeof name, text ? text : "");
    return arena_strdup(a, name);
}

/* Inside kernels letters with digits are axes and buffers, so a run-time integer is n_<name>. */
const char *var_name(const Context *c, int var, char out[VAR_NAME_BYTES])
{
    char other[VAR_NAME_BYTES - 16];
    out[0] = 'n';
    out[1] = '_';
    clean(out + 2, sizeof other, c->vars[var].name);
    for (int i = 0; i < var; i++) {
        clean(other, sizeof other, c->vars[i].name);
        if (!strcmp(other, out + 2)) {
            snprintf(out + strlen(out), 14, "_v%d", var);
            break;
        }
    }
    return out;
}

/* ---- types and parameters ---------------------------------------------------------------- */

const char *c_type(ingot_dtype d)
{
    return d == INGOT_STRING ? "const char *" : dtype_info[d].c_type;
}

int64_t element_bytes(ingot_dtype d)
{
    return d == INGOT_STRING ? (int64_t)sizeof(char *) : dtype_info[d].bytes;
}

bool kernel_has_param(const Kernel *k, int arg)
{
    return k->args[arg].read || k->args[arg].written;
}

const char *scalar_type(const Scalar *s)
{
    return dtype_is_float(s->dtype) ? "float" : "int32_t";
}

/* ---- text: of absurdly long names the beginning ------------------------------------------ */

enum { MAX_COMMENT = 200, MAX_STRING = 1000 };

void print_comment_text(StrBuf *sb, const char *s)
{
    const char *end = s + MAX_COMMENT;
    for (char last = sb->len ? sb->data[sb->len - 1] : 0; *s && s < end; s++) {
        char c = *s < ' ' || *s > '~' ? '?' : *s == '\\' ? '/' : *s;
        if ((last == '*' && c == '/') || (last == '/' && c == '*') || (last == '?' && c == '?'))
            sb_puts(sb, " "); /* no comment mark, no trigraph */
        sb_write(sb, &c, 1);
        last = c;
    }
}

void print_string(StrBuf *sb, const char *s)
{
    const char *end = s + MAX_STRING;
    sb_puts(sb, "\"");
    for (; *s && s < end; s++) {
        const char c = *s < ' ' || *s > '~' ? '?' : *s;
        if (c == '"' || c == '\\' || c == '?') /* two question marks would begin a trigraph */
            sb_puts(sb, "\\");
        sb_write(sb, &c, 1);
    }
    sb_puts(sb, "\"");
}

void print_dim(StrBuf *sb, const Context *c, Node *n)
{
    static const char *const sign[OP_COUNT] = {[OP_ADD] = "+",      [OP_SUB] = "-", [OP_MUL] = "*",
                                               [OP_FLOORDIV] = "/", [OP_MOD] = "%", [OP_DIV] = "/"};
    if (n->op == OP_CONST) {
        sb_printf(sb, "%lld", (long long)n->arg.i);
    } else if (n->op == OP_VAR) {
        print_comment_text(sb, c->vars[n->arg.i].name);
        if (sb->len && strchr("*/", sb->data[sb->len - 1])) /* an operator follows */
            sb_puts(sb, " ");
    } else if (sign[n->op] && n->nsrc == 2) {
        sb_puts(sb, "(");
        print_dim(sb, c, n->src[0]);
        sb_puts(sb, sign[n->op]);
        print_dim(sb, c, n->src[1]);
        sb_puts(sb, ")");
    } else {
        sb_printf(sb, "%s(", op_info[n->op].text);
        for (uint32_t i = 0; i < n->nsrc; i++) {
            sb_puts(sb, i ? "," : "");
            print_dim(sb, c, n->src[i]);
        }
        sb_puts(sb, ")");
    }
}

void print_shape(StrBuf *sb, const Context *c, ingot_dtype d, int rank, Node *const *dims)
{
    sb_printf(sb, "%s[", dtype_info[d].name);
    for (int i = 0; i < rank; i++) {
        sb_puts(sb, i ? "," : "");
        print_dim(sb, c, dims[i]);
    }
    sb_puts(sb, "]");
}
