/* run.c - run and bench: a model is compiled into the cache (run_cache.c), built with the system's
 * C compiler, and run as the program that its bundle is. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"

/* ---- inputs ------------------------------------------------------------------------------ */

const char *data_file(const Session *s, const char *what, int i, bool *npy)
{
    const char *stem = arena_printf(s->a, "%s/%s_%d", s->o->data, what, i),
               *other = value_file(s->a, stem), *file = arena_printf(s->a, "%s.npy", stem);
    *npy = !other && !access(file, F_OK);
    return *npy ? file : other;
}

static bool read_data(Session *s, const ingot_model_io *io, int i, ingot_status *status)
{
    bool npy;
    if (io->kind != INGOT_MODEL_TENSOR) {
        bool ok = group_read(s->a, arena_printf(s->a, "%s/input_%d", s->o->data, i), io, &s->in[i],
                             &npy, status);
        s->npy |= npy && !s->in[i].absent;
        return ok;
    }
    const char *file = data_file(s, "input", i, &npy);
    s->npy |= npy;
    if (!file) {
        *status = complain(INGOT_IO, "%s: there is %s", s->o->data,
                           value_forms(s->a, arena_printf(s->a, "input_%d", i)));
        return false;
    }
    return value_read(s->a, file, &s->in[i], status);
}

#define MOST_RANDOM 0x1p32 /* elements */

/* Why there is no random value of an input, or NULL. */
static const char *no_random(const ingot_model_io *io)
{
    return io->kind != INGOT_MODEL_TENSOR ? "is not a tensor"
           : io->dtype == INGOT_STRING    ? "consists of strings"
           : io->rank < 0                 ? "has no declared rank"
                                          : NULL;
}

/* The size of a dim of random data: that of the file or of --dim, which runs have at most; -1. */
static int64_t dim_said(const Session *s, const ingot_model_io *io, int axis)
{
    int64_t size = io->dims[axis];
    for (int k = 0; k < s->o->ndim && size < 0; k++)
        if (!strcmp(s->o->dim[k].name, io->dim_names[axis]))
            size = s->o->dim[k].hi;
    return size < 0 && io->usual[axis] > 0 ? io->usual[axis] : size;
}

/* All that are free in one message, each name once. */
static ingot_status say_free_dims(Session *s, const LoadedModel *m)
{
    StrBuf which = {0}, options = {0};
    const char **names = NULL;
    int n = 0;
    for (int i = 0; i < s->nin; i++) {
        const ingot_model_io *io = ingot_model_input(m->file, i);
        for (int a = 0; a < io->rank && !no_random(io); a++) {
            bool new = dim_said(s, io, a) < 0;
            for (int k = 0; k < n; k++)
                new = new &&strcmp(names[k], io->dim_names[a]) != 0;
            if (!new)
                continue;
            vec_push(s->a, names, n, io->dim_names[a]);
            sb_printf(&which, "%s'%s' of input '%s'", n > 1 ? ", " : "", io->dim_names[a],
                      io->name);
            sb_printf(&options, " --dim %s=N", io->dim_names[a]);
        }
    }
    ingot_status status = complain(
        INGOT_USAGE, "%s: %s free: %s; a value or bounds for each:%s, or data by --data or --input",
        s->o->model, n == 1 ? "a dim is" : "dims are", which.data, options.data);
    sb_free(&which);
    sb_free(&options);
    return status;
}

static bool random_input(Session *s, const LoadedModel *m, int i, ingot_status *status)
{
    const ingot_model_io *io = ingot_model_input(m->file, i);
    const char *why = no_random(io);
    HostTensor *v = &s->in[i];
    *v = (HostTensor){.dtype = io->dtype, .rank = io->rank};
    double elements = 1;
    for (int a = 0; a < io->rank && !why; a++) {
        v->dims[a] = dim_said(s, io, a);
        elements *= (double)v->dims[a];
        if (v->dims[a] < 0) {
            *status = say_free_dims(s, m);
            return false;
        }
    }
    if (why) {
        *status = complain(INGOT_USAGE,
                           "%s: there are no random values for input '%s', which %s: give data by "
                           "--data or --input",
                           s->o->model, io->name, why);
        return false;
    }
    if (elements > MOST_RANDOM) {
        *status = complain(INGOT_UNSUPPORTED,
                           "%s: input '%s' has %.3g elements: too many for "
                           "random ones, of which %.3g are the most",
                           s->o->model, io->name, elements, MOST_RANDOM);
        return false;
    }
    value_random(s->a, v, (uint64_t)i + 1);
    return true;
}

