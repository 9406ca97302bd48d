/* See parser.h.  Recursive descent, one token ahead: tokens, statements and the top level. */
#include "examples/tinyjit/parser.h"

#include "examples/tinyjit/memory.h"
#include "examples/tinyjit/parser_state.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MAX_LOCALS = 1000, MAX_CELLS = 1 << 20 };

enum { CHUNK_NODES = 128 };

struct node_chunk {
    struct node_chunk *next;
    size_t used;
    struct node nodes[CHUNK_NODES];
};

static void parse_block_items(struct parser *parser, struct node *block);
static struct node *parse_statement(struct parser *parser);

/* ---- Errors and tokens ---- */

__attribute__((format(printf, 3, 4))) void parser_fail(struct parser *parser, struct position at,
                                                       const char *format, ...)
{
    if (parser->failed)
        return;
    parser->failed = true;
    parser->token.kind = TOKEN_END;
    int prefix = snprintf(parser->error, parser->error_bytes, "%s:%u:%u: ", parser->program->path,
                          at.line, at.column);
    if (prefix < 0 || (size_t)prefix >= parser->error_bytes)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(parser->error + prefix, parser->error_bytes - (size_t)prefix, format, arguments);
    va_end(arguments);
}

void parser_advance(struct parser *parser)
{
    if (parser->failed)
        return;
    parser->token = lexer_next(&parser->lexer);
    struct token token = parser->token;
    if (token.kind == TOKEN_BAD_CHARACTER)
        parser_fail(parser, token.at, "no token starts with the byte 0x%02x",
                    (unsigned char)*token.text);
    else if (token.kind == TOKEN_BAD_NUMBER)
        parser_fail(parser, token.at, "'%.*s' is not a number of at most 63 bits",
                    (int)token.length, token.text);
}

bool parser_take(struct parser *parser, const char *punctuation)
{
    if (!token_is(&parser->token, punctuation))
        return false;
    parser_advance(parser);
    return true;
}

void parser_fail_expected(struct parser *parser, const char *what)
{
    const struct token *token = &parser->token;
    if (token->kind == TOKEN_END)
        parser_fail(parser, token->at, "expected %s, found the end of the script", what);
    else
        parser_fail(parser, token->at, "expected %s, found '%.*s'", what, (int)token->length,
                    token->text);
}

void parser_expect(struct parser *parser, const char *punctuation)
{
    char quoted[8];
    snprintf(quoted, sizeof quoted, "'%s'", punctuation);
    if (!parser_take(parser, punctuation))
        parser_fail_expected(parser, quoted);
}

struct token parser_expect_kind(struct parser *parser, enum token_kind kind, const char *what)
{
    struct token token = parser->token;
    if (token.kind == kind)
        parser_advance(parser);
    else
        parser_fail_expected(parser, what);
    return token;
}

static bool take_keyword(struct parser *parser, enum token_kind keyword)
{
    if (parser->token.kind != keyword)
        return false;
    parser_advance(parser);
    return true;
}

/* ---- Nodes ---- */

struct node *parser_new_node(struct parser *parser, enum node_kind kind, struct position at)
{
    struct program *program = parser->program;
    if (!program->chunks || program->chunks->used == CHUNK_NODES) {
        struct node_chunk *chunk = memory_new(1, sizeof *chunk);
        chunk->next = program->chunks;
        program->chunks = chunk;
    }
    struct node *node = &program->chunks->nodes[program->chunks->used++];
    node->kind = kind;
    node->at = at;
    return node;
}

struct node *parser_new_number(struct parser *parser, struct position at, int64_t value)
{
    struct node *node = parser_new_node(parser, NODE_NUMBER, at);
    node->value = value;
    return node;
}

/* ---- Statements ---- */

static uint32_t declare_local(struct parser *parser, struct token name)
{
    const struct local_name *known = parser_find_local(parser, &name);
    if (known && known >= parser->locals + parser->block_start)
        parser_fail(parser, name.at, "'%.*s' is already declared in this block", (int)name.length,
                    name.text);
    if (parser->function->local_count == MAX_LOCALS)
        parser_fail(parser, name.at, "a function can have %d variables", MAX_LOCALS);
    parser->locals = array_room(parser->locals, parser->local_count, &parser->local_capacity,
                                sizeof *parser->locals);
    struct local_name *local = &parser->locals[parser->local_count++];
    local->name = name;
    local->index = parser->function->local_count++;
    return local->index;
}

static struct node *parse_block(struct parser *parser)
{
    struct node *block = parser_new_node(parser, NODE_BLOCK, parser->token.at);
    size_t outer_start = parser->block_start;
    parser->block_start = parser->local_count;
    parser_expect(parser, "{");
    parse_block_items(parser, block);
    parser_expect(parser, "}");
    parser->local_count = parser->block_start;
    parser->block_start = outer_start;
    return block;
}

