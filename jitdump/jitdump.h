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
 *     if (*jitdump_error(dump))                        // what was lost, or does not fit (check)
 *         warnx("%s", jitdump_error(dump));
 *     jitdump_close(dump);
 *
 * and then:
 *
 *     PERFJIT=dump perf record -k mono -g ./runtime script
 *     perfjit inject && perf report -i perf.jit.data
 *
 * When disabled: if PERFJIT does not ask for a dump, jitdump_open sets the handle to NULL.  An add,
 * move or unload is then one inline NULL check that returns 0 (jitdump_add: one call).  A process
 * can also open its dump on request while it runs (jitdump_poll, at the end).
 *
 * Errors: functions return 0 or a negative errno; jitdump_error() describes the cause.  errno
 * itself is preserved.  The library never exits, raises a signal or calls back.  (SIGBUS is raised
 * if root or the file system takes away the file that is mapped: JITDUMP_UNMAPPED.)  It never
 * prints, unless the user has asked for that by the word "check" in PERFJIT (jitdump_faults).
 *
 * Threads: every function except jitdump_open and jitdump_close may be called by any number of
 * threads at once on one handle.
 *
 * Suspension: a thread that is stopped inside a call, by a signal handler, does not block the
 * others.
 * - A move or unload returns 0 without waiting, or after 0.1 s if the stopped thread spins in its
 *   handler.  It is kept in memory.  The next call on the handle, or jitdump_close, writes it with
 *   its own timestamp.  If the process is killed before that, it is lost.
 * - An add waits for a stopped thread that holds one of the handle's two locks: 20 ms for each
 *   lock.  It waits 1 s if that thread spins in its handler, because such a thread can't be told
 *   from one that is working.  It also waits 1 s where threads can't be seen: without /proc,
 *   without a free descriptor, and after the process has dropped its rights.  Time during which the
 *   waiting thread is stopped itself does not count.  Then the add returns -EAGAIN and is counted
 *   in jitdump_lost().  Later adds of that thread fail immediately until the stopped thread goes on
 *   (a spinning one: until it leaves the library).  Other threads wait again.
 * - So only functions that are added during a pause can be lost.  Those that the stopped threads
 *   add before and after it are not affected.  A pause lasts until each thread has left its
 *   handler: one that is stopped again before it got a processor was stopped all the time.
 * - An add with inlined calls or pieces, and the first call in a forked child, use malloc.  A
 *   stopped thread may be inside malloc.  So pass neither inlined calls nor pieces for code that is
 *   added while threads are stopped.
 *
 * Leaving a call: no call is a cancellation point.  A thread that is cancelled asynchronously, or
 * that leaves by longjmp out of a signal handler, loses only the record that it was writing.  Never
 * leave a call that uses malloc (above, and jitdump_poll) by a longjmp: malloc's lock would stay
 * locked.  A jitdump_poll that opens or closes a dump is not cancelled before it returns, but in
 * EMIT_ALL, which is called with its thread's own cancellation state.  After a longjmp, adds by
 * other threads may return -EAGAIN until that thread's next call.
 *
 * Fork: a child that adds, moves or unloads code gets a dump of its own in the same directory,
 * jitdump-PID/jit-PID.dump with its own pid.  Its code indices continue from the parent's at the
 * fork.  The parent's dump is not touched.  A child that shares its parent's memory (vfork) is not
 * supported.  A child that a signal handler forked must end in the handler, by exec or _exit, if
 * the handler had interrupted a call: it may not return into that call.
 *
 * Exec: the dump is left as if the process had been killed.
 *
 * Stack: a call uses less than 4 KiB, and less than 1.5 KiB if it does not write to the file.  In a
 * program linked statically with the library but without -z now, the first calls need another 4 KiB
 * for the dynamic linker.
 *
 * Signals: not safe in a signal handler.
 * Descriptors: two per dump (one with JITDUMP_UNMAPPED), above 2, close-on-exec.
 *
 * The file format is the one in the kernel's tools/perf/Documentation/jitdump-specification.txt,
 * plus the extension records described in jitdump/README.md.  Older readers skip those by their
 * size.
 */
#ifndef JITDUMP_H
#define JITDUMP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define JITDUMP_VERSION "0.3.0"

/* A program or library that compiles these sources into itself defines JITDUMP_STATIC for them.
 * Then it exports none of their symbols, and two copies of different versions do not clash in one
 * process. libjitdump.a is built that way. */
