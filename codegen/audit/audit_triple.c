/* audit_triple.c - the headers of the C library for a machine, and how clang is called for it. */
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "audit.h"

enum { MAX_PLACES = 4 };

/* By the start of the triple and a word in it; the first that fits. Headers of 64 and 32 bits are
 * the same files. */
static const struct {
    const char *arch, *word, *package;
    const char *place[MAX_PLACES];
} libraries[] = {
    {"x86_64",
     "linux",
     "libc6-dev, or elsewhere libc6-dev-amd64-cross",
     {"/usr/x86_64-linux-gnu/include", "/usr/include"}},
    {"aarch64", "linux", "libc6-dev-arm64-cross", {"/usr/aarch64-linux-gnu/include"}},
    {"riscv64", "linux", "libc6-dev-riscv64-cross", {"/usr/riscv64-linux-gnu/include"}},
    {"arm", "linux", "libc6-dev-armhf-cross", {"/usr/arm-linux-gnueabihf/include"}},
    {"thumb",
     "",
     "libnewlib-arm-none-eabi",
     {"/usr/lib/arm-none-eabi/include", "/usr/include/newlib"}},
    {"arm",
     "",
     "libnewlib-arm-none-eabi",
     {"/usr/lib/arm-none-eabi/include", "/usr/include/newlib"}},
    {"riscv",
     "",
     "picolibc-riscv64-unknown-elf",
     {"/usr/lib/picolibc/riscv64-unknown-elf/include", "/usr/riscv64-unknown-elf/include"}},
};

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static void argument(Audit *a, const char *text)
{
    vec_push(a->a, a->argument, a->nargument, text);
}

/* Bundles for one machine have its flags in the Makefile: every word of FLAGS and MACHINE that
 * begins with -m. */
static void machine_arguments(Audit *a)
{
    FILE *f = fopen(arena_printf(a->a, "%s/Makefile", a->o->dir), "r");
    char line[1024];
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, "FLAGS =", 7) || !strncmp(line, "MACHINE =", 9))
            for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n"))
                if (!strncmp(word, "-m", 2))
                    argument(a, arena_strdup(a->a, word));
    if (f)
        fclose(f);
}

ingot_status triple_find(Audit *a, StrBuf *problem)
{
    const char *triple = a->o->triple, *package = NULL;
    a->hosted = strstr(triple, "linux") != NULL;
    a->headers = a->o->headers;
    if (a->headers && !is_folder(a->headers)) {
        sb_printf(problem, "--headers %s: there is no such folder", a->headers);
        return INGOT_IO;
    }
    struct utsname here;
    bool native = uname(&here) == 0 && !strcmp(here.sysname, "Linux") && a->hosted &&
                  !strncmp(triple, here.machine, strlen(here.machine));
    if (!a->headers && native)
        a->headers = "/usr/include";
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries && !a->headers && !package; i++) {
        if (strncmp(triple, libraries[i].arch, strlen(libraries[i].arch)) ||
            !strstr(triple, libraries[i].word))
            continue;
        package = libraries[i].package;
        for (int k = 0; k < MAX_PLACES && libraries[i].place[k] && !a->headers; k++)
            if (is_folder(libraries[i].place[k]))
                a->headers = libraries[i].place[k];
    }
    if (!a->headers && package) {
        sb_printf(problem,
                  "the C library's headers for %s are not installed: they are in the package %s "
                  "(or name a folder: --headers DIR)",
                  triple, package);
        return INGOT_USAGE;
    }
    if (!a->headers) {
        sb_printf(problem,
                  "no place is known for the C library's headers for %s: name a folder with "
                  "--headers DIR",
                  triple);
        return INGOT_USAGE;
    }
    argument(a, "-target");
    argument(a, triple);
    if (!native || a->o->headers) {
        argument(a, "-isystem");
        argument(a, a->headers);
    }
    static const char *const common[] = {
        "-xc", "-std=c99", "-ffp-contract=off", "-Wall", "-Wextra", "-Wconversion", "-Wvla"};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        argument(a, common[i]);
    argument(a, "-I"); /* host/main.c includes the model's header */
    argument(a, a->o->dir);
    machine_arguments(a);
    return INGOT_OK;
}
