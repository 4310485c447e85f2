/*
 * driver.c - ./model IN OUT: reads IN/input_N.npy, runs the model, writes OUT/output_N.npy. POSIX.
 */
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "driver_session.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const igrt_model *the_model; /* for messages; set once */
int (*igrt_driver_chat)(DriverSession *s, int argc, char **argv);

int driver_fail(int status, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "%s: ", the_model->name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return status;
}

int driver_beside(const DriverSession *s, const char *file, char path[PATH_BYTES])
{
    const size_t name = strlen(file) + 1;
#if defined(__wasi__) /* there it would be what runs the module */
    ssize_t n = -1;
#else
    ssize_t n = readlink("/proc/self/exe", path, PATH_BYTES - 1);
#endif
    if (n < 0)
        n = snprintf(path, PATH_BYTES, "%s", s->options->argv0);
    if (n >= PATH_BYTES)
        n = 0;
    while (n > 0 && path[n - 1] != '/')
        n--;
    if ((size_t)n + name > PATH_BYTES)
        return driver_fail(IGRT_EXIT_WEIGHTS, "%s: the path is too long", file);
    memcpy(path + n, file, name);
    return IGRT_EXIT_OK;
}

/* The weights file that lies beside the executable. */
static int open_weights(DriverSession *s)
{
    const igrt_model *m = s->model;
    char path[PATH_BYTES];
    if (!m->weights_file)
        return IGRT_EXIT_OK;
    const int status = driver_beside(s, m->weights_file, path);
    if (status != IGRT_EXIT_OK)
        return status;
    const char *why = igrt_weights_read(&s->weights, path, m->weights_bytes);
    if (why)
        return driver_fail(IGRT_EXIT_WEIGHTS, "%s: %s (this program was built for %zu bytes)", path,
                           why, m->weights_bytes);
    s->config.weights = s->weights.data;
    s->config.weights_bytes = s->weights.bytes;
    return IGRT_EXIT_OK;
}

/* A block of exactly the bytes that the model asks for: a sanitizer sees what goes beyond. */
static void *allocate_block(const DriverSession *s, size_t bytes)
{
    void *p = driver_allocate(bytes, s->model->arena_align);
    if (!p)
        driver_fail(IGRT_EXIT_MEMORY, "no memory for an arena of %zu bytes", bytes);
    else if (s->options->poison ||
             s->options->trace) /* what no step has written is traced with the rest */
        memset(p, s->options->poison ? 0xff : 0, bytes);
    return p;
}

/* The arena, or the memories that it is divided among. */
static int allocate_arena(DriverSession *s)
{
    const igrt_model *m = s->model;
    if (!m->n_memories) {
        s->config.arena_bytes = m->arena_bytes(s->config.threads);
        s->config.arena = allocate_block(s, s->config.arena_bytes);
        return s->config.arena ? IGRT_EXIT_OK : IGRT_EXIT_MEMORY;
    }
    s->config.memory = s->memory = driver_allocate((size_t)m->n_memories * sizeof *s->memory, 64);
    for (; s->memory && s->config.n_memories < m->n_memories; s->config.n_memories++) {
        igrt_memory *block = &s->memory[s->config.n_memories];
        block->bytes = m->memory_bytes[s->config.n_memories];
        block->data = allocate_block(s, block->bytes);
        if (!block->data)
            return IGRT_EXIT_MEMORY;
    }
    return s->memory ? IGRT_EXIT_OK : driver_fail(IGRT_EXIT_MEMORY, "out of memory");
}

/* "node 'r' (Range): the size of axis 0 of its result is 7; it has to be 5" */
static int explain(const igrt_fault *f, char *out, size_t room)
{
    const long long value = (long long)f->value, least = (long long)f->least,
                    greatest = (long long)f->greatest;
    if (!f->what)
        return 0;
    if (least < greatest)
        snprintf(out, room, "%s is %lld; it has to be in %lld..%lld", f->what, value, least,
                 greatest);
    else if (least == greatest && (value < least || value > greatest))
        snprintf(out, room, "%s is %lld; it has to be %lld", f->what, value, least);
    else
        snprintf(out, room, "%s", f->what);
    return 1;
}

/* "the processor lacks avx2, fma" */
static int explain_cpu(const igrt_model *m, const igrt_fault *f, char *out, size_t room)
{
    const uint64_t lacks = (uint64_t)f->value;
    size_t n = 0;
    int first = 0;
    while (first < 63 && !(lacks >> first & 1))
        first++;
    const char *const name = m->cpu_name ? m->cpu_name(first) : NULL;
    if (!name || !f->what || strcmp(f->what, name) != 0) /* another device */
        return 0;
    for (int bit = first; bit < 64; bit++) {
        const char *lacking = lacks >> bit & 1 ? m->cpu_name(bit) : NULL;
        if (lacking && n < room)
            n += (size_t)snprintf(out + n, room - n, "%s%s", n ? ", " : "the processor lacks ",
                                  lacking);
    }
    return n > 0;
}

