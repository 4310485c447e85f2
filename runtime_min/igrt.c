/*
 * igrt.c - the few functions every bundle needs: checks at init, the checksum of the
 * weights, the floating-point mode, and the parts of a step.
 */
#include "igrt.h"

#include <string.h>

int igrt_outside(igrt_fault *fault, const char *what, int64_t value, int64_t least,
                 int64_t greatest)
{
    if (value >= least && value <= greatest)
        return 0;
    fault->what = what;
    fault->value = value;
    fault->least = least;
    fault->greatest = greatest;
    return 1;
}

/* Whether a block of memory is what a model needs; of one that it does not need all is right. */
static igrt_status check_block(const igrt_memory *block, size_t bytes, size_t align)
{
    if (bytes && (!block->data || block->bytes < bytes))
        return IGRT_ERR_ARENA_SIZE;
    if (bytes && (uintptr_t)block->data % align)
        return IGRT_ERR_ARENA_ALIGN;
    return IGRT_OK;
}

igrt_status igrt_config_check(const igrt_config *config, size_t arena_bytes, size_t arena_align,
                              size_t weights_bytes)
{
    if (!config)
        return IGRT_ERR_NULL;
    if (config->struct_size != sizeof *config || config->threads < 0)
        return IGRT_ERR_CONFIG;
    if (config->threads > 1 && !config->parallel_for)
        return IGRT_ERR_CONFIG;
    const igrt_comm *comm = config->comm;
    if (comm &&
        ((!comm->all_reduce && !comm->all_reduce_in) || comm->rank < 0 || comm->rank >= comm->size))
        return IGRT_ERR_CONFIG;
    const igrt_memory arena = {config->arena, config->arena_bytes};
    const igrt_status status = check_block(&arena, arena_bytes, arena_align);
    if (status != IGRT_OK)
        return status;
    if (weights_bytes) {
        if (!config->weights || (uintptr_t)config->weights % IGRT_ALIGN)
            return IGRT_ERR_WEIGHTS_MISSING;
        if (config->weights_bytes != weights_bytes)
            return IGRT_ERR_WEIGHTS_SIZE;
    }
    return IGRT_OK;
}

igrt_status igrt_weights_check(const igrt_config *config, uint64_t sum)
{
    if (config->flags & IGRT_SKIP_CHECKSUM ||
        igrt_checksum(config->weights, config->weights_bytes) == sum)
        return IGRT_OK;
    return IGRT_ERR_WEIGHTS_CHECKSUM;
}

igrt_status igrt_memory_check(const igrt_config *config, const size_t *bytes, int n, size_t align)
{
    if (!config->memory || config->n_memories < n)
        return IGRT_ERR_ARENA_SIZE;
    for (int i = 0; i < n; i++) {
        const igrt_status status = check_block(&config->memory[i], bytes[i], align);
        if (status != IGRT_OK)
            return status;
    }
    return IGRT_OK;
}

#if defined(__GNUC__) && defined(__x86_64__) && defined(__SSE2__)
enum { FLUSH = 1 << 15 | 1 << 6 }; /* flush to zero, denormals are zeros */

uint64_t igrt_fp_mode(void)
{
    return __builtin_ia32_stmxcsr();
}

void igrt_fp_restore(uint64_t mode)
{
    __builtin_ia32_ldmxcsr((unsigned)mode);
}
#elif defined(__GNUC__) && defined(__aarch64__)
enum { FLUSH = 1 << 24 };

uint64_t igrt_fp_mode(void)
{
    uint64_t mode;
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(mode));
    return mode;
}

void igrt_fp_restore(uint64_t mode)
{
    __asm__ __volatile__("msr fpcr, %0" : : "r"(mode));
}
#elif defined(__GNUC__) && defined(__arm__) && defined(__ARM_FP) && !defined(__SOFTFP__)
enum { FLUSH = 1 << 24 };

uint64_t igrt_fp_mode(void)
{
    uint32_t mode;
    __asm__ __volatile__("vmrs %0, fpscr" : "=r"(mode));
    return mode;
}

void igrt_fp_restore(uint64_t mode)
{
    __asm__ __volatile__("vmsr fpscr, %0" : : "r"((uint32_t)mode) : "cc");
}
#else
enum { FLUSH = 0 };

