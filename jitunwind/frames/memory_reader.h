/* Reading memory that may not be there, in a signal handler.
 *
 * The kernel reads it: process_vm_readv on oneself, a piece of up to WINDOW_BYTES at once, as
 * stacks are read in order.  Where that is refused (seccomp, qemu-user), rt_sigprocmask, which
 * looks at the mask that it is to set before it refuses what it is to do with it, says whether
 * memory is there, and it is read in place.  Neither needs a descriptor that somebody might close.
 *
 * The stack that the thread is running on is read in place, from where it is now up to its top,
 * once the kernel has said of each page that it is there: as long as the thread is below it, it
 * stays.  Its top is glibc's __libc_stack_end or, of a thread that was created, its thread control
 * block, which stands above the stack in the same mapping.  A thread on another stack (a handler's,
 * a coroutine's) has the hole between the two in the way, and the kernel reads.
 */
#ifndef JITUNWIND_MEMORY_READER_H
#define JITUNWIND_MEMORY_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WINDOW_BYTES = 1024 };

struct memory_reader {
    uint64_t own_start, own_end; /* what is read in place; or both 0 */
    uint64_t start;              /* of what is in the window */
    size_t bytes;
    uint8_t window[WINDOW_BYTES];
};

/* Begin, for this thread. */
void ju_memory_reader_begin(struct memory_reader *reader);

/* Copy SIZE bytes, at most WINDOW_BYTES, at ADDR to TO.  Returns false if they are not all there.
 * Changes errno. */
bool ju_memory_read(struct memory_reader *reader, uint64_t addr, void *to, size_t size);

/* The same without a window. */
bool ju_memory_read_there(uint64_t addr, void *to, size_t size);

static inline bool memory_read_word(struct memory_reader *reader, uint64_t addr, uint64_t *word)
{
    return ju_memory_read(reader, addr, word, sizeof *word);
}

#endif
