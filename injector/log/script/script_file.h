/* A script's file, as JavaScript counts in it: in UTF-16 units, without a byte order mark, in lines
 * that end with \n, \r, \r\n, U+2028 or U+2029. */
#ifndef PERFJIT_SCRIPT_FILE_H
#define PERFJIT_SCRIPT_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the lines of a script begin. */
struct script_lines {
    uint32_t *starts; /* in units; at least one */
    size_t count, capacity;
};

struct script_file {
    uint16_t *units;
    size_t count;
    struct script_lines lines;
};

/* The path of the script that a runtime calls by the BYTES bytes at NAME: a path or a file URL,
 * below ROOT, or NULL for the root itself.  False if it names no file. */
bool script_file_path(const char *name, size_t bytes, const char *root, char path[PATH_MAX]);

/* The *BYTES bytes of PATH, to be freed.  NULL: it can't be read, or is no script by its size. */
char *script_text_read(const char *path, size_t *bytes);

/* Whether a character of that UTF-16 unit may stand in an identifier. */
bool script_unit_is_of_identifier(unsigned unit);

/* Take the lines of the BYTES bytes at TEXT: that takes an eighth of the time of all the text, and
 * much less memory.  Returns 0, or -1 without memory.  Release as below. */
int script_lines_take(struct script_lines *lines, const char *text, size_t bytes);

/* The line, from 0, that the unit AT is in. */
uint32_t script_lines_at(const struct script_lines *lines, size_t at);

void script_lines_free(struct script_lines *lines);

/* Take the BYTES bytes at TEXT.  Returns 0, or -1 without memory.  Release as below. */
int script_file_take(struct script_file *file, const char *text, size_t bytes);

/* Read PATH.  Returns 0, or -1: it can't be read.  Release with script_file_free in either case. */
int script_file_read(struct script_file *file, const char *path);

void script_file_free(struct script_file *file);

#endif