#if defined(__GNUC__) && defined(JITDUMP_STATIC)
#define JITDUMP_API __attribute__((visibility("hidden")))
#elif defined(__GNUC__)
#define JITDUMP_API __attribute__((visibility("default")))
#else
#define JITDUMP_API
#endif

/* Functions that are inline below are also in the library, for callers that look them up by name
 * (dlopen, FFI).  With JITDUMP_NO_INLINE defined, this header only declares them. */

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
/* Write each record immediately with system calls, and keep no writable file mapping.  This is for
 * file systems that may go away (network file systems): a store to a mapped page would raise SIGBUS
 * there.  The word "unmapped" in PERFJIT does the same.  For the cost see jitdump/README.md. */
#define JITDUMP_UNMAPPED 0x4u
/* Open no dump until one is requested (perfjit attach), unless PERFJIT or JITDUMP_ALWAYS requests
 * it already: see jitdump_poll.  The word "attach" in PERFJIT does the same.  Ignored in a
 * set-user-ID program.  Since 0.2.0. */
#define JITDUMP_ATTACHABLE 0x8u
/* Never grow beyond max_bytes, and never stop: old records make room for new ones.  The dump then
 * has all functions that are alive, and the newest part of the history, with all functions that
 * existed during that part.  max_bytes must be 4 MiB or more; of a larger value than 4 GiB only 4
 * GiB are used.  The word "ring=SIZE" in PERFJIT (64M, 1G; bytes without a letter) does the same,
 * and replaces the program's max_bytes.  Each dump has a ring of its own: also a child's, and each
 * that jitdump_poll opens.  For what it keeps and costs see jitdump/README.md.  Since 0.2.0. */
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

/* For jitdump_code: the addr of each row is an offset instead of an address.  This is for compilers
 * that emit code into a buffer from which it is copied later.  Since 0.2.0. */
#define JITDUMP_RELATIVE 0x1u

/* One row of a function's line table: the instructions from ADDR up to the next row.  If calls were
 * inlined, file and line are in the source of the innermost callee.  This struct will not grow,
 * since it is an array element. */
struct jitdump_line {
    uint64_t addr;    /* absolute address of the first instruction of the row; with
                       * JITDUMP_RELATIVE its offset */
    const char *file; /* source file, by the path at which a debugger should look for it */
    uint32_t line;    /* from 1; 0: no line */
    uint32_t column;  /* from 1; 0: unknown */
};

/* A call that the compiler inlined.  The inlines of a function form a tree, with parents listed
 * first.  Example: main calls f, f calls g, and both are inlined into main.  Then f is inline 0
 * with parent JITDUMP_NOT_INLINED, and g is inline 1 with parent 0.  A function inlined in two
 * places is two inlines.  This struct will not grow, since it is an array element. */
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
 * An unwinding_size of 0 means there are none.  The struct may grow: jitdump_cfi_finish is given
 * its size, and jitdump_code has a member for it. */
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
    size_t unwind_size;     /* sizeof(struct jitdump_unwind), if a member of *unwind is set that is
                             * newer than version 0.1 (there is none yet); else 0.  Since 0.2.0 */
    uint64_t flags;         /* JITDUMP_RELATIVE, or 0.  Since 0.2.0 */
    uint64_t buffer_offset; /* with JITDUMP_RELATIVE: where the function begins in the buffer, if
                             * the rows' offsets count from the buffer's first byte; 0: they count
                             * from the function's.  Since 0.2.0 */
    const struct jitdump_code *pieces; /* piece_count more pieces of the function, or NULL.  Since
                                        * 0.2.0 */
    size_t piece_count;
};

/* The old and new place of a piece of a function.  This struct will not grow, since it is an array
 * element.  Since 0.2.0. */
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

