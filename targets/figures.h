/* figures.h - what machines of a kind have in common; machines.def and gpus.def have what is each
 * one's own. */
#ifndef FIGURES_H
#define FIGURES_H

/* What loops are blocked for, whatever a core has; what it is called by. */
#define CORE_FIGURES                                                                    \
    .near = 32 << 10, .far = 1 << 20, .ways = 8, .page = 4096, .pages = 48, .sums = 24, \
    .chains = 10, .spills = 24, .launch = 500

/* A core with vectors, and three levels of cache. */
#define CORE_APPLICATION           \
    CORE_FIGURES, .part_ns = 2500, \
                  .level = {{32 << 10, 64}, {1 << 20, 16}, {16 << 20, 10}, {0, 4.5}}, .line = 64

/* Cycles that a group of items takes to begin and to end where it is a call of a function. */
#define CORE_START 200

/* One without caches: loops are blocked for those of an application core, which costs nothing. */
#define CORE_UNCACHED CORE_FIGURES, .level = {{0, 4}}, .line = 32
#define CORE_SMALL CORE_UNCACHED, .part_ns = 2500

/* The same, the only one of its chip: there is no other thread to hand work to. */
#define CORE_SINGLE CORE_UNCACHED, .part_ns = 1e12

/* Of any GPU, in whatever language: some hundred units of 32 lanes, seldom full. What products take
 * was measured on an H100. */
#define GPU_FIGURES                                                                                \
    .turned = 3500, .start = 1500, .shared_rate = 128, .warp_stored = 1,                           \
    .warp_products = {.iteration = 150,                                                            \
                      .step = 40,                                                                  \
                      .product = 7,                                                                \
                      .product3 = 26,                                                              \
                      .split = 8,                                                                  \
                      .flow = 21,                                                                  \
                      .gather = 75,                                                                \
                      .issue = 20,                                                                 \
                      .meet = 500,                                                                 \
                      .member = 80,                                                                \
                      .crowded = 4000,                                                             \
                      .given = 20,                                                                 \
                      .join = 300,                                                                 \
                      .address = 60,                                                               \
                      .registers = 40,                                                             \
                      .stored = 64},                                                               \
    .group_products = {.rate = 2048,                                                               \
                       .apart = 404,                                                               \
                       .column = 7.1,                                                              \
                       .begin3 = 1000,                                                             \
                       .fill = 1200,                                                               \
                       .latency = 900,                                                             \
                       .flow = 55,                                                                 \
                       .flow_all = 6200,                                                           \
                       .stored = 24,                                                               \
                       .given = 91,                                                                \
                       .finish = 75,                                                               \
                       .group = 700},                                                              \
    .row_products = {.flow = 50,                                                                   \
                     .product = 15,                                                                \
                     .product3 = 25,                                                               \
                     .wait = 18,                                                                   \
                     .wait3 = 50,                                                                  \
                     .others = 140,                                                                \
                     .waited = 160,                                                                \
                     .made = 16,                                                                   \
                     .alone = 90,                                                                  \
                     .rate = 1420,                                                                 \
                     .begin = 2600,                                                                \
                     .made_overlapped = 26,                                                        \
                     .rate_overlapped = 2048,                                                      \
                     .next = 1100,                                                                 \
                     .join = 170,                                                                  \
                     .registers = 72},                                                             \
    .processors = 132, .close = 126, .cluster = 8, .quarters = 4, .warp = 32, .file = 65536,       \
    .item_registers = 255, .group = 512, .loads = 16, .access = 16, .sector = 32,                  \
    .rate = {500, 4000, 4000}, .level = {{32 << 20, 2000}, {0, 700}}, .line = 128, .launch = 2000, \
    .byte = 0.002

#endif
