/* libjitdump: tell Linux perf about code that a JIT compiler made.
 *
 *     struct jitdump *dump;
 *     if (jitdump_open(&dump, NULL) != 0) {            // off, and NULL, unless PERFJIT=dump is set
 *         warnx("%s", jitdump_error(dump));
 *         jitdump_close(dump);
 *         dump = NULL;                                 // off from now on
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
 * Off costs nothing.  When PERFJIT does not ask for a dump, jitdump_open gives a NULL handle, and
 * every call below with a NULL handle is an inline test of one word that returns 0.
 *
 * Errors: functions return 0 or a negative errno; jitdump_error() has the cause in words.  errno
 * itself is left as it was.  The library never prints, exits, raises a signal or calls back.
 *
 * Threads: every function but jitdump_open and jitdump_close may be called from any number of
 * threads at once on one handle.
 *
 * Suspension: a thread that a signal stopped inside a call does not block the others.
 * - A move or unload returns 0 at once.  It is kept in memory, and a later call on the handle, or
 *   jitdump_close, writes it with its own time; if the process is killed before that it is lost.
 * - An add waits for a stopped thread that holds one of the handle's two locks, 20 ms for each;
 *   or 1 s, if that thread spins in its handler, and so can't be told from one that works.  Then
 *   it returns -EAGAIN and is counted in jitdump_lost(); the next adds of the thread that waited
 *   last fail at once, until the stopped one goes on.  Other threads wait again.
 * - An add with inlined calls uses malloc.  A thread may be stopped inside malloc: so give no
 *   inlined calls for code that is added while threads are stopped.
 *
 * Leaving a call: a thread that is cancelled asynchronously, or leaves by a longjmp out of a signal
 * handler, loses what it was recording and nothing else.  After a longjmp other threads' adds may
 * return -EAGAIN until that thread's next call.
 *
 * Fork: a child that adds, moves or unloads code gets a dump of its own in the same directory,
 * jitdump-PID/jit-PID.dump with its own pid, in which code indices go on where the parent's were at
 * the fork; the parent's is left alone.  Not in a child that shares its parent's memory (vfork).
 * Exec: the dump stays as a killed process's does.
 *
 * Stack: a call takes less than 4 KiB, and less than 1.5 KiB where the file need not be written to.
 *
 * Signals: not safe in a signal handler.  Descriptors: two for each dump, above 2, closed on exec.
 *
 * The file's format is that of the kernel's tools/perf/Documentation/jitdump-specification.txt,
 * plus the extension records of jitdump/README.md, which older readers skip by their size.
 */
#ifndef JITDUMP_H
#define JITDUMP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define JITDUMP_VERSION "0.1.0"

/* A program or library that takes the library's sources in defines JITDUMP_STATIC for them, and
 * then exports none of their names: two of them in one process, of two versions, don't meet.
 * libjitdump.a is built so. */
#if defined(__GNUC__) && defined(JITDUMP_STATIC)
#define JITDUMP_API __attribute__((visibility("hidden")))
#elif defined(__GNUC__)
#define JITDUMP_API __attribute__((visibility("default")))
#else
#define JITDUMP_API
#endif

/* An open dump.  Opaque; NULL means "off", and every call takes it. */
struct jitdump;

/* Open the dump whatever the environment variable PERFJIT says. */
#define JITDUMP_ALWAYS 0x1u
/* Stamp records with the CPU's time-stamp counter (x86-64 TSC, aarch64 CNTVCT) instead of
 * CLOCK_MONOTONIC: for recordings without -k whose perf.data has a TIME_CONV record.  -EOPNOTSUPP
 * on other machines. */
#define JITDUMP_TSC 0x2u
/* Write each record at once, by system calls, and map nothing that is stored to: for a file system
 * that may go away (a network's), where a store into a mapped page would be a SIGBUS.  The word
 * "unmapped" in PERFJIT does the same.  What it costs: jitdump/README.md. */
#define JITDUMP_UNMAPPED 0x4u

