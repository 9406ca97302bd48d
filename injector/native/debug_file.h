/* The file with the parts that were stripped from another one. */
#ifndef PERFJIT_DEBUG_FILE_H
#define PERFJIT_DEBUG_FILE_H

#include "injector/native/elf_view.h"

/* Find the debug file of VIEW, a file at PATH.  The search uses VIEW's build-id, or WANTED, below
 * /usr/lib/debug, and then its .gnu_debuglink.  If ROOT is not NULL, the search begins below ROOT.
 * DEBUG has no segments if there is none.  Release with elf_view_close in any case. */
void debug_file_open(struct elf_view *debug, const struct elf_view *view,
                     const struct build_id *wanted, const char *path, const char *root);

/* Open the debug file of that NAME, with that CRC, of the file at PATH.  Returns a descriptor, and
 * its path in *FOUND, for the caller to free; -1 if there is none. */
int debug_file_linked(const char *path, const char *name, uint32_t crc, char **found);

#endif
