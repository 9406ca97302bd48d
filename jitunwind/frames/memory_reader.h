/* Reading memory that may not be there, in a signal handler.
 *
 * The kernel reads it: process_vm_readv on oneself, a piece of up to WINDOW_BYTES at once, as
 * stacks are read in order.  If that is refused (seccomp, qemu-user), rt_sigprocmask tells whether
 * memory is mapped: it reads the mask before it refuses the unknown operation.  Mapped memory is
 * then read in place.  Neither needs a descriptor, which the program might close.
 *
 * The thread's own stack is read in place, from its current place up to the top.  Its top is
 * glibc's __libc_stack_end or, of a thread that was created, its thread control block, which stands
 * above the stack in the same mapping.  A thread on another stack (a handler's, a coroutine's)
 * mostly has a hole between the two in the way, and the kernel reads.  Where there is no hole,
 * what lies between may be freed at any time.  So the kernel confirms each page in each walk, when
 * the walk first reads it.
 */
#ifndef JITUNWIND_MEMORY_READER_H
#define JITUNWIND_MEMORY_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* PIECE_BYTES: the size of a page, at least.  No smaller piece of memory is mapped by itself. */
enum { WINDOW_BYTES = 1024, PIECE_BYTES = 4096 };

struct memory_reader {
    uint64_t own_start, own_end;     /* the memory that is read in place; or both 0 */
    uint64_t stack_start, stack_end; /* this thread's stack, of which pieces are confirmed as they
                                      * are read; or both 0 */
    uint64_t start;                  /* of the bytes in the window */
    size_t bytes;
    uint8_t window[WINDOW_BYTES];
};

/* Begin, for this thread. */
void ju_memory_reader_begin(struct memory_reader *reader);

/* Copy the SIZE bytes at ADDR to TO.  Returns false if they are not all there.  Changes errno. */
bool ju_memory_read_there(uint64_t addr, void *to, size_t size);

/* Whether the SIZE bytes at ADDR are all there now.  Changes errno. */
bool ju_memory_is_there(uint64_t addr, size_t size);

/* The word at ADDR, as above. */
bool ju_memory_read_word(struct memory_reader *reader, uint64_t addr, uint64_t *word);

/* It is other frames' memory, of which sanitizers know better than to let it be read. */
__attribute__((no_sanitize("address", "thread"))) static inline uint64_t memory_word_in_place(
    uint64_t addr)
{
    return *(const volatile uint64_t *)(uintptr_t)addr;
}

static inline bool memory_read_word(struct memory_reader *reader, uint64_t addr, uint64_t *word)
{
    if (addr % sizeof *word || addr - reader->own_start >= reader->own_end - reader->own_start)
        return ju_memory_read_word(reader, addr, word);
    *word = memory_word_in_place(addr);
    return true;
}

#endif
