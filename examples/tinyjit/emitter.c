/* See emitter.h. */
#include "examples/tinyjit/emitter.h"

#include "examples/tinyjit/memory.h"

enum { CODE_CAPACITY = 256 * 1024 };

struct emitter_failure {
    x86_label label;
    enum failure failure;
    struct position at;
    uint32_t inlined;
    uint32_t cfa_distance;
};

const enum x86_register emitter_argument_registers[MAX_PARAMETERS] = {X86_RDI, X86_RSI, X86_RDX,
                                                                      X86_RCX, X86_R8,  X86_R9};

static void frame_event(struct emitter *e, enum code_frame_kind kind, enum x86_register reg,
                        uint32_t value)
{
    e->frame_events = array_room(e->frame_events, e->frame_event_count, &e->frame_event_capacity,
                                 sizeof *e->frame_events);
    struct code_frame_event event = {(uint32_t)e->x86.size, kind, reg, (int32_t)value};
    e->frame_events[e->frame_event_count++] = event;
}

void emitter_open(struct emitter *e, const struct program *program, bool frame_pointer)
{
    *e = (struct emitter){.program = program,
                          .inlined = (uint32_t)NOT_INLINED,
                          .frame.pointer = frame_pointer,
                          .frame.plain = true,
                          .cfa_distance = 8};
    x86_assembler_open(&e->x86, CODE_CAPACITY);
    frame_event(e, FRAME_CFA_RSP, X86_RSP, 8);
}

struct code *emitter_finish(struct emitter *e, enum code_kind kind, uint32_t function)
{
    if (!x86_assembler_finish(&e->x86))
        return NULL;
    struct code *code = memory_new(1, sizeof *code);
    code->kind = kind;
    code->function = function;
    code->size = e->x86.size;
    code->lines = e->lines;
    code->line_count = e->line_count;
    code->inlines = e->inlines;
    code->inline_count = e->inline_count;
    code->frame_events = e->frame_events;
    code->frame_event_count = e->frame_event_count;
    code->frame = e->frame;
    code->calls = e->calls;
    code->call_count = e->call_count;
    e->lines = NULL;
    e->inlines = NULL;
    e->frame_events = NULL;
    e->calls = NULL;
    return code;
}

void emitter_close(struct emitter *e)
{
    x86_assembler_close(&e->x86);
    free(e->failures);
    free(e->lines);
    free(e->inlines);
    free(e->frame_events);
    free(e->calls);
}

void emitter_line(struct emitter *e, struct position at)
{
    uint32_t offset = (uint32_t)e->x86.size;
    struct code_line *last = e->line_count ? &e->lines[e->line_count - 1] : NULL;
    e->at = at;
    if (last && last->at.line == at.line && last->at.column == at.column &&
        last->inlined == e->inlined)
        return;
    if (!last || last->offset != offset) {
        e->lines = array_room(e->lines, e->line_count, &e->line_capacity, sizeof *e->lines);
        last = &e->lines[e->line_count++];
    }
    *last = (struct code_line){offset, at, e->inlined};
}

void emitter_begin_inline(struct emitter *e, const struct function *function, struct position call)
{
    e->inlines = array_room(e->inlines, e->inline_count, &e->inline_capacity, sizeof *e->inlines);
    e->inlines[e->inline_count] = (struct code_inline){function, call, e->inlined};
    e->inlined = (uint32_t)e->inline_count++;
}

void emitter_end_inline(struct emitter *e)
{
    e->inlined = e->inlines[e->inlined].parent;
}

/* ---- The frame ---- */

/* rsp has just gone down by BYTES (up, if negative). */
static void stack_moved(struct emitter *e, int32_t bytes)
{
    e->cfa_distance = (uint32_t)((int32_t)e->cfa_distance + bytes);
    if (!e->cfa_in_rbp)
        frame_event(e, FRAME_CFA_RSP, X86_RSP, e->cfa_distance);
}

static void move_stack(struct emitter *e, int32_t bytes)
{
    if (bytes == 0)
        return;
    if (bytes > 0)
        x86_alu_constant(&e->x86, X86_SUB, X86_RSP, bytes);
    else
        x86_alu_constant(&e->x86, X86_ADD, X86_RSP, -bytes);
    stack_moved(e, bytes);
}

void emitter_push(struct emitter *e, enum x86_register from)
{
    x86_push(&e->x86, from);
    stack_moved(e, 8);
}

void emitter_pop(struct emitter *e, enum x86_register to)
{
    x86_pop(&e->x86, to);
    stack_moved(e, -8);
}

static void enter_frame_pointer(struct emitter *e)
{
    emitter_push(e, X86_RBP);
    frame_event(e, FRAME_SAVED, X86_RBP, e->cfa_distance);
    x86_mov(&e->x86, X86_RBP, X86_RSP);
    frame_event(e, FRAME_CFA_RBP, X86_RBP, e->cfa_distance);
    e->cfa_in_rbp = true;
}