static int start(DriverSession *s)
{
    const igrt_model *m = s->model;
    int status = open_weights(s);
    if (status != IGRT_EXIT_OK)
        return status;
    s->config.struct_size = sizeof s->config;
    s->config.flags = s->options->flags;
    s->config.seed = s->options->seed;
    s->config.gpu = s->options->gpu;
    s->config.target = s->options->target;
    s->config.threads = igrt_pool_start(&s->pool, s->options->threads);
    if (s->config.threads > 1) {
        s->config.parallel_for = igrt_pool_for;
        s->config.parallel_user = &s->pool;
    }
    if (s->options->timeline)
        igrt_timeline_attach(&s->timeline, &s->pool, &s->config);
    status = allocate_arena(s);
    if (status != IGRT_EXIT_OK)
        return status;
    s->ctx = driver_allocate(m->ctx_bytes, 64);
    s->inputs = driver_allocate(m->inputs_bytes, 64);
    s->outputs = driver_allocate(m->outputs_bytes, 64);
    if (!s->ctx || !s->inputs || !s->outputs)
        return driver_fail(IGRT_EXIT_MEMORY, "out of memory");
    const igrt_status ret = m->init(s->ctx, &s->config);
    const int lacks = ret == IGRT_ERR_DEVICE || ret == IGRT_ERR_FEATURE;
    char why[1024];
    if (ret == IGRT_ERR_FEATURE && m->fault && explain_cpu(m, m->fault(s->ctx), why, sizeof why))
        return driver_fail(IGRT_EXIT_MODEL, "init: %s (status %d)", why, (int)ret);
    const int told = (ret == IGRT_OK || lacks || ret == IGRT_ERR_BUILD) && m->fault &&
                     explain(m->fault(s->ctx), why, sizeof why);
    if (told && ret == IGRT_OK)
        driver_fail(0, "by C: %s", why);
    else if (told)
        return driver_fail(lacks ? IGRT_EXIT_DEVICE : IGRT_EXIT_MODEL, "init: %s (status %d): %s",
                           igrt_status_text(ret), (int)ret, why);
    if (ret == IGRT_ERR_CONFIG && s->config.target)
        return driver_fail(IGRT_EXIT_MODEL,
                           "init: there may be no target '%s' in this bundle (model.h lists them): "
                           "%s (status %d)",
                           s->config.target, igrt_status_text(ret), (int)ret);
    if (ret != IGRT_OK)
        return driver_fail(lacks                              ? IGRT_EXIT_DEVICE
                           : ret == IGRT_ERR_WEIGHTS_CHECKSUM ? IGRT_EXIT_WEIGHTS
                                                              : IGRT_EXIT_MODEL,
                           "init: %s (status %d)", igrt_status_text(ret), (int)ret);
    s->ready = 1;
    return IGRT_EXIT_OK;
}

int driver_run(DriverSession *s)
{
    igrt_status ret = s->model->run(s->ctx, s->inputs, s->outputs);
    char why[512];
    if (ret == IGRT_ERR_DIM && s->ran) { /* states that grow have no room left */
        ret = s->model->reset(s->ctx);
        if (ret == IGRT_OK)
            ret = s->model->run(s->ctx, s->inputs, s->outputs);
    }
    s->ran |= ret == IGRT_OK;
    if (ret == IGRT_OK)
        return IGRT_EXIT_OK;
    if (s->model->fault && explain(s->model->fault(s->ctx), why, sizeof why))
        return driver_fail(IGRT_EXIT_MODEL, "run: %s (status %d): %s", igrt_status_text(ret),
                           (int)ret, why);
    if (ret == IGRT_ERR_DIM)
        for (int i = 0; i < s->model->n_inputs; i++) {
            char has[256], wants[256];
            int64_t dims[IGRT_MAX_RANK] = {0};
            const igrt_io *io = &s->model->inputs[i];
            driver_dims(s->inputs, io, dims);
            driver_fail(0, "input \"%s\" is %s, declared %s", io->name,
                        npy_describe_dims(dims, io->rank, has, sizeof has),
                        npy_describe(io, wants, sizeof wants));
        }
    return driver_fail(IGRT_EXIT_MODEL, "run: %s (status %d)", igrt_status_text(ret), (int)ret);
}

static int selftest(DriverSession *s)
{
    const igrt_status ret = s->model->selftest ? s->model->selftest(s->ctx) : IGRT_ERR_NO_SELFTEST;
    if (ret == IGRT_ERR_NO_SELFTEST)
        return driver_fail(IGRT_EXIT_NO_SELFTEST, "selftest: %s", igrt_status_text(ret));
    if (ret == IGRT_ERR_SELFTEST)
        return driver_fail(IGRT_EXIT_SELFTEST, "selftest: %s", igrt_status_text(ret));
    if (ret != IGRT_OK)
        return driver_fail(IGRT_EXIT_MODEL, "selftest: %s (status %d)", igrt_status_text(ret),
                           (int)ret);
    printf("selftest: ok\n");
    return IGRT_EXIT_OK;
}

