/* What is known of a machine: by its name, by what the processor, /sys or a driver tells of it, by
 * a target file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "targets/targets.h"

/* A processor that multiplies half a vector at once takes twice as long for products; for all else,
 * and from memory, as long. */
static void halves(void **state)
{
    (void)state;
    Target whole = {.machine.lanes = 16}, half = whole;
    target_costs(&whole, false, false);
    target_costs(&half, true, false);
    assert_true(whole.machine.rate[UNIT_VECTOR] == half.machine.rate[UNIT_VECTOR]);
    assert_true(whole.machine.rate[UNIT_TILE] == 2 * half.machine.rate[UNIT_TILE]);
    assert_true(whole.machine.rate[UNIT_SCALAR] == half.machine.rate[UNIT_SCALAR]);
    assert_memory_equal(whole.machine.level, half.machine.level, sizeof whole.machine.level);
}

/* What is known by its name is the same on every machine that compiles for it. */
static void by_name(void **state)
{
    (void)state;
    Target t = {.machine.lanes = 16}, named = {0};
    target_costs(&t, false, false);
    assert_true(target_tune(&named, "x86-64-v4"));
    assert_memory_equal(t.machine.rate, named.machine.rate, sizeof t.machine.rate);
}

/* What "native" is here has a name, which says the same; such names have their figures behind them,
 * in order. */
static void everywhere(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "x86-64-v4+cache",          "x86-64-v4+cache1",  "x86-64-v4+cache1g",
        "x86-64-v4+cache1m+halves", "+halves",           "native+cache1m",
        "x86-64-v4+first48",        "x86-64-v4+ways12k", "x86-64-v4+second2m+first48k"};
    Arena *a = arena_new();
    Target here = {0}, named = {0};
    const char *name = native_name(a);
    if (name) {
        assert_true(target_tune(&here, "native") && target_tune(&named, name));
        assert_true(here.machine.lanes == named.machine.lanes &&
                    here.machine.registers == named.machine.registers);
        assert_true(here.machine.dot == named.machine.dot &&
                    here.machine.pairs == named.machine.pairs &&
                    (here.machine.dot_bf16 > 1) == (named.machine.dot_bf16 > 1));
        assert_true(here.machine.units == named.machine.units &&
                    here.machine.any_sign == named.machine.any_sign);
        assert_true(here.machine.cache == named.machine.cache);
        assert_memory_equal(here.machine.rate, named.machine.rate, sizeof here.machine.rate);
    }
    assert_true(target_tune(&named, "x86-64-v4+vnni+halves+cache1280k"));
    assert_true(named.machine.lanes == 16 && named.machine.dot && !named.machine.pairs &&
                named.machine.cache == 1280 << 10);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(target_tune(&named, wrong[i]));
    arena_free(a);
}

/* ---- by /sys --------------------------------------------------------------------------------- */

