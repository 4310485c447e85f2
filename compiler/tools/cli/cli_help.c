/* cli_help.c - the tables of cli_table.c as help, as manual pages (man's macros) and as completion
 * of bash, zsh and fish. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "pipeline.h"
#include "targets.h"

enum { WIDTH = 100, COLUMN = 25 };

/* ---- help ------------------------------------------------------------------------------------ */

/* Words in lines of WIDTH at most, which start at a column; the first one is there already. */
static void wrap(FILE *f, const char *text, int column)
{
    int at = column;
    for (const char *p = text; *p;) {
        int n = (int)strcspn(p, " ");
        if (at > column && at + 1 + n > WIDTH) {
            fprintf(f, "\n%*s", column, "");
            at = column;
        }
        at += fprintf(f, "%s%.*s", at > column ? " " : "", n, p);
        p += n + strspn(p + n, " ");
    }
    fputc('\n', f);
}

static const char *const exits[][2] = {
    {"0", "done"},
    {"2", "an option or argument is wrong"},
    {"3", "the model or data file is broken"},
    {"4", "the model is valid, but not supported"},
    {"5", "a program that ingot calls (the C compiler), or the compiled model, failed"},
    {"6", "a file cannot be read or written"},
    {"7", "the model ran, but its results differ from the expected ones; or an audit has findings"},
    {"70", "a bug in ingot"},
    {"71", "out of memory"},
};
enum { NEXIT = sizeof exits / sizeof exits[0] };
static const char about[] =
    "compiles neural networks (ONNX, TensorFlow Lite, GGUF) to plain C, ahead of time";

static void help_of_all(FILE *f)
{
    fprintf(f, "ingot %s.\n\nusage: ingot COMMAND ...\n\n", about);
    for (const Command *c = cli_commands; c->name; c++)
        fprintf(f, "  %-11s%s\n", c->name, c->what);
    fputs("\n`ingot COMMAND --help` has the options and examples. ingot --version prints the "
          "version.\n"
          "\nexit status:\n",
          f);
    for (int i = 0; i < NEXIT; i++)
        fprintf(f, "  %-3s%s\n", exits[i][0], exits[i][1]);
}

/* "ingot run MODEL --data DIR [options]" */
static void print_usage(FILE *f, const Command *c)
{
    fprintf(f, "ingot %s", c->name);
    if (c->operand)
        fprintf(f, " %s", c->operand);
    if (*c->synopsis)
        fprintf(f, " %s", c->synopsis);
    bool any = false;
    for (const CliOption *p = cli_options; p->flag; p++)
        any |= (p->on & c->bit) != 0;
    fputs(any ? " [options]" : "", f);
}

void print_help(FILE *f, const Command *c)
{
    if (!c) {
        help_of_all(f);
        return;
    }
    fputs("usage: ", f);
    print_usage(f, c);
    fputs("\n\n", f);
    wrap(f, c->text ? c->text : c->what, 0);
    bool first = true;
    for (const CliOption *p = cli_options; p->flag; p++) {
        if (!(p->on & c->bit))
            continue;
        fputs(first ? "\n" : "", f);
        first = false;
        int n = fprintf(f, "  %s%s%s", p->flag, p->value ? " " : "", p->value ? p->value : "");
        if (n + 2 > COLUMN)
            fprintf(f, "\n%*s", COLUMN, "");
        else
            fprintf(f, "%*s", COLUMN - n, "");
        wrap(f, p->text, COLUMN);
    }
    if (c->examples)
        fprintf(f, "\nexamples:\n");
    for (const char *p = c->examples; p && *p;) {
        int n = (int)strcspn(p, "\n");
        fprintf(f, "  %.*s\n", n, p);
        p += n + (p[n] == '\n');
    }
}

/* ---- manual pages ---------------------------------------------------------------------------- */

/* Text that troff takes for nothing else. */
static void roff(const char *text)
{
    for (const char *p = text; *p; p++) {
        if ((*p == '.' || *p == '\'') && (p == text || p[-1] == '\n'))
            fputs("\\&", stdout);
        if (*p == '-')
            fputs("\\-", stdout);
        else if (*p == '\\')
            fputs("\\e", stdout);
        else if (*p == '`')
            fputs("\\(ga", stdout);
        else if (*p == '~')
            fputs("\\(ti", stdout);
        else
            fputc(*p, stdout);
    }
}

