/* Which list of the kernel's symbols is right for a recording, and where its names are. */
#include "injector/native/symbols/kernel_list.h"

#include "injector/native/mapped_build_id.h"
#include "jitdump/format/byte_sink.h"
#include "tests/unit/machine_stand_in.h"
#include "tests/unit/scratch.h"

#include <elf.h>

#define TEXT UINT64_C(0xffffffff81000000)
#define MOVED                                                                                      \
    UINT64_C(0xffffffff9a000000) /* where the recording's kernel was, if it was elsewhere */
#define MODULE  UINT64_C(0xffffffffc0000010)
#define PROGRAM UINT64_C(0xffffffffc0200010)

static char running[64], notes[64], kept[256];
static const struct build_id here = {.bytes = {7, 8, 9}, .size = BUILD_ID_BYTES};
static const struct build_id other = {.bytes = {1, 2, 3}, .size = BUILD_ID_BYTES};

/* A list of a kernel at TEXT whose function is called NAME. */
static void write_list(const char *path, const char *name)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file,
            "ffffffff81000000 T _stext\nffffffff81000000 T _text\nffffffff81000100 T %s\n"
            "ffffffff81000200 D _etext\nffffffff81000300 D data\n"
            "ffffffffc0000000 t module_of_%s\t[ext4]\n"
            "ffffffffc0200000 t bpf_prog_1_%s\t[bpf]\n",
            name, name, name);
    fclose(file);
}

static void write_hidden(const char *path)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("0000000000000000 T _text\n0000000000000000 T hidden\n", file);
    fclose(file);
}

/* The list that perf record keeps of the kernel with ID. */
static void keep(const struct build_id *id)
{
    int end = snprintf(kept, sizeof kept, "%s/.debug", scratch);
    mkdir(kept, 0700);
    end += sprintf(kept + end, "/[kernel.kallsyms]");
    mkdir(kept, 0700);
    kept[end++] = '/';
    for (size_t i = 0; i < id->size; i++)
        end += sprintf(kept + end, "%02x", id->bytes[i]);
    mkdir(kept, 0700);
    sprintf(kept + end, "/kallsyms");
    write_list(kept, "of_copy");
}

/* ---- Recordings ---- */

static struct {
    struct perf_file file;
    struct records records;
    struct recorded_map maps[2];
    uint8_t name[128], ids[256];
} recording;

/* Made on HOST, or on a machine that is not told; of the kernel with ID, or one that is not told;
 * whose SYMBOL, if any, was at ADDR. */
static void record(const char *host, const struct build_id *id, const char *symbol, uint64_t addr)
{
    memset(&recording, 0, sizeof recording);
    recording.records.file = &recording.file;
    if (host) {
        struct byte_sink sink = byte_sink_over(recording.name, sizeof recording.name);
        sink_u32(&sink, 64);
        sink_bytes(&sink, host, strlen(host) + 1);
        sink_zeros(&sink, 63 - strlen(host));
        perf_features_set(&recording.file.features, PERF_FEATURE_HOSTNAME, recording.name,
                          sink.size);
    }
    if (id) {
        static const char name[] = "[kernel.kallsyms]";
        struct byte_sink sink = byte_sink_over(recording.ids, sizeof recording.ids);
        sink_u32(&sink, 0);
        sink_u16(&sink, 1);
        sink_u16(&sink, 8 + 4 + 24 + sizeof name);
        sink_u32(&sink, UINT32_MAX);
        sink_bytes(&sink, id->bytes, BUILD_ID_BYTES);
        sink_zeros(&sink, 4);
        sink_bytes(&sink, name, sizeof name);
        perf_features_set(&recording.file.features, PERF_FEATURE_BUILD_ID, recording.ids,
                          sink.size);
    }
    if (symbol) {
        recording.maps[0].map = (struct perf_map){
            .pid = UINT32_MAX, .start = addr, .len = 0x200, .pgoff = addr, .filename = symbol};
        recording.records.maps = recording.maps;
        recording.records.map_count = 1;
    }
}

/* And whose module FILENAME was at ADDR. */
static void record_module(const char *filename, uint64_t addr)
{
    recording.maps[1].map =
        (struct perf_map){.pid = UINT32_MAX, .start = addr, .len = 0x4000, .filename = filename};
    recording.records.map_count = 2;
}

static size_t code = NO_KERNEL_CODE; /* what the recording tells of the address */

