/* A file in memory that grows at its end: for unpacked data, and for data from a pipe. */
#ifndef PERFJIT_MEMORY_FILE_H
#define PERFJIT_MEMORY_FILE_H

#include <stddef.h>
#include <stdint.h>

struct memory_file {
    uint8_t *data;
    size_t size;
    size_t capacity; /* mapped */
};

/* The COUNT bytes after the end, for the caller to fill in and to count by memory_file_grow; NULL
 * without memory. Earlier pointers into the file are no longer valid. */
uint8_t *memory_file_room(struct memory_file *file, size_t count);

static inline void memory_file_grow(struct memory_file *file, size_t count)
{
    file->size += count;
}

/* Append.  Returns 0, or -1 without memory. */
int memory_file_add(struct memory_file *file, const void *bytes, size_t count);

/* Append all that can be read from FD.  Returns 0, or -1 with errno. */
int memory_file_read(struct memory_file *file, int fd);

void memory_file_free(struct memory_file *file);

#endif
