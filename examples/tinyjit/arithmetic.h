/* What the operators mean, for whoever computes them in C: 64 bits that wrap around, shift counts modulo 64,
 * division towards zero.  The interpreter and tier 2's constant folding use this; compiled code is checked
 * against it (--check). */
#ifndef TINYJIT_ARITHMETIC_H
#define TINYJIT_ARITHMETIC_H

#include "examples/tinyjit/syntax.h"

#include <stdbool.h>
#include <stdint.h>

/* LEFT / 0 has no value. */
static inline bool arithmetic_is_defined(enum operation operation, int64_t right)
{
    return (operation != OP_DIV && operation != OP_MOD) || right != 0;
}

static inline int64_t arithmetic_divide(enum operation operation, int64_t left, int64_t right)
{
    if (right == -1) /* the one quotient that doesn't fit, INT64_MIN / -1, wraps around */
        return operation == OP_DIV ? (int64_t)(0 - (uint64_t)left) : 0;
    return operation == OP_DIV ? left / right : left % right;
}

static inline int64_t arithmetic_compare(enum operation operation, int64_t left, int64_t right)
{
    switch (operation) {
    case OP_EQ:
        return left == right;
    case OP_NE:
        return left != right;
    case OP_LT:
        return left < right;
    case OP_LE:
        return left <= right;
    case OP_GT:
        return left > right;
    default:
        return left >= right;
    }
}

/* For every operation of two operands but && and ||, which don't always evaluate both. */
static inline int64_t arithmetic_binary(enum operation operation, int64_t left, int64_t right)
{
    uint64_t a = (uint64_t)left, b = (uint64_t)right;
    switch (operation) {
    case OP_ADD:
        return (int64_t)(a + b);
    case OP_SUB:
        return (int64_t)(a - b);
    case OP_MUL:
        return (int64_t)(a * b);
    case OP_DIV:
    case OP_MOD:
        return arithmetic_divide(operation, left, right);
    case OP_AND:
        return (int64_t)(a & b);
    case OP_OR:
        return (int64_t)(a | b);
    case OP_XOR:
        return (int64_t)(a ^ b);
    case OP_SHL:
        return (int64_t)(a << (b & 63));
    case OP_SHR:
        return left >> (b & 63);
    default:
        return arithmetic_compare(operation, left, right);
    }
}

static inline int64_t arithmetic_unary(enum operation operation, int64_t operand)
{
    switch (operation) {
    case OP_NEG:
        return (int64_t)(0 - (uint64_t)operand);
    case OP_NOT:
        return !operand;
    default:
        return ~operand;
    }
}

#endif
