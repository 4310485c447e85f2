/* database.c - what candidates came to, for whoever meets the same kernel again: SQLite, in WAL
 * mode.
 *
 *     machine   target with its flags, CPU, compiler
 *     trial     a candidate of a kernel on a machine: opts, verdict, times
 *     search    kernels that were searched to the end, with which beam
 *     region    kernels in the place of others, in a network: times of both
 *     outcome   by what the kernels alone came to: what of it is faster in their network too
 *
 * A kernel is known by its canonical text and the layouts of its arguments, and what that has by
 * name alone (kernel_hash()); a candidate by the text that is emitted for it: when the compiler
 * writes it otherwise, it is another one.  Every write is one transaction, so that a process may
 * end at any instant and several may write.
 *
 * A file that is no such database, or a damaged one, is read through and left as it is: who asked
 * is told what is wrong. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "json.h"
#include "tune_run.h"

#ifndef INGOT_SQLITE
#define INGOT_SQLITE 0
#endif

#if INGOT_SQLITE
#include <sqlite3.h>

enum { VERSION = 1, PATIENCE_MS = 30000 };

struct Database {
    Arena *arena;
    sqlite3 *db;
    int64_t machine;
    const char *file, *fault; /* the first that was met, with what to do */
};

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS machine(id INTEGER PRIMARY KEY, target TEXT NOT NULL, cpu TEXT NOT "
    "NULL, "
    "compiler TEXT NOT NULL, UNIQUE(target, cpu, compiler));"
    "CREATE TABLE IF NOT EXISTS trial(machine INTEGER NOT NULL REFERENCES machine(id), kernel TEXT "
    "NOT NULL, "
    "source TEXT NOT NULL, name TEXT NOT NULL, opts TEXT NOT NULL, verdict TEXT NOT NULL, ns REAL "
    "NOT NULL, "
    "base_ns REAL NOT NULL, noise REAL NOT NULL, estimate REAL NOT NULL, round INTEGER NOT NULL, "
    "PRIMARY KEY(machine, kernel, source)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS search(machine INTEGER NOT NULL REFERENCES machine(id), kernel "
    "TEXT NOT NULL, "
    "base TEXT NOT NULL, beam INTEGER NOT NULL, PRIMARY KEY(machine, kernel, base)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS region(machine INTEGER NOT NULL REFERENCES machine(id), kernel "
    "TEXT NOT NULL, name TEXT NOT NULL, ns REAL NOT NULL, base_ns REAL NOT NULL, noise REAL NOT "
    "NULL, PRIMARY KEY(machine, kernel)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS outcome(machine INTEGER NOT NULL REFERENCES machine(id), key TEXT "
    "NOT NULL, text TEXT NOT NULL, PRIMARY KEY(machine, key));";

/* The tables and their columns: text, then numbers. */
static const struct {
    const char *table, *text[5], *number[6];
} tables[] = {
    {"machine", {"target", "cpu", "compiler"}, {"id"}},
    {"trial",
     {"kernel", "source", "name", "opts", "verdict"},
     {"machine", "ns", "base_ns", "noise", "estimate", "round"}},
    {"search", {"kernel", "base"}, {"machine", "beam"}},
    {"region", {"kernel", "name"}, {"machine", "ns", "base_ns", "noise"}},
    {"outcome", {"key", "text"}, {"machine"}},
};
enum { TABLES = sizeof tables / sizeof *tables };

/* SQLite's words for what failed last; it has none for numbers of a table that cannot be. */
static const char *words_of(const Database *d)
{
    const int code = sqlite3_errcode(d->db);
    struct stat s;
    if (code == SQLITE_CANTOPEN && !stat(d->file, &s) && S_ISDIR(s.st_mode))
        return "it is a folder";
    if (code == SQLITE_CANTOPEN && sqlite3_system_errno(d->db))
        return strerror(sqlite3_system_errno(d->db));
    return code == SQLITE_OK ? "the file is damaged" : sqlite3_errmsg(d->db);
}

/* Keeps the first fault, which those after it come from. */
static bool wrong(Database *d, const char *what)
{
    if (!d->fault)
        d->fault = arena_printf(d->arena,
                                "%s: %s; --database or $INGOT_TUNE names another file, and if "
                                "this one is moved away a new one begins",
                                d->file, what);
    return false;
}

static bool failed(Database *d)
{
    return wrong(d, words_of(d));
}

static bool execute(Database *d, const char *sql)
{
    return sqlite3_exec(d->db, sql, NULL, NULL, NULL) == SQLITE_OK || failed(d);
}

/* The whole number, or the text, that a question has for an answer; -1, "": it fails. */
static int64_t answer(Database *d, const char *sql, const char **text)
{
    sqlite3_stmt *s;
    int64_t v = -1;
    if (sqlite3_prepare_v2(d->db, sql, -1, &s, NULL) != SQLITE_OK)
        return failed(d), -1;
    const int code = sqlite3_step(s);
    if (code == SQLITE_ROW) {
        const unsigned char *t = sqlite3_column_text(s, 0);
        v = sqlite3_column_int64(s, 0);
        if (text)
            *text = arena_strdup(d->arena, t ? (const char *)t : "");
    } else {
        (void)failed(d);
    }
    sqlite3_finalize(s);
    return v;
}

static int64_t integer(Database *d, const char *sql)
{
    return answer(d, sql, NULL);
}

/* What is there may be another program's. */
static bool is_ours(Database *d)
{
    const int64_t n = integer(d, "SELECT count(*) FROM sqlite_master");
    const int64_t version = n < 0 ? -1 : integer(d, "PRAGMA user_version");
    if (n < 0 || version < 0)
        return failed(d);
    if (n > 0 && integer(d, "PRAGMA application_id") != 0x696e6774)
        return wrong(d, "this is no database of ingot tune");
    return version <= VERSION || wrong(d, "it was made by a later version of ingot");
}

/* Its pages and indices are whole. */
static bool is_whole(Database *d)
{
    const char *told = "";
    (void)answer(d, "PRAGMA quick_check(1)", &told);
    const char *line = strrchr(told, '\n'); /* below the name of what is looked at */
    return !strcmp(told, "ok") ||
           wrong(d, arena_printf(d->arena, "the file is damaged: %s", line ? line + 1 : told));
}

/* Appends that one of a table's columns is of another type. */
static void add_columns(StrBuf *sb, const char *table, const char *const *column, int n,
                        const char *types)
{
    for (int i = 0; i < n && column[i]; i++)
        sb_printf(sb, " OR typeof(%s.%s) NOT IN (%s)", table, column[i], types);
}

/* Every table has its columns, and values of their types in them. */
static bool has_columns(Database *d)
{
    for (int i = 0; i < TABLES; i++) {
        StrBuf sb = {0};
        const char *table = tables[i].table;
        sb_printf(&sb, "SELECT count(*) FROM %s WHERE 0", table);
        add_columns(&sb, table, tables[i].text, 5, "'text'");
        add_columns(&sb, table, tables[i].number, 6, "'integer', 'real'");
        const int64_t n = integer(d, sb.data);
        sb_free(&sb);
        if (n)
            return wrong(d, arena_printf(d->arena, "table %s: a value of another type", table));
    }
    return true;
}

/* Nothing is kept of what was begun in a file that turns out to be wrong. */
static bool make_tables(Database *d)
{
    const bool good = execute(d, "BEGIN IMMEDIATE") && execute(d, schema) && has_columns(d) &&
                      execute(d, "PRAGMA application_id=0x696e6774; PRAGMA user_version=1") &&
                      execute(d, "COMMIT");
    if (!good)
        (void)execute(d, "ROLLBACK");
    return good;
}

static bool make_ready(Database *d)
{
    sqlite3_busy_timeout(d->db, PATIENCE_MS);
    return is_ours(d) && is_whole(d) && make_tables(d) && execute(d, "PRAGMA journal_mode=WAL") &&
           execute(d, "PRAGMA synchronous=NORMAL");
}

Database *database_open(Arena *a, const char *file, const char **why)
{
    enum { FLAGS = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE };
    Database *d = NEW(a, Database);
    d->arena = a;
    d->file = arena_strdup(a, file);
    const bool opened = sqlite3_open_v2(file, &d->db, FLAGS, NULL) == SQLITE_OK ||
                        (d->db ? failed(d) : wrong(d, "out of memory"));
    if (opened && make_ready(d))
        return d;
    *why = d->fault;
    sqlite3_close(d->db);
    return NULL;
}

void database_close(Database *d)
{
    if (d)
        sqlite3_close(d->db);
}

const char *database_error(const Database *d)
{
    return d->fault;
}

/* A statement with text parameters ?1 .. ?n bound. */
static sqlite3_stmt *prepare(Database *d, const char *sql, int n, const char *const *text)
{
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(d->db, sql, -1, &s, NULL) != SQLITE_OK)
        return failed(d), NULL;
    for (int i = 0; i < n; i++)
        sqlite3_bind_text(s, i + 1, text[i], -1, SQLITE_TRANSIENT);
    return s;
}

