/* libjitdump: tell Linux perf about the code that a JIT compiler generates.
 *
 *     struct jitdump *dump;
 *     if (jitdump_open(&dump, NULL) != 0) {            // sets NULL unless PERFJIT=dump is set
 *         warnx("%s", jitdump_error(dump));
 *         jitdump_close(dump);
 *         dump = NULL;                                 // disabled from now on
 *     }
 *     ...
 *     struct jitdump_code code = JITDUMP_CODE_INIT;
 *     code.name = "fib";
 *     code.code_addr = (uint64_t)(uintptr_t)entry;
 *     code.code_size = entry_bytes;
 *     code.bytes = entry;
 *     jitdump_add_code(dump, &code, NULL);             // once, before the code first runs
 *     ...
 *     jitdump_close(dump);
 *
 * and then:
 *
 *     PERFJIT=dump perf record -k mono -g ./runtime script
 *     perfjit inject && perf report -i perf.jit.data
 *
 * When disabled: if PERFJIT does not ask for a dump, jitdump_open sets the handle to NULL, and an
 * add, move or unload is one inline NULL check that returns 0 (jitdump_add: one call).  A process
 * can be made one that is asked for its dump while it runs (jitdump_poll, at the end).
 *
 * Errors: functions return 0 or a negative errno; jitdump_error() describes the cause.  errno
 * itself is preserved.  The library never prints, exits, raises a signal or calls back.
 *
 * Threads: every function except jitdump_open and jitdump_close may be called by any number of
 * threads at once on one handle.
 *
 * Suspension: a thread that a signal handler has stopped inside a call does not block the others.
 * - A move or unload returns 0 without waiting, or after 0.1 s if the stopped thread spins in its
 *   handler.  It is kept in memory until the next call on the handle, or jitdump_close, writes it
 *   with its own timestamp; if the process is killed before that, it is lost.
 * - An add waits for a stopped thread that holds one of the handle's two locks: 20 ms for each, or
 *   1 s if that thread spins in its handler and so cannot be told from one that is working.  Time
 *   during which the waiting thread is stopped itself does not count.  Then the add returns -EAGAIN
 *   and is counted in jitdump_lost().  Later adds of that thread fail immediately until the stopped
 *   thread goes on (a spinning one: until it leaves the library); other threads wait again.
 * - So expect failures only among what is added during a pause, not among what the stopped threads
 *   add before and after it.
 * - An add with inlined calls or pieces, and the first call in a forked child, use malloc.  A
 *   stopped thread may be inside malloc, so pass neither for code added while threads are stopped.
 *
 * Leaving a call: no call is a cancellation point.  A thread that is cancelled asynchronously, or
 * that leaves by longjmp out of a signal handler, loses the record it was writing and nothing else;
 * but by a longjmp never leave a call that uses malloc (above, and jitdump_poll), whose lock would
 * be left behind.  A jitdump_poll that acts is not cancelled before it returns.
 * After a longjmp, adds by other threads may return -EAGAIN until that thread's next call.
 *
 * Fork: a child that adds, moves or unloads code gets a dump of its own in the same directory,
 * jitdump-PID/jit-PID.dump with its own pid.  Its code indices continue from the parent's at the
 * fork.  The parent's dump is not touched.  Not supported in a child that shares its parent's
 * memory (vfork).
 *
 * Exec: the dump is left as if the process had been killed.
 *
 * Stack: a call takes less than 4 KiB, and less than 1.5 KiB if the file need not be written to.
 *
 * Signals: not safe in a signal handler.
 * Descriptors: two per dump (one with JITDUMP_UNMAPPED), above 2, close-on-exec.
 *
 * The file format is the one in the kernel's tools/perf/Documentation/jitdump-specification.txt,
 * plus the extension records described in jitdump/README.md, which older readers skip by size.
 */
#ifndef JITDUMP_H
#define JITDUMP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define JITDUMP_VERSION "0.3.0"

/* A program or library that compiles these sources into itself defines JITDUMP_STATIC for them and
 * then exports none of their symbols, so that two copies, of two versions, do not clash in one
 * process.  libjitdump.a is built that way. */
#if defined(__GNUC__) && defined(JITDUMP_STATIC)
#define JITDUMP_API __attribute__((visibility("hidden")))
#elif defined(__GNUC__)
#define JITDUMP_API __attribute__((visibility("default")))
#else
#define JITDUMP_API
#endif

