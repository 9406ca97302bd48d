/* jitdump_cfi_import: what compilers make, what the builder itself made, and what nobody should
 * make. */
#include "jitdump/cfi.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/cfi_cases.h"
#include "tests/unit/cfi_rows.h"
#include "tests/unit/eh_frame_section.h"

/* ---- Helpers ---- */

static size_t count_cies(const struct rows_table *table)
{
    size_t count = 0;
    for (size_t offset = 0; offset + 8 <= table->size;) {
        uint32_t head[2];
        memcpy(head, table->data + offset, sizeof head);
        if (head[0] == 0)
            break;
        count += head[1] == 0;
        offset += 4 + (size_t)head[0];
    }
    return count;
}

/* A section that says: 16 bytes at 0x1000, 16 at 0x1010, 32 at 0x1040; SECTION_ADDR is where it is
 * right. */
enum { SECTION_ADDR = 0x1060, FIRST = 0x1000 };

static struct jitdump_unwind three_functions(struct jitdump_cfi *cfi)
{
    jitdump_cfi_block(cfi, 0, 16);
    jitdump_cfi_def_cfa_offset(cfi, 1, 16);
    jitdump_cfi_block(cfi, 0x10, 16);
    jitdump_cfi_def_cfa_offset(cfi, 0x14, 32);
    jitdump_cfi_block(cfi, 0x40, 32);
    jitdump_cfi_def_cfa_offset(cfi, 0x50, 48);
    return finish(cfi, SECTION_ADDR - FIRST);
}

static int import(struct jitdump_cfi *cfi, const struct jitdump_unwind *from, uint64_t code_addr,
                  uint64_t code_size)
{
    return jitdump_cfi_import(cfi, from->data,
                              (size_t)(from->unwinding_size - from->eh_frame_hdr_size),
                              SECTION_ADDR, code_addr, code_size);
}

/* Import of [CODE_ADDR, CODE_ADDR + CODE_SIZE) out of three_functions gives EXPECTED rows, or is
 * RESULT. */
static void assert_imports(uint64_t code_addr, uint64_t code_size, int result, const char *expected)
{
    struct jitdump_cfi *source = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_unwind unwind = three_functions(source);
    assert_int_equal(import(cfi, &unwind, code_addr, code_size), result);
    jitdump_cfi_free(source);
    if (result == 0) {
        unwind = finish(cfi, code_size);
        struct rows_table table = rows_of(&unwind, code_size, JITDUMP_X86_64);
        char *rows = rows_text(&table, 0, code_size);
        assert_string_equal(rows, expected);
        free(rows);
    } else if (result == -EINVAL) {
        assert_string_equal(jitdump_cfi_error(cfi), expected);
    }
    jitdump_cfi_free(cfi);
}

/* ---- Its own output ---- */

static void test_own_output_comes_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < CFI_CASES; i++) {
        const struct cfi_case *test = &cfi_cases[i];
        const uint64_t addr = 0x7f1234560000;
        struct jitdump_cfi *source = jitdump_cfi_new(test->arch),
                           *cfi = jitdump_cfi_new(test->arch);
        for (const struct cfi_piece *piece = test->pieces; piece < test->pieces + 3 && piece->size;
             piece++) {
            jitdump_cfi_block(source, piece->start, piece->size);
            jitdump_cfi_frame(source, &piece->frame);
        }
        struct jitdump_unwind a = finish(source, test->code_size), b;
        assert_int_equal(jitdump_cfi_import(cfi, a.data, a.unwinding_size - a.eh_frame_hdr_size,
                                            addr + (test->code_size + 7) / 8 * 8, addr,
                                            test->code_size),
                         0);
        b = finish(cfi, test->code_size);
        assert_int_equal(a.unwinding_size, b.unwinding_size);
        assert_memory_equal(a.data, b.data, a.unwinding_size);
        jitdump_cfi_free(source);
        jitdump_cfi_free(cfi);
    }
}

