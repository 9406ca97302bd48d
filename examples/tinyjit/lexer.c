/* See lexer.h. */
#include "examples/tinyjit/lexer.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static const struct keyword {
    const char *text;
    enum token_kind kind;
} keywords[] = {
    {"fn", TOKEN_FN},         {"var", TOKEN_VAR},     {"if", TOKEN_IF},
    {"else", TOKEN_ELSE},     {"while", TOKEN_WHILE}, {"return", TOKEN_RETURN},
    {"global", TOKEN_GLOBAL}, {"array", TOKEN_ARRAY},
};

static const char two_characters[][3] = {"==", "!=", "<=", ">=", "<<", ">>", "&&", "||"};

struct lexer lexer_over(const char *text, size_t bytes)
{
    struct lexer lexer = {text, text + bytes, {1, 1}};
    return lexer;
}

static bool same_text(const struct token *token, const char *text)
{
    return token->length == strlen(text) && memcmp(token->text, text, token->length) == 0;
}

int token_is(const struct token *token, const char *text)
{
    return token->kind == TOKEN_PUNCTUATION && same_text(token, text);
}

static void skip_blanks(struct lexer *lexer)
{
    bool comment = false;
    for (; lexer->cursor < lexer->end; lexer->cursor++) {
        char c = *lexer->cursor;
        if (c == '\n') {
            comment = false;
            lexer->at.line++;
            lexer->at.column = 1;
            continue;
        }
        comment = comment || c == '#';
        if (!comment && c != ' ' && c != '\t' && c != '\r')
            return;
        lexer->at.column++;
    }
}

static bool is_name_character(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static size_t name_length(const struct lexer *lexer)
{
    const char *cursor = lexer->cursor;
    while (cursor < lexer->end && is_name_character(*cursor))
        cursor++;
    return (size_t)(cursor - lexer->cursor);
}

static void read_number(struct token *token)
{
    uint64_t value = 0;
    token->kind = TOKEN_NUMBER;
    for (size_t i = 0; i < token->length; i++) {
        unsigned digit = (unsigned)(token->text[i] - '0');
        if (digit > 9 || value > ((uint64_t)INT64_MAX - digit) / 10) {
            token->kind = TOKEN_BAD_NUMBER;
            return;
        }
        value = value * 10 + digit;
    }
    token->value = (int64_t)value;
}

static void read_name(struct token *token)
{
    token->kind = TOKEN_NAME;
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++)
        if (same_text(token, keywords[i].text))
            token->kind = keywords[i].kind;
}

static void read_punctuation(const struct lexer *lexer, struct token *token)
{
    token->length = 1;
    token->kind =
        strchr("()[]{},;=<>+-*/%&|^~!@", *token->text) ? TOKEN_PUNCTUATION : TOKEN_BAD_CHARACTER;
    if (lexer->end - lexer->cursor < 2)
        return;
    for (size_t i = 0; i < sizeof two_characters / sizeof two_characters[0]; i++)
        if (memcmp(token->text, two_characters[i], 2) == 0)
            token->length = 2;
}

struct token lexer_next(struct lexer *lexer)
{
    skip_blanks(lexer);
    struct token token = {TOKEN_END, lexer->at, lexer->cursor, 0, 0};
    if (lexer->cursor == lexer->end)
        return token;
    token.length = name_length(lexer);
    if (token.length == 0 || *token.text == '\0')
        read_punctuation(lexer, &token);
    else if (isdigit((unsigned char)*token.text))
        read_number(&token);
    else
        read_name(&token);
    lexer->cursor += token.length;
    lexer->at.column += (uint32_t)token.length;
    return token;
}
