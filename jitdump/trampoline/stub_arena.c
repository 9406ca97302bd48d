/* See stub_arena.h. */
#include "jitdump/trampoline/stub_arena.h"

#include "jitdump/guest/record_author.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(struct stub) <= STUB_WORD_STRIDE, "it stands there");

/* A child asks the kernel each time, which is fast enough. */
static uint32_t this_thread(const struct stub_arena *arena)
{
    if (jd_fork_mark_is_inherited(&arena->fork_mark))
        return jd_thread_id();
    return jd_author((uint32_t)arena->fork_mark.pid).tid;
}

int jd_stub_lock(struct stub_arena *arena)
{
    return jd_lock(&arena->lock, this_thread(arena), JD_PATIENCE_NS);
}

void jd_stub_unlock(struct stub_arena *arena)
{
    jd_unlock(&arena->lock);
}

/* ---- Places ---- */

static size_t chunk_offset(uint32_t number)
{
    return (size_t)(number % STUBS_IN_BLOCK / STUBS_IN_CHUNK) * STUB_CHUNK_BYTES;
}

static uint8_t *code_of(const struct stub_arena *arena, uint32_t number)
{
    return arena->blocks[number / STUBS_IN_BLOCK] + chunk_offset(number) +
           (size_t)(number % STUBS_IN_CHUNK) * STUB_CODE_STRIDE;
}

/* From a stub's code to its word. */
static size_t word_offset(uint32_t number)
{
    const size_t in_chunk = number % STUBS_IN_CHUNK;
    return (STUBS_IN_CHUNK - in_chunk) * STUB_CODE_STRIDE + in_chunk * STUB_WORD_STRIDE;
}

static struct stub *word_of(const struct stub_arena *arena, uint32_t number)
{
    return (struct stub *)(void *)(code_of(arena, number) + word_offset(number));
}

const uint8_t *jd_stub_code(const struct stub *stub)
{
    return (const uint8_t *)stub - word_offset(stub->number);
}

const uint8_t *jd_stub_code_numbered(const struct stub_arena *arena, uint32_t number)
{
    return code_of(arena, number);
}

struct stub *jd_stub_numbered(const struct stub_arena *arena, uint32_t number)
{
    struct stub *stub = number < arena->used ? word_of(arena, number) : NULL;
    return stub && stub->name ? stub : NULL;
}

struct stub *jd_stub_at(const struct stub_arena *arena, const void *addr)
{
    for (uint32_t i = 0; i < STUB_BLOCKS && arena->blocks[i]; i++) {
        const size_t offset = (size_t)((uintptr_t)addr - (uintptr_t)arena->blocks[i]);
        const size_t in_chunk = offset % STUB_CHUNK_BYTES;
        if (offset >= STUB_BLOCK_BYTES || in_chunk % STUB_CODE_STRIDE != 0 ||
            in_chunk / STUB_CODE_STRIDE >= STUBS_IN_CHUNK)
            continue;
        return jd_stub_numbered(arena, (uint32_t)(i * STUBS_IN_BLOCK +
                                                  offset / STUB_CHUNK_BYTES * STUBS_IN_CHUNK +
                                                  in_chunk / STUB_CODE_STRIDE));
    }
    return NULL;
}

/* ---- Pages ---- */