static char *figures_of(Arena *a, const Target *t)
{
    StrBuf sb = {0};
    figures_print(&sb, &t->machine, t->gpu);
    return sb_take(&sb, a);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* A folder like /sys with a core's caches: "1 Data 48K 12", a line each. */
static char *sys_with(Arena *a, const char *const *cache, const char *online)
{
    char *root = arena_printf(a, "/tmp/machine_test_XXXXXX");
    assert_non_null(mkdtemp(root));
    const char *folder = root;
    static const char *const down[] = {"devices", "system", "cpu", "cpu0", "cache"};
    for (int i = 0; i < 5; i++) {
        folder = arena_printf(a, "%s/%s", folder, down[i]);
        assert_int_equal(mkdir(folder, 0755), 0);
    }
    write_file(arena_printf(a, "%s/devices/system/cpu/online", root), online);
    for (int i = 0; cache[i]; i++) {
        static const char *const names[] = {"level", "type", "size", "ways_of_associativity",
                                            "coherency_line_size"};
        char word[5][16] = {{0}};
        const char *index = arena_printf(a, "%s/index%d", folder, i);
        assert_int_equal(mkdir(index, 0755), 0);
        int n = sscanf(cache[i], "%15s %15s %15s %15s %15s", word[0], word[1], word[2], word[3],
                       word[4]);
        for (int k = 0; k < n; k++)
            write_file(arena_printf(a, "%s/%s", index, names[k]), arena_printf(a, "%s\n", word[k]));
    }
    setenv("INGOT_SYS", root, 1);
    return root;
}

static void remove_sys(Arena *a, const char *root)
{
    unsetenv("INGOT_SYS");
    assert_int_equal(system(arena_printf(a, "rm -r '%s'", root)), 0);
}

/* "native" with such caches: its figures are those of the name that it has, and end as the table
 * has them. */
static Machine native_with(Arena *a, const char *const *cache, const char *beside)
{
    char *root = sys_with(a, cache, "0-3,8\n");
    Target here = {0}, named = {0};
    const char *name = native_name(a);
    assert_true(target_tune(&here, "native"));
    assert_int_equal(native_caches().cores, 5);
    remove_sys(a, root);
    if (name && here.machine.lanes) {
        assert_string_equal(name + strlen(name) - strlen(beside), beside);
        assert_true(target_tune(&named, name));
        assert_string_equal(figures_of(a, &here), figures_of(a, &named));
    }
    return here.machine;
}

static void by_sys(void **state)
{
    (void)state;
    static const char *const xeon[] = {"1 Data 48K 12 64", "1 Instruction 64K 16 64",
                                       "2 Unified 2048K 16 64", "3 Unified 266240K 16 64", NULL},
                             *const small_second[] = {"1 Data 32K 8 64", "2 Unified 256K 4 64",
                                                      "3 Unified 8192K 16 64", NULL},
                             *const no_third[] = {"1 Data 32K", "2 Unified 1024K", NULL},
                             *const wide[] = {"1 Data 64K 4 128", "2 Unified 16M 12 128", NULL},
                             *const nothing[] = {NULL};
    Arena *a = arena_new();
    Target named;
    assert_true(target_tune(&named, "x86-64-v4"));
    const Machine table = named.machine;
    Machine m = native_with(a, xeon, "+first48k+ways12+second2m+cache260m");
    if (!m.lanes) { /* no machine with caches */
        arena_free(a);
        skip();
    }
    assert_true(m.level[0].bytes == 48 << 10 && m.ways == 12 && m.level[1].bytes == 2 << 20);
    assert_true(m.level[2].bytes == table.level[2].bytes && m.cache == 260 << 20);
    assert_true(m.near == table.near && m.far == table.far);
    m = native_with(a, small_second, "+second256k+third8m+cache8m");
    assert_true(m.level[1].bytes == 256 << 10 && m.far == 256 << 10 && m.level[2].bytes == 8 << 20);
    m = native_with(a, no_third, "+third0k+cache1m");
    assert_true(m.level[2].bytes == 0 && m.level[2].rate == table.level[3].rate);
    assert_true(m.ways == table.ways && m.line == table.line);
    m = native_with(a, wide, "+first64k+ways4+line128+second16m+third0k+cache16m");
    assert_true(m.line == 128 && m.ways == 4 && m.near == table.near);
    m = native_with(a, nothing, "");
    assert_true(m.cache == 0 && m.level[0].bytes == table.level[0].bytes);
    arena_free(a);
}

/* ---- by a driver ----------------------------------------------------------------------------- */

/* What a driver told of GPUs of a name is its row; of others the architecture's, as far as it is
 * not told. */
static void by_driver(void **state)
{
    (void)state;
    Arena *a = arena_new();
    Target h100, told, class_of;
    ingot_status status;
    CudaDevice d = {.major = 9,
                    .processors = 132,
                    .shared = 227 << 10,
                    .shared_static = 48 << 10,
                    .items = 1024,
                    .file = 65536,
                    .l2 = 50 << 20,
                    .khz = 1980000,
                    .memory_khz = 2619000,
                    .bus_bits = 5120,
                    .clusters = true};
    assert_null(target_make(&h100, a, "cuda:h100", &status));
    assert_null(target_make(&told, a, "cuda", &status));
    assert_string_equal(gpu_device_tune(&told.machine, a, &d), "h100");
    assert_string_equal(gpu_device_name(a, &d), "h100");
    assert_string_equal(figures_of(a, &told), figures_of(a, &h100));
    d.processors = 66; /* another one */
    assert_null(target_make(&told, a, "cuda", &status));
    assert_string_equal(gpu_device_tune(&told.machine, a, &d), "sm_90a");
    assert_null(gpu_device_name(a, &d));
    assert_true(told.machine.processors == 66 && told.machine.close == 63);
    assert_true(told.machine.rate[UNIT_TILE] == h100.machine.rate[UNIT_TILE] / 2);
    assert_true(told.machine.level[0].rate == h100.machine.level[0].rate / 2);
    assert_true(told.machine.level[1].rate > 690 && told.machine.level[1].rate < 710);
    assert_true(told.machine.units == h100.machine.units);
    d = (CudaDevice){.major = 8, .minor = 9, .processors = 46, .shared = 99 << 10, .l2 = 36 << 20};
    assert_null(target_make(&class_of, a, "cuda:sm_89", &status));
    assert_null(target_make(&told, a, "cuda", &status));
    assert_string_equal(gpu_device_tune(&told.machine, a, &d), "sm_89");
    assert_true(told.machine.cluster == 1 && told.machine.close == 46);
    assert_true(told.machine.level[0].bytes == 36 << 20 && told.machine.shared == 99 << 10);
    assert_true(told.machine.file == class_of.machine.file);
    assert_true(told.machine.units == class_of.machine.units);
    arena_free(a);
}

static void by_opencl(void **state)
{
    (void)state;
    Arena *a = arena_new();
    Target plain, told;
    ingot_status status;
    assert_null(target_make(&plain, a, "opencl", &status));
    told = plain;
    opencl_device_tune(&told.machine, &(OpenclDevice){0});
    assert_string_equal(figures_of(a, &told), figures_of(a, &plain));
    opencl_device_tune(
        &told.machine,
        &(OpenclDevice){
            .processors = 66, .items = 4096, .shared = 48 << 10, .cache = 4 << 20, .line = 64});
    assert_true(told.machine.processors == 66 && told.machine.items == 1024);
    assert_true(told.machine.shared == 48 << 10 && told.machine.level[0].bytes == 4 << 20);
    assert_true(told.machine.line == 64);
    assert_true(told.machine.rate[UNIT_TILE] == plain.machine.rate[UNIT_TILE] / 2);
    assert_true(told.machine.level[1].rate == plain.machine.level[1].rate / 2);
    Target cores = plain, core;
    assert_null(target_make(&core, a, "c:x86-64-v4", &status));
    opencl_device_tune(&cores.machine,
                       &(OpenclDevice){.processors = 2, .cache = 8 << 20, .core_lanes = 16});
    assert_true(cores.machine.core_lanes == 16 && !told.machine.core_lanes);
    assert_true(cores.machine.level[1].bytes == core.machine.level[1].bytes);
    assert_true(cores.machine.level[2].bytes == 8 << 20);
    assert_true(cores.machine.rate[UNIT_TILE] == 2 * core.machine.rate[UNIT_TILE]);
    arena_free(a);
}

/* ---- by a file ------------------------------------------------------------------------------- */

static const char *read_text(Target *t, Arena *a, const char *text)
{
    char path[] = "/tmp/machine_test_XXXXXX";
    ingot_status status;
    const int f = mkstemp(path);
    assert_true(f >= 0);
    close(f);
    write_file(path, text);
    const char *why = target_read(t, a, path, &status);
    unlink(path);
    return why ? strstr(why, ":") + 1 : NULL;
}

/* A target as a file is the same target. */
static void by_file(void **state)
{
    (void)state;
    static const char *const names[] = {"c",
                                        "c:c99",
                                        "c:x86-64-v3",
                                        "c:sapphirerapids",
                                        "c:cortex-m4",
                                        "c:native",
                                        "c:x86-64-v4+vnni+halves+first48k+cache32m",
                                        "c:x86-64-v4+vnni+bf16+halves+cache32m",
                                        "cuda",
                                        "cuda:sm_90a",
                                        "cuda:h100",
                                        "cuda:sm_90+sm_80",
                                        "opencl:dot8+subgroups32"};
    Arena *a = arena_new();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        Target t, again;
        ingot_status status;
        StrBuf sb = {0};
        assert_null(target_make(&t, a, names[i], &status));
        assert_null(target_print(&sb, a, names[i], &status));
        const char *why = read_text(&again, a, sb.data);
        if (why)
            fail_msg("%s: %s", names[i], why);
        assert_string_equal(figures_of(a, &t), figures_of(a, &again));
        if (strcmp(names[i], "c:native") != 0) /* there by the name that it has everywhere */
            assert_string_equal(t.flags ? t.flags : "", again.flags ? again.flags : "");
        assert_string_equal(t.archs ? t.archs : "", again.archs ? again.archs : "");
        assert_ptr_equal(t.language, again.language);
        assert_int_equal(t.bare, again.bare);
        sb_free(&sb);
    }
    arena_free(a);
}

