/* Interpreted functions as frames of native stacks.
 *
 *     static value run(struct vm *vm, struct function *f, value *args);     // the interpreter
 *
 *     typedef value run_function(struct vm *, struct function *, value *);
 *     // once for each function:
 *     jitdump_entry *call =
 *         jitdump_trampoline(dump, f->name, f->file, f->line, (jitdump_entry *)run);
 *     f->call = (run_function *)call;
 *     ...
 *     result = f->call(vm, f, args); // instead of run()
 *
 * The native stack of an interpreter has only the interpreter's own frames.  A trampoline is a
 * small piece of code for one interpreted function, with that function's name and line and a frame.
 * It calls the entry and returns the entry's result.  So perf, debuggers and backtraces show the
 * program's functions.  Each is between two frames of the interpreter: the one that called it and
 * the one that runs it.
 *
 * Every tool finds a trampoline's caller by its call frame information or its frame pointer (with
 * perf record -g, build the interpreter with -fno-omit-frame-pointer, too).  Unwinders in the
 * process itself, and gdb by its JIT interface, need to be given this information:
 * jitdump_trampoline_describe.
 */

#ifndef JITDUMP_TRAMPOLINE_H
#define JITDUMP_TRAMPOLINE_H

#include "jitdump.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Any function: cast to and from its own type. */
typedef void jitdump_entry(void);

/* Make a trampoline that calls ENTRY, and record it under NAME (NULL: ""), with line LINE of FILE
 * unless that is NULL or "".  Strings are copied.
 *
 * Returns the code to call instead of ENTRY.  It is not NULL unless ENTRY is.  If DUMP is NULL, no
 * dump is open, or an error occurs, it is ENTRY itself: calls work the same, but without the extra
 * frame.
 *
 * Arguments: all that are in registers are passed on, as are results: integers, pointers, floating
 * point, vectors, structs in registers or by a hidden pointer, and variable arguments of these
 * types.  Arguments on the stack are not passed on.  On x86-64 six integers or pointers and eight
 * floating point numbers fit in registers; long double, and structs of more than 16 bytes by value,
 * do not.  On aarch64 eight and eight fit.  Other calling conventions are not supported.
 *
 * Each call makes another trampoline, also for the same function.  A trampoline takes 160 bytes of
 * memory, plus its name and 40 bytes.  Calling it costs two calls instead of one.
 *
 * Dumps that begin later (jitdump_poll): no trampolines are made while no dump is open.  So
 * EMIT_ALL calls this for each function that has no trampoline yet, whose call is still its entry.
 * The function has frames from its next call on.  jitdump_poll itself records trampolines that were
 * made for an earlier dump, before it calls EMIT_ALL.  After a detach they continue to work.  The
 * runtime keeps them, and may call the entry instead until the next attach.
 *
 * Memory: no page is ever writable and executable.  Code is written a page at a time, in the
 * library's own memory (mmap, and malloc for names), before it is first used.  It is never changed
 * afterwards.
 *
 * Lifetime: until jitdump_trampoline_free or jitdump_trampolines_free.  jitdump_close leaves them
 * callable, and their memory in the process.
 *
 * Errors are in jitdump_error.  Each counts in jitdump_lost, as a function that could not be
 * recorded:
 * - -ENOTSUP: neither x86-64 nor aarch64, or the dump is for another machine's code;
 * - -EACCES, -EPERM: the system allows no memory to become executable (SELinux's execmem,
 *   PR_SET_MDWE); after this and other errors of system calls, it is tried again every 100 ms;
 * - -ENOMEM; -ENOSPC, if there are 8 million trampolines; -EINVAL: ENTRY is NULL;
 * - -EAGAIN: a stopped thread is in the way;
 * - the errors of jitdump_add_code.
 *
 * Threads: any number at once.  Fork: a child has copies of its parent's trampolines, and frees
 * them itself.  Signals: do not call this in a handler; a trampoline may be called in a handler if
 * ENTRY may.  C++ exceptions and pthread_exit pass through a trampoline that libjitunwind knows
 * (JITUNWIND_EXCEPTIONS). longjmp always passes.  Since 0.2.0. */
JITDUMP_API jitdump_entry *jitdump_trampoline(struct jitdump *dump, const char *name,
                                              const char *file, uint32_t line,
                                              jitdump_entry *entry);

/* Free the trampoline CALL, which jitdump_trampoline of DUMP returned, and record that it is gone.
 * It must not be on any stack, and must not be called any more.  If CALL is not a trampoline, but
 * the entry itself for example, nothing is done.  The memory is used for the next trampoline.
 * Returns 0, or -EAGAIN if a stopped thread is in the way: then nothing was done.  Threads and
 * signals: as jitdump_trampoline.  Since 0.2.0. */
JITDUMP_API int jitdump_trampoline_free(struct jitdump *dump, jitdump_entry *call);

/* The same for all trampolines of DUMP, at the end of an interpreter for example.  Their memory is
 * given back.  No other thread may make or free a trampoline meanwhile.  Returns 0, or -EAGAIN:
 * then some are left, for another call.  Since 0.2.0. */
JITDUMP_API int jitdump_trampolines_free(struct jitdump *dump);

/* A description of a trampoline for an unwinder in the process itself (jitunwind.h).
 *
 *     struct jitdump_trampoline_code is;
 *     if (jitdump_trampoline_describe(dump, call, &is) == 0) {
 *         // the first one in its arena: jitunwind_open for [arena_addr, arena_addr + arena_bytes)
 *         struct jitunwind_code code = JITUNWIND_CODE_INIT;
 *         code.addr = is.code_addr;
 *         code.bytes = is.code_size;
 *         code.name = is.name;
 *         code.eh_frame = is.eh_frame;
 *         code.eh_frame_bytes = is.eh_frame_bytes;
 *         jitunwind_add(unwinder, &code);
 *     }
 *
 * The pointers in it are valid as long as the trampoline.  The struct may grow: the library is
 * given its size.  Since 0.2.0. */
struct jitdump_trampoline_code {
    const char *name;
    uint64_t code_addr, code_size;
    const void *eh_frame; /* as jitdump_cfi_finish writes it, without .eh_frame_hdr */
    size_t eh_frame_bytes;
    uint64_t arena_addr, arena_bytes; /* of many trampolines, and nothing else */
};

/* Set *CODE to the description of the trampoline CALL.  Returns 0; -ENOENT if DUMP has no such
 * trampoline; -EAGAIN as above.  After a failure *CODE is all zero.  Threads and signals: as above.
 * Since 0.2.0. */
JITDUMP_API int jitdump_trampoline_describe_sized(struct jitdump *dump, jitdump_entry *call,
                                                  struct jitdump_trampoline_code *code,
                                                  size_t code_bytes);
#ifdef JITDUMP_NO_INLINE
JITDUMP_API int jitdump_trampoline_describe(struct jitdump *dump, jitdump_entry *call,
                                            struct jitdump_trampoline_code *code);
#else
static inline int jitdump_trampoline_describe(struct jitdump *dump, jitdump_entry *call,
                                              struct jitdump_trampoline_code *code)
{
    return jitdump_trampoline_describe_sized(dump, call, code, sizeof *code);
}
#endif

#ifdef __cplusplus
}
#endif

#endif
