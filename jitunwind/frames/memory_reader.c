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

enum { LEAD_BYTES = 128 };

/* Set when process_vm_readv was refused, not for an address. */
static atomic_bool is_refused;

/* The system calls themselves: nothing that a sanitizer, or a preloaded library, has put around
 * them is in the way.  And an old glibc remembers the pid, which a clone(2) changes. */
static long read_by_kernel(uint64_t addr, void *to, size_t size)
{
    struct iovec local = {to, size}, remote = {(void *)(uintptr_t)addr, size};
    return syscall(SYS_process_vm_readv, syscall(SYS_getpid), &local, 1UL, &remote, 1UL, 0UL);
}

/* Whether the aligned word at ADDR is there. */
static bool is_there(uint64_t addr)
{
    enum { NO_SUCH_CHANGE = -1, KERNEL_SIGSET_BYTES = 8 };
    long result = syscall(SYS_rt_sigprocmask, NO_SUCH_CHANGE, (const void *)(uintptr_t)addr, NULL,
                          (size_t)KERNEL_SIGSET_BYTES);
    return result == -1 && errno == EINVAL;
}

/* Whether all from FROM up to TO is there: a word in each piece. */
static bool are_there(uint64_t from, uint64_t to)
{
    for (uint64_t at = from; at < to; at = (at / PIECE_BYTES + 1) * PIECE_BYTES)
        if (!is_there(at / sizeof at * sizeof at))
            return false;
    return true;
}

bool ju_memory_is_there(uint64_t addr, size_t size)
{
    return addr + size >= addr && are_there(addr, addr + size);
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
        if (errno != ENOMEM)
            atomic_store_explicit(&is_refused, true, memory_order_relaxed);
    }
    if (!are_there(addr, addr + size))
        return false;
    copy(to, addr, size);
    return true;
}

/* ---- The stack that this thread is running on ---- */

/* This thread's memory from here up to its stack's top has been there once, without a hole. */
static JD_THREAD_DATA uint64_t known_from;
/* And from this piece on it was not, or that was not the thread's stack. */
static JD_THREAD_DATA uint64_t unknown_from;

enum thread_kind { KIND_UNKNOWN, FIRST_THREAD, CREATED_THREAD };
static JD_THREAD_DATA enum thread_kind thread_kind;

extern __attribute__((weak)) void *__libc_stack_end; /* of the first thread; glibc */

/* The first thread's control block is not on its stack: other memory is below it. */
static uint64_t stack_top(void)
{
    if (thread_kind == KIND_UNKNOWN)
        thread_kind = syscall(SYS_gettid) == syscall(SYS_getpid) ? FIRST_THREAD : CREATED_THREAD;
    uint64_t top = (uint64_t)(uintptr_t)__builtin_thread_pointer();
    if (thread_kind == FIRST_THREAD)
        top = &__libc_stack_end ? (uint64_t)(uintptr_t)__libc_stack_end : 0;
    return top / sizeof(uint64_t) * sizeof(uint64_t);
}

void ju_memory_reader_begin(struct memory_reader *reader)
{
    enum { MOST_BYTES = 8 << 20 }; /* to look at */
    const uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    const uint64_t from = here / PIECE_BYTES * PIECE_BYTES, top = stack_top();
    reader->own_start = reader->own_end = reader->start = 0;
    reader->stack_start = reader->stack_end = 0;
    reader->bytes = 0;
    if (from == unknown_from || top <= here || top - from > MOST_BYTES)
        return;
    const bool has_more = known_from > from || known_from == 0;
    if (has_more && !are_there(from + PIECE_BYTES, known_from ? known_from : top)) {
        unknown_from = from;
        return;
    }
    if (has_more)
        known_from = from;
    reader->own_start = from; /* where this function's own frame is */
    reader->own_end = from + PIECE_BYTES < top ? from + PIECE_BYTES : top;
    reader->stack_start = from;
    reader->stack_end = top;
}

/* Have the piece of the stack with ADDR among those that are read in place.  What was there in an
 * earlier call need not be there now: this may be a coroutine's stack, and ADDR in memory between
 * the two that was freed. */
static bool confirm(struct memory_reader *reader, uint64_t addr)
{
    const uint64_t piece = addr / PIECE_BYTES * PIECE_BYTES;
    if (!is_there(piece))
        return false;
    if (piece != reader->own_end)
        reader->own_start = piece;
    reader->own_end =
        piece + PIECE_BYTES < reader->stack_end ? piece + PIECE_BYTES : reader->stack_end;
    return true;
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
    if (addr % size == 0 && addr >= reader->stack_start && addr < reader->stack_end &&
        confirm(reader, addr)) {
        *word = memory_word_in_place(addr);
        return true;
    }
    if (!has(reader, addr, size) && (!fill(reader, addr) || !has(reader, addr, size)))
        return ju_memory_read_there(addr, word, size);
    memcpy(word, reader->window + (addr - reader->start), size);
    return true;
}
