/* What a tortured process logs: loads, moves and unloads, each to be told by its thread and number alone, and a word for each that
 * says what became of the call.
 */
#ifndef PERFJIT_TORTURE_OPS_H
#define PERFJIT_TORTURE_OPS_H

#include "jitdump/jitdump.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 8, OPS = 4000, CYCLE = 5, CODE_MAX_BYTES = 3000, UNWIND_BYTES = 21 };

static void fail(const char *what)
{
    fprintf(stderr, "torture: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

enum op_state { NOT_RETURNED, DONE, FAILED, NOTHING_TO_DO };

struct op {
    uint64_t code_index; /* of the function that it loaded */
    _Atomic uint32_t state;
};

/* Shared by the process that is tortured and the judge. */
struct run_log {
    struct op ops[THREADS_MAX][OPS];
    _Atomic uint32_t returned;
    uint32_t last_call; /* when so many have returned, no other begins */
    _Atomic uint64_t lost;
    _Atomic uint32_t ended; /* it came to jitdump_close and went on */
};

static struct run_log *run_log;

/* Operation I of a thread is a load; but the fourth of five moves the third's function, and the fifth unloads the first's. */
enum op_kind { LOAD, MOVE, UNLOAD };

static enum op_kind kind_of(unsigned i)
{
    return i % CYCLE == 3 ? MOVE : i % CYCLE == 4 ? UNLOAD : LOAD;
}

static uint64_t addr_of(unsigned thread, unsigned i)
{
    return 0x7f0000000000 + ((uint64_t)thread << 32) + (uint64_t)i * 4096;
}

static size_t code_bytes_of(unsigned thread, unsigned i)
{
    return (i * 2654435761u + thread * 40503u) >> 8 & 0xff ? 1 + i % 300 : CODE_MAX_BYTES;
}

static uint8_t pattern_of(unsigned thread, unsigned i)
{
    return (uint8_t)(1 + (thread * 37 + i) % 255);
}

static bool has_unwind(unsigned i)
{
    return i % 2 == 0;
}

static bool has_inlines(unsigned i)
{
    return i % 3 == 0;
}

static int load(struct jitdump *dump, unsigned thread, unsigned i)
{
    uint8_t bytes[CODE_MAX_BYTES];
    char name[32];
    uint64_t addr = addr_of(thread, i);
    memset(bytes, pattern_of(thread, i), sizeof bytes);
    snprintf(name, sizeof name, "t%u_%u", thread, i);
    const struct jitdump_line lines[] = {{addr, name, i, thread}, {addr + 1, name, 7, 8}};
    const uint32_t line_inlines[] = {JITDUMP_NOT_INLINED, 0};
    const struct jitdump_inline inlines[] = {
        {name, "caller", "callee", i, 1, 2, JITDUMP_NOT_INLINED}};
    const struct jitdump_unwind unwind = {bytes, UNWIND_BYTES, 20, UNWIND_BYTES};
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = name;
    code.code_addr = addr;
    code.code_size = code_bytes_of(thread, i);
    code.bytes = bytes;
    code.lines = lines;
    code.line_count = 2;
    code.unwind = has_unwind(i) ? &unwind : NULL;
    code.inlines = inlines;
    code.inline_count = has_inlines(i);
    code.line_inlines = has_inlines(i) ? line_inlines : NULL;
    return jitdump_add_code(dump, &code, &run_log->ops[thread][i].code_index);
}

static void do_op(struct jitdump *dump, unsigned thread, unsigned i)
{
    struct op *ops = run_log->ops[thread];
    unsigned target = kind_of(i) == MOVE ? i - 1 : kind_of(i) == UNLOAD ? i - (CYCLE - 1) : i;
    enum op_state state = NOTHING_TO_DO;
    int result = 0;
    if (kind_of(i) == LOAD || ops[target].code_index != JITDUMP_NO_CODE)
        state = DONE;
    if (kind_of(i) == LOAD)
        result = load(dump, thread, i);
    else if (kind_of(i) == MOVE)
        result = jitdump_move_code(dump, ops[target].code_index, addr_of(thread, target),
                                   addr_of(thread, i), code_bytes_of(thread, target));
    else
        result = jitdump_unload_code(dump, ops[target].code_index, addr_of(thread, target),
                                     code_bytes_of(thread, target));
    atomic_store_explicit(&ops[i].state, result ? FAILED : state, memory_order_release);
    atomic_fetch_add_explicit(&run_log->returned, 1, memory_order_relaxed);
}

#endif
