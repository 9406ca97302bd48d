/* See stack_walk.h. */
#include "injector/unwind/stacks/stack_walk.h"

#include "injector/recording/perf_data/perf_format.h"
#include "injector/unwind/addresses/code_spot.h"
#include "injector/unwind/code_rule.h"
#include "injector/unwind/return_slot.h"
#include "injector/unwind/stacks/interpreted_frames.h"

#include <stdlib.h>
#include <string.h>

/* Call frame instructions and operations that one sample may cost. */
enum { BUDGET = 1 << 20, MOST_FRAMES = 8192, MOST_PROGRAM_BYTES = 1 << 16 };

/* ---- Where an address is ---- */

static struct code_spot find_spot(struct stack_walker *walker, uint64_t pc)
{
    struct code_spot spot;
    if (code_spot_find(&spot, walker->space, &walker->files, pc))
        walker->no_memory = true;
    return spot;
}

/* The SIZE bytes that follow SPOT, and FRONT bytes in front of them.  One of these may be a call.
 * NULL: not known. */
static const uint8_t *bytes_behind(const struct code_spot *spot, size_t *front, size_t *size)
{
    size_t before;
    const uint8_t *bytes = code_spot_bytes(spot, &before, size);
    if (!bytes || *size == 0)
        return NULL;
    *front = before + 1 < LONGEST_CALL_BYTES ? before + 1 : LONGEST_CALL_BYTES;
    --*size;
    return bytes + 1;
}

/* Whether the code in front of SPOT, which is known, does not end in a call. */
static bool has_no_call(const struct stack_walker *walker, const struct code_spot *spot)
{
    size_t front, size;
    const uint8_t *bytes = bytes_behind(spot, &front, &size);
    return bytes && !code_ends_in_call(walker->machine, bytes - front, front);
}

/* In code whose bytes are not known any address may be behind a call.  If the code in front of a
 * function was not logged, the function's begin is not taken for a return address.  Pointers to
 * functions are on stacks, too, and code that ends in a call right in front of the next function is
 * seldom left out. */
static bool returns_to(void *context, uint64_t addr)
{
    struct stack_walker *walker = context;
    size_t front, size;
    if (addr == 0 || addr > INT64_MAX)
        return false;
    struct code_spot spot = find_spot(walker, addr - 1);
    if (!spot.is_code)
        return false;
    const uint8_t *bytes = bytes_behind(&spot, &front, &size);
    if (!bytes)
        return spot.function || !find_spot(walker, addr).function;
    return code_ends_in_call(walker->machine, bytes - front, front) ||
           code_is_signal_return(walker->machine, bytes, size);
}

/* As call_evidence; *DIRECT: the target of a direct call, else SPACE_NOTHING.  A direct call leads
 * into code made at run time only from that code itself. */
static enum call_evidence evidence_at(struct stack_walker *walker, uint64_t addr,
                                      struct code_spot *direct)
{
    size_t front, size;
    int64_t by;
    struct code_spot spot = find_spot(walker, addr - 1);
    *direct = (struct code_spot){.what = SPACE_NOTHING};
    if (addr == 0 || addr > INT64_MAX || !spot.is_code)
        return CALL_NONE;
    const uint8_t *bytes = bytes_behind(&spot, &front, &size);
    if (!bytes)
        return CALL_DOUBTFUL;
    if (!code_ends_in_call(walker->machine, bytes - front, front))
        return CALL_NONE;
    if (code_ends_in_direct_call(walker->machine, bytes - front, front, &by))
        *direct = find_spot(walker, addr + (uint64_t)by);
    return direct->is_code && direct->what != walker->end_at ? CALL_DOUBTFUL : CALL_POSSIBLE;
}

static enum call_evidence calls(void *context, uint64_t addr)
{
    return evidence_at(context, addr, &(struct code_spot){0});
}

/* ---- Rules ---- */