static bool done(Database *d, sqlite3_stmt *s)
{
    const int code = s ? sqlite3_step(s) : SQLITE_ERROR;
    const bool good = code == SQLITE_DONE || code == SQLITE_ROW || failed(d);
    sqlite3_finalize(s);
    return good;
}

static int64_t machine_number(Database *d, const Host *m)
{
    const char *text[] = {m->target, m->cpu, m->compiler};
    int64_t id = -1;
    if (!done(d,
              prepare(d, "INSERT OR IGNORE INTO machine(target, cpu, compiler) VALUES(?1, ?2, ?3)",
                      3, text)))
        return -1;
    sqlite3_stmt *s =
        prepare(d, "SELECT id FROM machine WHERE target=?1 AND cpu=?2 AND compiler=?3", 3, text);
    if (s && sqlite3_step(s) == SQLITE_ROW)
        id = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return id;
}

bool database_machine(Database *d, const Host *m)
{
    d->machine = machine_number(d, m);
    return d->machine >= 0;
}

static void source_text(char out[17], uint64_t source)
{
    snprintf(out, 17, "%016llx", (unsigned long long)source);
}

static Verdict verdict_of(const char *name)
{
    for (int i = RIGHT; i <= REFUSED; i++)
        if (name && !strcmp(name, verdict_name[i]))
            return (Verdict)i;
    return UNTIMED;
}

