/* libjitunwind: a process unwinds and names the code that its own JIT compiler generates.
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
 * When a function is added, its call frame information is compiled into a table.  Handlers read
 * that table without locks.
 *
 * Errors: functions return 0 or a negative errno.  The library never prints, except by
 * jitunwind_print_crash, and never exits, raises a signal or calls back.
 *
 * Machines: x86-64 and aarch64, 64-bit and little-endian; jitunwind_open returns -ENOTSUP on
 * others.
 *
 * Environment: PERFJIT may have the word gdb (PERFJIT=gdb, or dump,gdb) when an arena is opened.
 * Then gdb gets the names and frames of its functions by its JIT interface, in a few ELF objects in
 * memory.  Without a debugger add takes a few hundred ns longer for that.  With an attached
 * debugger, which stops the process at each add, it takes milliseconds.  If a thread is gone in the
 * middle of a change of gdb's list, as in the child of a fork, the list is not changed any more.
 * If a thread is stopped in such a change, add returns -EAGAIN as below, and objects that close
 * can't remove stay in the list.  A set-user-ID program ignores PERFJIT.
 *
 * Suspension: no call waits long for a thread that is stopped while it changes an arena, by a
 * garbage collector for example. open, add and remove in other threads return -EAGAIN after 20 ms
 * (1 s if the stopped thread seems to run).  Later calls of the same thread return -EAGAIN at once,
 * until the stopped thread continues.  Nothing is changed then.  Do not reuse the addresses of code
 * until a remove has returned 0, else new code there is unwound by the old rules.  (add, open and
 * close use malloc, and a thread may be stopped in malloc as well; remove does not use it.)
 *
 * Fork, and leaving a call: a child has its parent's arenas.  An arena that another thread was
 * changing at the fork stays readable, but can't be changed any more: add and remove return
 * -EOWNERDEAD.  The same holds if a thread is cancelled while it changes the arena.  Close such an
 * arena, and open another in its place.  If a thread leaves add or remove by longjmp, it gets
 * -EOWNERDEAD, and other threads get -EAGAIN until that thread ends.  A child that was forked while
 * another thread was in a backtrace does not reuse memory of removed functions.  A signal handler
 * that interrupted a call may fork, and the child may return from it.  A child that shares its
 * parent's memory (vfork) may only take backtraces.
 */
#ifndef JITUNWIND_H
#define JITUNWIND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define JITUNWIND_VERSION "0.3.0"

/* A program or library that compiles these sources into itself defines JITUNWIND_STATIC for them.
 * Then it exports none of their symbols. libjitunwind.a is built that way.  Each copy in a process
 * has arenas of its own. */
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

/* JITUNWIND_VERSION of the library that runs.  It may differ from this header's.  The text lives as
 * long as the process.  Since 0.2.0. */
JITUNWIND_API const char *jitunwind_version(void);

/* ---- The registry ---- */

/* One arena: a contiguous range of addresses that code is put into.  Opaque. */
struct jitunwind;

/* C++ exceptions pass through the arena's functions.  The unwinder of the process, libgcc or LLVM's
 * libunwind, then uses the frames that add was given.  Without this flag a throw that reaches such
 * a function ends in std::terminate.  JIT code catches nothing, and no cleanup runs:
 * language-specific data of code->eh_frame is ignored.  Unknown frames are unwound by frame
 * pointer. backtrace(3) passes, too, also in signal handlers.  Functions that the code calls may
 * throw; a handler of a signal that interrupted the code must not.  x86-64 only. */
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
    uint64_t eh_frame_addr; /* the address for which it was written; 0: addr + bytes, the latter
                               rounded up to a multiple of 8, as for libjitdump's tables */
    const char *name;       /* or NULL */
};

#define JITUNWIND_CODE_INIT                                                                        \
    {                                                                                              \
        sizeof(struct jitunwind_code), 0, 0, JITUNWIND_NULL, 0, 0, JITUNWIND_NULL                  \
    }