/* Each line is that figure and no other. */
static void by_line(void **state)
{
    (void)state;
    Arena *a = arena_new();
    Target t, base[2];
    ingot_status status;
    assert_null(target_make(&base[0], a, "c:x86-64-v4", &status));
    assert_null(target_make(&base[1], a, "cuda:sm_90a", &status));
    for (const Figure *f = figures; f->key; f++) {
        const bool gpu = f->of == OF_GPUS;
        Machine want = base[gpu].machine;
        const double x = f->most < 64 ? f->most : f->least > 64 ? f->least : 64;
        const char *value = f->kind == FIGURE_UNITS  ? "mma.f16 mma.i8"
                            : f->kind == FIGURE_BOOL ? "yes"
                                                     : arena_printf(a, "%g", x);
        assert_null(figure_read(&want, a, f, value));
        assert_null(read_text(&t, a,
                              arena_printf(a, "target = %s\n%s = %s\n",
                                           gpu ? "cuda:sm_90a" : "c:x86-64-v4", f->key, value)));
        assert_memory_equal(&want, &t.machine, sizeof want);
    }
    arena_free(a);
}

static void what_is_wrong(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"target = c:x86-64-v4\nlevel1.byte = 3\n",
         "2: unknown key 'level1.byte'; did you mean level1.bytes?"},
        {"target = c:x86-64-v4\ncolour = 3\n", "2: unknown key 'colour'; `ingot targets --machine"},
        {"target = c:x86-64-v4\nlevel1.bytes = much\n",
         "2: 'much': level1.bytes is a number in 0..1e+15"},
        {"target = c:x86-64-v4\nways = 2.5\n", "2: '2.5': ways is a whole number in 1..256"},
        {"target = c:x86-64-v4\nways = 0\n", "2: '0': ways is a whole number"},
        {"target = c:x86-64-v4\nnear = nan\n", "2: 'nan': near is a number"},
        {"target = c:x86-64-v4\ndot = 1\n", "2: '1': dot is yes or no"},
        {"target = c:x86-64-v4\nlanes = 12\n", "2: lanes are 0, 4, 8 or 16"},
        {"target = c:x86-64-v4\nunits = amx.i7\n",
         "2: there is no unit 'amx.i7': none, or some of amx.i8"},
        {"target = c:x86-64-v4\nprocessors = 7\n",
         "2: 'processors' is a figure of GPUs: a line 'target = cuda:"},
        {"\nlevel3.rate = 0\ntarget = c:x86-64-v4\n", "2: level3.rate has to be above 0"},
        {"target = cuda:sm_90a\nwarp = 24\n", "2: subgroup, access and warp are powers of two"},
        {"target = cuda:sm_90a\nways = 4\n", "2: 'ways' is a figure of CPUs, and this is a GPU"},
        {"target = rust\n", "1: target 'rust': unknown"},
        {"target = c:x86-64-v9\n", "1: target 'c:x86-64-v9': unknown; did you mean"},
        {"target = ./other.target\n", "1: './other.target': the name of one target is wanted"},
        {"target = cuda:sm_90a+c:native\n", "1: 'cuda:sm_90a+c:native': the name of one target"},
        {"lanes = 4\n", "1: there is no line 'machine = ...' and none 'target = ...'"},
    };
    Arena *a = arena_new();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        Target t;
        const char *why = read_text(&t, a, wrong[i][0]);
        if (!why || strncmp(why, wrong[i][1], strlen(wrong[i][1])) != 0)
            fail_msg("%s%s", wrong[i][0], why ? why : "no fault");
    }
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves),  cmocka_unit_test(by_name),   cmocka_unit_test(everywhere),
        cmocka_unit_test(by_sys),  cmocka_unit_test(by_driver), cmocka_unit_test(by_opencl),
        cmocka_unit_test(by_file), cmocka_unit_test(by_line),   cmocka_unit_test(what_is_wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
