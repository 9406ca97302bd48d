/* Functions that an interpreter runs, and where its frames say which of them it is in.  A reader of
 * copied stacks can then name each frame of the interpreter by its function.
 *
 * For agents that have libjitdump inside; the library exports none of it.  The records are
 * described in jitdump/format/jitdump_format.h; perf skips them. */
#ifndef JITDUMP_INTERPRETED_H
#define JITDUMP_INTERPRETED_H

#include "jitdump/jitdump.h"

/* Registers are DWARF's numbers.  A frame is found by frame_register, and offsets count from there.
 */
struct jitdump_interpreter {
    uint64_t code_addr, code_size; /* of the interpreter */
    uint32_t frame_register;
    int32_t function_offset;    /* of the word that stands for the function */
    int32_t position_offset;    /* of the address of the instruction at hand; 0: there is none */
    uint32_t position_register; /* which has it while the interpreter runs; JIT_REGISTER_NONE */
};

/* The instructions from OFFSET on, up to the next row, are of LINE. */
struct jitdump_position {
    uint32_t offset, line;
};

struct jitdump_interpreted {
    uint64_t function;       /* the word that stands for it: an address, at which */
    uint32_t function_bytes; /* so many bytes are its own */
    uint64_t position;       /* the address of its first instruction, of */
    uint32_t position_bytes; /* so many; 0: it is native */
    const char *name;
    const char *file;                    /* NULL: not known */
    const struct jitdump_position *rows; /* by offset, which is below position_bytes */
    size_t row_count;
};

/* Record where INTERPRETER's frames have what.  It holds for all of the dump. */
int jd_add_interpreter(struct jitdump *dump, const struct jitdump_interpreter *interpreter);

/* Record a function, from now on.  It replaces the one that the same word stood for.  Both return
 * as jitdump_add_code; what could not be recorded is counted in jitdump_lost. */
int jd_add_interpreted(struct jitdump *dump, const struct jitdump_interpreted *function);

#endif
