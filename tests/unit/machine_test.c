/* The table of machines: each entry agrees with itself, and what is in none is none. */
#include "injector/recording/machine.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { UNKNOWN = 0x9026, MOST = 64 };

/* Each entry once. */
static size_t all_machines(const struct machine *all[MOST])
{
    size_t count = 0;
    for (uint32_t number = 0; number <= UINT16_MAX; number++)
        for (unsigned form = 0; form < 4; form++) {
            const struct machine *found = machine_of_elf(number, form & 1 ? 8 : 4, (form & 2) != 0);
            bool is_new = found != NULL;
            for (size_t i = 0; i < count; i++)
                is_new = is_new && all[i] != found;
            assert_true(count < MOST);
            if (is_new)
                all[count++] = found;
        }
    assert_true(count >= 14);
    return count;
}

static void test_names_and_numbers(void **state)
{
    const struct machine *all[MOST];
    size_t count = all_machines(all);
    (void)state;
    for (size_t i = 0; i < count; i++) {
        assert_non_null(all[i]->names[0]);
        for (size_t n = 0; n < MACHINE_NAMES && all[i]->names[n]; n++)
            assert_ptr_equal(machine_named(all[i]->names[n], strlen(all[i]->names[n])), all[i]);
        assert_int_equal(machine_numbered(all[i]->elf_mach)->elf_mach, all[i]->elf_mach);
        assert_true(all[i]->address_bytes == 4 || all[i]->address_bytes == 8);
        for (size_t other = 0; other < i; other++)
            if (all[i]->image_name && all[other]->image_name)
                assert_string_not_equal(all[i]->image_name, all[other]->image_name);
    }
    assert_null(machine_named("x86_6", 5));
    assert_null(machine_named("x86_64 ", 7));
    assert_null(machine_named("", 0));
}

static void test_of_those_that_share_a_number(void **state)
{
    (void)state;
    assert_int_equal(machine_address_bytes(EM_MIPS), 4);
    assert_int_equal(machine_address_bytes(EM_RISCV), 8);
    assert_string_equal(machine_of_elf(EM_RISCV, 4, false)->names[0], "riscv32");
    assert_string_equal(machine_of_elf(EM_MIPS, 8, true)->names[0], "mips64");
    assert_string_equal(machine_of_elf(EM_PPC64, 8, true)->names[0], "ppc64");
    assert_string_equal(machine_of_elf(EM_PPC64, 8, false)->names[0], "ppc64le");
    assert_int_equal(machine_wide(EM_386), EM_X86_64);
    assert_int_equal(machine_wide(EM_ARM), EM_AARCH64);
    assert_int_equal(machine_wide(EM_PPC), EM_PPC64);
    assert_int_equal(machine_wide(UNKNOWN), UNKNOWN);
    assert_int_equal(machine_wide(EM_NONE), EM_NONE);
}

/* ---- Registers ---- */

static void check_maps(const struct machine *machine)
{
    uint64_t seen = 0, words = 0, wanted = machine_perf_mask(machine);
    assert_true(machine->perf_count <= PERF_REGISTERS);
    assert_true(machine->perf_pc < machine->perf_count);
    for (unsigned perf = 0; perf < 64; perf++) {
        unsigned dwarf = machine_dwarf_of_perf(machine, perf);
        assert_int_equal(wanted >> perf & 1,
                         dwarf != UNWIND_NO_REGISTER || perf == machine->perf_pc);
        if (dwarf == UNWIND_NO_REGISTER)
            continue;
        assert_true(dwarf < UNWIND_REGISTERS);
        assert_int_equal(seen >> dwarf & 1, 0);
        seen |= UINT64_C(1) << dwarf;
        assert_int_equal(machine_perf_of_dwarf(machine, dwarf), perf);
    }
    for (unsigned dwarf = 0; dwarf < 256; dwarf++) {
        unsigned perf = machine_perf_of_dwarf(machine, dwarf);
        bool is_known = dwarf < UNWIND_REGISTERS && (seen >> dwarf & 1);
        if (dwarf == UNWIND_NO_REGISTER)
            continue;
        assert_int_equal(perf != UNWIND_NO_REGISTER, is_known);
        if (is_known)
            assert_int_equal(machine_dwarf_of_perf(machine, perf), dwarf);
    }
    for (unsigned perf = 0; machine->word_count && perf < machine->perf_count; perf++)
        if (wanted >> perf & 1) {
            assert_true(machine->word_of_perf[perf] < machine->word_count);
            assert_int_equal(words >> machine->word_of_perf[perf] & 1, 0);
            words |= UINT64_C(1) << machine->word_of_perf[perf];
        }
    assert_true(seen >> machine->sp & 1);
    assert_true(seen >> machine->fp & 1);
    assert_true(seen >> machine->return_register & 1);
    for (size_t i = 0; i < machine->saved_count; i++)
        assert_true(seen >> machine->saved[i] & 1);
    assert_true(machine->link_register == UNWIND_NO_REGISTER ||
                machine->link_register == machine->return_register);
}

