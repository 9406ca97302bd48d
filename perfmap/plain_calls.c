/* The call that perfmap.h has inline, as a function: for callers that have no C compiler at hand
 * (FFI, dlopen), and what knows no handle. */
#define PERFMAP_NO_INLINE
#include "perfmap/perfmap.h"

const char *perfmap_version(void)
{
    return PERFMAP_VERSION;
}

/* Where all sources are one file, their includer may have the inline call already. */
#ifdef PERFMAP_NO_INLINE

int perfmap_add(struct perfmap *map, uint64_t addr, uint64_t size_bytes, const char *name)
{
    return perfmap_add_on(map, addr, size_bytes, name);
}

#endif
