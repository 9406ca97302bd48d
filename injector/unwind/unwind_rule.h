/* How to go from a frame to its caller's, at one address: in short, so that one can be kept for
 * each address that was met.
 *
 * Nearly all rows of call frame information have one form.  The CFA is a register and an offset.
 * The return address and the saved registers stand at multiples of 8 from the CFA.
 */
#ifndef PERFJIT_UNWIND_RULE_H
#define PERFJIT_UNWIND_RULE_H

#include "injector/unwind/cfi_expression.h"
#include "injector/unwind/code_shape.h"

enum unwind_rule_kind {
    RULE_NONE,  /* nothing is known */
    RULE_SHORT, /* as above */
    RULE_ROW,   /* a row of any other form: number ROW, wherever the user keeps them */
    RULE_PLACE, /* no table: the instructions tell the PLACE */
    RULE_SLOT,  /* nor that: of a step alone (return_slot.h) */
};

enum { SLOT_SAME = INT16_MAX, SLOT_UNDEFINED = INT16_MIN, SLOT_LOST = INT16_MIN + 1 };

struct unwind_rule {
    uint8_t kind;
    uint8_t place; /* enum code_place */
    uint8_t cfa_register;
    bool signal_frame;
    bool no_call;  /* the code in front of a return address, which is known, does not call */
    bool followed; /* of a RULE_PLACE: by code_rule.h, and what is below holds */
    int32_t cfa_offset;
    int16_t slots[UNWIND_SAVED]; /* by machine->saved: in 8 bytes from the CFA, or one of these */
    uint32_t row;
};

/* The result of a step. */
enum unwind_result {
    UNWIND_CALLER, /* the frame is the caller's now */
    UNWIND_END,    /* there is none: the thread began here */
    UNWIND_CUT,    /* it lies behind the end of the copy */
    UNWIND_WRONG,  /* the rule's result is impossible */
};

/* The instruction in front of an address, as far as it can have led to code of which only the place
 * is known. */
enum call_evidence {
    CALL_NONE,     /* nothing that calls */
    CALL_POSSIBLE, /* a call that can lead there */
    CALL_DOUBTFUL, /* one that leads elsewhere, or code of which the bytes are not known */
};

/* The input of a step beside the frame. */
struct unwind_step {
    const struct machine *machine;
    const struct user_stack *stack;
    struct unwind_budget *budget;
    /* Whether code is at ADDR, and, as far as its bytes are known, a call in front of it. */
    bool (*returns_to)(void *context, uint64_t addr);
    /* Whether a function that can be returned to, though it was not called, begins at ADDR; or
     * NULL. */
    bool (*begins_at)(void *context, uint64_t addr);
    /* The evidence in front of ADDR.  NULL: not known (return_slot.h). */
    enum call_evidence (*calls)(void *context, uint64_t addr);
    void *context;
    uint64_t cfa; /* of the last step */
    bool doubted; /* set by a step along the frame pointer that may have left out callers */
};

/* Make *RULE of ROW.  Returns false if it has another form. */
bool unwind_rule_shorten(struct unwind_rule *rule, const struct cfi_row *row,
                         const struct machine *machine);

/* Go from FRAME to its caller by RULE, a RULE_SHORT, or by ROW. */
enum unwind_result unwind_by_rule(struct unwind_step *step, const struct unwind_rule *rule,
                                  struct unwind_frame *frame);
enum unwind_result unwind_by_row(struct unwind_step *step, const struct cfi_row *row,
                                 struct unwind_frame *frame);

/* The same without a table, by RULE, a RULE_PLACE.  Only return addresses behind calls are trusted
 * then.  The frame pointer is followed if the code has set it, or if it is proven that no caller is
 * left out so.  Out of code that could not be followed it is followed without that proof. */
enum unwind_result unwind_by_place(struct unwind_step *step, const struct unwind_rule *rule,
                                   struct unwind_frame *frame);

#endif
