/* The parser: a script's text becomes a syntax tree.
 *
 *     program    = { function | "global" NAME [ "=" [ "-" ] NUMBER ] ";" | "array" NAME "[" NUMBER "]" ";" }
 *     function   = "fn" NAME "(" [ NAME { "," NAME } ] ")" block
 *     block      = "{" { statement } "}"
 *     statement  = "var" NAME [ "=" expression ] ";"
 *                | NAME [ "[" expression "]" ] "=" expression ";"
 *                | "if" expression block [ "else" ( block | if-statement ) ]
 *                | "while" expression block
 *                | "return" [ expression ] ";"
 *                | block
 *                | expression ";"
 *     expression = operators, from weak to strong: || ; && ; == != < <= > >= ; | ^ ; & ; << >> ; + - ; * / %
 *     unary      = { "-" | "!" | "~" } primary
 *     primary    = NUMBER | NAME | NAME "[" expression "]" | "@" NAME | "(" expression ")"
 *                | NAME "(" [ expression { "," expression } ] ")"
 *                | "call" "(" expression { "," expression } ")"
 */
#ifndef TINYJIT_PARSER_H
#define TINYJIT_PARSER_H

#include "examples/tinyjit/syntax.h"

/* Parse BYTES bytes of TEXT, read from PATH.  Returns the program, to be freed with program_free; or NULL with a
 * message "PATH:LINE:COLUMN: what is wrong" in ERROR (of ERROR_BYTES bytes).  TEXT is not needed afterwards. */
struct program *program_parse(const char *path, const char *text, size_t bytes, char *error,
                              size_t error_bytes);

void program_free(struct program *program);

#endif
