/* perfjit manual: the manual page of a command, and the completions of shells, made from the table
 * of commands and from the tables of options that argp parses and prints.
 *
 *     perfjit manual names               the commands, one a line
 *     perfjit manual man NAME [PART]     mdoc of perfjit-NAME(1), or of perfjit(1) for "perfjit"
 *     perfjit manual bash|zsh|fish
 *
 * PART has what stands in no table, in mdoc.  Its text before the first section ends DESCRIPTION.
 * Its sections follow OPTIONS; EXIT STATUS stands before EXAMPLES and SEE ALSO.
 *
 * Exit status: 0; 1 it can't be read or written; 2 usage. */
#include "injector/commands/commands.h"

#include "injector/text/help_text.h"
#include "injector/text/mdoc.h"
#include "injector/text/printable_text.h"
#include "jitdump/jitdump.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* ---- The tables ---- */

static struct span span_to(const char *start, const char *end)
{
    return (struct span){start, (size_t)(end - start)};
}

/* The first sentence of an option's text, without what is in brackets: for a completion. */
static struct span first_words(const char *doc)
{
    static const char *const ends[] = {"\n", ";", ":", " (", ".  "};
    size_t bytes = strlen(doc);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const char *end = strstr(doc, ends[i]);
        if (end && (size_t)(end - doc) < bytes)
            bytes = (size_t)(end - doc);
    }
    return (struct span){doc, bytes};
}

/* Print the values of OPTION with SEPARATOR between them: what is fixed of them, "dwarf," of
 * "dwarf,BYTES". */
static void print_values(const struct argp_option *option, const char *separator)
{
    const char *at = option->doc;
    struct span line, values;
    size_t count = 0;
    for (text_next_line(&at, &line); text_next_line(&at, &line);) {
        if (!line_explains_values(&line, &values))
            continue;
        for (const char *word = values.start, *end = word + values.bytes; word < end;) {
            size_t bytes = 0, fixed = 0;
            while (word + bytes < end && (word[bytes] != ',' || word[bytes + 1] != ' '))
                bytes++;
            while (fixed < bytes && !isupper((unsigned char)word[fixed]))
                fixed++;
            printf("%s%.*s", count++ ? separator : "", (int)fixed, word);
            word += bytes + 2;
        }
    }
}

static bool has_values(const struct argp_option *option)
{
    const char *at = option->doc;
    struct span line, values;
    for (text_next_line(&at, &line); text_next_line(&at, &line);)
        if (line_explains_values(&line, &values))
            return true;
    return false;
}

/* What an option's argument is. */
enum argument_kind { ARGUMENT_WORD, ARGUMENT_FILE, ARGUMENT_DIRECTORY, ARGUMENT_PID };

static enum argument_kind kind_of(const struct argp_option *option)
{
    if (strncmp(option->arg, "PID", 3) == 0)
        return ARGUMENT_PID;
    if (strcmp(option->arg, "DIR") == 0)
        return ARGUMENT_DIRECTORY;
    if (strstr(option->arg, "FILE") || strcmp(option->arg, "CORE") == 0 ||
        strcmp(option->arg, "OUT") == 0)
        return ARGUMENT_FILE;
    return ARGUMENT_WORD;
}

/* ---- Manual pages ---- */

static void print_text(struct span text)
{
    mdoc_text(stdout, text.start, text.bytes);
}

/* A text's lines, with a blank line for a paragraph.  Returns where the exit status begins, or the
 * end. */
static const char *print_paragraphs(const char *text)
{
    struct span line;
    const char *status = strstr(text, "Exit status:\n");
    const char *stop = status ? status : text + strlen(text);
    for (bool breaks = false; text < stop && text_next_line(&text, &line);) {
        if (breaks && line.bytes)
            puts(".Pp");
        breaks = !line.bytes;
        print_text(line);
        if (line.bytes)
            putchar('\n');
    }
    return stop;
}

static void print_value(struct span line, struct span values)
{
    printf(".It ");
    for (size_t i = 0, start = 0; i <= values.bytes; i++)
        if (i == values.bytes || (values.start[i] == ',' && values.start[i + 1] == ' ')) {
            printf("%sCm ", start ? " , " : "");
            print_text((struct span){values.start + start, i - start});
            start = i + 2;
        }
    putchar('\n');
    print_text(span_to(values.start + values.bytes + 2, line.start + line.bytes));
    putchar('\n');
}

