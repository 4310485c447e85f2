/* ways_results.h - a network's results beside those of the compiler's kernels, which tune_ways.c
 * keeps. */
#ifndef WAYS_RESULTS_H
#define WAYS_RESULTS_H

static size_t output_bytes(const igrt_io *io, const void *base)
{
    int64_t dims[IGRT_MAX_RANK] = {0};
    driver_dims(base, io, dims);
    return npy_count(dims, io->rank) * igrt_dtype_bytes(io->dtype);
}

static double element(const igrt_io *io, const void *data, size_t i)
{
    uint32_t word;
    float value;
    switch (io->dtype) {
    case IGRT_F32: return ((const float *)data)[i];
    case IGRT_F64: return ((const double *)data)[i];
    case IGRT_BF16:
        word = (uint32_t)((const uint16_t *)data)[i] << 16;
        memcpy(&value, &word, sizeof value);
        return value;
    case IGRT_F16: {
        const unsigned x = ((const uint16_t *)data)[i], e = x >> 10 & 31, m = x & 1023;
        const double v = e == 31 ? (m ? NAN : INFINITY)
                         : e     ? ldexp(1024 + m, (int)e - 25)
                                 : ldexp(m, -24);
        return x >> 15 ? -v : v;
    }
    default: return 0;
    }
}

/* Beside the compiler's kernels, but for how sums are rounded: of the largest value. */
static int results_agree(const DriverSession *s, void *const *wanted)
{
    const igrt_model *m = s->model;
    for (int i = 0; i < m->n_outputs; i++) {
        const igrt_io *io = &m->outputs[i];
        const void *got = driver_pointer(s->outputs, io);
        const size_t bytes = output_bytes(io, s->outputs), n = bytes / igrt_dtype_bytes(io->dtype);
        const int is_float = io->dtype == IGRT_F32 || io->dtype == IGRT_F64 ||
                             io->dtype == IGRT_F16 || io->dtype == IGRT_BF16;
        double most = 0, off = 0;
        if (!got)
            continue;
        if (!is_float && memcmp(got, wanted[i], bytes))
            return 0;
        for (size_t k = 0; k < n && is_float; k++) {
            const double x = element(io, got, k), y = element(io, wanted[i], k);
            most = fabs(y) > most ? fabs(y) : most;
            if (isnan(x) != isnan(y))
                return 0;
            off = fabs(x - y) > off ? fabs(x - y) : off;
        }
        if (off > TOLERANCE * most)
            return 0;
    }
    return 1;
}

/* A copy of each output; exit status. */
static int keep_results(const DriverSession *s, void ***wanted)
{
    const igrt_model *m = s->model;
    *wanted = calloc((size_t)m->n_outputs + 1, sizeof **wanted);
    if (!*wanted)
        return driver_fail(IGRT_EXIT_MEMORY, "out of memory");
    for (int i = 0; i < m->n_outputs; i++) {
        const size_t bytes = output_bytes(&m->outputs[i], s->outputs);
        const void *from = driver_pointer(s->outputs, &m->outputs[i]);
        (*wanted)[i] = malloc(bytes ? bytes : 1);
        if (!(*wanted)[i])
            return driver_fail(IGRT_EXIT_MEMORY, "out of memory");
        if (from)
            memcpy((*wanted)[i], from, bytes);
    }
    return IGRT_EXIT_OK;
}

#endif
