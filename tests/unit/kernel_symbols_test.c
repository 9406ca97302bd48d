/* The kernel's list of names: lines as it writes them, and what can't be read. */
#include "injector/native/symbols/kernel_symbols.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/kernel_symbols_test.XXXXXX";

static struct kernel_symbols reading_file(const char *name)
{
    struct kernel_symbols symbols = {0};
    assert_int_equal(kernel_symbols_read(&symbols, name), 0);
    return symbols;
}

static struct kernel_symbols reading(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return reading_file(path);
}

static void has(const struct kernel_symbols *symbols, uint64_t addr, const char *wanted)
{
    const struct kernel_symbol *symbol = kernel_symbols_at(symbols, addr);
    assert_string_equal(symbol ? symbols->text + symbol->name : "none", wanted ? wanted : "none");
}

static void test_lines(void **state)
{
    struct kernel_symbols symbols = reading("0000000000000000 A fixed_percpu_data\n"
                                            "ffffffff81000100 T second\n"
                                            "FFFFFFFF81000000 t _text\n"
                                            "ffffffff81000180 D data\n"
                                            "ffffffff81000200 W weak \n"
                                            "no address\n"
                                            "ffffffff81000300\n"
                                            "ffffffff81000300 T\n"
                                            "ffffffff81000310 T \n"
                                            "ffffffffffffffff T end\n"
                                            "\n"
                                            "ffffffffc0000000 t ext4_map_blocks\t[ext4]\n"
                                            "ffffffffc0000100 w last");
    (void)state;
    has(&symbols, UINT64_C(0xffffffff80ffffff), NULL);
    has(&symbols, UINT64_C(0xffffffff81000000), "_text");
    has(&symbols, UINT64_C(0xffffffff810000ff), "_text");
    has(&symbols, UINT64_C(0xffffffff8100017f), "second");
    has(&symbols, UINT64_C(0xffffffff81000180), NULL);
    has(&symbols, UINT64_C(0xffffffff81000350), "weak");
    assert_int_equal(symbols.count, 5); /* data is none */
    has(&symbols, UINT64_C(0xffffffffc0000010), "ext4_map_blocks");
    has(&symbols, UINT64_C(0xffffffffc0000100), "last");
    kernel_symbols_free(&symbols);
}

/* Every symbol ends the one in front, but for values that are no addresses.  The last one of a
 * section ends with the page behind it. */
static void test_ends(void **state)
{
    struct kernel_symbols symbols = reading("ffffffff81000000 T _text\n"
                                            "ffffffff81000080 A size_of_something\n"
                                            "ffffffff81000100 T last\n"
                                            "ffffffff81000100 t alias\n"
                                            "ffffffff81003000 T _etext\n"
                                            "ffffffff81203000 T _sinittext\n"
                                            "ffffffff81204010 t _einittext\n"
                                            "ffffffffc0000000 t in_a\t[a]\n"
                                            "ffffffffc0000010 t last_of_a\t[a]\n"
                                            "ffffffffc0001800 t in_b\t[b]\n"
                                            "ffffffffc0001900 d data_of_b\t[b]\n"
                                            "ffffffffc0001a00 t last_of_b\t[b]\n"
                                            "ffffffffc0200000 t bpf_prog_1_a\t[bpf]\n"
                                            "fffffffffffffff0 t last_of_all\n");
    (void)state;
    has(&symbols, UINT64_C(0xffffffff81000080), "_text");
    has(&symbols, UINT64_C(0xffffffff81002fff), "alias");
    has(&symbols, UINT64_C(0xffffffff81003fff), "_etext");
    has(&symbols, UINT64_C(0xffffffff81004000), NULL);
    has(&symbols, UINT64_C(0xffffffff81204fff), "_einittext");
    has(&symbols, UINT64_C(0xffffffff81205fff), "_einittext");
    has(&symbols, UINT64_C(0xffffffff81206000), NULL);
    has(&symbols, UINT64_C(0xffffffffc000000f), "in_a");
    has(&symbols, UINT64_C(0xffffffffc00017ff), "last_of_a");
    has(&symbols, UINT64_C(0xffffffffc00018ff), "in_b");
    has(&symbols, UINT64_C(0xffffffffc0001900), NULL);
    has(&symbols, UINT64_C(0xffffffffc0002fff), "last_of_b");
    has(&symbols, UINT64_C(0xffffffffc0003000), NULL);
    has(&symbols, UINT64_C(0xffffffffc0200fff), "bpf_prog_1_a");
    has(&symbols, UINT64_C(0xffffffffc0201000), NULL);
    has(&symbols, UINT64_C(0xfffffffffffffffe), "last_of_all");
    kernel_symbols_free(&symbols);
}

static void test_modules(void **state)
{
    struct kernel_symbols symbols = reading("ffffffff81000000 T _text\n"
                                            "ffffffffc0000000 t in_a\t[a]\n"
                                            "ffffffffc0000010 t last_of_a [a] \n"
                                            "ffffffffc0001800 t in_b\t[b]\n");
    (void)state;
    assert_int_equal(symbols.items[0].module, 0);
    assert_string_equal(symbols.text + symbols.items[2].module, "[a]");
    assert_ptr_equal(kernel_symbols_first(&symbols, &symbols.items[2]), &symbols.items[1]);
    assert_ptr_equal(kernel_symbols_first(&symbols, &symbols.items[3]), &symbols.items[3]);
    assert_ptr_equal(kernel_symbols_before(&symbols, UINT64_MAX), &symbols.items[3]);
    assert_null(kernel_symbols_before(&symbols, UINT64_C(0xffffffff80ffffff)));
    kernel_symbols_free(&symbols);
}

/* Where the kernel hides its addresses. */
static void test_hidden(void **state)
{
    struct kernel_symbols symbols =
        reading("0000000000000000 T _text\n0000000000000000 T second\n");
    (void)state;
    has(&symbols, UINT64_MAX, NULL);
    kernel_symbols_free(&symbols);
}

/* A list as large as a disk, none of which is there. */
static void test_a_list_that_is_too_large(void **state)
{
    struct kernel_symbols symbols = reading("ffffffff81000000 T _text\n");
    (void)state;
    has(&symbols, UINT64_C(0xffffffff81000000), "_text");
    kernel_symbols_free(&symbols);
    assert_int_equal(truncate(path, (off_t)1 << 40), 0);
    symbols = reading_file(path);
    has(&symbols, UINT64_C(0xffffffff81000000), NULL);
    kernel_symbols_free(&symbols);
}

static void test_what_can_not_be_read(void **state)
{
    static const char *const paths[] = {"/no/such/file", "/tmp", path, "/dev/zero"};
    (void)state;
    unlink(path); /* to open it waits for who writes */
    assert_int_equal(mkfifo(path, 0600), 0);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct kernel_symbols symbols = reading_file(paths[i]);
        has(&symbols, UINT64_MAX, NULL);
        kernel_symbols_free(&symbols);
    }
    unlink(path);
    struct kernel_symbols empty = reading("");
    has(&empty, UINT64_MAX, NULL);
    kernel_symbols_free(&empty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lines),
                                       cmocka_unit_test(test_ends),
                                       cmocka_unit_test(test_modules),
                                       cmocka_unit_test(test_hidden),
                                       cmocka_unit_test(test_a_list_that_is_too_large),
                                       cmocka_unit_test(test_what_can_not_be_read)};
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    int result = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return result;
}
