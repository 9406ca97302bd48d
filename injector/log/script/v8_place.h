/* The place that V8 puts behind a function's name: "NAME FILE:LINE:COLUMN", of its first character
 * behind the name.  Code of eval and new Function has no file: "NAME :LINE:COLUMN".  A program that
 * wraps a script may say that its own text begins further on: LINE or COLUMN is then 0 or less in
 * what stands in front, "/a.js:1:-195". */
#ifndef PERFJIT_V8_PLACE_H
#define PERFJIT_V8_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct v8_place {
    size_t name_bytes;     /* of the text, in front of the space */
    const char *file;      /* in the text */
    size_t file_bytes;     /* 0: none */
    uint32_t line, column; /* from 1; 0: there is none */
};

/* Take TEXT apart.  False: it has no place. */
bool v8_place_of(const char *text, size_t bytes, struct v8_place *place);

/* Whether TEXT ends as one with a place does: with a colon and a number. */
bool v8_place_may_be(const char *text, size_t bytes);

#endif