struct jitdump_options {
    size_t size;        /* sizeof(struct jitdump_options): lets the struct grow */
    const char *dir;    /* where to put the dump; NULL: $JITDUMPDIR, else the current directory */
    uint32_t flags;     /* JITDUMP_ALWAYS | JITDUMP_TSC | JITDUMP_UNMAPPED */
    uint32_t elf_mach;  /* ELF e_machine of the code; 0: this program's */
    uint64_t max_bytes; /* the most that its files may have; 0: any number; else 512 KiB or more */
};

/* What jitdump_add_code gives for the code_index of a function that it did not record. */
#define JITDUMP_NO_CODE UINT64_MAX
/* For a row: its instructions are the function's own.  For an inlined call: it stands in the
 * function itself. */
#define JITDUMP_NOT_INLINED UINT32_MAX

/* One row of a function's line table: the instructions from ADDR up to the next row's.  Where calls
 * were inlined, file and line are those of the innermost one's source. */
struct jitdump_line {
    uint64_t addr;    /* absolute address of the first instruction of the row */
    const char *file; /* source file, as a debugger should look for it */
    uint32_t line;    /* from 1; 0: no line */
    uint32_t column;  /* from 1; 0: not known */
};

/* A call that the compiler inlined.  All of a function's together are a tree, in which parents
 * stand in front: if main calls f, and f calls g, and both are inlined into main, then f is inline
 * 0 with the parent JITDUMP_NOT_INLINED, and g is inline 1 with the parent 0.  A function that is
 * inlined at two places is two inlines.  This struct does not grow: it is an array's element. */
struct jitdump_inline {
    const char *name;      /* of the function that was inlined; not NULL */
    const char *call_file; /* where its call stands in the parent's source; NULL or "": not known */
    const char *decl_file; /* where it is defined; NULL or "": not known */
    uint32_t call_line;    /* from 1; 0: not known */
    uint32_t call_column;  /* from 1; 0: not known */
    uint32_t decl_line;    /* from 1; 0: not known */
    uint32_t parent;       /* index of the inline that holds the call, or JITDUMP_NOT_INLINED */
};

/* Unwind tables as bytes, in the order that perf reads: .eh_frame first, .eh_frame_hdr last.  With
 * an unwinding_size of 0 there are none. */
struct jitdump_unwind {
    const void *data;           /* unwinding_size bytes */
    uint64_t unwinding_size;    /* .eh_frame and .eh_frame_hdr together, in bytes */
    uint64_t eh_frame_hdr_size; /* of which the header, in bytes */
    uint64_t mapped_size; /* as in the record; perf needs unwinding_size here to read the tables */
};

/* Everything about one function.  Start from JITDUMP_CODE_INIT. */
struct jitdump_code {
    size_t size;                      /* sizeof(struct jitdump_code) */
    const char *name;                 /* what perf report shall show; NULL counts as "" */
    uint64_t code_addr;               /* where the code runs */
    uint64_t code_size;               /* in bytes */
    const void *bytes;                /* code_size bytes of code; NULL: there are none to be read */
    const struct jitdump_line *lines; /* line_count rows, or NULL */
    size_t line_count;
    const struct jitdump_unwind *unwind;  /* or NULL */
    const struct jitdump_inline *inlines; /* inline_count of them, or NULL */
    size_t inline_count;
    const uint32_t *line_inlines; /* for each of the line_count rows the index of the innermost
                                   * inline that its instructions belong to, or JITDUMP_NOT_INLINED;
                                   * may be NULL when inline_count or line_count is 0 */
};

/* Initialisers that set the size member and nothing else. */
#define JITDUMP_OPTIONS_INIT                                                                       \
    {                                                                                              \
        sizeof(struct jitdump_options), 0, 0, 0, 0                                                 \
    }
#define JITDUMP_CODE_INIT                                                                          \
    {                                                                                              \
        sizeof(struct jitdump_code), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                  \
    }

