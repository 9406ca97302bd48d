/* binutils as judges: the assembler of the hand-written directives, readelf of the tables. */
#include "jitdump/cfi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tests/unit/cfi_cases.h"
#include "tests/unit/cfi_readelf.h"

static char folder[] = "/tmp/cfi_oracle.XXXXXX";

/* ---- Helpers ---- */

/* Returns false if there is no assembler for TEST: clang is wanted for aarch64 alone, and optional.
 */
static bool assemble(const struct cfi_case *test, const char *source, const char *object)
{
    bool x86 = test->arch == JITDUMP_X86_64;
    char command[512];
    FILE *file = fopen(source, "w");
    fprintf(file, "%s%s", x86 ? ".intel_syntax noprefix\n" : "", test->source);
    fclose(file);
    if (!x86 && system("clang --version >/dev/null 2>&1") != 0)
        return false;
    snprintf(command, sizeof command, "%s -o %s %s",
             x86 ? "as --64"
                 : "clang -c --target=aarch64-linux-gnu -march=armv8.5-a "
                   "-Wno-unused-command-line-argument",
             object, source);
    assert_int_equal(system(command), 0);
    return true;
}

static struct jitdump_unwind describe(struct jitdump_cfi *cfi, const struct cfi_case *test)
{
    struct jitdump_unwind unwind;
    for (const struct cfi_piece *piece = test->pieces; piece < test->pieces + 3 && piece->size;
         piece++) {
        if (!test->whole)
            jitdump_cfi_block(cfi, piece->start, piece->size);
        jitdump_cfi_frame(cfi, &piece->frame);
    }
    assert_int_equal(jitdump_cfi_finish(cfi, test->code_size, &unwind), 0);
    return unwind;
}

static char *path_in_folder(char path[64], const char *name)
{
    snprintf(path, 64, "%s/%s", folder, name);
    return path;
}

/* ---- Tests ---- */

static void test_the_assembler_makes_the_expected_rows(void **state)
{
    char source[64], object[64];
    (void)state;
    for (size_t i = 0; i < CFI_CASES; i++) {
        print_message("# %s\n", cfi_cases[i].name);
        if (!assemble(&cfi_cases[i], path_in_folder(source, "case.s"),
                      path_in_folder(object, "case.o"))) {
            print_message("# no clang: not assembled\n");
            continue;
        }
        char *rows = readelf_rows(object, 0);
        assert_string_equal(rows, cfi_cases[i].rows);
        free(rows);
    }
}

static void test_readelf_reads_the_expected_rows(void **state)
{
    char path[64];
    (void)state;
    path_in_folder(path, "table.elf");
    for (size_t i = 0; i < CFI_CASES; i++) {
        const struct cfi_case *test = &cfi_cases[i];
        struct jitdump_cfi *cfi = jitdump_cfi_new(test->arch);
        struct jitdump_unwind unwind = describe(cfi, test);
        struct rows_table table = rows_of(&unwind, test->code_size, test->arch);
        readelf_write(path, &table);
        char *rows = readelf_rows(path, 0);
        assert_string_equal(rows, test->rows);
        free(rows);
        jitdump_cfi_free(cfi);
    }
}

/* Directives of every kind, side by side with the assembler's. */
static void test_the_assembler_does_the_same_for_each_directive(void **state)
{
    static const char source[] =
        ".cfi_startproc\n"
        ".cfi_def_cfa 3, -16; nop\n"
        ".cfi_def_cfa 6, 64; .cfi_rel_offset 6, 8; nop\n"
        ".cfi_remember_state; .cfi_adjust_cfa_offset 16; .cfi_rel_offset 12, 0; nop\n"
        ".cfi_def_cfa_offset -8; .cfi_offset 13, 24; .cfi_offset 17, -32; .cfi_offset 18, 8; nop\n"
        ".cfi_def_cfa_register 7; .cfi_val_offset 14, -16; .cfi_val_offset 15, 16; nop\n"
        ".cfi_restore_state; .cfi_rel_offset 3, 16; .cfi_same_value 12; .cfi_undefined 13; nop\n"
        ".cfi_register 14, 0; .cfi_restore 6; .cfi_restore 17; .cfi_offset 15, -100000; nop\n"
        ".cfi_escape 0x0f, 2, 0x77, 8; .cfi_escape 0x10, 3, 1, 0x9c; .cfi_escape 0x16, 1, 1, 0x9c; "
        "nop\n"
        ".skip 100; .cfi_def_cfa 7, 100000; nop\n"
        ".skip 300; .cfi_adjust_cfa_offset -99992; nop\n"
        ".cfi_endproc\n";
    const struct cfi_case test = {.arch = JITDUMP_X86_64, .source = source};
    char source_path[64], path[64], object[64];
    struct jitdump_unwind unwind;
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    (void)state;
    jitdump_cfi_def_cfa(cfi, 0, 3, -16);
    jitdump_cfi_def_cfa(cfi, 1, 6, 64);
    jitdump_cfi_rel_offset(cfi, 1, 6, 8);
    jitdump_cfi_remember_state(cfi, 2);
    jitdump_cfi_adjust_cfa_offset(cfi, 2, 16);
    jitdump_cfi_rel_offset(cfi, 2, 12, 0);
    jitdump_cfi_def_cfa_offset(cfi, 3, -8);
    jitdump_cfi_offset(cfi, 3, 13, 24);
    jitdump_cfi_offset(cfi, 3, 17, -32);
    jitdump_cfi_offset(cfi, 3, 18, 8);
    jitdump_cfi_def_cfa_register(cfi, 4, 7);
    jitdump_cfi_val_offset(cfi, 4, 14, -16);
    jitdump_cfi_val_offset(cfi, 4, 15, 16);
    jitdump_cfi_restore_state(cfi, 5);
    jitdump_cfi_rel_offset(cfi, 5, 3, 16);
    jitdump_cfi_same_value(cfi, 5, 12);
    jitdump_cfi_undefined(cfi, 5, 13);
    jitdump_cfi_register(cfi, 6, 14, 0);
    jitdump_cfi_restore(cfi, 6, 6);
    jitdump_cfi_restore(cfi, 6, 17);
    jitdump_cfi_offset(cfi, 6, 15, -100000);
    jitdump_cfi_escape(cfi, 7, "\x0f\x02\x77\x08\x10\x03\x01\x9c\x16\x01\x01\x9c", 12);
    jitdump_cfi_def_cfa(cfi, 108, 7, 100000);
    jitdump_cfi_adjust_cfa_offset(cfi, 409, -99992);
    assert_int_equal(jitdump_cfi_finish(cfi, 410, &unwind), 0);

    struct rows_table table = rows_of(&unwind, 410, JITDUMP_X86_64);
    readelf_write(path_in_folder(path, "table.elf"), &table);
    assemble(&test, path_in_folder(source_path, "case.s"), path_in_folder(object, "case.o"));
    char *theirs = readelf_rows(object, 0), *ours = readelf_rows(path, 0);
    char *evaluated = rows_text(&table, 0, 410);
    assert_string_equal(ours, theirs);
    assert_string_equal(evaluated, theirs);
    assert_non_null(strstr(theirs, "\n409 rsp+8 "));
    free(ours);
    free(theirs);
    free(evaluated);
    jitdump_cfi_free(cfi);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"case.s", "case.o", "table.elf"};
    char path[64];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(path_in_folder(path, names[i]));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_assembler_makes_the_expected_rows),
        cmocka_unit_test(test_readelf_reads_the_expected_rows),
        cmocka_unit_test(test_the_assembler_does_the_same_for_each_directive),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
