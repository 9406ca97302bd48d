/* The functions of one process that an interpreter runs, from its dumps.
 *
 * A frame of the interpreter has the word that stands for its function.  Memory is used again, so a
 * word stands for one function after another; the newest one counts.  The first one also counts for
 * earlier frames: the runtime knew it before it was logged.  Others may be logged late, too: then
 * the place in the function that a frame has tells them apart.
 *
 * A function that is to be seen has addresses of its own, one for each position in it, at which
 * nothing else is.  The log then has a jit_function there, and a call chain can name it. */
#ifndef PERFJIT_INTERPRETED_CODE_H
#define PERFJIT_INTERPRETED_CODE_H

#include "injector/log/jitdump/jit_interpreted.h"
#include "injector/log/lines/code_lines.h"

struct jit_clock;

#define NOT_SHOWN UINT32_MAX

struct interpreted_function {
    struct jit_interpreted record; /* in the dump */
    uint64_t time_ns;              /* on the profile's clock; from then on */
    size_t number;                 /* as it was logged */
    uint32_t dump;
    uint32_t shown; /* the log's function for it, or NOT_SHOWN */
};

/* The source lines of one that is shown. */
struct interpreted_lines {
    struct interpreted_lines *next;
    struct jit_debug_info entries;
    struct code_lines lines;
};

struct interpreted_code {
    struct jit_interpreter *interpreters;
    size_t interpreter_count, interpreter_capacity;
    struct interpreted_function *functions; /* once sorted: by word, then by time */
    size_t count, capacity, shown_count;
    struct interpreted_lines *lines; /* owned */
};

/* Add what a dump has.  Return 0, or -1 without memory. */
int interpreted_code_add_interpreter(struct interpreted_code *code,
                                     const struct jit_interpreter *interpreter);
int interpreted_code_add(struct interpreted_code *code, const struct jit_interpreted *record,
                         uint64_t time_ns, uint32_t dump);

/* Convert the times, which are a dump's, by CLOCK. */
void interpreted_code_convert(struct interpreted_code *code, const struct jit_clock *clock);

/* All is added. */
void interpreted_code_sort(struct interpreted_code *code);

/* The interpreter whose code has ADDR, or NULL. */
const struct jit_interpreter *interpreted_code_interpreter(const struct interpreted_code *code,
                                                           uint64_t addr);

/* The function that WORD stood for at TIME_NS, or NULL. */
struct interpreted_function *interpreted_code_find(const struct interpreted_code *code,
                                                   uint64_t word, uint64_t time_ns);

/* The next one that FUNCTION's word stood for, if it may have been there at TIME_NS already. */
struct interpreted_function *interpreted_code_late(const struct interpreted_code *code,
                                                   struct interpreted_function *function,
                                                   uint64_t time_ns);

/* How many bytes of addresses FUNCTION needs, and the one for POSITION, the address of an
 * instruction; of another address: one that has no line. */
uint64_t interpreted_room_bytes(const struct interpreted_function *function);
uint64_t interpreted_offset(const struct interpreted_function *function, uint64_t position);

/* The lines of FUNCTION as those of compiled code, which live as long as CODE; *LINES is NULL if it
 * has none.  Returns 0, or -1 without memory. */
int interpreted_code_lines(struct interpreted_code *code,
                           const struct interpreted_function *function,
                           const struct code_lines **lines);

void interpreted_code_free(struct interpreted_code *code);

#endif
