/* Who asks for a part of a machine that its entry lacks, or that no entry has, says so and takes it
 * for no other machine. */
#include "injector/debug/debugger_files.h"
#include "injector/debug/snapshot/live_snapshot.h"
#include "injector/debug/snapshot/snapshot_recording.h"
#include "injector/debug/snapshot_code.h"
#include "injector/debug/thread_stack.h"
#include "injector/recording/host/recording_host.h"
#include "injector/unwind/code_shape.h"
#include "injector/unwind/stacks/user_stacks.h"

#include "tests/unit/dump_builder.h"
#include "tests/unit/profile_builder.h"

#include <unistd.h>

enum { UNKNOWN = 0x9026, PID = 4711, FAILURE_BYTES = sizeof((struct findings *)0)->failure };

static const uint16_t numbers[] = {EM_X86_64, EM_AARCH64, EM_RISCV, EM_S390, 258, EM_386};
enum { NUMBERS = sizeof numbers / sizeof numbers[0] };

static struct snapshot snapshot_of(uint16_t elf_mach)
{
    return (struct snapshot){
        .path = "core", .pid = PID, .machine = machine_numbered(elf_mach), .name = "program"};
}

/* ---- Snapshots ---- */

static void test_a_snapshots_recording_names_its_machine(void **state)
{
    (void)state;
    for (size_t i = 0; i < NUMBERS; i++) {
        struct snapshot snapshot = snapshot_of(numbers[i]);
        struct findings findings = {0};
        struct memory_file bytes;
        struct perf_file file;
        assert_int_equal(snapshot_recording_write(&snapshot, 1, &bytes, &findings), 0);
        write_scratch(bytes.data, bytes.size);
        assert_int_equal(perf_file_open(&file, scratch_file, &findings), 0);
        assert_ptr_equal(recorded_machine_of(&file).machine, snapshot.machine);
        perf_file_close(&file);
        memory_file_free(&bytes);
        findings_free(&findings);
    }
}

/* The failure text of the live snapshot of this process on MACHINE. */
static const char *live_failure(const struct machine *machine, bool stacks)
{
    static struct findings findings;
    struct snapshot snapshot;
    uint64_t taken_ns;
    findings = (struct findings){0};
    assert_int_equal(
        live_snapshot_take(&snapshot, "/proc/1", PID, machine, stacks, &taken_ns, &findings), -1);
    snapshot_free(&snapshot);
    return findings.failure;
}

static void test_live_processes_of_a_machine_without_words(void **state)
{
    (void)state;
    assert_string_equal(live_failure(NULL, false),
                        "process 4711: can't read it: this machine is not known");
    assert_string_equal(live_failure(NULL, true),
                        "process 4711: can't read it: this machine is not known");
    assert_string_equal(live_failure(machine_numbered(EM_RISCV), true),
                        "process 4711: can't read the registers of its threads: their layout on "
                        "riscv64 is not known");
}

/* What perfjit symbols --jitdump makes of a dump of ELF_MACH alone: its machine, or the failure
 * text. */
static const struct machine *machine_of_dump(uint32_t elf_mach, char failure[FAILURE_BYTES])
{
    enum { ELF_MACH_AT = 12 };
    static struct dump_builder built;
    struct given_file dump = given_file_of(scratch_file);
    struct snapshot_request request = {.recording = {.dumps = &dump, .dump_count = 1}};
    struct snapshot_code code = {0};
    struct findings findings = {.quiet = true};
    dump_begin(&built, false, JITHEADER_BYTES);
    dump_load(&built, 100, 0x401000, "f", "code", 0);
    memcpy(built.bytes + ELF_MACH_AT, &elf_mach, 4);
    write_scratch(built.bytes, built.sink.size);
    int result = snapshot_code_open(&code, &request, false, &findings);
    const struct machine *machine = code.snapshot.machine;
    snprintf(failure, FAILURE_BYTES, "%s", findings.failure);
    assert_int_equal(result, machine ? 0 : -1);
    if (machine) {
        assert_int_equal(code.recording.processes.count, 1);
        assert_int_equal(code.recording.processes.items[0].dumps[0].elf_mach, machine->elf_mach);
    }
    snapshot_code_close(&code);
    findings_free(&findings);
    return machine;
}

