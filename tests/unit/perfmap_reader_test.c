/* The perf map reader: what it accepts, what it counts as bad, and which line owns an address. */
#include "perfmap/perfmap.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- Helpers ---- */

static struct perfmap_table *parse(const char *text)
{
    struct perfmap_table *table;
    assert_int_equal(perfmap_parse(&table, text, strlen(text)), 0);
    return table;
}

static void assert_entry(const struct perfmap_entry *entry, uint64_t addr, uint64_t size_bytes,
                         const char *name)
{
    assert_non_null(entry);
    assert_int_equal(entry->addr, addr);
    assert_int_equal(entry->size_bytes, size_bytes);
    assert_string_equal(entry->name, name);
}

/* TEXT is one good line that says 1000 40 NAME. */
static void assert_good(const char *text, const char *name)
{
    struct perfmap_table *table = parse(text);
    size_t count;
    const struct perfmap_entry *entries = perfmap_entries(table, &count);
    assert_int_equal(perfmap_bad_lines(table), 0);
    assert_int_equal(count, 1);
    assert_entry(entries, 0x1000, 0x40, name);
    perfmap_free(table);
}

static void assert_counts_bytes(const char *text, size_t text_bytes, size_t good, size_t bad)
{
    struct perfmap_table *table;
    size_t count;
    assert_int_equal(perfmap_parse(&table, text, text_bytes), 0);
    perfmap_entries(table, &count);
    assert_int_equal(count, good);
    assert_int_equal(perfmap_bad_lines(table), bad);
    perfmap_free(table);
}

static void assert_counts(const char *text, size_t good, size_t bad)
{
    assert_counts_bytes(text, strlen(text), good, bad);
}

/* The table of TEXT, written as "addr size name line, ..." in hex. */
static void assert_table(const char *text, const char *expected)
{
    char found[512];
    size_t count, length = 0;
    struct perfmap_table *table = parse(text);
    const struct perfmap_entry *entries = perfmap_entries(table, &count);
    found[0] = '\0';
    for (size_t i = 0; i < count; i++)
        length +=
            (size_t)snprintf(found + length, sizeof found - length, "%s%jx %jx %s %zu",
                             i ? ", " : "", (uintmax_t)entries[i].addr,
                             (uintmax_t)entries[i].size_bytes, entries[i].name, entries[i].line);
    assert_string_equal(found, expected);
    perfmap_free(table);
}

/* ---- Lines ---- */

static void test_accepts_what_producers_write(void **state)
{
    (void)state;
    assert_good("1000 40 fib\n", "fib");
    assert_good("0000000000001000 0000000000000040 fib\n", "fib");
    assert_good("00000000000000001000 40 fib\n", "fib");
    assert_good("0x1000 40 fib\n", "fib");
    assert_good("1000 0x40 fib\n", "fib");
    assert_good("0X1000 0x00040 fib\n", "fib");
    assert_good("  1000\t40\tfib\n", "fib");
    assert_good("1000  40 fib\n", "fib");
    assert_good("1000 40 py::main loop:/a b/c.py\n", "py::main loop:/a b/c.py");
    assert_good("1000 40 f\n", "f");
    assert_good("1000 40 fib\r\n", "fib");
    assert_good("1000 40 fib\r", "fib");
    assert_good("1000 40 \xc3\xa4\xe2\x82\xac\n", "\xc3\xa4\xe2\x82\xac");
    assert_good("1000 40  fib \n", " fib ");
    assert_good("1000 40 a\rb\n", "a\rb");
}

static void test_takes_torn_last_line(void **state)
{
    (void)state;
    assert_good("1000 40 fi", "fi");
    assert_good("1000 40 f", "f");
    assert_counts("1000 40 ", 0, 1);
    assert_counts("1000 40", 0, 1);
    assert_counts("1000 ", 0, 1);
    assert_counts("1000", 0, 1);
    assert_counts("1", 0, 1);
    assert_counts("1000 40 fib\n2000 4", 1, 1);
}

static void test_upper_case_digits(void **state)
{
    (void)state;
    assert_table("ABCDEF AB x\n", "abcdef ab x 1");
}

static void test_empty_lines_are_silent(void **state)
{
    (void)state;
    assert_counts("", 0, 0);
    assert_counts("\n\n\r\n\r", 0, 0);
    assert_table("\n1000 40 a\n\r\n2000 40 b\n\n", "1000 40 a 2, 2000 40 b 4");
}

