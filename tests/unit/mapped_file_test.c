/* Where files have symbols. */
#include "injector/log/perf_map/mapped_file.h"

#include "tests/producers/symbol_file.h"
#include "tests/unit/scratch.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { CODE_BYTES = 0x2000 };

#define CODE(offset) (SYMBOL_FILE_CODE_AT + (uint64_t)(offset))

static const uint8_t code[CODE_BYTES];
static char path[128];
static struct mapped_files files;

static int begin(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/symbols.elf", scratch);
    files = (struct mapped_files){0};
    return 0;
}

static int end(void **state)
{
    (void)state;
    mapped_files_free(&files);
    remove(path);
    return 0;
}

static void write_file(const struct file_symbol *symbols, size_t count, uint32_t table)
{
    assert_int_equal(write_symbol_file(path, EM_X86_64, code, sizeof code, symbols, count, table),
                     0);
}

/* MAP's file has its first symbols behind OFFSET in [START, END) of the code. */
static void assert_symbols(const struct perf_map *map, uint64_t offset, uint64_t start,
                           uint64_t end_offset)
{
    struct address_span range;
    struct mapped_file *file = mapped_files_get(&files, map);
    assert_non_null(file);
    assert_int_equal(mapped_file_symbols(&files, file, CODE(offset), &range), 0);
    assert_int_equal(range.start, CODE(start));
    assert_int_equal(range.end, CODE(end_offset));
}

static void assert_none(const struct perf_map *map, uint64_t offset)
{
    struct address_span range;
    struct mapped_file *file = mapped_files_get(&files, map);
    assert_non_null(file);
    assert_int_equal(mapped_file_symbols(&files, file, CODE(offset), &range), 0);
    assert_true(range.start == UINT64_MAX && range.end == UINT64_MAX);
}

static const struct file_symbol symbols[] = {
    {"sized", 0x300, 0x20, STT_FUNC, STV_HIDDEN, SYMBOL_FILE_TEXT},
    {"same", 0x310, 0x30, STT_FUNC, STV_DEFAULT, SYMBOL_FILE_TEXT}, /* overlaps */
    {"data", 0x400, 0x10, STT_OBJECT, STV_DEFAULT, SYMBOL_FILE_TEXT},
    {"indirect", 0x410, 0x10, STT_GNU_IFUNC, STV_DEFAULT, SYMBOL_FILE_TEXT}, /* touches */
    {"hidden label", 0x500, 0x10, STT_NOTYPE, STV_HIDDEN, SYMBOL_FILE_TEXT},
    {"absolute", 0x520, 0x10, STT_NOTYPE, STV_DEFAULT, SHN_ABS},
    {"undefined", 0x540, 0x10, STT_FUNC, STV_DEFAULT, SHN_UNDEF},
    {"", 0x560, 0x10, STT_FUNC, STV_DEFAULT, SYMBOL_FILE_TEXT},
    {"section", 0x580, 0x10, STT_SECTION, STV_DEFAULT, SYMBOL_FILE_TEXT},
    {"outside", 0x9000, 0x10, STT_FUNC, STV_DEFAULT, SYMBOL_FILE_TEXT},
    {"open", 0x600, 0, STT_FUNC, STV_DEFAULT, SYMBOL_FILE_TEXT},
    {"open as well", 0x600, 0, STT_NOTYPE, STV_DEFAULT, SYMBOL_FILE_TEXT},
    {"next", 0x680, 4, STT_FUNC, STV_DEFAULT, SYMBOL_FILE_TEXT},
    {"reaches out", 0x1ff0, 0x9000, STT_FUNC, STV_DEFAULT, SYMBOL_FILE_TEXT},
};

enum { SYMBOLS = sizeof symbols / sizeof symbols[0] };

static void assert_all(const struct perf_map *map)
{
    assert_symbols(map, 0, 0x300, 0x340);
    assert_symbols(map, 0x33f, 0x300, 0x340);
    assert_symbols(map, 0x340, 0x400, 0x420);
    assert_symbols(map, 0x420, 0x600, 0x684);
    assert_symbols(map, 0x684, 0x1ff0, CODE_BYTES);
    assert_none(map, CODE_BYTES);
}

static void test_what_perf_takes_for_a_symbol(void **state)
{
    const struct perf_map map = {.filename = path};
    (void)state;
    write_file(symbols, SYMBOLS, SHT_SYMTAB);
    assert_all(&map);
}

static void test_a_stripped_file_has_the_dynamic_symbols(void **state)
{
    const struct perf_map map = {.filename = path};
    (void)state;
    write_file(symbols, SYMBOLS, SHT_DYNSYM);
    assert_all(&map);
}

static void test_the_last_symbol_without_a_size_ends_with_its_page(void **state)
{
    const struct file_symbol open = {"open", 0x123, 0, STT_FUNC, STV_DEFAULT, SYMBOL_FILE_TEXT};
    const struct perf_map map = {.filename = path};
    (void)state;
    write_file(&open, 1, SHT_SYMTAB);
    assert_symbols(&map, 0, 0x123, 0x1000);
    assert_none(&map, 0x1000);
}