/* Create jitdump-<pid>/jit-<pid>.dump and map its first page PROT_READ|PROT_EXEC: perf finds the
 * dump by this mapping.  Do the same for jitdump-<pid>/stage/jit-<pid>.dump, which holds the newest
 * records.
 *
 * OPTIONS may be NULL.  The directory is options->dir, else $JITDUMPDIR (ignored in a set-user-ID
 * program), else the current directory.  It must exist.  The files are new, with modes 0600 and
 * 0400, in directories of mode 0700, and never opened through a symbolic link.  A stale regular
 * file of the same user is replaced.  A file that is not stale is left alone, and the dump goes to
 * jitdump-<pid>-2/jit-<pid>.dump, or -3, and so on.  Such a file may be another handle's.  It may
 * be an earlier session's with records in it (also from before an exec), or belong to a process
 * with the same pid in another container.  A file is stale if nobody holds its lock, this process
 * has not mapped it, and its header's time is before this process started.  Other JITs' files
 * (DIR/jit-<pid>.dump) are in a different place.  perf and perfjit find each dump by its mapping.
 *
 * Sets *DUMP to NULL and returns 0 if PERFJIT contains neither of the words "dump" and "attach"
 * (words are separated by commas), and neither JITDUMP_ALWAYS nor JITDUMP_ATTACHABLE is given.
 * With only "attach" or JITDUMP_ATTACHABLE no dump is opened yet, and one can be requested later
 * (jitdump_poll).  That dump goes to the directory that the request names, else to options->dir or
 * $JITDUMPDIR, else to /tmp.
 *
 * Returns 0 or a negative errno.  After a failure *DUMP is a handle that only holds the text for
 * jitdump_error(): adding, moving and unloading return the same errno, and jitdump_close() frees
 * it.  A program that tests for NULL before it builds function names should close that handle and
 * continue with NULL.  With -ENOMEM *DUMP may be NULL.  Some errors:
 * - -EPERM: the file system is mounted noexec, so perf could never see the mapping;
 * - -EEXIST: something other than the caller's own regular file with a single link is in the way,
 *   or this process has 999 dumps already (where there is no /proc, an earlier program's oldest one
 *   is replaced then);
 * - -EINVAL: options->size is not set (or above 4096), a flag is unknown, or max_bytes is too
 *   small; or PERFJIT has a word that is none of attach, check, dump, gdb, map, ring=SIZE and
 *   unmapped, or the size after "ring=" is not a size, or too small;
 * - -E2BIG: an option is set that this version does not know.
 *
 * -EINVAL and -E2BIG for OPTIONS, and -EINVAL for a word in PERFJIT, are reported even if PERFJIT
 * does not ask for a dump.  A PERFJIT with a slash, as scripts keep the path of the command, has no
 * unknown words.
 *
 * Threads: one thread at a time on the same DUMP.  Since 0.1.0. */
JITDUMP_API int jitdump_open(struct jitdump **dump, const struct jitdump_options *options);

/* Write the closing record, bring the file into its final form (jitdump/README.md) and free DUMP.
 *
 * Returns 0, or the first error of any call on DUMP.  It returns -ENOENT if the file was removed in
 * the meantime, and -ESTALE if anyone else truncated it or wrote to it; then the file is left as it
 * is.  DUMP may be NULL.  No other call on DUMP may be in progress or follow.  In a child that
 * inherited DUMP and never used it, this only frees the memory.  Since 0.1.0. */
JITDUMP_API int jitdump_close(struct jitdump *dump);

/* The first error of any call on DUMP, as a sentence that names the file, the cause and the remedy;
 * "" if there was none.  Never NULL.  The text lives as long as DUMP.  Since 0.1.0. */
JITDUMP_API const char *jitdump_error(const struct jitdump *dump);

/* The path of the file, or "" if DUMP is NULL or could not be opened.  The text lives as long as
 * DUMP, or until a jitdump_poll opens another dump.  It changes when a forked child opens its own.
 * Since 0.1.0.
 */
JITDUMP_API const char *jitdump_path(const struct jitdump *dump);

/* The number of functions, moves and unloads that could not be recorded since jitdump_open, for
 * whatever reason (full disk, file size limit, max_bytes, a record over 4 GiB, bad arguments, a
 * dump that could not be opened).  0 if DUMP is NULL.  Since 0.1.0. */
JITDUMP_API uint64_t jitdump_lost(const struct jitdump *dump);

/* The number of functions recorded without their bytes since jitdump_open, because
 * jitdump_code.bytes could not be read (unmapped, or mapped execute-only).  Their names, lines and
 * tables are in the dump.  0 if DUMP is NULL.  Since 0.1.0. */
JITDUMP_API uint64_t jitdump_unreadable(const struct jitdump *dump);

/* The number of functions whose unwind tables do not fit their code.  It is counted with the word
 * "check" in PERFJIT (PERFJIT=dump,check), for x86-64 and aarch64.  Each function that is added
 * with unwind tables and bytes is then followed instruction by instruction: its effect on the stack
 * is compared with its tables, as by jitdump_cfi_check (cfi.h).  0 without that word, or if DUMP is
 * NULL.
 *
 * A function that does not fit is recorded all the same, and jitdump_add_code returns 0.
 * jitdump_error names the first such function and the instruction, and jitdump_close returns
 * -EBADMSG, unless there was another error before.  Since 0.3.0 a line on standard error names the
 * first one as soon as it is added, and one of jitdump_close says how many there are; a program
 * need not look at either result.  Nothing is written if the program has closed standard error
 * since jitdump_open, and no signal is raised.  With "check" each add uses malloc, up to 16 KiB of
 * stack, and takes microseconds.  Since 0.2.0. */