static void test_counts_malformed_lines(void **state)
{
    static const char *const bad[] = {
        " \n",
        "fib\n",
        "1000 40\n",
        "1000 40 \n",
        "1000 40 \r\n",
        "1000 fib\n",
        "0x 40 fib\n",
        "1000 0x fib\n",
        "0x0x1000 40 fib\n",
        "-1000 40 fib\n",
        "+1000 40 fib\n",
        "1000,40,fib\n",
        "1000-1040 fib\n",
        "g000 40 fib\n",
        "1000 40fib\n",
        "10000000000000000 40 fib\n", /* 65 bits */
        "1000 fffffffffffffffff fib\n",
        "fffffffffffff000 1001 fib\n", /* one byte past the last address */
        "1 ffffffffffffffff1 fib\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_counts(bad[i], 0, 1);
    assert_counts("bad\n1000 40 good\nalso bad\n", 1, 2);
}

static void test_nul_makes_a_line_bad(void **state)
{
    (void)state;
    assert_counts_bytes("1000 40 f\0b\n2000 40 ok\n", 23, 1, 1);
    assert_counts_bytes("1000 40 ok\n\0\0\0\0\0\0\0\0", 19, 1, 1);
    assert_counts_bytes("1000\0 40 fib\n", 13, 0, 1);
    assert_counts_bytes("\0", 1, 0, 1);
}

/* Whatever the text is cut to, parsing stays inside of it (AddressSanitizer looks on). */
static void test_every_prefix(void **state)
{
    static const char text[] = "0x7f00 0x10 main loop\r\n\n7f10 0 x\nbad\n7f08 10 tail";
    (void)state;
    for (size_t length = 0; length < sizeof text; length++) {
        struct perfmap_table *table;
        char *exact = malloc(length ? length : 1);
        memcpy(exact, text, length);
        assert_int_equal(perfmap_parse(&table, exact, length), 0);
        free(exact);
        perfmap_free(table);
    }
}

static void test_address_space_ends(void **state)
{
    (void)state;
    assert_table("fffffffffffff000 1000 top\n", "fffffffffffff000 1000 top 1");
    assert_table("0 ffffffffffffffff all\nffffffffffffffff 1 last\n",
                 "0 ffffffffffffffff all 1, ffffffffffffffff 1 last 2");
    assert_table("1 ffffffffffffffff all\n8000000000000000 0 mid\n",
                 "1 7fffffffffffffff all 1, 8000000000000000 0 mid 2, "
                 "8000000000000001 7fffffffffffffff all 1");
    assert_table("ffffffffffffffff 0 zero\n", "ffffffffffffffff 0 zero 1");
    struct perfmap_table *table = parse("fffffffffffff000 1000 top\n");
    assert_non_null(perfmap_find(table, UINT64_MAX));
    assert_null(perfmap_find(table, 0));
    perfmap_free(table);
}

/* ---- Overlaps ---- */

static void test_last_line_wins(void **state)
{
    (void)state;
    assert_table("1000 40 old\n1000 40 new\n", "1000 40 new 2");
    assert_table("1000 40 old\n1000 80 new\n", "1000 80 new 2");
    assert_table("1000 40 old\nfff 42 new\n", "fff 42 new 2");
}

static void test_overlap_takes_that_part(void **state)
{
    (void)state;
    assert_table("1000 40 old\n1020 40 new\n", "1000 20 old 1, 1020 40 new 2");
    assert_table("1020 40 old\n1000 40 new\n", "1000 40 new 2, 1040 20 old 1");
    assert_table("1000 40 old\n1000 20 new\n", "1000 20 new 2, 1020 20 old 1");
    assert_table("1000 40 old\n1010 10 new\n", "1000 10 old 1, 1010 10 new 2, 1020 20 old 1");
    assert_table("1000 20 a\n1020 20 b\n", "1000 20 a 1, 1020 20 b 2");
}

static void test_pieces_of_one_line_are_joined(void **state)
{
    (void)state;
    assert_table("1010 10 hidden\n1020 8 too\n1000 40 over\n", "1000 40 over 3");
    assert_table("1000 20 same\n1020 20 same\n", "1000 20 same 1, 1020 20 same 2");
}

static void test_zero_size(void **state)
{
    (void)state;
    assert_table("1000 0 stub\n", "1000 0 stub 1");
    assert_table("1000 0 old\n1000 0 new\n", "1000 0 new 2");
    assert_table("1010 0 stub\n1000 40 over\n", "1000 40 over 2");
    assert_table("1000 0 stub\n1000 40 over\n", "1000 40 over 2");
    assert_table("1000 40 under\n1010 0 stub\n", "1000 10 under 1, 1010 0 stub 2, 1011 2f under 1");
    assert_table("1000 40 before\n1040 0 stub\n", "1000 40 before 1, 1040 0 stub 2");
    struct perfmap_table *table = parse("1000 0 stub\n");
    assert_entry(perfmap_find(table, 0x1000), 0x1000, 0, "stub");
    assert_null(perfmap_find(table, 0x1001));
    assert_null(perfmap_find(table, 0xfff));
    perfmap_free(table);
}

enum { MODEL_ADDRESSES = 64, MODEL_LINES = 24 };

/* Write up to MODEL_LINES random lines, and into OWNER the line that owns each address by the rule
 * that the last one wins. */
static void random_lines(char *text, size_t text_bytes, size_t owner[MODEL_ADDRESSES])
{
    size_t lines = 1 + (size_t)rand() % MODEL_LINES, length = 0;
    memset(owner, 0, MODEL_ADDRESSES * sizeof *owner);
    text[0] = '\0';
    for (size_t line = 1; line <= lines; line++) {
        size_t addr = (size_t)rand() % MODEL_ADDRESSES;
        size_t size = rand() % 4 ? (size_t)rand() % 12 : (size_t)rand() % MODEL_ADDRESSES;
        size_t end = addr + (size ? size : 1);
        for (size_t at = addr; at < end && at < MODEL_ADDRESSES; at++)
            owner[at] = line;
        length += (size_t)snprintf(text + length, text_bytes - length, "%zx %zx n%zu\n", addr, size,
                                   line);
    }
}

static void assert_sorted_and_apart(const struct perfmap_table *table)
{
    size_t count;
    const struct perfmap_entry *entries = perfmap_entries(table, &count);
    for (size_t i = 1; i < count; i++) {
        const struct perfmap_entry *a = &entries[i - 1], *b = &entries[i];
        uint64_t end = a->addr + (a->size_bytes ? a->size_bytes : 1);
        assert_true(end <= b->addr);
        assert_false(a->line == b->line && end == b->addr);
    }
}

static void test_random_overlaps_against_a_model(void **state)
{
    char text[MODEL_LINES * 16], name[24];
    size_t owner[MODEL_ADDRESSES];
    (void)state;
    srand(1);
    for (int round = 0; round < 20000; round++) {
        random_lines(text, sizeof text, owner);
        struct perfmap_table *table = parse(text);
        assert_sorted_and_apart(table);
        for (size_t addr = 0; addr < MODEL_ADDRESSES; addr++) {
            const struct perfmap_entry *entry = perfmap_find(table, addr);
            assert_int_equal(entry ? entry->line : 0, owner[addr]);
            snprintf(name, sizeof name, "n%zu", owner[addr]);
            if (entry)
                assert_string_equal(entry->name, name);
        }
        perfmap_free(table);
    }
}

/* ---- Find ---- */

static void test_find(void **state)
{
    struct perfmap_table *table = parse("3000 10 c\n1000 10 a\n2000 10 b\n");
    (void)state;
    assert_null(perfmap_find(table, 0xfff));
    assert_entry(perfmap_find(table, 0x1000), 0x1000, 0x10, "a");
    assert_entry(perfmap_find(table, 0x100f), 0x1000, 0x10, "a");
    assert_null(perfmap_find(table, 0x1010));
    assert_entry(perfmap_find(table, 0x2008), 0x2000, 0x10, "b");
    assert_entry(perfmap_find(table, 0x300f), 0x3000, 0x10, "c");
    assert_null(perfmap_find(table, 0x3010));
    assert_null(perfmap_find(table, UINT64_MAX));
    assert_int_equal(perfmap_find(table, 0x1000)->line, 2);
    perfmap_free(table);
}

static void test_empty_and_null(void **state)
{
    struct perfmap_table *table;
    size_t count = 1;
    (void)state;
    assert_int_equal(perfmap_parse(&table, NULL, 0), 0);
    assert_null(perfmap_find(table, 0));
    perfmap_entries(table, &count);
    assert_int_equal(count, 0);
    perfmap_free(table);
    perfmap_free(NULL);
    assert_null(perfmap_find(NULL, 0));
    assert_null(perfmap_entries(NULL, &count));
    assert_int_equal(perfmap_bad_lines(NULL), 0);
    assert_int_equal(perfmap_parse(&table, NULL, 1), -EINVAL);
    assert_null(table);
}

/* The length is judged before a byte is read or copied. */
static void test_over_a_gib_is_efbig(void **state)
{
    struct perfmap_table *table;
    (void)state;
    assert_int_equal(perfmap_parse(&table, "", ((size_t)1 << 30) + 1), -EFBIG);
    assert_null(table);
}

static void test_parse_copies_its_text(void **state)
{
    char text[] = "1000 40 fib\n";
    struct perfmap_table *table = parse(text);
    (void)state;
    memset(text, 'x', sizeof text - 1);
    assert_entry(perfmap_find(table, 0x1000), 0x1000, 0x40, "fib");
    perfmap_free(table);
}

/* ---- Files ---- */

static char scratch[] = "/tmp/perfmap_reader_test.XXXXXX";
static char file_path[sizeof scratch + 16];

static int make_scratch(void **state)
{
    (void)state;
    if (!mkdtemp(scratch))
        return -1;
    snprintf(file_path, sizeof file_path, "%s/a.map", scratch);
    return 0;
}

static int remove_scratch(void **state)
{
    (void)state;
    return rmdir(scratch);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(file_path);
}

static void write_file(const char *text)
{
    FILE *file = fopen(file_path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* perfmap_read fails with ERROR and a text that has the path and WORD. */
static void assert_read_fails(const char *path, int error, const char *word)
{
    char text[256] = "";
    struct perfmap_table *table = (struct perfmap_table *)text;
    assert_int_equal(perfmap_read(&table, path, text, sizeof text), error);
    assert_null(table);
    assert_non_null(strstr(text, path));
    assert_non_null(strstr(text, word));
}

static void test_reads_a_file(void **state)
{
    struct perfmap_table *table;
    char text[64] = "old text";
    (void)state;
    write_file("1000 40 fib\nbad\n2000 40 torn na");
    assert_int_equal(perfmap_read(&table, file_path, text, sizeof text), 0);
    assert_string_equal(text, "");
    assert_entry(perfmap_find(table, 0x103f), 0x1000, 0x40, "fib");
    assert_entry(perfmap_find(table, 0x2000), 0x2000, 0x40, "torn na");
    assert_int_equal(perfmap_bad_lines(table), 1);
    perfmap_free(table);
}

static void test_error_text_is_optional_and_bounded(void **state)
{
    struct perfmap_table *table;
    char text[8] = "1234567";
    (void)state;
    assert_int_equal(perfmap_read(&table, "/nonexistent/a.map", NULL, 0), -ENOENT);
    assert_int_equal(perfmap_read(&table, "/nonexistent/a.map", text, 0), -ENOENT);
    assert_string_equal(text, "1234567");
    assert_int_equal(perfmap_read(&table, "/nonexistent/a.map", text, 5), -ENOENT);
    assert_string_equal(text, "/non");
    assert_int_equal(text[5], '6');
}

static void test_missing_file(void **state)
{
    (void)state;
    assert_read_fails("/nonexistent/a.map", -ENOENT, "No such file");
}

static void test_directory_and_device(void **state)
{
    (void)state;
    assert_read_fails(scratch, -EINVAL, "not a regular file");
    assert_read_fails("/dev/null", -EINVAL, "not a regular file");
}

/* Would wait for ever if it waited for a writer. */
static void test_fifo_does_not_hang(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(file_path, 0600), 0);
    alarm(20);
    assert_read_fails(file_path, -EINVAL, "not a regular file");
    alarm(0);
}

static void test_socket(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)state;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", file_path);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_read_fails(file_path, -EINVAL, "not a regular file");
    close(fd);
}

static void test_sparse_giant(void **state)
{
    (void)state;
    write_file("");
    assert_int_equal(truncate(file_path, ((off_t)1 << 30) + 1), 0);
    assert_read_fails(file_path, -EFBIG, "1 GiB");
}

static size_t open_descriptors(void)
{
    size_t count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void test_leaks_no_descriptor(void **state)
{
    struct perfmap_table *table;
    size_t before = open_descriptors();
    (void)state;
    write_file("1000 40 fib\n");
    assert_int_equal(perfmap_read(&table, file_path, NULL, 0), 0);
    perfmap_free(table);
    assert_int_equal(perfmap_read(&table, scratch, NULL, 0), -EINVAL);
    assert_int_equal(open_descriptors(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepts_what_producers_write),
        cmocka_unit_test(test_takes_torn_last_line),
        cmocka_unit_test(test_upper_case_digits),
        cmocka_unit_test(test_empty_lines_are_silent),
        cmocka_unit_test(test_counts_malformed_lines),
        cmocka_unit_test(test_nul_makes_a_line_bad),
        cmocka_unit_test(test_every_prefix),
        cmocka_unit_test(test_address_space_ends),
        cmocka_unit_test(test_last_line_wins),
        cmocka_unit_test(test_overlap_takes_that_part),
        cmocka_unit_test(test_pieces_of_one_line_are_joined),
        cmocka_unit_test(test_zero_size),
        cmocka_unit_test(test_random_overlaps_against_a_model),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_empty_and_null),
        cmocka_unit_test(test_over_a_gib_is_efbig),
        cmocka_unit_test(test_parse_copies_its_text),
        cmocka_unit_test_teardown(test_reads_a_file, remove_file),
        cmocka_unit_test(test_error_text_is_optional_and_bounded),
        cmocka_unit_test(test_missing_file),
        cmocka_unit_test(test_directory_and_device),
        cmocka_unit_test_teardown(test_fifo_does_not_hang, remove_file),
        cmocka_unit_test_teardown(test_socket, remove_file),
        cmocka_unit_test_teardown(test_sparse_giant, remove_file),
        cmocka_unit_test_teardown(test_leaks_no_descriptor, remove_file),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
