/* The lexer: a script's text, cut into tokens.
 *
 * Comments go from # to the end of the line.  Lines and columns count from 1, columns in bytes. */
#ifndef TINYJIT_LEXER_H
#define TINYJIT_LEXER_H

#include <stddef.h>
#include <stdint.h>

struct position {
    uint32_t line, column;
};

enum token_kind {
    TOKEN_END,
    TOKEN_NAME,
    TOKEN_NUMBER,
    TOKEN_BAD_CHARACTER,
    TOKEN_BAD_NUMBER, /* over 64 bits, or digits that run into letters */
    TOKEN_FN,
    TOKEN_VAR,
    TOKEN_IF,
    TOKEN_ELSE,
    TOKEN_WHILE,
    TOKEN_RETURN,
    TOKEN_GLOBAL,
    TOKEN_ARRAY,
    TOKEN_PUNCTUATION, /* one or two characters; see token_is() */
};

struct token {
    enum token_kind kind;
    struct position at;
    const char *text; /* LENGTH bytes inside the script */
    size_t length;
    int64_t value; /* of a number */
};

struct lexer {
    const char *cursor, *end;
    struct position at;
};

/* Start at the beginning of TEXT, which must outlive the lexer and its tokens. */
struct lexer lexer_over(const char *text, size_t bytes);

struct token lexer_next(struct lexer *lexer);

/* Whether TOKEN is the punctuation TEXT ("(" or "<=", say). */
int token_is(const struct token *token, const char *text);

#endif
