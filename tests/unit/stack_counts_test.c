/* What is said about stacks: how large their copies would have had to be. */
#include "injector/unwind/stacks/stack_counts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { FIRST = 7, SECOND = 8 };

/* What a thread's samples say, one after the other: a whole stack of TOP, or one cut at SP. */
struct seen {
    uint64_t thread;
    enum stack_end end;
    uint64_t addr;
};

static uint64_t size_of(const struct seen *seen, size_t count)
{
    struct stack_counts counts = {0};
    for (size_t i = 0; i < count; i++) {
        const struct stack_walker walker = {.sp = seen[i].addr, .cfa = seen[i].addr};
        assert_int_equal(stack_counts_add(&counts, &walker, seen[i].thread, seen[i].end), 0);
    }
    uint64_t size = stack_counts_size(&counts);
    stack_counts_free(&counts);
    return size;
}

#define SIZE_OF(...)                                                                               \
    size_of((const struct seen[]){__VA_ARGS__},                                                    \
            sizeof(struct seen[]){__VA_ARGS__} / sizeof(struct seen))

static void copies_of_the_deepest_thread(void **state)
{
    (void)state;
    assert_int_equal(SIZE_OF({FIRST, STACK_WHOLE, 0x7000f000}, {FIRST, STACK_CUT, 0x70005000},
                             {SECOND, STACK_CUT, 0x50001000}, {SECOND, STACK_WHOLE, 0x50002000}),
                     0xa000);
    assert_int_equal(SIZE_OF({FIRST, STACK_CUT, 0x7000effe}, {FIRST, STACK_WHOLE, 0x7000f000}),
                     1024);
}

static void nothing_whole_says_nothing(void **state)
{
    (void)state;
    assert_int_equal(SIZE_OF({FIRST, STACK_CUT, 0x70005000}, {SECOND, STACK_WHOLE, 0x70008000}), 0);
}

/* An exec gives a process another stack, gigabytes away: both are a thread of the same number. */
static void stacks_of_one_thread_are_not_one(void **state)
{
    (void)state;
    const uint64_t before = 0x7fff10000000, after = 0x7ffd80000000;
    assert_int_equal(SIZE_OF({FIRST, STACK_WHOLE, before}, {FIRST, STACK_CUT, after - 0x9000}), 0);
    assert_int_equal(SIZE_OF({FIRST, STACK_WHOLE, before}, {FIRST, STACK_CUT, after - 0x9000},
                             {FIRST, STACK_WHOLE, after}),
                     0x9000);
    assert_int_equal(SIZE_OF({FIRST, STACK_CUT, before - 0x4000}, {FIRST, STACK_WHOLE, after},
                             {FIRST, STACK_CUT, after - 0x2000}),
                     0x2000);
    assert_int_equal(SIZE_OF({FIRST, STACK_WHOLE, before}, {FIRST, STACK_CUT, before - 0x8000},
                             {FIRST, STACK_WHOLE, after}, {FIRST, STACK_CUT, after - 0x2000}),
                     0x8000);
}

static void a_stack_without_bytes_needs_no_larger_copy(void **state)
{
    (void)state;
    assert_int_equal(SIZE_OF({FIRST, STACK_WHOLE, 0x7000f000}, {FIRST, STACK_EMPTY, 0x70005000}),
                     0);
}

static void no_size_is_advised_that_was_used(void **state)
{
    const struct stack_walker whole = {.cfa = 0x7000fff0}, cut = {.sp = 0x70000000};
    struct stack_counts counts = {.copied_bytes = 65528};
    char *text = NULL;
    size_t bytes;
    (void)state;
    assert_int_equal(stack_counts_add(&counts, &whole, FIRST, STACK_WHOLE), 0);
    assert_int_equal(stack_counts_add(&counts, &cut, FIRST, STACK_CUT), 0);
    assert_int_equal(stack_counts_add(&counts, &cut, FIRST, STACK_EMPTY), 0);
    assert_int_equal(stack_counts_size(&counts), 0);
    FILE *stream = open_memstream(&text, &bytes);
    stack_counts_print(&counts, NULL, false, stream);
    fclose(stream);
    assert_string_equal(
        text, "perfjit: 3 stacks unwound: 1 whole, 1 cut by the size of the copy, 0 ended at code "
              "without usable tables\n"
              "perfjit:     1 with no bytes of the stack: its page was not present; no size of "
              "the copy changes that\n");
    free(text);
    counts.copied_bytes = 65512;
    assert_int_equal(stack_counts_size(&counts), 65536);
    stack_counts_free(&counts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_of_the_deepest_thread),
        cmocka_unit_test(nothing_whole_says_nothing),
        cmocka_unit_test(stacks_of_one_thread_are_not_one),
        cmocka_unit_test(a_stack_without_bytes_needs_no_larger_copy),
        cmocka_unit_test(no_size_is_advised_that_was_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
