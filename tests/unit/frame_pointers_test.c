/* How many functions keep no frame pointer, of those that have tables. */
#include "injector/unwind/frame_pointers.h"

#include "tests/unit/scratch.h"

#include <elf.h>

/* def_cfa rsp+16, and def_cfa rbp+16 */
static const uint8_t by_rsp[] = {0x0c, 7, 16}, by_rbp[] = {0x0c, 6, 16};

/* sub $8,%rsp; nops; add $8,%rsp; ret */
static const uint8_t no_pointer[] = {0x48, 0x83, 0xec, 8,    0x90, 0x90, 0x90,
                                     0x90, 0x90, 0x48, 0x83, 0xc4, 8,    0xc3};
/* HotSpot's: mov %eax,-0x14000(%rsp); push %rbp; mov %rsp,%rbp; sub $16,%rsp; nops */
static const uint8_t pointer[] = {0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55, 0x48,
                                  0x8b, 0xec, 0x48, 0x83, 0xec, 16,   0x90, 0x90, 0x90,
                                  0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90};

struct kept {
    size_t tables, without;
};

static struct kept kept_by(const uint8_t *code, size_t code_bytes, const uint8_t *table)
{
    struct eh_cie cie = {.code_align = 1, .data_align = -8, .return_register = 16};
    struct code_fde fde = {
        .size = (uint32_t)code_bytes, .instructions = table, .instructions_bytes = sizeof by_rsp};
    struct jit_function function = {
        .addr = 0x1000, .size = code_bytes, .code = code, .fde_count = table != NULL};
    struct code_log log = {.functions = &function,
                           .function_count = 1,
                           .cies = &cie,
                           .cie_count = 1,
                           .fdes = &fde,
                           .fde_count = 1};
    struct frame_pointers counts = {0};
    frame_pointers_count(&counts, &log, machine_numbered(EM_X86_64));
    return (struct kept){counts.with_tables, counts.without_pointer};
}

static void assert_kept(struct kept kept, size_t tables, size_t without)
{
    assert_int_equal(kept.tables, tables);
    assert_int_equal(kept.without, without);
}

static void by_the_table(void **state)
{
    (void)state;
    assert_kept(kept_by(no_pointer, sizeof no_pointer, by_rsp), 1, 1);
    assert_kept(kept_by(pointer, sizeof pointer, by_rbp), 1, 0);
    assert_kept(kept_by(no_pointer, sizeof no_pointer, NULL), 0, 0);
}

/* A JVM with -XX:+PreserveFramePointer, by its agent's tables. */
static void by_the_code_where_the_table_needs_no_pointer(void **state)
{
    (void)state;
    assert_kept(kept_by(pointer, sizeof pointer, by_rsp), 1, 0);
}

/* The table alone tells. */
static void of_code_that_is_not_in_the_dump(void **state)
{
    (void)state;
    assert_kept(kept_by(NULL, sizeof pointer, by_rsp), 1, 1);
    assert_kept(kept_by(NULL, sizeof pointer, by_rbp), 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_the_table),
        cmocka_unit_test(by_the_code_where_the_table_needs_no_pointer),
        cmocka_unit_test(of_code_that_is_not_in_the_dump),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
