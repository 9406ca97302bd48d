/* Characters in UTF-8, and what each may do where it is printed.  That is decided here alone. */
#ifndef PERFJIT_CHARACTER_H
#define PERFJIT_CHARACTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many bytes the UTF-8 character at the start of the BYTES bytes at TEXT has; 0 if it is not
 * one. */
size_t utf8_bytes(const char *text, size_t bytes);

/* The code point of the UTF-8 character of BYTES bytes at TEXT. */
uint32_t utf8_code(const char *text, size_t bytes);

enum { UTF8_MOST_BYTES = 4 };

/* Put CODE, below 2^21, at TO.  Returns how many bytes it has. */
size_t utf8_put(char to[UTF8_MOST_BYTES], uint32_t code);

enum character {
    CHARACTER_PLAIN,
    CHARACTER_CONTROL, /* C0, DEL and C1: they break lines and control terminals */
    /* It is no glyph of its own: it changes the direction of the text around it, ends a line, or is
     * invisible, so that two names look the same. */
    CHARACTER_HIDDEN,
    CHARACTER_BROKEN /* a byte that is not UTF-8 */
};

/* The kind of the character at the start of the BYTES at TEXT, which has *COUNT of them. */
enum character character_at(const char *text, size_t bytes, size_t *count);

/* Whether each of the BYTES at TEXT is ASCII and plain: quickly. */
bool characters_are_plain_ascii(const char *text, size_t bytes);

#endif
