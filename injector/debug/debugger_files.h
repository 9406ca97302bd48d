/* The files that a debugger is started with, in a directory that is there as long as it runs:
 *
 *     DIR/symbols/       the ELF files
 *     DIR/start          the debugger's commands that load all
 *     DIR/table.json     for gdb: what is where (code_table.h)
 *     DIR/perfjit_gdb.py for gdb
 */
#ifndef PERFJIT_DEBUGGER_FILES_H
#define PERFJIT_DEBUGGER_FILES_H

#include "injector/debug/code_table.h"

struct debugger_files {
    char *directory; /* NULL: there is none */
    char *symbols;   /* DIR/symbols */
    char *start;     /* DIR/start */
    uint64_t undo;   /* undo_list.h */
};

/* Make the directory, below $TMPDIR or /tmp.  Returns 0, or -1 with the failure text set.  Release
 * with debugger_files_remove in either case. */
int debugger_files_make(struct debugger_files *files, struct findings *findings);

/* Write all but the ELF files, for gdb.  It gets a newer table by the command in REFRESH, words up
 * to a NULL.  Returns 0 or -1 as above. */
int debugger_files_write(const struct debugger_files *files, const struct code_table *table,
                         const char *const *refresh, struct findings *findings);

/* The same for lldb. */
int debugger_files_write_lldb(const struct debugger_files *files, const struct code_table *table,
                              struct findings *findings);

/* Remove the directory with all that is in it. */
void debugger_files_remove(struct debugger_files *files);

#endif