static void test_registers_of_each_machine_go_there_and_back(void **state)
{
    const struct machine *all[MOST];
    size_t count = all_machines(all), unwound = 0;
    (void)state;
    for (size_t i = 0; i < count; i++) {
        if (!machine_unwinds(all[i])) {
            assert_false(machine_has_words(all[i]));
            assert_int_equal(all[i]->code, CODE_UNKNOWN);
            continue;
        }
        unwound++;
        check_maps(all[i]);
        assert_true(all[i]->code != CODE_UNKNOWN && all[i]->code < MACHINE_CODES);
        assert_true(all[i]->address_mask && all[i]->least_growth);
        assert_true(!all[i]->gdb_pc == !all[i]->gdb_sp && !all[i]->gdb_pc == !all[i]->gdb_fp);
        for (size_t other = 0; other < i; other++)
            assert_true(all[other]->code != all[i]->code);
    }
    assert_int_equal(unwound, 2);
}

/* As the kernel has them: asm/perf_regs.h, struct user_regs_struct. */
static void test_registers_as_the_kernel_numbers_them(void **state)
{
    enum { PERF_X86_BX = 1, PERF_X86_R15 = 23, RBX_WORD = 5, R15_WORD = 0 };
    const struct machine *x86 = machine_numbered(EM_X86_64), *arm = machine_numbered(EM_AARCH64);
    (void)state;
    assert_int_equal(machine_perf_mask(x86), 0xff01ff);
    assert_int_equal(machine_perf_mask(arm), 0x1ffffffff);
    assert_int_equal(machine_perf_of_dwarf(x86, x86->sp), 7);
    assert_int_equal(machine_perf_of_dwarf(arm, arm->sp), 31);
    assert_int_equal(machine_dwarf_of_perf(x86, PERF_X86_BX), 3);
    assert_int_equal(machine_dwarf_of_perf(x86, PERF_X86_R15), 15);
    assert_int_equal(machine_dwarf_of_perf(x86, PERF_X86_R15 + 1), UNWIND_NO_REGISTER);
    assert_int_equal(x86->word_of_perf[PERF_X86_BX], RBX_WORD);
    assert_int_equal(x86->word_of_perf[PERF_X86_R15], R15_WORD);
    assert_int_equal(arm->word_of_perf[arm->perf_pc], 32);
}

/* ---- What is in no entry ---- */

static void test_an_unknown_number_is_no_machine(void **state)
{
    char text[MACHINE_TEXT_BYTES];
    (void)state;
    assert_null(machine_numbered(UNKNOWN));
    assert_null(machine_numbered(EM_NONE));
    assert_null(machine_numbered(0x10000 + EM_X86_64));
    for (unsigned form = 0; form < 4; form++)
        assert_null(machine_of_elf(UNKNOWN, form & 1 ? 8 : 4, (form & 2) != 0));
    assert_null(machine_of_elf(EM_X86_64, 8, true));
    assert_null(machine_of_elf(EM_X86_64, 4, false));
    assert_false(machine_unwinds(NULL));
    assert_false(machine_has_words(NULL));
    assert_string_equal(machine_text(text, UNKNOWN), "machine 36902");
    assert_string_equal(machine_text(text, UINT32_MAX), "machine 4294967295");
    assert_string_equal(machine_text(text, 258), "machine 258 (loongarch64)");
}

static void test_a_machine_of_names_alone_is_not_unwound(void **state)
{
    static const uint16_t numbers[] = {EM_RISCV, EM_S390, EM_PPC64, 258, EM_386, EM_ARM};
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const struct machine *machine = machine_numbered(numbers[i]);
        assert_false(machine_unwinds(machine));
        assert_false(machine_has_words(machine));
        assert_null(machine->gdb_pc);
    }
}

static void test_this_machine(void **state)
{
    (void)state;
#if defined(__x86_64__)
    assert_ptr_equal(machine_here(), machine_numbered(EM_X86_64));
#elif defined(__aarch64__)
    assert_ptr_equal(machine_here(), machine_numbered(EM_AARCH64));
#else
    assert_false(machine_unwinds(machine_here()));
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_numbers),
        cmocka_unit_test(test_of_those_that_share_a_number),
        cmocka_unit_test(test_registers_of_each_machine_go_there_and_back),
        cmocka_unit_test(test_registers_as_the_kernel_numbers_them),
        cmocka_unit_test(test_an_unknown_number_is_no_machine),
        cmocka_unit_test(test_a_machine_of_names_alone_is_not_unwound),
        cmocka_unit_test(test_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
