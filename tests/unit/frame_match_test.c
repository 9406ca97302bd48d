/* One row of a table against what is known at an instruction: what fits, what proves nothing, and
 * what is wrong, with the reason. */
#include "jitdump/cfi_check/frame_match.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* DWARF's numbers of x86-64's registers. */
enum { RCX = 2, RBX = 3, RSI = 4, RBP = 6, RSP = 7, R12 = 12, RA = 16 };

static const struct code_machine *machine = &jd_machine_x86_64;
static struct code_state state;
static struct frame_row row;
static char reason[MATCH_TEXT_BYTES];

static struct frame_rule *rule_of(unsigned reg)
{
    const uint8_t *at = memchr(machine->saved, (int)reg, machine->saved_count);
    assert_non_null(at);
    return &row.rules[at - machine->saved];
}

/* In a function that has pushed rbp and made it the frame pointer; the row says so. */
static int begin(void **unused)
{
    (void)unused;
    jd_state_begin(&state, RSP, -8);
    jd_state_store(&state, value_frame(-8), 8, value_entry(RA));
    jd_state_store(&state, value_frame(-16), 8, value_entry(RBP));
    state.registers[RSP] = state.registers[RBP] = value_frame(-16);
    row = (struct frame_row){.covered = true, .cfa_known = true, .cfa_register = RBP};
    row.cfa_offset = 16;
    *rule_of(RA) = (struct frame_rule){-8, RULE_AT, 0};
    *rule_of(RBP) = (struct frame_rule){-16, RULE_AT, 0};
    return 0;
}

static void assert_match(enum frame_match match, const char *text)
{
    reason[0] = '\0';
    assert_int_equal(jd_frame_match(machine, &row, &state, reason), match);
    assert_string_equal(reason, text);
}

/* rbx is overwritten; what it was is at CFA + SLOT, and the stack pointer at CFA + TOP. */
static void save_rbx(int32_t slot, int32_t top)
{
    begin(NULL);
    jd_state_store(&state, value_frame(slot), 8, value_entry(RBX));
    state.registers[RBX] = value_unknown();
    state.registers[RSP] = value_frame(top);
}

static void assert_lost(bool lost)
{
    assert_match(MATCH_FITS, "");
    assert_int_equal(state.lost, lost ? UINT64_C(1) << RBX : 0);
}

/* ---- Where a saved register is ---- */

static void test_what_was_begun_fits(void **unused)
{
    (void)unused;
    assert_match(MATCH_FITS, "");
    assert_int_equal(state.lost, 0);
}

static void test_a_value_left_in_a_popped_slot_is_not_where_the_register_is(void **unused)
{
    (void)unused;
    save_rbx(-24, -16);
    assert_lost(false);
    save_rbx(-24, -23); /* a byte of it is gone */
    assert_lost(false);
}

static void test_a_value_in_the_slot_at_the_stack_pointer_is(void **unused)
{
    (void)unused;
    save_rbx(-24, -24);
    assert_lost(true);
    save_rbx(-24, -32);
    assert_lost(true);
}

static void test_where_the_stack_pointer_is_not_sure_any_slot_is(void **unused)
{
    (void)unused;
    save_rbx(-24, -16);
    state.doubtful = true;
    assert_lost(true);
    save_rbx(-24, -16);
    state.registers[RSP] = value_unknown();
    assert_lost(true);
}

static void test_a_register_that_is_in_place_is_not_lost(void **unused)
{
    (void)unused;
    save_rbx(-24, -24);
    state.registers[RBX] = value_entry(RBX);
    assert_lost(false);
    save_rbx(-24, -24);
    jd_state_store(&state, value_frame(-24), 8, value_entry(R12)); /* of another register */
    assert_lost(false);
}

/* The row says that it is at c-32, where nobody has written yet. */
static void test_a_row_that_is_wrong_by_a_slot(void **unused)
{
    (void)unused;
    save_rbx(-24, -24);
    *rule_of(RBX) = (struct frame_rule){-32, RULE_AT, 0};
    assert_match(MATCH_WRONG, "the caller's rbx is at c-24 here, the frame says c-32");
    save_rbx(-24, -16);
    *rule_of(RBX) = (struct frame_rule){-32, RULE_AT, 0};
    assert_match(MATCH_FITS, ""); /* what is left in a popped slot proves nothing */
}

static void test_a_row_whose_slot_others_may_have_written_proves_nothing(void **unused)
{
    (void)unused;
    save_rbx(-24, -24);
    state.foreign = true;
    *rule_of(RBX) = (struct frame_rule){-32, RULE_AT, 0};
    assert_match(MATCH_FITS, "");
    save_rbx(-24, -24);
    *rule_of(RBX) = (struct frame_rule){8, RULE_AT, 0}; /* in the caller's frame */
    assert_match(MATCH_FITS, "");
}

static void test_a_row_that_has_a_register_saved_too_early(void **unused)
{
    (void)unused;
    *rule_of(RBX) = (struct frame_rule){-24, RULE_AT, 0};
    assert_match(MATCH_WRONG, "rbx is not saved here, the frame says at c-24");
}

static void test_a_slot_with_another_register(void **unused)
{
    (void)unused;
    save_rbx(-24, -24);
    *rule_of(RBX) = (struct frame_rule){-16, RULE_AT, 0};
    assert_match(MATCH_WRONG, "the caller's rbx is at c-24 here, the frame says c-16");
    save_rbx(-24, -16);
    *rule_of(RBX) = (struct frame_rule){-16, RULE_AT, 0};
    assert_match(MATCH_WRONG, "what is at c-16 here is not the caller's rbx, as the frame says");
    save_rbx(-24, -16); /* below the stack pointer, but in its place */
    *rule_of(RBX) = (struct frame_rule){-24, RULE_AT, 0};
    assert_match(MATCH_FITS, "");
}