/* A type that numpy has no name for is the declared one. */
static void name_type(HostTensor *v, ingot_dtype declared)
{
    if (v->raw && dtype_info[v->dtype].bytes == dtype_info[declared].bytes)
        v->dtype = declared;
}

bool data_fits(const Session *s, const ingot_model_io *io, int i, HostTensor *v,
               ingot_status *status)
{
    if (value_is_group(v)) {
        for (int k = 0; k < v->nitem; k++) {
            name_type(&v->item[k], io->dtype);
            if (v->item[k].dtype != io->dtype || (io->rank >= 0 && v->item[k].rank != io->rank)) {
                *status = complain(INGOT_INVALID,
                                   "%s: element %d of the data for input %d has another type or "
                                   "rank than those of input '%s'",
                                   s->o->model, k, i, io->name);
                return false;
            }
        }
        return true;
    }
    name_type(v, io->dtype);
    if (!io->rank && v->count == 1)
        v->rank = 0; /* one element is a scalar, whatever its dims */
    bool good = v->dtype == io->dtype && (io->rank < 0 || io->rank == v->rank);
    for (int a = 0; a < io->rank && good; a++)
        good = io->dims[a] < 0 || io->dims[a] == v->dims[a];
    if (!good) {
        StrBuf sb = {0};
        sb_printf(&sb, "%s[", dtype_info[v->dtype].name);
        for (int a = 0; a < v->rank; a++)
            sb_printf(&sb, "%s%lld", a ? "," : "", (long long)v->dims[a]);
        sb_puts(&sb, "], and ");
        input_print(&sb, io);
        *status =
            complain(INGOT_INVALID, "%s: the data for input %d are %s", s->o->model, i, sb.data);
        sb_free(&sb);
    }
    return good;
}

/* Outputs that lie beside the inputs are what the model should give. */
static ingot_status read_wanted(Session *s, const LoadedModel *m)
{
    ingot_status status = INGOT_OK;
    bool npy, ok = true;
    for (int i = 0; i < s->nout && s->o->data && ok; i++) {
        const char *file = data_file(s, "output", i, &npy);
        const ingot_model_io *io = ingot_model_output(m->file, i);
        if (!file || (npy && io->kind != INGOT_MODEL_TENSOR))
            continue;
        s->want_file[i] = file;
        ok = value_read_as(s->a, file, io, &s->want[i], &status);
        if (io->kind != INGOT_MODEL_TENSOR)
            continue;
        name_type(&s->want[i], s->out_dtype[i]);
    }
    return status;
}

bool order_inputs(Session *s, int n, const char *const *name)
{
    const char **file = NEWN(s->a, const char *, n + 1);
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0, next = 0; k < s->o->ninput; k++) {
            const char *given = s->o->input[k], *equals = strchr(given, '=');
            int named = -1;
            for (int i = 0; equals && i < n; i++)
                if (strlen(name[i]) == (size_t)(equals - given) &&
                    !memcmp(name[i], given, strlen(name[i])))
                    named = i;
            if (named >= 0 && !pass) {
                if (file[named])
                    return complain(INGOT_USAGE, "%s: input '%s' is given twice", s->o->model,
                                    name[named]) == INGOT_OK;
                file[named] = equals + 1;
            }
            if (named >= 0 || !pass)
                continue;
            if (equals && access(given, F_OK) && !access(equals + 1, F_OK))
                return complain(INGOT_USAGE, "%s: --input %s: the model has no input '%.*s'",
                                s->o->model, given, (int)(equals - given), given) == INGOT_OK;
            while (next < n && file[next])
                next++;
            if (next < n)
                file[next] = given;
        }
    s->o->input = file;
    return true;
}

