/* run_cc.c - the C compiler: which it is, for which machine, and the programs that it builds of
 * bundles, on all cores. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "run.h"
#include "targets.h"

const char *c_compiler(void)
{
    const char *cc = getenv("CC");
    return cc && *cc ? cc : "cc";
}

enum { MAX_WORDS = 64 };

/* What kernels are built with.  A compiler that does not know gcc's flag may refuse it: it is
 * asked.  Where steps are counted nobody times a kernel, and all compile in half the time; what is
 * only run, and whose text nobody looks at, in a quarter. */
#define BUILT(level) clock_is_steps() ? level : "-O3", FLAG_OF_GCC, "-ffp-contract=off", "-w"
#define OPTIMISED BUILT("-O1")

/* $CC may hold flags: "ccache gcc -m32". */
static int words(Arena *a, const char *text, const char **argv)
{
    int n = 0;
    while (*text && n < 16) {
        size_t skip = strspn(text, " "), len = strcspn(text + skip, " ");
        if (len)
            argv[n++] = arena_printf(a, "%.*s", (int)len, text + skip);
        text += skip + len;
    }
    return n;
}

/* Does the compiler that these words begin with take the flag?  It is asked with an empty
 * source. */
static bool is_taken(const char *const *cc, int n, const char *flag)
{
    const char *argv[MAX_WORDS] = {"sh", "-c", "exec \"$@\" >/dev/null 2>&1", "sh"};
    const char *const empty[] = {flag, "-fsyntax-only", "-x", "c", "/dev/null", NULL};
    const int begin = 4;
    memcpy((void *)(argv + begin), cc, (size_t)n * sizeof *cc);
    memcpy((void *)(argv + begin + n), empty, sizeof empty);
    return process_run(argv) == 0;
}

/* The same of FLAG_OF_GCC: as long as it is the same compiler, it is asked once. */
static bool takes_flag_of_gcc(const char *const *cc, int n)
{
    static char asked[4096];
    static bool taken;
    char now[sizeof asked] = "";
    size_t len = 0;
    for (int i = 0; i < n && len < sizeof now; i++)
        len += (size_t)snprintf(now + len, sizeof now - len, "%s\n", cc[i]);
    if (len >= sizeof now)
        return is_taken(cc, n, FLAG_OF_GCC);
    if (strcmp(now, asked) != 0)
        taken = is_taken(cc, n, FLAG_OF_GCC);
    memcpy(asked, now, sizeof asked);
    return taken;
}

/* Appends flags to the n words of a compiler: how many there are then. */
static int add_flags(const char **argv, int n, const char *const *flag, int nflag)
{
    const int words = n;
    for (int i = 0; i < nflag; i++)
        if (strcmp(flag[i], FLAG_OF_GCC) != 0 || takes_flag_of_gcc(argv, words))
            argv[n++] = flag[i];
    return n;
}

/* The running compilers: at most one a core. */
typedef struct {
    const char *dir; /* where they run, with relative names: a cache of objects knows them again */
    pid_t pid[64];
    int n, max;
    bool failed;
} Jobs;

static Jobs jobs_in(const char *dir)
{
    return (Jobs){.dir = dir, .max = cores()};
}

static void job_wait(Jobs *j)
{
    j->failed |= process_wait(j->pid[0]) != 0;
    memmove(j->pid, j->pid + 1, (size_t)--j->n * sizeof j->pid[0]);
}

static void job_start(Jobs *j, const char *const *argv)
{
    if (j->n == j->max)
        job_wait(j);
    pid_t pid = j->failed ? -1 : process_start_in(argv, j->dir);
    if (pid < 0)
        j->failed = true;
    else
        j->pid[j->n++] = pid;
}

static void jobs_wait(Jobs *j)
{
    while (j->n)
        job_wait(j);
}

/* Of n files, how many bytes each of those up to it have. */
static double *sizes(Arena *a, const char *dir, const char *const *files, int n)
{
    double *sum = NEWN(a, double, n + 1);
    for (int i = 0; i < n; i++) {
        struct stat s;
        bool known = !stat(arena_printf(a, "%s/%s", dir, files[i]), &s);
        sum[i + 1] = sum[i] + (known ? (double)s.st_size : 0);
    }
    return sum;
}

/* The first ones of those that were started are done. */
static void jobs_told(const Jobs *j, const double *size, int started, int all)
{
    if (all && size[all] > 0)
        progress_at(size[started - j->n] / size[all]);
}

