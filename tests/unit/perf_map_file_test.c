/* Where a process's perf map is looked for, and which are refused. */
#include "injector/log/perf_map/perf_map_file.h"

#include "tests/unit/file_stand_in.h"
#include "tests/unit/machine_stand_in.h"
#include "tests/unit/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#define NS_PER_S UINT64_C(1000000000)

static uint32_t nobody; /* no process has such a pid, nor another run of this its file in /tmp */

static struct perf_map_search search;
static struct findings findings;
static struct perfmap_table *table;
static char *path;
static char map_path[96];

static int begin(void **state)
{
    char tmp[64];
    (void)state;
    search = (struct perf_map_search){.root = scratch, .owner = -1};
    findings = (struct findings){0};
    table = NULL;
    path = NULL;
    snprintf(tmp, sizeof tmp, "%s/tmp", scratch);
    mkdir(tmp, 0777);
    nobody = UINT32_C(0x7f000000) + (uint32_t)getpid();
    snprintf(map_path, sizeof map_path, "%s/perf-%" PRIu32 ".map", tmp, nobody);
    unsetenv("SUDO_UID");
    begin_machine();
    these_files.inode = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    perfmap_free(table);
    free(path);
    findings_free(&findings);
    remove(map_path);
    return 0;
}

static void write_map(const char *text)
{
    FILE *file = fopen(map_path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void find(uint64_t began_ns)
{
    perfmap_free(table);
    free(path);
    assert_int_equal(perf_map_file_find(&table, &path, &search, nobody, began_ns, &findings), 0);
    assert_int_equal(table != NULL, path != NULL);
}

static void assert_found(void)
{
    size_t count;
    find(0);
    assert_non_null(table);
    assert_string_equal(path, map_path);
    assert_int_equal(perfmap_entries(table, &count)->addr, 0x1000);
    assert_int_equal(findings_lost(&findings), 0);
}

/* All but what was certainly another's is a loss. */
static void assert_refused(enum finding_kind kind, const char *words)
{
    assert_null(table);
    assert_int_equal(findings_lost(&findings), kind == FINDING_MAP_STALE ? 0 : 1);
    assert_int_equal(findings.count[kind], 1);
    assert_non_null(strstr(findings.first[kind], map_path));
    if (!strstr(findings.first[kind], words))
        fail_msg("'%s' does not say '%s'", findings.first[kind], words);
}

static void test_names(void **state)
{
    uint32_t pid;
    (void)state;
    static const char *const wrong[] = {
        "perf-.map",   "perf-12.map.gz", "perf-x.map",
        "perf--1.map", "perf-12",        "perf-4294967296.map",
        "jit-12.dump", "aperf-12.map",   "perf-99999999999999999999.map"};
    assert_true(perf_map_name_pid("perf-12.map", &pid));
    assert_int_equal(pid, 12);
    assert_true(perf_map_name_pid("/a/b.map/perf-4294967295.map", &pid));
    assert_int_equal(pid, UINT32_MAX);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (perf_map_name_pid(wrong[i], &pid))
            fail_msg("%s", wrong[i]);
}

static void test_none_is_nothing_to_tell(void **state)
{
    (void)state;
    find(0);
    assert_null(table);
    search.root = "/dev/null";
    find(0);
    assert_null(table);
    assert_int_equal(findings_lost(&findings), 0);
}

static void test_found_below_the_root_that_is_given(void **state)
{
    (void)state;
    write_map("1000 10 f\n");
    assert_found();
}

static void test_broken_lines_are_told_and_the_rest_is_taken(void **state)
{
    (void)state;
    write_map("rubbish\n1000 10 f\n2000 10\n0x3000 torn");
    find(0);
    assert_non_null(table);
    assert_int_equal(findings.count[FINDING_MAP_LINES], 1);
    assert_non_null(strstr(findings.first[FINDING_MAP_LINES], "3 lines"));
    assert_int_equal(findings.count[FINDING_MAP_NAMES], 0);
}

static void test_rubbish_has_no_names(void **state)
{
    (void)state;
    write_map("rub\nbish\n");
    find(0);
    assert_int_equal(findings.count[FINDING_MAP_LINES], 1);
    assert_int_equal(findings.count[FINDING_MAP_NAMES], 0);
}

/* The runtime did not die, and nothing is lost but the rest of a name. */
static void test_names_with_line_breaks_are_told(void **state)
{
    size_t count;
    (void)state;
    write_map("1000 10 f(\nint,\n\nfacade)\n1010 10 g\n\n");
    find(0);
    assert_non_null(table);
    assert_string_equal(perfmap_entries(table, &count)[0].name, "f(");
    assert_int_equal(count, 2);
    assert_int_equal(findings.count[FINDING_MAP_LINES], 0);
    assert_int_equal(findings.count[FINDING_MAP_NAMES], 1);
    assert_non_null(strstr(findings.first[FINDING_MAP_NAMES], "2 lines go on with a name"));
    assert_int_equal(findings_lost(&findings), 0);
}

static void test_only_regular_files(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(map_path, 0666), 0);
    find(0);
    assert_refused(FINDING_MAP_UNUSABLE, "not a regular file");
}

static void test_no_symbolic_links(void **state)
{
    (void)state;
    write_map("1000 10 f\n");
    char target[112];
    snprintf(target, sizeof target, "%s.target", map_path);
    assert_int_equal(rename(map_path, target), 0);
    assert_int_equal(symlink(target, map_path), 0);
    find(0);
    assert_refused(FINDING_MAP_UNUSABLE, "is a symbolic link");
    assert_int_equal(perf_map_file_read(&table, map_path, &findings), 0); /* by hand: why not */
    remove(target);
}

static void test_too_large(void **state)
{
    (void)state;
    write_map("");
    assert_int_equal(truncate(map_path, ((off_t)256 << 20) + 1), 0);
    find(0);
    assert_refused(FINDING_MAP_UNUSABLE, "larger than 256 MiB");
}

/* Neither root nor who runs this. */
static uid_t stranger(void)
{
    return geteuid() + 1;
}

static void write_strangers_map(void)
{
    write_map("1000 10 f\n");
    give_away(map_path, stranger());
}

static void test_of_a_stranger(void **state)
{
    (void)state;
    char uid[16], no_uid[20], words[32];
    snprintf(uid, sizeof uid, "%u", stranger());
    snprintf(no_uid, sizeof no_uid, "%sx", uid);
    snprintf(words, sizeof words, "belongs to user %s", uid);
    write_strangers_map();
    search.owner = stranger();
    assert_found();
    search.owner = -1;
    setenv("SUDO_UID", uid, 1);
    assert_found();
    setenv("SUDO_UID", no_uid, 1);
    find(0);
    assert_refused(FINDING_MAP_NOT_OURS, words);
}

/* The process, which lives, is the stranger's, and the map was written after it began. */
static void test_of_the_process_s_user(void **state)
{
    (void)state;
    write_strangers_map();
    this_machine.pid = nobody;
    this_machine.live = (struct live_process){.uid = stranger(), .namespace_pid = nobody};
    search.recorded_wall_ns = UINT64_MAX;
    assert_found();
    this_machine.live.uid++;
    find(0);
    assert_refused(FINDING_MAP_NOT_OURS, "who may not be the process's");
}

/* In the container's /tmp, under its pid there. */
static void test_of_a_container(void **state)
{
    (void)state;
    write_map("1000 10 f\n");
    this_machine.pid = nobody + 1;
    this_machine.live =
        (struct live_process){.uid = geteuid(), .namespace_pid = nobody, .other_root = true};
    this_machine.root = scratch;
    search.root = NULL;
    search.recorded_wall_ns = UINT64_MAX;
    assert_int_equal(perf_map_file_find(&table, &path, &search, nobody + 1, 0, &findings), 0);
    assert_non_null(table);
    assert_string_equal(path, map_path);
}

/* This machine's /tmp says nothing of another's process. */
static void test_where_there_is_a_file(void **state)
{
    char here[96];
    (void)state;
    assert_false(perf_map_file_is_there(&search, nobody, 0));
    write_map("1000 10 f\n");
    assert_true(perf_map_file_is_there(&search, nobody, 0));
    assert_false(perf_map_file_is_there(&search, nobody + 1, 0));
    snprintf(here, sizeof here, "/tmp/perf-%" PRIu32 ".map", nobody);
    assert_int_equal(rename(map_path, here), 0);
    search.root = NULL;
    bool on_this_machine = perf_map_file_is_there(&search, nobody, 0);
    strcpy(search.host.name, "another");
    bool on_another = perf_map_file_is_there(&search, nobody, 0);
    assert_int_equal(remove(here), 0);
    assert_true(on_this_machine);
    assert_false(on_another);
}

/* The process began an hour after the map was written, or half a second: clocks are not that exact.
 */
static void test_older_than_the_process(void **state)
{
    struct stat status;
    (void)state;
    write_map("1000 10 f\n");
    assert_int_equal(stat(map_path, &status), 0);
    search.host.has_wall_clock = true;
    search.host.perf_ns = 1000 * NS_PER_S;
    search.host.wall_ns = (uint64_t)status.st_mtim.tv_sec * NS_PER_S;
    find(search.host.perf_ns);
    assert_non_null(table);
    find(search.host.perf_ns + NS_PER_S / 2);
    assert_non_null(table);
    assert_int_equal(findings_lost(&findings), 0);
    assert_true(perf_map_file_is_there(&search, nobody, search.host.perf_ns + NS_PER_S / 2));
    assert_false(perf_map_file_is_there(&search, nobody, search.host.perf_ns + 3600 * NS_PER_S));
    find(search.host.perf_ns + 3600 * NS_PER_S);
    assert_refused(FINDING_MAP_STALE, "is older, by 3");
}

/* That is certain, and a stranger's map only suspicious. */
static void test_older_and_a_strangers(void **state)
{
    (void)state;
    write_strangers_map();
    search.host.has_wall_clock = true;
    search.host.wall_ns = UINT64_C(1) << 62;
    find(1);
    assert_refused(FINDING_MAP_STALE, "is older, by ");
}

static void test_without_a_wall_clock_age_says_nothing(void **state)
{
    (void)state;
    write_map("1000 10 f\n");
    search.host.wall_ns = UINT64_C(1) << 62;
    find(3600 * NS_PER_S);
    assert_non_null(table);
}

/* In /tmp itself, where another machine's pids and clock mean nothing. */
static void test_recorded_elsewhere(void **state)
{
    char below_root[64];
    (void)state;
    search.root = NULL;
    memcpy(below_root, map_path, sizeof below_root);
    snprintf(map_path, sizeof map_path, "/tmp/perf-%" PRIu32 ".map", nobody);
    write_map("1000 10 f\n");
    assert_found();
    strcpy(search.host.name, "elsewhere.invalid");
    search.host.has_wall_clock = true;
    search.host.wall_ns = UINT64_C(1) << 62;
    find(1);
    assert_refused(FINDING_MAP_NOT_OURS, "another machine, 'elsewhere.invalid'");
    remove(map_path);
    memcpy(map_path, below_root, sizeof below_root);
    write_map("1000 10 f\n");
    search.root = scratch; /* that machine's */
    find(0);
    assert_non_null(table);
}

static void test_by_hand(void **state)
{
    (void)state;
    assert_int_equal(perf_map_file_read(&table, map_path, &findings), -1);
    assert_non_null(strstr(findings.failure, "No such file"));
    findings.failure[0] = '\0';
    assert_int_equal(perf_map_file_read(&table, scratch, &findings), -1);
    assert_non_null(strstr(findings.failure, "not a regular file"));
    write_map("1000 10 f\n");
    assert_int_equal(perf_map_file_read(&table, map_path, &findings), 0);
    assert_non_null(table);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_names),
        TEST(test_none_is_nothing_to_tell),
        TEST(test_found_below_the_root_that_is_given),
        TEST(test_broken_lines_are_told_and_the_rest_is_taken),
        TEST(test_names_with_line_breaks_are_told),
        TEST(test_rubbish_has_no_names),
        TEST(test_only_regular_files),
        TEST(test_no_symbolic_links),
        TEST(test_too_large),
        TEST(test_of_a_stranger),
        TEST(test_of_the_process_s_user),
        TEST(test_of_a_container),
        TEST(test_where_there_is_a_file),
        TEST(test_older_than_the_process),
        TEST(test_older_and_a_strangers),
        TEST(test_without_a_wall_clock_age_says_nothing),
        TEST(test_recorded_elsewhere),
        TEST(test_by_hand),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