static void test_files_without_symbols_or_that_are_none(void **state)
{
    const struct perf_map map = {.filename = path}, absent = {.filename = "/no/such/file"},
                          relative = {.filename = "symbols.elf"},
                          device = {.filename = "/dev/null"}, directory = {.filename = scratch};
    (void)state;
    write_file(symbols, 0, SHT_SYMTAB);
    assert_none(&map, 0);
    assert_none(&absent, 0);
    assert_none(&relative, 0);
    assert_none(&device, 0);
    assert_none(&directory, 0);
}

/* A table of sections behind the file's own: of its symbol table the first symbol alone, and once
 * more all of it, COPIES times. */
static void repeat_symbol_table(uint16_t copies)
{
    size_t size;
    uint8_t *bytes = read_whole(path, &size);
    Elf64_Ehdr *header = (Elf64_Ehdr *)(void *)bytes;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(bytes + header->e_shoff);
    FILE *file = fopen(path, "r+");
    assert_true(file && fseek(file, 0, SEEK_END) == 0);
    for (size_t i = 0; i < (size_t)header->e_shnum; i++) {
        Elf64_Shdr section = sections[i];
        section.sh_size = section.sh_type == SHT_SYMTAB ? 2 * sizeof(Elf64_Sym) : section.sh_size;
        assert_int_equal(fwrite(&section, sizeof section, 1, file), 1);
    }
    for (size_t i = 0; i < (size_t)header->e_shnum; i++)
        for (uint16_t copy = 0; sections[i].sh_type == SHT_SYMTAB && copy < copies; copy++)
            assert_int_equal(fwrite(&sections[i], sizeof sections[i], 1, file), 1);
    header->e_shoff = size;
    header->e_shnum = (uint16_t)(header->e_shnum + copies);
    assert_int_equal(write_part(file, 0, header, sizeof *header), 0);
    assert_int_equal(fclose(file), 0);
    free(bytes);
}

/* A file has one, which perf takes; of a thousand that are the same bytes, the symbols would fill
 * all memory. */
static void test_only_the_first_symbol_table_counts(void **state)
{
    const struct perf_map map = {.filename = path};
    (void)state;
    write_file(symbols, SYMBOLS, SHT_SYMTAB);
    repeat_symbol_table(1000);
    assert_symbols(&map, 0, 0x300, 0x320);
    assert_none(&map, 0x320);
}

/* Each byte of headers and tables, and each length. */
static void test_damaged_files_do_no_harm(void **state)
{
    const struct perf_map map = {.filename = path};
    struct stat status;
    (void)state;
    write_file(symbols, SYMBOLS, SHT_SYMTAB);
    assert_int_equal(stat(path, &status), 0);
    for (long at = 0; at < status.st_size; at++) {
        if (at == 0x80)
            at = SYMBOL_FILE_CODE_AT + CODE_BYTES;
        struct address_span range;
        write_file(symbols, SYMBOLS, SHT_SYMTAB);
        FILE *file = fopen(path, "r+");
        assert_non_null(file);
        assert_int_equal(write_part(file, (uint64_t)at, "\xff", 1), 0);
        assert_int_equal(fclose(file), 0);
        for (int cut = 0; cut < 2; cut++) {
            mapped_files_free(&files);
            assert_int_equal(
                mapped_file_symbols(&files, mapped_files_get(&files, &map), CODE(0), &range), 0);
            assert_true(range.start < range.end || range.start == UINT64_MAX);
            assert_int_equal(truncate(path, at), 0);
        }
    }
}

static void test_another_file_of_the_same_name_tells_nothing(void **state)
{
    struct stat status;
    (void)state;
    write_file(symbols, SYMBOLS, SHT_SYMTAB);
    assert_int_equal(stat(path, &status), 0);
    struct perf_map same = {.filename = path,
                            .has_inode = true,
                            .maj = major(status.st_dev),
                            .min = minor(status.st_dev),
                            .ino = status.st_ino};
    struct perf_map other = same, elsewhere = same, of_another_machine = same;
    other.ino++;
    of_another_machine.ino += 2;
    elsewhere.maj++;
    elsewhere.ino++;
    assert_all(&same);
    assert_none(&other, 0);
    assert_all(&elsewhere); /* overlayfs: the kernel names another device than stat(2) */
    files.is_elsewheres = true;
    assert_all(&of_another_machine);
    assert_ptr_equal(mapped_files_get(&files, &same), mapped_files_get(&files, &same));
    assert_ptr_not_equal(mapped_files_get(&files, &same), mapped_files_get(&files, &other));
}

static void test_below_the_root_directory_first(void **state)
{
    const struct perf_map deleted = {.filename = "/symbols.elf (deleted)"};
    const struct perf_map whole = {.filename = path};
    (void)state;
    write_file(symbols, SYMBOLS, SHT_SYMTAB);
    files.root = scratch;
    assert_all(&deleted);
    assert_all(&whole);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_perf_takes_for_a_symbol),
        TEST(test_a_stripped_file_has_the_dynamic_symbols),
        TEST(test_the_last_symbol_without_a_size_ends_with_its_page),
        TEST(test_files_without_symbols_or_that_are_none),
        TEST(test_only_the_first_symbol_table_counts),
        TEST(test_damaged_files_do_no_harm),
        TEST(test_another_file_of_the_same_name_tells_nothing),
        TEST(test_below_the_root_directory_first),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