static void test_the_code_chooses(void **state)
{
    (void)state;
    assert_imports(0x1000, 16, 0, "0 rsp+8 ra=c-8\n1 rsp+16 ra=c-8\n");
    assert_imports(0x1010, 16, 0, "0 rsp+8 ra=c-8\n4 rsp+32 ra=c-8\n");
    assert_imports(0x1040, 32, 0, "0 rsp+8 ra=c-8\n16 rsp+48 ra=c-8\n");
    assert_imports(0x1030, 64, 0, "0 -\n16 rsp+8 ra=c-8\n32 rsp+48 ra=c-8\n48 -\n");
    assert_imports(0x1000, 32, 0,
                   "0 rsp+8 ra=c-8\n1 rsp+16 ra=c-8\n16 rsp+8 ra=c-8\n20 rsp+32 ra=c-8\n");
    assert_imports(0xf00, 0x102, 0, "0 -\n256 rsp+8 ra=c-8\n257 rsp+16 ra=c-8\n"); /* cut */
    assert_imports(0x1020, 32, -ENOENT, "");
    assert_imports(0x1000, 0, -ENOENT, "");
    assert_imports(0x1060, 100, -ENOENT, "");
    assert_imports(0, 0x1000, -ENOENT, "");
    assert_imports(0x1008, 100, -EINVAL,
                   "the FDE of 0x1000 begins before the code and reaches into it");
    assert_imports(0x105f, 1, -EINVAL,
                   "the FDE of 0x1040 begins before the code and reaches into it");
}

static void test_nothing_found_changes_nothing(void **state)
{
    struct jitdump_cfi *source = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_unwind unwind = three_functions(source);
    (void)state;
    jitdump_cfi_def_cfa_offset(cfi, 2, 24);
    assert_int_equal(import(cfi, &unwind, 0x2000, 100), -ENOENT);
    assert_string_equal(jitdump_cfi_error(cfi), "");
    jitdump_cfi_def_cfa_offset(cfi, 3, 32);
    unwind = finish(cfi, 10);
    struct rows_table table = rows_of(&unwind, 10, JITDUMP_X86_64);
    char *rows = rows_text(&table, 0, 10);
    assert_string_equal(rows, "0 rsp+8 ra=c-8\n2 rsp+24 ra=c-8\n3 rsp+32 ra=c-8\n");
    free(rows);
    jitdump_cfi_free(source);
    jitdump_cfi_free(cfi);
}

static void test_imports_and_blocks_together(void **state)
{
    struct jitdump_cfi *source = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_unwind unwind = three_functions(source);
    (void)state;
    jitdump_cfi_block(cfi, 0x20, 8);
    jitdump_cfi_def_cfa_offset(cfi, 0x21, 24);
    assert_int_equal(import(cfi, &unwind, 0x1000, 0x20), 0);
    jitdump_cfi_block(cfi, 0x28, 8);
    jitdump_cfi_def_cfa_offset(cfi, 0x28, 40);
    unwind = finish(cfi, 0x30);
    assert_int_equal(unwind.eh_frame_hdr_size, 12 + 4 * 8);
    struct rows_table table = rows_of(&unwind, 0x30, JITDUMP_X86_64);
    char *rows = rows_text(&table, 0x20, 0x10);
    assert_string_equal(rows, "0 rsp+8 ra=c-8\n1 rsp+24 ra=c-8\n8 rsp+40 ra=c-8\n");
    free(rows);
    jitdump_cfi_free(cfi);

    cfi = jitdump_cfi_new(JITDUMP_X86_64);
    unwind = finish(source, SECTION_ADDR - FIRST);
    assert_int_equal(import(cfi, &unwind, 0x1000, 0x20), 0);
    assert_int_equal(import(cfi, &unwind, 0x1010, 0x20), 0);
    assert_int_equal(jitdump_cfi_finish(cfi, 0x40, &unwind), -EINVAL);
    assert_string_equal(jitdump_cfi_error(cfi), "block at code offset 0x0 overlaps one before it");
    jitdump_cfi_free(source);
    jitdump_cfi_free(cfi);
}

