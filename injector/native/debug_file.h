/* The file with the parts that were stripped from another one.
 *
 * A name in a file leads only to a regular file below the directory in which it is looked for:
 * names are written by whoever made the file, and opening a FIFO or a device can have effects.
 */
#ifndef PERFJIT_DEBUG_FILE_H
#define PERFJIT_DEBUG_FILE_H

#include "injector/native/elf_view.h"

/* Find the debug file of VIEW, a file at PATH.  The search uses VIEW's build-id, or WANTED, below
 * /usr/lib/debug, and then its .gnu_debuglink.  If ROOT is not NULL, the search begins below ROOT.
 * DEBUG has no segments if there is none.  Release with elf_view_close in any case. */
void debug_file_open(struct elf_view *debug, struct elf_view *view, const struct build_id *wanted,
                     const char *path, const char *root);

/* Find the file with what VIEW's debug information has in common with others, which dwz writes and
 * .gnu_debugaltlink names, below /usr/lib/debug.  The rest is as above. */
void debug_file_open_common(struct elf_view *common, struct elf_view *view, const char *root);

#endif
