/* libjitunwind: a process's own unwinders see through the code that its JIT compiler generates.
 *
 *     struct jitunwind *arena;
 *     struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
 *     options.start = (uint64_t)(uintptr_t)base;        // a contiguous range for code
 *     options.bytes = arena_bytes;
 *     jitunwind_open(&arena, &options);
 *     ...
 *     struct jitunwind_code code = JITUNWIND_CODE_INIT;
 *     code.addr = (uint64_t)(uintptr_t)entry;
 *     code.bytes = entry_bytes;
 *     code.eh_frame = unwind.data;                      // for example jitdump_cfi_finish's
 *     code.eh_frame_bytes = unwind.unwinding_size - unwind.eh_frame_hdr_size;
 *     code.name = "fib";
 *     jitunwind_add(arena, &code);                      // once, before the code first runs
 *     ...
 *     jitunwind_remove(arena, code.addr);               // when it has left all stacks
 *     jitunwind_close(arena);
 *
 * and in a signal handler, installed with SA_SIGINFO:
 *
 *     jitunwind_print_crash(STDERR_FILENO, ucontext);
 *
 * What a handler needs to know of a function is compiled from its call frame information when it is
 * added, into a table that is read without locks.
 *
 * Errors: functions return 0 or a negative errno.  The library never prints, except by
 * jitunwind_print_crash, and never exits, raises a signal or calls back.
 *
 * Machines: x86-64 and aarch64, 64-bit and little-endian; jitunwind_open returns -ENOTSUP on
 * others.
 *
 * Environment: if PERFJIT has the word gdb (PERFJIT=gdb, or dump,gdb) when an arena is opened, gdb
 * is told of its functions' names and frames by its JIT interface, in a few ELF objects in memory.
 * Without a debugger add takes a few hundred ns more for that; with one that is attached, which
 * stops the process at each, it takes milliseconds.  Where a thread is gone in the middle of a
 * change of gdb's list, as in the child of a fork, the list stays as it is; where one is stopped in
 * it, add returns -EAGAIN as below, and what close can't take out stays in it.  A set-user-ID
 * program ignores PERFJIT.
 *
 * Suspension: nobody waits for a thread that is stopped while it changes an arena.  Where another
 * one was, by a collector for one, open, add and remove return -EAGAIN after 20 ms (1 s if it seems
 * to run), and to the same thread at once from then on until it continues.  Nothing is changed
 * then: code that could not be removed keeps its addresses until a remove has returned 0, or what
 * is put there is unwound by the old rules.  (add, open and close use malloc, in which a thread may
 * be stopped as well; remove does not.)
 *
 * Fork, and leaving a call: a child has its parent's arenas.  An arena in which another thread was
 * just changing something at the fork, or that a thread was changing when it was cancelled, stays
 * readable, but is not changed any more: add and remove return -EOWNERDEAD.  Close it, and open
 * another in its place.  So it is for a thread that has left add or remove by longjmp; the others
 * get -EAGAIN until that one ends.  A child that was forked while another thread was in a backtrace
 * does not use memory of removed functions again.
 */
#ifndef JITUNWIND_H
#define JITUNWIND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define JITUNWIND_VERSION "0.3.0"

/* A program or library that compiles these sources into itself defines JITUNWIND_STATIC for them
 * and then exports none of their symbols.  libjitunwind.a is built that way.  Each copy in a
 * process has arenas of its own. */
#if defined(__GNUC__) && defined(JITUNWIND_STATIC)
#define JITUNWIND_API __attribute__((visibility("hidden")))
#elif defined(__GNUC__)
#define JITUNWIND_API __attribute__((visibility("default")))
#else
#define JITUNWIND_API
#endif

#ifdef __cplusplus
#define JITUNWIND_NULL nullptr
#else
#define JITUNWIND_NULL 0
#endif

/* JITUNWIND_VERSION of the library that runs, where this header may be another's.  The text lives
 * as long as the process.  Since 0.2.0. */
JITUNWIND_API const char *jitunwind_version(void);

/* ---- The registry ---- */

/* One arena: a contiguous range of addresses that code is put into.  Opaque. */
struct jitunwind;