static void print_option(const struct argp_option *option)
{
    const char *at = option->doc;
    bool lists = false;
    struct span line, values;
    printf(".It ");
    if (option_letter(option))
        printf("Fl %c , ", option_letter(option));
    printf("Fl ");
    mdoc_text(stdout, "-", 1);
    print_text((struct span){option->name, strlen(option->name)});
    if (option->arg)
        printf(" Ns = Ns Ar %s", option->arg);
    putchar('\n');
    while (text_next_line(&at, &line)) {
        if (line.start != option->doc && line_explains_values(&line, &values)) {
            if (!lists)
                puts(".Bl -tag -width Ds -compact");
            lists = true;
            print_value(line, values);
        } else {
            print_text(line);
            putchar('\n');
        }
    }
    if (lists)
        puts(".El");
}

static void print_options(const struct argp_option *options)
{
    bool lists = false;
    for (; !option_is_end(options); options++) {
        if (option_is_group(options)) {
            if (lists)
                puts(".El");
            printf(".Ss %.*s\n", (int)strcspn(options->doc, ":"), options->doc);
            lists = false;
        } else {
            if (!lists)
                puts(".Bl -tag -width Ds");
            lists = true;
            print_option(options);
        }
    }
    if (lists)
        puts(".El");
}

/* TEXT is "Exit status:", lines "  N  text", lines that go on with such a text, and what else is to
 * be said. */
static void print_statuses(const char *text)
{
    struct span line;
    const char *rest = text;
    if (!*text)
        return;
    puts(".Sh EXIT STATUS\n.Bl -tag -width Ds");
    for (text_next_line(&rest, &line);
         text_next_line(&rest, &line) && line.bytes && *line.start == ' ';) {
        size_t spaces = strspn(line.start, " ");
        if (spaces == 2)
            printf(".It %.*s\n", (int)strcspn(line.start + spaces, " "), line.start + spaces);
        if (spaces == 2)
            spaces = strspn(line.start, " 0123456789");
        print_text((struct span){line.start + spaces, line.bytes - spaces});
        putchar('\n');
    }
    puts(".El");
    if (*rest)
        puts(".Pp");
    print_paragraphs(rest);
}

/* Copy PART up to the first line that begins one of SECTIONS, or all of it.  Leaves that line in
 * *LINE. */
static void copy_until(FILE *part, const char *const *sections, char **line, size_t *room)
{
    bool first = true;
    for (; part && !feof(part); first = false) {
        if (!first || !*line) {
            if (getline(line, room, part) < 0)
                return;
        }
        for (const char *const *section = sections; *section; section++)
            if (strncmp(*line, *section, strlen(*section)) == 0)
                return;
        fputs(*line, stdout);
    }
}

static void print_synopsis(const struct command *command)
{
    const char *at = command->argp->args_doc;
    struct span line;
    puts(".Sh SYNOPSIS");
    while (text_next_line(&at, &line)) {
        printf(".Nm perfjit %s\n.Op Ar OPTION ...\n", command->name);
        print_text(line);
        putchar('\n');
    }
}

static void print_commands(void)
{
    puts(".Sh COMMANDS\nEach has a manual page of its own, and prints its options with\n.Fl "
         "\\-help .\n.Bl -tag -width Ds");
    for (const struct command *command = commands; command->name; command++) {
        printf(".It Xr perfjit-%s 1\n", command->name);
        print_text((struct span){command->purpose, strlen(command->purpose)});
        putchar('\n');
    }
    puts(
        ".El\n.Sh OPTIONS\n.Bl -tag -width Ds\n.It Fl h , Fl \\-help\nPrint the commands\n.It Fl V "
        ", Fl \\-version\nPrint the version\n.El");
}

