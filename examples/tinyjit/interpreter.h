/* An interpreter of the syntax tree: the answer that compiled code is compared with.
 *
 * With a log each function is called through code of its own (code_log_frame), so that it has a
 * frame and a name in native stacks. */
#ifndef TINYJIT_INTERPRETER_H
#define TINYJIT_INTERPRETER_H

#include "examples/tinyjit/code_log.h"
#include "examples/tinyjit/output.h"
#include "examples/tinyjit/runtime.h"
#include "examples/tinyjit/syntax.h"

struct interpreter;

/* What calls FUNCTION go through: run_function, or a trampoline to it. */
typedef int64_t interpreted_call(struct interpreter *interpreter, const struct function *function,
                                 const int64_t *arguments);

struct interpreter {
    const struct program *program;
    struct output *output;
    int64_t *cells;
    uintptr_t stack_limit;
    struct code_log *log;                  /* or NULL */
    interpreted_call **calls;              /* of each function */
    const struct runtime_options *trouble; /* what native_mix is to make; NULL: none */
};

/* STACK_LIMIT: the address below which the stack must not grow.  LOG: NULL for functions without
 * frames of their own. */
void interpreter_open(struct interpreter *interpreter, const struct program *program,
                      struct output *output, uintptr_t stack_limit, struct code_log *log);

/* Run main() once, and return its result.  Global variables keep their values from run to run. */
int64_t interpreter_run(struct interpreter *interpreter);

void interpreter_close(struct interpreter *interpreter);

#endif
