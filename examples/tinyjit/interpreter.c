/* See interpreter.h. */
#include "examples/tinyjit/interpreter.h"

#include "examples/tinyjit/arithmetic.h"
#include "examples/tinyjit/crash.h"
#include "examples/tinyjit/failure.h"
#include "examples/tinyjit/memory.h"
#include "examples/tinyjit/native_mix.h"

#include <string.h>

/* As in runtime.c. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-omit-frame-pointer")
#endif

/* One call of a function. */
struct activation {
    struct interpreter *interpreter;
    int64_t *locals;
    bool returned;
    int64_t result;
};

static int64_t evaluate(struct activation *activation, const struct node *node);
static void execute(struct activation *activation, const struct node *node);

static _Noreturn void fail(const struct activation *activation, enum failure failure,
                           const struct node *node)
{
    failure_exit(activation->interpreter->program, failure, node->at);
}

/* ---- Frames of the program's own ---- */

static int64_t run_function(struct interpreter *interpreter, const struct function *function,
                            const int64_t *arguments);

/* For functions that have none yet. */
static void make_frames(struct interpreter *interpreter)
{
    const struct program *program = interpreter->program;
    for (size_t i = 0; i < program->function_count; i++)
        if (interpreter->calls[i] == run_function)
            interpreter->calls[i] = (interpreted_call *)code_log_frame(
                interpreter->log, &program->functions[i], (jitdump_entry *)run_function);
}

static void emit_all(struct jitdump *dump, void *user)
{
    (void)dump; /* which the log has */
    make_frames(user);
}

/* ---- Calls ---- */

static int64_t call_function(struct interpreter *interpreter, const struct function *function,
                             const int64_t *arguments)
{
    if (interpreter->log)
        code_log_poll(interpreter->log, emit_all, interpreter);
    return interpreter->calls[function - interpreter->program->functions](interpreter, function,
                                                                          arguments);
}

static int64_t run_function(struct interpreter *interpreter, const struct function *function,
                            const int64_t *arguments)
{
    struct activation activation = {.interpreter = interpreter};
    if ((uintptr_t)__builtin_frame_address(0) < interpreter->stack_limit)
        failure_exit(interpreter->program, FAIL_STACK, function->at);
    activation.locals = memory_new(function->local_count, sizeof *activation.locals);
    memcpy(activation.locals, arguments, function->parameter_count * sizeof *arguments);
    execute(&activation, function->body);
    free(activation.locals);
    return activation.result;
}

static int64_t evaluate_call(struct activation *activation, const struct node *node)
{
    const struct program *program = activation->interpreter->program;
    int64_t arguments[MAX_PARAMETERS] = {0};
    uint64_t function = node->index;
    uint32_t count = 0;
    if (node->kind == NODE_CALL_VALUE)
        function = (uint64_t)evaluate(activation, node->left);
    for (const struct node *item = node->items; item; item = item->next)
        arguments[count++] = evaluate(activation, item);
    if (function >= program->function_count)
        fail(activation, FAIL_FUNCTION, node);
    if (program->functions[function].parameter_count != count)
        fail(activation, FAIL_ARGUMENTS, node);
    return call_function(activation->interpreter, &program->functions[function], arguments);
}

static int64_t mix(const struct interpreter *interpreter, int64_t argument)
{
    const struct runtime_options *trouble = interpreter->trouble;
    if (trouble && trouble->crash)
        crash_now(argument);
    if (trouble && trouble->stops && argument == trouble->stop_at)
        stop_now();
    return native_mix(argument);
}

static int64_t evaluate_builtin(struct activation *activation, const struct node *node)
{
    int64_t argument = evaluate(activation, node->left);
    switch ((enum builtin)node->index) {
    case BUILTIN_PRINT:
        output_add(activation->interpreter->output, argument);
        return argument;
    case BUILTIN_NATIVE_MIX:
        return mix(activation->interpreter, argument);
    default: /* forget: there is no code to forget */
        return 0;
    }
}

/* ---- Expressions ---- */