/* The entry about SPOT, in a function. */
static int find_jit_entry(const struct code_spot *spot, struct cfi_entry *entry)
{
    const struct jit_function *function = spot->function;
    for (uint32_t i = 0; i < function->fde_count; i++) {
        const struct code_fde *fde = &spot->log->fdes[function->first_fde + i];
        if (spot->addr < fde->start || spot->addr - fde->start >= fde->size)
            continue;
        *entry = cfi_entry_of(&spot->log->cies[fde->cie], fde->start, fde->size, fde->instructions,
                              fde->instructions_bytes);
        return 1;
    }
    return 0;
}

static int find_entry(struct stack_walker *walker, const struct code_spot *spot,
                      struct cfi_entry *entry)
{
    if (spot->function)
        return find_jit_entry(spot, entry);
    return native_file_entry(&walker->files, spot->file, spot->addr, &walker->budget, entry);
}

/* ENTRY's row at SPOT.  Returns false if it has none, or its programs are too long. */
static bool find_row(struct stack_walker *walker, const struct code_spot *spot,
                     const struct cfi_entry *entry, struct cfi_row *row)
{
    return entry->initial_bytes <= MOST_PROGRAM_BYTES &&
           entry->instructions_bytes <= MOST_PROGRAM_BYTES &&
           cfi_row_find(entry, spot->addr, walker->machine, &walker->budget, row);
}

/* Whether the function that begins at SPOT has no caller of its own: ENTRY says so, or its first
 * instruction takes another stack, as that of glibc's __start_context. */
static bool is_outermost(struct stack_walker *walker, const struct code_spot *spot,
                         const struct cfi_entry *entry)
{
    struct cfi_row row;
    size_t before, size;
    const uint8_t *bytes = code_spot_bytes(spot, &before, &size);
    if (bytes && code_rule_takes_stack(walker->machine, bytes, size))
        return true;
    return find_row(walker, spot, entry, &row) &&
           row.registers[row.return_register].kind == REGISTER_UNDEFINED;
}

/* Whether a native function that can be returned to begins at SPOT.  A native TABLE is believed.
 * Without one on the way, the function must be an outermost one, or have no table itself, as V8's
 * builtins. */
static bool is_entered(struct stack_walker *walker, const struct code_spot *spot, bool by_table)
{
    struct cfi_entry entry;
    struct elf_function function;
    int found = find_entry(walker, spot, &entry);
    if (found > 0)
        return entry.start == spot->addr && (by_table || is_outermost(walker, spot, &entry));
    return found == 0 &&
           native_file_function(&walker->files, spot->file, spot->addr, &function) > 0 &&
           function.start == spot->addr;
}

/* Whether frames may go on at ADDR, a function's first byte, though no call is in front of it:
 * coroutines begin so (makecontext), and V8's deoptimizer makes such frames. */
static bool enters_at(struct stack_walker *walker, uint64_t addr, bool by_table)
{
    if (addr == 0 || addr > INT64_MAX)
        return false;
    struct code_spot spot = find_spot(walker, addr);
    return spot.function
               ? spot.addr == 0
               : spot.file && spot.owner && spot.is_code && is_entered(walker, &spot, by_table);
}

static bool begins_at(void *context, uint64_t addr)
{
    return enters_at(context, addr, false);
}

/* The frame in SPOT's function, which was logged without bytes, by those in the process's memory. A
 * JVM's map has its interpreter as one function: beyond what can be followed they tell nothing. */
static int follow_in_memory(struct stack_walker *walker, const struct code_spot *spot,
                            struct unwind_rule *rule)
{
    const struct jit_function *function = spot->function;
    const uint8_t *code =
        function && walker->options.find_code
            ? walker->options.find_code(walker->options.context, function->addr, function->size)
            : NULL;
    return code ? code_rule_find(rule, walker->machine, code, (size_t)function->size,
                                 (size_t)spot->addr, &walker->budget)
                : 0;
}

