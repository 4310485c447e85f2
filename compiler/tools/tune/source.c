/* source.c - candidates as C: a folder with a program that checks and times them
 * (harness/tune_main.c).
 *
 *     case_0.c      kernel 0: its naive form, how its weights are packed, what its arguments are
 *     case_0_1.c    the second few of its candidates
 *     cases.c       the list
 *     tune_head.h   what the candidates include: compiled once, for it takes as long as two of them
 *     Makefile      for whoever builds it elsewhere */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "choose.h"
#include "tune_run.h"

const char tune_head[] = "tune_head.h";

enum { MAX_VARIANTS = 16 }; /* tune_main.c has as many */

typedef struct {
    const Tuning *t;
    const char *dir;
    const TuneCaseOf *of;
    int number; /* of the case */
    const Layout *variant[64][MAX_VARIANTS];
    int nvariant[64];
    bool failed;
    const char **why;
} Source;

static void write_file(Source *s, const char *name, StrBuf *text)
{
    const char *path = arena_printf(s->t->a, "%s/%s", s->dir, name);
    if (!s->failed && !file_write(path, text->data, text->len)) {
        s->failed = true;
        *s->why = arena_printf(s->t->a, "%s: %s", path, strerror(errno));
    }
    sb_free(text);
    *text = (StrBuf){0};
}

/* What is there stays as it is: tune_head.h has been compiled with it. */
static bool is_there(const Source *s, const char *name, size_t bytes)
{
    struct stat st;
    return !stat(arena_printf(s->t->a, "%s/%s", s->dir, name), &st) && st.st_size == (off_t)bytes;
}

static void put_includes(StrBuf *sb, unsigned needs)
{
    sb_puts(sb, "#include \"tune_case.h\"\n#include <stdint.h>\n#include <math.h>\n"
                "#include <string.h>\n");
    print_kernel_headers(sb, needs);
}

/* static void name(void *const *a) { k(a[0], a[1], n, 0, 32); } */
static void put_run(StrBuf *sb, const Kernel *k, const char *function, const char *name)
{
    const char *separator = "";
    int parts = kernel_parts(k);
    if (k->scratch)
        sb_printf(sb, "static unsigned char scratch_%s[%lld] __attribute__((aligned(64)));\n", name,
                  (long long)sat_mul(k->scratch, parts ? parts : 1));
    sb_printf(sb, "static void %s(void *const *a)\n{\n    %s(", name, function);
    for (int i = 0; i < k->narg; i++)
        if (kernel_has_param(k, i)) {
            sb_printf(sb, "%sa[%d]", separator, i);
            separator = ", ";
        }
    for (int i = 0; i < k->nvar; i++) { /* as large as it may be */
        const Var *v = &k->c->vars[k->vars[i]];
        sb_printf(sb, "%s%lld", separator, (long long)(v->kind >= VAR_LOOP ? v->lo : v->hi));
        separator = ", ";
    }
    for (int i = 0; i < k->nscalar; i++) { /* as one of the steps has it */
        sb_puts(sb, separator);
        print_scalar(sb, &k->scalars[i], k->scalars[i].lo);
        separator = ", ";
    }
    if (k->scratch) {
        sb_printf(sb, "%sscratch_%s", separator, name);
        separator = ", ";
    }
    if (parts)
        sb_printf(sb, "%s0, %d", separator, parts);
    sb_puts(sb, ");\n}\n");
}

static unsigned put_kernel(StrBuf *sb, const Source *s, const Kernel *k, const char *function,
                           const char *name)
{
    sb_puts(sb, "static ");
    unsigned needs = render_kernel(sb, s->t->target, k, function);
    put_run(sb, k, function, name);
    return needs;
}

static int variant_of(const Source *s, int arg, const Candidate *c)
{
    const Layout *l = c->layout ? c->layout[arg] : NULL;
    for (int i = 0; i < s->nvariant[arg] && l; i++)
        if (layout_equal(l, s->variant[arg][i]))
            return i;
    return 0;
}