JITDUMP_API uint64_t jitdump_faults(const struct jitdump *dump);

/* JITDUMP_VERSION of the library that runs.  It may differ from this header's.  The text lives as
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
 * have no name.  An address may be reused at any time, with or without jitdump_unload_code.  The
 * newest function wins.
 *
 * Two views of one arena: code_addr is where the code runs, bytes is where this process can read
 * it.  The two may differ: bytes may be in the writable mapping of memory that is mapped twice, or
 * in the buffer that the code was emitted into and is copied from.  (perf annotate shows the bytes
 * as they are in that buffer, which may be before they are patched or relocated.) bytes is read
 * before this returns and may then be unmapped or used again.  The mapping at code_addr is never
 * read: it may be execute-only.
 *
 * JITDUMP_RELATIVE: rows have offsets instead of addresses.  So a compiler can pass the rows that
 * it collected while it emitted the code.  Unwind tables from cfi.h never depend on the address.
 *
 * Pieces: a function in several places (hot and cold, basic blocks) is added by one call.  Its
 * first piece is CODE itself, the others are code->pieces.  Each of these has address, size, bytes,
 * lines, inlines, unwind and flags of its own.  Its struct's size is CODE's; its name is NULL (it
 * has the function's name), and it has no pieces.  All of perfjit's reports treat the pieces as one
 * function; debuggers and unwinders find each piece.
 *
 * pieces[N - 1] is piece N, and CODE_INDEX + N moves or unloads it alone.  jitdump_unload_code of
 * CODE_INDEX unloads the whole function, and jitdump_move_pieces moves it.  A piece of code_size 0
 * is left out; its number stays.  For perf inject each piece is a load of its own, of the same
 * name; it skips the extension record CODE_PIECE before the load.  Pieces take memory (malloc).
 *
 * Inlined calls: line_inlines assigns the rows of the line table to inlines.  From a row's address
 * up to the next row's, the instructions belong to that row's inline, and so to its parents.
 * Before the first row they belong to the function itself.  Rows may be in any order.  If rows have
 * the same address, the last one counts.  Rows must lie in [code_addr, code_addr + code_size]; a
 * row at the end covers no instruction.  Without inlines (inline_count 0) rows may have any
 * address.  Inlines are written as the extension record CODE_INLINE_INFO (jitdump/README.md).  perf
 * inject skips that record; it still gets the lines.
 *
 * CODE_INDEX, if not NULL, receives the number for moving or unloading the function.  The number is
 * unique within the process's dump, and counted from 0.  It receives JITDUMP_NO_CODE if the
 * function was not recorded, because of an error or because DUMP is NULL.
 *
 * Returns 0, or:
 * - -EINVAL for the struct: code->size does not cover code_size or is above 4096; a pointer is NULL
 *   where its count is not 0; the unwind header is larger than the whole; a flag is unknown;
 * - -EINVAL for inlines and rows: an inline has no name, or a parent that does not precede it; a
 *   row names an inline that does not exist, or lies outside the function; with JITDUMP_RELATIVE a
 *   row's offset is not in the function; buffer_offset is set without JITDUMP_RELATIVE;
 * - -EINVAL for pieces: the function has no code, two pieces overlap, or a piece has another size
 *   member, a name or pieces;
 * - -E2BIG: a member is set that this version does not know;
 * - -EFBIG: the group is nearly 4 GiB or larger, or the file would exceed the file size limit (no
 *   signal is raised) or max_bytes; with JITDUMP_RING: the code that is alive leaves no room in
 *   max_bytes until some code is unloaded;
 * - -ENOMEM: no memory to sort inlined calls or pieces, or to assemble a large function;
 * - -EAGAIN: a stopped thread is in the way;
 * - -EBADF: the program closed the file's descriptor;
 * - the error of growing the file (-ENOSPC, -EDQUOT, -EIO, -ENOMEM), or in a child of opening it.
 *
 * A function that could not be recorded is counted in jitdump_lost() and leaves no trace in the
 * file.  A failed write is retried by later calls, every 100 ms.
 *
 * Code addresses are not checked here.  perfjit leaves out, and reports, code at addresses where no
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

/* The same for a function with only a name: CODE_SIZE bytes at CODE, which run there and can be
 * read there.  CODE_INDEX may be NULL.  Since 0.2.0. */
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

