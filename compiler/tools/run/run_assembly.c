/* run_assembly.c - what the system's C compiler makes of the kernels: their innermost loops,
 * instructions by kind.
 *
 * The kernels are written to a folder as in a bundle, and compiled with the flags of `ingot bench`
 * and -S.  In the text of a function a jump backwards closes a loop; one that no other loop is in
 * is innermost.  Of those, the one with the most arithmetic is shown. Knows x86-64 and AArch64;
 * elsewhere the text is shown and all is counted as arithmetic. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inspect.h"
#include "run.h"

enum { MAX_LOOP_TEXT = 1 << 15, KERNELS_PER_FILE = 12 };

/* ---- instructions ------------------------------------------------------------------------- */

typedef struct {
    const char *start; /* of the mnemonic; "*x": anywhere in it */
    InstrKind kind;
} MnemonicRule;

/* The first that fits. */
static const MnemonicRule rules[] = {
    {"*fmadd", INSTR_MULTIPLY_ADD},
    {"*fnmadd", INSTR_MULTIPLY_ADD},
    {"*fmsub", INSTR_MULTIPLY_ADD},
    {"*fnmsub", INSTR_MULTIPLY_ADD},
    {"fmla", INSTR_MULTIPLY_ADD},
    {"fmls", INSTR_MULTIPLY_ADD},
    {"vpdp", INSTR_MULTIPLY_ADD},
    {"vpmadd", INSTR_MULTIPLY_ADD},
    {"sdot", INSTR_MULTIPLY_ADD},
    {"udot", INSTR_MULTIPLY_ADD},
    {"mla", INSTR_MULTIPLY_ADD},
    {"tdp", INSTR_MULTIPLY_ADD},
    {"*broadcast", INSTR_SHUFFLE},
    {"*shuf", INSTR_SHUFFLE},
    {"*perm", INSTR_SHUFFLE},
    {"*unpck", INSTR_SHUFFLE},
    {"*insert", INSTR_SHUFFLE},
    {"*extract", INSTR_SHUFFLE},
    {"*punpck", INSTR_SHUFFLE},
    {"*blend", INSTR_SHUFFLE},
    {"*align", INSTR_SHUFFLE},
    {"dup", INSTR_SHUFFLE},
    {"zip", INSTR_SHUFFLE},
    {"uzp", INSTR_SHUFFLE},
    {"ext", INSTR_SHUFFLE},
    {"vpmovm", INSTR_SHUFFLE},
    {"*cvt", INSTR_CONVERT},
    {"vpmovsx", INSTR_CONVERT},
    {"vpmovzx", INSTR_CONVERT},
    {"vpmov", INSTR_CONVERT},
    {"*pack", INSTR_CONVERT},
    {"scvtf", INSTR_CONVERT},
    {"sxtl", INSTR_CONVERT},
    {"vmov", INSTR_LOAD},
    {"movap", INSTR_LOAD},
    {"movup", INSTR_LOAD},
    {"movs", INSTR_LOAD},
    {"ld", INSTR_LOAD},
    {"st", INSTR_STORE},
    {"kmov", INSTR_SHUFFLE},
    {"j", INSTR_BRANCH},
    {"b.", INSTR_BRANCH},
    {"cb", INSTR_BRANCH},
    {"tb", INSTR_BRANCH},
    {"call", INSTR_BRANCH},
    {"bl", INSTR_BRANCH},
    {"ret", INSTR_BRANCH},
    {"v", INSTR_ARITHMETIC},
    {"f", INSTR_ARITHMETIC},
};

static bool is_word(char c)
{
    return c && c != ' ' && c != '\t' && c != '\n';
}

static bool fits(const char *rule, const char *word, size_t n)
{
    size_t m = strlen(rule) - (*rule == '*');
    if (*rule != '*')
        return m <= n && !memcmp(word, rule, m);
    for (size_t i = 0; i + m <= n; i++)
        if (!memcmp(word + i, rule + 1, m))
            return true;
    return false;
}

