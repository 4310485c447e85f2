/* cli_run.c - run, bench and verify: a model is compiled into the cache, built with the system's C
 * compiler, and run as the program that its bundle is.
 *
 * A cache entry is a bundle with its program, named by a hash of all that went into it: the model's
 * bytes, external data beside it, options, dims and bound values, this compiler, the C compiler. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "igrt.h"

typedef struct {
    Options *o;
    Arena *a;
    int nin, nout;
    Value *in, *out;
    const char **out_name;
    ingot_dtype *out_dtype;
    bool *bound;
    bool npy;           /* inputs were .npy */
    const char *entry;  /* folder of the cache */
    char work[64];      /* folder of the run's .npy files */
} Session;

/* ---- inputs ------------------------------------------------------------------------------ */

/* DIR/input_N.pb or .npy */
static bool read_data(Session *s, int i, ingot_status *status)
{
    const char *pb = arena_printf(s->a, "%s/input_%d.pb", s->o->data, i);
    const char *npy = arena_printf(s->a, "%s/input_%d.npy", s->o->data, i);
    bool is_npy = access(pb, F_OK) && !access(npy, F_OK);
    s->npy |= is_npy;
    return value_read(s->a, is_npy ? npy : pb, &s->in[i], status);
}

static bool random_input(Session *s, const Model *m, int i, ingot_status *status)
{
    const ingot_onnx_io *io = ingot_onnx_input(m->onnx, i);
    Value *v = &s->in[i];
    *v = (Value){.dtype = io->dtype, .rank = io->rank};
    bool known = io->rank >= 0 && io->kind == INGOT_ONNX_TENSOR && io->dtype != INGOT_STRING;
    for (int a = 0; a < io->rank && known; a++) {
        v->dims[a] = io->dims[a];
        for (int k = 0; k < s->o->ndim && v->dims[a] < 0; k++)
            if (!strcmp(s->o->dim[k].name, io->dim_names[a]))
                v->dims[a] = s->o->dim[k].hi;
        known = v->dims[a] >= 0 && v->dims[a] < 1 << 28;
    }
    if (!known) {
        *status = complain(INGOT_USAGE, "%s: input '%s' has a free dim: give --dim, or data by --data", s->o->model,
                           io->name);
        return false;
    }
    value_random(s->a, v, (uint64_t)i + 1);
    return true;
}

/* A type that numpy has no name for is the declared one. */
static void name_type(Value *v, ingot_dtype declared)
{
    if (v->raw && dtype_info[v->dtype].bytes == dtype_info[declared].bytes)
        v->dtype = declared;
}

static bool check_value(const Session *s, const Model *m, int i, ingot_status *status)
{
    const ingot_onnx_io *io = ingot_onnx_input(m->onnx, i);
    Value *v = &s->in[i];
    name_type(v, io->dtype);
    bool good = v->dtype == io->dtype && (io->rank < 0 || io->rank == v->rank);
    for (int a = 0; a < io->rank && good; a++)
        good = io->dims[a] < 0 || io->dims[a] == v->dims[a];
    if (!good)
        *status = complain(INGOT_INVALID, "%s: the data for input %d has another type or shape than input '%s' (%s, rank %d)",
                           s->o->model, i, io->name, dtype_info[io->dtype].name, io->rank);
    return good;
}

static ingot_status read_inputs(Session *s, const Model *m, bool may_invent)
{
    ingot_status status = INGOT_OK;
    bool ok = true;
    s->nin = ingot_onnx_input_count(m->onnx);
    s->nout = ingot_onnx_output_count(m->onnx);
    s->in = NEWN(s->a, Value, s->nin + 1);
    s->out = NEWN(s->a, Value, s->nout + 1);
    s->out_name = NEWN(s->a, const char *, s->nout + 1);
    s->bound = NEWN(s->a, bool, s->nin + 1);
    s->out_dtype = NEWN(s->a, ingot_dtype, s->nout + 1);
    for (int i = 0; i < s->nout; i++) {
        s->out_name[i] = arena_strdup(s->a, ingot_onnx_output(m->onnx, i)->name);
        s->out_dtype[i] = ingot_onnx_output(m->onnx, i)->dtype;
    }
    for (int i = 0; i < s->nin; i++)
        if (ingot_onnx_input(m->onnx, i)->kind != INGOT_ONNX_TENSOR)
            return complain(INGOT_UNSUPPORTED, "%s: input '%s' is no tensor, which is not supported", s->o->model,
                            ingot_onnx_input(m->onnx, i)->name);
    bool given = s->o->data || s->o->ninput;
    struct stat st;
    if (s->o->data && (stat(s->o->data, &st) || !S_ISDIR(st.st_mode)))
        return complain(INGOT_IO, "%s: no such folder of data", s->o->data);
    if (!given && !may_invent && s->nin)
        return complain(INGOT_USAGE, "ingot %s: give the inputs by --data DIR or --input FILE", s->o->command);
    if (s->o->ninput && s->o->ninput != s->nin)
        return complain(INGOT_USAGE, "%s: %d inputs are given, the model has %d", s->o->model, s->o->ninput, s->nin);
    for (int i = 0; i < s->nin && ok; i++) {
        if (s->o->ninput) {
            ok = value_read(s->a, s->o->input[i], &s->in[i], &status);
            size_t n = strlen(s->o->input[i]);
            s->npy |= n > 4 && !strcmp(s->o->input[i] + n - 4, ".npy");
        } else {
            ok = s->o->data ? read_data(s, i, &status) : random_input(s, m, i, &status);
        }
        ok = ok && check_value(s, m, i, &status);
    }
    return status;
}

