/* A piece of text in a dump, which need not end with NUL: the name of a file or function. */
#ifndef PERFJIT_LINE_TEXT_H
#define PERFJIT_LINE_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct line_text {
    const char *text; /* NULL: none */
    uint32_t bytes;
};

/* TEXT, or none if it is NULL or empty. */
static inline struct line_text line_text_of(const char *text)
{
    if (!text || !*text)
        return (struct line_text){NULL, 0};
    return (struct line_text){text, (uint32_t)strlen(text)};
}

static inline bool line_text_same(struct line_text a, struct line_text b)
{
    return a.bytes == b.bytes &&
           (a.text == b.text || (a.text && b.text && memcmp(a.text, b.text, a.bytes) == 0));
}

#endif
