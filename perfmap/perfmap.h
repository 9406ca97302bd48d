/* libperfmap: /tmp/perf-<pid>.map, the text file that tells perf the names of JIT code.
 *
 * Writer, for runtimes:
 *
 *     struct perfmap *map;
 *     perfmap_open(&map, NULL);                 // disabled unless PERFJIT=map is set
 *     perfmap_add(map, (uint64_t)(uintptr_t)entry, entry_bytes, "fib");
 *     perfmap_close(map);
 *
 * Reader, for tools:
 *
 *     struct perfmap_table *table;
 *     perfmap_read(&table, "/tmp/perf-1234.map", error, sizeof error);
 *     const struct perfmap_entry *entry = perfmap_find(table, ip);
 *
 * A perf map has no times, code bytes, lines or unwind tables.  A jitdump (libjitdump) has them; it
 * needs perf record -k mono.
 *
 * Errors: functions return 0 or a negative errno, with a text.  The library never prints, exits or
 * calls back.  The format is described in the kernel's tools/perf/Documentation/jit-interface.txt.
 */
#ifndef PERFMAP_H
#define PERFMAP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PERFMAP_VERSION "0.3.0"

/* A program or library that compiles these sources into itself defines PERFMAP_STATIC for them.
 * Then it exports none of their symbols. libperfmap.a is built that way. */
#if defined(__GNUC__) && defined(PERFMAP_STATIC)
#define PERFMAP_API __attribute__((visibility("hidden")))
#elif defined(__GNUC__)
#define PERFMAP_API __attribute__((visibility("default")))
#else
#define PERFMAP_API
#endif

/* The function that is inline below is also in the library, for callers that look it up by name
 * (dlopen, FFI).  With PERFMAP_NO_INLINE defined, this header only declares it. */

#ifdef __cplusplus
#define PERFMAP_NULL nullptr
#else
#define PERFMAP_NULL 0
#endif

/* ---- Writer ---- */

/* An open map.  Opaque; NULL means disabled, and every function accepts it. */
struct perfmap;

/* Open the map regardless of the environment variable PERFJIT. */
#define PERFMAP_ALWAYS 0x1u

struct perfmap_options {
    size_t size;       /* sizeof(struct perfmap_options): lets the struct grow */
    const char *dir;   /* NULL: /tmp, the only place where perf looks */
    uint32_t flags;    /* PERFMAP_ALWAYS */
    uint32_t reserved; /* 0; avoids padding, so that the struct can grow */
};

#define PERFMAP_OPTIONS_INIT                                                                       \
    {                                                                                              \
        sizeof(struct perfmap_options), PERFMAP_NULL, 0, 0                                         \
    }

/* Create <dir>/perf-<pid>.map, mode 0600, never through a symbolic link.  The pid is the one in
 * /proc/self.
 *
 * A stale regular file of the same user is replaced.  A file that may belong to another JIT of this
 * process is appended to.  That is a file that this process has open for writing, or has closed
 * with perfmap_close, or that was written since the process started according to /proc.  (A file
 * written in the first 20 ms counts as stale.  An exec does not restart the process.)
 *
 * If another descriptor of this process, below 1024, writes the map without O_APPEND, as V8's does,
 * the first perfmap_add sets that flag on it.  Otherwise its lines and ours would overwrite each
 * other.  They do so if its number is 1024 or higher.
 *
 * OPTIONS may be NULL.  Sets *MAP to NULL and returns 0 if PERFJIT does not contain the word "map"
 * (words are separated by commas) and PERFMAP_ALWAYS is not given.
 *
 * Returns 0 or a negative errno.  After a failure *MAP is a handle that only holds the text for
 * perfmap_error(): perfmap_add on it returns the same errno, and perfmap_close() frees it.  With
 * -ENOMEM *MAP may be NULL.  Some errors:
 * - -EEXIST: something other than the caller's own regular file with a single link is in the way,
 *   or the map of a parent process that has the same pid;
 * - -EINVAL: options->size is not set (or above 4096), or a flag is unknown;
 * - -E2BIG: an option is set that this version does not know.
 *
 * -EINVAL and -E2BIG are reported even if PERFJIT does not ask for a map.
 *
 * Descriptors: one, above 2, close-on-exec.  Stack: less than 4 KiB.  This call, perfmap_add and
 * perfmap_close preserve errno, and are not cancellation points.
 *
 * Threads: one thread at a time on the same MAP.  Since 0.1.0. */
PERFMAP_API int perfmap_open(struct perfmap **map, const struct perfmap_options *options);

/* Close the file, leaving it in place for perf, and free MAP.  Returns 0 or the first error of any
 * call on MAP.  MAP may be NULL.  No other call on MAP may be in progress or follow.  In a child
 * that inherited MAP, the parent's file stays as it is.  Since 0.1.0. */
PERFMAP_API int perfmap_close(struct perfmap *map);

/* The first error of any call on MAP, as a sentence with cause and remedy; "" if there was none.
 * Never NULL; lives as long as MAP.  Since 0.1.0. */
PERFMAP_API const char *perfmap_error(const struct perfmap *map);

/* The path of the file, or "".  The text lives as long as MAP, but changes when a forked child
 * opens its own.  Since 0.1.0. */
PERFMAP_API const char *perfmap_path(const struct perfmap *map);

/* The number of lines that could not be written.  Since 0.1.0. */
PERFMAP_API uint64_t perfmap_lost(const struct perfmap *map);

/* PERFMAP_VERSION of the library that runs.  It may differ from this header's.  The text lives as
 * long as the process.  Since 0.2.0. */
