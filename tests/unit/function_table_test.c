/* What a function table says of functions, each with its own rule, few and more than it can hold.
 */
#include "jitunwind/frames/function_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define START UINT64_C(0x10000000)
enum { APART = 64, BYTES = 32, FUNCTIONS = 70000, MOST_RULES = 65535 };

static uint64_t address(uint32_t i)
{
    return START + (uint64_t)i * APART;
}

static int32_t offset(uint32_t i)
{
    return 8 + 8 * (int32_t)i;
}

static void add(struct function_table *table, uint32_t i)
{
    const struct table_row_draft row = {
        .rule = {.kind = RULE_OFFSET, .cfa_register = 7, .cfa_offset = offset(i)}};
    assert_int_equal(ju_function_table_add(table, address(i), BYTES, &row, 1, NULL), 0);
}

static const struct frame_rule *rule_of(const struct function_table *table, uint32_t i)
{
    const struct table_function *function = ju_function_table_find(table, address(i) + 1);
    assert_non_null(function);
    return ju_function_table_rule(table, function, address(i) + 1);
}

/* The table of rules becomes larger nine times on the way: each is found again, or there would be
 * more than one of it. */
static void test_many_rules(void **state)
{
    struct function_table table;
    (void)state;
    assert_int_equal(ju_function_table_open(&table, START, 2 * FUNCTIONS * APART), 0);
    for (uint32_t i = 0; i < FUNCTIONS; i++)
        add(&table, i);
    for (uint32_t i = 0; i < MOST_RULES; i++)
        assert_int_equal(rule_of(&table, i)->cfa_offset, offset(i));
    for (uint32_t i = MOST_RULES; i < FUNCTIONS; i++)
        assert_true(!rule_of(&table, i) || rule_of(&table, i)->kind == RULE_UNKNOWN);
    for (uint32_t i = FUNCTIONS; i < 2 * FUNCTIONS - 1; i++) {
        const struct table_row_draft row = {.rule = *rule_of(&table, i % 100)};
        assert_int_equal(ju_function_table_add(&table, address(i), BYTES, &row, 1, NULL), 0);
        assert_ptr_equal(rule_of(&table, i), rule_of(&table, i % 100));
    }
    ju_function_table_close(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
