/* Records at their edges: build-ids, inodes and addresses of maps, names of files, samples that end
 * too soon. */
#include "injector/recording/perf_data/perf_sample.h"

#include "tests/unit/profile_builder.h"

static struct profile_builder built;

static void begin_one(void)
{
    profile_begin_one(&built);
}

static void finish(void)
{
    profile_end_records(&built);
    profile_features(&built, NULL, 0);
}

static void read_nth(const struct perf_file *file, size_t number, struct perf_record *record)
{
    struct perf_walk walk = perf_walk_begin(file);
    for (size_t i = 0; i <= number; i++)
        assert_true(perf_walk_next(&walk, record, NULL));
}

/* ---- Build-ids of maps ---- */

enum { NO_BUILD_ID = 99 };

/* The length of the build-id of a map that says that it is SAID bytes long. */
static size_t build_id_bytes(uint8_t said, uint16_t misc, uint32_t type)
{
    struct perf_file file;
    struct perf_record record;
    size_t size = NO_BUILD_ID;
    begin_one();
    size_t start = profile_map(&built, type, 0, 0x1000, 0x2000, "/lib/a.so", 10);
    built.bytes[start + 5] = (uint8_t)(misc >> 8);
    built.bytes[start + PERF_MMAP_BYTES] = said;
    finish();
    open_built_profile(&built, &file);
    struct perf_walk walk = perf_walk_begin(&file);
    assert_true(perf_walk_next(&walk, &record, NULL));
    const uint8_t *bytes = perf_record_build_id(&record, &size);
    if (bytes)
        assert_ptr_equal(bytes, record.bytes + PERF_MMAP_BYTES + 4);
    else
        assert_int_equal(size, NO_BUILD_ID);
    perf_file_close(&file);
    return size;
}

static void test_a_build_id_of_1_to_20_bytes(void **state)
{
    (void)state;
    for (size_t said = 1; said <= PERF_BUILD_ID_BYTES; said++)
        assert_int_equal(build_id_bytes((uint8_t)said, PERF_MISC_MMAP_BUILD_ID, PERF_RECORD_MMAP2),
                         said);
}

static void test_a_build_id_of_0_and_of_21_to_255_bytes_is_none(void **state)
{
    (void)state;
    assert_int_equal(build_id_bytes(0, PERF_MISC_MMAP_BUILD_ID, PERF_RECORD_MMAP2), NO_BUILD_ID);
    for (size_t said = PERF_BUILD_ID_BYTES + 1; said <= UINT8_MAX; said++)
        assert_int_equal(build_id_bytes((uint8_t)said, PERF_MISC_MMAP_BUILD_ID, PERF_RECORD_MMAP2),
                         NO_BUILD_ID);
}

static void test_a_map_with_an_inode_and_an_mmap_have_no_build_id(void **state)
{
    (void)state;
    assert_int_equal(build_id_bytes(20, 0, PERF_RECORD_MMAP2), NO_BUILD_ID);
    assert_int_equal(build_id_bytes(20, PERF_MISC_MMAP_BUILD_ID, PERF_RECORD_MMAP), NO_BUILD_ID);
}

/* ---- Maps at the edges ---- */

/* The only record, a map, in MAP.  Returns whether it is one. */
static bool read_only_map(struct perf_map *map)
{
    static struct perf_file file;
    struct perf_record record;
    finish();
    open_built_profile(&built, &file);
    read_nth(&file, 0, &record);
    bool is_map = perf_record_map(&file, &record, map);
    perf_file_close(&file);
    return is_map;
}

static void test_a_map_that_ends_with_the_last_address(void **state)
{
    struct perf_map map;
    (void)state;
    begin_one();
    profile_map(&built, PERF_RECORD_MMAP2, 0, UINT64_MAX - 0x2000, 0x2000, "//anon", 10);
    assert_true(read_only_map(&map));
    begin_one();
    profile_map(&built, PERF_RECORD_MMAP2, 0, UINT64_MAX - 0x1fff, 0x2000, "//anon", 10);
    assert_false(read_only_map(&map));
}

/* Whether a map of device MAJOR, MINOR and inode INODE has an inode. */
static bool has_inode(uint32_t maj, uint32_t min, uint64_t inode)
{
    struct perf_map map;
    begin_one();
    size_t start = profile_map(&built, PERF_RECORD_MMAP2, 0, 0x1000, 0x2000, "/SYSV00000000", 10);
    profile_set_u64(&built, start + PERF_MMAP_BYTES, maj | (uint64_t)min << 32);
    profile_set_u64(&built, start + PERF_MMAP_BYTES + 8, inode);
    assert_true(read_only_map(&map));
    return map.has_inode;
}

static void test_an_inode_of_0_on_a_device_and_no_device_at_all(void **state)
{
    (void)state;
    assert_true(has_inode(0, 1, 0));
    assert_true(has_inode(8, 0, 0));
    assert_true(has_inode(0, 0, 7));
    assert_false(has_inode(0, 0, 0));
}

static void expect_order(const struct perf_map *low, const struct perf_map *high)
{
    assert_true(perf_map_compare_files(low, high) < 0);
    assert_true(perf_map_compare_files(high, low) > 0);
    assert_int_equal(perf_map_compare_files(low, low), 0);
}