/* Make jitdump-<pid>/jit-<pid>.dump and map its first page PROT_READ|PROT_EXEC, which is how perf
 * finds the dump; and the same for jitdump-<pid>/stage/jit-<pid>.dump, which has what was recorded
 * last.
 *
 * OPTIONS may be NULL.  The directory is options->dir, else $JITDUMPDIR (ignored in a set-user-ID
 * program), else the current directory; it must exist.  The files are made anew, mode 0600 and
 * 0400, in directories of mode 0700, never through a symbolic link; a stale regular file of the
 * same user is replaced.  One that is not stale is left alone, and the dump goes to
 * jitdump-<pid>-2/jit-<pid>.dump, or -3, ...: another handle's, an earlier session's with something
 * in it (before an exec, too), or a process's of the same pid in another container.  It is stale if
 * nobody has it locked, this process has not mapped it, and it says an earlier time than this
 * process's start.  Other JITs' files (DIR/jit-<pid>.dump) are somewhere else.  perf and perfjit
 * find each by its mapping.
 *
 * Sets *DUMP to NULL and returns 0 when PERFJIT does not contain the word "dump" (words are
 * separated by commas) and JITDUMP_ALWAYS is not given.
 *
 * Returns 0 or a negative errno.  After a failure *DUMP is a handle that only keeps the text for
 * jitdump_error(): adding to it, and moving and unloading, return the same errno, and
 * jitdump_close() frees it.  Who tests for NULL before he builds a function's name closes it, and
 * goes on with NULL.  With -ENOMEM *DUMP may be NULL.  -EPERM: the file system is mounted noexec,
 * so that perf could never see the marker.  -EEXIST: something that is not the caller's own regular
 * file, with one link, is in the way, or there are 999 dumps of this process already.  -EINVAL:
 * options->size is not set (or above 4096), a flag is unknown, or max_bytes is too small.  -E2BIG:
 * an option is set that this version does not know; this and -EINVAL are found even when PERFJIT
 * does not ask for a dump.
 *
 * Threads: not on the same DUMP at once.  Since 0.1.0. */
JITDUMP_API int jitdump_open(struct jitdump **dump, const struct jitdump_options *options);

/* Write the closing record, bring the file into its last form (jitdump/README.md) and free DUMP.
 *
 * Returns 0, or the first error that any call on DUMP met; -ENOENT if the file was removed
 * meanwhile, -ESTALE if somebody else cut it or wrote to it: then it is left as it is.  DUMP may be
 * NULL.  No other call on DUMP may be under way or follow.  In a child that inherited DUMP and
 * never used it, frees the memory only. Since 0.1.0. */
JITDUMP_API int jitdump_close(struct jitdump *dump);

/* The first error that DUMP met, as a sentence that names the file, the cause and what to do; "" if
 * there was none.  Never NULL.  The text lives as long as DUMP.  Since 0.1.0. */
JITDUMP_API const char *jitdump_error(const struct jitdump *dump);

/* The path of the file, or "" when DUMP is NULL or could not be opened.  Lives as long as DUMP, but
 * changes when a forked child opens its own.  Since 0.1.0.  */
JITDUMP_API const char *jitdump_path(const struct jitdump *dump);

/* How many functions, moves and unloads could not be recorded since jitdump_open, whatever the
 * error (full disk, file size limit, max_bytes, a record over 4 GiB, bad arguments, a dump that
 * could not be opened).  0 when DUMP is NULL.  Since 0.1.0. */
JITDUMP_API uint64_t jitdump_lost(const struct jitdump *dump);

/* How many functions were recorded without their bytes since jitdump_open, because
 * jitdump_code.bytes could not be read: unmapped, or mapped execute-only.  Their names, lines and
 * tables are in the dump.  0 when DUMP is NULL.  Since 0.1.0. */
JITDUMP_API uint64_t jitdump_unreadable(const struct jitdump *dump);

/* The functions behind the inline tests below; not to be called directly.  */
JITDUMP_API int jitdump_add_code_on(struct jitdump *dump, const struct jitdump_code *code,
                                    uint64_t *code_index);
JITDUMP_API int jitdump_move_code_on(struct jitdump *dump, uint64_t code_index,
                                     uint64_t old_code_addr, uint64_t new_code_addr,
                                     uint64_t code_size);
JITDUMP_API int jitdump_unload_code_on(struct jitdump *dump, uint64_t code_index,
                                       uint64_t code_addr, uint64_t code_size);

