/* Text for a person: all that the command prints goes through here.
 *
 * Paths, names of commands and functions come out of a recording or a dump, so any user may have
 * written them, and a terminal interprets escape sequences in them.  Bytes that are not printable
 * UTF-8 are printed as \xNN, one by one (character.h): control characters, characters that change
 * the direction of text, end a line or are invisible, and bytes that are not UTF-8.
 */
#ifndef PERFJIT_PRINTABLE_TEXT_H
#define PERFJIT_PRINTABLE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* How many bytes the printable character at the start of the SIZE bytes at TEXT has; 0 if it is not
 * one. */
size_t printable_bytes(const char *text, size_t size);

/* Whether TEXT is printed as it is. */
bool printable_is(const char *text);

void printable_put(FILE *stream, const char *text);

/* A line: a newline is appended. A newline in the text is escaped like any other control character.
 */
void printable_line(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A copy of TEXT as printable_put prints it, to be freed by the caller; NULL without memory. */
char *printable_copy(const char *text);

#endif
