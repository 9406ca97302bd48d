/* The parser of expressions: see parser.h for the grammar. */
#include "examples/tinyjit/memory.h"
#include "examples/tinyjit/parser_state.h"

#include <string.h>

/* ---- Names ---- */

static bool same_name(const char *name, const struct token *token)
{
    return strlen(name) == token->length && memcmp(name, token->text, token->length) == 0;
}

struct function *parser_find_function(const struct parser *parser, const struct token *name)
{
    for (size_t i = 0; i < parser->program->function_count; i++)
        if (same_name(parser->program->functions[i].name, name))
            return &parser->program->functions[i];
    return NULL;
}

uint32_t parser_function_number(const struct parser *parser, const struct function *function)
{
    return (uint32_t)(function - parser->program->functions);
}

const struct global_name *parser_find_global(const struct parser *parser, const struct token *name)
{
    for (size_t i = 0; i < parser->global_count; i++)
        if (same_name(parser->globals[i].name, name))
            return &parser->globals[i];
    return NULL;
}

const struct local_name *parser_find_local(const struct parser *parser, const struct token *name)
{
    for (size_t i = parser->local_count; i-- > 0;) {
        const struct token *local = &parser->locals[i].name;
        if (local->length == name->length && memcmp(local->text, name->text, name->length) == 0)
            return &parser->locals[i];
    }
    return NULL;
}

/* ---- Expressions ---- */

/* A node over operands LEFT and RIGHT (or NULL). */
static struct node *new_operation(struct parser *parser, enum node_kind kind, struct position at,
                                  struct node *left, struct node *right)
{
    struct node *node = parser_new_node(parser, kind, at);
    node->left = left;
    node->right = right;
    uint32_t left_height = left ? left->height : 0, right_height = right ? right->height : 0;
    node->height = 1 + (left_height > right_height ? left_height : right_height);
    if (node->height > MAX_HEIGHT)
        parser_fail(parser, at, "the expression is too large");
    return node;
}

static void parse_arguments(struct parser *parser, struct node *call)
{
    struct node **end = &call->items;
    if (parser_take(parser, ")"))
        return;
    do {
        *end = parser_expression(parser);
        if ((*end)->height >= call->height)
            call->height = (*end)->height + 1;
        end = &(*end)->next;
        call->item_count++;
    } while (parser_take(parser, ","));
    parser_expect(parser, ")");
    if (call->item_count > MAX_PARAMETERS)
        parser_fail(parser, call->at, "a call can have %d arguments", MAX_PARAMETERS);
}

static const char *const builtin_names[BUILTINS] = {
    [BUILTIN_PRINT] = "print", [BUILTIN_NATIVE_MIX] = "native_mix", [BUILTIN_FORGET] = "forget"};

static int find_builtin(const struct token *name)
{
    for (int i = 0; i < BUILTINS; i++)
        if (same_name(builtin_names[i], name))
            return i;
    return -1;
}

bool parser_is_builtin(const struct token *name)
{
    return find_builtin(name) >= 0 || same_name("call", name);
}

/* call(f, a, b): the function's number is its first argument. */
static struct node *parse_call_value(struct parser *parser, struct position at)
{
    struct node *target = parser_expression(parser);
    struct node *node = new_operation(parser, NODE_CALL_VALUE, at, target, NULL);
    if (parser_take(parser, ","))
        parse_arguments(parser, node);
    else
        parser_expect(parser, ")");
    return node;
}

static struct node *parse_builtin(struct parser *parser, const struct token *name)
{
    struct node *argument = parser_expression(parser);
    struct node *node = new_operation(parser, NODE_BUILTIN, name->at, argument, NULL);
    node->index = (uint32_t)find_builtin(name);
    parser_expect(parser, ")");
    return node;
}

/* NAME and "(" are taken already. */
static struct node *parse_call(struct parser *parser, const struct token *name)
{
    if (same_name("call", name))
        return parse_call_value(parser, name->at);
    if (find_builtin(name) >= 0)
        return parse_builtin(parser, name);
    struct node *node = parser_new_node(parser, NODE_CALL, name->at);
    const struct function *function = parser_find_function(parser, name);
    parse_arguments(parser, node);
    if (!function) {
        parser_fail(parser, name->at, "there is no function '%.*s'", (int)name->length, name->text);
        return node;
    }
    node->index = parser_function_number(parser, function);
    if (node->item_count != function->parameter_count)
        parser_fail(parser, name->at, "'%s' takes %u arguments, not %u", function->name,
                    function->parameter_count, node->item_count);
    return node;
}