static void section(const char *name)
{
    printf(".SH %s\n", name);
}

static void manual_head(const char *name, const char *what)
{
    printf(".TH ");
    for (const char *p = name; *p; p++)
        printf(*p == '-' ? "\\-" : "%c", *p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
    printf(" 1 \"\" \"ingot %s\" \"User Commands\"\n", ingot_version());
    section("NAME");
    roff(name);
    printf(" \\- ");
    roff(what);
    printf("\n");
}

static void manual_end(void)
{
    section("EXIT STATUS");
    for (int i = 0; i < NEXIT; i++) {
        printf(".TP\n%s\n", exits[i][0]);
        roff(exits[i][1]);
        printf("\n");
    }
    section("ENVIRONMENT");
    printf(".TP\nINGOT_CACHE\nfolder of the cache of compiled models; otherwise ");
    roff("~/.cache/ingot");
    printf("\n.TP\nINGOT_OBJECTS\nfolder of the objects that all programs share; otherwise the "
           "cache's\n.TP\nCC\nthe C compiler that builds what runs here; cc unless set\n");
}

static void manual_of_all(void)
{
    manual_head("ingot", about);
    section("SYNOPSIS");
    printf(".B ingot\n.I COMMAND\n\\&...\n");
    section("COMMANDS");
    for (const Command *c = cli_commands; c->name; c++) {
        printf(".TP\n.BR ingot\\-%s (1)\n", c->name);
        roff(c->what);
        printf("\n");
    }
    manual_end();
}

ingot_status command_manual(Options *o)
{
    const Command *c = o->model && strcmp(o->model, "ingot") ? cli_command(o->model) : NULL;
    if (!o->model || !strcmp(o->model, "ingot")) {
        manual_of_all();
        return INGOT_OK;
    }
    if (!c)
        return complain(INGOT_USAGE, "ingot manual: unknown command '%.200s'", o->model);
    manual_head(arena_printf(o->a, "ingot-%s", c->name), c->what);
    section("SYNOPSIS");
    printf(".B ingot %s\n", c->name);
    roff(arena_printf(o->a, "%s%s%s", c->operand ? c->operand : "",
                      c->operand && *c->synopsis ? " " : "", c->synopsis));
    printf("\n");
    section("DESCRIPTION");
    roff(c->text ? c->text : arena_printf(o->a, "%s.", c->what));
    printf("\n");
    bool first = true;
    for (const CliOption *p = cli_options; p->flag; p++) {
        if (!(p->on & c->bit))
            continue;
        if (first)
            section("OPTIONS");
        first = false;
        printf(".TP\n\\fB");
        roff(p->flag);
        printf("\\fR");
        if (p->value) {
            printf(" \\fI");
            roff(p->value);
            printf("\\fR");
        }
        printf("\n");
        roff(p->text);
        printf("\n");
    }
    if (c->examples) {
        section("EXAMPLES");
        printf(".nf\n");
        roff(c->examples);
        printf(".fi\n");
    }
    manual_end();
    section("SEE ALSO");
    printf(".BR ingot (1)\n");
    return INGOT_OK;
}

/* ---- completion ------------------------------------------------------------------------------ */

/* The words that an option takes; NULL: any. */
static const char *choices(Arena *a, const CliOption *p)
{
    if (!p->choices || *p->choices != '@')
        return p->choices;
    StrBuf sb = {0};
    const bool dumps = !strcmp(p->choices, "@dumps"), rules = !strcmp(p->choices, "@rewrites");
    const char *(*name)(int) = dumps ? dump_name : rewrite_name;
    for (int i = 0; (dumps || rules) && name(i); i++)
        sb_printf(&sb, "%s%s", i ? " " : "", name(i));
    for (int i = 0; !dumps && !rules && targets[i]; i++) {
        sb_printf(&sb, "%s%s", i ? " " : "", targets[i]->name);
        for (int k = 0; target_machine(targets[i], k); k++)
            sb_printf(&sb, " %s:%s", targets[i]->name, target_machine(targets[i], k));
    }
    return sb_take(&sb, a);
}

/* Whether an earlier row has this flag for one of these commands. */
static bool again(const CliOption *p, unsigned on)
{
    for (const CliOption *q = cli_options; q < p; q++)
        if (!strcmp(q->flag, p->flag) && (q->on & on))
            return true;
    return false;
}

/* What stands in place of the model: words, or how the file's name ends. */
/* The endings of files that importers read, each behind some text: " .onnx .gguf". */
static const char *model_endings(Arena *a, const char *before, const char *after)
{
    const char *list = "";
    for (int i = 0; importers[i]; i++)
        for (const char *const *e = importers[i]->endings; *e; e++)
            list = arena_printf(a, "%s%s%s%s", list, before, *e, after);
    return list;
}

static bool operand_is_words(const Command *c)
{
    return c->operand && strchr(c->operand, '|');
}

static void command_names(FILE *f)
{
    for (const Command *c = cli_commands; c->name; c++)
        fprintf(f, "%s%s", c == cli_commands ? "" : " ", c->name);
}

/* Options are told apart by command; the word before may want a value. */
static void bash(Arena *a)
{
    printf("# bash completion of ingot\n_ingot()\n{\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} options= "
           "files=\n"
           "    COMPREPLY=()\n"
           "    if [ \"$word\" = : ] || [ \"$word\" = = ]; then\n"
           "        word=\n    fi\n"
           "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
           "        COMPREPLY=($(compgen -W '");
    command_names(stdout);
    printf(" --help --version' -- \"$word\"))\n        return\n    fi\n"
           "    case $before in :) before=${COMP_WORDS[COMP_CWORD - 2]}: ;; esac\n"
           "    case ${COMP_WORDS[1]} in\n");
    for (const Command *c = cli_commands; c->name; c++) {
        printf("    %s)\n        options='", c->name);
        for (const CliOption *p = cli_options; p->flag; p++)
            if ((p->on & c->bit) && !again(p, c->bit))
                printf("%s ", p->flag);
        printf("--help'\n");
        if (operand_is_words(c)) {
            printf("        options=\"$options ");
            for (const char *s = c->operand; *s; s++)
                putchar(*s == '|' ? ' ' : *s);
            printf("\"\n");
        } else if (c->operand && !strcmp(c->operand, "[COMMAND]")) {
            printf("        options=\"$options ");
            command_names(stdout);
            printf("\"\n");
        } else if (c->operand) {
            printf("        files=%s\n", !strcmp(c->operand, "DIR") ? "folder" : "model");
        }
        printf("        case $before in\n");
        for (const CliOption *p = cli_options; p->flag; p++) {
            if (!(p->on & c->bit) || !p->value || again(p, c->bit))
                continue;
            if (p->choices)
                printf("        %s) options='%s' files= ;;\n", p->flag, choices(a, p));
            else
                printf("        %s) options= files=%s ;;\n", p->flag,
                       p->path == CLI_FOLDER ? "folder"
                       : p->path == CLI_FILE ? "file"
                                             : "");
            if (p->choices && !strcmp(p->choices, "@targets")) /* c:native is three words to bash */
                printf("        c:) options='%s' files=; options=${options//c:/} ;;\n",
                       choices(a, p));
        }
        printf("        esac\n        ;;\n");
    }
    printf("    esac\n"
           "    COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
           "    case $files in\n"
           "    folder) COMPREPLY+=($(compgen -d -- \"$word\")) ;;\n"
           "    file) COMPREPLY+=($(compgen -f -- \"$word\")) ;;\n"
           "    model) COMPREPLY+=($(compgen -d -- \"$word\")%s) ;;\n"
           "    esac\n}\ncomplete -o filenames -F _ingot ingot\n",
           model_endings(a, " $(compgen -f -X '!*", "' -- \"$word\")"));
}

/* Text between single quotes, in which zsh's _arguments finds no meaning of its own. */
static void zsh_text(const char *text)
{
    for (const char *p = text; *p; p++) {
        if (*p == '\'')
            fputs("'\\''", stdout);
        else if (strchr("[]:\\", *p))
            printf("\\%c", *p);
        else
            putchar(*p);
    }
}

static void zsh(Arena *a)
{
    printf("#compdef ingot\n# zsh completion of ingot\n_ingot()\n{\n"
           "    local -a commands\n    commands=(\n");
    for (const Command *c = cli_commands; c->name; c++) {
        printf("        '%s:", c->name);
        zsh_text(c->what);
        printf("'\n");
    }
    printf("    )\n    if (( CURRENT == 2 )); then\n        _describe command commands\n        "
           "return\n    fi\n"
           "    local command=$words[2]\n"
           "    shift words\n    (( CURRENT-- ))\n    case $command in\n");
    for (const Command *c = cli_commands; c->name; c++) {
        printf("    %s)\n        _arguments '--help[more of this command]'", c->name);
        for (const CliOption *p = cli_options; p->flag; p++) {
            if (!(p->on & c->bit) || again(p, c->bit))
                continue;
            printf(" \\\n            '%s%s[", p->value ? "*" : "", p->flag);
            zsh_text(p->text);
            printf("]");
            if (p->value) {
                printf(":");
                zsh_text(p->value);
                printf(":");
                if (p->choices) {
                    printf("(");
                    zsh_text(choices(a, p));
                    printf(")");
                } else if (p->path) {
                    printf(p->path == CLI_FOLDER ? "_files -/" : "_files");
                }
            }
            printf("'");
        }
        if (operand_is_words(c)) {
            printf(" \\\n            '1:shell:(");
            for (const char *s = c->operand; *s; s++)
                putchar(*s == '|' ? ' ' : *s);
            printf(")'");
        } else if (c->operand && !strcmp(c->operand, "[COMMAND]")) {
            printf(" \\\n            '1:command:(");
            command_names(stdout);
            printf(")'");
        } else if (c->operand) {
            if (!strcmp(c->operand, "DIR"))
                printf(" \\\n            '1:folder:_files -/'");
            else
                printf(" \\\n            '1:model:_files -g \"%s\"'",
                       1 + model_endings(a, " *", ""));
        }
        printf("\n        ;;\n");
    }
    printf("    esac\n}\n_ingot \"$@\"\n");
}

static void fish_text(const char *text)
{
    putchar('\'');
    for (const char *p = text; *p; p++) {
        if (*p == '\'' || *p == '\\')
            putchar('\\');
        putchar(*p);
    }
    putchar('\'');
}

static void fish(Arena *a)
{
    printf("# fish completion of ingot\ncomplete -c ingot -f\n");
    for (const Command *c = cli_commands; c->name; c++) {
        printf("complete -c ingot -n __fish_use_subcommand -a %s -d ", c->name);
        fish_text(c->what);
        printf("\n");
    }
    for (const Command *c = cli_commands; c->name; c++) {
        char when[96];
        snprintf(when, sizeof when, "complete -c ingot -n '__fish_seen_subcommand_from %s'",
                 c->name);
        for (const CliOption *p = cli_options; p->flag; p++) {
            if (!(p->on & c->bit) || again(p, c->bit))
                continue;
            bool full = p->flag[1] == '-';
            printf("%s %s %s", when,
                   full                   ? "-l"
                   : strlen(p->flag) == 2 ? "-s"
                                          : "-o",
                   p->flag + (full ? 2 : 1));
            if (p->choices) {
                printf(" -x -a ");
                fish_text(choices(a, p));
            } else if (p->path == CLI_FOLDER) {
                printf(" -x -a '(__fish_complete_directories)'");
            } else if (p->value) {
                printf(p->path ? " -r -F" : " -x");
            }
            printf(" -d ");
            fish_text(p->text);
            printf("\n");
        }
        if (operand_is_words(c)) {
            printf("%s -a '", when);
            for (const char *s = c->operand; *s; s++)
                putchar(*s == '|' ? ' ' : *s);
            printf("'\n");
        } else if (c->operand && !strcmp(c->operand, "[COMMAND]")) {
            printf("%s -a '", when);
            command_names(stdout);
            printf("'\n");
        } else if (c->operand) {
            printf("%s -a '(%s)'\n", when,
                   !strcmp(c->operand, "DIR")
                       ? "__fish_complete_directories"
                       : arena_printf(a, "__fish_complete_suffix%s", model_endings(a, " ", "")));
        }
    }
}

ingot_status command_completion(Options *o)
{
    static const struct {
        const char *name;
        void (*write)(Arena *);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++)
        if (!strcmp(o->model, shells[i].name)) {
            shells[i].write(o->a);
            return INGOT_OK;
        }
    return complain(INGOT_USAGE, "ingot completion: '%.200s': choose bash, zsh or fish", o->model);
}