/* The place of SPOT in its function, and the frame there, by that one's bytes. */
static int place_of(struct stack_walker *walker, const struct code_spot *spot, bool calls,
                    struct unwind_rule *rule)
{
    struct elf_function found;
    size_t before, size;
    const uint8_t *bytes = code_spot_bytes(spot, &before, &size);
    *rule = (struct unwind_rule){.kind = RULE_PLACE, .place = PLACE_UNKNOWN};
    if (!bytes)
        return follow_in_memory(walker, spot, rule);
    if (spot->file) {
        int result = native_file_function(&walker->files, spot->file, spot->addr, &found);
        if (result <= 0)
            return result;
        if (found.start > spot->addr || spot->addr - found.start > before)
            return 0;
        before = (size_t)(spot->addr - found.start);
        size = found.end - spot->addr < size ? (size_t)(found.end - spot->addr) : size;
    }
    const uint8_t *code = bytes - before;
    rule->place = (uint8_t)code_place_of(walker->machine, code, before + size, before, calls);
    return code_rule_find(rule, walker->machine, code, before + size, before, &walker->budget);
}

/* Padding in front of a function, of which no table tells, leads into that function, whose frame it
 * has by then: SPOT is moved there. */
static int find_entry_behind(struct stack_walker *walker, struct code_spot *spot,
                             struct cfi_entry *entry)
{
    size_t before, size;
    const uint8_t *bytes = spot->file ? code_spot_bytes(spot, &before, &size) : NULL;
    size_t padding = bytes
                         ? code_padding_bytes(walker->machine, bytes,
                                              size < MOST_PADDING_BYTES ? size : MOST_PADDING_BYTES)
                         : 0;
    struct code_spot behind = *spot;
    behind.addr += padding;
    int found = padding ? find_entry(walker, &behind, entry) : 0;
    if (found > 0)
        *spot = behind;
    return found;
}

static int make_rule(struct stack_walker *walker, const struct code_spot *place, bool calls,
                     struct unwind_rule *rule)
{
    struct code_spot at = *place, *spot = &at;
    struct cfi_entry entry;
    struct cfi_row row;
    int found = find_entry(walker, spot, &entry);
    if (!found && !calls)
        found = find_entry_behind(walker, spot, &entry);
    if (found < 0)
        return -1;
    if (!found)
        return place_of(walker, spot, calls, rule) < 0 ? -1 : 0;
    *rule = (struct unwind_rule){.kind = RULE_NONE};
    if (!find_row(walker, spot, &entry, &row))
        return 0;
    return unwind_rule_shorten(rule, &row, walker->machine)
               ? 0
               : rule_table_keep_row(&walker->rules, &row, rule);
}

/* The rule of SPOT, kept from now on. */
static const struct unwind_rule *rule_of(struct stack_walker *walker, const struct code_spot *spot,
                                         bool calls)
{
    struct rule_entry *entry = rule_table_at(&walker->rules, spot->owner, spot->addr);
    if (!entry)
        return NULL;
    if (entry->owner)
        return &entry->rule;
    if (make_rule(walker, spot, calls, &entry->rule))
        return NULL;
    entry->rule.no_call = calls && has_no_call(walker, spot);
    entry->owner = spot->owner;
    entry->addr = spot->addr;
    walker->rules.count++;
    return &entry->rule;
}

/* ---- Frames ---- */

/* Whether a process begins at SPOT: ld.so's first instructions have no table and no caller. */
static bool is_entry(const struct code_spot *spot)
{
    enum { ENTRY_CODE_BYTES = 64 };
    return spot->file && spot->addr >= spot->file->view.entry &&
           spot->addr - spot->file->view.entry < ENTRY_CODE_BYTES;
}

/* Code that is too short for anything else, and of which nothing else is known.  Its words on the
 * stack have been pushed, so hardly a word is left from other calls. */
static bool is_trampoline(const struct code_spot *spot)
{
    enum { MOST_BYTES = 64 };
    return spot->function && !spot->function->code && spot->function->size <= MOST_BYTES;
}