/* C++ exceptions pass through the arena's functions: the unwinder of the process, libgcc or LLVM's
 * libunwind, asks what add was given.  Without it a throw that comes to such a function ends in
 * std::terminate.  Nothing is caught there, and no cleanup runs: language-specific data of
 * code->eh_frame is passed over.  What it does not know of a frame it takes from the frame pointer.
 * backtrace(3) passes, too, in handlers as well.  Throw in what the code calls, not in a handler of a
 * signal that interrupted it.  x86-64 only. */
#define JITUNWIND_EXCEPTIONS 0x1u

struct jitunwind_options {
    size_t size;    /* sizeof(struct jitunwind_options): lets the struct grow */
    uint64_t start; /* of the arena */
    uint64_t bytes; /* at most 4 GiB - 1 */
    uint32_t flags; /* JITUNWIND_EXCEPTIONS, or 0 */
    uint32_t reserved;
};

#define JITUNWIND_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(struct jitunwind_options), 0, 0, 0, 0                                               \
    }

struct jitunwind_code {
    size_t size; /* sizeof(struct jitunwind_code): lets the struct grow */
    uint64_t addr;
    uint64_t bytes;
    const void *eh_frame;   /* or NULL: unwound by frame pointers */
    size_t eh_frame_bytes;  /* with or without the zero that ends it */
    uint64_t eh_frame_addr; /* for which address it was written; 0: addr + bytes, the latter rounded
                               up to a multiple of 8, where libjitdump's tables belong */
    const char *name;       /* or NULL */
};

#define JITUNWIND_CODE_INIT                                                                        \
    {                                                                                              \
        sizeof(struct jitunwind_code), 0, 0, JITUNWIND_NULL, 0, 0, JITUNWIND_NULL                  \
    }

/* Open the arena [options->start, options->start + options->bytes).
 *
 * Reserves two and a half times its size of addresses, of which only what is used becomes memory:
 * for each function 40 bytes, 8 for each row of its frame (rounded up to a power of two), its name,
 * and 8 for each 64 bytes of code; with PERFJIT=gdb its name and frames once more, and 50.
 *
 * Returns 0; -EINVAL if the options are NULL, their size is not set (or above 4096), or the range
 * is empty, too large or wraps around; -E2BIG if an option is set that this version does not know;
 * -EEXIST if it overlaps another arena; -EAGAIN as above; -ENOTSUP, also for JITUNWIND_EXCEPTIONS
 * where the process has no such unwinder; -ENOMEM.  *ARENA is NULL after a failure.
 *
 * Threads: any number at once.  Signals: no.  Since 0.1.0. */
JITUNWIND_API int jitunwind_open(struct jitunwind **arena, const struct jitunwind_options *options);

/* Drop ARENA with all its functions, which must not be on any stack that is unwound afterwards.  No
 * other add or remove on ARENA may be in progress or follow; backtraces may.  What a backtrace is
 * reading now is freed by a later open or close.  ARENA may be NULL.  Threads: as open.  Signals:
 * no.  Since 0.1.0. */
JITUNWIND_API void jitunwind_close(struct jitunwind *arena);

/* Add a function, before it first runs.  Everything is copied.
 *
 * The FDEs of code->eh_frame that are about the function become rows of registers and offsets.
 * Where they say more than that (expressions), and where they say nothing, frames are unwound by
 * frame pointer.
 *
 * Returns 0; -EINVAL if the range is empty or not in the arena, the bytes are not a valid .eh_frame
 * (its addresses 4 or 8 bytes, absolute or relative to where they stand), or code->size is not set;
 * -E2BIG as above; -EEXIST if it overlaps a function that was not removed; -ENOSPC if the arena has
 * more than one function for each 32 bytes, or more than one row for each 8 (functions that were
 * removed count as long as a backtrace or a name that was begun before goes on); -EAGAIN,
 * -EOWNERDEAD as above; -ENOMEM.  Nothing is added then.  A NULL ARENA takes everything and returns
 * 0.
 *
 * Threads: any number at once on one arena.  Signals: no.  Since 0.1.0. */
JITUNWIND_API int jitunwind_add(struct jitunwind *arena, const struct jitunwind_code *code);

/* Remove the function that begins at ADDR; after that its addresses may be added again.  Returns 0,
 * -ENOENT if there is none, or -EAGAIN or -EOWNERDEAD as above.  Threads and signals: as add. Since
 * 0.1.0. */
JITUNWIND_API int jitunwind_remove(struct jitunwind *arena, uint64_t addr);