void emitter_enter(struct emitter *e, const enum x86_register *saved, size_t saved_count,
                   uint32_t locals)
{
    if (e->frame.pointer)
        enter_frame_pointer(e);
    for (size_t i = 0; i < saved_count; i++) {
        e->frame.saved[i] = saved[i];
        emitter_push(e, saved[i]);
        frame_event(e, FRAME_SAVED, saved[i], e->cfa_distance);
    }
    e->frame.saved_count = saved_count;
    e->first_local = e->cfa_distance + 8;
    e->frame.local_bytes = locals * 8 + (e->cfa_distance + locals * 8) % 16;
    move_stack(e, (int32_t)e->frame.local_bytes);
    e->frame.prologue_bytes = (uint32_t)e->x86.size;
    e->frame_events_inside = e->frame_event_count;
}

void emitter_unwind(struct emitter *e)
{
    e->frame.plain = e->frame_event_count == e->frame_events_inside;
    e->frame.epilogue = (uint32_t)e->x86.size;
    move_stack(e, -(int32_t)e->frame.local_bytes);
    for (size_t i = e->frame.saved_count; i-- > 0;) {
        emitter_pop(e, e->frame.saved[i]);
        frame_event(e, FRAME_RESTORED, e->frame.saved[i], 0);
    }
    if (!e->frame.pointer)
        return;
    e->cfa_in_rbp = false;
    emitter_pop(e, X86_RBP);
    frame_event(e, FRAME_RESTORED, X86_RBP, 0);
}

void emitter_leave(struct emitter *e)
{
    emitter_unwind(e);
    x86_ret(&e->x86);
}

void emitter_resume(struct emitter *e, uint32_t cfa_distance)
{
    e->cfa_distance = cfa_distance;
    e->cfa_in_rbp = e->frame.pointer;
    uint32_t distance = 16;
    if (e->frame.pointer) {
        frame_event(e, FRAME_CFA_RBP, X86_RBP, 16);
        frame_event(e, FRAME_SAVED, X86_RBP, 16);
        distance += 8;
    } else {
        frame_event(e, FRAME_CFA_RSP, X86_RSP, cfa_distance);
    }
    for (size_t i = 0; i < e->frame.saved_count; i++)
        frame_event(e, FRAME_SAVED, e->frame.saved[i], distance + 8 * (uint32_t)i);
}

struct x86_memory emitter_local(const struct emitter *e, uint32_t local)
{
    int32_t below_cfa = (int32_t)(e->first_local + 8 * local);
    if (e->frame.pointer)
        return x86_at(X86_RBP, 16 - below_cfa);
    return x86_at(X86_RSP, (int32_t)e->cfa_distance - below_cfa);
}

/* ---- Calls ---- */

/* Make rsp a multiple of 16, as the ABI wants it at a call.  Returns what to give back to
 * move_stack. */
static int32_t align_stack(struct emitter *e)
{
    int32_t bytes = (int32_t)(e->cfa_distance % 16);
    move_stack(e, bytes);
    return -bytes;
}

static void call_aligned(struct emitter *e, struct x86_memory target)
{
    x86_call_memory(&e->x86, target);
    e->calls = array_room(e->calls, e->call_count, &e->call_capacity, sizeof *e->calls);
    e->calls[e->call_count++] = (struct code_call){(uint32_t)e->x86.size, e->cfa_distance};
}

void emitter_call(struct emitter *e, struct x86_memory target)
{
    int32_t undo = align_stack(e);
    call_aligned(e, target);
    move_stack(e, undo);
}

void emitter_call_function(struct emitter *e, uint32_t function)
{
    int32_t entry = context_slot_offset(function) + (int32_t)offsetof(struct function_slot, entry);
    emitter_call(e, x86_at(X86_R15, entry));
}

void emitter_call_value(struct emitter *e, uint32_t arguments, struct position at)
{
    int32_t slots = context_slot_offset(0);
    int32_t parameters = slots + (int32_t)offsetof(struct function_slot, parameters);
    int32_t entry = slots + (int32_t)offsetof(struct function_slot, entry);
    x86_alu_constant(&e->x86, X86_CMP, X86_RAX, (int32_t)e->program->function_count);
    x86_jcc(&e->x86, X86_ABOVE_EQUAL, emitter_failure(e, FAIL_FUNCTION, at));
    x86_shift_constant(&e->x86, X86_SHL, X86_RAX, SLOT_SHIFT);
    x86_alu32_memory_constant(&e->x86, X86_CMP, x86_indexed(X86_R15, X86_RAX, 0, parameters),
                              (int32_t)arguments);
    x86_jcc(&e->x86, X86_NOT_EQUAL, emitter_failure(e, FAIL_ARGUMENTS, at));
    emitter_call(e, x86_indexed(X86_R15, X86_RAX, 0, entry));
}

