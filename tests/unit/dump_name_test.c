/* What dumps are called, and which mappings of other names are looked into. */
#include "injector/log/jitdump/dump_name.h"
#include "injector/log/owner/dump_probe.h"

#include "tests/unit/machine_stand_in.h"
#include "tests/unit/scratch.h"

#include <limits.h>

static void assert_pid(const char *path, uint32_t wanted)
{
    uint32_t pid = 0;
    if (!jit_dump_name_pid(path, &pid) || pid != wanted)
        fail_msg("%s: %u", path, pid);
}

static void assert_no_dump(const char *path)
{
    uint32_t pid;
    if (jit_dump_name_pid(path, &pid))
        fail_msg("%s: %u", path, pid);
}

static void test_names(void **state)
{
    (void)state;
    assert_pid("jit-7.dump", 7);
    assert_pid("/tmp/jit-7.dump", 7);
    assert_pid("/tmp/jit-7.dump (deleted)", 7);
    assert_pid("/tmp/jit-4294967295.dump", UINT32_MAX);
    assert_pid("/tmp/jit-8-7.dump", 7);
    assert_pid("/tmp/jit-8-7.dump (deleted)", 7);
    assert_pid("/tmp/jit-8-7-aB3dE9", 7);
    assert_pid("/tmp/jit-8-7-123456 (deleted)", 7);
}

static void test_other_names(void **state)
{
    (void)state;
    assert_no_dump("/tmp/jit-.dump");
    assert_no_dump("/tmp/jit-7.dump.gz");
    assert_no_dump("/tmp/jit-7dump");
    assert_no_dump("/tmp/jit-7");
    assert_no_dump("/tmp/jit-8-7");
    assert_no_dump("/tmp/jit-8-.dump");
    assert_no_dump("/tmp/jit-8-7-aB3dE");
    assert_no_dump("/tmp/jit-8-7-aB3dE9x");
    assert_no_dump("/tmp/jit-8-7-aB3_E9");
    assert_no_dump("/tmp/jit-8-7-6.dump");
    assert_no_dump("/tmp/jit-4294967296.dump");
    assert_no_dump("/tmp/jit-8-4294967296.dump");
    assert_no_dump("/tmp/xjit-7.dump");
    assert_no_dump("/jit-7.dump/x");
    assert_no_dump("");
}

static void test_stages(void **state)
{
    (void)state;
    assert_true(jit_dump_name_is_stage("/a/jitdump-7/stage/jit-7.dump"));
    assert_true(jit_dump_name_is_stage("/stage/jit-7.dump (deleted)"));
    assert_false(jit_dump_name_is_stage("/a/jitdump-7/jit-7.dump"));
    assert_false(jit_dump_name_is_stage("/a/backstage/jit-7.dump"));
    assert_false(jit_dump_name_is_stage("/a/stage/perf-7.map"));
    assert_true(jit_dump_name_is_stage_of("/a/stage/jit-7.dump", "/a/jit-7.dump"));
    assert_true(jit_dump_name_is_stage_of("stage/jit-7.dump", "jit-7.dump"));
    assert_false(jit_dump_name_is_stage_of("/a/stage/jit-7.dump", "/b/jit-7.dump"));
    assert_false(jit_dump_name_is_stage_of("/a/stage/jit-8.dump", "/a/jit-7.dump"));
    assert_false(jit_dump_name_is_stage_of("/a/jit-7.dump", "/a/jit-7.dump"));
    char *stage = jit_dump_name_stage("/a/jit-7.dump");
    assert_string_equal(stage, "/a/stage/jit-7.dump");
    free(stage);
}

/* ---- Other names ---- */

enum { PID = 4711 };

static struct perf_map map_of(const char *filename, uint64_t pgoff, uint64_t len)
{
    return (struct perf_map){.pid = PID, .filename = filename, .pgoff = pgoff, .len = len};
}