uint64_t igrt_fp_mode(void)
{
    return 0;
}

void igrt_fp_restore(uint64_t mode)
{
    (void)mode;
}
#endif

uint64_t igrt_fp_flush(void)
{
    const uint64_t mode = igrt_fp_mode();
    igrt_fp_restore(mode | FLUSH);
    return mode;
}

/* Some parts at a time: what is read again for each part (weights, inside of which rows are cut) is
 * read once for all of them. Of a thread's share the first tasks are long and the last ones short:
 * who is through with his own takes what is left of one that is held up, and all end together but
 * for a sixteenth of a share. */
enum { TASKS = 7, SHARE = 16 };
static const int begins[TASKS] = {0, 4, 8, 11, 13, 14, 15}; /* in sixteenths */

typedef struct PartsTask {
    igrt_parts_fn run;
    const void *arg;
    int64_t n, threads; /* 0: each part is a task */
    uint64_t fp_mode;
} PartsTask;

static int64_t first_part(const PartsTask *parts, int64_t i)
{
    if (!parts->threads)
        return i;
    const int64_t at = i / TASKS * SHARE + begins[i % TASKS], all = parts->threads * SHARE;
    return parts->n / all * at + parts->n % all * at / all;
}

static void run_parts(void *task, int64_t i, int worker)
{
    const PartsTask *parts = task;
    const uint64_t before = igrt_fp_mode();
    const int64_t begin = first_part(parts, i), end = first_part(parts, i + 1);
    (void)worker;
    igrt_fp_restore(parts->fp_mode);
    if (begin < end)
        parts->run(parts->arg, begin, end);
    igrt_fp_restore(before);
}

void igrt_parallel(const igrt_config *config, igrt_parts_fn run, const void *arg, int64_t n)
{
    const int64_t most = (int64_t)TASKS * config->threads;
    PartsTask parts = {run, arg, n, n > most ? config->threads : 0, igrt_fp_mode()};
    if (config->parallel_for && config->threads > 1 && n > 1)
        config->parallel_for(config->parallel_user, run_parts, &parts, n > most ? most : n);
    else
        run(arg, 0, n);
}

#define SUM_PRIME UINT64_C(0x9e3779b97f4a7c15)

static uint64_t sum_word(uint64_t lane, uint64_t w)
{
    uint64_t h = (lane ^ w) * SUM_PRIME;
    return h ^ (h >> 32);
}

static uint64_t load_word(const unsigned char *p)
{
    uint64_t w;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(&w, p, 8);
#else
    w = 0;
    for (int i = 7; i >= 0; i--)
        w = w << 8 | p[i];
#endif
    return w;
}

void igrt_sum_begin(igrt_sum *s)
{
    for (int k = 0; k < 4; k++)
        s->lane[k] = SUM_PRIME * (uint64_t)(k + 1);
    s->bytes = 0;
}

void igrt_sum_add(igrt_sum *s, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    uint64_t a = s->lane[0], b = s->lane[1], c = s->lane[2], d = s->lane[3];
    const size_t whole = bytes - bytes % 32;
    size_t i = 0;
    for (; i < whole; i += 32) {
        a = sum_word(a, load_word(p + i));
        b = sum_word(b, load_word(p + i + 8));
        c = sum_word(c, load_word(p + i + 16));
        d = sum_word(d, load_word(p + i + 24));
    }
    s->lane[0] = a;
    s->lane[1] = b;
    s->lane[2] = c;
    s->lane[3] = d;
    for (int k = 0; i < bytes; k++, i += 8) { /* the last, short stripe */
        unsigned char word[8] = {0};
        memcpy(word, p + i, bytes - i < 8 ? bytes - i : 8);
        s->lane[k] = sum_word(s->lane[k], load_word(word));
    }
    s->bytes += bytes;
}

uint64_t igrt_sum_end(const igrt_sum *s)
{
    uint64_t sum = s->bytes;
    for (int k = 0; k < 4; k++) {
        sum = (sum ^ s->lane[k]) * SUM_PRIME;
        sum ^= sum >> 29;
    }
    return sum;
}

uint64_t igrt_checksum(const void *data, size_t bytes)
{
    igrt_sum s;
    igrt_sum_begin(&s);
    igrt_sum_add(&s, data, bytes);
    return igrt_sum_end(&s);
}