static void test_dumps_alone(void **state)
{
    char failure[FAILURE_BYTES];
    (void)state;
    for (size_t i = 0; i < NUMBERS; i++)
        assert_ptr_equal(machine_of_dump(numbers[i], failure), machine_numbered(numbers[i]));
    assert_ptr_equal(machine_of_dump(EM_NONE, failure), machine_here());
    assert_null(machine_of_dump(UNKNOWN, failure));
    assert_non_null(strstr(failure, ": its code is of machine 36902, which is not known"));
    assert_null(machine_of_dump(0x10000 + EM_X86_64, failure));
}

/* ---- Debuggers ---- */

static char *contents_of(FILE *stream)
{
    static char text[4096];
    rewind(stream);
    text[fread(text, 1, sizeof text - 1, stream)] = '\0';
    fclose(stream);
    return text;
}

static struct code_table table_of(const struct snapshot *snapshot)
{
    static const struct jit_processes processes;
    static const struct image_plan plan;
    return (struct code_table){
        .snapshot = snapshot, .processes = &processes, .plan = &plan, .directory = "/"};
}

static void test_the_code_table_names_its_machine(void **state)
{
    (void)state;
    for (size_t i = 0; i < NUMBERS; i++) {
        struct snapshot snapshot = snapshot_of(numbers[i]);
        struct code_table table = table_of(&snapshot);
        char wanted[64];
        FILE *stream = tmpfile();
        code_table_json(&table, stream);
        snprintf(wanted, sizeof wanted, "\"machine\":\"%s\",", snapshot.machine->names[0]);
        assert_non_null(strstr(contents_of(stream), wanted));
    }
}

/* What gdb is started with for ELF_MACH, or the failure text. */
static const char *gdb_start(uint16_t elf_mach)
{
    static struct findings findings;
    struct snapshot snapshot = snapshot_of(elf_mach);
    struct code_table table = table_of(&snapshot);
    struct debugger_files files;
    const char *const refresh[] = {"perfjit", NULL}, *text;
    findings = (struct findings){0};
    assert_int_equal(debugger_files_make(&files, &findings), 0);
    if (debugger_files_write(&files, &table, refresh, &findings)) {
        text = findings.failure;
        assert_int_equal(access(files.start, F_OK), -1);
    } else {
        text = contents_of(fopen(files.start, "re"));
    }
    debugger_files_remove(&files);
    return text;
}

static void test_gdb_is_not_told_of_another_machine(void **state)
{
    (void)state;
    assert_non_null(strstr(gdb_start(EM_X86_64),
                           ", \"x86_64\", (\"rip\", \"rsp\", \"rbp\"), [\"perfjit\", ])"));
    assert_non_null(strstr(gdb_start(EM_AARCH64), ", \"aarch64\", (\"pc\", \"sp\", \"x29\"), ["));
    assert_string_equal(gdb_start(EM_RISCV),
                        "perfjit gdb: gdb's names for the registers of riscv64 are not known: use "
                        "perfjit symbols");
}

static void test_stacks_of_a_core_of_another_machine(void **state)
{
    struct snapshot snapshot = snapshot_of(EM_RISCV);
    struct jit_processes processes = {.count = 0};
    struct thread_stacks stacks;
    struct findings findings = {0};
    (void)state;
    assert_int_equal(
        thread_stacks_begin(&stacks, &snapshot, NULL, &processes, NULL, NULL, 1, &findings), -1);
    assert_string_equal(findings.failure, "core: stacks of riscv64 can't be unwound");
    thread_stacks_end(&stacks);
}

/* ---- Stacks of a recording ---- */