/* Scalar sums of SSE: addss, mulsd ... */
static bool is_scalar_float(const char *word, size_t n)
{
    return n > 4 && (!memcmp(word + n - 2, "ss", 2) || !memcmp(word + n - 2, "sd", 2) ||
                     !memcmp(word + n - 2, "ps", 2) || !memcmp(word + n - 2, "pd", 2));
}

static InstrKind kind_of(const char *line, const char *end)
{
    size_t n = 0;
    while (line + n < end && is_word(line[n]))
        n++;
    InstrKind kind = is_scalar_float(line, n) ? INSTR_ARITHMETIC : INSTR_ADDRESS;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (fits(rules[i].start, line, n)) {
            kind = rules[i].kind;
            break;
        }
    if (kind == INSTR_LOAD && *line != 'l') { /* AT&T: the last operand is where it goes */
        const char *last = end;
        while (last > line && last[-1] != ')' && last[-1] != ' ' &&
               last[-1] != '\t') /* a mask: {%k1} */
            last--;
        kind = !memchr(line, '(', (size_t)(end - line)) ? INSTR_ADDRESS
               : last[-1] == ')'                        ? INSTR_STORE
                                                        : INSTR_LOAD;
    }
    return kind;
}

/* ---- lines of a function --------------------------------------------------------------------- */

typedef struct {
    const char *at, *end; /* without leading space */
    bool label;
} AssemblyLine;

typedef struct {
    AssemblyLine *line;
    int n;
} AssemblyFunction;

static bool is_instruction(const AssemblyLine *l)
{
    return !l->label && *l->at != '.' && *l->at != '#' && *l->at != '/' && l->at < l->end;
}

/* The lines of function `name`, from its label to .size. */
static AssemblyFunction find_function(Arena *a, const char *text, const char *name)
{
    AssemblyFunction f = {0};
    const char *at = text, *label = arena_printf(a, "\n%s:", name);
    at = strstr(at, label);
    if (!at)
        return f;
    at += strlen(label);
    while (*at) {
        const char *stop = at + strcspn(at, "\n");
        AssemblyLine l = {at + strspn(at, " \t"), stop, false};
        if (l.at < stop && !strncmp(l.at, ".size", 5))
            break;
        l.label = l.at < stop && l.at == at && stop[-1] == ':';
        if (l.at < stop)
            vec_push(a, f.line, f.n, l);
        at = stop + (*stop == '\n');
    }
    return f;
}

/* The earlier line that this one jumps to, or -1. */
static int jumps_back(const AssemblyFunction *f, int i)
{
    const AssemblyLine *l = &f->line[i];
    if (!is_instruction(l) || kind_of(l->at, l->end) != INSTR_BRANCH || !strncmp(l->at, "call", 4))
        return -1;
    const char *word = l->end;
    while (word > l->at && is_word(word[-1]) && word[-1] != ',')
        word--;
    size_t n = (size_t)(l->end - word);
    for (int k = i; k-- > 0;)
        if (f->line[k].label && (size_t)(f->line[k].end - f->line[k].at) == n + 1 &&
            !memcmp(f->line[k].at, word, n))
            return k;
    return -1;
}

static int arithmetic(const AssemblyFunction *f, int from, int to)
{
    int n = 0;
    for (int i = from; i <= to; i++)
        if (is_instruction(&f->line[i])) {
            InstrKind kind = kind_of(f->line[i].at, f->line[i].end);
            n += kind == INSTR_MULTIPLY_ADD ? 100 : kind == INSTR_ARITHMETIC ? 10 : 0;
        }
    return n;
}

/* Innermost loops are those whose last jump back is the first one behind their label. */
static bool find_loop(const AssemblyFunction *f, int *from, int *to)
{
    int most = -1, last_end = -1;
    for (int i = 0; i < f->n; i++) {
        int start = jumps_back(f, i);
        if (start < 0)
            continue;
        bool innermost = start > last_end;
        last_end = i;
        int n = innermost ? arithmetic(f, start, i) : -1;
        if (n > most) {
            most = n;
            *from = start;
            *to = i;
        }
    }
    return most >= 0;
}

