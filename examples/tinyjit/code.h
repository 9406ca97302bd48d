/* One piece of compiled code, and what is known about each of its instructions. */
#ifndef TINYJIT_CODE_H
#define TINYJIT_CODE_H

#include "examples/tinyjit/syntax.h"
#include "examples/tinyjit/x86_assembler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_SAVED = 5 }; /* registers that a prologue saves, at most */

enum code_kind {
    CODE_ENTRY,         /* C calls it, and it calls main */
    CODE_COMPILE_STUB,  /* calls the compiler, then jumps to what it made */
    CODE_FUNCTION_STUB, /* a function that isn't compiled: names it and jumps to the compile stub */
    CODE_TIER1,
    CODE_TIER2,
    CODE_KINDS
};

enum { NOT_INLINED = -1 };

/* A call that was replaced by what it calls. */
struct code_inline {
    const struct function *function;
    struct position call; /* where it stands in PARENT, or in the code's own function */
    uint32_t parent; /* index of the one that it stands in, which comes before it; or NOT_INLINED */
};

/* From OFFSET up to the next one, the instructions come from this place in the script. */
struct code_line {
    uint32_t offset;
    struct position at;
    uint32_t inlined; /* index of the innermost inlined call that they belong to, or NOT_INLINED */
};

/* How to unwind the frame, as a list of changes: an event holds from CODE_OFFSET on, that is after the
 * instruction that ends there.  The CFA (canonical frame address) is what rsp was before the caller's call
 * instruction; the return address is at CFA - 8.  Each code's first events say that it starts with
 * CFA = rsp + 8.  What DWARF calls advance_loc, def_cfa and offset can be made of this one to one. */
enum code_frame_kind {
    FRAME_CFA_RSP, /* CFA = rsp + value */
    FRAME_CFA_RBP, /* CFA = rbp + value */
    FRAME_SAVED,   /* reg's value in the caller is at CFA - value */
    FRAME_RESTORED /* reg has the caller's value again */
};

struct code_frame_event {
    uint32_t code_offset;
    enum code_frame_kind kind;
    enum x86_register reg;
    int32_t value;
};

/* The same in short, for code that begins with a prologue and has one epilogue. */
struct code_frame {
    bool pointer; /* rbp points to it */
    bool plain;   /* nothing about unwinding changes between prologue and epilogue, nor behind it */
    enum x86_register
        saved[MAX_SAVED]; /* in the order of the pushes, without a frame pointer's rbp */
    size_t saved_count;
    uint32_t local_bytes;    /* what the prologue takes from rsp at its end */
    uint32_t prologue_bytes; /* 0: no frame at all */
    uint32_t epilogue;       /* offset */
};

/* A call: the instruction behind it, and CFA - rsp there.  What the runtime walks the stack by. */
struct code_call {
    uint32_t return_offset;
    uint32_t cfa_distance;
};

struct code {
    enum code_kind kind;
    uint32_t function; /* its number; of tiers and function stubs */
    char *name;        /* as the profile shows it */
    uint8_t *addr;     /* in the arena */
    size_t size;
    size_t reserved; /* bytes in the arena: size, and what code_log_describe wants behind it */
    struct code_line *lines;
    size_t line_count;
    struct code_inline *inlines;
    size_t inline_count;
    struct code_frame_event *frame_events;
    size_t frame_event_count;
    struct code_frame frame;
    struct code_call *calls;
    size_t call_count;
    uint64_t code_index; /* by which the jitdump knows it, or JITDUMP_NO_CODE */
    bool retired;        /* no call goes here any more: free it when it has left the stack */
    bool active;         /* on the stack, by the last walk */
};

/* How to unwind at one instruction. */
struct code_frame_rule {
    enum x86_register cfa_register;
    int32_t cfa_offset;
    int32_t saved[X86_REGISTERS]; /* at CFA - saved[r]; 0: not saved */
};

/* The rule that holds at the instruction with the byte OFFSET in it. */
struct code_frame_rule code_frame_rule_at(const struct code *code, size_t offset);

/* The call that returns to RETURN_OFFSET, or NULL. */
const struct code_call *code_find_call(const struct code *code, size_t return_offset);

void code_free(struct code *code);

/* All code that is in the arena, sorted by address. */
struct code_table {
    struct code **codes;
    size_t count, capacity;
    volatile bool changing; /* whoever interrupted it looks elsewhere */
};

void code_table_add(struct code_table *table, struct code *code);
void code_table_remove(struct code_table *table, const struct code *code);

/* The code that has the byte at ADDR, or NULL. */
struct code *code_table_find(const struct code_table *table, uint64_t addr);

#endif
