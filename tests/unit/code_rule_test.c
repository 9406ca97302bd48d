/* The frame at an instruction without a table, by the code that leads there. */
#include "injector/unwind/code_rule.h"
#include "tests/unit/scratch.h"

#include <elf.h>

enum { RBX = 3, RBP = 6, RSP = 7, R12 = 12, FP = 29, LR = 30, SP = 31 };
enum { MOST_CODE = 512, RETURN_SLOT = 0, RBP_SLOT = 1, RBX_SLOT = 2, R12_SLOT = 3 };

static size_t read_code(const char *hex, uint8_t code[MOST_CODE])
{
    size_t size = 0;
    for (unsigned byte; sscanf(hex, "%2x", &byte) == 1; hex += 2 + (hex[2] == ' '))
        code[size++] = (uint8_t)byte;
    return size;
}

static int find_with(struct unwind_rule *rule, uint16_t elf_mach, const char *hex, size_t offset,
                     uint32_t budget)
{
    uint8_t code[MOST_CODE];
    struct unwind_budget left = {budget};
    size_t size = read_code(hex, code);
    *rule = (struct unwind_rule){.kind = RULE_PLACE};
    return code_rule_find(rule, machine_numbered(elf_mach), code, size, offset, &left);
}

static int find(struct unwind_rule *rule, const char *hex, size_t offset)
{
    return find_with(rule, EM_X86_64, hex, offset, 1000);
}

static void expect(const char *hex, size_t offset, uint8_t reg, int32_t cfa_offset)
{
    struct unwind_rule rule;
    assert_int_equal(find(&rule, hex, offset), 1);
    assert_true(rule.followed);
    assert_int_equal(rule.kind, RULE_PLACE);
    assert_int_equal(rule.cfa_register, reg);
    assert_int_equal(rule.cfa_offset, cfa_offset);
    assert_int_equal(rule.slots[RETURN_SLOT], -1);
}

static void expect_none(const char *hex, size_t offset)
{
    struct unwind_rule rule;
    assert_int_equal(find(&rule, hex, offset), 0);
    assert_false(rule.followed);
}

static void test_the_stack_pointer(void **state)
{
    /* sub rsp,24; mov rax,n; call rax; add rsp,24; ret */
    static const char code[] = "4883ec18 48b80000000000000000 ffd0 4883c418 c3";
    (void)state;
    expect(code, 0, RSP, 8);
    expect(code, 4, RSP, 32);
    expect(code, 14, RSP, 32);
    expect(code, 15, RSP, 32); /* inside of the call, as a return address less 1 is */
    expect(code, 16, RSP, 32);
    expect(code, 20, RSP, 8);
    expect_none(code, 21);
}

static void test_saved_registers(void **state)
{
    /* push rbp; push rbx; mov ebp,edi; mov ebx,edi; pop rbx; pop rbp; ret */
    static const char code[] = "55 53 89fd 89fb 90 90 5b 5d c3";
    struct unwind_rule rule;
    (void)state;
    expect(code, 6, RSP, 24);
    assert_int_equal(find(&rule, code, 6), 1);
    assert_int_equal(rule.slots[RBP_SLOT], -2);
    assert_int_equal(rule.slots[RBX_SLOT], -3);
    assert_int_equal(rule.slots[R12_SLOT], SLOT_SAME);
    assert_int_equal(find(&rule, code, 10), 1);
    assert_int_equal(rule.slots[RBP_SLOT], SLOT_SAME);
    /* mov ebp,edi; ret: rbp is not saved */
    assert_int_equal(find(&rule, "89fd c3", 2), 1);
    assert_int_equal(rule.slots[RBP_SLOT], SLOT_LOST);
}

/* Where it is set the frame pointer is taken, for a callee may pop its arguments: V8's do. */
static void test_the_frame_pointer(void **state)
{
    /* push rbp; mov rbp,rsp; push rsi; call; leave; ret */
    static const char code[] = "55 4889e5 56 e800010000 c9 c3";
    struct unwind_rule rule;
    (void)state;
    expect(code, 0, RSP, 8);
    expect(code, 1, RSP, 16);
    expect(code, 4, RBP, 16);
    expect(code, 9, RBP, 16);
    expect(code, 11, RSP, 8);
    assert_int_equal(find(&rule, code, 5), 1);
    assert_int_equal(rule.slots[RBP_SLOT], -2);
    /* and rsp,-32, behind which only the frame pointer tells */
    expect("55 4889e5 4883e4e0 90 c9 c3", 8, RBP, 16);
}

