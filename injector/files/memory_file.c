/* See memory_file.h. */
#include "injector/files/memory_file.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FIRST_BYTES = 1 << 20, READ_BYTES = 1 << 18 };

static size_t next_capacity(const struct memory_file *file, size_t needed)
{
    size_t capacity = file->capacity ? file->capacity : FIRST_BYTES;
    while (capacity < needed && capacity <= SIZE_MAX / 2)
        capacity *= 2;
    return capacity;
}

uint8_t *memory_file_room(struct memory_file *file, size_t count)
{
    if (count > SIZE_MAX / 4 - file->size) {
        errno = ENOMEM;
        return NULL;
    }
    if (file->size + count > file->capacity) {
        size_t capacity = next_capacity(file, file->size + count);
        void *data = file->data ? mremap(file->data, file->capacity, capacity, MREMAP_MAYMOVE)
                                : mmap(NULL, capacity, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (data == MAP_FAILED)
            return NULL;
        file->data = data;
        file->capacity = capacity;
    }
    return file->data + file->size;
}

int memory_file_add(struct memory_file *file, const void *bytes, size_t count)
{
    uint8_t *room = memory_file_room(file, count);
    if (!room)
        return -1;
    if (count)
        memcpy(room, bytes, count);
    memory_file_grow(file, count);
    return 0;
}

int memory_file_read(struct memory_file *file, int fd)
{
    for (;;) {
        uint8_t *room = memory_file_room(file, READ_BYTES);
        if (!room)
            return -1;
        ssize_t count = read(fd, room, READ_BYTES);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return (int)count;
        memory_file_grow(file, (size_t)count);
    }
}

void memory_file_free(struct memory_file *file)
{
    if (file->data)
        munmap(file->data, file->capacity);
    *file = (struct memory_file){0};
}
