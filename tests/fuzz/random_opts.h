/* random_opts.h - what the programs of random_opts.c share: data, and the comparison of two
 * runs. */
#ifndef RANDOM_OPTS_H
#define RANDOM_OPTS_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "igrt_amx.h"
#include "igrt_cpu.h"
#include "igrt_dot_bf16.h"
#include "igrt_dot_i16.h"
#include "igrt_dot_vec.h"
#include "igrt_vec.h"
#include "igrt_vec64.h"

enum { GUARD = 256, MAX_ARGS = 64 };
typedef struct {
    size_t bytes;
    char kind; /* of an element: f f32, d f64, h f16, B bf16, b bool, i integer */
    int size;
    const int *runs; /* NULL, or how many elements are data, how many lie around them, .. -1 */
    int around;      /* what these are */
} ArgData;

static unsigned char *now[MAX_ARGS], *want[MAX_ARGS];
static uint32_t seed;

static int small(int range)
{
    seed = seed * 1664525u + 1013904223u;
    return (int)((seed >> 16) % (unsigned)range);
}

/* Integers from -3 to 3, of what may be an index from 0 to 3. */
static void fill(unsigned char *p, const ArgData *a)
{
    const int *run = a->runs;
    int left = run ? *run : -1;
    memset(p, 0x5a, a->bytes + 2 * GUARD);
    p += GUARD;
    for (size_t i = 0; i < a->bytes / (size_t)a->size; i++) {
        int v = small(7) - 3, u = v < 0 ? -v : v;
        while (!left)
            left = *++run;
        left--;
        if (run && (run - a->runs) % 2)
            v = u = a->around;
        float f = (float)v;
        double d = v;
        int64_t w = a->size < 4 ? v : u;
        uint16_t h = (uint16_t)(igrt_f32_bits(f) >> 16);
        switch (a->kind) {
        case 'f': memcpy(p + i * 4, &f, 4); break;
        case 'd': memcpy(p + i * 8, &d, 8); break;
        case 'h':
            h = igrt_f32_to_f16(f);
            memcpy(p + i * 2, &h, 2);
            break;
        case 'B': memcpy(p + i * 2, &h, 2); break;
        case 'b': p[i] = (unsigned char)(u & 1); break;
        default: memcpy(p + i * (size_t)a->size, &w, (size_t)a->size); break;
        }
    }
}

/* Memory for the places of a kernel, with nothing in it that could be right. */
static inline void *places(size_t bytes)
{
    static _Alignas(64) unsigned char memory[1 << 22];
    if (bytes > sizeof memory)
        fprintf(stderr, "places of %zu bytes\n", bytes), exit(2);
    memset(memory, 0xa5, bytes);
    return memory;
}

/* The same bytes for every run. */
static void start(unsigned char **p, const ArgData *a, int n)
{
    seed = 12345;
    for (int i = 0; i < n; i++) {
        free(p[i]);
        p[i] = malloc(a[i].bytes + 2 * GUARD);
        if (!p[i])
            exit(2);
        fill(p[i], &a[i]);
    }
}

static double number(const unsigned char *p, const ArgData *a, size_t i)
{
    float f;
    double d;
    uint16_t h;
    switch (a->kind) {
    case 'f': memcpy(&f, p + i * 4, 4); return f;
    case 'd': memcpy(&d, p + i * 8, 8); return d;
    default:
        memcpy(&h, p + i * 2, 2);
        return a->kind == 'h' ? igrt_f16_to_f32(h) : igrt_bf16_to_f32(h);
    }
}

static int same_numbers(const unsigned char *p, const unsigned char *q, const ArgData *a, int exact)
{
    double most = exact ? 0 : a->kind == 'h' ? 2e-3 : a->kind == 'B' ? 2e-2 : 1e-4;
    if (!strchr("fdhB", a->kind) || memcmp(p, q, GUARD) != 0 ||
        memcmp(p + GUARD + a->bytes, q + GUARD + a->bytes, GUARD) != 0)
        return 0;
    for (size_t i = 0; i < a->bytes / (size_t)a->size; i++) {
        double x = number(p + GUARD, a, i), y = number(q + GUARD, a, i);
        if (!(x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= most * (1 + fabs(y))))
            return 0;
    }
    return 1;
}

/* 1, after a line that says so, if the two runs differ. */
static int judge(const ArgData *a, int n, int exact, const char *what)
{
    for (int i = 0; i < n; i++) {
        if (!memcmp(now[i], want[i], a[i].bytes + 2 * GUARD) ||
            same_numbers(now[i], want[i], &a[i], exact))
            continue;
        printf("wrong: %s (argument %d)\n", what, i);
        return 1;
    }
    return 0;
}

#endif