/* Functions that are inline below are in the library as well, for callers that look them up by name
 * (dlopen, FFI).  With JITDUMP_NO_INLINE defined, this header declares them and no more. */

#ifdef __cplusplus
#define JITDUMP_NULL nullptr
#else
#define JITDUMP_NULL 0
#endif

/* An open dump.  Opaque; NULL means disabled, and every function accepts it. */
struct jitdump;

/* Open the dump regardless of the environment variable PERFJIT. */
#define JITDUMP_ALWAYS 0x1u
/* Timestamp records with the CPU's counter (x86-64 TSC, aarch64 CNTVCT) instead of CLOCK_MONOTONIC:
 * for recordings without -k whose perf.data has a TIME_CONV record.  -EOPNOTSUPP on other
 * machines. */
#define JITDUMP_TSC 0x2u
/* Write each record immediately with system calls and keep no writable file mapping: for file
 * systems that may go away (network file systems), where a store to a mapped page would raise
 * SIGBUS.  The word "unmapped" in PERFJIT does the same.  For the cost see jitdump/README.md. */
#define JITDUMP_UNMAPPED 0x4u
/* Open no dump until somebody asks for it (perfjit attach), unless PERFJIT or JITDUMP_ALWAYS asks
 * already: see jitdump_poll.  The word "attach" in PERFJIT does the same.  Ignored in a set-user-ID
 * program.  Since 0.2.0. */
#define JITDUMP_ATTACHABLE 0x8u
/* Never grow beyond max_bytes, and never stop: old records make room for new ones.  The dump then
 * has the functions that are alive, and of what was logged the newest, with all functions that were
 * there at the time.  max_bytes must be 4 MiB or more; of more than 4 GiB that much is used.  The
 * word "ring=SIZE" in PERFJIT (64M, 1G; bytes without a letter) does the same, whatever the program
 * says of max_bytes.  Each dump has a ring of its own: a child's, and that of each jitdump_poll
 * that opens one.  For what it keeps and costs see jitdump/README.md.  Since 0.2.0. */
#define JITDUMP_RING 0x10u

struct jitdump_options {
    size_t size;        /* sizeof(struct jitdump_options): lets the struct grow */
    const char *dir;    /* where to put the dump; NULL: $JITDUMPDIR, else the current directory */
    uint32_t flags;     /* JITDUMP_ALWAYS | JITDUMP_TSC | ...: see above */
    uint32_t elf_mach;  /* ELF e_machine of the code; 0: this program's */
    uint64_t max_bytes; /* limit on the size of its files; 0: none; else at least 512 KiB */
};

/* The code_index that jitdump_add_code returns for a function it did not record. */
#define JITDUMP_NO_CODE UINT64_MAX
/* For a row: its instructions belong to the function itself.  For an inlined call: the call is in
 * the function itself. */
#define JITDUMP_NOT_INLINED UINT32_MAX

/* For jitdump_code: the addr of each row is not an address but an offset, as a compiler knows it
 * that emits code into a buffer from which it is copied later.  Since 0.2.0. */
#define JITDUMP_RELATIVE 0x1u

/* One row of a function's line table: the instructions from ADDR up to the next row.  Where calls
 * were inlined, file and line are those of the innermost callee's source.  This struct will not
 * grow, since it is an array element. */
struct jitdump_line {
    uint64_t addr;    /* absolute address of the first instruction of the row; with
                       * JITDUMP_RELATIVE its offset */
    const char *file; /* source file, by the path at which a debugger should look for it */
    uint32_t line;    /* from 1; 0: no line */
    uint32_t column;  /* from 1; 0: unknown */
};

/* A call that the compiler inlined.  The inlines of a function form a tree, listed parents first:
 * if main calls f, f calls g, and both are inlined into main, then f is inline 0 with parent
 * JITDUMP_NOT_INLINED, and g is inline 1 with parent 0.  A function inlined in two places is two
 * inlines.  This struct will not grow, since it is an array element. */
struct jitdump_inline {
    const char *name;      /* of the inlined function; not NULL */
    const char *call_file; /* source file of the call, in the parent; NULL or "": unknown */
    const char *decl_file; /* where the inlined function is defined; NULL or "": unknown */
    uint32_t call_line;    /* from 1; 0: unknown */
    uint32_t call_column;  /* from 1; 0: unknown */
    uint32_t decl_line;    /* from 1; 0: unknown */
    uint32_t parent;       /* index of the inline that contains the call, or JITDUMP_NOT_INLINED */
};

