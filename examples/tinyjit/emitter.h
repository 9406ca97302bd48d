/* The emitter: what both tiers and the stubs need on top of the assembler.
 *
 * It keeps book of the stack frame, so that at each instruction the distance from rsp to the CFA (see code.h)
 * is known; and of source lines, calls and failures.
 *
 *     CFA ─▶  return address   at CFA - 8
 *             rbp              with a frame pointer: rbp points here
 *             saved registers  that the code uses and its caller may
 *             locals           emitter_local(e, n)
 *     rsp ─▶  ...              what is pushed while an expression is computed
 *
 * Code follows the System V ABI: arguments in rdi, rsi, rdx, rcx, r8, r9, result in rax, rbx, rbp and r12 to r14
 * belong to the caller; and r15 is the context's address everywhere. */
#ifndef TINYJIT_EMITTER_H
#define TINYJIT_EMITTER_H

#include "examples/tinyjit/code.h"
#include "examples/tinyjit/context.h"
#include "examples/tinyjit/failure.h"
#include "examples/tinyjit/x86_assembler.h"

struct emitter {
    struct x86_assembler x86;
    const struct program *program;
    bool counting;         /* tier 1 counts calls and loops, to find out what is hot */
    bool polling;          /* calls and loops look whether somebody asks for a dump */
    bool inlining;         /* tier 2 replaces calls of small functions by the functions */
    struct position at;    /* where in the script the code comes from, now, */
    uint32_t inlined;      /* and which inlined call it belongs to, or NOT_INLINED */
    bool cfa_in_rbp;       /* now */
    uint32_t cfa_distance; /* CFA - rsp, now */
    struct code_frame frame;
    size_t frame_events_inside; /* how many there were at the end of the prologue */
    uint32_t first_local;       /* local n is at CFA - first_local - 8 * n */
    struct emitter_failure *failures;
    size_t failure_count, failure_capacity;
    struct code_line *lines;
    size_t line_count, line_capacity;
    struct code_inline *inlines;
    size_t inline_count, inline_capacity;
    struct code_frame_event *frame_events;
    size_t frame_event_count, frame_event_capacity;
    struct code_call *calls;
    size_t call_count, call_capacity;
};

extern const enum x86_register emitter_argument_registers[MAX_PARAMETERS];

void emitter_open(struct emitter *e, const struct program *program, bool frame_pointer);

/* Finish the code.  Returns it, without an address and a name, its bytes still in e->x86; or NULL if it is too
 * large. */
struct code *emitter_finish(struct emitter *e, enum code_kind kind, uint32_t function);

void emitter_close(struct emitter *e);

/* From here on the code comes from AT. */
void emitter_line(struct emitter *e, struct position at);

/* From here on the code belongs to FUNCTION, whose call at CALL it replaces; and then no more.  The next line must be
 * said after each. */
void emitter_begin_inline(struct emitter *e, const struct function *function, struct position call);
void emitter_end_inline(struct emitter *e);

/* ---- The frame ---- */

/* Prologue: make the frame, save the SAVED_COUNT registers in SAVED, make room for LOCALS locals.  rsp is a
 * multiple of 16 afterwards. */
void emitter_enter(struct emitter *e, const enum x86_register *saved, size_t saved_count,
                   uint32_t locals);
void emitter_unwind(struct emitter *e); /* epilogue, without the ret */
void emitter_leave(struct emitter *e);  /* epilogue */

/* Behind an epilogue: code follows that runs inside the frame, with CFA - rsp = CFA_DISTANCE. */
void emitter_resume(struct emitter *e, uint32_t cfa_distance);

struct x86_memory emitter_local(const struct emitter *e, uint32_t local);
void emitter_push(struct emitter *e, enum x86_register from);
void emitter_pop(struct emitter *e, enum x86_register to);

/* ---- Calls ---- */

void emitter_call(struct emitter *e, struct x86_memory target);
void emitter_call_function(struct emitter *e, uint32_t function);

/* Call the function whose number is in rax, with ARGUMENTS arguments. */
void emitter_call_value(struct emitter *e, uint32_t arguments, struct position at);

/* Call the C function HELPER; its argument is in rdi. */
void emitter_call_helper(struct emitter *e, uint32_t helper);

/* ---- Failures ---- */

/* A label to jump to when FAILURE happens at AT. */
x86_label emitter_failure(struct emitter *e, enum failure failure, struct position at);

/* Write the code behind all those labels. */
void emitter_failures(struct emitter *e);

void emitter_stack_check(struct emitter *e, struct position at);

/* ---- Safe points ---- */

/* Where no register but those that calls keep holds anything: call the runtime if it is asked to log its code. */
void emitter_poll(struct emitter *e);

/* ---- Pieces of expressions ---- */

struct x86_memory emitter_cell(const struct emitter *e, uint32_t cell);

/* The element of NODE (an element, or an assignment to one) whose subscript is in SUBSCRIPT, after a check. */
struct x86_memory emitter_element(struct emitter *e, const struct node *node,
                                  enum x86_register subscript);

/* rax = rax / rcx or rax % rcx, after a check; changes rdx. */
void emitter_divide(struct emitter *e, enum operation operation, struct position at);

bool operation_is_comparison(enum operation operation);
enum x86_condition operation_condition(enum operation operation);

#endif