/* Appends those of a folder in dir: "", "host/". */
static void source_files(Arena *a, const char *dir, const char *folder, const char ***files, int *n)
{
    DIR *d = opendir(arena_printf(a, "%s/%s", dir, folder));
    for (struct dirent *e; d && (e = readdir(d));) {
        size_t len = strlen(e->d_name);
        if (len > 2 && !strcmp(e->d_name + len - 2, ".c"))
            vec_push(a, *files, *n, arena_printf(a, "%s%s", folder, e->d_name));
    }
    if (d)
        closedir(d);
}

/* What is known of a target's machine; of several that of the last one, which is for C. */
Target machine_target(Arena *a, const char *target)
{
    Target t = {0};
    ingot_status status;
    TargetName *list;
    const int n = target_list(a, target, &list);
    (void)target_make(&t, a, list[n - 1].target, &status);
    return t;
}

/* The words of the C compiler for it: $CC, else what its file names, else cc; and what it is told
 * about the machine. */
static int compiler_for(Arena *a, const char *target, const char **argv)
{
    const Target t = machine_target(a, target);
    const char *told = getenv("CC");
    int n = words(a, t.triple && t.cc && !(told && *told) ? t.cc : c_compiler(), argv);
    char here[4096]; /* it runs in other folders than this one */
    if (n && *argv[0] != '/' && strchr(argv[0], '/') && getcwd(here, sizeof here))
        argv[0] = arena_printf(a, "%s/%s", here, argv[0]);
    return n;
}

static int machine_words(Arena *a, const char *target, const char **argv)
{
    const Target t = machine_target(a, target);
    return t.gpu || !t.flags ? 0 : words(a, t.flags, argv);
}

const char *this_processor(Arena *a)
{
    static const char *const lines[] = {
        "vendor_id", "cpu family", "model",   "stepping", "flags", "CPU implementer",
        "Features",  "CPU part",   "CPU var", "isa",      "uarch"};
    StrBuf sb = {0};
    char line[8192];
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f) && *line != '\n') { /* of the first one */
        bool counts = false;
        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
            counts |= !strncmp(line, lines[i], strlen(lines[i]));
        sb_puts(&sb, counts ? line : "");
    }
    if (f)
        (void)fclose(f);
    return sb_take(&sb, a);
}

/* Of these the ones for all files. */
static int any_words(Arena *a, const char *target, const char **argv)
{
    const Target t = machine_target(a, target);
    return t.gpu ? 0 : words(a, flags_for_all(a, &t), argv);
}

/* A file may tell of any machine. */
static bool runs_here(const Target *t)
{
    struct utsname here;
    if (!t->triple || uname(&here))
        return true;
    size_t n = strlen(here.machine);
    return !t->bare && !strncmp(t->triple, here.machine, n) && t->triple[n] == '-';
}

const char *runs_elsewhere(Arena *a, const char *target)
{
    const Target t = machine_target(a, target);
    if (!runs_here(&t))
        return arena_printf(a, "a program for %s (%s) does not run here", target, t.triple);
    if (t.wasm)
        return arena_printf(a, "a program for %s does not run here by itself", target);
    const char *cc[MAX_WORDS];
    const int n = words(a, c_compiler(), cc);
    if (!n || !find_program(a, cc[0]))
        return arena_printf(a,
                            "there is no C compiler: '%s' is not on the PATH. Install gcc or "
                            "clang, or name one in $CC; after `pip install ziglang`, "
                            "CC=\"python3 -m ingot.zig\" is one",
                            n ? cc[0] : "cc");
    if (t.gpu || !t.flags || t.triple)
        return NULL;
    const char *lacks = NULL;
    if (!compiles_for(a, c_compiler(), t.flags, &lacks))
        return arena_printf(a, "%s compiles nothing for %s", c_compiler(), target);
    return lacks ? arena_printf(a, "a program for %s does not run here: the processor lacks %s",
                                target, lacks)
                 : NULL;
}

/* What a source becomes. */
typedef struct {
    const char *file; /* in the program's folder, or, with an absolute path, in that of the cache */
    const char *part; /* where it is written */
    bool kept, there; /* in the cache; from an earlier program */
    int machine;      /* compiled for: its place among the targets for C, or -1: for any */
} Object;

/* *parts: where those that the cache is to keep are made, or NULL. */
static Object *objects_of(Arena *a, const char *const *source, int n, const char *folder,
                          int nsuffix, const char *const *suffix, const char **parts)
{
    Object *o = NEWN(a, Object, n + 1);
    for (int i = 0; i < n; i++) {
        o[i].file = arena_printf(a, "%.*s.o", (int)strlen(source[i]) - 2, source[i]);
        o[i].kept = folder && object_is_shared(source[i]);
        if (o[i].kept)
            o[i].file = arena_printf(a, "%s/%s", folder, o[i].file);
        o[i].there = o[i].kept && !access(o[i].file, R_OK);
        o[i].part = o[i].file;
        if (o[i].kept && !o[i].there && !*parts)
            *parts = part_folder(a, arena_printf(a, "%s/new", folder));
        if (o[i].kept && !o[i].there)
            o[i].part = arena_printf(a, "%s/%d.o", *parts ? *parts : folder, i);
        o[i].machine = source_machine(a, "model", nsuffix, suffix, source[i]);
    }
    return o;
}

