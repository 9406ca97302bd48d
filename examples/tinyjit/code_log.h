/* The log: tells everybody who wants to know what happens to code.
 *
 *     code_log_load, _move, _unload ──▶ libjitdump   if PERFJIT contains "dump"
 *                                   ──▶ libperfmap   if PERFJIT contains "map"
 *                                   ──▶ libjitunwind if the runtime's own unwinding is wanted
 *                                   ──▶ truth file   for tests: the same events, noted down
 * independently ──▶ code file    for tests: bytes, source lines, frames ──▶ inline log   for tests:
 * whose each instruction is (inline_log.h)
 */
#ifndef TINYJIT_CODE_LOG_H
#define TINYJIT_CODE_LOG_H

#include "examples/tinyjit/code.h"
#include "examples/tinyjit/code_arena.h"
#include "examples/tinyjit/syntax.h"
#include "jitdump/trampoline.h"

#include <stdio.h>

struct jitdump_cfi;
struct jitunwind;
struct perfmap;

/* The files; NULL: not that one. */
struct code_log_paths {
    const char *truth, *code, *inline_log;
};

struct code_log {
    struct jitdump *dump;
    struct jitdump_cfi *cfi;      /* builds the unwind tables, */
    struct jitdump_unwind unwind; /* these for the code that was described last */
    struct perfmap *map;
    struct jitunwind *unwinder;        /* or NULL */
    struct jitunwind *frames_unwinder; /* of the interpreter's functions; or NULL */
    bool own_frames, exceptions;
    FILE *truth, *code_file, *inline_log;
    char *script; /* absolute path */
    uint64_t loads[CODE_KINDS], moves, unloads;
};

/* Start logging code of the script at SCRIPT_PATH in ARENA; to libjitunwind, too, with OWN_FRAMES.
 * Trouble with the libraries is said on stderr and otherwise harmless: no script fails because
 * nobody can profile it.  Returns -1, after a message, if one of the files can't be made. */
int code_log_open(struct code_log *log, const char *script_path, const struct code_arena *arena,
                  const struct code_log_paths *paths, bool own_frames, bool exceptions);

void code_log_close(struct code_log *log);

/* Make the unwind tables of CODE, for which it needs no address yet.
 *
 * Returns how many bytes behind it should stay free of other code, wherever it goes; 0 if nobody
 * dumps it.  For perf inject --jit maps the tables there, over whatever is there.  (perfjit inject
 * puts them elsewhere, and asks for room only with --layout function.) */
size_t code_log_describe(struct code_log *log, const struct code *code);

/* CODE, described last, is complete at its address, and has not run yet. */
void code_log_load(struct code_log *log, struct code *code);

/* Whether somebody may ask for the dump while the program runs. */
bool code_log_can_be_asked(const struct code_log *log);

/* If somebody has asked for the dump: open it, and let EMIT_ALL tell with USER what there is. */
void code_log_poll(struct code_log *log, jitdump_emit *emit_all, void *user);

/* What is to be called in ENTRY's place, which interprets FUNCTION, so that it has a frame of its
 * own: a trampoline, or, where nobody asks for that, ENTRY itself. */
jitdump_entry *code_log_frame(struct code_log *log, const struct function *function,
                              jitdump_entry *entry);

/* None of those will be called any more. */
void code_log_drop_frames(struct code_log *log);

/* Somebody asked: CODE has been there for some time, and its unwind tables are made now. */
void code_log_tell(struct code_log *log, struct code *code);

/* CODE was copied from OLD_ADDR to code->addr, and has not run there yet. */
void code_log_move(struct code_log *log, const struct code *code, const uint8_t *old_addr);

/* CODE will not run any more, and is still unchanged at its address. */
void code_log_unload(struct code_log *log, const struct code *code);

#endif
