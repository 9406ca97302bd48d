/* The machine that a recording was made on, from its feature sections: whole, absent, and cut. */
#include "injector/recording/host/recording_host.h"

#include "tests/unit/machine_stand_in.h"
#include "tests/unit/profile_builder.h"

#include <elf.h>

static struct profile_builder built;

static void build(const char *name, const char *arch, uint32_t clock_version)
{
    profile_begin_one(&built);
    profile_sample(&built, 0, 20);
    profile_end_records(&built);
    if (name)
        profile_host(&built, name, arch, clock_version, (const uint64_t[]){5000, 300});
}

static struct recording_host read_cut(size_t size)
{
    struct perf_file file;
    struct recording_host host;
    struct findings findings = {0};
    assert_int_equal(open_cut_profile(&built, size, &file, &findings), 0);
    recording_host_read(&host, &file);
    perf_file_close(&file);
    findings_free(&findings);
    return host;
}

static struct recording_host read_built(void)
{
    return read_cut(built.sink.size);
}

static void test_reads_all_three(void **state)
{
    (void)state;
    build("somewhere", "aarch64", 1);
    struct recording_host host = read_built();
    assert_string_equal(host.name, "somewhere");
    assert_int_equal(host.elf_mach, EM_AARCH64);
    assert_int_equal(host.address_bytes, 8);
    assert_true(host.has_wall_clock);
    assert_int_equal(recording_host_wall_ns(&host, 310), 5010);
    assert_int_equal(recording_host_wall_ns(&host, 290), 4990);
    assert_false(recording_host_is_here(&host));
}

static void test_machines(void **state)
{
    static const struct {
        const char *arch;
        uint32_t elf_mach;
        uint8_t address_bytes;
    } cases[] = {{"x86_64", EM_X86_64, 8}, {"i686", EM_386, 4},      {"armv7l", EM_ARM, 4},
                 {"arm64", EM_AARCH64, 8}, {"ppc64le", EM_PPC64, 8}, {"riscv64", EM_RISCV, 8}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        build("x", cases[i].arch, 1);
        struct recording_host host = read_built();
        assert_int_equal(host.elf_mach, cases[i].elf_mach);
        assert_int_equal(host.address_bytes, cases[i].address_bytes);
    }
}

static void test_without_features_it_is_this_machine(void **state)
{
    (void)state;
    build(NULL, NULL, 0);
    struct recording_host host = read_built();
    assert_string_equal(host.name, "");
    assert_true(recording_host_is_here(&host));
    assert_false(host.has_wall_clock);
    assert_int_equal(host.elf_mach, EM_X86_64);
}

static void test_an_unknown_machine_is_not_this_one(void **state)
{
    (void)state;
    build("x", "a machine of the future", 1);
    struct recording_host host = read_built();
    assert_int_equal(host.elf_mach, EM_NONE);
    assert_int_equal(host.address_bytes, 8);
}

/* What recording_machine says of the built recording read on HERE, and whether that is reported. */
static const struct machine *machine_read_on(const struct machine *here, const char *said)
{
    struct perf_file file;
    struct findings findings = {.quiet = true};
    open_built_profile(&built, &file);
    const struct machine *machine = recording_machine(&file, here);
    recording_machine_report(&file, here, &findings);
    assert_int_equal(findings.count[FINDING_MACHINE_UNKNOWN], said != NULL);
    assert_int_equal(findings_lost(&findings), 0);
    if (said)
        assert_non_null(strstr(findings.first[FINDING_MACHINE_UNKNOWN], said));
    findings_free(&findings);
    perf_file_close(&file);
    return machine;
}

static void test_an_unknown_machine_is_told(void **state)
{
    const struct machine *here = machine_numbered(EM_RISCV);
    (void)state;
    build("x", "pdp11", 1);
    assert_null(machine_read_on(here, "recorded on 'pdp11'"));
    build("x", "aarch64", 1);
    assert_ptr_equal(machine_read_on(here, NULL), machine_numbered(EM_AARCH64));
    build(NULL, NULL, 0);
    assert_ptr_equal(machine_read_on(here, NULL), here);
    assert_null(machine_read_on(NULL, "this machine is not known"));
}

static void test_it_is_this_machine_by_its_name(void **state)
{
    (void)state;
    build(THIS_HOST, "aarch64", 1);
    struct recording_host host = read_built();
    assert_true(recording_host_is_here(&host));
}

static void test_a_clock_of_another_version_is_none(void **state)
{
    (void)state;
    build("x", "x86_64", 2);
    assert_false(read_built().has_wall_clock);
}

/* Sanitizers watch that nothing behind the end is read. */
static void test_cut_at_every_byte(void **state)
{
    (void)state;
    build("somewhere", "aarch64", 1);
    for (size_t size = built.records_end; size < built.sink.size; size++) {
        struct recording_host host = read_cut(size);
        assert_false(host.has_wall_clock);
    }
}

/* A text that is longer than a name can be, and one that does not end. */
static void test_texts_that_do_not_fit(void **state)
{
    char name[200];
    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    build(name, "x86_64", 1);
    struct recording_host host = read_built();
    assert_int_equal(strlen(host.name), sizeof host.name - 1);
    build("somewhere", "x86_64", 1);
    size_t name_at = built.records_end + 3 * PERF_SECTION_BYTES + 4;
    built.bytes[name_at + strlen("somewhere")] = 'x';
    assert_string_equal(read_built().name, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_all_three),
        cmocka_unit_test(test_machines),
        cmocka_unit_test(test_without_features_it_is_this_machine),
        cmocka_unit_test(test_an_unknown_machine_is_not_this_one),
        cmocka_unit_test(test_an_unknown_machine_is_told),
        cmocka_unit_test(test_it_is_this_machine_by_its_name),
        cmocka_unit_test(test_a_clock_of_another_version_is_none),
        cmocka_unit_test(test_cut_at_every_byte),
        cmocka_unit_test(test_texts_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