/* From the second program on, headers that all begin with are worth being compiled. */
static bool any_there(const Object *o, int n)
{
    for (int i = 0; i < n; i++)
        if (o[i].there)
            return true;
    return false;
}

/* The words of a compiler, with room for more. */
typedef struct {
    const char *argv[MAX_WORDS];
    int n;
} Compiler;

/* A compiler for each machine of the targets for C, the last one's last; *suffix: what their files
 * are called after, NULL where there is one target. */
static Compiler *compilers_of(Arena *a, const char *target, const Compiler *plain, int *n,
                              const char ***suffix)
{
    TargetName *list;
    const int all = target_list(a, target ? target : "c", &list), gpu = all > 1 && list[0].gpu;
    Compiler *cc = NEWN(a, Compiler, all);
    *suffix = all > 1 ? NEWN(a, const char *, all) : NULL;
    *n = all - gpu;
    for (int i = gpu; i < all; i++) {
        cc[i - gpu] = *plain;
        cc[i - gpu].n += machine_words(a, list[i].target, cc[i - gpu].argv + plain->n);
        if (*suffix)
            (*suffix)[i - gpu] = list[i].suffix;
    }
    return cc;
}

/* Those that are not there yet, by the compilers of the machines, or of any. head: what files for
 * the last machine begin with. */
static void compile_objects(Arena *a, Jobs *jobs, Compiler *machine, Compiler *any,
                            const char *const *source, const Object *o, int n, const char *head,
                            bool verbose)
{
    int last = 0;
    for (int i = 0; i < n; i++)
        last = o[i].machine > last ? o[i].machine : last;
    const double *size = sizes(a, jobs->dir, source, n);
    for (int i = 0; i < n; i++) {
        const char *tail[] = {"-I.", "-c", "-o", o[i].part, source[i], NULL, NULL, NULL};
        Compiler *const cc = o[i].machine < 0 ? any : &machine[o[i].machine];
        if (o[i].there)
            continue;
        if (head && (o[i].machine < 0 || o[i].machine == last) &&
            source_takes_head(arena_printf(a, "%s/%s", jobs->dir, source[i]))) {
            tail[5] = "-include";
            tail[6] = head;
        }
        memcpy((void *)(cc->argv + cc->n), tail, sizeof tail);
        job_start(jobs, cc->argv);
        jobs_told(jobs, size, i + 1, n);
        if (verbose)
            say("  %s %s", c_compiler(), source[i]);
    }
    while (jobs->n) {
        job_wait(jobs);
        jobs_told(jobs, size, n, n);
    }
    for (int i = 0; i < n && !jobs->failed; i++)
        if (o[i].kept && !o[i].there)
            jobs->failed = rename(o[i].part, o[i].file) != 0;
}

/* "python3 zig.py" of a command with paths. */
static const char *without_folders(Arena *a, const char *command)
{
    const char *argv[MAX_WORDS];
    const int n = words(a, command, argv);
    const char *told = "";
    for (int i = 0; i < n; i++) {
        const char *slash = strrchr(argv[i], '/');
        told = arena_printf(a, "%s%s%s", told, i ? " " : "", slash ? slash + 1 : argv[i]);
    }
    return told;
}

/* The program `name` of the sources in dir; with `joins` small ones are compiled as one, and *joins
 * tells whether there were any. False: it did not come about. */