/* Unwind tables as bytes, in the order that perf reads them: .eh_frame first, .eh_frame_hdr last.
 * An unwinding_size of 0 means there are none.  The struct may grow: jitdump_cfi_finish is told its
 * size, and jitdump_code has it. */
struct jitdump_unwind {
    const void *data;           /* unwinding_size bytes */
    uint64_t unwinding_size;    /* .eh_frame and .eh_frame_hdr together, in bytes */
    uint64_t eh_frame_hdr_size; /* of .eh_frame_hdr alone, in bytes */
    uint64_t mapped_size;       /* as in the record; perf wants unwinding_size here */
};

/* Everything about one function.  Start from JITDUMP_CODE_INIT. */
struct jitdump_code {
    size_t size;                      /* sizeof(struct jitdump_code) */
    const char *name;                 /* what perf report shows; NULL means "" */
    uint64_t code_addr;               /* where the code runs */
    uint64_t code_size;               /* in bytes */
    const void *bytes;                /* code_size bytes of code, anywhere; NULL: not available */
    const struct jitdump_line *lines; /* line_count rows, or NULL */
    size_t line_count;
    const struct jitdump_unwind *unwind;  /* or NULL */
    const struct jitdump_inline *inlines; /* inline_count of them, or NULL */
    size_t inline_count;
    const uint32_t *line_inlines; /* for each of the line_count rows, the index of the innermost
                                   * inline that its instructions belong to, or JITDUMP_NOT_INLINED;
                                   * may be NULL if inline_count or line_count is 0 */
    size_t unwind_size; /* sizeof(struct jitdump_unwind), if a member of *unwind is set that came
                         * after version 0.1 (there is none yet); else 0.  Since 0.2.0 */
    uint64_t flags;     /* JITDUMP_RELATIVE, or 0.  Since 0.2.0 */
    uint64_t buffer_offset; /* with JITDUMP_RELATIVE: where in the buffer that rows' offsets count
                             * from the function begins; 0: they count from its first byte.  Since
                             * 0.2.0 */
    const struct jitdump_code *pieces; /* piece_count more pieces of the function, or NULL.  Since
                                        * 0.2.0 */
    size_t piece_count;
};

/* Where a piece of a function was, and where it is.  This struct will not grow, since it is an
 * array element.  Since 0.2.0. */
struct jitdump_piece_move {
    uint64_t old_code_addr, new_code_addr;
    uint64_t code_size; /* 0: there is no such piece */
};

/* Initialisers that set only the size member. */
#define JITDUMP_OPTIONS_INIT                                                                       \
    {                                                                                              \
        sizeof(struct jitdump_options), JITDUMP_NULL, 0, 0, 0                                      \
    }
#define JITDUMP_CODE_INIT                                                                          \
    {                                                                                              \
        sizeof(struct jitdump_code), JITDUMP_NULL, 0, 0, JITDUMP_NULL, JITDUMP_NULL, 0,            \
            JITDUMP_NULL, JITDUMP_NULL, 0, JITDUMP_NULL, 0, 0, 0, JITDUMP_NULL, 0                  \
    }