static void test_what_may_be_a_dump(void **state)
{
    (void)state;
    struct perf_map map = map_of("/tmp/profile.bin", 0, 0x1000);
    assert_true(dump_probe_may_be(&map));
    map.data = true;
    assert_false(dump_probe_may_be(&map));
    map = map_of("/usr/lib/libc.so.6", 0x26000, 0x156000);
    assert_false(dump_probe_may_be(&map));
    map = map_of("/usr/lib/libdl.so.2", 0x1000, 0x1000);
    assert_false(dump_probe_may_be(&map));
    map = map_of("/usr/bin/old", 0, 0x20000);
    assert_false(dump_probe_may_be(&map));
    map = map_of("[vdso]", 0, 0x1000);
    assert_false(dump_probe_may_be(&map));
    map = map_of("//anon", 0, 0x1000);
    assert_false(dump_probe_may_be(&map));
    map = map_of("/memfd:arena (deleted)", 0, 0x1000);
    assert_false(dump_probe_may_be(&map));
}

static void write_file(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static bool probe_one(struct dump_probe *probe, const char *path, uint32_t *pid)
{
    bool failed = false;
    struct perf_map map = map_of(path, 0, 0x1000);
    bool is_dump = dump_probe_file(probe, &map, pid, &failed);
    assert_false(failed);
    return is_dump;
}

/* In both byte orders; what was looked into is not looked into again. */
static void test_the_first_bytes_decide(void **state)
{
    static const uint8_t little[40] = {0x44, 0x54, 0x69, 0x4a, [20] = 0x67, 0x12};
    static const uint8_t big[40] = {0x4a, 0x69, 0x54, 0x44, [22] = 0x12, 0x67};
    struct dump_probe probe = {0};
    char path[PATH_MAX];
    uint32_t pid;
    (void)state;
    snprintf(path, sizeof path, "%s/little", scratch);
    write_file(path, little, sizeof little);
    assert_true(probe_one(&probe, path, &pid));
    assert_int_equal(pid, 0x1267);
    assert_int_equal(truncate(path, 0), 0);
    assert_true(probe_one(&probe, path, &pid));
    unlink(path);
    char second[PATH_MAX];
    snprintf(second, sizeof second, "%s/big", scratch);
    write_file(second, big, sizeof big);
    assert_true(probe_one(&probe, second, &pid));
    assert_int_equal(pid, 0x1267);
    unlink(second);
    char third[PATH_MAX];
    snprintf(third, sizeof third, "%s/short", scratch);
    write_file(third, little, sizeof little - 1);
    assert_false(probe_one(&probe, third, &pid));
    unlink(third);
    assert_false(probe_one(&probe, "/nowhere/at/all", &pid));
    assert_false(probe_one(&probe, scratch, &pid));
    assert_false(probe_one(&probe, "/dev/zero", &pid));
    dump_probe_free(&probe);
}

/* What was found out is kept: a dump that comes later to one of the paths is not noticed. */
static void test_thousands_of_paths(void **state)
{
    enum { PATHS = 5000, LATE = 4321 };
    static const uint8_t header[40] = {0x44, 0x54, 0x69, 0x4a};
    static char paths[PATHS][PATH_MAX];
    struct dump_probe probe = {0};
    uint32_t pid;
    (void)state;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < PATHS; i++) {
            snprintf(paths[i], sizeof paths[i], "%s/%d", scratch, i);
            assert_false(probe_one(&probe, paths[i], &pid));
        }
        write_file(paths[LATE], header, sizeof header);
    }
    unlink(paths[LATE]);
    dump_probe_free(&probe);
}

/* What lives in a container opened what is at that path there, and nothing is here. */
static void test_a_file_below_the_processs_own_root(void **state)
{
    static const uint8_t header[40] = {0x44, 0x54, 0x69, 0x4a, [20] = 0x67, 0x12};
    struct dump_probe probe = {0};
    char path[PATH_MAX];
    uint32_t pid;
    (void)state;
    snprintf(path, sizeof path, "%s/inside", scratch);
    write_file(path, header, sizeof header);
    begin_machine();
    this_machine.pid = PID;
    this_machine.root = scratch;
    assert_false(probe_one(&probe, "/inside", &pid)); /* it has the same root as perfjit */
    this_machine.other_root = true;
    assert_true(probe_one(&probe, "/inside", &pid));
    assert_int_equal(pid, 0x1267);
    this_machine.pid = 0;
    assert_false(probe_one(&probe, "/inside", &pid));
    dump_probe_free(&probe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_other_names),
        cmocka_unit_test(test_stages),
        cmocka_unit_test(test_what_may_be_a_dump),
        cmocka_unit_test(test_the_first_bytes_decide),
        cmocka_unit_test(test_thousands_of_paths),
        cmocka_unit_test(test_a_file_below_the_processs_own_root),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
