/* The syntax tree of a script: what the parser makes, and what the two compilers and the interpreter read.
 *
 * Names are gone: a local variable, a global cell, a function or a builtin is a number.  An array is a run of
 * global cells.  Every node knows where it stands in the script. */
#ifndef TINYJIT_SYNTAX_H
#define TINYJIT_SYNTAX_H

#include "examples/tinyjit/lexer.h"

#include <stddef.h>
#include <stdint.h>

enum { MAX_PARAMETERS = 6 }; /* as many as the System V ABI has registers for */

enum operation {
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_MOD,
    OP_AND,
    OP_OR,
    OP_XOR,
    OP_SHL,
    OP_SHR,
    OP_EQ,
    OP_NE,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_BOTH,   /* && */
    OP_EITHER, /* || */
    OP_NEG,    /* from here on of one operand */
    OP_NOT,
    OP_INVERT, /* ~ */
};

enum builtin { BUILTIN_PRINT, BUILTIN_NATIVE_MIX, BUILTIN_FORGET, BUILTINS };

enum node_kind {
    /* expressions */
    NODE_NUMBER,     /* value; @f is a number too */
    NODE_LOCAL,      /* index */
    NODE_GLOBAL,     /* index: the cell */
    NODE_ELEMENT,    /* index: the first cell; value: how many; left: the subscript */
    NODE_UNARY,      /* operation, left */
    NODE_BINARY,     /* operation, left, right */
    NODE_CALL,       /* index: the function; items: the arguments */
    NODE_CALL_VALUE, /* left: the function's number; items: the arguments */
    NODE_BUILTIN,    /* index: enum builtin; left: the argument */
    NODE_INLINED, /* index: the function; items: assignments to its parameters; other: its body.  Only
                      * the inliner makes these, for tier 2 */
    /* statements */
    NODE_SET_LOCAL,   /* index; right: the value */
    NODE_SET_GLOBAL,  /* index; right: the value */
    NODE_SET_ELEMENT, /* index, value, left as NODE_ELEMENT; right: the value to set */
    NODE_IF,          /* left: the condition; right: then; other: else, or NULL */
    NODE_WHILE,       /* left: the condition; right: the body */
    NODE_RETURN,      /* left: the value */
    NODE_DISCARD,     /* left: an expression, for what it does */
    NODE_BLOCK,       /* items: the statements */
};

struct node {
    enum node_kind kind;
    enum operation operation;
    struct position at;
    int64_t value;
    uint32_t index;
    uint32_t height; /* of the expression's tree */
    struct node *left, *right, *other;
    struct node *items; /* a list, linked by next */
    uint32_t item_count;
    struct node *next;
};

struct function {
    char *name;
    struct position at;
    uint32_t parameter_count; /* the first locals */
    uint32_t local_count;
    struct node *body;
};

struct program {
    char *path; /* of the script */
    struct function *functions;
    size_t function_count, function_capacity;
    uint32_t main;
    int64_t *globals; /* first values of the cells */
    size_t global_count, global_capacity;
    struct node_chunk *chunks; /* where the nodes live */
};

#endif