bool case_takes(const TuneCaseOf *of, const Candidate *c)
{
    const TuneKernel *k = of->kernel;
    bool takes = true;
    for (int i = 0; i < k->naive->narg && c->layout && takes; i++) {
        const Layout *l = c->layout[i], *own = &k->naive->args[i].layout;
        const Layout *way[MAX_VARIANTS] = {own};
        int n = 1;
        for (int j = 0; j < of->n && l; j++) {
            const Layout *x = of->candidate[j]->layout ? of->candidate[j]->layout[i] : NULL;
            bool known = !x;
            for (int v = 0; v < n && !known; v++)
                known = layout_equal(x, way[v]);
            if (!known && n < MAX_VARIANTS)
                way[n++] = x;
        }
        takes = !l || n < MAX_VARIANTS;
        for (int v = 0; v < n && !takes; v++)
            takes = layout_equal(l, way[v]);
    }
    return takes;
}

/* How each weight is stored, by all candidates; false if one is stored in too many ways. */
static bool find_variants(Source *s)
{
    const TuneKernel *k = s->of->kernel;
    for (int i = 0; i < k->naive->narg; i++) {
        s->variant[i][0] = &k->naive->args[i].layout;
        s->nvariant[i] = 1;
        for (int j = 0; j < s->of->n; j++) {
            const Candidate *c = s->of->candidate[j];
            if (!c->layout || !c->layout[i] || variant_of(s, i, c))
                continue;
            if (layout_equal(c->layout[i], s->variant[i][0]))
                continue;
            if (s->nvariant[i] == MAX_VARIANTS)
                return false;
            s->variant[i][s->nvariant[i]++] = c->layout[i];
        }
    }
    return true;
}

static char kind_of(ingot_dtype d)
{
    switch (d) {
    case INGOT_F32: return 'f';
    case INGOT_F64: return 'd';
    case INGOT_F16: return 'h';
    case INGOT_BF16: return 'B';
    case INGOT_BOOL: return 'b';
    default: return dtype_is_float(d) ? 'q' : dtype_info[d].kind == 'u' ? 'u' : 'i';
    }
}

/* A kernel that stores dense data in that layout. */
static unsigned put_pack(StrBuf *sb, const Source *s, int arg, int variant)
{
    const TuneKernel *k = s->of->kernel;
    Buffer dense = *k->step[0]->bufs[arg], stored = dense;
    dense.base = stored.base = NULL;
    dense.layout = (Layout){0};
    stored.layout = *s->variant[arg][variant];
    Step *copy = copy_step(s->t->p, &stored, &dense, k->step[0]);
    const char *name = arena_printf(s->t->a, "store_%d_%d", arg, variant);
    sb_puts(sb, "static ");
    unsigned needs = render_kernel(sb, s->t->target, copy->kernel, name);
    sb_printf(sb, "static void pack_%d_%d(void *to, const void *from)\n{\n    %s(to, from);\n}\n",
              arg, variant, name);
    ingot_context_free(copy->kernel->c);
    return needs;
}

static unsigned put_arg(StrBuf *sb, StrBuf *table, const Source *s, int i)
{
    const TuneKernel *k = s->of->kernel;
    const KernelArg *a = &k->naive->args[i];
    bool packed = !a->written && kernel_has_param(k->naive, i);
    int n = packed ? s->nvariant[i] : 1;
    unsigned needs = 0;
    for (int v = 0; v < n; v++)
        if (packed && s->variant[i][v]->n)
            needs |= put_pack(sb, s, i, v);
    sb_printf(table, "static const size_t stored_%d[] = {", i);
    for (int v = 0; v < n; v++)
        sb_printf(table, "%lld, ", (long long)layout_elements(s->variant[i][v], a->rank, a->dims));
    sb_printf(table, "};\nstatic TunePack *const packs_%d[] = {", i);
    for (int v = 0; v < n; v++)
        sb_printf(table, packed && s->variant[i][v]->n ? "pack_%d_%d, " : "0, ", i, v);
    sb_puts(table, "};\n");
    return needs;
}

static void put_arg_row(StrBuf *sb, const Source *s, int i)
{
    const TuneKernel *k = s->of->kernel;
    const KernelArg *a = &k->naive->args[i];
    int64_t dense = 1;
    for (int d = 0; d < a->rank; d++)
        dense = sat_mul(dense, a->dims[d]->hi);
    bool weight = k->step[0]->bufs[i]->kind == BUF_WEIGHT, packed = !a->written;
    sb_printf(sb, "    {'%c', %d, %d, %d, %d, %lld, %lld, %d, stored_%d, packs_%d},\n",
              kind_of(a->dtype), (int)elem_bytes(a->dtype), a->read, a->written, weight,
              (long long)layout_fill(&a->layout), (long long)dense,
              packed && kernel_has_param(k->naive, i) ? s->nvariant[i] : 1, i, i);
}

