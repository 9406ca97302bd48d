/* See memory_reader.h. */
#include "jitunwind/frames/memory_reader.h"

#include "jitdump/guest/thread_data.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* The size of a page, at least: no smaller piece of memory is mapped by itself. */
enum { PIECE_BYTES = 4096, LEAD_BYTES = 128 };

/* Set when process_vm_readv was refused, not for an address. */
static atomic_bool is_refused;

/* The system calls themselves: nothing that a sanitizer, or a preloaded library, has put around
 * them is in the way. */
static long read_by_kernel(uint64_t addr, void *to, size_t size)
{
    struct iovec local = {to, size}, remote = {(void *)(uintptr_t)addr, size};
    return syscall(SYS_process_vm_readv, getpid(), &local, 1UL, &remote, 1UL, 0UL);
}

static bool is_there(uint64_t addr)
{
    enum { NO_SUCH_CHANGE = -1, KERNEL_SIGSET_BYTES = 8 };
    long result = syscall(SYS_rt_sigprocmask, NO_SUCH_CHANGE, (const void *)(uintptr_t)addr, NULL,
                          (size_t)KERNEL_SIGSET_BYTES);
    return result == -1 && errno == EINVAL;
}

/* Whether the SIZE bytes at ADDR, at least 8, are there: the words at both ends of each piece. */
static bool are_there(uint64_t addr, size_t size)
{
    const uint64_t last = addr + size - sizeof(uint64_t);
    for (uint64_t at = addr; at < last; at += PIECE_BYTES)
        if (!is_there(at))
            return false;
    return is_there(last);
}

/* It is another thread's or frame's memory, of which sanitizers know better than to let it be read.
 */
__attribute__((no_sanitize("address", "thread"))) static void copy(uint8_t *to, uint64_t addr,
                                                                   size_t size)
{
    const volatile uint8_t *from = (const volatile uint8_t *)(uintptr_t)addr;
    size_t i = 0;
    for (uint64_t word; addr % sizeof word == 0 && i + sizeof word <= size; i += sizeof word) {
        word = *(const volatile uint64_t *)(uintptr_t)(addr + i);
        memcpy(to + i, &word, sizeof word);
    }
    for (; i < size; i++)
        to[i] = from[i];
}

bool ju_memory_read_there(uint64_t addr, void *to, size_t size)
{
    if (addr + size < addr)
        return false;
    if (!atomic_load_explicit(&is_refused, memory_order_relaxed)) {
        long got = read_by_kernel(addr, to, size);
        if (got >= 0 || errno == EFAULT)
            return got == (long)size;
        atomic_store_explicit(&is_refused, true, memory_order_relaxed);
    }
    if (!are_there(addr, size))
        return false;
    copy(to, addr, size);
    return true;
}

/* ---- The stack that this thread is running on ---- */

/* This thread's stack has been confirmed from here up to its top. */
static JD_THREAD_DATA uint64_t known_from;
/* And from this piece on it was not, or that was not the thread's stack. */
static JD_THREAD_DATA uint64_t unknown_from;

extern __attribute__((weak)) void *__libc_stack_end; /* of the first thread; glibc */

/* The nearest of the two above ADDR, or 0. */
static uint64_t stack_top(uint64_t addr)
{
    uint64_t first = &__libc_stack_end ? (uint64_t)(uintptr_t)__libc_stack_end : 0;
    uint64_t other = (uint64_t)(uintptr_t)__builtin_thread_pointer();
    if (first <= addr || (other > addr && other < first))
        first = other;
    return first > addr ? first / sizeof(uint64_t) * sizeof(uint64_t) : 0;
}

/* Whether all pieces from FROM up to TO are there. */
static bool are_all_there(uint64_t from, uint64_t to)
{
    for (; from < to; from += PIECE_BYTES)
        if (!is_there(from))
            return false;
    return true;
}

void ju_memory_reader_begin(struct memory_reader *reader)
{
    enum { MOST_BYTES = 8 << 20 }; /* to look at */
    const uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    const uint64_t from = here / PIECE_BYTES * PIECE_BYTES, top = stack_top(here);
    reader->own_start = reader->own_end = reader->start = 0;
    reader->bytes = 0;
    if (from == unknown_from || top - from > MOST_BYTES)
        return;
    const bool has_more = known_from > from || known_from == 0;
    if (has_more && !are_all_there(from + PIECE_BYTES, known_from ? known_from : top)) {
        unknown_from = from;
        return;
    }
    if (has_more)
        known_from = from;
    reader->own_start = from;
    reader->own_end = top;
}

/* ---- Others ---- */

/* Fill the window with the bytes around ADDR in its piece.  A frame's registers are read from the
 * return address downwards, so the window begins before ADDR. */
static bool fill(struct memory_reader *reader, uint64_t addr)
{
    const uint64_t in_piece = addr % PIECE_BYTES;
    reader->start = addr - (in_piece < LEAD_BYTES ? in_piece : LEAD_BYTES);
    reader->bytes = 0;
    uint64_t left = PIECE_BYTES - reader->start % PIECE_BYTES;
    size_t size = left < WINDOW_BYTES ? (size_t)left : WINDOW_BYTES;
    if (!ju_memory_read_there(reader->start, reader->window, size))
        return false;
    reader->bytes = size;
    return true;
}

static bool has(const struct memory_reader *reader, uint64_t addr, size_t size)
{
    return addr >= reader->start && addr - reader->start <= reader->bytes &&
           size <= reader->bytes - (addr - reader->start);
}

bool ju_memory_read_word(struct memory_reader *reader, uint64_t addr, uint64_t *word)
{
    const size_t size = sizeof *word;
    if (!has(reader, addr, size) && (!fill(reader, addr) || !has(reader, addr, size)))
        return ju_memory_read_there(addr, word, size);
    memcpy(word, reader->window + (addr - reader->start), size);
    return true;
}
