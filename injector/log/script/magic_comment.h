/* Comments by which a script tells where it comes from:
 *
 *     //# sourceMappingURL=app.js.map            its source map
 *     //# sourceURL=webpack-internal:///a.js     its name, if it was compiled in memory */
#ifndef PERFJIT_MAGIC_COMMENT_H
#define PERFJIT_MAGIC_COMMENT_H

#include <stddef.h>

/* The value of KEY, "sourceURL=", in the last line of code or in the comments behind it,
 * NUL-terminated in TEXT; or NULL.  TEXT has room for a NUL behind its BYTES. */
char *magic_comment(char *text, size_t bytes, const char *key);

#endif
