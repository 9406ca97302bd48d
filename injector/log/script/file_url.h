/* Files that are named by URLs: V8 names ES modules so, Deno all of its scripts, and source maps
 * what a script was made of. */
#ifndef PERFJIT_FILE_URL_H
#define PERFJIT_FILE_URL_H

#include <stddef.h>

/* Put the path of the BYTES bytes at URL into TO, of as much room, if it is a file:// URL of this
 * host: decoded, and without a query and a fragment.  Returns the path's bytes; 0: it is no such
 * URL. */
size_t file_url_path(char *to, const char *url, size_t bytes);

/* Put TEXT into TO, which may be TEXT, each %XX as its byte, but for %00.  Returns the bytes. */
size_t percent_decode(char *to, const char *text, size_t bytes);

#endif