PERFMAP_API const char *perfmap_version(void);

/* The function behind the inline NULL check below; not to be called directly. */
PERFMAP_API int perfmap_add_on(struct perfmap *map, uint64_t addr, uint64_t size_bytes,
                               const char *name);

/* Append the line "[ADDR, ADDR + SIZE_BYTES) is function NAME" with one write(2).
 *
 * NAME is copied.  Each newline or other control character in it becomes a space.  A name over 4000
 * bytes is cut at a character boundary.  NULL or "" becomes "[unnamed]".  Names of one or two bytes
 * are written as they are, although perf, at least up to 6.12, drops them.
 *
 * Returns 0 or the negative errno of the write.  A line is in the file whole or not at all.  A line
 * that is not in the file is counted in perfmap_lost().  -ENOENT: the file was removed.  -EBADF:
 * the program closed the descriptor.  No signal is raised, not even SIGXFSZ.
 *
 * There are two exceptions.  If a full disk gets room in the microsecond before a partial line is
 * removed, another thread's line may be appended to that part, or removed with it.  If a signal can
 * cut a write short, as on FUSE and NFS, another line may come between the two parts.
 *
 * Another writer may truncate the map, as V8 does when it opens it, or overwrite it.  Then the
 * lines that were there are counted in perfmap_lost() by the next perfmap_add or by perfmap_close,
 * and that call returns -ESTALE.  Writing continues.
 *
 * Threads: any number at once.  There is no lock, and no call waits for a thread that is stopped in
 * another call.  Signals: a signal handler may call this, even if it interrupted another call.
 * Only the first call in a forked child must not be in a handler, because it allocates memory.
 *
 * Fork: a child that adds gets a map of its own, perf-<child pid>.map in the same directory.  The
 * parent's map is not touched, with one exception: if a signal handler forks, the call that it
 * interrupted may write its line there.  While one thread of the child creates the map, others
 * wait, at most 0.1 s and once in the child's life.  If that thread is stopped, they return
 * -EAGAIN.  Between vfork and exec the line goes to the parent's map.
 *
 * Stack: less than 1.5 KiB; 5.5 KiB for names over 300 bytes; 2 KiB more for the first call in a
 * forked child.  In a program linked statically with the library but without -z now, the first
 * calls need another 4 KiB for the dynamic linker.  Since 0.1.0. */
#ifdef PERFMAP_NO_INLINE
PERFMAP_API int perfmap_add(struct perfmap *map, uint64_t addr, uint64_t size_bytes,
                            const char *name);
#else
static inline int perfmap_add(struct perfmap *map, uint64_t addr, uint64_t size_bytes,
                              const char *name)
{
    return map ? perfmap_add_on(map, addr, size_bytes, name) : 0;
}
#endif

/* ---- Reader ---- */

/* The entries of one map file.  Opaque. */
struct perfmap_table;

/* One entry after later lines have been applied: no two entries overlap.  This struct will not
 * grow, since it is an array element. */
struct perfmap_entry {
    uint64_t addr;
    uint64_t size_bytes; /* what later lines left of it; 0 if the line had size 0 */
    const char *name;    /* NUL-terminated; lives as long as the table */
    size_t line;         /* line number in the file, from 1 */
};

/* Read the file PATH into *TABLE, to be freed with perfmap_free.
 *
 * Accepted: hexadecimal numbers with or without 0x, names with spaces, names of one letter, a last
 * line without a newline (its name may be cut), CR before the newline, empty lines.  Any other line
 * is skipped and counted, also a line with a number over 64 bits, a range that extends past the
 * last address, or a NUL byte.  If an address is named twice, the last line wins.  A line that
 * partly overlaps an earlier one takes only the overlapping part.  Pieces of the earlier one, with
 * the same name, may remain on both sides.  An entry of size 0 owns its own address.
 *
 * Takes O(n log n) time for n lines, and memory proportional to the file.  A file that is being
 * written is read up to its length when opened.  Names are returned as in the file, including
 * control characters.
 *
 * Returns 0, or a negative errno with a text in ERROR (of ERROR_BYTES bytes, may be NULL).  The
 * errors are -ENOENT and the other errors of open(2) and read(2); -EINVAL if it is not a regular
 * file; -EFBIG if it is over 1 GiB; -ENOMEM.  *TABLE is NULL then.  Threads: all reader functions
 * may be called by any number of threads at once; a table never changes.  Since 0.1.0. */
PERFMAP_API int perfmap_read(struct perfmap_table **table, const char *path, char *error,
                             size_t error_bytes);

/* The same from memory; TEXT is copied.  Since 0.1.0. */
PERFMAP_API int perfmap_parse(struct perfmap_table **table, const char *text, size_t text_bytes);

/* Free TABLE and its names.  TABLE may be NULL.  Since 0.1.0. */
PERFMAP_API void perfmap_free(struct perfmap_table *table);

/* The entry that contains ADDR, or NULL.  An entry of size 0 contains its own address.  Since
 * 0.1.0. */
PERFMAP_API const struct perfmap_entry *perfmap_find(const struct perfmap_table *table,
                                                     uint64_t addr);

/* All entries, sorted by address; *COUNT is set to their number.  Since 0.1.0. */
PERFMAP_API const struct perfmap_entry *perfmap_entries(const struct perfmap_table *table,
                                                        size_t *count);

/* The number of lines that could not be parsed.  Since 0.1.0. */
PERFMAP_API size_t perfmap_bad_lines(const struct perfmap_table *table);

#ifdef __cplusplus
}
#endif

#endif
