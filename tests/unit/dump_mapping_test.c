/* A dump that is read while its process goes on: each pass sees the same, and all that had returned
 * before.  And one that is cut while it is read. */
#include "tests/unit/jitdump_test.h"

#include "injector/log/jitdump/jit_dump.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { READS = 40, FUNCTIONS_A_READ = 1500 };

static atomic_bool stop;
static atomic_uint added, allowed;

static void *add_for_ever(void *argument)
{
    static const uint8_t bytes[300] = {0x90};
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = "f";
    code.code_addr = 0x10000;
    code.bytes = bytes;
    while (!atomic_load(&stop)) {
        /* The file must not outgrow the reader. */
        if (atomic_load(&added) == atomic_load(&allowed)) {
            usleep(20);
            continue;
        }
        code.code_size = 1 + atomic_load(&added) % sizeof bytes;
        CHECK(jitdump_add_code(argument, &code, NULL) == 0);
        atomic_fetch_add(&added, 1);
    }
    return NULL;
}

/* The loads of DUMP from number LOADS on, which follow one another by their indices, in the order
 * of their times; those before may be there as well. */
static unsigned count_loads(const struct jit_dump *dump, unsigned loads)
{
    struct jit_dump_walk walk = jit_dump_begin(dump);
    struct jit_record record;
    enum jit_dump_end end;
    uint64_t time = 0;
    while ((end = jit_dump_next(&walk, &record)) == JIT_DUMP_MORE) {
        CHECK(!record.broken);
        if (record.id == JIT_FILLER)
            continue;
        CHECK(record.id == JIT_CODE_LOAD && record.load.code_index <= loads);
        CHECK(record.timestamp > time);
        time = record.timestamp;
        loads += record.load.code_index == loads;
    }
    CHECK(end == JIT_DUMP_WHOLE);
    return loads;
}

/* Until more than COUNT functions are there: however busy the machine is, the thread writes then.
 */
static void wait_until_added(unsigned count)
{
    while (atomic_load(&added) <= count)
        sched_yield();
}

static void read_once(void)
{
    struct jit_dump dump, stage;
    char cause[256], stage_path[160];
    unsigned before = atomic_load(&added);
    atomic_fetch_add(&allowed, FUNCTIONS_A_READ);
    stage_path_of(stage_path, path);
    assert_int_equal(jit_dump_open(&stage, stage_path, cause, sizeof cause), 0);
    unsigned after = atomic_load(&added);
    assert_int_equal(jit_dump_open(&dump, path, cause, sizeof cause), 0);
    unsigned in_body = count_loads(&dump, 0), loads = count_loads(&stage, in_body);
    assert_in_range(loads, before, in_body > after + 1 ? in_body : after + 1);
    for (volatile unsigned spin = 0; spin < 20000;)
        spin = spin + 1;
    assert_int_equal(count_loads(&dump, 0), in_body);
    assert_int_equal(count_loads(&stage, in_body), loads);
    jit_dump_close(&dump);
    jit_dump_close(&stage);
}