static void print_command(const struct command *command, FILE *part)
{
    static const char *const any[] = {".Sh", NULL},
                             *const late[] = {".Sh EXAMPLES", ".Sh SEE ALSO", NULL},
                             *const none[] = {NULL};
    char *line = NULL, *intro = strdup(command->argp->doc);
    size_t room = 0;
    const char *rest = strchr(command->argp->doc, '\v') + 1, *statuses;
    if (!intro)
        return;
    intro[rest - 1 - command->argp->doc] = '\0';
    printf(".Dt PERFJIT-");
    for (const char *at = command->name; *at; at++)
        putchar(toupper((unsigned char)*at));
    printf(" 1\n.Os perfjit %s\n.Sh NAME\n.Nm perfjit-%s\n.Nd %s\n", JITDUMP_VERSION, command->name,
           command->purpose);
    print_synopsis(command);
    puts(".Sh DESCRIPTION");
    print_paragraphs(intro);
    if (strncmp(rest, "Exit", 4) != 0)
        puts(".Pp");
    statuses = print_paragraphs(rest);
    copy_until(part, any, &line, &room);
    puts(".Sh OPTIONS");
    print_options(command->argp->options);
    print_options(help_options);
    copy_until(part, late, &line, &room);
    print_statuses(statuses);
    copy_until(part, none, &line, &room);
    free(line);
    free(intro);
}

static void print_overview(FILE *part)
{
    static const char *const any[] = {".Sh", NULL}, *const none[] = {NULL};
    char *line = NULL;
    size_t room = 0;
    printf(".Dt PERFJIT 1\n.Os perfjit %s\n.Sh NAME\n.Nm perfjit\n.Nd make JIT code visible to "
           "Linux perf\n.Sh SYNOPSIS\n.Nm\n.Ar COMMAND\n.Op Ar OPTION ...\n.Sh DESCRIPTION\n",
           JITDUMP_VERSION);
    copy_until(part, any, &line, &room);
    print_commands();
    copy_until(part, none, &line, &room);
    free(line);
}

/* ---- Completions ---- */

/* For single quotes of a shell.  ZSH: in "[...]" and ":...:" as well. */
static void print_quoted(struct span text, bool zsh)
{
    for (size_t i = 0; i < text.bytes; i++)
        if (text.start[i] == '\'')
            fputs(zsh ? "'\\''" : "\\'", stdout);
        else
            printf("%s%c", zsh && strchr("[]:\\", text.start[i]) ? "\\" : "", text.start[i]);
}

/* Run PRINT for each option of COMMAND, argp's own as well. */
static void each_option(const struct command *command,
                        void (*print)(const struct command *, const struct argp_option *))
{
    for (const struct argp_option *option = command->argp->options; !option_is_end(option);
         option++)
        if (!option_is_group(option))
            print(command, option);
    print(command, &help_options[1]);
    print(command, &help_options[2]);
}

static void bash_option(const struct command *command, const struct argp_option *option)
{
    (void)command;
    if (option_letter(option) && option_letter(option) != '?')
        printf(" -%c", option_letter(option));
    printf(" --%s", option->name);
}

static void bash_taking(const struct command *command, const struct argp_option *option)
{
    if (option->arg)
        bash_option(command, option);
}

static void bash_argument(const struct command *command, const struct argp_option *option)
{
    static const char *const takes[] = {"", "file", "directory", "pid"};
    (void)command;
    if (!option->arg)
        return;
    printf("        ");
    if (option_letter(option))
        printf("-%c | ", option_letter(option));
    printf("--%s) words='", option->name);
    print_values(option, " ");
    printf("' takes=%s ;;\n", has_values(option) ? "" : takes[kind_of(option)]);
}

/* The word that is completed, and the one in front of it. */
static const char bash_begin[] =
    "# bash completion for perfjit: perfjit manual bash\n"
    "_perfjit() {\n"
    "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    local words= takes= taking= i\n"
    "    # bash splits at \"=\".\n"
    "    if [[ $current == = ]]; then\n"
    "        current=\n"
    "    elif [[ $previous == = ]]; then\n"
    "        previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    fi\n"
    "    COMPREPLY=()\n"
    "    if ((COMP_CWORD == 1)); then";

