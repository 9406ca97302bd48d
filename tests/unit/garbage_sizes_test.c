/* Structs that say their size: one that was never set is refused, and what lies behind the struct
 * is not looked at.  Each struct ends where its page does, and the next page can't be read. */
#include "tests/unit/either_library.h"

#include <sys/mman.h>

static const size_t garbage[] = {
    4097, 5000, 65536, 0x41414141, INT32_MAX, UINT32_MAX, SIZE_MAX / 2, SIZE_MAX - 7, SIZE_MAX,
};
enum { GARBAGE = sizeof garbage / sizeof *garbage };

static char *guarded_page;
static size_t page_bytes;

static int make_guarded_page(void **state)
{
    (void)state;
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    guarded_page =
        mmap(NULL, 2 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return guarded_page == MAP_FAILED ? -1 : mprotect(guarded_page + page_bytes, page_bytes, 0);
}

static int remove_guarded_page(void **state)
{
    (void)state;
    return munmap(guarded_page, 2 * page_bytes);
}

/* A copy of the BYTES at DATA that ends where the page does. */
static void *at_the_end(const void *data, size_t bytes)
{
    return memcpy(guarded_page + page_bytes - bytes, data, bytes);
}

static int open_of_size(void **handle, size_t size)
{
    struct jitdump_options dump_options = JITDUMP_OPTIONS_INIT;
    struct perfmap_options map_options = PERFMAP_OPTIONS_INIT;
    dump_options.size = map_options.size = size;
    dump_options.dir = map_options.dir = dir;
    if (library == &libraries[0])
        return jitdump_open((struct jitdump **)handle,
                            at_the_end(&dump_options, sizeof dump_options));
    return perfmap_open((struct perfmap **)handle, at_the_end(&map_options, sizeof map_options));
}

static void test_options(void **state)
{
    (void)state;
    for (size_t i = 0; i < GARBAGE; i++) {
        void *handle;
        assert_int_equal(open_of_size(&handle, garbage[i]), -EINVAL);
        assert_non_null(strstr(library->error(handle), "size"));
        assert_int_equal(library->close(handle), -EINVAL);
    }
}

static void test_jitdump_code(void **state)
{
    struct jitdump *dump = opened();
    (void)state;
    for (size_t i = 0; i < GARBAGE; i++) {
        struct jitdump_code code = JITDUMP_CODE_INIT;
        uint64_t code_index = 0;
        code.size = garbage[i];
        assert_int_equal(jitdump_add_code(dump, at_the_end(&code, sizeof code), &code_index),
                         -EINVAL);
        assert_int_equal(code_index, JITDUMP_NO_CODE);
    }
    assert_int_equal(jitdump_lost(dump), GARBAGE);
    assert_non_null(strstr(jitdump_error(dump), "size"));
    assert_int_equal(jitdump_close(dump), -EINVAL);
}

/* As large as a later version's may be. */
static void test_the_largest_that_can_be(void **state)
{
    static char bytes[4096];
    struct perfmap_options map_options = PERFMAP_OPTIONS_INIT;
    struct jitdump_options dump_options = JITDUMP_OPTIONS_INIT;
    struct jitdump *dump;
    struct perfmap *map;
    (void)state;
    map_options.size = dump_options.size = sizeof bytes;
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, &map_options, sizeof map_options);
    assert_int_equal(perfmap_open(&map, at_the_end(bytes, sizeof bytes)), 0);
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, &dump_options, sizeof dump_options);
    assert_int_equal(jitdump_open(&dump, at_the_end(bytes, sizeof bytes)), 0);
    assert_null(dump);
    assert_null(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BOTH(test_options),
        WITH(0, test_jitdump_code),
        WITH(1, test_the_largest_that_can_be),
    };
    return cmocka_run_group_tests(tests, make_guarded_page, remove_guarded_page);
}