static const char *name_at(uint64_t pc)
{
    static char copy[64];
    struct kernel_list list;
    const char *name;
    assert_int_equal(kernel_list_begin(&list, &recording.records,
                                       (struct kernel_paths){running, notes, scratch}),
                     0);
    assert_int_equal(kernel_list_at(&list, pc, code, &name), 0);
    snprintf(copy, sizeof copy, "%s", name ? name : "none");
    kernel_list_end(&list);
    return copy;
}

#define assert_name(pc, wanted) assert_string_equal(name_at(pc), wanted)

#define TEXT_SYMBOL  "[kernel.kallsyms]_text"
#define STEXT_SYMBOL "[kernel.kallsyms]_stext"

/* ---- Tests ---- */

static int nothing_kept(void **state)
{
    uint8_t note[64];
    struct byte_sink sink = byte_sink_over(note, sizeof note);
    (void)state;
    snprintf(running, sizeof running, "%s/running", scratch);
    snprintf(notes, sizeof notes, "%s/notes", scratch);
    sink_u32(&sink, 4);
    sink_u32(&sink, BUILD_ID_BYTES);
    sink_u32(&sink, NT_GNU_BUILD_ID);
    sink_bytes(&sink, "GNU", 4);
    sink_bytes(&sink, here.bytes, BUILD_ID_BYTES);
    FILE *file = fopen(notes, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(note, 1, sink.size, file), sink.size);
    fclose(file);
    write_list(running, "of_kernel");
    unlink(kept);
    return 0;
}

static void test_the_kernels_own(void **state)
{
    (void)state;
    record(THIS_HOST, &here, TEXT_SYMBOL, TEXT);
    assert_name(TEXT + 0x150, "of_kernel");
    assert_name(MODULE, "module_of_of_kernel");
    record(NULL, NULL, NULL, 0);
    assert_name(TEXT + 0x150, "of_kernel");
    assert_name(MODULE, "module_of_of_kernel");
}

/* After another boot: all names are elsewhere, and where the modules were nobody knows. */
static void test_a_kernel_that_was_elsewhere(void **state)
{
    (void)state;
    record(THIS_HOST, &here, STEXT_SYMBOL, MOVED);
    assert_name(MOVED + 0x150, "of_kernel");
    assert_name(MOVED + 0x50, "_text");
    assert_name(TEXT + 0x150, "none");
    assert_name(MODULE, "none");
}

static void test_another_kernel(void **state)
{
    (void)state;
    record(THIS_HOST, &other, TEXT_SYMBOL, TEXT);
    assert_name(TEXT + 0x150, "none");
    assert_name(MODULE, "none");
}

static void test_another_machine(void **state)
{
    (void)state;
    record("elsewhere", NULL, TEXT_SYMBOL, TEXT);
    assert_name(TEXT + 0x150, "none");
    record("elsewhere", &here, TEXT_SYMBOL, TEXT); /* with this kernel, but its own modules */
    assert_name(TEXT + 0x150, "of_kernel");
    assert_name(MODULE, "none");
}

static void test_what_perf_kept_is_of_the_kernel_itself(void **state)
{
    (void)state;
    keep(&here);
    record(THIS_HOST, &here, TEXT_SYMBOL, TEXT);
    assert_name(TEXT + 0x150, "of_copy");
    assert_name(MODULE, "module_of_of_kernel");
    record(THIS_HOST, &here, TEXT_SYMBOL, MOVED);
    assert_name(MOVED + 0x150, "of_copy");
    assert_name(MODULE, "none");
}

static void test_what_perf_kept_of_another_machine(void **state)
{
    (void)state;
    keep(&other);
    record("elsewhere", &other, TEXT_SYMBOL, MOVED);
    assert_name(MOVED + 0x150, "of_copy");
    assert_name(MODULE, "none");
    assert_name(TEXT + 0x150, "none");
    record("elsewhere", &other, NULL, 0); /* where that kernel was it does not say */
    assert_name(TEXT + 0x150, "none");
}

/* A module of a list that may be of another boot: where the recording has it. */
static void test_modules_where_the_recording_has_them(void **state)
{
    const uint64_t base = MODULE & ~UINT64_C(0xfff);
    (void)state;
    keep(&other);
    record("elsewhere", &other, TEXT_SYMBOL, MOVED);
    record_module("[ext4]", base);
    assert_name(MODULE, "module_of_of_copy");
    assert_name(base + 0x3fff, "module_of_of_copy"); /* the last function ends with the module */
    assert_name(base + 0x4000, "none");
    record_module("/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko.xz", base);
    assert_name(MODULE, "module_of_of_copy");
    record_module("[ext4]", base - 0x1000); /* it was elsewhere */
    assert_name(MODULE, "none");
    record_module("[ext2]", base);
    assert_name(MODULE, "none");
    record_module("/lib/modules/ext4.ko/ext4x.ko", base);
    assert_name(MODULE, "none");
}

