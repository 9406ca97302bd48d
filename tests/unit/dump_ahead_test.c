/* The thread that goes through a dump ahead of the walk: all of the records, and nothing of the
 * holes. */
#include "tests/unit/dump_builder.h"

#include "injector/log/jitdump/dump_ahead.h"

#include <sys/mman.h>

enum { HOLE_BYTES = 256 << 20, LOADS = 40, CODE_BYTES = 100000 };

static struct dump_builder built;

/* In memory, where to read a hole takes memory, as on tmpfs; not mapped by whoever wrote it. */
static int sparse_file(void)
{
    int fd = memfd_create("dump", 0);
    static const uint8_t code[CODE_BYTES] = {0x90};
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, 0600), 0); /* what others may write is copied */
    dump_begin(&built, false, JITHEADER_BYTES);
    size_t filler = dump_begin_record(&built, JIT_FILLER, 0);
    dump_set_size(&built, filler, HOLE_BYTES);
    assert_int_equal(pwrite(fd, built.bytes, built.sink.size, 0), built.sink.size);
    off_t at = JITHEADER_BYTES + HOLE_BYTES;
    for (uint64_t i = 0; i < LOADS; i++) {
        dump_begin(&built, false, JITHEADER_BYTES);
        size_t load = dump_begin_load(&built, 5 + i, 0x10000 + i * CODE_BYTES, CODE_BYTES, i);
        sink_cstr(&built.sink, "f");
        sink_bytes(&built.sink, code, sizeof code);
        dump_end_record(&built, load);
        ssize_t bytes = (ssize_t)(built.sink.size - load);
        assert_int_equal(pwrite(fd, built.bytes + load, (size_t)bytes, at), bytes);
        at += bytes;
    }
    return fd;
}

static blkcnt_t blocks_of(int fd)
{
    struct stat status;
    assert_int_equal(fstat(fd, &status), 0);
    return status.st_blocks;
}

static void open_fd(struct jit_dump *dump, int fd)
{
    char path[64], cause[256];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (jit_dump_open(dump, path, cause, sizeof cause))
        fail_msg("%s", cause);
}

static void test_holes_stay_holes(void **state)
{
    struct dump_ahead ahead;
    struct jit_dump dump;
    (void)state;
    int fd = sparse_file();
    blkcnt_t blocks = blocks_of(fd);
    open_fd(&dump, fd);
    dump_ahead_begin(&ahead, &dump);
    /* To its end. */
    assert_true(side_thread_join(&ahead.thread) || sysconf(_SC_NPROCESSORS_ONLN) == 1);
    dump_ahead_end(&ahead);
    assert_in_range(blocks_of(fd), blocks, blocks + 64);
    jit_dump_close(&dump);
    close(fd);
}

/* Nobody waits until it has gone through all of a large dump. */
static void test_ends_when_it_is_told_to(void **state)
{
    struct dump_ahead ahead;
    struct jit_dump dump;
    (void)state;
    int fd = sparse_file();
    open_fd(&dump, fd);
    for (int i = 0; i < 100; i++) {
        dump_ahead_begin(&ahead, &dump);
        dump_ahead_end(&ahead);
    }
    jit_dump_close(&dump);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_holes_stay_holes),
        cmocka_unit_test(test_ends_when_it_is_told_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
