/* An interpreter of the syntax tree: the answer that compiled code is compared with. */
#ifndef TINYJIT_INTERPRETER_H
#define TINYJIT_INTERPRETER_H

#include "examples/tinyjit/output.h"
#include "examples/tinyjit/syntax.h"

struct interpreter {
    const struct program *program;
    struct output *output;
    int64_t *cells;
    uintptr_t stack_limit;
};

/* STACK_LIMIT: the address below which the stack must not grow. */
void interpreter_open(struct interpreter *interpreter, const struct program *program,
                      struct output *output, uintptr_t stack_limit);

/* Run main() once, and return its result.  Global variables keep their values from run to run. */
int64_t interpreter_run(struct interpreter *interpreter);

void interpreter_close(struct interpreter *interpreter);

#endif