/* The case of each command has set WORDS, and what its argument TAKES. */
static const char bash_end[] =
    "    esac\n"
    "    if [[ $takes == program ]]; then\n"
    "        for ((i = 2; i < COMP_CWORD; i++)); do\n"
    "            case ${COMP_WORDS[i]} in\n"
    "            --) ((i++)) && break ;;\n"
    "            -*)\n"
    "                [[ ${COMP_WORDS[i + 1]} != = ]] || ((i++))\n"
    "                [[ ${COMP_WORDS[i]} != = && $taking != *\" ${COMP_WORDS[i]} \"* ]] || "
    "((i++))\n"
    "                ;;\n"
    "            *) break ;;\n"
    "            esac\n"
    "        done\n"
    "        if ((i < COMP_CWORD)) && declare -F _command_offset >/dev/null; then\n"
    "            _command_offset \"$i\"\n"
    "            return\n"
    "        fi\n"
    "        ((i == COMP_CWORD)) && takes=command || takes=file words=\n"
    "    fi\n"
    "    mapfile -t COMPREPLY < <(\n"
    "        [[ -z $words ]] || compgen -W \"$words\" -- \"$current\"\n"
    "        case $takes in\n"
    "        file) compgen -f -- \"$current\" ;;\n"
    "        dump) compgen -f -X '!*.dump' -- \"$current\"; compgen -d -- \"$current\" ;;\n"
    "        directory) compgen -d -- \"$current\" ;;\n"
    "        command) compgen -c -- \"$current\" ;;\n"
    "        pid) compgen -W \"$(cd /proc && echo [0-9]*)\" -- \"$current\" ;;\n"
    "        esac\n"
    "    )\n"
    "    # It is an error outside of a completion, as in a test.\n"
    "    [[ -n $words ]] || compopt -o filenames 2>/dev/null\n"
    "    return 0\n"
    "}\n"
    "complete -F _perfjit perfjit";

static void print_bash(void)
{
    static const char *const takes[] = {[TAKES_NOTHING] = "",
                                        [TAKES_RECORDING] = "file",
                                        [TAKES_DUMP] = "dump",
                                        [TAKES_PID] = "pid",
                                        [TAKES_PROGRAM] = "program"};
    puts(bash_begin);
    printf("        mapfile -t COMPREPLY < <(compgen -W '");
    for (const struct command *command = commands; command->name; command++)
        printf("%s ", command->name);
    puts("--help --version' -- \"$current\")\n        return\n    fi\n"
         "    case ${COMP_WORDS[1]} in");
    for (const struct command *command = commands; command->name; command++) {
        printf("    %s)\n        [[ $current != -* ]] || words='", command->name);
        each_option(command, bash_option);
        printf("'\n        taking='");
        each_option(command, bash_taking);
        printf(" ' takes=%s\n        case $previous in\n", takes[command->arguments]);
        each_option(command, bash_argument);
        puts("        esac\n        ;;");
    }
    puts(bash_end);
}

static void zsh_argument(const struct argp_option *option)
{
    static const char *const actions[] = {" ", "_files", "_files -/", "_pids"};
    if (!option->arg)
        return;
    putchar(':');
    print_quoted((struct span){option->arg, strlen(option->arg)}, true);
    putchar(':');
    if (has_values(option)) {
        putchar('(');
        print_values(option, " ");
        putchar(')');
    } else {
        printf("%s", actions[kind_of(option)]);
    }
}

static void zsh_option(const struct command *command, const struct argp_option *option)
{
    (void)command;
    for (int is_long = !option_letter(option); is_long < 2; is_long++) {
        if (is_long)
            printf(" \\\n            '--%s%s[", option->name, option->arg ? "=" : "");
        else
            printf(" \\\n            '-%c%s[", option_letter(option), option->arg ? "+" : "");
        print_quoted(first_words(option->doc), true);
        putchar(']');
        zsh_argument(option);
        putchar('\'');
    }
}

static void print_zsh(void)
{
    static const char *const rest[] = {[TAKES_NOTHING] = "",
                                       [TAKES_RECORDING] = "'*:file:_files'",
                                       [TAKES_DUMP] = "'*:dump:_files -g \"*.dump\"'",
                                       [TAKES_PID] = "':PID:_pids'",
                                       [TAKES_PROGRAM] = "'*::program:_normal'"};
    puts("#compdef perfjit\n"
         "# zsh completion for perfjit: perfjit manual zsh\n"
         "_perfjit() {\n"
         "    local -a commands\n"
         "    commands=(");
    for (const struct command *command = commands; command->name; command++) {
        printf("        '%s:", command->name);
        print_quoted((struct span){command->purpose, strlen(command->purpose)}, true);
        puts("'");
    }
    puts("    )\n"
         "    if ((CURRENT == 2)); then\n"
         "        _describe command commands\n"
         "        return\n"
         "    fi\n"
         "    local command=$words[2]\n"
         "    shift words\n"
         "    ((CURRENT--))\n"
         "    case $command in");
    for (const struct command *command = commands; command->name; command++) {
        printf("    %s)\n        _arguments -s -S", command->name);
        each_option(command, zsh_option);
        printf(" \\\n            %s\n        ;;\n", rest[command->arguments]);
    }
    puts("    esac\n}\n_perfjit \"$@\"");
}

