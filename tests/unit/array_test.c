/* Memory that is prepared for arrays to come: in large pages, whatever of the heap it is. */
#include "injector/arrays/array.h"

#include "tests/unit/scratch.h"

#include <inttypes.h>
#include <limits.h>

enum { EXPECTED_BYTES = 28 << 20, ARRAY_BYTES = 6 << 20, LARGE_PAGE_BYTES = 2 << 20 };

/* Whether the kernel was asked for large pages at ADDR: "hg" among the flags of its mapping. */
static bool is_asked_for(const unsigned char *addr)
{
    FILE *maps = fopen("/proc/self/smaps", "re");
    char line[512];
    uint64_t start, end, wanted = (uintptr_t)addr;
    bool here = false, asked = false;
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &start, &end) == 2)
            here = start <= wanted && wanted < end;
        if (here && strncmp(line, "VmFlags:", 8) == 0)
            asked = strstr(line, " hg") != NULL;
    }
    fclose(maps);
    return asked;
}

static bool kernel_has_large_pages(void)
{
    void *room = mmap(NULL, LARGE_PAGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(room, MAP_FAILED);
    bool has = madvise(room, LARGE_PAGE_BYTES, MADV_HUGEPAGE) == 0;
    munmap(room, LARGE_PAGE_BYTES);
    return has;
}

static void test_the_heap_is_prepared_for_arrays_to_come(void **state)
{
    (void)state;
    const bool large_pages =
        kernel_has_large_pages();                /* where it has none, the heap is as it was */
    mallopt(M_MMAP_THRESHOLD, HEAP_BLOCK_BYTES); /* as main.c does */
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    arrays_expect(EXPECTED_BYTES);
    unsigned char *arrays[EXPECTED_BYTES / ARRAY_BYTES];
    for (size_t i = 0; i < EXPECTED_BYTES / ARRAY_BYTES; i++) {
        arrays[i] = malloc(ARRAY_BYTES);
        assert_non_null(arrays[i]);
#ifndef ARRAY_GUARDED /* AddressSanitizer has a heap of its own */
        assert_int_equal(is_asked_for(arrays[i] + ARRAY_BYTES / 2), large_pages);
#else
        (void)large_pages;
#endif
    }
    unsigned char *larger = malloc(HEAP_BLOCK_BYTES + 1);
    assert_non_null(larger);
    assert_false(is_asked_for(larger + HEAP_BLOCK_BYTES / 2)); /* a mapping of its own again */
    free(larger);
    for (size_t i = 0; i < EXPECTED_BYTES / ARRAY_BYTES; i++)
        free(arrays[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_heap_is_prepared_for_arrays_to_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