static void test_directives_do_not_change_what_was_imported(void **state)
{
    struct jitdump_cfi *source = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_unwind unwind = three_functions(source);
    (void)state;
    assert_int_equal(import(cfi, &unwind, 0x1000, 0x10), 0);
    jitdump_cfi_def_cfa_offset(cfi, 5, 24);
    assert_int_equal(jitdump_cfi_finish(cfi, 0x10, &unwind), -EINVAL);
    assert_string_equal(jitdump_cfi_error(cfi), "block at code offset 0x0 overlaps one before it");
    jitdump_cfi_free(source);
    jitdump_cfi_free(cfi);
}

/* ---- What a writer of another style makes ---- */

/* Absolute pointers, version 3, a personality, an LSDA, code in units of 4; and FLAG, a letter, or
 * 0. */
static size_t foreign_section(uint8_t *bytes, size_t capacity, char flag)
{
    struct byte_sink sink = byte_sink_over(bytes, capacity);
    sink_u32(&sink, 36);
    sink_u32(&sink, 0);
    sink_bytes(&sink, "\3zPLR", 5);
    sink_bytes(&sink, &flag, flag ? 1 : 0);
    sink_bytes(&sink, "\0\4\x7c\x10", 4);
    sink_bytes(&sink, "\x0b\0\x11\x22\x33\x44\x55\x66\x77\x88\0\0", 12);
    sink_bytes(&sink, "\x0c\7\x10\x90\2\0\0\0\0\0", 10);
    sink_zeros(&sink, flag ? 0 : 1);
    sink_u32(&sink, 0x28);
    sink_u32(&sink, 0x2c);
    sink_u64(&sink, 0x5000);
    sink_u64(&sink, 0x40);
    sink_bytes(&sink, "\x08\1\2\3\4\5\6\7\x08", 9);
    sink_bytes(&sink, "\x42\x0e\x20\x86\4\0\0", 7);
    sink_u32(&sink, 0);
    return sink.size;
}

static void test_another_style(void **state)
{
    uint8_t bytes[128];
    size_t size = foreign_section(bytes, sizeof bytes, 'S');
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    (void)state;
    int error = jitdump_cfi_import(cfi, bytes, size, 0xdead0000, 0x5000, 0x40);
    if (error)
        fail_msg("%s", jitdump_cfi_error(cfi));
    struct jitdump_unwind unwind = finish(cfi, 0x40);
    struct rows_table table = rows_of(&unwind, 0x40, JITDUMP_X86_64);
    char *rows = rows_text(&table, 0, 0x40);
    assert_string_equal(rows, "0 rsp+16 ra=c-8\n8 rsp+32 rbp=c-16 ra=c-8\n");
    assert_memory_equal((const uint8_t *)unwind.data + 9, "zRS", 4);
    free(rows);
    jitdump_cfi_free(cfi);
}

/* Rules that are equal, but not what the frame is. */
static void test_flags_of_a_cie_keep_it_apart(void **state)
{
    static const char flags[] = {'S', 'B', 0, 'S'};
    uint8_t bytes[128];
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    (void)state;
    for (uint64_t i = 0; i < 4; i++) {
        size_t size = foreign_section(bytes, sizeof bytes, flags[i]);
        assert_int_equal(jitdump_cfi_import(cfi, bytes, size, 0, 0x5000 - 0x40 * i, 0x1000), 0);
    }
    struct jitdump_unwind unwind = finish(cfi, 0x100);
    struct rows_table table = rows_of(&unwind, 0x100, JITDUMP_X86_64);
    assert_int_equal(count_cies(&table), 3);
    assert_non_null(memmem(unwind.data, unwind.unwinding_size, "zRS", 4));
    assert_non_null(memmem(unwind.data, unwind.unwinding_size, "zRB", 4));
    jitdump_cfi_free(cfi);
}

/* ---- What compilers make ---- */