/* Record that a function in pieces was copied elsewhere: each piece N of COUNT as MOVES[N] says, by
 * any distance.  CODE_INDEX is the function's.  Pieces that stay where they are (old_code_addr is
 * new_code_addr) or are empty are left out.  Each other piece gets one record, as if by
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
 * recorded and 0 is returned.  For a function in pieces, CODE_ADDR and CODE_SIZE are its first
 * piece's, and the whole function is gone.  Otherwise returns as jitdump_add_code.  Since 0.1.0. */
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
 * perfjit attach PID and perfjit record -p PID request a dump; perfjit detach PID requests its end.
 * The next jitdump_poll of any thread serves the request.  Users who may read /proc/PID/fd can send
 * requests: root and the process's own user.  The sender's rights are checked when the request is
 * served.  A sender who has lost them since is refused.  A child that was forked and then dropped
 * its rights can't write to its parent's page.  A request may name a directory.  The dump is
 * created in it as jitdump_open describes.
 *
 * Such a process has one more page of memory and one more descriptor (above 2, close-on-exec), but
 * no file, thread or signal.  In a sandbox that refuses memfd_create, and without /proc, the
 * descriptor is missing.  Then only users who may trace the process, by ptrace, can send requests.
 */

/* jitdump_poll calls this function, which adds all live code by jitdump_add_code on DUMP, with its
 * lines, inlined calls and unwind tables.  So a runtime with this function keeps these of live
 * code, or the data that they are made from.  The function must return, and must not fork.  It may
 * call every function except jitdump_open and jitdump_close; a jitdump_poll in it does nothing.
 *
 * If it is left by an exception or a longjmp, or if its thread ends, the dump stays open, and the
 * request is never answered.  The next request is served by a jitdump_poll of the same thread, at
 * the same or an outer stack level, or of any thread if that thread is gone.  All code that is
 * alive is then added again. */
typedef void jitdump_emit(struct jitdump *dump, void *user);

/* The function behind the inline NULL check below; not to be called directly. */
JITDUMP_API int jitdump_poll_on(struct jitdump *dump, jitdump_emit *emit_all, void *user);

/* Serve a pending request: open a dump and call EMIT_ALL (unless it is NULL) with USER from inside
 * this call, or close the dump.  Usually no request is pending.  Then this loads one word of DUMP's
 * page (jitdump_poll_word) and returns 0.
 *
 * After a detach DUMP is as if disabled: adding, moving and unloading is a check that returns 0 and
 * JITDUMP_NO_CODE.  The next attach creates a new file.  Code indices are not used again: a move or
 * unload with an index of an earlier dump is ignored.
 *
 * Threads: any number of threads may call this at once.  One serves the request, and the others
 * return 0 immediately.  Meanwhile they may add code.  An add that begins after the dump was opened
 * is in the dump.  So that no function is missed, a thread first makes it known to EMIT_ALL (under
 * a lock that EMIT_ALL takes, too), and then calls jitdump_add_code.  This may record a function
 * twice.  That is harmless: the later record replaces the earlier one.  Keep the larger of the two
 * code indices.  EMIT_ALL must add only functions that are still alive: that same lock must keep
 * other threads from unloading them meanwhile.
 *
 * Fork: requests to a child are its own, once it has polled; a request to its parent does not reach
 * it.  A child of a process that logs continues with a dump of its own; if it is asked for one, it
 * calls EMIT_ALL for that, once, and answers with its path.  A child that shares its parent's
 * memory is not supported.  Exec: the new program gets no requests.
 *
 * Returns 0, or the negative errno of opening or closing the dump; the request is answered with the
 * cause.  It uses malloc only when it serves a request.  Since 0.2.0. */
#ifdef JITDUMP_NO_INLINE
JITDUMP_API int jitdump_poll(struct jitdump *dump, jitdump_emit *emit_all, void *user);
#else
static inline int jitdump_poll(struct jitdump *dump, jitdump_emit *emit_all, void *user)
{
    return dump ? jitdump_poll_on(dump, emit_all, user) : 0;
}
#endif

/* The word that jitdump_poll reads: 0 as long as no request is pending.  Compiled code may test it,
 * and call jitdump_poll if it is not 0.  Never NULL.  The address stays the same until
 * jitdump_close, also in forked children.  If DUMP is NULL or takes no requests, the word is always
 * 0.  Do not write to it.  Since 0.2.0. */