const char **model_input_names(const Session *s, const LoadedModel *m)
{
    const char **name = NEWN(s->a, const char *, ingot_model_input_count(m->file) + 1);
    for (int i = 0; i < ingot_model_input_count(m->file); i++)
        name[i] = ingot_model_input(m->file, i)->name;
    return name;
}

bool data_is_there(const Session *s)
{
    struct stat st;
    if (s->o->data && (stat(s->o->data, &st) || !S_ISDIR(st.st_mode)))
        return complain(INGOT_IO, "%s: no such folder of data", s->o->data) == INGOT_OK;
    return true;
}

ingot_status session_read(Session *s, const LoadedModel *m, bool may_invent)
{
    ingot_status status = INGOT_OK;
    bool ok = true;
    s->data = ingot_model_importer(m->file)->data;
    s->npy = !s->data;
    s->nin = ingot_model_input_count(m->file);
    s->nout = ingot_model_output_count(m->file);
    s->in = NEWN(s->a, HostTensor, s->nin + 1);
    s->out = NEWN(s->a, HostTensor, s->nout + 1);
    s->want = NEWN(s->a, HostTensor, s->nout + 1);
    s->want_file = NEWN(s->a, const char *, s->nout + 1);
    s->out_name = NEWN(s->a, const char *, s->nout + 1);
    s->bound = NEWN(s->a, bool, s->nin + 1);
    s->out_dtype = NEWN(s->a, ingot_dtype, s->nout + 1);
    for (int i = 0; i < s->nout; i++) {
        s->out_name[i] = printable(s->a, ingot_model_output(m->file, i)->name);
        s->out_dtype[i] = ingot_model_output(m->file, i)->dtype;
    }
    s->io = NEWN(s->a, ingot_model_io, s->nout + 1);
    for (int i = 0; i < s->nout; i++) {
        s->io[i] = *ingot_model_output(m->file, i);
        s->io[i].name = arena_strdup(s->a, s->io[i].name);
    }
    bool runs = !strcmp(s->o->command, "run") && s->o->data; /* sequences: from a folder only */
    bool judged = strcmp(s->o->command, "bench") != 0;
    for (int i = 0; i < s->nin + (judged ? s->nout : 0) && !runs; i++) {
        const ingot_model_io *io = i < s->nin ? ingot_model_input(m->file, i) : &s->io[i - s->nin];
        if (io->kind != INGOT_MODEL_TENSOR)
            return complain(INGOT_UNSUPPORTED,
                            "%s: %s '%s' is no tensor; only `ingot run --data` takes such models",
                            s->o->model, i < s->nin ? "input" : "output", io->name);
    }
    bool given = s->o->data || s->o->ninput;
    if (!data_is_there(s))
        return INGOT_IO;
    if (!given && !may_invent && s->nin)
        return complain(INGOT_USAGE, "ingot %s: give the inputs by --data DIR or --input FILE",
                        s->o->command);
    if (s->o->ninput && s->o->ninput != s->nin)
        return complain(INGOT_USAGE, "%s: %d inputs are given, the model has %d", s->o->model,
                        s->o->ninput, s->nin);
    if (s->o->ninput && !order_inputs(s, s->nin, model_input_names(s, m)))
        return INGOT_USAGE;
    for (int i = 0; i < s->nin && ok; i++) {
        if (s->o->ninput) {
            ok = value_read(s->a, s->o->input[i], &s->in[i], &status);
            size_t n = strlen(s->o->input[i]);
            s->npy |= n > 4 && !strcmp(s->o->input[i] + n - 4, ".npy");
        } else {
            ok = s->o->data ? read_data(s, ingot_model_input(m->file, i), i, &status)
                            : random_input(s, m, i, &status);
        }
        ok = ok && data_fits(s, ingot_model_input(m->file, i), i, &s->in[i], &status);
    }
    return ok ? read_wanted(s, m) : status;
}