static void test_read_while_written(void **state)
{
    struct jitdump *dump;
    pthread_t thread;
    (void)state;
    assert_int_equal(try_open(&dump), 0);
    assert_int_equal(pthread_create(&thread, NULL, add_for_ever, dump), 0);
    for (int i = 0; i < READS; i++) {
        read_once();
        wait_until_added((unsigned)i * (FUNCTIONS_A_READ / READS + 1));
    }
    atomic_store(&stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    read_once();
    assert_true(atomic_load(&added) > FUNCTIONS_A_READ);
    assert_int_equal(jitdump_close(dump), 0);
}

/* The reader's pread: before one of its reads functions are added, as many as move what is in the
 * stage. */
static struct jitdump *busy;
static unsigned functions_a_read, reads_left;

static void add_functions(unsigned count)
{
    static const uint8_t bytes[2000] = {0x90};
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = "f";
    code.code_addr = 0x10000;
    code.bytes = bytes;
    for (unsigned i = 0; i < count; i++) {
        code.code_size = 1 + (i * 37 + functions_a_read) % sizeof bytes;
        assert_int_equal(jitdump_add_code(busy, &code, NULL), 0);
    }
}

ssize_t pread(int fd, void *data, size_t size, off_t offset)
{
    if (busy && reads_left && --reads_left == 0)
        add_functions(functions_a_read);
    return syscall(SYS_pread64, fd, data, size, offset);
}

static unsigned count_whole(const struct jit_dump *dump)
{
    struct jit_dump_walk walk = jit_dump_begin(dump);
    struct jit_record record;
    enum jit_dump_end end;
    unsigned count = 0;
    for (uint64_t time = 0; (end = jit_dump_next(&walk, &record)) == JIT_DUMP_MORE;) {
        assert_false(record.broken);
        if (record.id == JIT_FILLER || record.id == JIT_CODE_HISTORY)
            continue;
        assert_int_equal(record.id, JIT_CODE_LOAD);
        assert_true(record.timestamp > time);
        time = record.timestamp;
        count++;
    }
    assert_int_equal(end, JIT_DUMP_WHOLE);
    return count;
}

static void read_while_adding(const char *read_path)
{
    struct jit_dump dump;
    char cause[256];
    assert_int_equal(jit_dump_open(&dump, read_path, cause, sizeof cause), 0);
    reads_left = 0;
    add_functions(functions_a_read);
    unsigned loads = count_whole(&dump);
    add_functions(400);
    assert_int_equal(count_whole(&dump), loads);
    jit_dump_close(&dump);
}

/* Which of the reads of one dump is interrupted: one of so many first ones. */
enum { INTERRUPTED = 6, ROUNDS = 60 };

static void interrupt_reads(void)
{
    char stage_path[160];
    stage_path_of(stage_path, path);
    for (unsigned i = 0; i < ROUNDS; i++) {
        functions_a_read = 1 + i * 7 % 611;
        reads_left = 1 + i % INTERRUPTED;
        read_while_adding(i % 2 ? path : stage_path);
    }
    struct jitdump *dump = busy;
    busy = NULL;
    assert_int_equal(jitdump_close(dump), 0);
}

static void test_read_while_interrupted(void **state)
{
    (void)state;
    assert_int_equal(try_open(&busy), 0);
    interrupt_reads();
}

/* What was read is written anew meanwhile, in the other half of the file, and then again here. */
static void test_a_ring_read_while_interrupted(void **state)
{
    struct jitdump_options options = options_in_dir();
    (void)state;
    options.flags |= JITDUMP_RING;
    options.max_bytes = 4 << 20;
    assert_int_equal(jitdump_open(&busy, &options), 0);
    interrupt_reads();
    struct dump_bytes dump = read_dump(path);
    struct record record;
    uint64_t generation = 0;
    for (size_t offset = JITHEADER_BYTES; next_record(&dump, &offset, &record);)
        if (record.id == JIT_CODE_HISTORY)
            generation = cursor_u64(&record.body);
    free(dump.data);
    assert_in_range(generation, 10, 1000);
}

/* How far the FILLER at the body's end reaches. */
static size_t room_in_body(void)
{
    struct dump_bytes body = read_dump(jitdump_path(busy));
    size_t offset = JITHEADER_BYTES;
    uint32_t prefix[2];
    for (;; offset += prefix[1]) {
        memcpy(prefix, body.data + offset, sizeof prefix);
        if (offset + prefix[1] >= body.size)
            break;
    }
    size_t room = body.size - offset;
    free(body.data);
    return room;
}

/* Larger than what goes into the stage. */
static void add_large(size_t bytes)
{
    static const uint8_t zeros[9 << 20];
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = "large";
    code.code_addr = 0x10000;
    code.bytes = zeros;
    code.code_size = bytes;
    assert_int_equal(jitdump_add_code(busy, &code, NULL), 0);
}

/* The page with the end of the file is read by itself, and must not be newer than the rest. */
static void test_the_last_record_is_in_the_last_page(void **state)
{
    enum { LEFT_BYTES = 150 };
    (void)state;
    for (unsigned i = 1; i <= 2 * INTERRUPTED; i++) {
        assert_int_equal(try_open(&busy), 0);
        add_large(3 << 20);
        size_t room = room_in_body();
        assert_true(room > LEFT_BYTES && room < 9 << 20);
        add_large(room - LEFT_BYTES);
        room = room_in_body();
        struct stat status;
        assert_int_equal(stat(jitdump_path(busy), &status), 0);
        assert_true(room < (size_t)status.st_size % 4096); /* so it is all in that page */
        functions_a_read = 2000;
        reads_left = i;
        read_while_adding(jitdump_path(busy));
        struct jitdump *dump = busy;
        busy = NULL;
        assert_int_equal(jitdump_close(dump), 0);
    }
}

/* Where a whole page is cut away there is SIGBUS, by which the command notices; within a page there
 * would be zeros. */
static void test_a_cut_within_the_last_page_changes_nothing(void **state)
{
    static const uint8_t bytes[5000] = {0x90};
    struct jitdump_code code = JITDUMP_CODE_INIT;
    struct jitdump *written;
    struct jit_dump dump;
    char cause[256];
    (void)state;
    code.name = "f";
    code.code_addr = 0x10000;
    code.bytes = bytes;
    code.code_size = sizeof bytes;
    assert_int_equal(try_open(&written), 0);
    assert_int_equal(jitdump_add_code_on(written, &code, NULL), 0);
    assert_int_equal(jitdump_close(written), 0);
    assert_int_equal(jit_dump_open(&dump, path, cause, sizeof cause), 0);
    struct dump_bytes before = read_dump(path);
    assert_int_equal(dump.size, before.size);
    assert_int_equal(truncate(path, (off_t)before.size - 10), 0);
    assert_memory_equal(dump.data, before.data, before.size);
    free(before.data);
    jit_dump_close(&dump);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_read_while_written, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_read_while_interrupted, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_a_ring_read_while_interrupted, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_the_last_record_is_in_the_last_page, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(test_a_cut_within_the_last_page_changes_nothing, make_dir,
                                        remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
