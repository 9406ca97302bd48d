/* Memory for rewriting a dump.  It is from mmap, since a stopped thread may be inside malloc. */
#ifndef JITDUMP_MAPPED_ARRAY_H
#define JITDUMP_MAPPED_ARRAY_H

#include <stddef.h>
#include <sys/mman.h>

struct mapped_array {
    void *data; /* NULL: none */
    size_t bytes;
};

/* Grow ARRAY to BYTES or more, keeping its contents.  New memory is zeros.  Returns 0 or -1. */
static inline int mapped_array_reserve(struct mapped_array *array, size_t bytes)
{
    if (bytes <= array->bytes)
        return 0;
    size_t more = array->bytes * 2 > bytes ? array->bytes * 2 : bytes;
    void *data = array->data
                     ? mremap(array->data, array->bytes, more, MREMAP_MAYMOVE)
                     : mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return -1;
    madvise(data, more, MADV_DONTFORK);
    *array = (struct mapped_array){data, more};
    return 0;
}

static inline void mapped_array_free(struct mapped_array *array)
{
    if (array->data)
        munmap(array->data, array->bytes);
    *array = (struct mapped_array){NULL, 0};
}

#endif