/* Open the arena [options->start, options->start + options->bytes).
 *
 * Reserves addresses of two and a half times the arena's size, but uses memory only as functions
 * are added, also in a process that called mlockall.  (The limit of locked memory, RLIMIT_MEMLOCK,
 * counts what is reserved after mlockall(MCL_FUTURE).)  A function takes 40 bytes, 8 for each row
 * of its frame (rounded up to a power of two), its name, and 8 for each 64 bytes of code.  With
 * PERFJIT=gdb it takes 50 bytes more, and its name and frames a second time.
 *
 * Returns 0, or:
 * - -EINVAL: the options are NULL, their size is not set (or above 4096), or the range is empty,
 *   too large or wraps around;
 * - -E2BIG: an option is set that this version does not know;
 * - -EEXIST: the range overlaps another arena;
 * - -ENOTSUP: another machine, or JITUNWIND_EXCEPTIONS without such an unwinder in the process;
 * - -EAGAIN as above; -ENOMEM.
 *
 * *ARENA is NULL after a failure.
 *
 * Threads: any number at once.  Signals: no.  Since 0.1.0. */
JITUNWIND_API int jitunwind_open(struct jitunwind **arena, const struct jitunwind_options *options);

/* Drop ARENA with all its functions.  They must not be on any stack that is unwound afterwards.  No
 * other add or remove on ARENA may be in progress or follow; backtraces may.  Memory that a
 * backtrace is reading is freed by a later open or close.  ARENA may be NULL.  Threads: as open.
 * Signals: no.  Since 0.1.0. */
JITUNWIND_API void jitunwind_close(struct jitunwind *arena);

/* Add a function, before it first runs.  Everything is copied.
 *
 * The FDEs of code->eh_frame that are about the function become rows of registers and offsets.
 * They may stand in any order, but must not overlap.
 * Code with rules that don't fit into rows (expressions), or without rules, is unwound by frame
 * pointer.
 *
 * A NULL ARENA accepts everything and returns 0.  Otherwise returns 0, or an error, and then
 * nothing is added:
 * - -EINVAL: the range is empty or not in the arena, code->size is not set, or the bytes are not a
 *   valid .eh_frame (with addresses of 4 or 8 bytes, absolute or relative to their place);
 * - -EEXIST: the range overlaps a function that was not removed;
 * - -ENOSPC: the arena has more than one function for each 32 bytes, or more than one row for each
 *   8.  (A removed function counts until each backtrace or name lookup that began before its
 *   removal has ended.  Then its memory serves functions of any size, as far as what is left of it
 *   between those that stay is large enough);
 * - -E2BIG, -EAGAIN, -EOWNERDEAD as above;
 * - -ENOMEM, until there is memory again, as when functions of this arena are removed.
 *
 * Threads: any number at once on one arena.  Signals: no.  Since 0.1.0. */
JITUNWIND_API int jitunwind_add(struct jitunwind *arena, const struct jitunwind_code *code);

/* Remove the function that begins at ADDR.  After that its addresses may be added again.  Returns
 * 0, -ENOENT if there is no such function, or -EAGAIN or -EOWNERDEAD as above.  Threads and
 * signals: as add.  Since 0.1.0. */
JITUNWIND_API int jitunwind_remove(struct jitunwind *arena, uint64_t addr);

/* ---- In a signal handler ---- */

/* How a frame was found. */
enum jitunwind_how {
    JITUNWIND_INTERRUPTED = 1, /* the frame of the ucontext */
    JITUNWIND_RULES,           /* its callee is JIT code: by the registry */
    JITUNWIND_EH_FRAME,        /* its callee is native code: by that file's .eh_frame */
    JITUNWIND_SIGNAL,          /* its callee is a handler's return: the signal interrupted this
                                * frame */
    JITUNWIND_FRAME_POINTER,   /* its callee is not known: by the callee's frame pointer */
    JITUNWIND_LEAF,            /* its callee's address is not in any code: by the call to it */
    JITUNWIND_SCANNED,         /* it looks like a return address; a guess */
};

/* Why a frame is the last one. */
enum jitunwind_end {
    JITUNWIND_GOES_ON = 0, /* it is not */
    JITUNWIND_OUTERMOST,   /* by its table, or a return address of 0, it has no caller */
    JITUNWIND_FULL,        /* there is no room for its caller */
    JITUNWIND_LOST,        /* its caller can't be found: the stack is damaged, or the frame's layout
                              is unknown or wrong */
};

