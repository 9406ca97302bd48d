/* The inline log: which function and line each instruction comes from, as the compiler believes it.
 *
 * For tests, which compare it with what debuggers and profilers make of the dump.  Fields are separated by tabs:
 *
 *     code  ADDRESS  SIZE  NAME                                    address hexadecimal, size decimal
 *     at    OFFSET  FUNCTION  FILE  LINE  COLUMN [FUNCTION  FILE  LINE  COLUMN]...
 *
 * From OFFSET (decimal) up to the next one's, or the code's end, the instructions come from these places: from the
 * innermost inlined function to the code's own, each with the line that it was in; but the first, with the line of the
 * call.  The code's own function is called NAME, an inlined one tj::ITS_NAME.  Code that is not of the script, and code
 * in front of the first line, has none. */
#ifndef TINYJIT_INLINE_LOG_H
#define TINYJIT_INLINE_LOG_H

#include "examples/tinyjit/code.h"

#include <stdio.h>

void inline_log_begin(FILE *log);
void inline_log_write(FILE *log, const struct code *code, const char *script);

/* What an inlined function is called; to be freed. */
char *inline_log_name(const struct code_inline *call);

#endif
