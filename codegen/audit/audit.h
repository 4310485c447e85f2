/* audit.h - reads a folder of C and judges it by rules: what `ingot audit` does. docs/audit.md has
 * the rules in prose. */
#ifndef AUDIT_H
#define AUDIT_H

#include "compiler.h"

typedef struct {
    const char *dir;
    const char *triple;  /* clang's name of the machine */
    const char *headers; /* folder of the C library's headers; NULL: where Debian has them */
    bool json;
} AuditOptions;

/* out: the report; problem: why there is none. INGOT_DIFFERS if there are findings. */
ingot_status audit_folder(Arena *, const AuditOptions *, StrBuf *out, StrBuf *problem);

/* ---- what the files of this folder share ---------------------------------------------------- */

/* X(name, what it demands) */
#define AUDIT_RULES(X)                                                                           \
    X(diagnostic, "clang has nothing to say with -Wall -Wextra -Wconversion -Wvla")              \
    X(narrowing, "no implicit conversion may change a value (-Wconversion)")                     \
    X(call, "calls go to functions of the folder, to libm, or to memcpy and its like")           \
    X(heap, "nothing is allocated on the heap")                                                  \
    X(recursion, "no function calls itself, directly or through others or through pointers")     \
    X(stack, "no array of variable length, no alloca")                                           \
    X(pointer, "function pointers are those of the ABI: igrt_*_fn")                              \
    X(global, "no variable outlives a call, unless it is const")                                 \
    X(loop, "every loop counts towards a bound that it does not change")                         \
    X(size, "every size of sym[] is compared with its bounds where it is set")                   \
    X(jump, "no goto, no computed goto")                                                         \
    X(assembly, "assembly only for the float mode, sums of bytes and fixed point, questions to " \
                "the processor")                                                                 \
    X(variadic, "no function with a variable number of arguments")

typedef enum {
#define X(name, text) RULE_##name,
    AUDIT_RULES(X)
#undef X
        RULE_COUNT
} Rule;

/* Which rules hold for a file. */
typedef enum {
    PART_MODEL,    /* all */
    PART_SELFTEST, /* its tensors may be static variables */
    PART_HOST,     /* the command-line driver: diagnostic, narrowing, recursion, stack, jump */
    PART_COUNT
} AuditPart;

typedef struct {
    const char *name, *path;
    const char *text;
    size_t bytes;
    const char **line; /* where each begins */
    int nline;
    char sha256[65];
    AuditPart part;
    bool unit; /* a .c file */
    bool read; /* clang has read it, as a unit or as a header of one */
} SourceFile;

typedef struct {
    Rule rule;
    int file, line, column;
    const char *what;
    const char *function, *node; /* NULL: none */
} Finding;

/* A call of a function of another name, or through a pointer of a type; or the address of a
 * function. */
typedef struct {
    enum { EDGE_CALL, EDGE_POINTER, EDGE_ADDRESS } kind;
    const char *to;   /* key of the function; EDGE_POINTER: spelled type */
    const char *type; /* EDGE_ADDRESS: that of the function */
    int line, column;
    bool intrinsic; /* clang's own headers define it */
} Edge;

typedef struct {
    enum { LOOP_FOR, LOOP_WHILE, LOOP_DO } kind;
    int parent; /* in the same function; -1: none */
    int line, column;
} CLoop;

typedef struct {
    const char *name;
    const char *type; /* spelled, as declared */
    bool is_unsigned;
} Variable;

typedef struct {
    const char *name; /* a variable that may change here: assigned, or its address is taken */
    int loop;
} Write;

typedef struct {
    const char *key, *name;
    int file, line, column, end_line;
    int64_t frame; /* bytes of its variables */
    Edge *edge;
    int nedge;
    CLoop *loop;
    int nloop;
    Write *write;
    int nwrite;
    Variable *variable;
    int nvariable;
    int *size_line; /* where sym[] may change */
    int nsize;
    const char **run_time; /* bounds of loops that are no constants */
    int nrun_time, nconstant;
    int depth; /* of calls below it, itself included; 0: not known */
    int64_t stack;
    int deepest; /* the function called next on the way of the most stack; -1 */
    bool recursive;
} Function;

typedef struct {
    Arena *a;
    const AuditOptions *o;
    const char *headers, *clang; /* of the C library; libclang's version */
    bool hosted;                 /* the machine has an operating system */
    const char **argument;       /* of clang */
    int nargument;
    SourceFile *file;
    int nfile;
    Function **function;
    int nfunction;
    Map by_key;
    const Function *in;       /* what is being judged */
    const char *abi_type[16]; /* canonical types of igrt_*_fn */
    int nabi_type;
    Finding *finding;
    int nfinding;
} Audit;

/* audit_files.c */
ingot_status files_read(Audit *, StrBuf *problem);
int file_by_path(const Audit *, const char *path); /* -1: not of the folder */
/* The node that the comment above a line names; NULL: none. */
const char *node_of(const Audit *, const Function *, int file, int line);

/* audit_triple.c: a->headers, a->hosted and clang's arguments */
ingot_status triple_find(Audit *, StrBuf *problem);

/* audit_unit.c: has clang read a file, and notes what is in it */
bool unit_read(Audit *, int file, StrBuf *problem);
const char *clang_version(Arena *);

/* audit_rules.c */
void finding_add(Audit *, Rule, int file, int line, int column, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
bool rule_holds(Rule, AuditPart);
Function *function_by_key(const Audit *, const char *key);
void function_put(Audit *, Function *);
void calls_judge(Audit *); /* what is called, and through which pointers */
void findings_sort(Audit *);

/* audit_loops.c: text is the function as clang prints it, macros expanded */
void loops_judge(Audit *, Function *, const char *text);

/* audit_sizes.c: what the run decides, and bounds of loops are made of */
void sizes_judge(Audit *, const Function *);

/* audit_calls.c: recursion, depth, stack */
void graph_judge(Audit *);

/* audit_report.c */
void report_text(const Audit *, StrBuf *);
void report_json(const Audit *, StrBuf *);

/* sha256.c */
void sha256_hex(const void *, size_t, char out[65]);

#endif
