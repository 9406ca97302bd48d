/* How much stack libjitunwind takes, as jitunwind.h promises: a crash handler runs on an alternate
 * stack, which somebody has to make large enough.  Each call runs on a stack of its own, which was
 * painted before.
 */
#include "jitunwind/jitunwind.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/child.h"
#include "tests/unit/stack_use.h"

enum { BACKTRACE_BYTES = 4096, CRASH_BYTES = 20 << 10 }; /* the promises */
enum { DEPTH = 300, MOST = 400 };

static struct jitunwind_frame frames[MOST];
static size_t frame_count;
static ucontext_t deep;
static int null_fd, result;

static void walk_own(void)
{
    frame_count = jitunwind_backtrace(NULL, frames, MOST, 0);
}

static void walk_deep(void)
{
    frame_count = jitunwind_backtrace(&deep, frames, MOST, JITUNWIND_SCAN);
}

static void print_deep(void)
{
    result = jitunwind_print_crash(null_fd, &deep);
}

static void measure(void)
{
    CHECK(getcontext(&deep) == 0);
    check_stack(walk_own, BACKTRACE_BYTES, "a backtrace of its own stack");
    CHECK(frame_count >= 2);
    check_stack(walk_deep, BACKTRACE_BYTES, "a backtrace of another, all ways");
    CHECK(frame_count > DEPTH);
    check_stack(print_deep, CRASH_BYTES, "a crash report");
    CHECK(result == 0);
}

__attribute__((noinline, noclone)) static unsigned descend(unsigned depth)
{
    if (depth == 0)
        measure();
    else
        depth += descend(depth - 1);
    __asm__ volatile("" : "+r"(depth)); /* no tail call */
    return depth;
}

static void test_promises(void **state)
{
    struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
    struct jitunwind *arena;
    (void)state;
    if (is_sanitized) { /* its frames are larger */
        printf("# measured of the library as it is shipped alone\n");
        return;
    }
    options.start = 0x10000000;
    options.bytes = 1 << 20;
    assert_int_equal(jitunwind_open(&arena, &options), 0);
    null_fd = open("/dev/null", O_WRONLY);
    assert_true(null_fd >= 0);
    descend(DEPTH);
    close(null_fd);
    jitunwind_close(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_promises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
