/* See stack_walk.h.
 *
 * Everything here runs in signal handlers: no lock, no allocation, no access to memory that may not
 * be there.
 */
#include "jitunwind/stack_walk.h"

#include "jitunwind/arena_list.h"
#include "jitunwind/frames/native_tables.h"

enum { WORD = 8, CALL_BYTES = 8, SCAN_WORDS = 1024 };

/* ---- What is known of the code ---- */

static bool look_in_arena(struct stack_walk *walk, uint64_t addr)
{
    const struct jitunwind *arena = ju_arena_list_find(addr);
    const struct table_function *function =
        arena ? ju_function_table_find(&arena->table, addr) : NULL;
    if (!function)
        return false;
    const struct frame_rule *rule = ju_function_table_rule(&arena->table, function, addr);
    walk->is_code = walk->is_jit = true;
    walk->has_rule = rule != NULL;
    if (rule)
        walk->rule = *rule;
    return true;
}

/* Padding in front of a function is in no table.  Code runs through it into that function, with the
 * function's frame: glibc's __memmove_chk runs into memmove so. */
static enum native_result look_behind_padding(struct stack_walk *walk, uint64_t addr,
                                              struct native_place *place)
{
    enum { PAGE_BYTES = 4096 };
    uint8_t code[MACHINE_PADDING_BYTES];
    size_t in_page = PAGE_BYTES - addr % PAGE_BYTES;
    size_t size = in_page < sizeof code ? in_page : sizeof code;
    unsigned padding =
        ju_memory_read_there(addr, code, size) ? ju_machine_padding(code, (unsigned)size) : 0;
    return padding ? ju_native_find(addr + padding, &walk->rule, place) : NATIVE_FILE;
}

static void look_in_file(struct stack_walk *walk, uint64_t addr, struct native_place *place)
{
    enum native_result result = ju_native_find(addr, &walk->rule, place);
    if (result == NATIVE_FILE && walk->exact)
        result = look_behind_padding(walk, addr, place);
    walk->signal_frame = place->signal_frame;
    walk->is_code = result != NATIVE_NONE;
    walk->has_rule = result == NATIVE_RULE;
}

/* The cached rule of ADDR.  Returns false if it may be otherwise now.
 */
static bool recall(struct stack_walk *walk, const struct cached_rule *cached, uint64_t addr)
{
    if (cached->addr != addr)
        return false;
    if (cached->file ? !ju_native_is_same(addr, cached->file, cached->fde, cached->fde_words)
                     : cached->removed != atomic_load_explicit(&ju_removed, memory_order_acquire))
        return false;
    walk->rule = cached->rule;
    walk->changed = cached->changed;
    walk->is_jit = !cached->file;
    walk->is_code = walk->has_rule = true;
    walk->signal_frame = false;
    return true;
}

/* A rule of a file that can't be asked about again, or of a handler's return, is not kept. */
static void keep(const struct stack_walk *walk, struct cached_rule *cached, uint64_t addr,
                 uint64_t removed, const struct native_place *place)
{
    if (!walk->has_rule || walk->signal_frame || (!walk->is_jit && !place->fde))
        return;
    cached->addr = addr;
    cached->removed = removed;
    cached->file = walk->is_jit ? 0 : place->file;
    cached->fde = place->fde;
    if (place->fde)
        memcpy(cached->fde_words, place->fde, sizeof cached->fde_words);
    cached->rule = walk->rule;
    cached->changed = walk->changed;
}

static uint32_t changed_slots(const struct frame_rule *rule)
{
    uint32_t changed = 0;
    for (unsigned i = 0; i < MACHINE_SAVED; i++)
        changed |= (uint32_t)(rule->slots[i] != SLOT_SAME) << i;
    return changed;
}

static void look_at_code(struct stack_walk *walk)
{
    const uint64_t addr = walk->frame.ip - !walk->exact;
    const uint64_t removed = atomic_load_explicit(&ju_removed, memory_order_acquire);
    struct cached_rule *cached = walk->cache ? rule_cache_place(walk->cache, addr) : NULL;
    struct native_place place = {0, NULL, false};
    if (cached && recall(walk, cached, addr))
        return;
    walk->is_code = walk->has_rule = walk->is_jit = walk->signal_frame = false;
    if (!look_in_arena(walk, addr))
        look_in_file(walk, addr, &place);
    if (walk->has_rule)
        walk->changed = changed_slots(&walk->rule);
    if (cached)
        keep(walk, cached, addr, removed, &place);
}

/* Whether a call can have returned to ADDR. */
static bool is_behind_call(uint64_t addr)
{
    uint8_t code[CALL_BYTES];
    return addr > CALL_BYTES && ju_memory_read_there(addr - CALL_BYTES, code, sizeof code) &&
           ju_machine_ends_in_call(code, sizeof code);
}

