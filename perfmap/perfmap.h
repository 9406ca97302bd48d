/* libperfmap: /tmp/perf-<pid>.map, the text file in which a JIT names its code for perf.
 *
 * Writer, for runtimes:
 *
 *     struct perfmap *map;
 *     perfmap_open(&map, NULL);                 // off unless PERFJIT=map is set
 *     perfmap_add(map, (uint64_t)(uintptr_t)entry, entry_bytes, "fib");
 *     perfmap_close(map);
 *
 * Reader, for tools:
 *
 *     struct perfmap_table *table;
 *     perfmap_read(&table, "/tmp/perf-1234.map", error, sizeof error);
 *     const struct perfmap_entry *entry = perfmap_find(table, ip);
 *
 * A perf map knows no time, no code bytes, no lines and no unwind tables: where perf record can be
 * run with -k mono, a jitdump (libjitdump) says more.
 *
 * Errors: 0 or a negative errno, with a text.  The library never prints, exits or calls back.
 * Source of the format: the kernel's tools/perf/Documentation/jit-interface.txt.
 */
#ifndef PERFMAP_H
#define PERFMAP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PERFMAP_VERSION "0.1.0"

#if defined(__GNUC__)
#define PERFMAP_API __attribute__((visibility("default")))
#else
#define PERFMAP_API
#endif

/* ---- Writer ---- */

/* An open map.  Opaque; NULL means "off", and every call takes it. */
struct perfmap;

/* Open the map whatever the environment variable PERFJIT says. */
#define PERFMAP_ALWAYS 0x1u

struct perfmap_options {
    size_t size;       /* sizeof(struct perfmap_options): lets the struct grow */
    const char *dir;   /* NULL: /tmp, the only place where perf looks */
    uint32_t flags;    /* PERFMAP_ALWAYS */
    uint32_t reserved; /* 0: leaves no padding, so that the struct can grow */
};

#define PERFMAP_OPTIONS_INIT                                                                       \
    {                                                                                              \
        sizeof(struct perfmap_options), 0, 0, 0                                                    \
    }

/* Make <dir>/perf-<pid>.map, mode 0600, never through a symbolic link.  The pid is the one that
 * /proc/self names.
 *
 * A stale regular file of the same user is replaced.  One that may be another JIT's of this process
 * is appended to: one that this process has open to write, has closed by perfmap_close, or that was
 * written since the process's start, as /proc tells it (a file of its first 20 ms is taken for an
 * earlier one's; an exec is no start).  If another descriptor of this process, of a number below
 * 1024, writes the map without O_APPEND, as V8's does, that flag is set on it with the first line
 * that is added: its lines and ours would overwrite each other.  Of one of a higher number they do.
 *
 * OPTIONS may be NULL.  Sets *MAP to NULL and returns 0 when PERFJIT does not contain the word
 * "map" (words are separated by commas) and PERFMAP_ALWAYS is not given.
 *
 * Returns 0 or a negative errno.  After a failure *MAP is a handle that only keeps the text for
 * perfmap_error(): perfmap_add on it returns the same errno, and perfmap_close() frees it.  With
 * -ENOMEM *MAP may be NULL.  -EEXIST: something that is not the caller's own regular file, with one
 * link, is in the way, or the map of a parent with the same pid.  -EINVAL: options->size is not set
 * (or above 4096), or a flag is unknown.  -E2BIG: an option is set that this version does not know;
 * this and -EINVAL are found even when PERFJIT does not ask for a map.
 *
 * Descriptors: one, above 2, closed by exec.  errno is kept, and no call is a cancellation point:
 * here and in perfmap_add and perfmap_close.  Stack: less than 4 KiB.
 *
 * Threads: not on the same MAP at once.  Since 0.1.0. */
PERFMAP_API int perfmap_open(struct perfmap **map, const struct perfmap_options *options);

/* Close the file, leaving it in place for perf, and free MAP.  Returns 0 or the first error that
 * any call on MAP met.  MAP may be NULL.  No other call on MAP may be under way or follow.  In a
 * child that inherited MAP, the parent's file stays as it is.  Since 0.1.0. */
PERFMAP_API int perfmap_close(struct perfmap *map);

/* The first error that MAP met, as a sentence with cause and remedy; "" if there was none.  Never
 * NULL; lives as long as MAP.  Since 0.1.0. */
PERFMAP_API const char *perfmap_error(const struct perfmap *map);

/* The path of the file, or "".  Lives as long as MAP, but changes when a forked child opens its
 * own. Since 0.1.0. */
PERFMAP_API const char *perfmap_path(const struct perfmap *map);

/* How many lines could not be written.  Since 0.1.0.  */
PERFMAP_API uint64_t perfmap_lost(const struct perfmap *map);

/* The function behind the inline test below; not to be called directly.  */
PERFMAP_API int perfmap_add_on(struct perfmap *map, uint64_t addr, uint64_t size_bytes,
                               const char *name);

