/* A core, as Linux writes it and gdb's gcore.
 *
 *     ELF header, e_type ET_CORE
 *     program headers: PT_NOTE, and a PT_LOAD for each mapping, whose p_filesz is 0 if its contents
 *                      are not in the core
 *     notes (name "CORE"), in this order:
 *         NT_PRSTATUS  of each thread, the one that was hit by the signal first
 *                      12 u16 signal, 32 s32 tid, 112 the general registers, u64 each
 *         NT_PRPSINFO  of the process: 24 s32 pid, 40 its name, 16 bytes
 *         NT_AUXV      u64 type, u64 value: AT_ENTRY, where the program begins
 *         NT_FILE      u64 count, u64 page size, count times {u64 start, u64 end, u64 offset in
 *                      pages}, then count paths, NUL-terminated
 *     memory
 *
 * A core is valid if it is of a 64-bit little-endian machine whose stacks can be unwound, its
 * program headers and notes lie in the file, and some thread's registers are there.  One that is
 * cut in its memory is not used.
 */
#ifndef PERFJIT_CORE_FILE_H
#define PERFJIT_CORE_FILE_H

#include "injector/debug/snapshot/snapshot.h"

/* Read the core at PATH, which must outlive SNAPSHOT.  Returns 0, or -1 with the failure text set.
 * Release with snapshot_free in either case. */
int core_file_open(struct snapshot *snapshot, const char *path, struct findings *findings);

/* The same of SIZE BYTES that outlive it. */
int core_file_read(struct snapshot *snapshot, const char *path, const uint8_t *bytes, size_t size,
                   struct findings *findings);

#endif
