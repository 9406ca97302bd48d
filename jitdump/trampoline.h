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
 * A stack of native code that interprets has the interpreter's frames only.  A trampoline is a
 * small piece of code of the function's own, with its name, its line and a frame, that calls the
 * entry and returns what that returned.  So perf, debuggers and backtraces show the program's
 * functions, each between the two frames of the interpreter that called it and that runs it.
 *
 * Every tool finds a trampoline's caller by its call frame information or its frame pointer (with
 * perf record -g, build the interpreter with -fno-omit-frame-pointer, too).  Unwinders in the
 * process itself, and gdb by its JIT interface, have to be told of it: jitdump_trampoline_describe.
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
 * Returns the code to call in ENTRY's place; never NULL, if ENTRY is not.  It is ENTRY itself, and
 * then nothing is between caller and callee, if DUMP is NULL or no dump is open, or after an error.
 * Then what is returned is as good as the trampoline, but for the frame.
 *
 * Arguments: all that are passed in registers are passed on, as are results: integers, pointers,
 * floating point, vectors, structs in registers or by a hidden pointer, and variable arguments of
 * these.  Those on the stack are not: on x86-64 six integers or pointers and eight floating point
 * numbers fit in registers, and no long double nor struct of more than 16 bytes by value; on
 * aarch64 eight and eight.  Other calling conventions are not supported.
 *
 * Each call makes another trampoline, also for the same function.  It takes 160 bytes, its name and
 * 40 more, of memory; what a call of it costs is two calls for one.
 *
 * Dumps that begin later (jitdump_poll): where no dump is open there are no trampolines to make,
 * so EMIT_ALL calls this for each function that has none yet, whose call is still its entry, and
 * the function has frames from its next call on.  Those that were made for an earlier dump are
 * recorded by jitdump_poll itself, before EMIT_ALL.  After a detach they go on working; the runtime
 * keeps them, and may call the entry instead until the next attach.
 *
 * Memory: no page is ever writable and executable.  Code is made a page at a time, in memory of the
 * library's own (mmap, and malloc for names), before it is first used and then never changed.
 *
 * Lifetime: until jitdump_trampoline_free or jitdump_trampolines_free.  jitdump_close leaves them
 * callable, and their memory in the process.
 *
 * Errors are in jitdump_error and counted in jitdump_lost, as a function that could not be
 * recorded:
 * - -ENOTSUP: neither x86-64 nor aarch64, or the dump is for another machine's code;
 * - -EACCES, -EPERM: the system allows no memory to become executable (SELinux's execmem,
 *   PR_SET_MDWE); this and others of the system's are tried again every 100 ms;
 * - -ENOMEM; -ENOSPC, if there are 8 million; -EINVAL: ENTRY is NULL;
 * - -EAGAIN: a stopped thread is in the way;
 * - the errors of jitdump_add_code.
 *
 * Threads: any number at once.  Fork: a child has its parent's trampolines, and frees them by
 * itself.  Signals: not in a handler; a trampoline may be called in one, if ENTRY may.  C++
 * exceptions and pthread_exit pass a trampoline where libjitunwind knows it (JITUNWIND_EXCEPTIONS);
 * longjmp passes it always.  Since 0.2.0. */
JITDUMP_API jitdump_entry *jitdump_trampoline(struct jitdump *dump, const char *name,
                                              const char *file, uint32_t line,
                                              jitdump_entry *entry);

/* Free the trampoline CALL, which jitdump_trampoline of DUMP returned, and record that it is gone.
 * It is on no stack, and nobody will call it.  Of what is no trampoline, as where CALL is the entry
 * itself, nothing is done.  Its memory serves the next one.  Returns 0, or -EAGAIN if a stopped
 * thread is in the way: then nothing was done.  Threads and signals: as jitdump_trampoline.  Since
 * 0.2.0. */
JITDUMP_API int jitdump_trampoline_free(struct jitdump *dump, jitdump_entry *call);

/* The same for all trampolines of DUMP, as at the end of an interpreter; their memory is given
 * back.  No other thread makes or frees one meanwhile.  Returns 0, or -EAGAIN: then some are left,
 * for another call.  Since 0.2.0. */
JITDUMP_API int jitdump_trampolines_free(struct jitdump *dump);

/* What else wants to know of a trampoline: an unwinder of the process itself (jitunwind.h).
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
 * What it points to lives as long as the trampoline.  The struct may grow: the library is told its
 * size.  Since 0.2.0. */
struct jitdump_trampoline_code {
    const char *name;
    uint64_t code_addr, code_size;
    const void *eh_frame; /* as jitdump_cfi_finish writes it, without .eh_frame_hdr */
    size_t eh_frame_bytes;
    uint64_t arena_addr, arena_bytes; /* many trampolines are in it, and nothing else is */
};

/* Set *CODE to what is known of the trampoline CALL.  Returns 0; -ENOENT if it is none of DUMP's;
 * -EAGAIN as above; after a failure *CODE is all zero.  Threads and signals: as above.  Since
 * 0.2.0. */
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