static enum unwind_result step_on(struct stack_walker *walker, struct unwind_step *step,
                                  const struct code_spot *spot, struct unwind_frame *frame,
                                  uint8_t *kind)
{
    const struct unwind_rule *rule = spot->owner ? rule_of(walker, spot, !frame->exact) : NULL;
    *kind = RULE_PLACE;
    if (spot->owner && !rule) {
        walker->no_memory = true;
        return UNWIND_WRONG;
    }
    if (!rule)
        return unwind_by_place(step, &(struct unwind_rule){.place = PLACE_UNKNOWN}, frame);
    *kind = rule->kind;
    if (rule->kind == RULE_NONE)
        return UNWIND_WRONG;
    if (rule->kind == RULE_SHORT)
        return unwind_by_rule(step, rule, frame);
    if (rule->kind == RULE_ROW)
        return unwind_by_row(step, &walker->rules.rows[rule->row], frame);
    enum unwind_result result = unwind_by_place(step, rule, frame);
    if (result == UNWIND_WRONG && is_trampoline(spot)) {
        result = unwind_by_slot(step, frame);
        *kind = result == UNWIND_CALLER ? RULE_SLOT : RULE_PLACE;
    }
    return result == UNWIND_WRONG && is_entry(spot) ? UNWIND_END : result;
}

/* Whether a return address of 0 ended the step to FRAME by the table of a JIT function.  0 marks
 * the outermost frame of threads that were made by hand.  No thread begins in JIT code, so the
 * table is wrong there. */
static bool leads_to_0(const struct stack_walker *walker, const struct code_spot *spot,
                       enum unwind_result result, uint8_t kind, struct unwind_frame *frame)
{
    if (result != UNWIND_END || !spot->function || kind == RULE_PLACE ||
        frame->registers[walker->machine->return_register] != 0)
        return false;
    frame->pc = 0;
    return true;
}

/* Whether SPOT, a function's first byte that nobody called, is where a coroutine began.  Its table
 * is that of a function that was called. */
static bool is_begin(struct stack_walker *walker, const struct code_spot *spot)
{
    struct cfi_entry entry;
    return spot->file && find_entry(walker, spot, &entry) > 0 && is_outermost(walker, spot, &entry);
}

/* FRAME has become a caller's, which is in SPOT, BY_TABLE or not.  If nothing in front of where it
 * goes on has called, and a function begins there, then that is entered, and SPOT becomes its first
 * byte. */
static void look_at_entry(struct stack_walker *walker, bool by_table, struct unwind_frame *frame,
                          struct code_spot *spot)
{
    if (frame->exact)
        return;
    const struct unwind_rule *rule =
        spot->is_code && spot->owner ? rule_of(walker, spot, true) : NULL;
    if ((spot->is_code && !(rule && rule->no_call)) || !enters_at(walker, frame->pc, by_table))
        return;
    frame->exact = true;
    *spot = find_spot(walker, frame->pc);
}

/* ---- Whose fault it is ---- */

/* Facts about a stack when its chain ends. */
struct walk_state {
    const struct perf_sample *sample;
    bool has_all;   /* the registers: none is unknown because it was not sampled */
    bool suspected; /* a table led to code in front of which is no call */
    size_t suspect; /* the frame that it was in */
    uint64_t suspect_addr;
    bool in_jit;             /* JIT code was on the way */
    bool guessed, confirmed; /* a caller was found by return_slot.h; a table led on from it */
    size_t guess;            /* the frame whose caller it is */
    size_t doubt;            /* the frame behind which callers may be left out first */
    uint64_t doubt_addr;
    uint64_t guess_addr, guess_sp;
};

static enum chain_end why_no_table(const struct code_spot *spot)
{
    if (spot->function || spot->owner)
        return CHAIN_NO_TABLE;
    if (!spot->file || spot->file->map->map.filename[0] != '/' ||
        strncmp(spot->file->map->map.filename, "//", 2) == 0)
        return CHAIN_NOT_LOGGED;
    return CHAIN_NO_FILE;
}

