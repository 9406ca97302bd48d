/* Room that a dump takes: its bound, what a full disk leaves for a stage, and blocks reserved
 * ahead. */
#include "tests/unit/clock_stand_in.h"
#include "tests/unit/jitdump_inventory.h"

#include "jitdump/writer/dump_writer.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

/* ---- The system's calls, which this file stands in for ---- */

static struct {
    long type;            /* of the file system; 0: what it is */
    off_t free_bytes;     /* no more is allocated at once; 0: any */
    size_t address_space; /* no more of the file is mapped at once; 0: any */
    int reserve_error;
    unsigned refused;  /* allocations and mappings of more than that */
    unsigned granted;  /* other allocations */
    unsigned reserved; /* tries to reserve, with FALLOC_FL_KEEP_SIZE */
} disk;

int fallocate(int fd, int mode, off_t offset, off_t length)
{
    errno = 0;
    if (mode == FALLOC_FL_KEEP_SIZE) {
        disk.reserved++;
        errno = disk.reserve_error;
    } else if (disk.free_bytes && length > disk.free_bytes) {
        disk.refused++;
        errno = ENOSPC;
    } else {
        disk.granted++;
    }
    return errno ? -1 : (int)syscall(SYS_fallocate, fd, mode, offset, length);
}

void *mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
{
    if (fd >= 0 && disk.address_space && length > disk.address_space) {
        disk.refused++;
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, addr, length, prot, flags, fd, offset);
}

int fstatfs(int fd, struct statfs *status)
{
    int result = (int)syscall(SYS_fstatfs, fd, status);
    if (disk.type)
        status->f_type = disk.type;
    return result;
}

static int forget_disk(void **state)
{
    memset(&disk, 0, sizeof disk);
    return make_dir(state);
}

/* ---- A bound of the size ---- */

static void assert_bounded(uint64_t max_bytes, uint32_t stage_bytes)
{
    struct jitdump_options options = options_in_dir();
    struct jitdump *dump;
    struct stat status;
    options.max_bytes = max_bytes;
    assert_int_equal(jitdump_open(&dump, &options), 0);
    unsigned added = add_until(dump, 0, -EFBIG);
    assert_int_equal(jitdump_lost(dump), 1);
    assert_non_null(strstr(jitdump_error(dump), "max_bytes"));
    char stage_path[160];
    uint64_t bytes = 0;
    stage_path_of(stage_path, path);
    assert_int_equal(stat(path, &status), 0);
    bytes += (uint64_t)status.st_size;
    assert_int_equal(stat(stage_path, &status), 0);
    assert_in_range(bytes + (uint64_t)status.st_size, 1, max_bytes);
    check_first(path, added);
    assert_int_equal(jitdump_close(dump), -EFBIG);
    check_inventory(path, added, 1);
    assert_int_equal(stat(path, &status), 0);
    assert_in_range(status.st_size, max_bytes - stage_bytes, max_bytes);
    remove_dump(path); /* the next one shall have its place */
}

static void test_max_bytes(void **state)
{
    (void)state;
    assert_bounded(JD_FILE_LEAST_BYTES, STAGE_FIRST_BYTES);
    assert_bounded(JD_FILE_LEAST_BYTES + 12345, STAGE_FIRST_BYTES);
    assert_bounded(3 << 20, STAGE_FIRST_BYTES);
    assert_bounded(17 << 20, STAGE_FIRST_BYTES);
    assert_bounded(19 << 20, STAGE_LATER_BYTES);
    assert_bounded(37 << 20, STAGE_LATER_BYTES);
}

/* A function that alone is too large does not keep the others out. */
static void test_max_bytes_and_a_large_function(void **state)
{
    struct jitdump_options options = options_in_dir();
    struct jitdump_code code = JITDUMP_CODE_INIT;
    struct jitdump *dump;
    (void)state;
    options.max_bytes = 2 << 20;
    assert_int_equal(jitdump_open(&dump, &options), 0);
    add_first(dump, 0, 100);
    code.code_size = 2 << 20;
    assert_int_equal(jitdump_add_code(dump, &code, NULL), -EFBIG);
    add_first(dump, 100, 2000);
    assert_int_equal(jitdump_lost(dump), 1);
    assert_int_equal(jitdump_close(dump), -EFBIG);
    check_inventory(path, 2000, 1);
}

