/* Which rows of call frame information have the short form. */
#include "injector/unwind/unwind_rule.h"
#include "tests/unit/scratch.h"

#include <elf.h>

enum { RBX = 3, RBP = 6, RSP = 7, RA = 16 };

/* A row of the short form: CFA = rsp + 16, the return address 8 below it, rbp 16 below it. */
static struct cfi_row short_row(void)
{
    struct cfi_row row = {.cfa_register = RSP, .return_register = RA};
    row.cfa = (struct register_rule){.kind = REGISTER_IS_OFFSET, .offset = 16};
    row.registers[RA] = (struct register_rule){.kind = REGISTER_AT_OFFSET, .offset = -8};
    row.registers[RBP] = (struct register_rule){.kind = REGISTER_AT_OFFSET, .offset = -16};
    return row;
}

static bool shortens(const struct cfi_row *row, struct unwind_rule *rule)
{
    return unwind_rule_shorten(rule, row, machine_numbered(EM_X86_64));
}

static void test_a_row_of_the_short_form(void **state)
{
    struct cfi_row row = short_row();
    struct unwind_rule rule;
    (void)state;
    row.registers[RBX].kind = REGISTER_UNDEFINED;
    row.registers[0].kind = REGISTER_UNDEFINED; /* nobody saves it */
    row.signal_frame = true;
    assert_true(shortens(&row, &rule));
    assert_int_equal(rule.cfa_register, RSP);
    assert_int_equal(rule.cfa_offset, 16);
    assert_true(rule.signal_frame);
    assert_int_equal(rule.slots[0], -1);
    assert_int_equal(rule.slots[1], -2);
    assert_int_equal(rule.slots[2], SLOT_UNDEFINED);
    assert_int_equal(rule.slots[3], SLOT_SAME);
}

static void test_a_register_saved_so_far_away_that_no_slot_has_the_number(void **state)
{
    const int64_t fits[] = {8 * (INT16_MAX - 1), 8 * (INT16_MIN + 2)};
    const int64_t does_not[] = {8 * INT16_MAX,       8 * INT16_MIN, 8 * (INT16_MIN + 1),
                                8 * (INT16_MAX + 1), -12,           4};
    struct unwind_rule rule;
    (void)state;
    for (size_t i = 0; i < sizeof fits / sizeof fits[0]; i++) {
        struct cfi_row row = short_row();
        row.registers[RBP].offset = fits[i];
        assert_true(shortens(&row, &rule));
        assert_int_equal(rule.slots[1], fits[i] / 8);
    }
    for (size_t i = 0; i < sizeof does_not / sizeof does_not[0]; i++) {
        struct cfi_row row = short_row();
        row.registers[RBP].offset = does_not[i];
        assert_false(shortens(&row, &rule));
    }
}

static void test_rows_of_any_other_form(void **state)
{
    struct unwind_rule rule;
    struct cfi_row row = short_row();
    (void)state;
    row.return_register = RBX;
    assert_false(shortens(&row, &rule));
    row = short_row();
    row.registers[0] = (struct register_rule){.kind = REGISTER_AT_OFFSET, .offset = -24};
    assert_false(shortens(&row, &rule)); /* one that has no slot */
    row = short_row();
    row.registers[RBP].kind = REGISTER_IS_OFFSET;
    assert_false(shortens(&row, &rule));
    row = short_row();
    row.cfa.kind = REGISTER_IS_EXPRESSION;
    assert_false(shortens(&row, &rule));
    row = short_row();
    row.cfa.offset = INT64_C(1) << 31;
    assert_false(shortens(&row, &rule));
    row.cfa.offset--;
    assert_true(shortens(&row, &rule));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_row_of_the_short_form),
        cmocka_unit_test(test_a_register_saved_so_far_away_that_no_slot_has_the_number),
        cmocka_unit_test(test_rows_of_any_other_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