static bool is_in_code(uint64_t addr)
{
    struct frame_rule rule;
    struct native_place place;
    const struct jitunwind *arena = ju_arena_list_find(addr);
    return (arena && ju_function_table_find(&arena->table, addr)) ||
           ju_native_find(addr, &rule, &place) != NATIVE_NONE;
}

static bool is_return_address(uint64_t addr)
{
    return addr && is_in_code(addr - 1) && is_behind_call(addr);
}

/* ---- Going on ---- */

/* The caller goes on at IP, when the stack pointer is SP.  Registers that are not known to be
 * preserved have been dropped. */
static enum jitunwind_end go_on(struct stack_walk *walk, uint64_t ip, uint64_t sp)
{
    ip &= MACHINE_ADDRESS_MASK;
    if (ip == 0)
        return JITUNWIND_OUTERMOST;
    walk->frame.ip = ip;
    walk->exact = walk->innermost = false;
    machine_set(&walk->frame, MACHINE_SP, sp);
    look_at_code(walk);
    return walk->is_code || is_behind_call(ip) ? JITUNWIND_GOES_ON : JITUNWIND_LOST;
}

/* A stack grows downwards: callers' frames lie above, unless a leaf has put nothing there. */
static bool ascends(const struct stack_walk *walk, uint64_t sp)
{
    uint64_t now = walk->frame.registers[MACHINE_SP];
    return sp % WORD == 0 && (sp > now || (sp == now && walk->innermost));
}

/* ---- By a rule ---- */

static bool find_cfa(const struct stack_walk *walk, uint64_t *cfa)
{
    const struct frame_rule *rule = &walk->rule;
    if (rule->kind == RULE_PLT) {
        enum { PLT_ENTRY_BYTES = 16 };
        bool pushed = walk->frame.ip % PLT_ENTRY_BYTES >= (uint64_t)(int64_t)rule->cfa_offset;
        *cfa = walk->frame.registers[MACHINE_SP] + WORD + pushed * WORD;
        return true;
    }
    if (rule->kind != RULE_OFFSET || !machine_knows(&walk->frame, rule->cfa_register))
        return false;
    *cfa = walk->frame.registers[rule->cfa_register] + (uint64_t)(int64_t)rule->cfa_offset;
    return true;
}

/* Have the register in SLOT, which is not SLOT_SAME, be the caller's, as far as that can be known.
 */
static void restore(struct stack_walk *walk, unsigned slot, uint64_t cfa)
{
    const int16_t at = walk->rule.slots[slot];
    const unsigned reg = machine_saved[slot];
    uint64_t value;
    if (at != SLOT_UNDEFINED && at != SLOT_UNKNOWN &&
        memory_read_word(&walk->memory, cfa + (uint64_t)((int64_t)at * WORD), &value))
        machine_set(&walk->frame, reg, value);
    else
        walk->frame.known &= ~(UINT64_C(1) << reg);
}

/* The registers that may be the caller's, too. */
static uint64_t saved_mask(void)
{
    uint64_t mask = 0;
    for (unsigned i = 0; i < MACHINE_SAVED; i++)
        mask |= UINT64_C(1) << machine_saved[i];
    return mask;
}

static enum jitunwind_end step_by_rule(struct stack_walk *walk)
{
    uint64_t cfa;
    if (walk->rule.slots[0] == SLOT_UNDEFINED)
        return JITUNWIND_OUTERMOST;
    if (!find_cfa(walk, &cfa) || !ascends(walk, cfa))
        return JITUNWIND_LOST;
    walk->frame.known &= saved_mask();
    for (uint32_t left = walk->changed; left; left &= left - 1)
        restore(walk, (unsigned)__builtin_ctz(left), cfa);
    if (!machine_knows(&walk->frame, MACHINE_RETURN))
        return JITUNWIND_LOST;
    walk->frame.known &= ~(UINT64_C(1) << MACHINE_RETURN);
    return go_on(walk, walk->frame.registers[MACHINE_RETURN], cfa);
}

/* ---- By what a signal interrupted ---- */

static bool read_ucontext(struct stack_walk *walk, uint64_t ucontext)
{
    uint64_t value;
    walk->frame = (struct machine_frame){0};
    for (unsigned i = 0; i < MACHINE_REGISTERS; i++) {
        if (!memory_read_word(&walk->memory, ucontext + ju_machine_ucontext_offset(i), &value))
            return false;
        machine_set(&walk->frame, i, value);
    }
    if (MACHINE_CFA_OFFSET) /* the return address is on the stack */
        walk->frame.known &= ~(UINT64_C(1) << MACHINE_RETURN);
    walk->exact = walk->innermost = true;
    return memory_read_word(&walk->memory, ucontext + ju_machine_ucontext_offset(MACHINE_IP),
                            &walk->frame.ip);
}

static bool is_signal_return(const struct stack_walk *walk)
{
    uint8_t code[MACHINE_SIGNAL_RETURN_BYTES];
    return !walk->is_jit && (walk->signal_frame || !walk->has_rule) &&
           ju_memory_read_there(walk->frame.ip, code, sizeof code) &&
           ju_machine_is_signal_return(code);
}

