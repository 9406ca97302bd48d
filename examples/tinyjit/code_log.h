/* The log: tells everybody who wants to know what happens to code.
 *
 *     code_log_load, _move, _unload ──▶ libjitdump   if PERFJIT contains "dump"
 *                                   ──▶ libperfmap   if PERFJIT contains "map"
 *                                   ──▶ truth file   for tests: the same events, noted down independently
 *                                   ──▶ code file    for tests: bytes, source lines, frames
 */
#ifndef TINYJIT_CODE_LOG_H
#define TINYJIT_CODE_LOG_H

#include "examples/tinyjit/code.h"
#include "examples/tinyjit/code_arena.h"

#include <stdio.h>

struct jitdump;
struct perfmap;

struct code_log {
    struct jitdump *dump;
    struct perfmap *map;
    FILE *truth, *code_file;
    char *script; /* absolute path */
    uint64_t loads[CODE_KINDS], moves, unloads;
};

/* Start logging code of the script at SCRIPT_PATH in ARENA.  TRUTH_PATH and CODE_PATH may be NULL.  Trouble with
 * the libraries is said on stderr and otherwise harmless: no script fails because nobody can profile it.
 * Returns -1, after a message, if one of the two files can't be made. */
int code_log_open(struct code_log *log, const char *script_path, const struct code_arena *arena,
                  const char *truth_path, const char *code_path);

void code_log_close(struct code_log *log);

/* CODE is complete at its address, and has not run yet. */
void code_log_load(struct code_log *log, struct code *code);

/* CODE was copied from OLD_ADDR to code->addr, and has not run there yet. */
void code_log_move(struct code_log *log, const struct code *code, const uint8_t *old_addr);

/* CODE will not run any more, and is still unchanged at its address. */
void code_log_unload(struct code_log *log, const struct code *code);

#endif
