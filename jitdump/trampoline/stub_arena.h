/* The memory of trampolines: stubs of code, each with a word that it reads, and what is told of it.
 *
 * A block of addresses is reserved at once and taken into use a page at a time:
 *
 *     block     chunk | chunk | ...                          chunks of CHUNK_BYTES
 *     chunk     code: STUBS_IN_CHUNK times CODE_STRIDE       PROT_READ | PROT_EXEC
 *               words: STUBS_IN_CHUNK times WORD_STRIDE      PROT_READ | PROT_WRITE
 *
 * A page of code is written before anybody knows of it, made executable, and never written again:
 * no page is both, at no time, and what a stub calls is changed by a store to its word.  Behind
 * each stub's code there is room for its unwind tables, because perf inject maps them there.
 *
 * Stubs have numbers, in the order in which they were first used.  A stub with a name is in use.
 * The lock is held for what is done to the list of free ones and to names; who holds it may be gone
 * in the middle (brief_lock.h): then a stub is lost, no more.
 */
#ifndef JITDUMP_STUB_ARENA_H
#define JITDUMP_STUB_ARENA_H

#include "jitdump/guest/brief_lock.h"
#include "jitdump/guest/failure.h"
#include "jitdump/guest/fork_mark.h"
#include "jitdump/trampoline/stub_code.h"

enum {
    STUB_CODE_STRIDE = 128,
    STUB_WORD_STRIDE = 32,
    STUBS_IN_CHUNK = 2048, /* so that words begin at a page, be it one of 64 KiB */
    STUB_CHUNK_BYTES = STUBS_IN_CHUNK * (STUB_CODE_STRIDE + STUB_WORD_STRIDE),
    STUB_CHUNKS = 64,
    STUBS_IN_BLOCK = STUB_CHUNKS * STUBS_IN_CHUNK,
    STUB_BLOCK_BYTES = STUB_CHUNKS * STUB_CHUNK_BYTES,
    STUB_BLOCKS = 64
};

/* A source file, which many functions have in common. */
struct stub_file {
    size_t users; /* names, and the arena if it is its newest file */
    char path[];
};

/* What is told of a stub. */
struct stub_name {
    struct stub_file *file; /* NULL: none */
    uint32_t line;
    char text[];
};

/* What stands at a stub's word. */
struct stub {
    uint64_t entry;              /* what the code calls */
    _Atomic uint64_t code_index; /* JITDUMP_NO_CODE: it is in no dump */
    struct stub_name *name;      /* NULL: not in use */
    uint32_t next_free;          /* its number + 1; 0: none */
    uint32_t number;
};

struct stub_arena {
    struct brief_lock lock;
    struct fork_mark fork_mark;
    uint8_t *blocks[STUB_BLOCKS]; /* in the order of numbers; NULL: not reserved */
    uint32_t used;                /* numbers below it have been used */
    uint32_t ready;               /* those below it have code */
    uint32_t in_use;
    uint32_t first_free; /* a number + 1; 0: none */
    uint32_t mark;       /* behind the code of the first stub */
    size_t page_bytes;
    struct stub_file *newest_file; /* or NULL */
    struct failure failure;
    struct jitdump_cfi *cfi; /* has UNWIND */
    struct jitdump_unwind unwind;
};

/* Returns NULL if there is no memory. */
struct stub_arena *jd_stub_arena_new(void);

/* Free ARENA, that nobody uses.  With KEEP_CODE its stubs stay, and go on calling. */
void jd_stub_arena_free(struct stub_arena *arena, bool keep_code);

/* Returns 0, or -EAGAIN if a stopped thread has the lock. */
int jd_stub_lock(struct stub_arena *arena);
void jd_stub_unlock(struct stub_arena *arena);

/* Make a stub that calls ENTRY.  FILE: NULL for none.  Takes the lock.  Returns 0; -EAGAIN;
 * -ENOSPC if all are used; or the error of a system call, WHAT saying what it was to do. */
int jd_stub_make(struct stub_arena *arena, uint64_t entry, const char *name, const char *file,
                 uint32_t line, struct stub **stub, const char **what);

/* Give the memory of all stubs back, if none is in use.  Takes the lock.  Returns 0 or -EAGAIN. */
int jd_stub_clear(struct stub_arena *arena);

/* ---- Calls for who has the lock, or ARENA to himself ---- */

/* STUB, which is in use, no longer is, nor on any stack.  Returns what is to be freed by
 * jd_stub_name_free when the lock is not held any more. */
struct stub_name *jd_stub_drop(struct stub_arena *arena, struct stub *stub);
void jd_stub_name_free(struct stub_name *name);

/* The stub whose code begins at ADDR, and the one with NUMBER, below `used`: NULL if it is not in
 * use. */
struct stub *jd_stub_at(const struct stub_arena *arena, const void *addr);
struct stub *jd_stub_numbered(const struct stub_arena *arena, uint32_t number);

/* Where its code is, and that of the one with NUMBER, below `used`. */
const uint8_t *jd_stub_code(const struct stub *stub);
const uint8_t *jd_stub_code_numbered(const struct stub_arena *arena, uint32_t number);

#endif
