/* The manual page of a library, from the comments of its public headers: they are the one place
 * where its functions are described.
 *
 *     header_page NAME PART HEADER...    mdoc of NAME(3) on standard output; PART ends it
 *     header_page -f PART HEADER         jitdump(5), from the comment that begins jitdump_format.h
 *     header_page -n HEADER...           the public functions, one a line
 *
 * A comment that begins a line belongs to the declarations up to the next blank line.  A comment
 * that stands alone is prose; "---- TITLE ----" begins it with a heading.  In a comment a line
 * "- ..." is of a list, and a paragraph with spaces in front is code. */
#include "injector/text/mdoc.h"
#include "jitdump/jitdump.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lines {
    char **items;
    size_t count;
};

/* A comment with what is declared below it. */
struct group {
    struct lines comment, declarations;
};

static void fail(const char *what)
{
    fprintf(stderr, "header_page: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static void add(struct lines *lines, const char *start, size_t bytes)
{
    lines->items = realloc(lines->items, (lines->count + 1) * sizeof *lines->items);
    if (!lines->items || !(lines->items[lines->count] = strndup(start, bytes)))
        fail("memory");
    lines->count++;
}

static void clear(struct lines *lines)
{
    for (size_t i = 0; i < lines->count; i++)
        free(lines->items[i]);
    free(lines->items);
    *lines = (struct lines){NULL, 0};
}

static void read_lines(struct lines *lines, const char *path)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    ssize_t bytes;
    if (!file)
        fail(path);
    while ((bytes = getline(&line, &room, file)) > 0)
        add(lines, line, (size_t)bytes - (line[bytes - 1] == '\n'));
    free(line);
    fclose(file);
}

static bool begins(const char *line, const char *word)
{
    return strncmp(line, word, strlen(word)) == 0;
}

/* ---- Reading ---- */

/* The comment that begins in line FIRST of FILE, without its marks.  Returns the line behind it. */
static size_t read_comment(struct lines *comment, const struct lines *file, size_t first)
{
    for (size_t i = first; i < file->count; i++) {
        const char *line = file->items[i] + (i == first ? 2 : strspn(file->items[i], " "));
        const char *end = strstr(line, "*/");
        if (i > first && *line == '*' && line != end)
            line++;
        if (*line == ' ')
            line++;
        size_t bytes = end && line < end ? (size_t)(end - line) : end ? 0 : strlen(line);
        while (bytes && line[bytes - 1] == ' ')
            bytes--;
        add(comment, line, bytes);
        if (end)
            return i + 1;
    }
    return file->count;
}

/* The declaration that begins in line FIRST, up to its end, as lines. */
static size_t read_declaration(struct lines *declarations, const struct lines *file, size_t first)
{
    const char *start = file->items[first];
    bool skips = begins(start, "static inline") || begins(start, "extern \"C\"") || *start == '}';
    bool is_struct = false;
    for (size_t i = first; i < file->count; i++) {
        const char *line = file->items[i];
        is_struct = is_struct || strchr(line, '{');
        if (!skips)
            add(declarations, line, strlen(line));
        size_t bytes = strlen(line);
        if (begins(start, "extern \"C\"") || *start == '}')
            return i + 1;
        if (is_struct ? *line == '}' || (strchr(line, '}') && i == first)
                      : bytes && line[bytes - 1] == ';')
            return i + 1;
    }
    return file->count;
}

/* A constant's name counts; what an initialiser is made of does not. */
static size_t read_directive(struct lines *declarations, const struct lines *file, size_t first)
{
    const char *line = file->items[first];
    size_t i = first;
    while (i + 1 < file->count && *line && line[strlen(line) - 1] == '\\')
        line = file->items[++i];
    line = file->items[first];
    if (begins(line, "#define ") && !strstr(line, "_API") && !strstr(line, "_NULL")) {
        size_t bytes = strlen(line);
        if (strcmp(line + bytes - 2, "_H") == 0)
            return i + 1;
        while (bytes && (line[bytes - 1] == '\\' || line[bytes - 1] == ' '))
            bytes--;
        add(declarations, line, bytes);
    }
    return i + 1;
}

/* The next group of FILE behind line *AT.  Returns whether there is one. */
static bool read_group(struct group *group, const struct lines *file, size_t *at)
{
    while (*at < file->count) {
        const char *line = file->items[*at];
        if (!*line || (begins(line, "/*") && group->comment.count + group->declarations.count)) {
            *at += !*line;
            if (group->comment.count + group->declarations.count)
                return true;
        } else if (begins(line, "/*")) {
            *at = read_comment(&group->comment, file, *at);
        } else if (*line == '#') {
            *at = read_directive(&group->declarations, file, *at);
        } else {
            *at = read_declaration(&group->declarations, file, *at);
        }
    }
    return group->comment.count + group->declarations.count;
}

static void free_group(struct group *group)
{
    clear(&group->comment);
    clear(&group->declarations);
}

/* ---- Functions ---- */

/* The text of the function that is declared from line *AT of LINES on, or NULL: no function begins
 * there.  *AT is moved behind it. */
static char *function_at(const struct lines *lines, size_t *at)
{
    const char *mark = strstr(lines->items[*at], "_API ");
    char *text;
    size_t first = (*at)++, bytes = 1;
    if (!mark || *lines->items[first] == '#')
        return NULL;
    while (*at < lines->count && !strchr(lines->items[*at - 1], ';'))
        (*at)++;
    for (size_t i = first; i < *at; i++)
        bytes += strlen(lines->items[i]) + 1;
    if (!(text = calloc(1, bytes)))
        fail("memory");
    strcpy(text, mark + strlen("_API "));
    for (size_t i = first + 1; i < *at; i++) {
        strcat(text, " ");
        strcat(text, lines->items[i] + strspn(lines->items[i], " "));
    }
    return text;
}

/* Where the name of the function TEXT is. */
static const char *name_in(const char *text, size_t *bytes)
{
    const char *end = strchr(text, '('), *start = end;
    while (start > text && (isalnum((unsigned char)start[-1]) || start[-1] == '_'))
        start--;
    *bytes = (size_t)(end - start);
    return start;
}

static void each_function(const struct group *group,
                          void (*print)(const char *text, const char *name, size_t bytes))
{
    for (size_t at = 0; at < group->declarations.count;) {
        size_t bytes;
        char *text = function_at(&group->declarations, &at);
        if (text) {
            const char *name = name_in(text, &bytes);
            print(text, name, bytes);
        }
        free(text);
    }
}

static void print_name(const char *text, const char *name, size_t bytes)
{
    (void)text;
    printf("%.*s\n", (int)bytes, name);
}

static void print_synopsis(const char *text, const char *name, size_t bytes)
{
    int type = (int)(name - text);
    while (type && text[type - 1] == ' ')
        type--;
    printf(".Ft \"%.*s\"\n.Fo %.*s\n", type, text, (int)bytes, name);
    for (const char *at = name + bytes + 1; *at && *at != ')';) {
        size_t length = strcspn(at, ",)");
        printf(".Fa \"%.*s\"\n", (int)length, at);
        at += length;
        at += strspn(at, ", ");
    }
    puts(".Fc");
}

static void print_heading(const char *text, const char *name, size_t bytes)
{
    (void)text;
    printf(" %.*s", (int)bytes, name);
}

/* ---- Text ---- */

/* Whether something stands in front that a paragraph of text is to be parted from. */
static bool follows_text;

static void print_line(const char *line)
{
    mdoc_text(stdout, line, strlen(line));
    putchar('\n');
}

static void print_literal(const struct lines *lines, size_t from, size_t to)
{
    size_t indentation = SIZE_MAX;
    for (size_t i = from; i < to; i++)
        if (strspn(lines->items[i], " ") < indentation)
            indentation = strspn(lines->items[i], " ");
    follows_text = true;
    puts(".Bd -literal -offset indent");
    for (; from < to; from++) {
        const char *at = lines->items[from] + indentation;
        if (*at == '.' || *at == '\'')
            fputs("\\&", stdout);
        for (; *at; at++)
            fputs(*at == '\\' ? "\\e" : *at == '-' ? "\\-" : (char[]){*at, '\0'}, stdout);
        putchar('\n');
    }
    puts(".Ed");
}

static void print_list(const struct lines *lines, size_t from, size_t to)
{
    puts(".Bl -dash -compact");
    for (; from < to; from++) {
        const char *line = lines->items[from];
        if (begins(line, "- "))
            puts(".It");
        print_line(line + (begins(line, "- ") ? 2 : strspn(line, " ")));
    }
    puts(".El");
}

/* Code is indented, and a table has runs of spaces. */
static bool is_literal(const char *line)
{
    return begins(line, "  ") || strstr(line, "     ");
}

/* Lines FROM to TO have no blank one. */
static void print_paragraph(const struct lines *lines, size_t from, size_t to)
{
    while (from < to) {
        size_t end = from + 1;
        if (begins(lines->items[from], "- ")) {
            print_list(lines, from, to);
            return;
        }
        const bool literal = is_literal(lines->items[from]);
        while (end < to && is_literal(lines->items[end]) == literal &&
               !begins(lines->items[end], "- "))
            end++;
        if (literal) {
            print_literal(lines, from, end);
        } else {
            if (follows_text)
                puts(".Pp");
            follows_text = true;
            for (size_t i = from; i < end; i++)
                print_line(lines->items[i]);
        }
        from = end;
    }
}

static void print_text(const struct lines *lines, size_t from)
{
    while (from < lines->count) {
        size_t to = from;
        while (to < lines->count && *lines->items[to])
            to++;
        if (begins(lines->items[from], "----") && to == from + 1) {
            const char *title = lines->items[from] + 5;
            printf(".Ss \\&%.*s\n", (int)(strlen(title) - 5), title); /* "In" is a macro */
            follows_text = false;
        } else if (to > from) {
            print_paragraph(lines, from, to);
        }
        from = to + 1;
    }
}

/* The lines of what is no function, as they stand. */
static void print_others(const struct lines *declarations)
{
    struct lines others = {NULL, 0};
    for (size_t at = 0; at < declarations->count;) {
        size_t first = at;
        char *function = function_at(declarations, &at);
        if (!function)
            add(&others, declarations->items[first], strlen(declarations->items[first]));
        free(function);
    }
    if (others.count)
        print_literal(&others, 0, others.count);
    clear(&others);
}

static void print_group(const struct group *group)
{
    size_t names = 0;
    for (size_t at = 0; at < group->declarations.count;) {
        char *text = function_at(&group->declarations, &at);
        names += text ? 1 : 0;
        free(text);
    }
    if (names) {
        printf(".Ss");
        each_function(group, print_heading);
        putchar('\n');
        follows_text = false;
    }
    print_text(&group->comment, 0);
    print_others(&group->declarations);
}

/* ---- The page ---- */

static void print_header(const char *path, bool is_first)
{
    struct lines file = {NULL, 0};
    struct group group = {{NULL, 0}, {NULL, 0}};
    size_t at = 0;
    read_lines(&file, path);
    if (!is_first)
        printf(".Sh %s\n", path);
    follows_text = false;
    for (bool top = true; read_group(&group, &file, &at); top = false) {
        if (top && is_first) {
            puts(".Sh DESCRIPTION");
            print_text(&group.comment, 2);
        } else if (!strstr(group.comment.count ? group.comment.items[0] : "", "_STATIC")) {
            print_group(&group);
        }
        free_group(&group);
    }
    clear(&file);
}

static void each_header_function(const char *path,
                                 void (*print)(const char *text, const char *name, size_t bytes))
{
    struct lines file = {NULL, 0};
    struct group group = {{NULL, 0}, {NULL, 0}};
    size_t at = 0;
    read_lines(&file, path);
    for (; read_group(&group, &file, &at); free_group(&group))
        each_function(&group, print);
    free_group(&group);
    clear(&file);
}

/* Programs include jitdump/jitdump.h as jitdump.h, and jitdump/cfi.h as it stands. */
static const char *included_as(const char *path, bool is_first)
{
    return is_first ? strrchr(path, '/') + 1 : path;
}

static void print_top(const char *name, const char *path)
{
    struct lines file = {NULL, 0}, comment = {NULL, 0};
    read_lines(&file, path);
    read_comment(&comment, &file, 0);
    printf(".Dt ");
    for (const char *at = name; *at; at++)
        putchar(toupper((unsigned char)*at));
    const char *purpose = comment.items[0] + strlen(name) + 2;
    printf(" 3\n.Os perfjit %s\n.Sh NAME\n.Nm %s\n.Nd %.*s\n.Sh SYNOPSIS\n", JITDUMP_VERSION, name,
           (int)strlen(purpose) - (purpose[strlen(purpose) - 1] == '.'), purpose);
    clear(&comment);
    clear(&file);
}

static void print_part(const char *path)
{
    struct lines part = {NULL, 0};
    read_lines(&part, path);
    for (size_t i = 0; i < part.count; i++)
        puts(part.items[i]);
    clear(&part);
}

static void print_library(const char *name, const char *part, char **headers, int count)
{
    print_top(name, headers[0]);
    for (int i = 0; i < count; i++) {
        printf(".In %s\n", included_as(headers[i], i == 0));
        each_header_function(headers[i], print_synopsis);
    }
    for (int i = 0; i < count; i++)
        print_header(headers[i], i == 0);
    print_part(part);
}

static void print_format(const char *part, const char *header)
{
    struct lines file = {NULL, 0}, comment = {NULL, 0};
    read_lines(&file, header);
    read_comment(&comment, &file, 0);
    printf(
        ".Dt JITDUMP 5\n.Os perfjit %s\n.Sh NAME\n.Nm jitdump\n.Nd file with the code that a JIT "
        "compiler generated\n.Sh DESCRIPTION\n",
        JITDUMP_VERSION);
    print_text(&comment, 2);
    print_part(part);
    clear(&comment);
    clear(&file);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "-n") == 0)
        for (int i = 2; i < argc; i++)
            each_header_function(argv[i], print_name);
    else if (argc == 4 && strcmp(argv[1], "-f") == 0)
        print_format(argv[2], argv[3]);
    else if (argc > 3)
        print_library(argv[1], argv[2], argv + 3, argc - 3);
    else
        fputs("Usage: header_page NAME PART HEADER... | -f PART HEADER | -n HEADER...\n", stderr);
    return argc < 3 || fflush(stdout) || ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