static enum jitunwind_end step_by_signal(struct stack_walk *walk)
{
    if (!read_ucontext(walk, ju_machine_signal_ucontext(walk->frame.registers[MACHINE_SP])))
        return JITUNWIND_LOST;
    look_at_code(walk);
    return JITUNWIND_GOES_ON;
}

/* ---- Where no rule is ---- */

/* The frame pointer points to the caller's, and the return address is behind that: so on both
 * machines. */
static enum jitunwind_end step_by_frame_pointer(struct stack_walk *walk)
{
    const uint64_t fp = walk->frame.registers[MACHINE_FP];
    uint64_t caller_fp, ip;
    if (!machine_knows(&walk->frame, MACHINE_FP) || !ascends(walk, fp + 2 * WORD) ||
        !memory_read_word(&walk->memory, fp, &caller_fp) ||
        !memory_read_word(&walk->memory, fp + WORD, &ip))
        return JITUNWIND_LOST;
    if (ip && !is_behind_call(ip & MACHINE_ADDRESS_MASK))
        return JITUNWIND_LOST;
    walk->frame.known = 0;
    machine_set(&walk->frame, MACHINE_FP, caller_fp);
    return go_on(walk, ip, fp + 2 * WORD);
}

/* A call led to an address that is not code.  Nothing has run since, so the return address is where
 * the call put it. */
static enum jitunwind_end step_by_call(struct stack_walk *walk)
{
    uint64_t ip, sp = walk->frame.registers[MACHINE_SP];
    if (machine_knows(&walk->frame, MACHINE_RETURN))
        ip = walk->frame.registers[MACHINE_RETURN] & MACHINE_ADDRESS_MASK;
    else if (MACHINE_CFA_OFFSET == 0 || !memory_read_word(&walk->memory, sp, &ip))
        return JITUNWIND_LOST;
    if (!is_return_address(ip))
        return JITUNWIND_LOST;
    walk->frame.known &= ~(UINT64_C(1) << MACHINE_RETURN);
    return go_on(walk, ip, sp + MACHINE_CFA_OFFSET);
}

static enum jitunwind_end step_by_scan(struct stack_walk *walk)
{
    uint64_t at = (walk->frame.registers[MACHINE_SP] + WORD - 1) / WORD * WORD;
    for (unsigned i = 0; i < SCAN_WORDS; i++, at += WORD) {
        uint64_t word, fp = 0;
        if (!memory_read_word(&walk->memory, at, &word))
            return JITUNWIND_LOST;
        word &= MACHINE_ADDRESS_MASK;
        if (!is_return_address(word))
            continue;
        walk->frame.known = 0;
        if (memory_read_word(&walk->memory, at - WORD, &fp) && fp > at)
            machine_set(&walk->frame, MACHINE_FP, fp);
        return go_on(walk, word, at + WORD);
    }
    return JITUNWIND_LOST;
}

/* ---- Either ---- */

bool ju_stack_walk_begin(struct stack_walk *walk, const void *ucontext,
                         const struct machine_frame *here)
{
    ju_memory_reader_begin(&walk->memory);
    walk->scan = false;
    walk->cache = ju_rule_cache_take();
    if (here) {
        walk->frame = *here;
        walk->exact = walk->innermost = true;
    } else if (!read_ucontext(walk, (uint64_t)(uintptr_t)ucontext)) {
        return false;
    }
    look_at_code(walk);
    return true;
}

void ju_stack_walk_end(struct stack_walk *walk)
{
    ju_rule_cache_release(walk->cache);
}

/* The sound ways. */
static enum jitunwind_end step(struct stack_walk *walk, enum jitunwind_how *how)
{
    if (is_signal_return(walk)) {
        *how = JITUNWIND_SIGNAL;
        return step_by_signal(walk);
    }
    if (walk->has_rule) {
        *how = walk->is_jit ? JITUNWIND_RULES : JITUNWIND_EH_FRAME;
        return step_by_rule(walk);
    }
    if (!walk->is_code && walk->innermost) {
        const struct machine_frame before = walk->frame;
        *how = JITUNWIND_LEAF;
        if (step_by_call(walk) == JITUNWIND_GOES_ON)
            return JITUNWIND_GOES_ON;
        walk->frame = before;
    }
    *how = JITUNWIND_FRAME_POINTER;
    return step_by_frame_pointer(walk);
}

enum jitunwind_end ju_stack_walk_next(struct stack_walk *walk, enum jitunwind_how *how)
{
    if (!walk->scan)
        return step(walk, how);
    const struct machine_frame before = walk->frame;
    enum jitunwind_end end = step(walk, how);
    if (end != JITUNWIND_LOST)
        return end;
    walk->frame = before;
    *how = JITUNWIND_SCANNED;
    return step_by_scan(walk);
}