/* A variable or, if "[" follows, an array's element. */
static struct node *parse_variable(struct parser *parser, const struct token *name)
{
    const struct local_name *local = parser_find_local(parser, name);
    const struct global_name *global = local ? NULL : parser_find_global(parser, name);
    struct node *node = parser_new_node(parser, local ? NODE_LOCAL : NODE_GLOBAL, name->at);
    if (!local && !global) {
        parser_fail(parser, name->at, "there is no variable '%.*s'", (int)name->length, name->text);
        return node;
    }
    node->index = local ? local->index : global->index;
    bool is_array = global && global->length;
    if (is_array != (token_is(&parser->token, "[") != 0))
        parser_fail(parser, name->at, is_array ? "'%.*s' is an array" : "'%.*s' is not an array",
                    (int)name->length, name->text);
    if (!is_array || !parser_take(parser, "["))
        return node;
    node->kind = NODE_ELEMENT;
    node->value = global->length;
    node->left = parser_expression(parser);
    node->height = node->left->height + 1;
    parser_expect(parser, "]");
    return node;
}

static struct node *parse_function_number(struct parser *parser, struct position at)
{
    struct token name = parser_expect_kind(parser, TOKEN_NAME, "a function's name");
    const struct function *function = parser_find_function(parser, &name);
    if (!function)
        parser_fail(parser, name.at, "there is no function '%.*s'", (int)name.length, name.text);
    return parser_new_number(parser, at, function ? parser_function_number(parser, function) : 0);
}

static struct node *parse_primary(struct parser *parser)
{
    struct token token = parser->token;
    if (token.kind == TOKEN_NUMBER) {
        parser_advance(parser);
        return parser_new_number(parser, token.at, token.value);
    }
    if (token.kind == TOKEN_NAME) {
        parser_advance(parser);
        return parser_take(parser, "(") ? parse_call(parser, &token)
                                        : parse_variable(parser, &token);
    }
    if (parser_take(parser, "@"))
        return parse_function_number(parser, token.at);
    if (!parser_take(parser, "(")) {
        parser_fail_expected(parser, "an expression");
        return parser_new_number(parser, token.at, 0);
    }
    struct node *inner = parser_expression(parser);
    parser_expect(parser, ")");
    return inner;
}

static struct node *parse_unary(struct parser *parser)
{
    struct position at = parser->token.at;
    if (++parser->depth > MAX_DEPTH)
        parser_fail(parser, at, "nested too deeply");
    struct node *node;
    int operation = parser_take(parser, "-")   ? OP_NEG
                    : parser_take(parser, "!") ? OP_NOT
                    : parser_take(parser, "~") ? OP_INVERT
                                               : -1;
    if (operation < 0) {
        node = parse_primary(parser);
    } else {
        node = new_operation(parser, NODE_UNARY, at, parse_unary(parser), NULL);
        node->operation = (enum operation)operation;
    }
    parser->depth--;
    return node;
}

static const struct binary_operator {
    const char *text;
    enum operation operation;
    int strength;
} binary_operators[] = {
    {"||", OP_EITHER, 1}, {"&&", OP_BOTH, 2}, {"==", OP_EQ, 3},  {"!=", OP_NE, 3}, {"<", OP_LT, 3},
    {"<=", OP_LE, 3},     {">", OP_GT, 3},    {">=", OP_GE, 3},  {"|", OP_OR, 4},  {"^", OP_XOR, 4},
    {"&", OP_AND, 5},     {"<<", OP_SHL, 6},  {">>", OP_SHR, 6}, {"+", OP_ADD, 7}, {"-", OP_SUB, 7},
    {"*", OP_MUL, 8},     {"/", OP_DIV, 8},   {"%", OP_MOD, 8},
};

static const struct binary_operator *find_operator(const struct token *token)
{
    for (size_t i = 0; i < sizeof binary_operators / sizeof binary_operators[0]; i++)
        if (token_is(token, binary_operators[i].text))
            return &binary_operators[i];
    return NULL;
}

/* Operators at least as strong as STRENGTH; those of one strength group to the left. */
static struct node *parse_operators(struct parser *parser, int strength)
{
    struct node *left = parse_unary(parser);
    for (;;) {
        const struct binary_operator *found = find_operator(&parser->token);
        if (!found || found->strength < strength)
            return left;
        struct position at = parser->token.at;
        parser_advance(parser);
        struct node *right = parse_operators(parser, found->strength + 1);
        left = new_operation(parser, NODE_BINARY, at, left, right);
        left->operation = found->operation;
    }
}

struct node *parser_expression(struct parser *parser)
{
    return parse_operators(parser, 1);
}
