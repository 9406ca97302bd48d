/* See failure.h. */
#include "examples/tinyjit/failure.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const messages[] = {
    [FAIL_STACK] = "the stack is full: the recursion is too deep",
    [FAIL_DIVISION] = "division by zero",
    [FAIL_SUBSCRIPT] = "the subscript is not in the array",
    [FAIL_FUNCTION] = "the value that is called is not a function's number",
    [FAIL_ARGUMENTS] = "the function that is called takes another number of arguments",
};

_Noreturn void failure_exit(const struct program *program, enum failure failure, struct position at)
{
    fflush(stdout);
    fprintf(stderr, "%s:%u:%u: %s\n", program->path, at.line, at.column, messages[failure]);
    exit(1);
}