/* Create jitdump-<pid>/jit-<pid>.dump and map its first page PROT_READ|PROT_EXEC, which is how perf
 * finds the dump; and likewise jitdump-<pid>/stage/jit-<pid>.dump, which holds the newest records.
 *
 * OPTIONS may be NULL.  The directory is options->dir, else $JITDUMPDIR (ignored in a set-user-ID
 * program), else the current directory; it must exist.  The files are new, with modes 0600 and
 * 0400, in directories of mode 0700, and never opened through a symbolic link.  A stale regular
 * file of the same user is replaced.  One that is not stale is left alone, and the dump goes to
 * jitdump-<pid>-2/jit-<pid>.dump, or -3, and so on: it may be another handle's, an earlier
 * session's with records in it (also from before an exec), or belong to a process with the same pid
 * in another container.  A file is stale if nobody holds its lock, this process has not mapped it,
 * and its header's time is before this process started.  Other JITs' files (DIR/jit-<pid>.dump) are
 * in a different place.  perf and perfjit find each dump by its mapping.
 *
 * Sets *DUMP to NULL and returns 0 if PERFJIT contains neither of the words "dump" and "attach"
 * (words are separated by commas), and neither JITDUMP_ALWAYS nor JITDUMP_ATTACHABLE is given. With
 * only "attach" or JITDUMP_ATTACHABLE no dump is opened yet, and *DUMP can be asked for one
 * (jitdump_poll); that goes to options->dir or $JITDUMPDIR if there is one, else to /tmp, unless
 * who asks names a directory.
 *
 * Returns 0 or a negative errno.  After a failure *DUMP is a handle that only holds the text for
 * jitdump_error(): adding, moving and unloading return the same errno, and jitdump_close() frees
 * it.  A program that tests for NULL before it builds function names should close that handle and
 * continue with NULL.  With -ENOMEM *DUMP may be NULL.  -EPERM: the file system is mounted noexec,
 * so perf could never see the mapping.  -EEXIST: something other than the caller's own regular file
 * with a single link is in the way, or this process has 999 dumps already.  -EINVAL: options->size
 * is not set (or above 4096), a flag is unknown, or max_bytes is too small.  -E2BIG: an option is
 * set that this version does not know.  -EINVAL and -E2BIG are reported even if PERFJIT does not
 * ask for a dump.  -EINVAL as well: the size after "ring=" in PERFJIT is none, or too small.
 *
 * Threads: not on the same DUMP at once.  Since 0.1.0. */
JITDUMP_API int jitdump_open(struct jitdump **dump, const struct jitdump_options *options);

/* Write the closing record, bring the file into its final form (jitdump/README.md) and free DUMP.
 *
 * Returns 0, or the first error of any call on DUMP; -ENOENT if the file was removed in the
 * meantime, -ESTALE if anyone else truncated it or wrote to it: then it is left as it is.  DUMP
 * may be NULL.  No other call on DUMP may be in progress or follow.  In a child that inherited DUMP
 * and never used it, only frees the memory.  Since 0.1.0. */
JITDUMP_API int jitdump_close(struct jitdump *dump);

/* The first error of any call on DUMP, as a sentence that names the file, the cause and the remedy;
 * "" if there was none.  Never NULL.  The text lives as long as DUMP.  Since 0.1.0. */
JITDUMP_API const char *jitdump_error(const struct jitdump *dump);

/* The path of the file, or "" if DUMP is NULL or could not be opened.  Lives as long as DUMP, or
 * until a jitdump_poll opens another one; changes when a forked child opens its own.  Since 0.1.0.
 */
JITDUMP_API const char *jitdump_path(const struct jitdump *dump);

/* The number of functions, moves and unloads that could not be recorded since jitdump_open, for
 * whatever reason (full disk, file size limit, max_bytes, a record over 4 GiB, bad arguments, a
 * dump that could not be opened).  0 if DUMP is NULL.  Since 0.1.0. */
JITDUMP_API uint64_t jitdump_lost(const struct jitdump *dump);

/* The number of functions recorded without their bytes since jitdump_open, because
 * jitdump_code.bytes could not be read: unmapped, or mapped execute-only.  Their names, lines and
 * tables are in the dump.  0 if DUMP is NULL.  Since 0.1.0. */
JITDUMP_API uint64_t jitdump_unreadable(const struct jitdump *dump);

/* With the word "check" in PERFJIT (PERFJIT=dump,check), each function that is added with unwind
 * tables and bytes is followed instruction by instruction, and what the tables say of its frame is
 * compared with what it does to the stack, as by jitdump_cfi_check (cfi.h); x86-64 and aarch64.
 * This is the number of functions whose tables do not fit; 0 without that word, or if DUMP is NULL.
 * They are recorded all the same, and jitdump_add_code returns 0; jitdump_error names the first one
 * and the instruction, and jitdump_close returns -EBADMSG, unless there was another error before.
 * Each add then takes memory from malloc, up to 16 KiB of stack, and microseconds.  Since 0.2.0. */
JITDUMP_API uint64_t jitdump_faults(const struct jitdump *dump);

/* JITDUMP_VERSION of the library that runs, where this header may be another's.  The text lives as
 * long as the process.  Since 0.2.0. */
JITDUMP_API const char *jitdump_version(void);

/* The functions behind the inline NULL checks below; not to be called directly. */
JITDUMP_API int jitdump_add_code_on(struct jitdump *dump, const struct jitdump_code *code,
                                    uint64_t *code_index);