void emitter_call_helper(struct emitter *e, uint32_t helper)
{
    int32_t undo = align_stack(e);
    x86_mov(&e->x86, X86_RSI, X86_R15);
    if (helper != BUILTIN_PRINT && helper != BUILTIN_NATIVE_MIX) {
        x86_mov(&e->x86, X86_RDX, X86_RSP); /* from where the runtime walks the stack */
        x86_mov(&e->x86, X86_RCX, X86_RBP);
    }
    call_aligned(e, x86_at(X86_R15, context_helper_offset(helper)));
    move_stack(e, undo);
}

/* ---- Failures ---- */

x86_label emitter_failure(struct emitter *e, enum failure failure, struct position at)
{
    x86_label label = x86_label_new(&e->x86);
    e->failures =
        array_room(e->failures, e->failure_count, &e->failure_capacity, sizeof *e->failures);
    e->failures[e->failure_count++] =
        (struct emitter_failure){label, failure, at, e->inlined, e->cfa_distance};
    return label;
}

void emitter_failures(struct emitter *e)
{
    for (size_t i = 0; i < e->failure_count; i++) {
        const struct emitter_failure *failure = &e->failures[i];
        emitter_resume(e, failure->cfa_distance);
        e->inlined = failure->inlined;
        emitter_line(e, failure->at);
        x86_label_bind(&e->x86, failure->label);
        align_stack(e);
        x86_mov_constant(&e->x86, X86_RDI, failure->failure);
        x86_mov(&e->x86, X86_RSI, X86_R15);
        x86_mov_constant(&e->x86, X86_RDX, failure->at.line);
        x86_mov_constant(&e->x86, X86_RCX, failure->at.column);
        call_aligned(e, x86_at(X86_R15, context_helper_offset(HELPER_FAIL)));
        x86_ud2(&e->x86); /* it doesn't return; and a return address must be inside its function */
    }
    e->failure_count = 0;
}

void emitter_stack_check(struct emitter *e, struct position at)
{
    x86_alu_memory(&e->x86, X86_CMP, X86_RSP,
                   x86_at(X86_R15, (int32_t)offsetof(struct jit_context, stack_limit)));
    x86_jcc(&e->x86, X86_BELOW, emitter_failure(e, FAIL_STACK, at));
}

/* ---- Safe points ---- */

void emitter_poll(struct emitter *e)
{
    if (!e->polling)
        return;
    x86_label quiet = x86_label_new(&e->x86);
    x86_load(&e->x86, X86_RAX, x86_at(X86_R15, (int32_t)offsetof(struct jit_context, poll_word)));
    x86_alu32_memory_constant(&e->x86, X86_CMP, x86_at(X86_RAX, 0), 0);
    x86_jcc(&e->x86, X86_EQUAL, quiet);
    emitter_call_helper(e, HELPER_POLL);
    x86_label_bind(&e->x86, quiet);
}

/* ---- Pieces of expressions ---- */

struct x86_memory emitter_cell(const struct emitter *e, uint32_t cell)
{
    return x86_at(X86_R15, context_cell_offset(e->program, cell));
}

struct x86_memory emitter_element(struct emitter *e, const struct node *node,
                                  enum x86_register subscript)
{
    x86_alu_constant(&e->x86, X86_CMP, subscript, (int32_t)node->value);
    x86_jcc(&e->x86, X86_ABOVE_EQUAL, emitter_failure(e, FAIL_SUBSCRIPT, node->at));
    return x86_indexed(X86_R15, subscript, 3, context_cell_offset(e->program, node->index));
}

void emitter_divide(struct emitter *e, enum operation operation, struct position at)
{
    x86_label minus_one = x86_label_new(&e->x86), done = x86_label_new(&e->x86);
    x86_test(&e->x86, X86_RCX, X86_RCX);
    x86_jcc(&e->x86, X86_EQUAL, emitter_failure(e, FAIL_DIVISION, at));
    x86_alu_constant(&e->x86, X86_CMP, X86_RCX, -1);
    x86_jcc(&e->x86, X86_EQUAL, minus_one); /* INT64_MIN / -1 would raise SIGFPE */
    x86_cqo(&e->x86);
    x86_idiv(&e->x86, X86_RCX);
    if (operation == OP_MOD)
        x86_mov(&e->x86, X86_RAX, X86_RDX);
    x86_jmp(&e->x86, done);
    x86_label_bind(&e->x86, minus_one);
    if (operation == OP_MOD)
        x86_mov_constant(&e->x86, X86_RAX, 0);
    else
        x86_neg(&e->x86, X86_RAX);
    x86_label_bind(&e->x86, done);
}

bool operation_is_comparison(enum operation operation)
{
    return operation >= OP_EQ && operation <= OP_GE;
}

enum x86_condition operation_condition(enum operation operation)
{
    static const enum x86_condition conditions[] = {
        [OP_EQ] = X86_EQUAL,      [OP_NE] = X86_NOT_EQUAL, [OP_LT] = X86_LESS,
        [OP_LE] = X86_LESS_EQUAL, [OP_GT] = X86_GREATER,   [OP_GE] = X86_GREATER_EQUAL,
    };
    return conditions[operation];
}