/* ---- what may differ ------------------------------------------------------------------------- */

/* Floats are rounded to whole numbers: of what is nearly the same, the results may differ by
 * one. */
static bool makes_integers(const Kernel *k)
{
    Arena *a = arena_new();
    int n;
    Node **order = graph_toposort(a, 1, &k->sink, &n);
    bool integers = false;
    for (int i = 0; i < n; i++) {
        const Node *t = order[i];
        integers |=
            t->op == OP_ROUND || t->op == OP_FLOOR || t->op == OP_CEIL || t->op == OP_TRUNC ||
            (t->op == OP_CAST && dtype_is_float(t->src[0]->dtype) && !dtype_is_float(t->dtype));
    }
    arena_free(a);
    return integers;
}

/* ---- files ----------------------------------------------------------------------------------- */

static const char *function_of(const Source *s, int i)
{
    return arena_printf(s->t->a, "case_%d_k%d", s->number, i);
}

/* As in a bundle: functions that whoever calls them cannot see into, or the compiler would make
 * others of them. */
static void put_candidates(Source *s, int first, int n)
{
    StrBuf body = {0}, sb = {0};
    unsigned needs = 0;
    const TuneKernel *k = s->of->kernel;
    for (int i = first; i < first + n; i++) {
        Kernel *kernel = candidate_kernel(k, s->of->candidate[i]);
        sb_printf(&body, "\n/* %s */\n", s->of->candidate[i]->text);
        needs |= render_kernel(&body, s->t->target, kernel, function_of(s, i));
        ingot_context_free(kernel->c);
    }
    sb_printf(&sb, "/* case_%d_%d.c */\n", s->number, first);
    put_includes(&sb, needs);
    sb_write(&sb, body.data, body.len);
    sb_free(&body);
    write_file(s, arena_printf(s->t->a, "case_%d_%d.c", s->number, first), &sb);
}

/* How each is called, and which weights it reads. */
static void put_calls(StrBuf *sb, const Source *s)
{
    for (int i = 0; i < s->of->n; i++) {
        const Candidate *c = s->of->candidate[i];
        Kernel *kernel = candidate_kernel(s->of->kernel, c);
        kernel_prototype(sb, s->t->target, kernel, function_of(s, i));
        sb_puts(sb, ";\n");
        put_run(sb, kernel, function_of(s, i), arena_printf(s->t->a, "run%d", i));
        sb_printf(sb, "static const unsigned char variant%d[] = {", i);
        for (int j = 0; j < kernel->narg; j++)
            sb_printf(sb, "%d, ", variant_of(s, j, c));
        sb_printf(sb, "};\nstatic const TuneCandidate candidate%d = {run%d, variant%d};\n", i, i,
                  i);
        ingot_context_free(kernel->c);
    }
}

static void put_case(Source *s)
{
    StrBuf body = {0}, sb = {0}, table = {0};
    const TuneKernel *k = s->of->kernel;
    unsigned needs = 0;
    if (!s->of->judged) {
        Kernel *naive = candidate_kernel(k, NULL);
        needs |= put_kernel(&body, s, naive, "naive", "run_naive");
        ingot_context_free(naive->c);
    }
    for (int i = 0; i < k->naive->narg; i++)
        needs |= put_arg(&body, &table, s, i);
    sb_printf(&sb, "/* case_%d.c - %s */\n", s->number, k->step[0]->name);
    put_includes(&sb, needs);
    sb_write(&sb, body.data, body.len);
    sb_write(&sb, table.data, table.len);
    sb_printf(&sb, "static const TuneArg arg[] = {\n");
    for (int i = 0; i < k->naive->narg; i++)
        put_arg_row(&sb, s, i);
    sb_puts(&sb, "};\n");
    put_calls(&sb, s);
    sb_puts(&sb, "static const TuneCandidate *const candidate[] = {\n");
    for (int i = 0; i < s->of->n; i++)
        sb_printf(&sb, "    &candidate%d,\n", i);
    int sets =
        k->naive->flops > 500000000 && !s->of->judged ? 1 : 3; /* the naive kernel takes its time */
    sb_printf(&sb,
              "};\nextern const TuneCase case_%d;\n"
              "const TuneCase case_%d = {\"%s\", arg, %d, %d, candidate, %s, %d, %d, %d, "
              "%lld.0, %lld.0};\n",
              s->number, s->number, k->step[0]->name, k->naive->narg, s->of->n,
              s->of->judged ? "run0" : "run_naive", kernel_is_exact(k->naive),
              makes_integers(k->naive), sets, (long long)s->t->span, (long long)s->t->arena);
    sb_free(&body);
    sb_free(&table);
    write_file(s, arena_printf(s->t->a, "case_%d.c", s->number), &sb);
}

