/* The machine of a dump that a profile knows better. */
#include "injector/log/owner/dump_machine.h"

#include "injector/recording/perf_data/perf_format.h"
#include "tests/unit/dump_builder.h"
#include "tests/unit/profile_builder.h"
#include "tests/unit/scratch.h"

#include <elf.h>

/* The section of a profile that says that its machine is called ARCH. */
static size_t build_arch(uint8_t bytes[64], const char *arch)
{
    struct byte_sink sink = byte_sink_over(bytes, 64);
    sink_u32(&sink, 16);
    sink_cstr(&sink, arch);
    sink_zeros(&sink, 16 - strlen(arch) - 1);
    return sink.size;
}

/* The code in the dump; profile_sample hits what lies at 0x401000. */
static uint64_t code_addr = 0x400ffe;

/* What becomes of a DUMP with these members that was recorded on ARCH. */
static struct jit_dump corrected(struct jit_dump dump, const char *arch, uint64_t *repairs)
{
    static struct dump_builder dump_built;
    static struct profile_builder profile_built;
    uint8_t bytes[64] = {0};
    struct perf_file file;
    struct findings findings = {0};
    profile_begin_one(&profile_built);
    profile_sample(&profile_built, 0, 1);
    profile_end_records(&profile_built);
    open_built_profile(&profile_built, &file);
    perf_features_set(&file.features, PERF_FEATURE_ARCH, bytes, build_arch(bytes, arch));
    dump_begin(&dump_built, dump.big_endian, JITHEADER_BYTES);
    dump_load(&dump_built, 1, code_addr, "f", "code", 0);
    dump.path = "jit-1.dump";
    dump.data = dump_built.bytes;
    dump.size = dump.used_bytes = dump_built.sink.size;
    dump.header_bytes = JITHEADER_BYTES;
    dump_machine_correct(&dump, &file, &findings);
    *repairs = findings.repaired[QUIRK_ELF_MACHINE];
    findings_free(&findings);
    perf_file_close(&file);
    return dump;
}

static void assert_corrected(uint32_t elf_mach, uint8_t address_bytes, bool big_endian,
                             const char *arch, uint32_t wanted_mach, uint8_t wanted_bytes)
{
    uint64_t repairs;
    struct jit_dump dump = {
        .elf_mach = elf_mach, .address_bytes = address_bytes, .big_endian = big_endian};
    struct jit_dump got = corrected(dump, arch, &repairs);
    if (got.elf_mach != wanted_mach || got.address_bytes != wanted_bytes)
        fail_msg("%u on %s: %u with %u bytes", elf_mach, arch, got.elf_mach, got.address_bytes);
    assert_int_equal(repairs, elf_mach != wanted_mach);
}

static void test_the_recordings_machine_counts(void **state)
{
    (void)state;
    assert_corrected(EM_X86_64, 8, false, "x86_64", EM_X86_64, 8);
    assert_corrected(EM_X86_64, 8, false, "aarch64", EM_AARCH64, 8); /* Erlang/OTP */
    assert_corrected(EM_NONE, 8, false, "x86_64", EM_X86_64, 8);
    assert_corrected(EM_X86_64, 8, true, "s390x", EM_S390, 8);
    assert_corrected(EM_X86_64, 8, false, "armv7l", EM_ARM, 4);
    assert_corrected(EM_MIPS, 4, false, "mips64", EM_MIPS, 8);
    assert_corrected(EM_MIPS, 4, true, "mips", EM_MIPS, 4);
}

static void test_programs_of_32_bits_stay_what_they_are(void **state)
{
    (void)state;
    assert_corrected(EM_386, 4, false, "x86_64", EM_386, 4);
    assert_corrected(EM_ARM, 4, false, "aarch64", EM_ARM, 4);
    assert_corrected(EM_PPC, 4, true, "ppc64", EM_PPC, 4);
}

/* The other byte order is another machine's for certain; and of an unknown machine nothing is
 * known. */