/* ---- running ----------------------------------------------------------------------------- */

static ingot_status write_work(Session *s)
{
    ingot_status status = INGOT_OK;
    s->work = temporary_folder(s->a, "run");
    if (!s->work)
        return complain(INGOT_IO, "ingot: no folder of its own in $TMPDIR, else /tmp: %s",
                        strerror(errno));
    if (!make_dirs(arena_printf(s->a, "%s/in", s->work)))
        return complain(INGOT_IO, "%s: %s", s->work, strerror(errno));
    for (int i = 0; i < s->nin && status == INGOT_OK; i++)
        group_write_npy(s->a, arena_printf(s->a, "%s/in/input_%d", s->work, i), &s->in[i], &status);
    return status;
}

ingot_status driver_failed(const Session *s, int code)
{
    if (code >= 128)
        return complain(INGOT_TOOL, "%s: the compiled model ended by signal %d", s->o->model,
                        code - 128);
    return code == 2   ? INGOT_INVALID
           : code == 5 ? INGOT_IO
                       : INGOT_TOOL; /* the driver has told why */
}

ingot_status session_run(Session *s)
{
    const char *program = arena_printf(s->a, "%s/model", s->entry);
    const char *argv[] = {program,
                          "-t",
                          arena_printf(s->a, "%d", s->o->threads),
                          arena_printf(s->a, "%s/in", s->work),
                          arena_printf(s->a, "%s/out", s->work),
                          NULL};
    progress_begin("the model runs", 0);
    int code = process_run(argv);
    progress_end();
    s->no_device = code == 9;
    return code ? driver_failed(s, code) : session_outputs(s, "out");
}

ingot_status session_outputs(Session *s, const char *folder)
{
    ingot_status status = INGOT_OK;
    for (int i = 0; i < s->nout && status == INGOT_OK; i++) {
        const char *stem = arena_printf(s->a, "%s/%s/output_%d", s->work, folder, i);
        bool npy;
        if (s->io[i].kind != INGOT_MODEL_TENSOR) {
            group_read(s->a, stem, &s->io[i], &s->out[i], &npy, &status);
            for (int k = 0; k < s->out[i].nitem; k++)
                name_type(&s->out[i].item[k], s->out_dtype[i]);
            continue;
        }
        value_read(s->a, arena_printf(s->a, "%s.npy", stem), &s->out[i], &status);
        name_type(&s->out[i], s->out_dtype[i]);
    }
    return status;
}

static bool compare_one(const Session *s, int i, const char *which, const HostTensor *got,
                        const HostTensor *want)
{
    StrBuf sb = {0};
    Difference d = value_compare(s->a, got, want, s->o->tolerance);
    const bool may_ask = s->moves && s->o->tolerance < 0;
    bool good = difference_is_good(&d) || (may_ask && s->explained(s->moves, i, &d, got, want));
    difference_print(&sb, &d, got, want);
    if (good)
        printf("%s%s compared with %s: %s\n", s->out_name[i], which, s->want_file[i], sb.data);
    else
        complain(INGOT_DIFFERS, "%s: output '%s'%s is not that of %s: %s", s->o->model,
                 s->out_name[i], which, s->want_file[i], sb.data);
    sb_free(&sb);
    return good;
}

ingot_status session_compare(const Session *s)
{
    bool good = true;
    for (int i = 0; i < s->nout; i++) {
        const HostTensor *got = &s->out[i], *want = &s->want[i];
        if (!s->want_file[i])
            continue;
        if (got->absent != want->absent || got->sequence != want->sequence ||
            got->nitem != want->nitem) {
            complain(INGOT_DIFFERS, "%s: output '%s' is not that of %s: %s, %d elements for %d",
                     s->o->model, s->out_name[i], s->want_file[i], got->absent ? "absent" : "there",
                     got->nitem, want->nitem);
            good = false;
            continue;
        }
        for (int k = 0; k < got->nitem; k++)
            good &= compare_one(s, i, arena_printf(s->a, "[%d]", k), &got->item[k], &want->item[k]);
        if (!value_is_group(got))
            good &= compare_one(s, i, "", got, want);
    }
    return good ? INGOT_OK : INGOT_DIFFERS;
}