JITDUMP_API int jitdump_move_code_on(struct jitdump *dump, uint64_t code_index,
                                     uint64_t old_code_addr, uint64_t new_code_addr,
                                     uint64_t code_size);
JITDUMP_API int jitdump_move_pieces_on(struct jitdump *dump, uint64_t code_index,
                                       const struct jitdump_piece_move *moves, size_t count);
JITDUMP_API int jitdump_unload_code_on(struct jitdump *dump, uint64_t code_index,
                                       uint64_t code_addr, uint64_t code_size);

/* Record that from now on the bytes [code_addr, code_addr + code_size) are function NAME.
 *
 * Everything CODE points to is copied before this returns.  If code->bytes cannot be read, the
 * function is recorded without them and counted in jitdump_unreadable().  Unwind tables, inlined
 * calls, lines and the load are written as one group, in that order, with no other thread's records
 * in between.  Call it after the code is complete and before it first runs: samples taken earlier
 * have no name.  An address may be reused at any time, with or without jitdump_unload_code; the
 * newest function wins.
 *
 * Two views of one arena: code_addr is where the code runs, bytes is where this process can read
 * it, which may be elsewhere: the writable mapping of memory that is mapped twice, or the buffer
 * that it was emitted into and is copied from (before it is patched or relocated, the bytes there
 * are what perf annotate shows).  bytes is read before this returns and may then be unmapped or
 * used again.  The mapping at code_addr is never read: it may be execute-only.
 *
 * JITDUMP_RELATIVE: rows have offsets instead of addresses, so that those collected while the code
 * was emitted serve as they are.  Unwind tables from cfi.h never depend on the address.
 *
 * Pieces: a function in several places (hot and cold, basic blocks) is one call.  Its first piece
 * is CODE itself, the others are its pieces: each has address, size, bytes, lines, inlines, unwind
 * and flags of its own, the struct's size, no name (NULL: it has the function's) and no pieces.
 * Their line numbers, names and frames are those of one function in all of perfjit's reports;
 * debuggers and unwinders find each.  Piece N, pieces[N - 1], can be moved and unloaded by
 * CODE_INDEX + N; jitdump_unload_code of CODE_INDEX is of the whole function, and
 * jitdump_move_pieces moves it.  A piece of code_size 0 is left out; its number stays.  Each piece
 * is a load of its own to perf inject, of the same name, after an extension record CODE_PIECE that
 * it skips.  Takes memory (malloc).
 *
 * Inlined calls: line_inlines assigns the rows of the line table to inlines.  From a row's address
 * up to the next row's, the instructions belong to that row's inline, and so to its parents; before
 * the first row they belong to the function itself.  Rows may be in any order; of rows with the
 * same address the last one counts.  They must lie in [code_addr, code_addr + code_size]; a row at
 * the end covers no instruction.  Without inlines (inline_count 0) rows may have any address.
 * Inlines are written as the extension record CODE_INLINE_INFO (jitdump/README.md), which perf
 * inject skips; it gets the lines.
 *
 * CODE_INDEX, if not NULL, receives the number by which to move or unload the function: unique
 * within the process's dump, counted from 0.  It receives JITDUMP_NO_CODE if the function was not
 * recorded, because of an error or because DUMP is NULL.
 *
 * Returns 0, or:
 * - -EINVAL: code->size does not cover code_size or is above 4096; a pointer is NULL where its
 *   count is not 0; the unwind header is larger than the whole; an inline has no name, or a parent
 *   that does not precede it; a row names an inline that does not exist, or lies outside the
 *   function; a flag is unknown; with JITDUMP_RELATIVE a row's offset is not in the function;
 *   buffer_offset is set without it; a function in pieces has no code, or two of them overlap, or
 *   one has another size member, a name or pieces;
 * - -E2BIG: a member is set that this version does not know;
 * - -EFBIG: the group is nearly 4 GiB or larger, or the file would exceed the file size limit (no
 *   signal is raised) or max_bytes; with JITDUMP_RING: the code that is alive leaves no room in
 *   max_bytes, until some of it is unloaded;
 * - -ENOMEM: no memory to sort inlined calls or pieces, or to assemble a large function;
 * - -EAGAIN: a stopped thread is in the way;
 * - -EBADF: the program closed the file's descriptor;
 * - the error of growing the file (-ENOSPC, -EDQUOT, -EIO, -ENOMEM), or in a child of opening it.
 *
 * A function that could not be recorded is counted in jitdump_lost() and leaves no trace in the
 * file.  A failed write is retried by later calls, every 100 ms.
 *
 * Code addresses are not checked here: perfjit leaves out, and reports, code at addresses where no
 * process has memory.  Since 0.1.0. */
