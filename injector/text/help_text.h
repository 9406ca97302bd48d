/* The options of a command: struct argp is the one table of them, and --help, the manual page and
 * the completions (commands/manual.c) are made from it.
 *
 * Of its text DOC the part behind "\v" ends with "Exit status:" and a line for each, which begins
 * with two spaces.  An option's text may list values: a line for each, "WORD, WORD: what it means".
 */
#ifndef PERFJIT_HELP_TEXT_H
#define PERFJIT_HELP_TEXT_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

/* As argp_parse, but wrong usage ends with status 2, and --help and --usage are printed here:
 * glibc's argp puts words of long texts into wrong columns (its stream loses count when its buffer
 * of 200 bytes is full). */
error_t help_parse(const struct argp *argp, int argc, char **argv, unsigned flags, void *input);

/* --help and --usage themselves. */
extern const struct argp_option help_options[];

/* ---- The table, for who prints it ---- */

bool option_is_end(const struct argp_option *option);
bool option_is_group(const struct argp_option *option);

/* NUL if it has none. */
char option_letter(const struct argp_option *option);

struct span {
    const char *start;
    size_t bytes;
};

/* The line behind *AT, which is moved behind it; false at the end of the text. */
bool text_next_line(const char **at, struct span *line);

/* Whether LINE, not the first one of an option's text, explains VALUES. */
bool line_explains_values(const struct span *line, struct span *values);

/* ---- Rows that many commands have ---- */

#define OPTION_GROUP(TITLE)                                                                        \
    {                                                                                              \
        0, 0, 0, 0, TITLE, 0                                                                       \
    }
#define OPTION_VERBOSE                                                                             \
    {                                                                                              \
        "verbose", 'v', 0, 0, "Print every finding", 0                                             \
    }
#define OPTION_QUIET                                                                               \
    {                                                                                              \
        "quiet", 'q', 0, 0, "Print nothing but the reason of a failure", 0                         \
    }

/* The exit status of most. */
#define HELP_EXIT_STATUS                                                                           \
    "Exit status:\n"                                                                               \
    "  0  done\n"                                                                                  \
    "  1  failed: nothing was written\n"                                                           \
    "  2  wrong usage\n"                                                                           \
    "  3  done, but parts of the input were skipped, as reported on stderr\n"

#endif
