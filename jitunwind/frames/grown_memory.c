/* See grown_memory.h. */
#include "jitunwind/frames/grown_memory.h"

#include <sys/mman.h>

size_t ju_grown_bytes(size_t bytes)
{
    return (bytes + GROWN_STEP_BYTES - 1) / GROWN_STEP_BYTES * GROWN_STEP_BYTES;
}

void *ju_grown_reserve(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

bool ju_grown_reach(struct grown_memory *memory, size_t bytes)
{
    /* Of what is there a part comes on top, so that few calls suffice.  What is small is usable as
     * a whole: a process has few mappings, and each end of what is usable makes another. */
    enum { PART = 8, SMALL_BYTES = 4 * GROWN_STEP_BYTES };
    if (bytes <= memory->usable)
        return true;
    if (bytes > memory->bytes)
        return false;
    size_t more = ju_grown_bytes(bytes - memory->usable);
    if (more < memory->usable / PART)
        more = ju_grown_bytes(memory->usable / PART);
    if (memory->bytes <= SMALL_BYTES)
        more = memory->bytes;
    if (more > memory->bytes - memory->usable)
        more = memory->bytes - memory->usable;
    if (mprotect(memory->base + memory->usable, more, PROT_READ | PROT_WRITE) != 0)
        return false;
    memory->usable += more;
    return true;
}