/* ---- the cache --------------------------------------------------------------------------- */

typedef struct {
    uint64_t a, b;
} Key;

static void key_add(Key *k, const void *data, size_t bytes)
{
    uint64_t sum = igrt_checksum(data, bytes);
    k->a = hash_bytes(k->a, &sum, sizeof sum);
    k->b = hash_bytes(k->b ^ bytes, &k->a, sizeof k->a);
}

static void key_text(Key *k, const char *s)
{
    key_add(k, s ? s : "", s ? strlen(s) + 1 : 0);
}

static void key_file_stamp(Key *k, const char *path)
{
    struct stat st;
    if (path && !stat(path, &st)) {
        key_text(k, path);
        int64_t stamp[3] = {st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
        key_add(k, stamp, sizeof stamp);
    }
}

/* Files beside the model that its bytes mention: external data. */
static void key_neighbours(Key *k, Arena *a, const char *model, const MapFile *map)
{
    if (!memmem(map->data, map->len, "location", 8))
        return;
    const char *slash = strrchr(model, '/');
    const char *dir = slash ? arena_printf(a, "%.*s", (int)(slash - model + 1), model) : "./";
    struct dirent **list;
    int n = scandir(dir, &list, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (list[i]->d_name[0] != '.' && memmem(map->data, map->len, list[i]->d_name, strlen(list[i]->d_name)))
            key_file_stamp(k, arena_printf(a, "%s%s", dir, list[i]->d_name));
        free(list[i]);
    }
    if (n >= 0)
        free((void *)list);
}

/* Of everything but dims and bound values. */
static ingot_status key_base(Session *s, Key *k)
{
    const Options *o = s->o;
    MapFile map;
    *k = (Key){1, 2};
    const char *why = mapfile_open(&map, o->model);
    if (why)
        return complain(INGOT_IO, "%s: %s", o->model, why);
    key_add(k, map.data, map.len);
    key_neighbours(k, s->a, o->model, &map);
    mapfile_close(&map);
    MapFile self;
    if (!mapfile_open(&self, "/proc/self/exe")) {
        key_add(k, self.data, self.len);
        mapfile_close(&self);
    }
    char first[128];
    snprintf(first, sizeof first, "%.*s", (int)strcspn(c_compiler(), " "), c_compiler());
    key_text(k, c_compiler());
    key_file_stamp(k, find_program(s->a, first));
    key_text(k, o->compile.target);
    key_add(k, &o->compile.opt_level, sizeof o->compile.opt_level);
    for (int i = 0; i < o->ndim; i++) {
        key_text(k, o->dim[i].name);
        key_add(k, &o->dim[i].lo, 2 * sizeof o->dim[i].lo);
    }
    for (int i = 0; i < o->nbind; i++) {
        key_text(k, o->bind_name[i]);
        key_text(k, o->bind_text[i]);
    }
    return INGOT_OK;
}

/* And of what the data decides: dims of all inputs, values of the bound ones. */
static Key key_data(const Session *s, Key k, bool bound)
{
    for (int i = 0; i < s->nin; i++) {
        key_add(&k, &s->in[i].rank, sizeof s->in[i].rank);
        key_add(&k, s->in[i].dims, (size_t)s->in[i].rank * sizeof s->in[i].dims[0]);
        if (bound && s->bound[i])
            key_add(&k, s->in[i].data, s->in[i].bytes);
    }
    key_add(&k, &bound, sizeof bound);
    return k;
}

static const char *cache_root(Arena *a)
{
    const char *own = getenv("INGOT_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (own && *own)
        return own;
    if (xdg && *xdg)
        return arena_printf(a, "%s/ingot", xdg);
    return arena_printf(a, "%s/.cache/ingot", home && *home ? home : "/tmp");
}

static const char *entry_path(const Session *s, Key k)
{
    return arena_printf(s->a, "%s/%016llx%016llx", cache_root(s->a), (unsigned long long)k.a, (unsigned long long)k.b);
}

/* ---- compiling into it ------------------------------------------------------------------- */

/* Compile, build, and move to its place in the cache. */
static ingot_status make_entry(Session *s, const char *entry, const bool *bound, bool quiet)
{
    Model m;
    ingot_status status = model_open(&m, s->o, quiet);
    if (status == INGOT_OK)
        status = model_build(&m, s->o, s->in, bound);
    const char *part = arena_printf(s->a, "%s.%ld", entry, (long)getpid());
    if (status == INGOT_OK && !make_dirs(cache_root(s->a)))
        status = complain(INGOT_IO, "%s: %s", cache_root(s->a), strerror(errno));
    if (status == INGOT_OK) {
        ingot_options o = s->o->compile;
        o.name = NULL;
        status = ingot_compile(m.c, &o, part);
    }
    model_close(&m);
    if (status != INGOT_OK)
        return status;
    status = build_program(s->a, part, "model", s->o->compile.verbose > 1);
    if (status == INGOT_OK) {
        if (s->o->no_cache)
            remove_tree(entry);
        if (rename(part, entry) && access(entry, F_OK)) /* another process may have been faster */
            status = complain(INGOT_IO, "%s: %s", entry, strerror(errno));
    }
    remove_tree(part);
    return status;
}

/* Inputs that may decide shapes: lists and scalars. */
static bool may_bind(const Value *v)
{
    return v->rank <= 1 && v->count <= 64 && v->dtype != INGOT_STRING;
}

/* Whether the model can be planned with these inputs bound. */
static bool plans(Session *s, const bool *bound)
{
    Model m;
    char *text = NULL;
    if (model_open(&m, s->o, true) == INGOT_OK && model_build(&m, s->o, s->in, bound) == INGOT_OK)
        text = ingot_inspect_json(m.c, &s->o->compile);
    bool ok = text != NULL;
    free(text);
    model_close(&m);
    return ok;
}

/* The smallest set we can find, greedily, that lets the model be compiled; false if there is none. */
static bool choose_binds(Session *s, const Model *m)
{
    int n = 0;
    for (int i = 0; i < s->nin; i++) {
        s->bound[i] = may_bind(&s->in[i]) && ingot_onnx_input(m->onnx, i)->kind == INGOT_ONNX_TENSOR;
        n += s->bound[i];
    }
    if (!n || !plans(s, s->bound))
        return false;
    for (int i = s->nin; i-- > 0;) {
        if (!s->bound[i])
            continue;
        s->bound[i] = false;
        s->bound[i] = !plans(s, s->bound);
    }
    return true;
}

static void say_binds(const Session *s, const Model *m)
{
    StrBuf sb = {0};
    for (int i = 0; i < s->nin; i++)
        if (s->bound[i])
            sb_printf(&sb, "%s'%s'", sb.len ? ", " : "", ingot_onnx_input(m->onnx, i)->name);
    say("  %s: compiled for these values of %s, which decide shapes", s->o->model, sb.data ? sb.data : "");
    sb_free(&sb);
}

/* A list of 0 and 1 beside the entry that could not be: which inputs to bind. */
static bool load_binds(Session *s, const char *file)
{
    FILE *f = fopen(file, "r");
    if (!f)
        return false;
    for (int i = 0; i < s->nin; i++)
        s->bound[i] = fgetc(f) == '1';
    fclose(f);
    return true;
}

static void save_binds(const Session *s, const char *file)
{
    FILE *f = fopen(file, "w");
    if (!f)
        return;
    for (int i = 0; i < s->nin; i++)
        fputc(s->bound[i] ? '1' : '0', f);
    fclose(f);
}

static bool cached(const Session *s, const char *entry)
{
    return !s->o->no_cache && !access(arena_printf(s->a, "%s/model", entry), X_OK);
}

static ingot_status find_entry(Session *s, const Model *m)
{
    Key base;
    ingot_status status = key_base(s, &base);
    if (status != INGOT_OK)
        return status;
    const char *entry = entry_path(s, key_data(s, base, false)), *binds = arena_printf(s->a, "%s.bind", entry);
    s->entry = entry;
    if (cached(s, entry))
        return INGOT_OK;
    bool known = !s->o->no_cache && !s->o->no_bind && load_binds(s, binds);
    if (!known) {
        bool can_bind = false;
        for (int i = 0; i < s->nin && !s->o->no_bind; i++)
            can_bind |= may_bind(&s->in[i]);
        status = make_entry(s, entry, NULL, can_bind && !plans(s, NULL));
        if (status != INGOT_UNSUPPORTED || !can_bind || !choose_binds(s, m)) {
            if (status != INGOT_OK && can_bind)
                (void)make_entry(s, entry, NULL, false); /* once more, aloud */
            return status;
        }
        save_binds(s, binds);
    }
    say_binds(s, m);
    s->entry = entry = entry_path(s, key_data(s, base, true));
    return cached(s, entry) ? INGOT_OK : make_entry(s, entry, s->bound, false);
}

/* ---- running ----------------------------------------------------------------------------- */

static ingot_status write_work(Session *s)
{
    ingot_status status = INGOT_OK;
    const char *tmp = getenv("TMPDIR");
    snprintf(s->work, sizeof s->work, "%.40s/ingot-XXXXXX", tmp && *tmp && strlen(tmp) <= 40 ? tmp : "/tmp");
    if (!mkdtemp(s->work))
        return complain(INGOT_IO, "%s: %s", s->work, strerror(errno));
    if (!make_dirs(arena_printf(s->a, "%s/in", s->work)))
        return complain(INGOT_IO, "%s: %s", s->work, strerror(errno));
    for (int i = 0; i < s->nin && status == INGOT_OK; i++)
        value_write(s->a, arena_printf(s->a, "%s/in/input_%d.npy", s->work, i), "", &s->in[i], &status);
    return status;
}

static ingot_status driver_failed(const Session *s, int code)
{
    if (code >= 128)
        return complain(INGOT_TOOL, "%s: the compiled model ended by signal %d", s->o->model, code - 128);
    return code == 2 ? INGOT_INVALID : code == 5 ? INGOT_IO : INGOT_TOOL; /* the driver has told why */
}

static ingot_status run_program(Session *s)
{
    const char *program = arena_printf(s->a, "%s/model", s->entry);
    const char *argv[] = {program, "-t", arena_printf(s->a, "%d", s->o->threads), arena_printf(s->a, "%s/in", s->work),
                          arena_printf(s->a, "%s/out", s->work), NULL};
    int code = process_run(argv);
    if (code)
        return driver_failed(s, code);
    ingot_status status = INGOT_OK;
    for (int i = 0; i < s->nout && status == INGOT_OK; i++) {
        value_read(s->a, arena_printf(s->a, "%s/out/output_%d.npy", s->work, i), &s->out[i], &status);
        name_type(&s->out[i], s->out_dtype[i]);
    }
    return status;
}

/* Opens the model, reads the inputs, and has the program ready. */
static ingot_status prepare(Session *s, Model *m, bool may_invent)
{
    ingot_status status = model_open(m, s->o, false);
    if (status == INGOT_OK)
        status = read_inputs(s, m, may_invent);
    if (status == INGOT_OK)
        status = find_entry(s, m);
    if (status == INGOT_OK)
        status = write_work(s);
    return status;
}

static void finish(Session *s, Model *m)
{
    if (*s->work)
        remove_tree(s->work);
    model_close(m);
}

static void print_element(const Value *v, size_t i)
{
    const uint8_t *p = (const uint8_t *)v->data + i * (v->count ? v->bytes / v->count : 0);
    float f;
    double d;
    int64_t n = 0;
    int width = dtype_info[v->dtype].bytes;
    switch (v->dtype) {
    case INGOT_F32: memcpy(&f, p, 4); printf(" %g", (double)f); return;
    case INGOT_F64: memcpy(&d, p, 8); printf(" %g", d); return;
    case INGOT_STRING: printf(" \"%s\"", ((char *const *)v->data)[i]); return;
    default: break;
    }
    memcpy(&n, p, (size_t)(width < 8 ? width : 8));
    if (dtype_info[v->dtype].kind == 'i' && width < 8)
        n = (int64_t)((uint64_t)n << (64 - 8 * width)) >> (64 - 8 * width);
    printf(" %lld", (long long)n);
}

static void print_outputs(const Session *s)
{
    for (int i = 0; i < s->nout; i++) {
        const Value *v = &s->out[i];
        printf("%s: %s[", s->out_name[i], dtype_info[v->dtype].name);
        for (int d = 0; d < v->rank; d++)
            printf("%s%lld", d ? "," : "", (long long)v->dims[d]);
        printf("]");
        for (size_t k = 0; k < v->count && k < 16; k++)
            print_element(v, k);
        printf(v->count > 16 ? " ...\n" : "\n");
    }
}

ingot_status command_run(Options *o)
{
    Session s = {.o = o, .a = o->a};
    Model m;
    ingot_status status = prepare(&s, &m, false);
    if (status == INGOT_OK)
        status = run_program(&s);
    if (status == INGOT_OK && !o->output_dir)
        print_outputs(&s);
    if (status == INGOT_OK && o->output_dir && !make_dirs(o->output_dir))
        status = complain(INGOT_IO, "%s: %s", o->output_dir, strerror(errno));
    for (int i = 0; i < s.nout && status == INGOT_OK && o->output_dir; i++)
        value_write(s.a, arena_printf(s.a, "%s/output_%d.%s", o->output_dir, i, s.npy ? "npy" : "pb"), s.out_name[i],
                    &s.out[i], &status);
    finish(&s, &m);
    return status;
}

ingot_status command_bench(Options *o)
{
    Session s = {.o = o, .a = o->a};
    Model m;
    ingot_status status = prepare(&s, &m, true);
    if (status == INGOT_OK) {
        fflush(stdout);
        const char *program = arena_printf(s.a, "%s/model", s.entry), *in = arena_printf(s.a, "%s/in", s.work);
        const char *threads = arena_printf(s.a, "%d", o->threads);
        const char *profile[] = {program, "-t", threads, "--profile", in, NULL};
        const char *bench[] = {program, "-t", threads, "--bench", arena_printf(s.a, "%g", o->seconds), in, NULL};
        int code = o->per_kernel ? process_run(profile) : 0;
        code = code ? code : process_run(bench);
        if (code)
            status = driver_failed(&s, code);
    }
    finish(&s, &m);
    return status;
}

/* ---- verify ------------------------------------------------------------------------------ */

static double element(const Value *v, size_t i)
{
    const uint8_t *p = v->data;
    float f;
    double d;
    if (v->dtype == INGOT_F32) {
        memcpy(&f, p + 4 * i, 4);
        return (double)f;
    }
    memcpy(&d, p + 8 * i, 8);
    return d;
}

/* Floats: largest difference over the largest magnitude; others: equal or not. */
static double difference(const Value *got, const ingot_value *want)
{
    Value w = {.dtype = want->dtype, .data = (void *)(uintptr_t)want->data};
    if (got->dtype != want->dtype || got->rank != want->rank || memcmp(got->dims, want->dims, (size_t)got->rank * sizeof got->dims[0]))
        return INFINITY;
    if (got->dtype != INGOT_F32 && got->dtype != INGOT_F64)
        return got->bytes && memcmp(got->data, want->data, got->bytes) ? INFINITY : 0;
    double worst = 0, scale = 0;
    for (size_t i = 0; i < got->count; i++) {
        double a = element(got, i), b = element(&w, i);
        if (a == b || (a != a && b != b))
            continue;
        if (!(fabs(a - b) <= INFINITY) || isinf(a) || isinf(b))
            return INFINITY;
        worst = fmax(worst, fabs(a - b));
    }
    for (size_t i = 0; i < got->count; i++)
        if (isfinite(element(&w, i)))
            scale = fmax(scale, fabs(element(&w, i)));
    return scale > 0 ? worst / scale : worst;
}

ingot_status command_verify(Options *o)
{
    Session s = {.o = o, .a = o->a};
    Model m;
    ingot_status status = prepare(&s, &m, true);
    if (status == INGOT_OK)
        status = run_program(&s);
    if (status == INGOT_OK)
        status = model_build(&m, o, s.in, s.bound);
    if (status == INGOT_OK) {
        ingot_value *in = NEWN(s.a, ingot_value, s.nin + 1), *want = NEWN(s.a, ingot_value, s.nout + 1);
        for (int i = 0; i < s.nin; i++) {
            in[i] = (ingot_value){.data = s.in[i].data, .rank = s.in[i].rank, .dtype = s.in[i].dtype};
            memcpy(in[i].dims, s.in[i].dims, sizeof in[i].dims);
        }
        status = ingot_interpret(m.c, s.nin, in, s.nout, want);
        for (int i = 0; i < s.nout && status == INGOT_OK; i++) {
            double d = difference(&s.out[i], &want[i]);
            printf("%s: largest difference from the interpreter %g of the range\n", s.out_name[i], d);
            if (!(d <= 1e-4))
                status = complain(INGOT_TOOL, "%s: output '%s' differs from the interpreter's", o->model, s.out_name[i]);
        }
    }
    finish(&s, &m);
    return status;
}