/* Reads the inputs of a model that is open, and has the program ready. */
static ingot_status prepare_opened(Session *s, LoadedModel *m, bool may_invent)
{
    ingot_status status = session_read(s, m, may_invent);
    if (status == INGOT_OK)
        status = session_find_entry(s, m);
    if (status == INGOT_OK)
        status = write_work(s);
    return status;
}

/* The program runs here, unless told. */
static ingot_status open_to_run(Session *s, LoadedModel *m)
{
    if (!s->o->compile.target)
        s->o->compile.target = "c:native";
    return model_open(m, s->o, false);
}

ingot_status session_prepare(Session *s, LoadedModel *m, bool may_invent)
{
    const ingot_status status = open_to_run(s, m);
    return status == INGOT_OK ? prepare_opened(s, m, may_invent) : status;
}

void session_finish(Session *s, LoadedModel *m)
{
    if (s->work)
        remove_tree(s->work);
    model_close(m);
}

static void print_element(const HostTensor *v, size_t i)
{
    const uint8_t *p = (const uint8_t *)v->data + i * (v->count ? v->bytes / v->count : 0);
    float f;
    double d;
    int64_t n = 0;
    int width = dtype_info[v->dtype].bytes;
    switch (v->dtype) {
    case INGOT_F32:
        memcpy(&f, p, 4);
        printf(" %g", (double)f);
        return;
    case INGOT_F64:
        memcpy(&d, p, 8);
        printf(" %g", d);
        return;
    case INGOT_STRING: printf(" \"%s\"", ((char *const *)v->data)[i]); return;
    default: break;
    }
    memcpy(&n, p, (size_t)(width < 8 ? width : 8));
    if (dtype_info[v->dtype].kind == 'i' && width < 8)
        n = (int64_t)((uint64_t)n << (64 - 8 * width)) >> (64 - 8 * width);
    printf(" %lld", (long long)n);
}

static void print_output(const char *name, const char *which, const HostTensor *v)
{
    printf("%s%s: %s[", name, which, dtype_info[v->dtype].name);
    for (int d = 0; d < v->rank; d++)
        printf("%s%lld", d ? "," : "", (long long)v->dims[d]);
    printf("]");
    for (size_t k = 0; k < v->count && k < 16; k++)
        print_element(v, k);
    printf(v->count > 16 ? " ...\n" : "\n");
}

static void print_outputs(const Session *s)
{
    for (int i = 0; i < s->nout; i++) {
        const HostTensor *v = &s->out[i];
        if (v->absent)
            printf("%s: absent\n", s->out_name[i]);
        else if (v->sequence)
            printf("%s: a sequence of %d\n", s->out_name[i], v->nitem);
        for (int k = 0; k < v->nitem; k++)
            print_output(s->out_name[i], arena_printf(s->a, "[%d]", k), &v->item[k]);
        if (!value_is_group(v))
            print_output(s->out_name[i], "", v);
    }
}

static bool write_output(const Session *s, const char *dir, int i, ingot_status *status)
{
    const char *stem = arena_printf(s->a, "%s/output_%d", dir, i);
    if (s->npy)
        return group_write_npy(s->a, stem, &s->out[i], status);
    return value_write(s->a, arena_printf(s->a, "%s%s", stem, s->data->ending), &s->io[i],
                       &s->out[i], status);
}

