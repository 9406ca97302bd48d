/* Sorting digit by digit, against a sort that keeps equal items in order. */
#include "injector/arrays/digit_sort.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MOST = 3000, ROUNDS = 60 };

struct item {
    uint64_t key, place;
};

static int compare(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* Keys of few or many bits, anywhere in the 64. */
static uint64_t random_key(unsigned bits, unsigned shift)
{
    uint64_t key = (uint64_t)random() << 33 ^ (uint64_t)random();
    return (bits < 64 ? key & ((UINT64_C(1) << bits) - 1) : key) << shift;
}

static void test_as_a_stable_sort(void **state)
{
    static struct item items[MOST], wanted[MOST];
    (void)state;
    srandom(1);
    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t count = round < 3 ? round : (size_t)random() % MOST;
        unsigned bits = (unsigned)random() % 64 + 1, shift = (unsigned)random() % (65 - bits);
        for (size_t i = 0; i < count; i++)
            wanted[i] = items[i] = (struct item){random_key(bits, shift), i};
        qsort(wanted, count, sizeof *wanted, compare);
        assert_int_equal(digit_sort(items, count, sizeof *items), 0);
        assert_memory_equal(items, wanted, count * sizeof *items);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_a_stable_sort)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