/* This struct will not grow, since it is an array element.  New members will use `reserved`. */
struct jitunwind_frame {
    uint64_t ip;   /* the next instruction: behind the call, or the one that was interrupted */
    uint64_t sp;   /* when control returns to it */
    uint8_t how;   /* enum jitunwind_how */
    uint8_t end;   /* enum jitunwind_end */
    uint8_t exact; /* ip itself is the instruction, not the one behind a call */
    uint8_t reserved[5];
};

/* As a last resort, guess return addresses: words of the stack that point into known code, behind a
 * call. */
#define JITUNWIND_SCAN 0x1u

/* Fill FRAMES, which has room for MAX, with a call chain, innermost frame first.  UCONTEXT is a
 * ucontext_t, a handler's third argument: the chain begins with the interrupted frame.  If it is
 * NULL, the chain begins with the caller of this function.  Returns the number of frames.
 *
 * Frames up to the first one that is SCANNED or found by FRAME_POINTER come from the tables.  That
 * frame and those behind it may be wrong.
 *
 * Signals: async-signal-safe, also in a handler that interrupted malloc, dlopen, any function of
 * this library, or itself.  It takes no lock, allocates nothing, and preserves errno.  It does not
 * fault, whatever is in the registers and on the stack, and whatever was unmapped or unloaded
 * before.  The kernel reads the stack for it (process_vm_readv, or if that is refused with an
 * error, a read in place after rt_sigprocmask has read the same bytes).  Only the thread's own
 * stack above the current frame is read directly, each page of it after the kernel has read a word
 * there in the same call.  The walk always ends: each frame lies above its callee's, except across
 * MAX signals at most.  Tables of native code are read where they are mapped.  No thread may unload
 * them (dlclose) while their code is on another thread's stack.
 *
 * Native code is that of all files that are loaded, with libcs that have no _dl_find_object (glibc
 * before 2.35, musl) of 4096 in the life of the process.
 *
 * If it is left by longjmp, out of a handler that interrupted it, memory of functions that are
 * removed afterwards is not used again.
 *
 * Stack: less than 4 KiB.  In a program linked statically with the library but without -z now, the
 * first call needs another 4 KiB for the dynamic linker.  Threads: any number at once.  Since
 * 0.1.0. */
JITUNWIND_API size_t jitunwind_backtrace(const void *ucontext, struct jitunwind_frame *frames,
                                         size_t max, uint32_t flags);

/* Copy the name of the JIT function that contains the byte at IP to NAME, cut to NAME_BYTES with
 * its NUL.  For a frame that is not exact, pass ip - 1.  Set *OFFSET, unless OFFSET is NULL, to the
 * offset of IP in the function.  Returns 0, or -ENOENT if there is no function or it has no name.
 *
 * Signals and threads: as jitunwind_backtrace.  Since 0.1.0. */
JITUNWIND_API int jitunwind_name(uint64_t ip, char *name, size_t name_bytes, uint64_t *offset);

/* Write a crash report to the descriptor FD: the registers of UCONTEXT, and one line per frame of
 * its call chain (at most 256).  A line has the frame's number, its address, how it was found, and
 * its name.  The name is from the registry for JIT code, and file and offset for native code (for
 * addr2line -e FILE OFFSET).
 *
 * Returns 0, or the negative errno of write(2) (-EIO if that takes nothing), after which it writes
 * no more.  Writing raises no signal: SIGPIPE, SIGXFSZ and SIGTTOU are blocked in this thread
 * meanwhile.  It is no cancellation point.  Signals and threads: as jitunwind_backtrace; lines of
 * two threads may mix.  Stack: less than 20 KiB, so give the handler of a stack overflow an
 * alternate stack of that (SA_ONSTACK).  Since 0.1.0. */
JITUNWIND_API int jitunwind_print_crash(int fd, const void *ucontext);

#ifdef __cplusplus
}
#endif

#endif