/* The reason why the chain ends in SPOT, whose rule was of KIND. */
static enum chain_end why_ended(const struct walk_state *state, const struct code_spot *spot,
                                enum unwind_result result, uint8_t kind)
{
    bool outside = !state->sample->user_stack.cut && state->has_all;
    switch (result) {
    case UNWIND_END:
        return CHAIN_WHOLE;
    case UNWIND_CUT:
        if (!state->sample->user_stack.size)
            return CHAIN_EMPTY;
        return outside ? CHAIN_OUTSIDE : CHAIN_CUT;
    case UNWIND_CALLER:
        return kind == RULE_PLACE ? why_no_table(spot) : CHAIN_NO_CODE;
    case UNWIND_WRONG:
        break;
    }
    if (kind == RULE_PLACE)
        return why_no_table(spot);
    return kind == RULE_NONE ? CHAIN_TABLE_BROKEN : CHAIN_NO_FRAME;
}

/* A chain that a table led astray may go on for a while, and end where all is right. */
static void blame(struct stack_walker *walker, const struct walk_state *state,
                  const struct code_spot *spot, enum unwind_result result, uint8_t kind)
{
    walker->chain_end = why_ended(state, spot, result, kind);
    walker->blamed = walker->ip_count - 1;
    walker->blamed_addr = spot->addr;
    if (walker->chain_end == CHAIN_WHOLE && walker->doubted) {
        walker->chain_end = CHAIN_UNPROVEN;
        walker->blamed = state->doubt;
        walker->blamed_addr = state->doubt_addr;
    }
    if (!state->suspected ||
        (!chain_end_is_wrong(walker->chain_end) && walker->chain_end != CHAIN_OUTSIDE))
        return;
    walker->chain_end = CHAIN_NO_CALL;
    walker->blamed = state->suspect;
    walker->blamed_addr = state->suspect_addr;
}

/* Remember where the first step was that may have left out callers: that from SPOT. */
static void doubt(struct stack_walker *walker, struct walk_state *state,
                  const struct code_spot *spot, const struct unwind_step *step)
{
    if (!step->doubted || walker->doubted)
        return;
    walker->doubted = true;
    state->doubt = walker->ip_count - 1;
    state->doubt_addr = spot->addr;
}

/* SPOT's table, a rule of KIND, led to FRAME, where code is. */
static void judge(struct stack_walker *walker, struct walk_state *state,
                  const struct code_spot *spot, uint8_t kind, const struct unwind_frame *frame)
{
    if (!walker->options.judges || state->suspected || kind >= RULE_PLACE || frame->exact ||
        returns_to(walker, frame->pc))
        return;
    state->suspected = true;
    state->suspect = walker->ip_count - 1;
    state->suspect_addr = spot->addr;
}

/* ---- Callers that are no more than likely ---- */

/* Whether the caller that was found may be a leftover of another call.  In that case the right one
 * is its own return address, where FRAME goes on, which is among the words that were searched.  A
 * direct call in front of that shows that it is not. */
static bool may_be_left(struct stack_walker *walker, const struct walk_state *state,
                        const struct unwind_frame *frame)
{
    struct code_spot direct;
    return walker->ip_count == state->guess + 2 &&
           frame->registers[walker->machine->sp] - state->guess_sp <= SLOTS_BYTES &&
           (evidence_at(walker, frame->pc, &direct) == CALL_NONE || !direct.is_code);
}

/* SPOT, whose frame begins at SP, led to FRAME by a rule of KIND.  Returns false if that shows that
 * a caller that was found by its slot is none. */
