/* How much stack the perf map writer takes, as perfmap.h promises: a runtime's threads may have
 * little, and a handler's stack may be MINSIGSTKSZ.  Each call runs on a stack of its own, which
 * was painted before.
 *
 * Measured is the library as it is shipped: AddressSanitizer's frames are larger.  The program is
 * linked with -z now, for the dynamic linker takes some KiB of a caller's stack when it binds a
 * function.
 */
#include "tests/unit/perfmap_test.h"
#include "tests/unit/stack_use.h"

#include <sys/resource.h>

enum {
    OPEN_BYTES = 4096, /* the promises */
    LINE_BYTES = 1536,
    LONG_LINE_BYTES = 5632,
    CHILDS_FIRST_BYTES = 2048 /* more */
};

static struct perfmap *called_map;
static const char *called_name;
static int result;

static void add_here(void)
{
    result = perfmap_add(called_map, 0x7f0000001000, 0x100, called_name);
}

/* What is printed may go to a file, too. */
static void add_at_size_limit(void)
{
    const struct rlimit small = {10, RLIM_INFINITY}, none = {RLIM_INFINITY, RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    add_here();
    CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
}

static void open_here(void)
{
    result = try_open(&called_map);
}

static void add_in_each_way(const char *who, size_t first_bytes)
{
    char what[64], name[5000];
    snprintf(what, sizeof what, "%s, the first line", who);
    called_name = "fib";
    check_stack(add_here, first_bytes, what);
    CHECK(result == 0);
    snprintf(what, sizeof what, "%s, a line", who);
    check_stack(add_here, LINE_BYTES, what);
    CHECK(result == 0);
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    called_name = name;
    snprintf(what, sizeof what, "%s, a long name", who);
    check_stack(add_here, LONG_LINE_BYTES, what);
    CHECK(result == 0);
}

static void child_measures(struct perfmap *map)
{
    (void)map;
    check_stack(open_here, OPEN_BYTES, "perfmap_open");
    CHECK(result == 0);
    add_in_each_way("a process", LINE_BYTES);
    if (fork() == 0) {
        add_in_each_way("a child", LINE_BYTES + CHILDS_FIRST_BYTES);
        _exit(0);
    }
    int status;
    CHECK(wait(&status) > 0 && status == 0);
    const struct rlimit near = {200000, RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_FSIZE, &near) == 0);
    check_stack(add_here, LONG_LINE_BYTES, "near the size limit");
    CHECK(result == 0);
    called_name = "fib";
    check_stack(add_at_size_limit, LINE_BYTES, "the first error");
    CHECK(result == -EFBIG && *perfmap_error(called_map));
}

static void test_stack_use(void **state)
{
    (void)state;
    if (is_sanitized)
        skip();
    assert_int_equal(run_in_child(child_measures, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_stack_use)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
