/* xxHash, from its header alone: a library less to find whenever the command starts.  Without the
 * hints it builds with every -O that a user may want. */
#ifndef PERFJIT_HASH_H
#define PERFJIT_HASH_H

#define XXH_INLINE_ALL
#define XXH_NO_INLINE_HINTS 1
#include <xxhash.h>

#endif
