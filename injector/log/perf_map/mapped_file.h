/* The files that processes mapped, and the parts of them that have symbols: perf names these by
 * itself, and no others.
 *
 * perf (6.1 and 7.2) uses the .symtab, or without one the .dynsym.  It uses functions, data, and
 * labels that are not hidden.  A symbol without a size reaches to the next.  All other addresses of
 * a file are [unknown] to it.
 *
 * A file is read when it is first needed, from below the root directory or from its path.  A file
 * that does not exist, can't be read, or has another inode than the mapped file has no symbols.
 * perf looks in the same places and finds none either.
 */
#ifndef PERFJIT_MAPPED_FILE_H
#define PERFJIT_MAPPED_FILE_H

#include "injector/arrays/address_span.h"
#include "injector/recording/perf_data/perf_record.h"

#include <stddef.h>

struct mapped_file {
    const struct perf_map *map;  /* one that names it */
    struct address_span *ranges; /* offsets in the file, joined; set once it was read */
    size_t range_count;
    bool was_read;
    const struct perf_map
        *seen; /* set by the user: how the process of the last map mapped it first */
};

struct mapped_files {
    void *tree;         /* tsearch's */
    const char *root;   /* where the paths begin, or NULL */
    bool is_elsewheres; /* of another machine, whose devices may have the numbers of this one's */
};

/* The file that MAP, which must outlive FILES, maps, always the same one.  Returns NULL without
 * memory. */
struct mapped_file *mapped_files_get(struct mapped_files *files, const struct perf_map *map);

/* Find the first range of symbols of FILE that ends after OFFSET; if there is none, *RANGE is empty
 * at UINT64_MAX.  Returns 0, or -1 without memory. */
int mapped_file_symbols(const struct mapped_files *files, struct mapped_file *file, uint64_t offset,
                        struct address_span *range);

void mapped_files_free(struct mapped_files *files);

#endif