static void parse_block_items(struct parser *parser, struct node *block)
{
    struct node **end = &block->items;
    while (parser->token.kind != TOKEN_END && !token_is(&parser->token, "}")) {
        *end = parse_statement(parser);
        end = &(*end)->next;
        block->item_count++;
    }
}

static struct node *parse_var(struct parser *parser, struct position at)
{
    struct token name = parser_expect_kind(parser, TOKEN_NAME, "a variable's name");
    struct node *node = parser_new_node(parser, NODE_SET_LOCAL, at);
    node->right =
        parser_take(parser, "=") ? parser_expression(parser) : parser_new_number(parser, at, 0);
    node->index = declare_local(parser, name); /* only now: the value can't use the new name */
    parser_expect(parser, ";");
    return node;
}

static struct node *parse_if(struct parser *parser, struct position at)
{
    struct node *node = parser_new_node(parser, NODE_IF, at);
    node->left = parser_expression(parser);
    node->right = parse_block(parser);
    if (!take_keyword(parser, TOKEN_ELSE))
        return node;
    node->other = parser->token.kind == TOKEN_IF ? parse_statement(parser) : parse_block(parser);
    return node;
}

static struct node *parse_while(struct parser *parser, struct position at)
{
    struct node *node = parser_new_node(parser, NODE_WHILE, at);
    node->left = parser_expression(parser);
    node->right = parse_block(parser);
    return node;
}

static struct node *parse_return(struct parser *parser, struct position at)
{
    struct node *node = parser_new_node(parser, NODE_RETURN, at);
    node->left = token_is(&parser->token, ";") ? parser_new_number(parser, at, 0)
                                               : parser_expression(parser);
    parser_expect(parser, ";");
    return node;
}

/* An expression; or, if "=" follows, the place to assign to. */
static struct node *parse_assignment(struct parser *parser, struct position at)
{
    struct node *node = parser_expression(parser);
    if (!parser_take(parser, "=")) {
        struct node *discard = parser_new_node(parser, NODE_DISCARD, at);
        discard->left = node;
        node = discard;
    } else {
        if (node->kind == NODE_LOCAL)
            node->kind = NODE_SET_LOCAL;
        else if (node->kind == NODE_GLOBAL)
            node->kind = NODE_SET_GLOBAL;
        else if (node->kind == NODE_ELEMENT)
            node->kind = NODE_SET_ELEMENT;
        else
            parser_fail(parser, at, "only a variable or an array's element can be assigned to");
        node->right = parser_expression(parser);
    }
    parser_expect(parser, ";");
    return node;
}

static struct node *parse_statement(struct parser *parser)
{
    struct position at = parser->token.at;
    struct node *node;
    if (++parser->depth > MAX_DEPTH)
        parser_fail(parser, at, "nested too deeply");
    if (take_keyword(parser, TOKEN_VAR))
        node = parse_var(parser, at);
    else if (take_keyword(parser, TOKEN_IF))
        node = parse_if(parser, at);
    else if (take_keyword(parser, TOKEN_WHILE))
        node = parse_while(parser, at);
    else if (take_keyword(parser, TOKEN_RETURN))
        node = parse_return(parser, at);
    else if (token_is(&parser->token, "{"))
        node = parse_block(parser);
    else
        node = parse_assignment(parser, at);
    parser->depth--;
    return node;
}

/* ---- Top level ---- */

/* All functions' names and parameter counts, before anything else: calls may come before the function. */
static void declare_functions(struct parser *parser)
{
    struct program *program = parser->program;
    while (parser->token.kind != TOKEN_END) {
        if (!take_keyword(parser, TOKEN_FN)) {
            parser_advance(parser);
            continue;
        }
        struct token name = parser_expect_kind(parser, TOKEN_NAME, "a function's name");
        if (parser_find_function(parser, &name) || parser_is_builtin(&name))
            parser_fail(parser, name.at, "there is already a function '%.*s'", (int)name.length,
                        name.text);
        program->functions = array_room(program->functions, program->function_count,
                                        &program->function_capacity, sizeof *program->functions);
        struct function *function = &program->functions[program->function_count++];
        *function = (struct function){.at = name.at};
        function->name = memory_or_exit(strndup(name.text, name.length));
        parser_expect(parser, "(");
        while (parser->token.kind == TOKEN_NAME || token_is(&parser->token, ",")) {
            function->parameter_count += parser->token.kind == TOKEN_NAME;
            parser_advance(parser);
        }
    }
}