static bool weigh(struct stack_walker *walker, struct walk_state *state,
                  const struct code_spot *spot, uint64_t sp, uint8_t kind,
                  const struct unwind_frame *frame)
{
    bool in_doubt = state->guessed && !state->confirmed;
    if (kind == RULE_SLOT && !in_doubt) {
        state->guessed = true;
        state->confirmed = false;
        state->guess = walker->ip_count - 1;
        state->guess_addr = spot->addr;
        state->guess_sp = sp;
        walker->found_count++;
        return true;
    }
    state->confirmed = state->confirmed || kind == RULE_SHORT || kind == RULE_ROW;
    return !state->guessed ||
           (kind != RULE_SLOT && (frame->exact || returns_to(walker, frame->pc)) &&
            !may_be_left(walker, state, frame));
}

/* Whether the tables led on to an end that speaks for the caller that was found. */
static bool is_believed(const struct stack_walker *walker, const struct walk_state *state)
{
    bool stopped = walker->chain_end == CHAIN_CUT || walker->chain_end == CHAIN_EMPTY ||
                   walker->chain_end == CHAIN_NO_TABLE || walker->chain_end == CHAIN_NOT_LOGGED ||
                   walker->chain_end == CHAIN_NO_FILE;
    return !state->guessed || state->suspected || walker->chain_end == CHAIN_WHOLE ||
           walker->chain_end == CHAIN_UNPROVEN || (stopped && state->confirmed);
}

/* The chain ends where that caller was looked for. */
static enum stack_end retract(struct stack_walker *walker, const struct walk_state *state,
                              struct unwind_step *step)
{
    walker->found_count--;
    walker->ip_count = state->guess + 1;
    walker->frames[state->guess].cfa = 0;
    walker->end_at = walker->frames[state->guess].what;
    walker->chain_end = CHAIN_NO_TABLE;
    walker->blamed = state->guess;
    walker->blamed_addr = state->guess_addr;
    step->cfa = state->guess_sp;
    return STACK_NO_TABLE;
}

/* FRAME, the last one of walker->ips, is in SPOT.  If that is an interpreter, the frame becomes
 * that of the function which it runs, and *WHAT is there. */
static void name_interpreted(struct stack_walker *walker, struct walk_state *state,
                             const struct user_stack *stack, const struct code_spot *spot,
                             const struct unwind_frame *frame, uint32_t *what)
{
    if (!spot->function)
        return;
    const uint64_t addr =
        interpreted_frame_addr(spot->log, frame, stack, state->sample->time_ns, !state->in_jit);
    const uint32_t there = addr ? address_space_at(walker->space, addr) : SPACE_NOTHING;
    state->in_jit = true;
    if (there == SPACE_NOTHING)
        return;
    if (walker->ip_count == 1)
        walker->interpreter = spot->what;
    walker->ips[walker->ip_count - 1] = addr;
    *what = there;
}

/* From FRAME on; its address is among walker->ips already. */
static enum stack_end walk_frames(struct stack_walker *walker, struct walk_state *state,
                                  struct user_stack *stack, struct unwind_step *step,
                                  struct unwind_frame *frame)
{
    struct code_spot spot = find_spot(walker, frame->pc);
    for (;;) {
        uint64_t sp = frame->registers[walker->machine->sp];
        bool exact = frame->exact;
        uint8_t kind = RULE_NONE;
        uint32_t what = spot.what;
        walker->end_at = spot.what;
        if (walker->options.find_stack && !user_stack_has(stack, sp, 1))
            walker->options.find_stack(walker->options.context, sp, stack);
        name_interpreted(walker, state, stack, &spot, frame, &what);
        step->cfa = sp;
        step->doubted = false;
        enum unwind_result result = exact && !frame->innermost && is_begin(walker, &spot)
                                        ? UNWIND_END
                                        : step_on(walker, step, &spot, frame, &kind);
        walker->frames[walker->ip_count - 1] =
            (struct walked_frame){step->cfa == sp ? 0 : step->cfa, what, exact};
        if (leads_to_0(walker, &spot, result, kind, frame))
            result = UNWIND_CALLER;
        struct code_spot caller = find_spot(walker, frame->exact ? frame->pc : frame->pc - 1);
        if (result == UNWIND_CALLER)
            look_at_entry(walker, kind < RULE_PLACE && spot.file, frame, &caller);
        uint64_t ip = frame->exact ? frame->pc : frame->pc - 1;
        if (result != UNWIND_CALLER || ip > INT64_MAX || !caller.is_code) {
            blame(walker, state, &spot, result, kind);
            return is_believed(walker, state) ? stack_end_of(walker->chain_end)
                                              : retract(walker, state, step);
        }
        judge(walker, state, &spot, kind, frame);
        doubt(walker, state, &spot, step);
        if (!weigh(walker, state, &spot, sp, kind, frame))
            return retract(walker, state, step);
        if (walker->ip_count == walker->ip_most) {
            walker->chain_end = CHAIN_TOO_LONG;
            walker->blamed = walker->ip_count - 1;
            return STACK_CUT;
        }
        walker->ips[walker->ip_count++] = ip;
        spot = caller;
    }
}