static int64_t *element(struct activation *activation, const struct node *node, int64_t subscript)
{
    if ((uint64_t)subscript >= (uint64_t)node->value)
        fail(activation, FAIL_SUBSCRIPT, node);
    return &activation->interpreter->cells[(uint64_t)node->index + (uint64_t)subscript];
}

static int64_t evaluate_binary(struct activation *activation, const struct node *node)
{
    int64_t left = evaluate(activation, node->left);
    if (node->operation == OP_BOTH && !left)
        return 0;
    if (node->operation == OP_EITHER && left)
        return 1;
    int64_t right = evaluate(activation, node->right);
    if (node->operation == OP_BOTH || node->operation == OP_EITHER)
        return right != 0;
    if (!arithmetic_is_defined(node->operation, right))
        fail(activation, FAIL_DIVISION, node);
    return arithmetic_binary(node->operation, left, right);
}

static int64_t evaluate(struct activation *activation, const struct node *node)
{
    switch (node->kind) {
    case NODE_NUMBER:
        return node->value;
    case NODE_LOCAL:
        return activation->locals[node->index];
    case NODE_GLOBAL:
        return activation->interpreter->cells[node->index];
    case NODE_ELEMENT:
        return *element(activation, node, evaluate(activation, node->left));
    case NODE_UNARY:
        return arithmetic_unary(node->operation, evaluate(activation, node->left));
    case NODE_BINARY:
        return evaluate_binary(activation, node);
    case NODE_BUILTIN:
        return evaluate_builtin(activation, node);
    default:
        return evaluate_call(activation, node);
    }
}

/* ---- Statements ---- */

static void execute_set_element(struct activation *activation, const struct node *node)
{
    int64_t subscript = evaluate(activation, node->left);
    int64_t value = evaluate(activation, node->right);
    *element(activation, node, subscript) = value;
}

static void execute(struct activation *activation, const struct node *node)
{
    switch (node->kind) {
    case NODE_SET_LOCAL:
        activation->locals[node->index] = evaluate(activation, node->right);
        break;
    case NODE_SET_GLOBAL: {
        int64_t value = evaluate(activation, node->right);
        activation->interpreter->cells[node->index] = value;
        break;
    }
    case NODE_SET_ELEMENT:
        execute_set_element(activation, node);
        break;
    case NODE_IF:
        if (evaluate(activation, node->left))
            execute(activation, node->right);
        else if (node->other)
            execute(activation, node->other);
        break;
    case NODE_WHILE:
        while (!activation->returned && evaluate(activation, node->left))
            execute(activation, node->right);
        break;
    case NODE_RETURN:
        activation->result = evaluate(activation, node->left);
        activation->returned = true;
        break;
    case NODE_DISCARD:
        evaluate(activation, node->left);
        break;
    default:
        for (const struct node *item = node->items; item && !activation->returned;
             item = item->next)
            execute(activation, item);
    }
}

void interpreter_open(struct interpreter *interpreter, const struct program *program,
                      struct output *output, uintptr_t stack_limit, struct code_log *log)
{
    *interpreter = (struct interpreter){
        .program = program, .output = output, .stack_limit = stack_limit, .log = log};
    interpreter->calls = memory_new(program->function_count, sizeof *interpreter->calls);
    for (size_t i = 0; i < program->function_count; i++)
        interpreter->calls[i] = run_function;
    if (log)
        make_frames(interpreter);
    interpreter->cells = memory_new(program->global_count, sizeof *interpreter->cells);
    if (program->global_count)
        memcpy(interpreter->cells, program->globals,
               program->global_count * sizeof *interpreter->cells);
}

int64_t interpreter_run(struct interpreter *interpreter)
{
    const struct program *program = interpreter->program;
    int64_t none[1] = {0};
    return call_function(interpreter, &program->functions[program->main], none);
}

void interpreter_close(struct interpreter *interpreter)
{
    if (interpreter->log)
        code_log_drop_frames(interpreter->log);
    free(interpreter->calls);
    free(interpreter->cells);
}