JITDUMP_API const volatile uint32_t *jitdump_poll_word(const struct jitdump *dump);

/* 1 if a dump is open, so that added functions are recorded; else 0, and names, lines and tables
 * need not be built.  Another thread may change that at any time.  Since 0.2.0. */
JITDUMP_API int jitdump_is_on(const struct jitdump *dump);

/* ---- Spans: requests, jobs, phases ----
 *
 *     struct jitdump_spans *spans;
 *     if (jitdump_spans_open(&spans, NULL, 0) != 0)    // NULL unless PERFJIT=dump is set
 *         spans = NULL;
 *     ...
 *     uint64_t begin_ns = jitdump_span_begin();
 *     handle(request);
 *     jitdump_span_end(spans, begin_ns, "GET /users"); // profile: perfjit report --span 'GET *'
 *
 * A program writes the times of its work to a text file, which samply reads, too.  Each span is one
 * line: its begin and end on CLOCK_MONOTONIC in ns, and its name.  A dump is not needed. */

/* An open file of spans.  Opaque; NULL means disabled, and every function accepts it. */
struct jitdump_spans;

/* For jitdump_spans_open: the spans are those of the calling thread, in marker-<pid>-<tid>.txt, and
 * not of all threads.  A server whose threads each work on one request opens one in each. */
#define JITDUMP_SPANS_OF_THREAD 0x100u

/* Open DIR/marker-<pid>.txt, or that of the thread, and map a page of it PROT_READ|PROT_EXEC: perf
 * record -k mono finds the file by this mapping.  DIR NULL: $JITDUMPDIR (ignored in a set-user-ID
 * program), else the current directory.  FLAGS is JITDUMP_ALWAYS, JITDUMP_SPANS_OF_THREAD, both or
 * 0.  Sets *SPANS to NULL and returns 0 if PERFJIT does not contain the word "dump" and
 * JITDUMP_ALWAYS is not given.
 *
 * A file of that name is gone on with if it is the caller's own regular file with a single link.
 *
 * Returns 0, or a negative errno with *SPANS set to NULL: -EEXIST: something else is in the way;
 * -EPERM: the file system is mounted noexec; -EINVAL: an unknown flag.
 *
 * Descriptors: one, above 2, close-on-exec.  Uses malloc.  Since 0.3.0. */
JITDUMP_API int jitdump_spans_open(struct jitdump_spans **spans, const char *dir, uint32_t flags);

/* The begin of a span: CLOCK_MONOTONIC in ns.  Async-signal-safe.  Since 0.3.0. */
JITDUMP_API uint64_t jitdump_span_begin(void);

/* The function behind the inline NULL check below; not to be called directly. */
JITDUMP_API int jitdump_span_end_on(struct jitdump_spans *spans, uint64_t begin_ns,
                                    const char *name);

/* Write that the program was in NAME from BEGIN_NS, by jitdump_span_begin, until now.  Spans may
 * lie in each other, and beside each other.  Of a NAME of more than 255 bytes the beginning is
 * written; control characters become spaces.
 *
 * Returns 0 or a negative errno, and keeps nothing of a span that was not written:
 * -EINVAL: NAME is NULL or "", or BEGIN_NS has not come yet; -ENOSPC, -EFBIG and others of
 * write(2); -EBADF: the program has closed the descriptor; -ECHILD: see Fork.
 *
 * Threads: any number at once on one handle, without a lock.  Signals: async-signal-safe, raises
 * none (SIGXFSZ), and is no cancellation point.  A kill loses no span that was written, and tears
 * none.  Fork: a child opens a file of its own; a handle of its parent's returns -ECHILD there.
 * Cost: about six system calls.  errno is preserved.  Since 0.3.0. */
#ifdef JITDUMP_NO_INLINE
JITDUMP_API int jitdump_span_end(struct jitdump_spans *spans, uint64_t begin_ns, const char *name);
#else
static inline int jitdump_span_end(struct jitdump_spans *spans, uint64_t begin_ns, const char *name)
{
    return spans ? jitdump_span_end_on(spans, begin_ns, name) : 0;
}
#endif

/* Close the file, which stays.  No other call on SPANS may be in progress or follow.  In a child,
 * this closes what it inherited.  Since 0.3.0. */
JITDUMP_API void jitdump_spans_close(struct jitdump_spans *spans);

#ifdef __cplusplus
}
#endif

#endif