/* All of them, or none. */
static ingot_status write_outputs(const Session *s, const char *dir)
{
    const size_t there = folders_there(dir);
    ingot_status status = INGOT_OK;
    pending_folders(dir, there);
    const char *part = make_dirs(dir) ? part_folder(s->a, arena_printf(s->a, "%s/", dir)) : NULL;
    if (!part)
        status = complain(INGOT_IO, "%s: %s", dir, strerror(errno));
    for (int i = 0; i < s->nout && status == INGOT_OK; i++)
        write_output(s, part, i, &status);
    if (status == INGOT_OK && !part_move(s->a, part, dir))
        status = complain(INGOT_IO, "%s: %s", dir, strerror(errno));
    else if (status != INGOT_OK && part)
        part_discard(part);
    if (status != INGOT_OK)
        remove_empty(dir, there);
    pending_folders_drop(dir);
    return status;
}

ingot_status command_run(Options *o)
{
    Session s = {.o = o, .a = o->a, .check = true};
    LoadedModel m;
    ingot_status status = session_prepare(&s, &m, false);
    if (status == INGOT_OK)
        status = session_run(&s);
    if (status == INGOT_OK && !o->output_dir)
        print_outputs(&s);
    if (status == INGOT_OK && o->output_dir)
        status = write_outputs(&s, o->output_dir);
    if (status == INGOT_OK)
        status = session_compare(&s);
    session_finish(&s, &m);
    return status;
}

/* Of a language model bench tells tokens a second, unless something of run() alone is asked, or
 * sizes are fixed. */
static bool counts_tokens(const Options *o)
{
    for (int i = 0; i < o->ndim; i++)
        if (o->dim[i].lo == o->dim[i].hi)
            return false;
    return !o->data && !o->ninput && !o->per_kernel && !o->trace && !o->on_device;
}

ingot_status command_bench(Options *o)
{
    Session s = {.o = o, .a = o->a};
    LoadedModel m;
    const char *target = o->compile.target ? o->compile.target : "c:native";
    if (o->on_device && !machine_target(o->a, target).gpu)
        return complain(INGOT_USAGE, "--on-device: %s is no GPU", target);
    if (o->train && o->trace)
        return complain(INGOT_USAGE, "--train: --trace is of run alone");
    ingot_status status = open_to_run(&s, &m);
    if (status == INGOT_OK && counts_tokens(o) && ingot_model_has_text(m.file)) {
        status = session_talks(&s, &m);
        model_close(&m);
        return status == INGOT_OK ? bench_tokens(&s) : status;
    }
    if (status == INGOT_OK)
        status = prepare_opened(&s, &m, true);
    if (status == INGOT_OK) {
        fflush(stdout);
        const char *program = arena_printf(s.a, "%s/model", s.entry),
                   *in = arena_printf(s.a, "%s/in", s.work);
        const char *threads = arena_printf(s.a, "%d", o->threads);
        const char *on_device = o->on_device ? "--on-device" : NULL;
        const char *of = o->train ? "--function" : NULL, *step = o->train ? TRAIN_STEP : NULL;
        const char *profile[] = {program, "-t", threads, "--profile", in, of, step, NULL};
        const char *bench[] = {program,
                               "-t",
                               threads,
                               "--bench",
                               arena_printf(s.a, "%g", o->seconds),
                               in,
                               of ? of : on_device,
                               of ? step : NULL,
                               on_device,
                               NULL};
        const char *trace = o->trace ? part_file(s.a, o->trace) : NULL;
        const char *timeline[] = {program, "-t", threads, "--timeline", trace, in, NULL};
        int code = trace ? process_run(timeline) : 0;
        if (trace && code)
            part_discard(trace);
        if (o->trace && !code &&
            (!trace || !timeline_tell(&s, trace) || !part_keep(trace, o->trace))) {
            status = complain(INGOT_IO, "%s: cannot be written: %s", o->trace, strerror(errno));
            session_finish(&s, &m);
            return status;
        }
        if (!code && !o->per_kernel)
            progress_begin("bench", o->seconds);
        if (!code)
            code = o->per_kernel ? bench_kernels(&s, profile, bench) : process_run(bench);
        progress_end();
        if (code)
            status = driver_failed(&s, code);
    }
    session_finish(&s, &m);
    return status;
}
