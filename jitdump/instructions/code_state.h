/* The known contents of registers and stack at one instruction of a function.
 *
 * Only values that matter for unwinding are known: the value that a register had when the function
 * was entered, or an address at a fixed distance from the CFA.  All other values are unknown, and
 * unknown values prove nothing.  Registers have DWARF's numbers, except that aarch64's d8 to d15
 * are 32 to 39.
 */
#ifndef JITDUMP_CODE_STATE_H
#define JITDUMP_CODE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CODE_REGISTERS = 40, CODE_SLOTS = 24, NO_REGISTER = 255 };

enum code_value_kind {
    VALUE_UNKNOWN,
    VALUE_ENTRY, /* register `reg` at the function's entry */
    VALUE_FRAME, /* CFA + offset */
};

struct code_value {
    int32_t offset;
    uint8_t kind;
    uint8_t reg;
};

/* Eight bytes of the stack, at CFA + offset. */
struct code_slot {
    int32_t offset;
    struct code_value value;
};

enum code_signing { ADDRESS_PLAIN, ADDRESS_SIGNED, ADDRESS_UNSURE };

struct code_state {
    struct code_value registers[CODE_REGISTERS];
    struct code_slot slots[CODE_SLOTS]; /* whose value is known */
    uint8_t slot_count;
    uint8_t stack_pointer; /* which register it is */
    uint8_t signing;       /* of the return address */
    bool doubtful; /* the stack pointer may differ from its known value: after a call, which may pop
                      its arguments */
    bool exposed;  /* others may know an address in the frame */
    bool foreign;  /* other functions may have written to the stack outside the slots */
    int32_t low, high;    /* from CFA + low up to CFA + high unknown values were written */
    uint32_t popped_at;   /* the offset behind a call that probably popped its arguments, */
    int32_t popped_bytes; /* the arguments' bytes; 0: none */
    uint64_t lost;        /* registers that have not been where the frame says, a bit each */
};

static inline struct code_value value_unknown(void)
{
    return (struct code_value){0, VALUE_UNKNOWN, 0};
}

static inline struct code_value value_entry(unsigned reg)
{
    return (struct code_value){0, VALUE_ENTRY, (uint8_t)reg};
}

static inline struct code_value value_frame(int32_t offset)
{
    return (struct code_value){offset, VALUE_FRAME, 0};
}

static inline bool value_is_entry(struct code_value value, unsigned reg)
{
    return value.kind == VALUE_ENTRY && value.reg == reg;
}

static inline bool value_equal(struct code_value a, struct code_value b)
{
    return a.kind == b.kind && a.offset == b.offset && a.reg == b.reg;
}

/* VALUE + BY: unknown unless it is an address in the frame. */
static inline struct code_value value_plus(struct code_value value, int64_t by)
{
    int64_t sum = value.offset + by;
    if (value.kind == VALUE_ENTRY && by == 0)
        return value;
    if (value.kind != VALUE_FRAME || sum > INT32_MAX / 2 || sum < INT32_MIN / 2)
        return value_unknown();
    return value_frame((int32_t)sum);
}

/* The state at the entry: all registers have their entry values, and nothing is on the stack. */
void jd_state_begin(struct code_state *state, unsigned stack_pointer, int32_t stack_offset);

/* The value of the eight bytes at ADDRESS. */
struct code_value jd_state_load(const struct code_state *state, struct code_value address);

/* Whether the eight bytes at CFA + OFFSET are unchanged since the entry. */
bool jd_state_never_written(const struct code_state *state, int32_t offset);

/* WIDTH bytes are stored at ADDRESS: VALUE, if they are eight. */
void jd_state_store(struct code_state *state, struct code_value address, int64_t width,
                    struct code_value value);

/* REG, which is FRAME_POINTER or another one, gets VALUE. */
void jd_state_set(struct code_state *state, unsigned reg, unsigned frame_pointer,
                  struct code_value value);

/* A call: others run, below the stack pointer. */
void jd_state_call(struct code_state *state);

/* Keep only what INTO and FROM agree on, in INTO.  Returns whether INTO changed. */
bool jd_state_merge(struct code_state *into, const struct code_state *from);

#endif