/* Record that from now on the bytes [code_addr, code_addr + code_size) are function NAME.
 *
 * Everything CODE points to is copied before this returns.  If code->bytes can't be read the
 * function is recorded without them, and counted in jitdump_unreadable().  Unwind tables, inlined
 * calls, lines and the load reach the file as one group, in that order, with no other thread's
 * records in between.  Call it after the code is complete and before it first runs: samples taken
 * earlier have no name.  An address may be used again at any time, with or without
 * jitdump_unload_code; the newest function wins.
 *
 * Inlined calls: line_inlines says which rows of the line table belong to which.  From a row's
 * address up to the next one's the instructions are those of its inline, and so of its parents; in
 * front of the first row they are the function's own.  Rows may stand in any order; of rows at one
 * address the last given counts. They must lie in [code_addr, code_addr + code_size], where a row
 * at the end holds no instruction.  Without inlines (inline_count 0) rows may be anywhere, as they
 * always could.  The inlines are the extension record CODE_INLINE_INFO (jitdump/README.md), which
 * perf inject skips; it gets the lines.
 *
 * CODE_INDEX, if not NULL, receives the number by which to move or unload the function: unique in
 * the process's dump, counted from 0.  It receives JITDUMP_NO_CODE when the function was not
 * recorded, because of an error or because DUMP is NULL.
 *
 * Returns 0; -EINVAL when code->size does not reach behind code_size or is above 4096, a pointer is
 * missing where a count is not 0, the unwind header is larger than the whole, an inline has no name
 * or a parent that does not stand in front of it, a row belongs to an inline that does not exist,
 * or it lies outside the function (see above); -E2BIG when a member is set that this version does
 * not know; -EFBIG for a group of nearly 4 GiB; -ENOMEM when there is no memory to bring inlined
 * calls in order, or to put a large function together; or the error of growing the file (-ENOSPC,
 * -EDQUOT, -EIO, -ENOMEM, -EFBIG at the file size limit, for which no signal is raised, or at
 * max_bytes; -EBADF if the program closed the file's descriptor), or in a child of opening it;
 * -EAGAIN if a thread that stands in the way is stopped.  A function that could not be recorded is
 * counted in jitdump_lost() and leaves no trace in the file; calls try again, every 100 ms.
 *
 * Which addresses code can have is not judged here: perfjit leaves out, and tells, what lies where
 * no process has memory. Since 0.1.0. */
static inline int jitdump_add_code(struct jitdump *dump, const struct jitdump_code *code,
                                   uint64_t *code_index)
{
    if (dump)
        return jitdump_add_code_on(dump, code, code_index);
    if (code_index)
        *code_index = JITDUMP_NO_CODE;
    return 0;
}

/* Record that function CODE_INDEX was copied from OLD_CODE_ADDR to NEW_CODE_ADDR and runs there
 * from now on; the old place holds no function any more.  Call it before the code first runs at its
 * new place. The ranges may overlap.  With JITDUMP_NO_CODE nothing is recorded and 0 returned: what
 * is not in the dump can't move.  Otherwise returns as jitdump_add_code.  Since 0.1.0. */
static inline int jitdump_move_code(struct jitdump *dump, uint64_t code_index,
                                    uint64_t old_code_addr, uint64_t new_code_addr,
                                    uint64_t code_size)
{
    return dump ? jitdump_move_code_on(dump, code_index, old_code_addr, new_code_addr, code_size)
                : 0;
}

/* Record that function CODE_INDEX at CODE_ADDR is gone: samples there no longer belong to it.  Call
 * it after the code last ran and before its memory is used for anything else.  Writes the extension
 * record CODE_UNLOAD (jitdump/README.md); perf inject skips it.  With JITDUMP_NO_CODE nothing is
 * recorded and 0 returned.  Otherwise returns as jitdump_add_code.  Since 0.1.0. */
static inline int jitdump_unload_code(struct jitdump *dump, uint64_t code_index, uint64_t code_addr,
                                      uint64_t code_size)
{
    return dump ? jitdump_unload_code_on(dump, code_index, code_addr, code_size) : 0;
}

#ifdef __cplusplus
}
#endif

#endif
