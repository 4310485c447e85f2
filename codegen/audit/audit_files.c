/* audit_files.c - the files of the folder, their hashes, and the comments that name kernels' nodes.
 *
 * In a bundle (it has an ingot.manifest) the folder host/ and the GPU hosts belong to the driver's
 * side, <name>_selftest.c to the selftest. In any other folder all files are held to all rules. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "audit.h"

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

/* Is it what talks to a device, igrt_cuda.h or model_igrt_cuda.c?  Beside it lies igrt_gpu_cuda.h
 * then, which calls it. */
static bool is_of_device(const Audit *a, const char *name)
{
    for (int i = 0; i < a->nfile; i++) {
        const char *gpu = a->file[i].name;
        if (strncmp(gpu, "igrt_gpu_", 9) || !ends_with(gpu, ".h"))
            continue;
        const char *device = gpu + 9;
        const int n = (int)strlen(device) - 2;
        if (ends_with(name, arena_printf(a->a, "igrt_%.*s.h", n, device)) ||
            ends_with(name, arena_printf(a->a, "_igrt_%.*s.c", n, device)))
            return true;
    }
    return false;
}

static AuditPart part_of(const Audit *a, const char *name, bool bundle)
{
    if (bundle && (!strncmp(name, "host/", 5) || is_of_device(a, name)))
        return PART_HOST;
    return bundle && ends_with(name, "_selftest.c") ? PART_SELFTEST : PART_MODEL;
}

static bool read_file(Audit *a, SourceFile *f)
{
    FILE *in = fopen(f->path, "rb");
    if (!in)
        return false;
    StrBuf sb = {0};
    char piece[1 << 14];
    for (size_t n; (n = fread(piece, 1, sizeof piece, in)) > 0;)
        sb_write(&sb, piece, n);
    bool ok = !ferror(in);
    fclose(in);
    char *text = arena_alloc(a->a, sb.len + 1);
    if (sb.len)
        memcpy(text, sb.data, sb.len);
    f->text = text;
    f->bytes = sb.len;
    sb_free(&sb);
    sha256_hex(f->text, f->bytes, f->sha256);
    for (const char *p = f->text; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
        vec_push(a->a, f->line, f->nline, p);
    return ok;
}

static int by_name(const void *x, const void *y)
{
    return strcmp(((const SourceFile *)x)->name, ((const SourceFile *)y)->name);
}

/* The files of a folder in the one that is audited: "", "host/". */
static bool list_files(Audit *a, const char *folder, bool *bundle, bool *any)
{
    DIR *d = opendir(arena_printf(a->a, "%s/%s", a->o->dir, folder));
    if (!d)
        return false;
    for (struct dirent *e; (e = readdir(d));) {
        *bundle |= !strcmp(e->d_name, "ingot.manifest");
        bool unit = ends_with(e->d_name, ".c");
        if (!unit && !ends_with(e->d_name, ".h"))
            continue;
        *any |= unit;
        SourceFile f = {.name = arena_printf(a->a, "%s%s", folder, e->d_name),
                        .path = arena_printf(a->a, "%s/%s%s", a->o->dir, folder, e->d_name),
                        .unit = unit};
        vec_push(a->a, a->file, a->nfile, f);
    }
    closedir(d);
    return true;
}

ingot_status files_read(Audit *a, StrBuf *problem)
{
    bool bundle = false, any = false;
    if (!list_files(a, "", &bundle, &any)) {
        sb_puts(problem, "there is no such folder");
        return INGOT_IO;
    }
    if (bundle)
        list_files(a, "host/", &bundle, &any);
    if (!any) {
        sb_puts(problem, "there is no .c file in this folder");
        return INGOT_IO;
    }
    qsort(a->file, (size_t)a->nfile, sizeof *a->file, by_name);
    for (int i = 0; i < a->nfile; i++) {
        a->file[i].part = part_of(a, a->file[i].name, bundle);
        if (!read_file(a, &a->file[i])) {
            sb_printf(problem, "%s cannot be read", a->file[i].name);
            return INGOT_IO;
        }
    }
    return INGOT_OK;
}

int file_by_path(const Audit *a, const char *path)
{
    for (int i = 0; i < a->nfile; i++)
        if (!strcmp(a->file[i].path, path))
            return i;
    return -1;
}

static const char *line_text(const Audit *a, const SourceFile *f, int line) /* from 1 */
{
    if (line < 1 || line > f->nline)
        return "";
    const char *p = f->line[line - 1];
    return arena_printf(a->a, "%.*s", (int)strcspn(p, "\n"), p);
}

/* Steps: the nearest comment that begins with a number and a colon. Kernels: the second line of the
 * comment above. */
const char *node_of(const Audit *a, const Function *f, int file, int line)
{
    const SourceFile *s = &a->file[file];
    for (int i = line; f && i >= f->line; i--) {
        const char *text = line_text(a, s, i), *p = text + strspn(text, " ");
        if (!strncmp(p, "/* ", 3) && p[3] >= '0' && p[3] <= '9' && strchr(p, '\''))
            return arena_printf(a->a, "%.*s", (int)strcspn(strchr(p, '\''), "*"), strchr(p, '\''));
    }
    for (int i = f ? f->line - 1 : 0; i > 0 && f->line - i < 40; i--) {
        const char *text = line_text(a, s, i);
        if (!strncmp(text, "/* k", 4)) {
            const char *node = line_text(a, s, i + 1);
            return !strncmp(node, " * '", 4) ? node + 3 : NULL;
        }
        if (text[0] == '}' || text[0] == '\0')
            return NULL;
    }
    return NULL;
}
