/* See code_rule.h. */
#include "injector/unwind/code_rule.h"

#include "injector/arrays/array.h"
#include "jitdump/instructions/code_step.h"

#include <stdlib.h>

enum {
    WORD = 8,
    LARGEST_BYTES = 1 << 22,
    MOST_STEPS = 1 << 13, /* instructions; it is done again for each new address */
};

/* An instruction that still has to be followed, and the state in front of it. */
struct branch {
    size_t at;
    bool behind_call; /* which may not return: other code may stand there, with another frame */
    struct code_state state;
};

struct follower {
    const struct code_machine *machine;
    const uint8_t *code;
    size_t size, wanted;
    uint8_t *seen; /* a bit for each byte at which an instruction begins */
    struct branch *branches;
    size_t count, capacity;
    size_t steps;
    bool no_memory;
};

/* ---- Following ---- */

static bool has_seen(const struct follower *follower, size_t at)
{
    return follower->seen[at / 8] >> at % 8 & 1;
}

static void add_branch(struct follower *follower, int64_t at, bool behind_call,
                       const struct code_state *state)
{
    if (at < 0 || (uint64_t)at >= follower->size || has_seen(follower, (size_t)at))
        return;
    struct branch *branches =
        array_room(follower->branches, follower->count, &follower->capacity, sizeof *branches);
    follower->no_memory |= !branches;
    if (!branches)
        return;
    follower->branches = branches;
    branches[follower->count++] = (struct branch){(size_t)at, behind_call, *state};
}

/* The branch to follow next is none behind a call, if there is one; else the first in the code. */
static struct branch take_branch(struct follower *follower)
{
    size_t best = follower->count - 1;
    for (size_t i = follower->count; i-- > 0 && follower->branches[best].behind_call;)
        if (!follower->branches[i].behind_call ||
            follower->branches[i].at < follower->branches[best].at)
            best = i;
    struct branch branch = follower->branches[best];
    follower->branches[best] = follower->branches[--follower->count];
    return branch;
}

/* Follow BRANCH.  Returns whether the wanted instruction is reached: *STATE is the state in front
 * of it. */
static bool follow(struct follower *follower, const struct branch *branch, struct code_state *state)
{
    size_t at = branch->at;
    *state = branch->state;
    while (at < follower->size && follower->steps && !has_seen(follower, at)) {
        struct code_state before = *state;
        follower->seen[at / 8] |= (uint8_t)(1 << at % 8);
        struct code_step step = follower->machine->step(follower->code, follower->size, at, state);
        follower->steps--;
        if (step.flow == FLOW_UNKNOWN)
            return false;
        if (follower->wanted - at < step.size) {
            *state = before;
            return true;
        }
        if (step.flow == FLOW_JUMP || step.flow == FLOW_BRANCH)
            add_branch(follower, step.target, false, state);
        if (step.flow == FLOW_CALL)
            add_branch(follower, (int64_t)(at + step.size), true, state);
        if (step.flow != FLOW_NEXT && step.flow != FLOW_BRANCH)
            return false;
        at += step.size;
    }
    return false;
}

static void enter(const struct code_machine *machine, struct code_state *state)
{
    jd_state_begin(state, machine->stack_pointer, machine->entry_offset);
    if (machine->entry_offset) /* a call has pushed the return address */
        jd_state_store(state, value_frame(machine->entry_offset), WORD,
                       value_entry(machine->return_address));
}

static bool reach(struct follower *follower, struct code_state *state)
{
    enter(follower->machine, state);
    add_branch(follower, 0, false, state);
    while (follower->count && follower->steps && !follower->no_memory) {
        struct branch branch = take_branch(follower);
        if (follow(follower, &branch, state))
            return true;
    }
    return false;
}

/* ---- What it tells ---- */

/* What stands below the stack pointer has been popped. */
static int16_t slot_of(const struct code_state *state, uint8_t reg)
{
    struct code_value top = state->registers[state->stack_pointer];
    for (unsigned i = 0; i < state->slot_count; i++)
        if (value_is_entry(state->slots[i].value, reg) && state->slots[i].offset % WORD == 0 &&
            (top.kind != VALUE_FRAME || state->slots[i].offset >= top.offset))
            return (int16_t)(state->slots[i].offset / WORD);
    return SLOT_LOST;
}

static int16_t place_of(const struct code_state *state, uint8_t reg)
{
    return value_is_entry(state->registers[reg], reg) ? SLOT_SAME : slot_of(state, reg);
}

/* The call at which this frame stands may have put another address into the link register. */
static int16_t place_of_return(const struct machine *machine, const struct code_state *state)
{
    int16_t slot = slot_of(state, machine->return_register);
    return slot == SLOT_LOST && machine->link_register != UNWIND_NO_REGISTER
               ? place_of(state, machine->link_register)
               : slot;
}

/* A frame pointer that is set is better than the stack pointer: V8's functions pop the arguments
 * that their callers have pushed. */
static bool tell(struct unwind_rule *rule, const struct machine *machine,
                 const struct code_state *state)
{
    uint8_t reg = state->registers[machine->fp].kind == VALUE_FRAME ? machine->fp : machine->sp;
    if (state->registers[reg].kind != VALUE_FRAME)
        return false;
    rule->cfa_register = reg;
    rule->cfa_offset = -state->registers[reg].offset;
    for (size_t i = 0; i < machine->saved_count; i++)
        rule->slots[i] = machine->saved[i] == machine->return_register
                             ? place_of_return(machine, state)
                             : place_of(state, machine->saved[i]);
    rule->followed = rule->slots[0] != SLOT_LOST;
    return rule->followed;
}

int code_rule_find(struct unwind_rule *rule, const struct machine *machine, const uint8_t *code,
                   size_t size, size_t offset, struct unwind_budget *budget)
{
    struct follower follower = {.machine = jd_code_machine(machine->elf_mach),
                                .code = code,
                                .size = size,
                                .wanted = offset};
    struct code_state state;
    if (!follower.machine || size > LARGEST_BYTES || offset >= size)
        return 0;
    const size_t steps = budget->left < MOST_STEPS ? (size_t)budget->left : MOST_STEPS;
    follower.steps = steps;
    follower.seen = calloc(1, size / 8 + 1);
    follower.no_memory = !follower.seen;
    bool found = !follower.no_memory && reach(&follower, &state) && tell(rule, machine, &state);
    budget->left -= (uint32_t)(steps - follower.steps);
    free(follower.seen);
    free(follower.branches);
    return follower.no_memory ? -1 : found;
}

bool code_rule_takes_stack(const struct machine *machine, const uint8_t *code, size_t size)
{
    const struct code_machine *steps = jd_code_machine(machine->elf_mach);
    struct code_state state;
    if (!steps)
        return false;
    enter(steps, &state);
    return steps->step(code, size, 0, &state).flow == FLOW_NEXT &&
           state.registers[machine->sp].kind != VALUE_FRAME;
}