static const char cxx_source[] =
    "#include <string>\n#include <vector>\n#include <stdexcept>\n"
    "struct guard { std::string text; ~guard() { if (!text.empty()) text.clear(); } };\n"
    "int plain(int a) { return a * 2; }\n"
    "int caught(int (*f)(int), int a) { guard g{std::to_string(a)};\n"
    "    try { return f(a) + f(a + 1); } catch (const std::exception &e) { return e.what()[0]; } "
    "}\n"
    "int many(int (*f)(int), std::vector<int> &v) { int s = 0; for (int &x : v) s += x = f(x) ^ "
    "s;\n"
    "    if (s == 7) throw std::runtime_error(\"seven\"); return s; }\n"
    "int variable(int (*f)(int *), int n) { int *p = (int *)__builtin_alloca(n * 4u); return f(p) "
    "+ p[0]; }\n";

struct elf_sections {
    uint8_t *file;
    Elf64_Shdr text, eh_frame;
};

static uint8_t *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    uint8_t *bytes = malloc(size);
    rewind(file);
    assert_int_equal(fread(bytes, 1, size, file), size);
    fclose(file);
    return bytes;
}

static struct elf_sections read_elf(const char *path)
{
    struct elf_sections elf = {.file = read_file(path)};
    Elf64_Ehdr head;
    memcpy(&head, elf.file, sizeof head);
    Elf64_Shdr *sections = malloc(head.e_shnum * sizeof *sections);
    memcpy(sections, elf.file + head.e_shoff, head.e_shnum * sizeof *sections);
    const char *names = (const char *)elf.file + sections[head.e_shstrndx].sh_offset;
    for (int i = 0; i < head.e_shnum; i++) {
        if (strcmp(names + sections[i].sh_name, ".text") == 0)
            elf.text = sections[i];
        else if (strcmp(names + sections[i].sh_name, ".eh_frame") == 0)
            elf.eh_frame = sections[i];
    }
    free(sections);
    return elf;
}

static void check_compiler(const char *compiler, const char *source, const char *library)
{
    char command[512];
    snprintf(command, sizeof command, "%s -O2 -g0 -fPIC -shared -o %s -x c++ %s", compiler, library,
             source);
    assert_int_equal(system(command), 0);
    struct elf_sections elf = read_elf(library);
    struct rows_table theirs = {elf.file + elf.eh_frame.sh_offset, elf.eh_frame.sh_size,
                                elf.eh_frame.sh_addr, JITDUMP_X86_64};
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    assert_int_equal(jitdump_cfi_import(cfi, theirs.data, theirs.size, theirs.addr,
                                        elf.text.sh_addr, elf.text.sh_size),
                     0);
    struct jitdump_unwind unwind = finish(cfi, elf.text.sh_size);
    struct rows_table ours = rows_of(&unwind, elf.text.sh_size, JITDUMP_X86_64);
    char *expected = rows_text(&theirs, elf.text.sh_addr, elf.text.sh_size);
    char *rows = rows_text(&ours, 0, elf.text.sh_size);
    assert_string_equal(rows, expected);
    assert_true(strlen(rows) > 500);
    /* "zR" and "zPLR" differ in nothing that is kept. */
    assert_true(count_cies(&theirs) > 1);
    assert_int_equal(count_cies(&ours), 1);
    free(expected);
    free(rows);
    free(elf.file);
    jitdump_cfi_free(cfi);
}

