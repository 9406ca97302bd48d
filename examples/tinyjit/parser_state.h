/* What the two halves of the parser share: parser.c (tokens, statements, top level) and expression_parser.c.
 *
 * Errors are sticky: the first one is written down, and from then on the current token is TOKEN_END, at which
 * every loop of the parser stops; so no rule has to test whether a rule below it failed. */
#ifndef TINYJIT_PARSER_STATE_H
#define TINYJIT_PARSER_STATE_H

#include "examples/tinyjit/syntax.h"

#include <stdbool.h>

/* What nests deeper is refused: everything behind the parser walks the tree by recursion. */
enum { MAX_DEPTH = 200, MAX_HEIGHT = 500 };

struct global_name {
    char *name;
    uint32_t index;
    uint32_t length; /* cells of an array; 0: not an array */
};

struct local_name {
    struct token name;
    uint32_t index;
};

struct parser {
    struct program *program;
    struct lexer lexer;
    struct token token; /* the one that is looked at */
    struct global_name *globals;
    size_t global_count, global_capacity;
    struct local_name *locals; /* that can be seen now, innermost last */
    size_t local_count, local_capacity;
    size_t block_start; /* where the locals of the innermost block start */
    struct function *function;
    unsigned depth;
    bool failed;
    char *error;
    size_t error_bytes;
};

/* ---- parser.c ---- */

void parser_fail(struct parser *parser, struct position at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void parser_fail_expected(struct parser *parser, const char *what);
void parser_advance(struct parser *parser);

/* Go on behind PUNCTUATION, if that is the current token. */
bool parser_take(struct parser *parser, const char *punctuation);
void parser_expect(struct parser *parser, const char *punctuation);
struct token parser_expect_kind(struct parser *parser, enum token_kind kind, const char *what);
struct node *parser_new_node(struct parser *parser, enum node_kind kind, struct position at);
struct node *parser_new_number(struct parser *parser, struct position at, int64_t value);

/* ---- expression_parser.c ---- */

struct function *parser_find_function(const struct parser *parser, const struct token *name);
uint32_t parser_function_number(const struct parser *parser, const struct function *function);
const struct global_name *parser_find_global(const struct parser *parser, const struct token *name);
const struct local_name *parser_find_local(const struct parser *parser, const struct token *name);
bool parser_is_builtin(const struct token *name);
struct node *parser_expression(struct parser *parser);

#endif