static const char *column(sqlite3_stmt *s, int i)
{
    const unsigned char *text = sqlite3_column_text(s, i);
    return text ? (const char *)text : "";
}

bool database_read(Database *d, TuneKernel *k, int most)
{
    const char *text[] = {k->hash};
    sqlite3_stmt *s = prepare(
        d,
        "SELECT opts, source, verdict, ns, base_ns, noise, round FROM trial WHERE kernel=?1 "
        "AND machine=?2 ORDER BY ns <= 0, ns/max(base_ns, 1), source LIMIT ?3",
        1, text);
    if (!s)
        return false;
    sqlite3_bind_int64(s, 2, d->machine);
    sqlite3_bind_int(s, 3, most > 0 ? most : -1);
    int code;
    while ((code = sqlite3_step(s)) == SQLITE_ROW) {
        char source[17];
        Candidate *c = candidate_read(k, column(s, 0));
        if (!c)
            continue;
        c = candidate_add(k, c);
        source_text(source, candidate_source(k, c));
        if (strcmp(source, column(s, 1)) != 0)
            continue; /* the compiler writes it otherwise now */
        c->verdict = verdict_of(column(s, 2));
        c->ns = sqlite3_column_double(s, 3);
        c->base_ns = sqlite3_column_double(s, 4);
        c->noise = sqlite3_column_double(s, 5);
        c->round = sqlite3_column_int(s, 6);
    }
    const bool good = code == SQLITE_DONE || failed(d);
    sqlite3_finalize(s);
    return good;
}

