/* Structs that programs pass by their size, so that one built with an older or a newer header and
 * this library understand each other. */
#ifndef JITDUMP_SIZED_STRUCT_H
#define JITDUMP_SIZED_STRUCT_H

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* No version's struct is this large: a size above means that it was never set, and the memory there
 * is not read. */
enum { SIZED_STRUCT_MAX_BYTES = 4096 };

/* Copy the GIVEN_BYTES bytes of a struct from a caller built with another version's header into
 * KNOWN.  Members beyond its end are 0.  Returns -E2BIG if a member is set that this version does
 * not know, since it would be ignored.  Returns -EINVAL if the struct is smaller than LEAST_BYTES,
 * or too large. */
static inline int sized_struct_read(void *known, size_t known_bytes, const void *given,
                                    size_t given_bytes, size_t least_bytes)
{
    const unsigned char *bytes = given;
    if (given_bytes < least_bytes || given_bytes > SIZED_STRUCT_MAX_BYTES)
        return -EINVAL;
    for (size_t i = known_bytes; i < given_bytes; i++)
        if (bytes[i])
            return -E2BIG;
    memset(known, 0, known_bytes);
    memcpy(known, given, given_bytes < known_bytes ? given_bytes : known_bytes);
    return 0;
}

/* The other way: fill the GIVEN_BYTES bytes of a caller's struct from KNOWN, as much as it has room
 * for.  Members that this version does not know become 0.  -EINVAL as above: nothing is written. */
static inline int sized_struct_write(void *given, size_t given_bytes, const void *known,
                                     size_t known_bytes, size_t least_bytes)
{
    if (given_bytes < least_bytes || given_bytes > SIZED_STRUCT_MAX_BYTES)
        return -EINVAL;
    memset(given, 0, given_bytes);
    memcpy(given, known, given_bytes < known_bytes ? given_bytes : known_bytes);
    return 0;
}

#endif
