/* See help_text.h. */
#include "injector/text/help_text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 2 };
enum { COLUMNS = 79, TEXT_COLUMN = 29, HANGING = 2, USAGE_COLUMN = 12 };
enum help_key { KEY_HELP = '?', KEY_USAGE = 2048 };

const struct argp_option help_options[] = {
    OPTION_GROUP("Help:"),
    {"help", KEY_HELP, 0, 0, "Print the options and what they mean", 0},
    {"usage", KEY_USAGE, 0, 0, "Print the options alone", 0},
    {0}};

/* ---- The table ---- */

bool option_is_end(const struct argp_option *option)
{
    return !option->name && !option->key && !option->doc;
}

bool option_is_group(const struct argp_option *option)
{
    return !option->name && !option->key && option->doc;
}

char option_letter(const struct argp_option *option)
{
    return option->key < 128 && isgraph(option->key) ? (char)option->key : '\0';
}

bool text_next_line(const char **at, struct span *line)
{
    if (!**at)
        return false;
    const char *end = strchrnul(*at, '\n');
    *line = (struct span){*at, (size_t)(end - *at)};
    *at = *end ? end + 1 : end;
    return true;
}

bool line_explains_values(const struct span *line, struct span *values)
{
    const char *colon = memmem(line->start, line->bytes, ": ", 2);
    if (colon)
        *values = (struct span){line->start, (size_t)(colon - line->start)};
    return colon;
}

/* ---- Columns ---- */

struct columns {
    size_t at, margin;
};

static void next_row(struct columns *columns)
{
    printf("\n%*s", (int)columns->margin, "");
    columns->at = columns->margin;
}

/* Words with the spaces between them, which are left out where a row begins. */
static void put_words(struct columns *columns, struct span text)
{
    const char *at = text.start, *end = at + text.bytes;
    while (at < end) {
        size_t spaces = strspn(at, " "), bytes = strcspn(at + spaces, " \v\n");
        if (columns->at + spaces + bytes > COLUMNS && columns->at > columns->margin) {
            next_row(columns);
            spaces = 0;
            at += strspn(at, " ");
        }
        printf("%.*s", (int)(spaces + bytes), at);
        columns->at += spaces + bytes;
        at += spaces + bytes;
    }
}

static void put_string(struct columns *columns, const char *text)
{
    put_words(columns, (struct span){text, strlen(text)});
}

/* What goes on in further rows hangs, in a line that begins with spaces or explains values. */
static void put_paragraphs(const char *text)
{
    struct span line;
    while (text_next_line(&text, &line)) {
        struct columns columns = {0, strspn(line.start, " ") ? 5 : 0};
        put_words(&columns, line);
        putchar('\n');
    }
}

static void put_option_text(struct columns *columns, const char *text)
{
    struct span line, values;
    bool is_first = true;
    for (; text_next_line(&text, &line); is_first = false) {
        columns->margin = TEXT_COLUMN;
        if (!is_first)
            next_row(columns);
        if (!is_first && line_explains_values(&line, &values))
            columns->margin += HANGING;
        put_words(columns, line);
    }
    putchar('\n');
}

static void put_option(const struct argp_option *option)
{
    struct columns columns = {.margin = TEXT_COLUMN};
    int used = option_letter(option) ? printf("  -%c, ", option_letter(option)) : printf("      ");
    used +=
        printf("--%s%s%s", option->name, option->arg ? "=" : "", option->arg ? option->arg : "");
    columns.at = (size_t)used;
    if (columns.at + 2 > TEXT_COLUMN)
        next_row(&columns);
    columns.at += (size_t)printf("%*s", (int)(TEXT_COLUMN - columns.at), "");
    put_option_text(&columns, option->doc);
}

static void put_options(const struct argp_option *options)
{
    for (; !option_is_end(options); options++)
        if (option_is_group(options))
            printf("\n%s\n", options->doc);
        else
            put_option(options);
}

/* ---- --help and --usage ---- */

static void print_help(const struct argp *argp, const char *name)
{
    const char *at = argp->args_doc, *rest = strchr(argp->doc, '\v') + 1;
    struct span line;
    struct columns columns;
    for (const char *word = "Usage: "; text_next_line(&at, &line); word = "  or:  ") {
        columns = (struct columns){.margin = USAGE_COLUMN};
        put_string(&columns, word);
        put_string(&columns, name);
        put_string(&columns, " [OPTION...] ");
        put_words(&columns, line);
        putchar('\n');
    }
    columns = (struct columns){.margin = 0};
    put_words(&columns, (struct span){argp->doc, (size_t)(rest - 1 - argp->doc)});
    putchar('\n');
    if (!option_is_group(argp->options))
        printf("\nOptions:\n");
    put_options(argp->options);
    put_options(help_options);
    putchar('\n');
    put_paragraphs(rest);
}

static void put_usage(struct columns *columns, const struct argp_option *options)
{
    char word[64];
    for (; !option_is_end(options); options++) {
        if (option_is_group(options))
            continue;
        const char *argument = option_letter(options) && options->arg ? options->arg : "";
        if (option_letter(options)) {
            snprintf(word, sizeof word, " [-%c%s%s]", option_letter(options), *argument ? " " : "",
                     argument);
            put_string(columns, word);
        }
        snprintf(word, sizeof word, " [--%s%s%s]", options->name, options->arg ? "=" : "",
                 options->arg ? options->arg : "");
        put_string(columns, word);
    }
}

static void print_usage(const struct argp *argp, const char *name)
{
    const char *at = argp->args_doc;
    struct span line;
    for (const char *word = "Usage: "; text_next_line(&at, &line); word = "  or:  ") {
        struct columns columns = {.margin = USAGE_COLUMN};
        put_string(&columns, word);
        put_string(&columns, name);
        put_usage(&columns, argp->options);
        put_usage(&columns, help_options);
        put_string(&columns, " ");
        put_words(&columns, line);
        putchar('\n');
    }
}

/* ---- Parsing ---- */

struct parsing {
    const struct argp *argp;
    void *input;
};

static error_t take_help(int key, char *argument, struct argp_state *state)
{
    const struct parsing *parsing = state->input;
    (void)argument;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = parsing->input;
        return 0;
    case KEY_HELP:
        print_help(parsing->argp, state->name);
        exit(fflush(stdout) || ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS);
    case KEY_USAGE:
        print_usage(parsing->argp, state->name);
        exit(fflush(stdout) || ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

error_t help_parse(const struct argp *argp, int argc, char **argv, unsigned flags, void *input)
{
    struct parsing parsing = {argp, input};
    const struct argp_child children[] = {{.argp = argp}, {0}};
    const struct argp with_help = {
        .options = help_options, .parser = take_help, .children = children};
    argp_err_exit_status = EXIT_USAGE;
    return argp_parse(&with_help, argc, argv, flags | ARGP_NO_HELP, NULL, &parsing);
}