/* By the kernel's own list, where the recording tells of none. */
static void test_programs_that_the_kernel_made(void **state)
{
    struct kernel_code_event told = {.name = "bpf_prog_2_told"};
    (void)state;
    record(THIS_HOST, &here, TEXT_SYMBOL, TEXT);
    assert_name(PROGRAM, "bpf_prog_1_of_kernel");
    assert_name(PROGRAM + 0x1000, "none");
    recording.records.kernel_code = (struct kernel_code){.items = &told, .count = 1};
    assert_name(PROGRAM, "none");
    code = 0;
    assert_name(PROGRAM, "bpf_prog_2_told");
    code = NO_KERNEL_CODE;
    keep(&other);
    record("elsewhere", &other, TEXT_SYMBOL, MOVED);
    assert_name(PROGRAM, "none");
}

/* 40 ms of the kernel's time for nothing. */
static void test_what_is_not_read(void **state)
{
    struct kernel_list list;
    const char *name;
    (void)state;
    keep(&here);
    record(THIS_HOST, &here, TEXT_SYMBOL, TEXT);
    assert_int_equal(kernel_list_begin(&list, &recording.records,
                                       (struct kernel_paths){running, notes, scratch}),
                     0);
    assert_int_equal(kernel_list_at(&list, TEXT + 0x150, NO_KERNEL_CODE, &name), 0);
    assert_true(list.candidates[0].has_been_read);
    assert_false(list.candidates[1].has_been_read);
    assert_int_equal(kernel_list_at(&list, MODULE, NO_KERNEL_CODE, &name), 0);
    assert_true(list.candidates[1].has_been_read);
    kernel_list_end(&list);
}

/* perf keeps what the kernel shows to who records, which may be zeros. */
static void test_hidden_addresses(void **state)
{
    (void)state;
    keep(&here);
    write_hidden(kept);
    record(THIS_HOST, &here, TEXT_SYMBOL, TEXT);
    assert_name(TEXT + 0x150, "of_kernel");
    write_hidden(running);
    assert_name(TEXT + 0x150, "none");
}

static void test_no_home(void **state)
{
    struct kernel_list list;
    const char *name;
    (void)state;
    record(THIS_HOST, NULL, TEXT_SYMBOL, TEXT);
    assert_int_equal(
        kernel_list_begin(&list, &recording.records, (struct kernel_paths){running, notes, NULL}),
        0);
    assert_int_equal(kernel_list_at(&list, TEXT + 0x150, NO_KERNEL_CODE, &name), 0);
    assert_string_equal(name, "of_kernel");
    kernel_list_end(&list);
}

/* A machine whose kernel does not say which one it is. */
static void test_no_notes(void **state)
{
    (void)state;
    unlink(notes);
    record(THIS_HOST, &other, TEXT_SYMBOL, TEXT);
    assert_name(TEXT + 0x150, "of_kernel");
    record("elsewhere", &other, TEXT_SYMBOL, TEXT);
    assert_name(TEXT + 0x150, "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_the_kernels_own, nothing_kept),
        cmocka_unit_test_setup(test_a_kernel_that_was_elsewhere, nothing_kept),
        cmocka_unit_test_setup(test_another_kernel, nothing_kept),
        cmocka_unit_test_setup(test_another_machine, nothing_kept),
        cmocka_unit_test_setup(test_what_perf_kept_is_of_the_kernel_itself, nothing_kept),
        cmocka_unit_test_setup(test_what_perf_kept_of_another_machine, nothing_kept),
        cmocka_unit_test_setup(test_modules_where_the_recording_has_them, nothing_kept),
        cmocka_unit_test_setup(test_programs_that_the_kernel_made, nothing_kept),
        cmocka_unit_test_setup(test_what_is_not_read, nothing_kept),
        cmocka_unit_test_setup(test_hidden_addresses, nothing_kept),
        cmocka_unit_test_setup(test_no_home, nothing_kept),
        cmocka_unit_test_setup(test_no_notes, nothing_kept),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