static void put_list(Source *s, int n)
{
    StrBuf sb = {0};
    sb_puts(&sb, "/* cases.c */\n#include \"tune_case.h\"\n\n");
    for (int i = 0; i < n; i++)
        sb_printf(&sb, "extern const TuneCase case_%d;\n", i);
    sb_puts(&sb, "const TuneCase *const tune_cases[] = {");
    for (int i = 0; i < n; i++)
        sb_printf(&sb, "&case_%d, ", i);
    sb_printf(&sb, "0};\nconst int tune_ncase = %d;\n", n);
    write_file(s, "cases.c", &sb);
}

static void put_makefile(Source *s)
{
    StrBuf sb = {0};
    sb_printf(&sb,
              "# Builds ./tune_run, which checks and times candidates.\n"
              "CC ?= cc\nCFLAGS ?= -O3\n"
              "OF_GCC = " FLAG_OF_GCC "\n"
              "KNOWN := $(shell $(CC) $(OF_GCC) -fsyntax-only -x c /dev/null 2>/dev/null && echo "
              "$(OF_GCC))\n"
              "FLAGS = -ffp-contract=off $(KNOWN) -w -I. %s\n"
              "OBJECTS = $(patsubst %%.c,%%.o,$(wildcard *.c))\n\n"
              "tune_run: $(OBJECTS)\n\t$(CC) $(FLAGS) $(CFLAGS) -o $@ $(OBJECTS) -lm\n\n"
              "%%.o: %%.c\n\t$(CC) -std=gnu99 $(FLAGS) $(CFLAGS) -c -o $@ $<\n\n"
              "case_%%.o: case_%%.c %s.gch\n"
              "\t$(CC) -std=gnu99 $(FLAGS) $(CFLAGS) -include %s -c -o $@ $<\n\n"
              "%s.gch: %s\n"
              "\t-$(CC) -std=gnu99 $(FLAGS) $(CFLAGS) -x c-header -o $@ $<\n",
              s->t->target->flags ? s->t->target->flags : "", tune_head, tune_head, tune_head,
              tune_head);
    write_file(s, "Makefile", &sb);
}

static void put_head(Source *s)
{
    StrBuf sb = {0};
    put_includes(&sb, s->t->target->machine.lanes > 1 ? NEED_VEC_ALL : NEED_NUM);
    if (is_there(s, tune_head, sb.len))
        sb_free(&sb);
    else
        write_file(s, tune_head, &sb);
}

static void put_embedded(Source *s, const RuntimeFile *list, bool headers)
{
    for (const RuntimeFile *f = list; *f->name; f++) {
        size_t n = strlen(f->name);
        if (headers && (strchr(f->name, '/') || strcmp(f->name + n - 2, ".h")))
            continue;
        if (is_there(s, f->name, f->bytes))
            continue;
        StrBuf sb = {0};
        sb_write(&sb, f->data, f->bytes);
        write_file(s, f->name, &sb);
    }
}

bool cases_write(const Tuning *t, const char *dir, const TuneCaseOf *of, int n, int chunk,
                 const char **why)
{
    Source *s = NEW(t->a, Source);
    *s = (Source){.t = t, .dir = dir, .why = why};
    *why = NULL;
    put_embedded(s, tune_files, false);
    put_embedded(s, runtime_files, true);
    put_makefile(s);
    put_head(s);
    for (int i = 0; i < n && !s->failed; i++) {
        s->of = &of[i];
        s->number = i;
        if (!find_variants(s)) {
            *why = "a weight is stored in more ways than are tried at once";
            return false;
        }
        put_case(s);
        for (int j = 0; j < of[i].n; j += chunk)
            put_candidates(s, j, j + chunk <= of[i].n ? chunk : of[i].n - j);
    }
    put_list(s, n);
    return !s->failed;
}