static void test_dumps_from_elsewhere_stay_what_they_are(void **state)
{
    (void)state;
    assert_corrected(EM_S390, 8, true, "x86_64", EM_S390, 8);
    assert_corrected(EM_X86_64, 8, false, "s390x", EM_X86_64, 8);
    assert_corrected(EM_X86_64, 8, false, "pdp11", EM_X86_64, 8);
    assert_corrected(EM_X86_64, 8, false, "", EM_X86_64, 8);
}

/* qemu-user's guest: nothing of it ran here. */
static void test_an_emulated_machine_stays_what_it_is(void **state)
{
    (void)state;
    code_addr = 0x400ffc; /* ends at the sample */
    assert_corrected(EM_AARCH64, 8, false, "x86_64", EM_AARCH64, 8);
    code_addr = 0x401001;
    assert_corrected(EM_AARCH64, 8, false, "x86_64", EM_AARCH64, 8);
    code_addr = 0x401000;
    assert_corrected(EM_AARCH64, 8, false, "x86_64", EM_X86_64, 8);
}

/* CPython's trampolines call, and are never sampled themselves. */
static void test_a_dump_that_names_no_machine_is_the_recordings(void **state)
{
    (void)state;
    code_addr = 0x500000;
    assert_corrected(EM_NONE, 8, false, "x86_64", EM_X86_64, 8);
    assert_corrected(EM_NONE, 8, false, "aarch64", EM_AARCH64, 8);
    assert_corrected(EM_NONE, 8, true, "x86_64", EM_NONE, 8);
}

/* The refusal of a dump of ELF_MACH, or "". */
static const char *refusal(uint32_t elf_mach)
{
    static char text[DUMP_MACHINE_TEXT_BYTES];
    const struct jit_dump dump = {.elf_mach = elf_mach, .address_bytes = 8};
    const char *why = dump_machine_refusal(&dump, text);
    return why ? why : "";
}

static void test_a_machine_that_is_not_known_is_refused(void **state)
{
    (void)state;
    assert_string_equal(
        refusal(0x9026),
        "its code is of machine 36902, which is not known: no ELF file can be made of it");
    assert_string_equal(refusal(0x10000 + EM_X86_64) + 15, "machine 65598, which is not known: no "
                                                           "ELF file can be made of it");
    assert_string_equal(refusal(EM_X86_64), "");
    assert_string_equal(refusal(EM_MIPS), "");
    assert_string_equal(refusal(EM_NONE), ""); /* it names none */
    assert_corrected(0x9026, 8, true, "x86_64", 0x9026, 8);
}

static void test_a_text_longer_than_its_section_says_nothing(void **state)
{
    uint8_t bytes[64] = {0};
    size_t text_bytes, size = build_arch(bytes, "x86_64");
    struct perf_file file = {0};
    (void)state;
    assert_null(perf_file_string(&file, PERF_FEATURE_ARCH, &text_bytes));
    for (size_t cut = 0; cut < size; cut++) {
        perf_features_set(&file.features, PERF_FEATURE_ARCH, bytes, cut);
        assert_null(perf_file_string(&file, PERF_FEATURE_ARCH, &text_bytes));
    }
    perf_features_set(&file.features, PERF_FEATURE_ARCH, bytes, size);
    assert_string_equal(perf_file_string(&file, PERF_FEATURE_ARCH, &text_bytes), "x86_64");
    assert_int_equal(text_bytes, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_recordings_machine_counts),
        cmocka_unit_test(test_programs_of_32_bits_stay_what_they_are),
        cmocka_unit_test(test_dumps_from_elsewhere_stay_what_they_are),
        cmocka_unit_test(test_an_emulated_machine_stays_what_it_is),
        cmocka_unit_test(test_a_dump_that_names_no_machine_is_the_recordings),
        cmocka_unit_test(test_a_machine_that_is_not_known_is_refused),
        cmocka_unit_test(test_a_text_longer_than_its_section_says_nothing),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