static void test_a_register_in_another_one(void **unused)
{
    (void)unused;
    state.registers[RBX] = value_unknown();
    *rule_of(RBX) = (struct frame_rule){0, RULE_REGISTER, RCX};
    state.registers[RCX] = value_entry(RBX);
    assert_match(MATCH_FITS, "");
    state.registers[RCX] = value_entry(R12);
    assert_match(MATCH_WRONG, "the caller's rbx is not in rcx, as the frame says");
    state.registers[RCX] = value_unknown();
    assert_match(MATCH_FITS, "");
    *rule_of(RBX) = (struct frame_rule){0, RULE_REGISTER, CODE_REGISTERS};
    assert_match(MATCH_FITS, "");
}

static void test_a_lost_register_that_is_given_back(void **unused)
{
    (void)unused;
    save_rbx(-24, -24);
    assert_lost(true);
    assert_int_equal(jd_frame_given_back(machine, &state), 0);
    state.registers[RBX] = value_entry(RBX);
    assert_int_equal(jd_frame_given_back(machine, &state), UINT64_C(1) << RBX);
    state.lost = 0;
    assert_int_equal(jd_frame_given_back(machine, &state), 0);
}

/* ---- The CFA ---- */

static void test_a_cfa_that_is_elsewhere(void **unused)
{
    (void)unused;
    row.cfa_offset = 24;
    assert_match(MATCH_WRONG, "the CFA is rbp+16 here, the frame says rbp+24");
    row.cfa_register = R12; /* the caller's, which is no address in this frame */
    assert_match(MATCH_WRONG, "the CFA is rsp+16 here, the frame says r12+24");
    state.doubtful = true;
    assert_match(MATCH_WRONG,
                 "the frame says that the CFA is r12+24, and r12 is the caller's here");
}

static void test_a_cfa_of_which_nothing_is_known(void **unused)
{
    (void)unused;
    state.registers[RBP] = value_unknown();
    row.cfa_offset = 24;
    assert_match(MATCH_UNKNOWN, "");
    row.cfa_register = RSI; /* an argument: it may well be an address of this frame */
    assert_match(MATCH_UNKNOWN, "");
    row.cfa_known = false;
    row.cfa_register = CODE_REGISTERS;
    assert_match(MATCH_UNKNOWN, "");
}

/* The row is right where the stack pointer was in doubt, or it is known no more. */
static void test_a_stack_pointer_in_doubt(void **unused)
{
    (void)unused;
    row.cfa_register = RSP;
    state.doubtful = true;
    assert_match(MATCH_FITS, "");
    assert_false(state.doubtful);
    assert_int_equal(state.registers[RSP].kind, VALUE_FRAME);
    state.doubtful = true;
    row.cfa_offset = 24;
    assert_match(MATCH_UNKNOWN, "");
    assert_false(state.doubtful);
    assert_int_equal(state.registers[RSP].kind, VALUE_UNKNOWN);
}

static void test_a_frame_that_is_gone_proves_nothing(void **unused)
{
    (void)unused;
    row.cfa_offset = 24;
    state.registers[RSP] = value_frame(-7);
    assert_match(MATCH_UNKNOWN, "");
    state.registers[RSP] = value_frame(-8); /* the return address is there */
    assert_match(MATCH_WRONG, "the CFA is rbp+16 here, the frame says rbp+24");
}

static void test_the_outermost_frame_proves_nothing(void **unused)
{
    (void)unused;
    row.cfa_offset = 24;
    *rule_of(RA) = (struct frame_rule){0, RULE_OTHER, 0};
    assert_match(MATCH_UNKNOWN, "");
}

/* ---- Signed addresses ---- */

static void test_a_return_address_that_is_signed(void **unused)
{
    (void)unused;
    state.signing = ADDRESS_SIGNED;
    assert_match(MATCH_WRONG, "the return address is signed here, the frame does not say so");
    row.address_signed = true;
    assert_match(MATCH_FITS, "");
    state.signing = ADDRESS_PLAIN;
    assert_match(MATCH_WRONG, "the return address is not signed here, the frame says that it is");
    state.signing = ADDRESS_UNSURE;
    assert_match(MATCH_FITS, "");
    row.address_signed = false;
    assert_match(MATCH_FITS, "");
}

#define MATCH_TEST(test) cmocka_unit_test_setup(test, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MATCH_TEST(test_what_was_begun_fits),
        MATCH_TEST(test_a_value_left_in_a_popped_slot_is_not_where_the_register_is),
        MATCH_TEST(test_a_value_in_the_slot_at_the_stack_pointer_is),
        MATCH_TEST(test_where_the_stack_pointer_is_not_sure_any_slot_is),
        MATCH_TEST(test_a_register_that_is_in_place_is_not_lost),
        MATCH_TEST(test_a_row_that_is_wrong_by_a_slot),
        MATCH_TEST(test_a_row_whose_slot_others_may_have_written_proves_nothing),
        MATCH_TEST(test_a_row_that_has_a_register_saved_too_early),
        MATCH_TEST(test_a_slot_with_another_register),
        MATCH_TEST(test_a_register_in_another_one),
        MATCH_TEST(test_a_lost_register_that_is_given_back),
        MATCH_TEST(test_a_cfa_that_is_elsewhere),
        MATCH_TEST(test_a_cfa_of_which_nothing_is_known),
        MATCH_TEST(test_a_stack_pointer_in_doubt),
        MATCH_TEST(test_a_frame_that_is_gone_proves_nothing),
        MATCH_TEST(test_the_outermost_frame_proves_nothing),
        MATCH_TEST(test_a_return_address_that_is_signed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