static Assembly *describe(Arena *a, const AssemblyFunction *f, const char *compiler)
{
    Assembly *s = NEW(a, Assembly);
    StrBuf text = {0};
    int from = 0, to = -1;
    s->compiler = compiler;
    for (int i = 0; i < f->n; i++)
        s->function += is_instruction(&f->line[i]);
    bool loop = find_loop(f, &from, &to);
    for (int i = from; i <= to; i++) {
        const AssemblyLine *l = &f->line[i];
        if (!is_instruction(l) && !l->label)
            continue;
        if (text.len < MAX_LOOP_TEXT)
            sb_printf(&text, "%s%.*s\n", l->label ? "" : "    ", (int)(l->end - l->at), l->at);
        if (l->label)
            continue;
        InstrKind kind = kind_of(l->at, l->end);
        s->count[kind]++;
        s->total++;
        s->from_memory += (kind == INSTR_MULTIPLY_ADD || kind == INSTR_ARITHMETIC) &&
                          memchr(l->at, '(', (size_t)(l->end - l->at));
    }
    s->text = loop ? arena_strdup(a, text.data ? text.data : "") : NULL;
    sb_free(&text);
    return s;
}

/* ---- the compiler ---------------------------------------------------------------------------- */

static bool put_file(Arena *a, const char *dir, const char *name, const void *data, size_t bytes)
{
    return file_write(arena_printf(a, "%s/%s", dir, name), data, bytes);
}

static bool write_sources(Arena *a, const char *dir, const Inspection *x, int *nfile)
{
    bool ok = true;
    for (const RuntimeFile *f = runtime_files; *f->name && ok; f++)
        if (strstr(f->name, ".h"))
            ok = put_file(a, dir, f->name, f->data, f->bytes);
    int n = 0;
    StrBuf sb = {0};
    for (int i = 0; i < x->p->nkernel && ok; i++) {
        const Kernel *k = x->p->kernels[i];
        if (k->check)
            continue;
        if (!sb.len)
            sb_puts(&sb, "#include <stdint.h>\n#include <math.h>\n#include <string.h>\n#include "
                         "\"igrt_vec.h\"\n");
        render_kernel(&sb, x->t, k, k->name);
        sb_puts(&sb, "\n");
        if (++n % KERNELS_PER_FILE == 0) {
            ok = put_file(a, dir, arena_printf(a, "kernels_%d.c", (*nfile)++), sb.data, sb.len);
            sb.len = 0;
        }
    }
    if (sb.len && ok)
        ok = put_file(a, dir, arena_printf(a, "kernels_%d.c", (*nfile)++), sb.data, sb.len);
    sb_free(&sb);
    return ok;
}

void assembly_make(const Options *o, Inspection *x)
{
    const char *work = x->t->gpu ? NULL : temporary_folder(o->a, "assembly");
    int nfile = 0;
    if (!work)
        return;
    bool ok = write_sources(o->a, work, x, &nfile) &&
              compile_to_assembly(o->a, work, nfile, o->compile.target ? o->compile.target : "c");
    const char *compiler =
        arena_printf(o->a, "%s %s", c_compiler(), x->t->flags ? x->t->flags : "");
    x->assembly = NEWN(o->a, Assembly *, x->p->nkernel + 1);
    for (int i = 0; i < nfile && ok; i++) {
        const char *text = read_text(o->a, arena_printf(o->a, "%s/kernels_%d.s", work, i));
        for (int k = 0; text && k < x->p->nkernel; k++) {
            AssemblyFunction f = find_function(o->a, text, x->p->kernels[k]->name);
            if (f.n)
                x->assembly[k] = describe(o->a, &f, compiler);
        }
    }
    remove_tree(work);
}
