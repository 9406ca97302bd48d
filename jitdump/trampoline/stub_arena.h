/* The memory of trampolines: stubs of code.  Each stub has a word that it reads, a name and a line.
 *
 * A block of addresses is reserved at once and taken into use a page at a time:
 *
 *     block     chunk | chunk | ...                          chunks of CHUNK_BYTES
 *     chunk     code: STUBS_IN_CHUNK times CODE_STRIDE       PROT_READ | PROT_EXEC
 *               words: STUBS_IN_CHUNK times WORD_STRIDE      PROT_READ | PROT_WRITE
 *
 * A page of code is written before it is published, made executable, and never written again.  So
 * no page is ever writable and executable.  A store to a stub's word changes the function that the
 * stub calls.  Behind each stub's code there is room for its unwind tables, because perf inject
 * maps them there.
 *
 * Stubs have numbers, in the order in which they were first used.  A stub with a name is in use.
 * The lock guards the list of free stubs, and names.  Its holder may be gone in the middle
 * (brief_lock.h).  Then only a stub is lost.
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

/* The name of a stub. */
struct stub_name {
    struct stub_file *file; /* NULL: none */
    uint32_t line;
    char text[];
};

/* A stub's word, and what belongs to it. */
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
    uint32_t first_free; /* number + 1; 0: none */
    uint32_t mark;       /* behind the code of the first stub */
    size_t page_bytes;
    struct stub_file *newest_file; /* or NULL */
    struct failure failure;
    struct jitdump_cfi *cfi; /* has UNWIND */
    struct jitdump_unwind unwind;
};

/* Returns NULL if there is no memory. */
struct stub_arena *jd_stub_arena_new(void);

/* Free ARENA, which must not be in use.  With KEEP_CODE its stubs stay, and go on calling. */
void jd_stub_arena_free(struct stub_arena *arena, bool keep_code);

/* Returns 0, or -EAGAIN if a stopped thread has the lock. */
int jd_stub_lock(struct stub_arena *arena);
void jd_stub_unlock(struct stub_arena *arena);

/* Make a stub that calls ENTRY.  FILE: NULL for none.  Takes the lock.  Returns 0; -EAGAIN; -ENOSPC
 * if all are used; or the error of a system call, and then WHAT is the call's purpose. */
int jd_stub_make(struct stub_arena *arena, uint64_t entry, const char *name, const char *file,
                 uint32_t line, struct stub **stub, const char **what);

/* Give the memory of all stubs back, if none is in use.  Takes the lock.  Returns 0 or -EAGAIN. */
int jd_stub_clear(struct stub_arena *arena);

/* ---- Calls with the lock held, or while no other thread uses ARENA ---- */

/* Free STUB, which is in use and on no stack.  Returns its name: pass it to jd_stub_name_free after
 * the lock was released. */
struct stub_name *jd_stub_drop(struct stub_arena *arena, struct stub *stub);
void jd_stub_name_free(struct stub_name *name);

/* The stub whose code begins at ADDR, and the one with NUMBER, below `used`: NULL if it is not in
 * use. */
struct stub *jd_stub_at(const struct stub_arena *arena, const void *addr);
struct stub *jd_stub_numbered(const struct stub_arena *arena, uint32_t number);

/* The code of STUB, and of the stub with NUMBER, below `used`. */
const uint8_t *jd_stub_code(const struct stub *stub);
const uint8_t *jd_stub_code_numbered(const struct stub_arena *arena, uint32_t number);

#endif