/* What stands behind a call is entered by a jump, if there is one: the call may not return. */
static void test_jumps(void **state)
{
    /* test; jz 1f; push rbx; call abort; 1: nop; ret */
    static const char code[] = "85ff 7406 53 e800010000 90 c3";
    (void)state;
    expect(code, 5, RSP, 16);
    expect(code, 10, RSP, 8);
    /* jmp 2f; 1: pop rbx; ret; 2: push rbx; jmp 1b */
    expect("eb02 5b c3 53 ebfb", 2, RSP, 16);
    expect("eb02 5b c3 53 ebfb", 3, RSP, 8);
}

static void test_where_nothing_is_known(void **state)
{
    (void)state;
    expect_none("ffe0 90 c3", 2);       /* jmp rax: nothing leads behind it */
    expect_none("488b20 90 c3", 3);     /* mov rsp,[rax] */
    expect_none("06 90 c3", 1);         /* no instruction */
    expect_none("c3 90", 1);            /* behind a return */
    expect_none("4883ec18 c3", 2 + 60); /* behind the code */
    expect_none("ebfe 90", 2);          /* jmp to itself */
    struct unwind_rule rule;
    assert_int_equal(find_with(&rule, EM_X86_64, "90 90 90 90 c3", 4, 5), 1);
    assert_int_equal(find_with(&rule, EM_X86_64, "90 90 90 90 c3", 4, 4), 0);
    assert_int_equal(find_with(&rule, EM_S390, "90 90 90 90 c3", 4, 1000), 0);
}

static bool takes_stack(uint16_t elf_mach, const char *hex)
{
    uint8_t code[MOST_CODE];
    size_t size = read_code(hex, code);
    return code_rule_takes_stack(machine_numbered(elf_mach), code, size);
}

/* glibc's __start_context begins with mov rsp,rbx. */
static void test_code_that_leaves_the_stack_at_once(void **state)
{
    (void)state;
    assert_true(takes_stack(EM_X86_64, "4889dc 5f c3"));
    assert_false(takes_stack(EM_X86_64, "4889e3 5f c3"));
    assert_false(takes_stack(EM_X86_64, "4883ec18 c3"));
    assert_false(takes_stack(EM_X86_64, "c3"));
    assert_false(takes_stack(EM_X86_64, ""));
    assert_true(takes_stack(EM_AARCH64, "7f020091 c0035fd6")); /* mov sp,x19 */
    assert_false(takes_stack(EM_AARCH64, "fd7bbea9 c0035fd6"));
    assert_false(takes_stack(EM_S390, "4889dc"));
}

static void test_aarch64(void **state)
{
    /* stp x29,x30,[sp,-32]!; mov x29,sp; str x19,[sp,16]; mov x19,x0; bl; ldr x19,[sp,16];
     * ldp x29,x30,[sp],32; ret */
    static const char code[] =
        "fd7bbea9 fd030091 f30b00f9 f30300aa 00010094 f30b40f9 fd7bc2a8 c0035fd6";
    struct unwind_rule rule;
    (void)state;
    assert_int_equal(find_with(&rule, EM_AARCH64, code, 0, 1000), 1);
    assert_int_equal(rule.cfa_register, SP);
    assert_int_equal(rule.cfa_offset, 0);
    assert_int_equal(rule.slots[0], SLOT_SAME);
    assert_int_equal(find_with(&rule, EM_AARCH64, code, 19, 1000), 1);
    assert_int_equal(rule.cfa_register, FP);
    assert_int_equal(rule.cfa_offset, 32);
    assert_int_equal(rule.slots[0], -3);
    assert_int_equal(rule.slots[1], -4);
    assert_int_equal(rule.slots[2], -2);
    assert_int_equal(find_with(&rule, EM_AARCH64, code, 28, 1000), 1);
    assert_int_equal(rule.cfa_register, SP);
    assert_int_equal(rule.cfa_offset, 0);
    assert_int_equal(rule.slots[0], SLOT_SAME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_stack_pointer),
        cmocka_unit_test(test_saved_registers),
        cmocka_unit_test(test_the_frame_pointer),
        cmocka_unit_test(test_jumps),
        cmocka_unit_test(test_where_nothing_is_known),
        cmocka_unit_test(test_code_that_leaves_the_stack_at_once),
        cmocka_unit_test(test_aarch64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