static int reserve_block(uint8_t **block, const char **what)
{
    void *base =
        mmap(NULL, STUB_BLOCK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *what = "no addresses for trampolines";
    if (base == MAP_FAILED)
        return -errno;
    *block = base;
    return 0;
}

/* Write the code of the stubs in an unpublished page, and make it executable. */
static int make_page(struct stub_arena *arena, uint32_t first, const char **what)
{
    uint8_t *page = code_of(arena, first);
    const uint32_t stubs = (uint32_t)(arena->page_bytes / STUB_CODE_STRIDE);
    *what = "no memory for trampolines";
    if (mprotect(page, arena->page_bytes, PROT_READ | PROT_WRITE) != 0)
        return -errno;
    for (uint32_t i = 0; i < stubs; i++)
        jd_stub_code_write(page + (size_t)i * STUB_CODE_STRIDE, word_offset(first + i),
                           arena->mark + first + i);
    __builtin___clear_cache((char *)page, (char *)page + arena->page_bytes);
    *what = "trampolines can't be made executable (SELinux's execmem, PR_SET_MDWE and the like "
            "forbid it)";
    if (mprotect(page, arena->page_bytes, PROT_READ | PROT_EXEC) != 0)
        return -errno;
    arena->ready = first + stubs;
    return 0;
}

static int make_ready(struct stub_arena *arena, const char **what)
{
    const uint32_t number = arena->ready;
    *what = "all trampolines are used";
    if (number == (uint32_t)STUB_BLOCKS * STUBS_IN_BLOCK)
        return -ENOSPC;
    uint8_t **block = &arena->blocks[number / STUBS_IN_BLOCK];
    int error = *block ? 0 : reserve_block(block, what);
    if (error)
        return error;
    *what = "no memory for trampolines";
    if (number % STUBS_IN_CHUNK == 0 &&
        mprotect(word_of(arena, number), (size_t)STUBS_IN_CHUNK * STUB_WORD_STRIDE,
                 PROT_READ | PROT_WRITE) != 0)
        return -errno;
    return make_page(arena, number, what);
}

/* After a failure it is not tried again for each function. */
static int take_new(struct stub_arena *arena, struct stub **stub, const char **what)
{
    if (arena->used == arena->ready) {
        if (jd_failure_is_fresh(&arena->failure))
            return arena->failure.error;
        int error = make_ready(arena, what);
        jd_failure_note(&arena->failure, error);
        if (error)
            return error;
    }
    *stub = word_of(arena, arena->used);
    (*stub)->number = arena->used++;
    return 0;
}

static int take(struct stub_arena *arena, struct stub **stub, const char **what)
{
    if (!arena->first_free)
        return take_new(arena, stub, what);
    *stub = word_of(arena, arena->first_free - 1);
    arena->first_free = (*stub)->next_free;
    return 0;
}

/* ---- Names ---- */

/* Returns the name to free, or NULL.  The lock is held. */
static struct stub_file *leave_file(struct stub_file *file)
{
    return file && --file->users == 0 ? file : NULL;
}

static int new_file(struct stub_arena *arena, const char *path, struct stub_file **file)
{
    const size_t bytes = strlen(path) + 1;
    struct stub_file *made = malloc(sizeof *made + bytes);
    if (!made)
        return -ENOMEM;
    made->users = 2;
    memcpy(made->path, path, bytes);
    if (jd_stub_lock(arena)) {
        free(made);
        return -EAGAIN;
    }
    struct stub_file *before = arena->newest_file;
    arena->newest_file = *file = made;
    atomic_signal_fence(memory_order_seq_cst); /* cancelled here, it leaves a user too many */
    struct stub_file *garbage = leave_file(before);
    jd_stub_unlock(arena);
    free(garbage);
    return 0;
}

/* Functions are mostly added file by file. */
static int find_file(struct stub_arena *arena, const char *path, struct stub_file **file)
{
    if (jd_stub_lock(arena))
        return -EAGAIN;
    struct stub_file *newest = arena->newest_file;
    const bool is_newest = newest && strcmp(newest->path, path) == 0;
    if (is_newest) {
        newest->users++;
        *file = newest;
    }
    jd_stub_unlock(arena);
    return is_newest ? 0 : new_file(arena, path, file);
}

void jd_stub_name_free(struct stub_name *name)
{
    free(name->file);
    free(name);
}

static int new_name(struct stub_arena *arena, const char *text, const char *path, uint32_t line,
                    struct stub_name **name)
{
    const size_t bytes = strlen(text) + 1;
    struct stub_name *made = malloc(sizeof *made + bytes);
    if (!made)
        return -ENOMEM;
    made->file = NULL;
    made->line = line;
    memcpy(made->text, text, bytes);
    int error = path && *path ? find_file(arena, path, &made->file) : 0;
    if (error)
        free(made);
    else
        *name = made;
    return error;
}

/* ---- Stubs ---- */

static void use(struct stub_arena *arena, struct stub *stub, uint64_t entry, struct stub_name *name)
{
    stub->entry = entry;
    atomic_store_explicit(&stub->code_index, JITDUMP_NO_CODE, memory_order_relaxed);
    stub->name = name;
    arena->in_use++;
}

int jd_stub_make(struct stub_arena *arena, uint64_t entry, const char *name, const char *file,
                 uint32_t line, struct stub **stub, const char **what)
{
    struct stub_name *named;
    *what = "no memory for a trampoline's name";
    int error = new_name(arena, name, file, line, &named);
    if (error)
        return error;
    if (jd_stub_lock(arena)) {
        named->file = NULL; /* it stays, for want of the lock */
        jd_stub_name_free(named);
        return -EAGAIN;
    }
    error = take(arena, stub, what);
    if (error)
        named->file = leave_file(named->file);
    else
        use(arena, *stub, entry, named);
    jd_stub_unlock(arena);
    if (error)
        jd_stub_name_free(named);
    return error;
}

struct stub_name *jd_stub_drop(struct stub_arena *arena, struct stub *stub)
{
    struct stub_name *name = stub->name;
    stub->name = NULL;
    stub->next_free = arena->first_free;
    arena->first_free = stub->number + 1;
    arena->in_use--;
    name->file = leave_file(name->file);
    return name;
}

/* ---- The arena ---- */

/* A number that other processes' stubs lack: perf keeps files by the build-ids made of it. */
static uint32_t first_mark(const struct stub_arena *arena)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t mixed = ((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec) ^
                     (uint64_t)(uintptr_t)arena << 16 ^ (uint64_t)getpid() << 40;
    return (uint32_t)(mixed * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

struct stub_arena *jd_stub_arena_new(void)
{
    struct stub_arena *arena = calloc(1, sizeof *arena);
    if (!arena)
        return NULL;
    jd_fork_mark_set(&arena->fork_mark);
    arena->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    arena->mark = first_mark(arena);
    if (jd_stub_code_describe(&arena->cfi, &arena->unwind) != 0) {
        jd_stub_arena_free(arena, false);
        return NULL;
    }
    return arena;
}

static void release_blocks(uint8_t *const blocks[STUB_BLOCKS])
{
    for (size_t i = 0; i < STUB_BLOCKS && blocks[i]; i++)
        munmap(blocks[i], STUB_BLOCK_BYTES);
}

int jd_stub_clear(struct stub_arena *arena)
{
    uint8_t *blocks[STUB_BLOCKS] = {0};
    if (jd_stub_lock(arena))
        return -EAGAIN;
    if (!arena->in_use) {
        memcpy(blocks, arena->blocks, sizeof blocks);
        memset(arena->blocks, 0, sizeof arena->blocks);
        arena->mark += arena->ready;
        arena->used = arena->ready = arena->first_free = 0;
    }
    jd_stub_unlock(arena);
    release_blocks(blocks);
    return 0;
}

void jd_stub_arena_free(struct stub_arena *arena, bool keep_code)
{
    for (uint32_t i = 0; i < arena->used; i++) {
        struct stub *stub = jd_stub_numbered(arena, i);
        if (stub)
            jd_stub_name_free(jd_stub_drop(arena, stub));
    }
    free(leave_file(arena->newest_file));
    if (!keep_code)
        release_blocks(arena->blocks);
    jitdump_cfi_free(arena->cfi);
    jd_fork_mark_free(&arena->fork_mark);
    free(arena);
}