static bool write_one(Database *d, TuneKernel *k, Candidate *c)
{
    char source[17];
    source_text(source, candidate_source(k, c));
    const char *text[] = {k->hash, source, k->step[0]->name, c->text, verdict_name[c->verdict]};
    sqlite3_stmt *s = prepare(d,
                              "INSERT OR REPLACE INTO trial(kernel, source, name, opts, verdict, "
                              "machine, ns, base_ns, noise, estimate, round) "
                              "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                              5, text);
    if (!s)
        return false;
    sqlite3_bind_int64(s, 6, d->machine);
    sqlite3_bind_double(s, 7, c->ns);
    sqlite3_bind_double(s, 8, c->base_ns);
    sqlite3_bind_double(s, 9, c->noise);
    sqlite3_bind_double(s, 10, candidate_estimate(k, c)->cycles);
    sqlite3_bind_int(s, 11, c->round);
    return done(d, s);
}

bool database_write(Database *d, TuneKernel *k, Candidate *const *c, int n)
{
    bool good = execute(d, "BEGIN IMMEDIATE");
    for (int i = 0; i < n && good; i++)
        good = c[i]->verdict == UNTIMED || write_one(d, k, c[i]);
    return good ? execute(d, "COMMIT") : (execute(d, "ROLLBACK"), false);
}

bool database_done(Database *d, TuneKernel *k, int beam)
{
    char base[17];
    source_text(base, candidate_source(k, k->candidate[0]));
    const char *text[] = {k->hash, base};
    sqlite3_stmt *s = prepare(
        d, "SELECT 1 FROM search WHERE kernel=?1 AND base=?2 AND machine=?3 AND beam>=?4", 2, text);
    if (s) {
        sqlite3_bind_int64(s, 3, d->machine);
        sqlite3_bind_int(s, 4, beam);
    }
    bool found = s && sqlite3_step(s) == SQLITE_ROW;
    sqlite3_finalize(s);
    return found;
}

bool database_finish(Database *d, TuneKernel *k, int beam)
{
    char base[17];
    source_text(base, candidate_source(k, k->candidate[0]));
    const char *text[] = {k->hash, base};
    sqlite3_stmt *s =
        prepare(d,
                "INSERT INTO search(kernel, base, machine, beam) VALUES(?1, ?2, ?3, ?4) "
                "ON CONFLICT(machine, kernel, base) DO UPDATE SET beam=max(beam, excluded.beam)",
                2, text);
    if (s) {
        sqlite3_bind_int64(s, 3, d->machine);
        sqlite3_bind_int(s, 4, beam);
    }
    return done(d, s);
}

bool database_region(Database *d, const char *key, double *was_ns, double *is_ns, double *noise)
{
    sqlite3_stmt *s =
        prepare(d, "SELECT base_ns, ns, noise FROM region WHERE kernel=?1 AND machine=?2", 1, &key);
    if (s)
        sqlite3_bind_int64(s, 2, d->machine);
    const bool found = s && sqlite3_step(s) == SQLITE_ROW;
    if (found) {
        *was_ns = sqlite3_column_double(s, 0);
        *is_ns = sqlite3_column_double(s, 1);
        *noise = sqlite3_column_double(s, 2);
    }
    sqlite3_finalize(s);
    return found;
}

static bool write_region(Database *d, int64_t machine, const char *const text[2], double ns,
                         double base_ns, double noise, const char *or_what)
{
    char sql[160];
    snprintf(sql, sizeof sql,
             "INSERT OR %s INTO region(kernel, name, machine, ns, base_ns, noise) "
             "VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
             or_what);
    sqlite3_stmt *s = prepare(d, sql, 2, text);
    if (s) {
        sqlite3_bind_int64(s, 3, machine);
        sqlite3_bind_double(s, 4, ns);
        sqlite3_bind_double(s, 5, base_ns);
        sqlite3_bind_double(s, 6, noise);
    }
    return done(d, s);
}

bool database_keep_region(Database *d, const char *key, const char *name, double was_ns,
                          double is_ns, double noise)
{
    const char *text[] = {key, name};
    return write_region(d, d->machine, text, is_ns, was_ns, noise, "REPLACE");
}

char *database_outcome(Database *d, Arena *a, const char *key)
{
    sqlite3_stmt *s = prepare(d, "SELECT text FROM outcome WHERE key=?1 AND machine=?2", 1, &key);
    char *text = NULL;
    if (s)
        sqlite3_bind_int64(s, 2, d->machine);
    if (s && sqlite3_step(s) == SQLITE_ROW)
        text = arena_strdup(a, column(s, 0));
    sqlite3_finalize(s);
    return text;
}

bool database_keep_outcome(Database *d, const char *key, const char *text)
{
    const char *both[] = {key, text};
    sqlite3_stmt *s = prepare(
        d, "INSERT OR REPLACE INTO outcome(key, text, machine) VALUES(?1, ?2, ?3)", 2, both);
    if (s)
        sqlite3_bind_int64(s, 3, d->machine);
    return done(d, s);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static const char *const members[] = {"target", "cpu",  "compiler", "kernel",
                                      "source", "name", "opts",     "verdict"};
enum { TEXTS = sizeof members / sizeof *members };

/* An entry a row: a member a column, by its name; the first ones are text. */
static bool export_rows(Database *d, StrBuf *sb, int ntext, const char *select)
{
    sqlite3_stmt *s = prepare(d, select, 0, NULL);
    int code = SQLITE_ERROR;
    while (s && (code = sqlite3_step(s)) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(s); i++) {
            sb_printf(sb, "%s\"%s\": ", i ? ", " : "{", sqlite3_column_name(s, i));
            if (i < ntext)
                json_string(sb, column(s, i));
            else
                sb_printf(sb, "%.17g", sqlite3_column_double(s, i));
        }
        sb_puts(sb, "}\n");
    }
    const bool good = code == SQLITE_DONE || failed(d);
    sqlite3_finalize(s);
    return good;
}

#define OF_MACHINE "SELECT m.target AS target, m.cpu AS cpu, m.compiler AS compiler, "

bool database_export(Database *d, StrBuf *sb)
{
    return export_rows(d, sb, TEXTS,
                       OF_MACHINE
                       "t.kernel AS kernel, t.source AS source, t.name AS name, t.opts AS opts, "
                       "t.verdict AS verdict, t.ns AS ns, t.base_ns AS base_ns, t.noise AS "
                       "noise, t.estimate AS estimate, t.round AS round FROM trial t JOIN "
                       "machine m ON m.id=t.machine ORDER BY t.machine, t.kernel, t.source") &&
           export_rows(d, sb, 5,
                       OF_MACHINE
                       "s.kernel AS kernel, s.base AS base, s.beam AS beam FROM search s JOIN "
                       "machine m ON m.id=s.machine ORDER BY s.machine, s.kernel, s.base") &&
           export_rows(d, sb, 5,
                       OF_MACHINE
                       "r.kernel AS kernel, r.name AS region, r.ns AS ns, r.base_ns AS base_ns, "
                       "r.noise AS noise FROM region r JOIN machine m ON m.id=r.machine ORDER "
                       "BY r.machine, r.kernel");
}

/* {"target": .., "cpu": .., "compiler": .., "kernel": .., "region": name, "ns": .., "base_ns": ..,
 * "noise": ..} */
static bool import_region(Database *d, const Json *j, const char *key, int64_t machine)
{
    const char *text[] = {key, json_text(json_member(j, "region"), "")};
    return write_region(d, machine, text, json_number(json_member(j, "ns"), 0),
                        json_number(json_member(j, "base_ns"), 0),
                        json_number(json_member(j, "noise"), 0), "IGNORE");
}

static bool import_entry(Database *d, const Json *j, const char **why)
{
    const char *text[TEXTS];
    const bool search = json_member(j, "beam") != NULL, region = json_member(j, "region") != NULL;
    for (int i = 0; i < TEXTS; i++)
        text[i] = json_text(json_member(j, members[i]), NULL);
    Host m = {text[0], text[1], text[2]};
    *why = "a member is missing: target, cpu, compiler, kernel, source, name, opts, verdict";
    for (int i = 0; i < (search || region ? 4 : TEXTS); i++)
        if (!text[i])
            return false;
    const char *base = json_text(json_member(j, "base"), NULL);
    if (!region && (search ? !base : verdict_of(text[7]) == UNTIMED))
        return false;
    int64_t machine = machine_number(d, &m);
    sqlite3_stmt *s;
    if (region) {
        *why = NULL;
        return machine >= 0 && import_region(d, j, text[3], machine);
    }
    if (search) {
        const char *of[] = {text[3], base};
        s = prepare(d,
                    "INSERT INTO search(kernel, base, machine, beam) VALUES(?1, ?2, ?3, ?4) ON "
                    "CONFLICT(machine, kernel, "
                    "base) DO UPDATE SET beam=max(beam, excluded.beam)",
                    2, of);
        if (s)
            sqlite3_bind_double(s, 4, json_number(json_member(j, "beam"), 1));
        if (s)
            sqlite3_bind_int64(s, 3, machine);
    } else {
        s = prepare(d,
                    "INSERT OR IGNORE INTO trial(kernel, source, name, opts, verdict, machine, ns, "
                    "base_ns, noise, "
                    "estimate, round) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                    5, text + 3);
        static const char *const number[] = {"ns", "base_ns", "noise", "estimate", "round"};
        if (s)
            sqlite3_bind_int64(s, 6, machine);
        for (int i = 0; i < 5 && s; i++)
            sqlite3_bind_double(s, 7 + i, json_number(json_member(j, number[i]), 0));
    }
    *why = NULL;
    return machine >= 0 && done(d, s);
}

bool database_import(Database *d, Arena *a, const char *text, int *n, const char **why)
{
    bool good = execute(d, "BEGIN IMMEDIATE");
    *n = 0;
    *why = NULL;
    for (int line = 1; *text && good; line++) {
        size_t length = strcspn(text, "\n");
        const char *one = arena_printf(a, "%.*s", (int)length, text), *fault = NULL;
        text += length + (text[length] == '\n');
        if (!one[strspn(one, " \t\r")])
            continue;
        const Json *j = json_read(a, one, &fault);
        good = j && j->kind == JSON_OBJECT && import_entry(d, j, &fault);
        if (!good && !d->fault)
            *why = arena_printf(a, "line %d: %s", line, fault ? fault : "no JSON object");
        ++*n;
    }
    good = good && execute(d, "COMMIT");
    if (!good)
        (void)execute(d, "ROLLBACK");
    return good;
}

int database_lock(Database *d)
{
    Arena *a = arena_new();
    int fd = open(arena_printf(a, "%s.lock", d->file), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    while (fd >= 0 && flock(fd, LOCK_EX) && errno == EINTR)
        ;
    arena_free(a);
    return fd;
}

void database_unlock(Database *d, int lock)
{
    (void)d;
    if (lock >= 0)
        close(lock);
}

#else /* built without SQLite */

struct Database {
    int none;
};

Database *database_open(Arena *a, const char *file, const char **why)
{
    (void)a, (void)file;
    *why = "this ingot was built without SQLite (libsqlite3-dev), which remembers what was tried";
    return NULL;
}

void database_close(Database *d)
{
    (void)d;
}

const char *database_error(const Database *d)
{
    (void)d;
    return "no SQLite";
}

bool database_machine(Database *d, const Host *m)
{
    (void)d, (void)m;
    return false;
}

bool database_read(Database *d, TuneKernel *k, int most)
{
    (void)d, (void)k, (void)most;
    return false;
}

bool database_write(Database *d, TuneKernel *k, Candidate *const *c, int n)
{
    (void)d, (void)k, (void)c, (void)n;
    return false;
}

bool database_done(Database *d, TuneKernel *k, int beam)
{
    (void)d, (void)k, (void)beam;
    return false;
}

bool database_finish(Database *d, TuneKernel *k, int beam)
{
    (void)d, (void)k, (void)beam;
    return false;
}

bool database_region(Database *d, const char *key, double *was_ns, double *is_ns, double *noise)
{
    (void)d, (void)key, (void)was_ns, (void)is_ns, (void)noise;
    return false;
}

bool database_keep_region(Database *d, const char *key, const char *name, double was_ns,
                          double is_ns, double noise)
{
    (void)d, (void)key, (void)name, (void)was_ns, (void)is_ns, (void)noise;
    return false;
}

char *database_outcome(Database *d, Arena *a, const char *key)
{
    (void)d, (void)a, (void)key;
    return NULL;
}

bool database_keep_outcome(Database *d, const char *key, const char *text)
{
    (void)d, (void)key, (void)text;
    return false;
}

bool database_export(Database *d, StrBuf *sb)
{
    (void)d, (void)sb;
    return false;
}

bool database_import(Database *d, Arena *a, const char *text, int *n, const char **why)
{
    (void)d, (void)a, (void)text, (void)n, (void)why;
    return false;
}

int database_lock(Database *d)
{
    (void)d;
    return -1;
}

void database_unlock(Database *d, int lock)
{
    (void)d, (void)lock;
}
#endif
