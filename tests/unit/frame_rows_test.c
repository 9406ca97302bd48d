/* The rows that libjitdump's check of frames goes by: what it takes for wrong covers nothing. */
#include "jitdump/cfi_check/frame_rows.h"
#include "tests/unit/cfa_programs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { SIZE = CFA_CODE_BYTES };

/* The last row of PROGRAM, in a function of SIZE bytes. */
static struct frame_row last_row(const struct cfa_case *program)
{
    const struct eh_cie cie = {.code_align = CFA_CODE_ALIGN,
                               .data_align = CFA_DATA_ALIGN,
                               .return_register = 16,
                               .instructions = program->initial,
                               .instructions_bytes = program->initial_bytes};
    const struct frame_fde fde = {.size = SIZE,
                                  .cie = &cie,
                                  .instructions = program->program,
                                  .instructions_bytes = program->program_bytes};
    struct frame_rows rows = {.count = 0};
    assert_int_equal(jd_frame_rows_make(&rows, &jd_machine_x86_64, &fde, 1, SIZE), 0);
    const struct frame_row row = *jd_frame_row_at(&rows, SIZE - 1);
    jd_frame_rows_free(&rows);
    return row;
}

static void test_wrong_programs(void **state)
{
    (void)state;
    for (size_t i = 0; i < CFA_WRONG; i++)
        if (last_row(&cfa_wrong[i]).covered)
            fail_msg("%s: is taken", cfa_wrong[i].what);
}

static void test_right_programs(void **state)
{
    (void)state;
    for (size_t i = 0; i < CFA_RIGHT; i++) {
        const struct frame_row row = last_row(&cfa_right[i]);
        if (!row.covered || !row.cfa_known || row.cfa_register != CFA_RIGHT_REGISTER ||
            row.cfa_offset != CFA_RIGHT_OFFSET)
            fail_msg("%s: another CFA", cfa_right[i].what);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_programs),
        cmocka_unit_test(test_right_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
