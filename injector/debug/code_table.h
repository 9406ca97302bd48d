/* The facts that a debugger needs about the JIT code that is alive in a snapshot.  They are where
 * each ELF file is, where each function begins, whether it has an unwind table, and where code
 * without tables may be.  As JSON, one object:
 *
 *     pid, live, machine, dumps   [path, ...]
 *     images      [{file, base, start, end, functions, mapped}, ...]   MAPPED: the file that is
 *                 mapped at these addresses, or null: V8's builtins stand in the node binary
 *     functions   [[start, end, has a table], ...]   by start
 *     regions     [[start, end, distance], ...]   executable memory where no file's own code is.
 *                 With a distance it is a copy of a file's code (V8's copy of its builtins);
 *                 the distance leads to the file's code.
 */
#ifndef PERFJIT_CODE_TABLE_H
#define PERFJIT_CODE_TABLE_H

#include "injector/debug/snapshot/snapshot.h"
#include "injector/history/timeline/timeline.h"
#include "injector/inject/layout/image_plan.h"
#include "injector/log/code/jit_process.h"

#include <stdio.h>

struct code_table {
    const struct snapshot *snapshot;
    const struct jit_processes *processes;
    const struct timeline *timelines;
    const struct image_plan *plan;
    const char *directory; /* of the images' files */
};

/* Print it as JSON, or for a person: a line for each image. */
void code_table_json(const struct code_table *table, FILE *stream);
void code_table_text(const struct code_table *table, FILE *stream);

/* Print lldb's commands that load the images. */
void code_table_lldb(const struct code_table *table, FILE *stream);

/* The addresses at which IMAGE begins and ends in the process. */
uint64_t code_table_start(const struct jit_image *image);
uint64_t code_table_end(const struct jit_image *image);

#endif