static void test_what_compilers_make(void **state)
{
    char folder[] = "/tmp/cfi_import.XXXXXX", source[64], library[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(source, sizeof source, "%s/source.cc", folder);
    snprintf(library, sizeof library, "%s/library.so", folder);
    FILE *file = fopen(source, "w");
    fputs(cxx_source, file);
    fclose(file);
    check_compiler("g++", source, library);
    if (system("clang++ --version >/dev/null 2>&1") == 0)
        check_compiler("clang++", source, library);
    unlink(source);
    unlink(library);
    rmdir(folder);
}

/* ---- Broken input ---- */

/* Whatever SECTION says, the import ends, and what it accepts it can write and read again. */
static void try_import(const uint8_t *section, size_t size, uint64_t addr, uint64_t code_addr)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_cfi *again = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_unwind unwind;
    /* In memory of its own, so that the sanitizer sees every step past its end. */
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, section, size);
    int result = jitdump_cfi_import(cfi, copy, size, addr, code_addr, 0x60);
    assert_true(result == 0 || result == -ENOENT || result == -EINVAL);
    assert_int_equal(result == -EINVAL, jitdump_cfi_error(cfi)[0] != '\0');
    if (result == 0 && jitdump_cfi_finish(cfi, 0x60, &unwind) == 0)
        assert_int_equal(jitdump_cfi_import(again, unwind.data,
                                            unwind.unwinding_size - unwind.eh_frame_hdr_size, 0x60,
                                            0, 0x60),
                         0);
    free(copy);
    jitdump_cfi_free(cfi);
    jitdump_cfi_free(again);
}

static void damage(uint8_t *section, size_t size, uint64_t addr, uint64_t code_addr)
{
    for (size_t i = 0; i <= size; i++)
        try_import(section, i, addr, code_addr);
    for (size_t i = 0; i < size; i++) {
        uint8_t whole = section[i];
        for (unsigned value = 0; value < 256; value++) {
            section[i] = (uint8_t)value;
            try_import(section, size, addr, code_addr);
        }
        section[i] = whole;
    }
}

static void test_damaged_sections(void **state)
{
    struct jitdump_cfi *source = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_unwind unwind = three_functions(source);
    size_t size = unwind.unwinding_size - unwind.eh_frame_hdr_size;
    uint8_t foreign[128], *copy = malloc(size);
    (void)state;
    memcpy(copy, unwind.data, size);
    damage(copy, size, SECTION_ADDR, FIRST);
    damage(foreign, foreign_section(foreign, sizeof foreign, 'S'), 0, 0x5000);
    free(copy);
    jitdump_cfi_free(source);
}

static void test_broken_bytes_are_explained(void **state)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    (void)state;
    assert_int_equal(jitdump_cfi_import(cfi, "\x40\0\0\0\0\0\0\0", 8, 0, 0, 10), -EINVAL);
    assert_string_equal(jitdump_cfi_error(cfi),
                        ".eh_frame, offset 0x0: an entry reaches past the section");
    jitdump_cfi_free(cfi);
}

/* ---- Entries ---- */

/* An FDE's CIE is an entry, not some bytes in one that look like a CIE: each could be another, and
 * as long as the section. */
static void test_a_cie_is_an_entry(void **state)
{
    uint8_t bytes[256];
    struct section section = {byte_sink_over(bytes, sizeof bytes), 0};
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    (void)state;
    size_t cie = put_cie(&section, 1, 8);
    put_fde(&section, cie);
    size_t outer = section.sink.size;
    sink_u32(&section.sink, 4 + 25);
    sink_u32(&section.sink, 0);
    put_cie(&section, 1, 8);
    size_t last = section.sink.size;
    put_fde(&section, outer + 8);
    assert_int_equal(jitdump_cfi_import(cfi, bytes, section.sink.size, 0, 0, 64), -EINVAL);
    char expected[64];
    snprintf(expected, sizeof expected, ".eh_frame, offset 0x%zx: FDE whose CIE is not there",
             last);
    assert_string_equal(jitdump_cfi_error(cfi), expected);
    jitdump_cfi_free(cfi);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_output_comes_back),
        cmocka_unit_test(test_the_code_chooses),
        cmocka_unit_test(test_nothing_found_changes_nothing),
        cmocka_unit_test(test_imports_and_blocks_together),
        cmocka_unit_test(test_directives_do_not_change_what_was_imported),
        cmocka_unit_test(test_another_style),
        cmocka_unit_test(test_flags_of_a_cie_keep_it_apart),
        cmocka_unit_test(test_what_compilers_make),
        cmocka_unit_test(test_damaged_sections),
        cmocka_unit_test(test_broken_bytes_are_explained),
        cmocka_unit_test(test_a_cie_is_an_entry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