/* Append the line that says that [ADDR, ADDR + SIZE_BYTES) is function NAME: one write(2).
 *
 * NAME is copied; each newline or other control character in it becomes a space, and a name over
 * 4000 bytes is cut at a character's end.  NULL or "" becomes "[unnamed]".  Names of one or two
 * bytes are written as they are, although perf up to 6.12 at least drops them.
 *
 * Returns 0 or the negative errno of the write; a line is in the file whole or not at all, and one
 * that is not is counted in perfmap_lost().  (If room appears on a full disk in the microsecond
 * before half a line is taken back, another thread's line may be glued to it, or go with it.  Where
 * a write can be cut short by a signal, as on FUSE and NFS, another's line may come between its
 * halves.) -ENOENT: the file was removed.  -EBADF: the program closed the descriptor.  No signal is
 * raised, not even SIGXFSZ.
 *
 * When another writer of the map empties it, as V8 does when it opens it, or writes over it, the
 * lines that were there are counted in perfmap_lost() with the next line or with perfmap_close,
 * which returns -ESTALE, and lines go on.
 *
 * Threads: any number at once; there is no lock, and no call waits for a thread that is stopped in
 * another.  Signals: a handler may call this, also if it interrupted another call; but for the
 * first call in a forked child, which allocates.
 *
 * Fork: a child that adds gets a map of its own, perf-<child pid>.map, and the parent's is left
 * alone.  While one thread of the child makes it, others wait for 0.1 s at most, once in the
 * child's life; if that one is stopped there, they return -EAGAIN.  Between vfork and exec a line
 * goes into the parent's map.
 *
 * Stack: less than 1.5 KiB, 5.5 KiB for names over 300 bytes, 2 KiB more for the first call in a
 * forked child.  A program that links the library statically and without -z now needs 4 KiB more at
 * first, for the dynamic linker.  Since 0.1.0. */
static inline int perfmap_add(struct perfmap *map, uint64_t addr, uint64_t size_bytes,
                              const char *name)
{
    return map ? perfmap_add_on(map, addr, size_bytes, name) : 0;
}

/* ---- Reader ---- */

/* The entries of one map file.  Opaque. */
struct perfmap_table;

/* One entry as it stands after all later lines were honoured: no two entries overlap. */
struct perfmap_entry {
    uint64_t addr;
    uint64_t size_bytes; /* what later lines left of it; 0 for an entry that had size 0 */
    const char *name;    /* NUL-terminated; lives as long as the table */
    size_t line;         /* where it stood in the file, from 1 */
};

/* Read the file PATH into *TABLE, to be freed with perfmap_free.
 *
 * Accepted: hexadecimal numbers with or without 0x, names with spaces, names of one letter, a last
 * line without newline (the name is taken as far as it goes), CR before the newline, empty lines.
 * A line that is none of this is skipped and counted; so is one with a number over 64 bits, a range
 * that goes on past the last address, or a NUL byte.  For an address named twice the last line
 * wins; a line that overlaps an earlier one in part takes that part only, and may leave pieces of
 * it, of one name, on both sides.  An entry of size 0 takes its own address.
 *
 * Takes O(n log n) time for n lines, and memory in proportion to the file.  A file that is being
 * written is read as long as it is when opened.  Names are as in the file, control characters
 * included.
 *
 * Returns 0, or a negative errno with a text in ERROR (of ERROR_BYTES bytes, may be NULL): -ENOENT
 * and the other errors of open(2) and read(2); -EINVAL if it is not a regular file; -EFBIG if it is
 * over 1 GiB; -ENOMEM.  *TABLE is NULL then.  Threads: yes, here and below: a table never changes.
 * Since 0.1.0. */
PERFMAP_API int perfmap_read(struct perfmap_table **table, const char *path, char *error,
                             size_t error_bytes);

/* The same from memory; TEXT is copied.  Since 0.1.0.  */
PERFMAP_API int perfmap_parse(struct perfmap_table **table, const char *text, size_t text_bytes);

/* Free TABLE and its names.  TABLE may be NULL.  Since 0.1.0.  */
PERFMAP_API void perfmap_free(struct perfmap_table *table);

/* The entry that contains ADDR, or NULL.  An entry of size 0 contains its own address.  Since
 * 0.1.0. */
PERFMAP_API const struct perfmap_entry *perfmap_find(const struct perfmap_table *table,
                                                     uint64_t addr);

/* All entries, sorted by address; *COUNT is set to their number.  Since 0.1.0.  */
PERFMAP_API const struct perfmap_entry *perfmap_entries(const struct perfmap_table *table,
                                                        size_t *count);

/* Lines that could not be understood.  Since 0.1.0.  */
PERFMAP_API size_t perfmap_bad_lines(const struct perfmap_table *table);

#ifdef __cplusplus
}
#endif

#endif
