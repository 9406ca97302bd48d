/* Memory for code, in blocks, and who owns each block: what address_churn does its mischief with. */
#ifndef CHURN_ARENA_H
#define CHURN_ARENA_H

#include "tests/producers/loop_code.h"
#include "tests/producers/run_log.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    PAGE_BYTES = 4096,
    PAGE_BLOCKS = PAGE_BYTES / LOOP_BLOCK_BYTES,
    ARENA_PAGES = 4,
    ARENA_BLOCKS = ARENA_PAGES * PAGE_BLOCKS,
};

enum write_mode { WRITE_ANY_TIME, WRITE_OR_EXECUTE, WRITE_AND_EXECUTE, WRITE_ELSEWHERE };

struct function {
    char name[RUN_NAME_BYTES];
    uint64_t code_index;
    uint32_t first, blocks; /* where it stands */
    size_t bytes;
    int pid;
};

struct arena {
    enum write_mode mode;
    uint8_t *exec, *write; /* the same memory */
    uint8_t *other_home;   /* where it can move to and from, or NULL */
    size_t bytes;
    int fd;
    pthread_mutex_t lock; /* of its protection */
    struct function *owners[ARENA_BLOCKS];
    uint32_t fills[ARENA_BLOCKS]; /* how often each block got an owner */
    unsigned long flips;          /* of protection */
};

static inline void fail(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

static inline void *map(size_t bytes, int protection, int flags, int fd)
{
    void *memory = mmap(NULL, bytes, protection, flags, fd, 0);
    if (memory == MAP_FAILED)
        fail("address_churn: mmap");
    return memory;
}

static inline void protect(uint8_t *start, size_t bytes, int protection)
{
    if (mprotect(start, bytes, protection))
        fail("address_churn: mprotect");
}

/* ---- Mapping ---- */

static inline void open_arena(struct arena *arena, enum write_mode mode, size_t pages)
{
    *arena = (struct arena){.mode = mode, .bytes = pages * PAGE_BYTES, .fd = -1};
    pthread_mutex_init(&arena->lock, NULL);
    if (mode == WRITE_ELSEWHERE) {
        arena->fd = memfd_create("code of address_churn", MFD_CLOEXEC);
        if (arena->fd < 0 || ftruncate(arena->fd, (off_t)arena->bytes))
            fail("address_churn: memfd");
        arena->write = map(arena->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, arena->fd);
        arena->exec = map(arena->bytes, PROT_READ | PROT_EXEC, MAP_SHARED, arena->fd);
        return;
    }
    int write = mode == WRITE_ANY_TIME ? PROT_WRITE : 0;
    arena->exec = arena->write =
        map(arena->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    /* Pages that are first touched one by one, each while it alone is writable, never become one mapping
     * again, and mremap takes only one. */
    memset(arena->write, 0xcc, arena->bytes);
    protect(arena->exec, arena->bytes, PROT_READ | PROT_EXEC | write);
}

/* An arena with room behind it into which it can grow, and a second home. */
static inline void open_growing_arena(struct arena *arena)
{
    open_arena(arena, WRITE_OR_EXECUTE, ARENA_PAGES);
    arena->other_home = map(arena->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    arena->bytes /= 2;
    protect(arena->exec + arena->bytes, arena->bytes, PROT_NONE);
}

/* Only while there is one thread: another could take the room. */
static inline void grow(struct arena *arena)
{
    munmap(arena->exec + arena->bytes, arena->bytes);
    if (mremap(arena->exec, arena->bytes, 2 * arena->bytes, 0) == MAP_FAILED)
        fail("address_churn: mremap of an arena that shall grow");
    arena->bytes *= 2;
}

/* Map the executable side of a memfd over itself. */
static inline void remap(struct arena *arena)
{
    if (mmap(arena->exec, arena->bytes, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, arena->fd,
             0) == MAP_FAILED)
        fail("address_churn: mmap of a memfd");
}

/* ---- Writing ---- */

static inline void begin_write(struct arena *arena, uint32_t first, uint32_t blocks)
{
    size_t start = first * (size_t)LOOP_BLOCK_BYTES / PAGE_BYTES * PAGE_BYTES;
    size_t end = (first + blocks) * (size_t)LOOP_BLOCK_BYTES;
    pthread_mutex_lock(&arena->lock);
    if (arena->mode == WRITE_OR_EXECUTE)
        protect(arena->exec + start, end - start, PROT_READ | PROT_WRITE);
    else if (arena->mode == WRITE_AND_EXECUTE)
        protect(arena->exec, arena->bytes, PROT_READ | PROT_WRITE | PROT_EXEC);
}

static inline void end_write(struct arena *arena, uint32_t first, uint32_t blocks)
{
    if (arena->mode == WRITE_OR_EXECUTE || arena->mode == WRITE_AND_EXECUTE) {
        protect(arena->exec, arena->bytes, PROT_READ | PROT_EXEC);
        arena->flips++;
    }
    pthread_mutex_unlock(&arena->lock);
    loop_code_ready(arena->exec + (size_t)first * LOOP_BLOCK_BYTES,
                    (size_t)blocks * LOOP_BLOCK_BYTES);
}

static inline uint8_t *block_at(uint8_t *memory, uint32_t block)
{
    return memory + (size_t)block * LOOP_BLOCK_BYTES;
}

static inline void copy_loops(struct arena *from, uint32_t first, struct arena *to, uint32_t at,
                              uint32_t blocks)
{
    begin_write(to, at, blocks);
    memmove(block_at(to->write, at), block_at(from->write, first),
            (size_t)blocks * LOOP_BLOCK_BYTES);
    end_write(to, at, blocks);
}

static inline void flip_for_nothing(struct arena *arena)
{
    begin_write(arena, 0, (uint32_t)(arena->bytes / LOOP_BLOCK_BYTES));
    end_write(arena, 0, (uint32_t)(arena->bytes / LOOP_BLOCK_BYTES));
}

/* ---- Owners ---- */

static inline void own(struct arena *arena, struct function *function)
{
    for (uint32_t i = 0; i < function->blocks; i++)
        arena->owners[function->first + i] = function;
}

static inline void count_fill(struct arena *arena, const struct function *function)
{
    for (uint32_t i = 0; i < function->blocks; i++)
        arena->fills[function->first + i]++;
}

static inline void disown(struct arena *arena, const struct function *function)
{
    for (uint32_t i = 0; i < function->blocks; i++)
        if (arena->owners[function->first + i] == function)
            arena->owners[function->first + i] = NULL;
}

static inline bool is_whole(const struct arena *arena, const struct function *function)
{
    for (uint32_t i = 0; i < function->blocks; i++)
        if (arena->owners[function->first + i] != function)
            return false;
    return true;
}

/* How often the block was filled that was filled most often. */
static inline uint32_t most_fills(const struct arena *arena)
{
    uint32_t most = 0;
    for (int i = 0; i < ARENA_BLOCKS; i++)
        most = arena->fills[i] > most ? arena->fills[i] : most;
    return most;
}

#endif