static int work(DriverSession *s)
{
    const DriverOptions *o = s->options;
    if (o->mode == MODE_PROFILE) {
        s->config.clock = driver_now;
        s->config.profile = driver_note_step;
        s->config.user = &s->profile;
    }
    if (o->trace) {
        s->config.clock = driver_now;
        s->config.profile = driver_trace_step;
        s->config.user = s;
    }
    int status = o->trace ? driver_open_trace(s) : IGRT_EXIT_OK;
    if (status == IGRT_EXIT_OK)
        status = start(s);
    if (status != IGRT_EXIT_OK)
        return status;
    if (o->mode == MODE_SELFTEST)
        return selftest(s);
    if (o->mode == MODE_CHAT)
        return igrt_driver_chat(s, o->chat_argc, o->chat_argv);
    status = driver_read_inputs(s);
    if (status == IGRT_EXIT_OK)
        status = driver_allocate_outputs(s);
    if (status != IGRT_EXIT_OK)
        return status;
    if (o->timeline)
        return driver_timeline(s);
    if (o->mode == MODE_BENCH)
        return driver_bench(s);
    if (o->mode == MODE_PROFILE)
        return driver_profile(s);
    status = driver_run(s);
    if (status == IGRT_EXIT_OK && s->trace.failed) {
        driver_drop(o->trace);
        status = driver_fail(IGRT_EXIT_OUTPUT, "%s: the trace is incomplete", o->trace);
    }
    return status == IGRT_EXIT_OK ? driver_write_outputs(s) : status;
}

static void finish(DriverSession *s)
{
    const igrt_model *m = s->model;
    if (s->ready)
        m->deinit(s->ctx);
    igrt_pool_stop(&s->pool);
    for (int i = 0; s->inputs && i < m->n_inputs; i++)
        free(driver_pointer(s->inputs, &m->inputs[i]));
    for (int i = 0; s->outputs && i < m->n_outputs; i++)
        free(driver_pointer(s->outputs, &m->outputs[i]));
    igrt_weights_close(&s->weights);
    igrt_timeline_free(&s->timeline);
    if (s->trace.to)
        fclose(s->trace.to);
    if (s->trace.from)
        fclose(s->trace.from);
    free(s->trace.place);
    free(s->profile.step);
    free(s->config.arena);
    for (int i = 0; i < s->config.n_memories; i++)
        free(s->memory[i].data);
    free(s->memory);
    free(s->ctx);
    free(s->inputs);
    free(s->outputs);
}

igrt_model driver_function(const igrt_model *m, const igrt_function *f)
{
    igrt_model it = *m;
    it.inputs = f->inputs;
    it.n_inputs = f->n_inputs;
    it.outputs = f->outputs;
    it.n_outputs = f->n_outputs;
    it.inputs_bytes = f->inputs_bytes;
    it.outputs_bytes = f->outputs_bytes;
    it.input_groups = f->input_groups;
    it.output_groups = f->output_groups;
    it.n_input_groups = f->n_input_groups;
    it.n_output_groups = f->n_output_groups;
    it.run = f->call;
    return it;
}

/* --function: *m becomes the model with that one, which *room is for. */
static int choose_function(const char *name, const igrt_model **m, igrt_model *room)
{
    for (int i = 0; i < (*m)->n_functions; i++)
        if (!strcmp((*m)->functions[i].name, name)) {
            *room = driver_function(*m, &(*m)->functions[i]);
            *m = room;
            return IGRT_EXIT_OK;
        }
    return driver_fail(IGRT_EXIT_USAGE, "there is no function '%s'; --help lists them", name);
}

int igrt_driver_main(int argc, char **argv, const igrt_model *model)
{
    static DriverSession session; /* large: it holds the pool */
    DriverOptions options = {.mode = MODE_RUN, .threads = 1, .argv0 = argv[0]};
    the_model = model;
    memset(&session, 0, sizeof session);
#if defined(__wasi__) /* starts in /, and is told where its user is */
    const char *here = getenv("PWD");
    if (here && chdir(here))
        return driver_fail(IGRT_EXIT_USAGE, "%s: %s", here, strerror(errno));
#endif
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            driver_help(stdout, model, argv[0]);
            return IGRT_EXIT_OK;
        }
    int status = driver_options(argc, argv, model, &options);
    if (status != IGRT_EXIT_OK)
        return status;
    igrt_model function;
    if (options.function)
        status = choose_function(options.function, &model, &function);
    if (status != IGRT_EXIT_OK)
        return status;
    session.model = model;
    session.options = &options;
    status = work(&session);
    finish(&session);
    if (fflush(stdout) && status == IGRT_EXIT_OK)
        status = driver_fail(IGRT_EXIT_OUTPUT, "standard output: %s", strerror(errno));
    return status;
}