static void test_max_bytes_too_small(void **state)
{
    struct jitdump_options options = options_in_dir();
    struct jitdump *dump;
    (void)state;
    options.max_bytes = JD_FILE_LEAST_BYTES - 1;
    assert_int_equal(jitdump_open(&dump, &options), -EINVAL);
    assert_non_null(strstr(jitdump_error(dump), "max_bytes"));
    assert_int_equal(jitdump_close(dump), -EINVAL);
    assert_int_not_equal(access(path, F_OK), 0);
}

/* ---- Room on the disk ---- */

enum { MANY_FUNCTIONS = 14000 }; /* several stages full, and several of the larger one */

static void add_and_check(unsigned functions)
{
    struct jitdump *dump = open_dump();
    add_first(dump, 0, functions);
    assert_int_equal(jitdump_lost(dump), 0);
    check_first(path, functions);
    assert_int_equal(jitdump_close(dump), 0);
    check_inventory(path, functions, 1);
    remove_dump(path);
}

/* Where there is no room for a large stage, a small one does. */
static void test_no_room_for_a_large_stage(void **state)
{
    (void)state;
    disk.free_bytes = STAGE_LATER_BYTES - STAGE_FIRST_BYTES - 1;
    add_and_check(MANY_FUNCTIONS);
    assert_true(disk.refused > 0);
    assert_true(disk.granted > 1);
    memset(&disk, 0, sizeof disk);
    disk.address_space = STAGE_LATER_BYTES - 1;
    add_and_check(MANY_FUNCTIONS);
    assert_true(disk.refused > 0);
}

static uint64_t disk_bytes(void)
{
    struct stat status;
    char stage_path[160];
    assert_int_equal(stat(path, &status), 0);
    uint64_t blocks = (uint64_t)status.st_blocks;
    stage_path_of(stage_path, path);
    assert_int_equal(stat(stage_path, &status), 0);
    return (blocks + (uint64_t)status.st_blocks) * 512;
}

/* 200 processes that log next to nothing must not take 64 MiB. */
static void test_short_programs_take_little(void **state)
{
    struct jitdump *dump = open_dump();
    (void)state;
    assert_in_range(disk_bytes(), 1, 16 << 10);
    add_first(dump, 0, 10);
    assert_in_range(disk_bytes(), 1, 16 << 10);
    check_first(path, 10);
    assert_int_equal(jitdump_close(dump), 0);
    check_inventory(path, 10, 1);
}

/* A stage that can't grow does for all that fits in it; what does not fails, and goes on when there
 * is room. */
static void test_no_room_to_grow(void **state)
{
    struct jitdump *dump;
    (void)state;
    disk.free_bytes = STAGE_SMALL_BYTES;
    dump = open_dump();
    add_first(dump, 0, 3000);
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.code_size = 2 * STAGE_SMALL_BYTES;
    assert_int_equal(jitdump_add_code(dump, &code, NULL), -ENOSPC);
    add_first(dump, 3000, 4000);
    disk.free_bytes = 0;
    pass_retry_time();
    assert_int_equal(jitdump_add_code(dump, &code, NULL), 0);
    add_first(dump, 4000, 6000);
    assert_int_equal(jitdump_lost(dump), 1);
    assert_int_equal(jitdump_close(dump), -ENOSPC);
    check_inventory(path, 6000, 2);
}

/* Blocks are reserved ahead of large writes where that saves time, and only there; if they can't
 * be, the write tells. */
static void test_reserved_blocks(void **state)
{
    (void)state;
    disk.type = TMPFS_MAGIC;
    add_and_check(MANY_FUNCTIONS);
    assert_int_equal(disk.reserved, 0);
    disk.type = EXT4_SUPER_MAGIC;
    add_and_check(MANY_FUNCTIONS);
    assert_in_range(disk.reserved, 3, MANY_FUNCTIONS / 100);
    unsigned before = disk.reserved;
    disk.reserve_error = ENOSPC;
    add_and_check(MANY_FUNCTIONS);
    assert_true(disk.reserved > before);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, forget_disk, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_max_bytes),           TEST(test_max_bytes_and_a_large_function),
        TEST(test_max_bytes_too_small), TEST(test_no_room_for_a_large_stage),
        TEST(test_reserved_blocks),     TEST(test_short_programs_take_little),
        TEST(test_no_room_to_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