/* Whether stacks of a recording made on ARCH can be unwound; if not, FAILURE says why. */
static bool can_unwind(const char *arch, char failure[FAILURE_BYTES])
{
    static struct profile_builder built;
    const uint64_t sample_type = SAMPLE_TYPE | PERF_SAMPLE_STACK_USER;
    struct perf_file file;
    struct user_stacks stacks;
    const struct user_stacks_options options = {.stitch = false};
    struct jit_processes processes = {.count = 0};
    struct findings findings = {.quiet = true};
    profile_begin(&built, &sample_type, 1);
    profile_comm(&built, 0, 1);
    profile_end_records(&built);
    profile_host(&built, "x", arch, 1, (const uint64_t[]){5000, 300});
    open_built_profile(&built, &file);
    struct records records = {.file = &file};
    bool possible = user_stacks_possible(&file);
    assert_int_equal(user_stacks_unwind(&stacks, &options, &records, &processes, NULL, &findings),
                     possible ? 0 : -1);
    snprintf(failure, FAILURE_BYTES, "%s", findings.failure);
    user_stacks_free(&stacks);
    findings_free(&findings);
    perf_file_close(&file);
    return possible;
}

static void test_stacks_of_a_recording_of_another_machine(void **state)
{
    char failure[FAILURE_BYTES];
    (void)state;
    assert_true(can_unwind("x86_64", failure));
    assert_true(can_unwind("aarch64", failure));
    assert_false(can_unwind("riscv64", failure));
    assert_non_null(strstr(failure, "it was recorded on riscv64: stacks of this machine can't be "
                                    "unwound here: say --stacks keep"));
    assert_false(can_unwind("pdp11", failure));
    assert_non_null(strstr(failure, "it was recorded on pdp11: stacks of this machine can't be"));
}

/* These bytes are x86-64's push rbp, mov rbp,rsp, nop, a call, a jump and the system call that ends
 * a handler. */
static void test_code_that_is_not_known_has_no_shape(void **state)
{
    static const uint8_t frame[] = {0x55, 0x48, 0x89, 0xe5, 0x90, 0x90, 0xc3};
    static const uint8_t call[] = {0xe8, 0, 0, 0, 0}, jump[] = {0xeb, 0x10}, nops[] = {0x90, 0x55};
    static const uint8_t end_of_handler[] = {0xb8, 15, 0, 0, 0, 0x0f, 0x05};
    const struct machine *x86 = machine_numbered(EM_X86_64), *other = machine_numbered(EM_RISCV);
    int64_t by;
    (void)state;
    for (int known = 0; known < 2; known++) {
        const struct machine *machine = known ? x86 : other;
        assert_int_equal(code_place_of(machine, frame, sizeof frame, 5, true),
                         known ? PLACE_IN_FRAME : PLACE_UNKNOWN);
        assert_int_equal(code_ends_in_call(machine, call, sizeof call), known);
        assert_int_equal(code_ends_in_direct_call(machine, call, sizeof call, &by), known);
        assert_int_equal(code_next_call(machine, call, sizeof call, 0, &by), known ? 5 : 0);
        assert_int_equal(code_next_call(machine, call, sizeof call, 5, &by), 0);
        assert_int_equal(code_jumps_to(machine, jump, sizeof jump, 18), known);
        assert_int_equal(code_padding_bytes(machine, nops, sizeof nops), known);
        assert_int_equal(code_is_signal_return(machine, end_of_handler, sizeof end_of_handler),
                         known);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_snapshots_recording_names_its_machine),
        cmocka_unit_test(test_live_processes_of_a_machine_without_words),
        cmocka_unit_test(test_dumps_alone),
        cmocka_unit_test(test_the_code_table_names_its_machine),
        cmocka_unit_test(test_gdb_is_not_told_of_another_machine),
        cmocka_unit_test(test_stacks_of_a_core_of_another_machine),
        cmocka_unit_test(test_stacks_of_a_recording_of_another_machine),
        cmocka_unit_test(test_code_that_is_not_known_has_no_shape),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