static void fish_option(const struct command *command, const struct argp_option *option)
{
    printf("complete -c perfjit -n '__fish_seen_subcommand_from %s' -l %s", command->name,
           option->name);
    if (option_letter(option))
        printf(" -s '%c'", option_letter(option));
    if (option->arg && has_values(option)) {
        printf(" -x -a '");
        print_values(option, " ");
        putchar('\'');
    } else if (option->arg) {
        static const char *const arguments[] = {" -x", " -r -F",
                                                " -x -a '(__fish_complete_directories)'",
                                                " -x -a '(__fish_complete_pids)'"};
        printf("%s", arguments[kind_of(option)]);
    }
    printf(" -d '");
    print_quoted(first_words(option->doc), false);
    puts("'");
}

static void print_fish(void)
{
    static const char *const rest[] = {[TAKES_NOTHING] = "-f",
                                       [TAKES_RECORDING] = "-F",
                                       [TAKES_DUMP] = "-k -x -a '(__fish_complete_suffix .dump)'",
                                       [TAKES_PID] = "-x -a '(__fish_complete_pids)'",
                                       [TAKES_PROGRAM] =
                                           "-x -a '(__fish_complete_subcommand --fcs-skip=2)'"};
    puts("# fish completion for perfjit: perfjit manual fish\n"
         "complete -c perfjit -n __fish_use_subcommand -f\n"
         "complete -c perfjit -n __fish_use_subcommand -s h -l help -d 'Print the commands'\n"
         "complete -c perfjit -n __fish_use_subcommand -s V -l version -d 'Print the version'");
    for (const struct command *command = commands; command->name; command++) {
        printf("\ncomplete -c perfjit -n __fish_use_subcommand -a %s -d '", command->name);
        print_quoted((struct span){command->purpose, strlen(command->purpose)}, false);
        printf("'\ncomplete -c perfjit -n '__fish_seen_subcommand_from %s' %s\n", command->name,
               rest[command->arguments]);
        each_option(command, fish_option);
    }
}

/* ---- The command ---- */

static int print_page(const char *name, const char *path)
{
    const struct command *command = commands;
    FILE *part = path ? fopen(path, "re") : NULL;
    if (path && !part) {
        printable_line(stderr, "perfjit: %s: can't open it: %s", path, strerror(errno));
        return EXIT_FAILED;
    }
    while (command->name && strcmp(command->name, name) != 0)
        command++;
    if (command->name)
        print_command(command, part);
    else if (strcmp(name, "perfjit") == 0)
        print_overview(part);
    if (part)
        fclose(part);
    return command->name || strcmp(name, "perfjit") == 0 ? EXIT_SUCCESS : EXIT_USAGE;
}

static void print_names(void)
{
    for (const struct command *command = commands; command->name; command++)
        puts(command->name);
}

int manual_command(int argc, char **argv)
{
    static const struct {
        const char *format;
        void (*print)(void);
    } formats[] = {
        {"names", print_names}, {"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    const char *format = argc > 1 ? argv[1] : "";
    int status = EXIT_USAGE;
    if (strcmp(format, "man") == 0 && (argc == 3 || argc == 4))
        status = print_page(argv[2], argv[3]);
    for (size_t i = 0; i < sizeof formats / sizeof *formats && argc == 2; i++)
        if (strcmp(format, formats[i].format) == 0) {
            formats[i].print();
            status = EXIT_SUCCESS;
        }
    if (status == EXIT_USAGE)
        fputs("Usage: perfjit manual man COMMAND [PART]\n"
              "  or:  perfjit manual names|bash|zsh|fish\n",
              stderr);
    if (fflush(stdout) || ferror(stdout)) {
        printable_line(stderr, "perfjit: standard output: can't write it: %s", strerror(errno));
        return EXIT_FAILED;
    }
    return status;
}
