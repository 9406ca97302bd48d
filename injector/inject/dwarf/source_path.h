/* Makes the name of a source file in debug info from the name in the dump.  With the new name tools
 * find the file, and perf shows its lines.
 *
 *     a dump says                        becomes
 *     /a/b.js                            the same: a path stays as it is
 *     file:///a/b%20c.mjs?v=2#d          /a/b c.mjs
 *     file://localhost/a/b.mjs           /a/b.mjs
 *     file://server/a.mjs                file_//server/a.mjs
 *     node:internal/util                 node_internal/util
 *     https://deno.land/x/mod.ts         https_//deno.land/x/mod.ts
 *
 * V8 names ES modules, and Deno all of its scripts, by URL.  The answer of addr2line is
 * "FILE:LINE".  Versions 6.1 to 7.2 of perf split the answer at the first colon, and show "file:0"
 * for the whole of such a file.  A name that is no path can't be opened anyway, so nothing is lost
 * with its colons.
 */
#ifndef PERFJIT_SOURCE_PATH_H
#define PERFJIT_SOURCE_PATH_H

#include "injector/log/lines/line_text.h"

#include <stddef.h>

/* Memory for the last result, to be used again and again. */
struct source_path {
    char *text;
    size_t capacity;
};

/* What FILE becomes: FILE itself, or a text in PATH until the next call.  Without memory: FILE. */
struct line_text source_path_of(struct source_path *path, struct line_text file);

void source_path_free(struct source_path *path);

#endif