#ifdef JITDUMP_NO_INLINE
JITDUMP_API int jitdump_add_code(struct jitdump *dump, const struct jitdump_code *code,
                                 uint64_t *code_index);
#else
static inline int jitdump_add_code(struct jitdump *dump, const struct jitdump_code *code,
                                   uint64_t *code_index)
{
    if (dump)
        return jitdump_add_code_on(dump, code, code_index);
    if (code_index)
        *code_index = JITDUMP_NO_CODE;
    return 0;
}
#endif

/* The same for a function of which nothing but its name is told: CODE_SIZE bytes at CODE, where
 * they run and can be read.  CODE_INDEX may be NULL.  Since 0.2.0. */
JITDUMP_API int jitdump_add(struct jitdump *dump, const char *name, const void *code,
                            uint64_t code_size, uint64_t *code_index);

/* Record that function CODE_INDEX was copied from OLD_CODE_ADDR to NEW_CODE_ADDR and runs there
 * from now on; the old place no longer holds a function.  Call it before the code first runs at its
 * new place.  The ranges may overlap.  For JITDUMP_NO_CODE nothing is recorded and 0 is returned.
 * Otherwise returns as jitdump_add_code.  Since 0.1.0. */
#ifdef JITDUMP_NO_INLINE
JITDUMP_API int jitdump_move_code(struct jitdump *dump, uint64_t code_index, uint64_t old_code_addr,
                                  uint64_t new_code_addr, uint64_t code_size);
#else
static inline int jitdump_move_code(struct jitdump *dump, uint64_t code_index,
                                    uint64_t old_code_addr, uint64_t new_code_addr,
                                    uint64_t code_size)
{
    return dump ? jitdump_move_code_on(dump, code_index, old_code_addr, new_code_addr, code_size)
                : 0;
}
#endif

/* Record that a function in pieces was copied elsewhere: its piece N, of COUNT, as MOVES[N] says,
 * by any distance each.  CODE_INDEX is the function's.  Pieces that stay where they are
 * (old_code_addr is new_code_addr) or are empty are left out.  One record for each piece, as if by
 * jitdump_move_code with CODE_INDEX + N.  Returns 0; -EINVAL if MOVES is NULL and COUNT is not 0;
 * or the first error of a move, after all were tried.  Since 0.2.0. */
#ifdef JITDUMP_NO_INLINE
JITDUMP_API int jitdump_move_pieces(struct jitdump *dump, uint64_t code_index,
                                    const struct jitdump_piece_move *moves, size_t count);
#else
static inline int jitdump_move_pieces(struct jitdump *dump, uint64_t code_index,
                                      const struct jitdump_piece_move *moves, size_t count)
{
    return dump ? jitdump_move_pieces_on(dump, code_index, moves, count) : 0;
}
#endif

/* Record that function CODE_INDEX at CODE_ADDR is gone: samples there no longer belong to it.  Call
 * it after the code last ran and before its memory is used for anything else.  Writes the extension
 * record CODE_UNLOAD (jitdump/README.md), which perf inject skips.  For JITDUMP_NO_CODE nothing is
 * recorded and 0 is returned.  A function in pieces is gone as a whole: CODE_ADDR and CODE_SIZE are
 * its first piece's.  Otherwise returns as jitdump_add_code.  Since 0.1.0. */
#ifdef JITDUMP_NO_INLINE
JITDUMP_API int jitdump_unload_code(struct jitdump *dump, uint64_t code_index, uint64_t code_addr,
                                    uint64_t code_size);
#else
static inline int jitdump_unload_code(struct jitdump *dump, uint64_t code_index, uint64_t code_addr,
                                      uint64_t code_size)
{
    return dump ? jitdump_unload_code_on(dump, code_index, code_addr, code_size) : 0;
}
#endif