static void parse_function(struct parser *parser)
{
    struct token name = parser_expect_kind(parser, TOKEN_NAME, "a function's name");
    struct function *function = parser_find_function(parser, &name);
    if (!function)
        return; /* only after an error */
    parser->function = function;
    parser->local_count = parser->block_start = 0;
    parser_expect(parser, "(");
    while (parser->token.kind == TOKEN_NAME) {
        declare_local(parser, parser->token);
        parser_advance(parser);
        if (!parser_take(parser, ","))
            break;
    }
    parser_expect(parser, ")");
    if (function->local_count > MAX_PARAMETERS)
        parser_fail(parser, name.at, "a function can have %d parameters", MAX_PARAMETERS);
    function->body = parse_block(parser);
}

/* CELLS cells that start as VALUE; the number of the first. */
static uint32_t new_cells(struct program *program, size_t cells, int64_t value)
{
    uint32_t first = (uint32_t)program->global_count;
    for (size_t i = 0; i < cells; i++) {
        program->globals = array_room(program->globals, program->global_count,
                                      &program->global_capacity, sizeof *program->globals);
        program->globals[program->global_count++] = value;
    }
    return first;
}

static void parse_global(struct parser *parser, bool is_array)
{
    struct token name = parser_expect_kind(parser, TOKEN_NAME, "a variable's name");
    int64_t value = 0;
    bool has_value = is_array || parser_take(parser, "=");
    if (is_array)
        parser_expect(parser, "[");
    bool negative = has_value && !is_array && parser_take(parser, "-");
    if (has_value)
        value = parser_expect_kind(parser, TOKEN_NUMBER, "a number").value;
    if (is_array)
        parser_expect(parser, "]");
    parser_expect(parser, ";");
    if (parser_find_global(parser, &name))
        parser_fail(parser, name.at, "there is already a global '%.*s'", (int)name.length,
                    name.text);
    if (is_array && (value < 1 || value > MAX_CELLS))
        parser_fail(parser, name.at, "an array can have 1 to %d elements", MAX_CELLS);
    size_t cells = is_array ? (size_t)value : 1;
    if (!parser->failed && parser->program->global_count + cells > MAX_CELLS)
        parser_fail(parser, name.at, "a program can have %d global values", MAX_CELLS);
    if (parser->failed)
        return;
    parser->globals = array_room(parser->globals, parser->global_count, &parser->global_capacity,
                                 sizeof *parser->globals);
    struct global_name *global = &parser->globals[parser->global_count++];
    global->name = memory_or_exit(strndup(name.text, name.length));
    global->length = is_array ? (uint32_t)value : 0;
    global->index = new_cells(parser->program, cells, is_array ? 0 : negative ? -value : value);
}

static void parse_program(struct parser *parser)
{
    while (parser->token.kind != TOKEN_END) {
        if (take_keyword(parser, TOKEN_FN))
            parse_function(parser);
        else if (take_keyword(parser, TOKEN_GLOBAL))
            parse_global(parser, false);
        else if (take_keyword(parser, TOKEN_ARRAY))
            parse_global(parser, true);
        else
            parser_fail_expected(parser, "'fn', 'global' or 'array'");
    }
}

static void find_main(struct parser *parser)
{
    struct token name = {TOKEN_NAME, {1, 1}, "main", 4, 0};
    const struct function *function = parser_find_function(parser, &name);
    if (!function)
        parser_fail(parser, name.at, "there is no function 'main'");
    else if (function->parameter_count)
        parser_fail(parser, function->at, "'main' takes no arguments");
    else
        parser->program->main = parser_function_number(parser, function);
}

struct program *program_parse(const char *path, const char *text, size_t bytes, char *error,
                              size_t error_bytes)
{
    struct program *program = memory_new(1, sizeof *program);
    struct parser parser = {.program = program, .error = error, .error_bytes = error_bytes};
    program->path = memory_or_exit(strdup(path));
    parser.lexer = lexer_over(text, bytes);
    parser_advance(&parser);
    declare_functions(&parser);
    parser.lexer = lexer_over(text, bytes);
    parser_advance(&parser);
    parse_program(&parser);
    find_main(&parser);
    for (size_t i = 0; i < parser.global_count; i++)
        free(parser.globals[i].name);
    free(parser.globals);
    free(parser.locals);
    if (!parser.failed)
        return program;
    program_free(program);
    return NULL;
}

void program_free(struct program *program)
{
    if (!program)
        return;
    for (size_t i = 0; i < program->function_count; i++)
        free(program->functions[i].name);
    for (struct node_chunk *chunk = program->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free(program->functions);
    free(program->globals);
    free(program->path);
    free(program);
}