static void test_maps_that_differ_in_one_field_are_of_two_files(void **state)
{
    const struct perf_map map = {
        .has_inode = true, .maj = 8, .min = 1, .ino = 7, .filename = "/lib/a"};
    struct perf_map other = map;
    (void)state;
    other.min = 2;
    expect_order(&map, &other);
    other = map;
    other.maj = 9;
    expect_order(&map, &other);
    other = map;
    other.ino = 8;
    expect_order(&map, &other);
    other = map;
    other.filename = "/lib/b";
    expect_order(&map, &other);
    other = map;
    other.has_inode = false;
    expect_order(&other, &map);
    struct perf_map without = other;
    without.min = 2; /* which says nothing then */
    assert_int_equal(perf_map_compare_files(&without, &other), 0);
}

static void test_a_file_called_deleted_is_not_removed(void **state)
{
    (void)state;
    assert_int_equal(perf_map_name_length(" (deleted)"), 10);
    assert_int_equal(perf_map_name_length("a (deleted)"), 1);
    assert_int_equal(perf_map_name_length("a (deleted) "), 12);
}

/* ---- Short samples ---- */

static void test_a_sample_that_is_cut_between_its_address_and_its_thread(void **state)
{
    struct perf_file file;
    struct perf_record record;
    uint64_t ip;
    uint32_t pid = 0, tid = 0;
    (void)state;
    begin_one();
    profile_plain(&built, PERF_RECORD_SAMPLE, 8);
    profile_plain(&built, PERF_RECORD_SAMPLE, 16);
    finish();
    open_built_profile(&built, &file);
    read_nth(&file, 0, &record);
    assert_false(perf_record_sample(&file, &record, &pid, &ip));
    assert_false(perf_record_sample_thread(&file, &record, &pid, &tid));
    read_nth(&file, 1, &record);
    assert_true(perf_record_sample(&file, &record, &pid, &ip));
    assert_true(perf_record_sample_thread(&file, &record, &pid, &tid));
    perf_file_close(&file);
}

/* The short ways to the first fields of a sample find the same values as the reader of all fields,
 * in a record of any size, with any of these fields. */
static void expect_same_front(const struct perf_file *file, struct perf_record *record,
                              uint16_t size)
{
    struct perf_sample sample;
    uint64_t ip = 0, time_ns = 0;
    uint32_t pid = 0, tid = 0;
    record->size = size;
    perf_sample_read(&sample, &file->events[0].format, record, SAMPLE_TIME);
    bool has_thread = sample.has & PERF_SAMPLE_TID, has_time = sample.has & PERF_SAMPLE_TIME;
    assert_int_equal(perf_record_sample_thread(file, record, &pid, &tid), has_thread);
    assert_int_equal(pid, has_thread ? sample.pid : 0);
    assert_int_equal(tid, has_thread ? sample.tid : 0);
    assert_int_equal(perf_record_sample(file, record, &pid, &ip),
                     has_thread && (sample.has & PERF_SAMPLE_IP));
    assert_int_equal(ip, has_thread ? sample.ip : 0);
    assert_int_equal(perf_record_time(file, record, &time_ns), has_time);
    assert_int_equal(time_ns, has_time ? sample.time_ns : 0);
}

static void test_the_first_fields_are_those_of_the_reader_of_all(void **state)
{
    static const uint64_t types[] = {PERF_SAMPLE_IP, PERF_SAMPLE_TID, PERF_SAMPLE_IDENTIFIER};
    enum { WORDS = 5 };
    (void)state;
    for (unsigned which = 0; which < 8; which++) {
        struct perf_file file;
        struct perf_record record;
        uint64_t type = PERF_SAMPLE_TIME;
        for (unsigned i = 0; i < 3; i++)
            type |= which >> i & 1 ? types[i] : 0;
        profile_begin(&built, &type, 1);
        size_t start = profile_plain(&built, PERF_RECORD_SAMPLE, 8 * WORDS);
        for (size_t i = 0; i < WORDS; i++)
            profile_set_u64(&built, start + PERF_RECORD_HEADER_BYTES + 8 * i,
                            UINT64_C(0x1234567800001000) + i);
        finish();
        open_built_profile(&built, &file);
        read_nth(&file, 0, &record);
        for (uint16_t size = PERF_RECORD_HEADER_BYTES; size <= 8 + 8 * WORDS; size++)
            expect_same_front(&file, &record, size);
        perf_file_close(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_build_id_of_1_to_20_bytes),
        cmocka_unit_test(test_a_build_id_of_0_and_of_21_to_255_bytes_is_none),
        cmocka_unit_test(test_a_map_with_an_inode_and_an_mmap_have_no_build_id),
        cmocka_unit_test(test_a_map_that_ends_with_the_last_address),
        cmocka_unit_test(test_an_inode_of_0_on_a_device_and_no_device_at_all),
        cmocka_unit_test(test_maps_that_differ_in_one_field_are_of_two_files),
        cmocka_unit_test(test_a_file_called_deleted_is_not_removed),
        cmocka_unit_test(test_a_sample_that_is_cut_between_its_address_and_its_thread),
        cmocka_unit_test(test_the_first_fields_are_those_of_the_reader_of_all),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
