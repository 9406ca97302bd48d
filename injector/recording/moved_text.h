/* Text of a program that was copied to anonymous memory at the same addresses, as node
 * --use-largepages=on, PHP's opcache.huge_code_pages and iodlr do it for huge pages: it is still
 * the file's text.
 *
 * An munmap is not recorded.  So anonymous memory at addresses of a file's text may also be of
 * something else, after the file was unmapped.  Memory is taken for moved text if a file's text was
 * at all of its addresses, or is in front of it and behind it as if nothing were between, and if
 *
 *   the file is the program, which is never unmapped,
 *   or the memory has the size and the alignment of huge pages,
 *   or it has the very range of one mapping of the file.
 *
 * Where a dump or a perf map has code in memory of the last two kinds, it is a JIT's all the same:
 * that is for those who know these.  V8 logs its builtins, which are in the program's text.
 */
#ifndef PERFJIT_MOVED_TEXT_H
#define PERFJIT_MOVED_TEXT_H

#include "injector/recording/process_life.h"

/* Set `text` of the maps in RECORDS that are such memory.  Returns 0, or -1 with the failure text
 * set. */
int moved_text_find(struct records *records, const struct process_lives *lives,
                    struct findings *findings);

#endif