/* The REGISTERS as DWARF numbers them.  Returns false if the program counter or the stack pointer
 * is missing. */
static bool innermost_frame(const struct sample_registers *registers, const struct machine *machine,
                            struct unwind_frame *frame)
{
    bool has_pc = false;
    size_t index = 0;
    frame->known = 0;
    for (unsigned bit = 0; bit < 64; bit++) {
        if (!(registers->mask >> bit & 1))
            continue;
        uint64_t value = perf_get_u64(registers->values + 8 * index++);
        if (bit == machine->perf_pc) {
            frame->pc = value;
            has_pc = true;
        } else if (machine_dwarf_of_perf(machine, bit) != UNWIND_NO_REGISTER) {
            unwind_frame_set(frame, machine->dwarf_of_perf[bit], value);
        }
    }
    if (machine->link_register == UNWIND_NO_REGISTER)
        unwind_frame_set(frame, machine->return_register, frame->pc);
    frame->exact = frame->innermost = true;
    return has_pc && unwind_frame_knows(frame, machine->sp);
}

/* Whether the sample has every register that a table may ask for. */
static bool knows_all(const struct unwind_frame *frame, const struct machine *machine)
{
    for (unsigned perf = 0; perf < machine->perf_count; perf++)
        if (machine->dwarf_of_perf[perf] != UNWIND_NO_REGISTER &&
            !unwind_frame_knows(frame, machine->dwarf_of_perf[perf]))
            return false;
    return true;
}

enum stack_end stack_walk(struct stack_walker *walker, const struct perf_sample *sample,
                          const struct address_space *space, size_t most)
{
    struct unwind_frame frame;
    walker->ip_count = walker->found_count = 0;
    walker->doubted = false;
    walker->space = space;
    walker->end_at = walker->interpreter = SPACE_NOTHING;
    walker->sp = walker->cfa = 0;
    walker->chain_end = CHAIN_NOT_READ;
    walker->budget.left = BUDGET;
    const struct sample_registers *registers = &sample->user_registers;
    if (registers->abi != SAMPLE_ABI_64 || !registers->values ||
        !innermost_frame(registers, walker->machine, &frame) || most == 0)
        return STACK_NOT_READ;
    struct user_stack stack = {sample->user_stack.bytes, frame.registers[walker->machine->sp],
                               sample->user_stack.size};
    struct unwind_step step = {.machine = walker->machine,
                               .stack = &stack,
                               .budget = &walker->budget,
                               .returns_to = returns_to,
                               .begins_at = begins_at,
                               .calls = calls,
                               .context = walker,
                               .cfa = stack.start};
    walker->ip_most = most < MOST_FRAMES ? most : (size_t)MOST_FRAMES;
    walker->ips[walker->ip_count++] = frame.pc;
    walker->sp = stack.start;
    struct walk_state state = {.sample = sample, .has_all = knows_all(&frame, walker->machine)};
    enum stack_end end = walk_frames(walker, &state, &stack, &step, &frame);
    walker->cfa = step.cfa;
    return end;
}