/* ---- In a signal handler ---- */

/* How a frame was found. */
enum jitunwind_how {
    JITUNWIND_INTERRUPTED = 1, /* it is the one of the ucontext */
    JITUNWIND_RULES,           /* from its callee, JIT code, by the registry */
    JITUNWIND_EH_FRAME,        /* from its callee, native code, by that file's .eh_frame */
    JITUNWIND_SIGNAL,          /* a handler's return: this is what the signal interrupted */
    JITUNWIND_FRAME_POINTER,   /* nothing is known of the callee: by its frame pointer */
    JITUNWIND_LEAF,            /* the callee's address is not in any code: by the call to it */
    JITUNWIND_SCANNED,         /* it looks like a return address; a guess */
};

/* Why a frame is the last one. */
enum jitunwind_end {
    JITUNWIND_GOES_ON = 0, /* it is not */
    JITUNWIND_OUTERMOST,   /* its table, or a return address of 0, says that it has no caller */
    JITUNWIND_FULL,        /* there is no room for its caller */
    JITUNWIND_LOST,        /* its caller can't be found: the stack, or what is known of it, is
                              damaged or unknown */
};

/* This struct will not grow, since it is an array element: what comes takes from `reserved`. */
struct jitunwind_frame {
    uint64_t ip;   /* the next instruction: behind the call, but for what was interrupted */
    uint64_t sp;   /* when control comes back to it */
    uint8_t how;   /* enum jitunwind_how */
    uint8_t end;   /* enum jitunwind_end */
    uint8_t exact; /* ip itself is the instruction, not the one behind a call */
    uint8_t reserved[5];
};

/* Guess, where nothing else is left, that a word of the stack is a return address: if it points
 * into known code, behind a call. */
#define JITUNWIND_SCAN 0x1u

/* Fill FRAMES, which has room for MAX, with the call chain of what UCONTEXT (a ucontext_t, a
 * handler's third argument) interrupted, the innermost first; with NULL, with that of the caller.
 * Returns how many there are.
 *
 * Frames behind one that is SCANNED or found by FRAME_POINTER may be wrong; those in front of it
 * are what the tables say.
 *
 * Signals: async-signal-safe, also in a handler that interrupted malloc, dlopen, any function of
 * this library, or itself.  It takes no lock, allocates nothing, and preserves errno.  It does not
 * fault, whatever is in the registers and on the stack: the stack is read by the kernel
 * (process_vm_readv, or where that is refused, after rt_sigprocmask has read it), but for the
 * thread's own above where it is now, which is read in place.  It ends on any
 * stack: each frame lies above its callee's, but across MAX signals at most.  Tables of native code
 * are read where they are mapped: a thread that unloads them (dlclose) while their code is on
 * another's stack is in trouble anyway.
 *
 * Leaving it by longjmp, out of a handler that interrupted it, keeps memory of functions that are
 * removed afterwards from being used again.
 *
 * Stack: less than 4 KiB.  Threads: any number at once.  Since 0.1.0. */
JITUNWIND_API size_t jitunwind_backtrace(const void *ucontext, struct jitunwind_frame *frames,
                                         size_t max, uint32_t flags);

/* Copy the name of the JIT function with the byte at IP (of a frame that is not exact: ip - 1) to
 * NAME, cut to NAME_BYTES with its NUL, and set *OFFSET, unless that is NULL, to where in it IP is.
 * Returns 0, or -ENOENT: no function, or one without a name.
 *
 * Signals and threads: as jitunwind_backtrace.  Since 0.1.0. */
JITUNWIND_API int jitunwind_name(uint64_t ip, char *name, size_t name_bytes, uint64_t *offset);

/* Write a crash report to the descriptor FD: the registers of UCONTEXT, and a line for each frame
 * of its call chain (at most 256) with its number, address, how it was found, and its name: JIT
 * code's from the registry, native code's file and offset (for addr2line -e FILE OFFSET).
 *
 * Returns 0, or the negative errno of write(2).  Signals and threads: as jitunwind_backtrace; lines
 * of two threads may mix.  Stack: less than 20 KiB, so give the handler of a stack overflow an
 * alternate stack of that (SA_ONSTACK).  Since 0.1.0. */
JITUNWIND_API int jitunwind_print_crash(int fd, const void *ucontext);

#ifdef __cplusplus
}
#endif

#endif