/* ---- On and off in a running process ----
 *
 *     struct jitdump_options options = JITDUMP_OPTIONS_INIT;
 *     options.flags = JITDUMP_ATTACHABLE;              // or PERFJIT=attach in the environment
 *     jitdump_open(&dump, &options);                   // opens no dump yet
 *     ...
 *     static void emit_all(struct jitdump *dump, void *user)
 *     {
 *         struct runtime *runtime = user;
 *         for (struct function *f = runtime->functions; f; f = f->next)
 *             log_function(dump, f);                   // jitdump_add_code, as ever
 *     }
 *     ...
 *     jitdump_poll(dump, emit_all, runtime);           // at a safe point, often
 *
 * perfjit attach PID, or perfjit record -p PID, asks for a dump, perfjit detach PID for its end.
 * The next jitdump_poll of any thread acts on it.  Who may read /proc/PID/fd can ask: root and the
 * process's own user.  What they name is a directory, in which the dump is created as jitdump_open
 * describes it.
 *
 * Such a process has one page of memory more, and one descriptor (above 2, close-on-exec).  A
 * sandbox that refuses memfd_create costs the descriptor only: then who may trace the process, by
 * ptrace, can ask.  No file, no thread, no signal. */

/* Called by jitdump_poll: add all code that is alive, by jitdump_add_code on DUMP.  It must return,
 * and not fork; it may call every function but jitdump_open and jitdump_close, and a jitdump_poll
 * in it does nothing.  If it is left all the same, by an exception or a longjmp, or its thread
 * ends, the dump is open, and who asked waits in vain; who asks next is answered by a jitdump_poll
 * of that thread no deeper in its stack, or, if the thread is gone, of any, and what is alive is
 * told again. */
typedef void jitdump_emit(struct jitdump *dump, void *user);

/* The function behind the inline NULL check below; not to be called directly. */
JITDUMP_API int jitdump_poll_on(struct jitdump *dump, jitdump_emit *emit_all, void *user);

/* If somebody has asked for it, open a dump and call EMIT_ALL (unless it is NULL) with USER from
 * inside this call, or close the dump.  Usually nobody has: then this loads one word of DUMP's page
 * (jitdump_poll_word) and returns 0.
 *
 * After a detach DUMP is as if disabled: adding, moving and unloading is a check that returns 0 and
 * JITDUMP_NO_CODE.  After the next attach there is a new file.  Code indices are not used again: a
 * move or unload with one of an earlier dump is ignored.
 *
 * Threads: may be called by all at once; one acts, the others return 0 at once.  Meanwhile they may
 * add code, which is in the dump if they began to after it was opened.  So that none is lost
 * between them and EMIT_ALL, a thread makes a function known to EMIT_ALL first (under the lock that
 * EMIT_ALL takes, too) and calls jitdump_add_code then.  A function may be recorded twice so: that
 * is harmless, the later record takes the place of the earlier one, and of the two code indices the
 * larger one is to be kept.  In the same way what EMIT_ALL adds must still be alive: it holds off,
 * by that lock, a thread that is about to unload it.
 *
 * Fork: a child can be asked by itself, once it has polled; no request of its parent's reaches it.
 * A child of a process that logs goes on with a dump of its own.  Not in a child that shares its
 * parent's memory.  Exec: there is nothing to ask any more.
 *
 * Returns 0, or the negative errno of opening or closing the dump; who asked is told the cause.
 * Memory is taken by malloc, only where somebody asks.  Since 0.2.0. */
#ifdef JITDUMP_NO_INLINE
JITDUMP_API int jitdump_poll(struct jitdump *dump, jitdump_emit *emit_all, void *user);
#else
static inline int jitdump_poll(struct jitdump *dump, jitdump_emit *emit_all, void *user)
{
    return dump ? jitdump_poll_on(dump, emit_all, user) : 0;
}
#endif

/* The word that jitdump_poll looks at: 0 as long as it has nothing to do.  Compiled code may test
 * it by itself, and call jitdump_poll where it is not 0.  Never NULL; the address stays the same
 * until jitdump_close, in forked children too; with DUMP NULL, or one that can't be asked, it is
 * that of a 0.  To be read only.  Since 0.2.0. */
JITDUMP_API const volatile uint32_t *jitdump_poll_word(const struct jitdump *dump);

/* 1 if what is added now is recorded, 0 if there is no dump: then its name, lines and tables need
 * not be made.  Another thread may change that at any time.  Since 0.2.0. */
JITDUMP_API int jitdump_is_on(const struct jitdump *dump);

#ifdef __cplusplus
}
#endif

#endif