uint64_t stack_walk_ip(const struct stack_walker *walker, const struct perf_sample *sample)
{
    const bool interpreted = walker->ip_count && walker->interpreter != SPACE_NOTHING &&
                             perf_sample_mode(sample) == PERF_MISC_USER &&
                             address_space_at(walker->space, sample->ip) == walker->interpreter;
    return interpreted ? walker->ips[0] : sample->ip;
}

/* ---- Calls ---- */

static struct stack_function function_of(struct stack_walker *walker, const struct code_spot *spot)
{
    struct cfi_entry entry;
    walker->budget.left = BUDGET;
    if (!spot->file || !spot->owner ||
        native_file_entry(&walker->files, spot->file, spot->addr, &walker->budget, &entry) <= 0)
        return (struct stack_function){0};
    return (struct stack_function){spot->owner, entry.start, entry.end};
}

struct stack_function stack_walk_function(struct stack_walker *walker, size_t index)
{
    struct code_spot spot = find_spot(walker, walker->ips[index]);
    return function_of(walker, &spot);
}

/* The bytes of FUNCTION, which SPOT is in; NULL: not known. */
static const uint8_t *function_bytes(const struct code_spot *spot,
                                     const struct stack_function *function)
{
    size_t before, size;
    const uint8_t *bytes = function->file ? code_spot_bytes(spot, &before, &size) : NULL;
    if (!bytes || function->start > spot->addr || spot->addr - function->start > before ||
        function->end - spot->addr > size)
        return NULL;
    return bytes - (spot->addr - function->start);
}

/* Whether the function at IP can go on in CALLEE as if it had been called itself. */
static bool jumps_to(struct stack_walker *walker, uint64_t ip, struct stack_function callee)
{
    struct code_spot spot = find_spot(walker, ip);
    struct stack_function function = function_of(walker, &spot);
    const uint8_t *code = spot.owner == callee.file ? function_bytes(&spot, &function) : NULL;
    return code && code_jumps_to(walker->machine, code, (size_t)(function.end - function.start),
                                 (int64_t)(callee.start - function.start));
}

uint64_t stack_walk_call(struct stack_walker *walker, uint64_t ip, uint32_t what,
                         struct stack_function callee)
{
    struct code_spot spot = find_spot(walker, ip);
    struct stack_function caller = function_of(walker, &spot);
    uint64_t start = ip - (spot.addr - caller.start);
    size_t size = (size_t)(caller.end - caller.start), call = 0;
    if (spot.what != what || spot.owner != callee.file)
        return 0;
    const uint8_t *code = function_bytes(&spot, &caller);
    int64_t target, wanted = (int64_t)(callee.start - caller.start);
    for (size_t at = 0; code && (at = code_next_call(walker->machine, code, size, at, &target));)
        if (target == wanted) {
            if (call)
                return 0;
            call = at;
        }
    for (size_t at = 0; call && (at = code_next_call(walker->machine, code, size, at, &target));)
        if (at != call && jumps_to(walker, start + (uint64_t)target, callee))
            return 0;
    return call ? start + call - 1 : 0;
}

int stack_walker_begin(struct stack_walker *walker, const struct space_source *source,
                       const struct machine *machine, const struct stack_walk_options *options)
{
    *walker = (struct stack_walker){.options = *options, .source = source, .machine = machine};
    walker->ips = malloc(MOST_FRAMES * sizeof *walker->ips);
    walker->frames = calloc(MOST_FRAMES, sizeof *walker->frames);
    return native_files_begin(&walker->files, source->records, options->root, machine->elf_mach) ||
                   !walker->ips || !walker->frames
               ? -1
               : 0;
}

void stack_walker_end(struct stack_walker *walker)
{
    native_files_free(&walker->files);
    rule_table_free(&walker->rules);
    free(walker->ips);
    free(walker->frames);
    *walker = (struct stack_walker){0};
}