static bool make_program(Arena *a, const char *dir, const char *name, const char *target,
                         Compiler any, bool *joins, bool verbose)
{
    const char **files = NULL;
    int nfile = 0, nmachine;
    const char **suffix;
    Compiler cc;
    source_files(a, dir, "", &files, &nfile);
    source_files(a, dir, "host/", &files, &nfile);
    Jobs jobs = jobs_in(dir);
    Compiler *machines = compilers_of(a, target, &any, &nmachine, &suffix);
    any.n += any_words(a, target, any.argv + any.n);
    cc = machines[nmachine - 1];
    const int apart = nfile;
    if (*joins && !suffix)
        nfile = whole_join(a, dir, files, nfile);
    *joins = nfile < apart;
    const char *folder = objects_folder(a, cc.argv, cc.n);
    const char *parts = NULL;
    const Object *object =
        objects_of(a, files, nfile, folder, suffix ? nmachine : 0, suffix, &parts);
    if (any_there(object, nfile) && objects_head_wanted(a, folder))
        objects_precompile(a, folder, cc.argv, cc.n);
    const char **link = NEWN(a, const char *, cc.n + nfile + 8);
    int nlink = cc.n;
    memcpy((void *)link, cc.argv, (size_t)cc.n * sizeof *link);
    for (int i = 0; i < nfile; i++)
        link[nlink++] = object[i].file;
    const char *const tail[] = {"-o", name, "-lm", "-ldl", NULL};
    memcpy((void *)(link + nlink), tail, sizeof tail);
    const char *head = objects_head(a, folder);
    compile_objects(a, &jobs, machines, &any, files, object, nfile, head, verbose);
    if (jobs.failed && head) { /* of headers or a compiler that have changed since, or cleared */
        (void)unlink(arena_printf(a, "%s.gch", head));
        jobs.failed = false;
        compile_objects(a, &jobs, machines, &any, files, object, nfile, NULL, verbose);
    }
    if (parts)
        part_discard(parts);
    job_start(&jobs, link);
    jobs_wait(&jobs);
    whole_leave(a, dir);
    return !jobs.failed;
}

ingot_status build_program(Arena *a, const char *dir, const char *name, const char *target,
                           const char *standard, bool check, bool verbose)
{
    const Target machine = machine_target(a, target);
    if (!runs_here(&machine))
        return complain(
            INGOT_USAGE,
            "ingot: a program for %s (%s) does not run here: `ingot compile` writes its "
            "bundle, make builds it",
            target, machine.triple);
    if (machine.wasm)
        return complain(
            INGOT_USAGE,
            "ingot: a program for %s does not run here by itself: `ingot compile` writes "
            "its bundle, make builds it, `node run.mjs` runs it",
            target);
    const char *flags[] = {standard, BUILT("-O0"), "-pthread",
                           check ? "-DMODEL_CHECK=1" : "-DMODEL_CHECK=0"};
    enum { NFLAG = sizeof flags / sizeof flags[0] };
    Compiler any = {.n = compiler_for(a, target, any.argv)};
    progress_begin(arena_printf(a, "%s compiles the model", without_folders(a, c_compiler())), 0);
    any.n = add_flags(any.argv, any.n, flags, NFLAG);
    bool joins = true;
    bool made = make_program(a, dir, name, target, any, &joins, verbose);
    if (!made && joins) { /* what is right apart may be wrong as one: equal names, say */
        joins = false;
        made = make_program(a, dir, name, target, any, &joins, verbose);
    }
    progress_end();
    if (!made) {
        const char *elsewhere = runs_elsewhere(a, target);
        return elsewhere ? complain(INGOT_TOOL,
                                    "ingot: %s: `ingot compile` writes its bundle for another "
                                    "compiler; `ingot verify` runs its kernels in an interpreter",
                                    elsewhere)
                         : complain(INGOT_TOOL,
                                    "ingot: %s failed on the compiled model (its messages are "
                                    "above)",
                                    c_compiler());
    }
    return INGOT_OK;
}

const char *const *compiler_words(Arena *a, const char *target)
{
    const char *const flags[] = {OPTIMISED};
    const char **argv = NEWN(a, const char *, MAX_WORDS + 1);
    int n = compiler_for(a, target, argv);
    n = add_flags(argv, n, flags, sizeof flags / sizeof *flags);
    n += machine_words(a, target, argv + n);
    argv[n] = NULL;
    return argv;
}

bool compile_to_assembly(Arena *a, const char *dir, int n, const char *target)
{
    const char *const flags[] = {"-std=c99", OPTIMISED, "-S"};
    enum { NFLAG = sizeof flags / sizeof flags[0] };
    const char *argv[MAX_WORDS];
    int base = compiler_for(a, target, argv);
    Jobs jobs = jobs_in(dir);
    if (!base || !find_program(a, argv[0]))
        return false;
    base = add_flags(argv, base, flags, NFLAG);
    base += machine_words(a, target, argv + base);
    progress_begin(arena_printf(a, "%s compiles the kernels", c_compiler()), 0);
    for (int i = 0; i < n; i++) {
        const char *tail[] = {"-I.", "-o", arena_printf(a, "kernels_%d.s", i),
                              arena_printf(a, "kernels_%d.c", i), NULL};
        memcpy((void *)(argv + base), tail, sizeof tail);
        job_start(&jobs, argv);
        progress_at((double)(i + 1 - jobs.n) / n);
    }
    jobs_wait(&jobs);
    progress_end();
    return !jobs.failed;
}
