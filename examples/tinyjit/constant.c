/* See constant.h. */
#include "examples/tinyjit/constant.h"

#include "examples/tinyjit/arithmetic.h"

static bool unary_value(const struct node *node, int64_t *value)
{
    int64_t operand;
    if (!constant_value(node->left, &operand))
        return false;
    *value = arithmetic_unary(node->operation, operand);
    return true;
}

/* && and ||: known already if the left side decides. */
static bool logic_value(const struct node *node, int64_t *value)
{
    int64_t operand;
    if (!constant_value(node->left, &operand))
        return false;
    if ((operand != 0) == (node->operation == OP_BOTH) && !constant_value(node->right, &operand))
        return false;
    *value = operand != 0;
    return true;
}

static bool binary_value(const struct node *node, int64_t *value)
{
    int64_t left, right;
    if (node->operation == OP_BOTH || node->operation == OP_EITHER)
        return logic_value(node, value);
    if (!constant_value(node->left, &left) || !constant_value(node->right, &right) ||
        !arithmetic_is_defined(node->operation, right))
        return false;
    *value = arithmetic_binary(node->operation, left, right);
    return true;
}

bool constant_value(const struct node *node, int64_t *value)
{
    switch (node->kind) {
    case NODE_NUMBER:
        *value = node->value;
        return true;
    case NODE_UNARY:
        return unary_value(node, value);
    case NODE_BINARY:
        return binary_value(node, value);
    default:
        return false;
    }
}
