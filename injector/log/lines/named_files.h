/* The files that the names of functions name: "JS:*fib /tmp/fib.js:1:13" is V8's way.
 *
 * For names in line entries that were overwritten in part (line_entry.h): length and end show which
 * file it was.
 */
#ifndef PERFJIT_NAMED_FILES_H
#define PERFJIT_NAMED_FILES_H

#include "injector/log/lines/line_text.h"

#include <stddef.h>

struct named_files {
    struct line_text
        *items; /* by length, then by the part after the first 16 bytes, then by those */
    size_t count, capacity;
    bool ready; /* sorted, each once */
};

/* Add the files that NAME, which must outlive FILES, may name.  Returns 0, or -1 without
 * memory. */
int named_files_add(struct named_files *files, const char *name);

/* Sort the added names. */
void named_files_close(struct named_files *files);

/* The file whose name was NAME before it was overwritten.  OWN is the name of the function that it
 * was found with, whose file is preferred. If no file or several fit, the rest of the name is
 * returned, or "?". */
struct line_text named_files_restore(const struct named_files *files, struct line_text name,
                                     const char *own);

void named_files_free(struct named_files *files);

#endif
