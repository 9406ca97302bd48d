/* The table of quirks, and how repaired ones are told. */
#include "injector/findings/quirk.h"

#include "injector/findings/findings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static void test_each_quirk_has_all_its_texts(void **state)
{
    (void)state;
    for (int quirk = 0; quirk < QUIRKS; quirk++) {
        const struct quirk_text *text = quirk_text((enum quirk)quirk);
        if (!text->id || !text->symptom || !text->producers || !text->remedy)
            fail_msg("quirk %d has no texts", quirk);
        assert_int_equal(strspn(text->id, "abcdefghijklmnopqrstuvwxyz-0123456789"),
                         strlen(text->id));
        assert_int_not_equal(text->symptom[strlen(text->symptom) - 1], '.');
        for (int other = 0; other < quirk; other++)
            assert_string_not_equal(quirk_text((enum quirk)other)->id, text->id);
        if (text->finding != NOT_A_FINDING)
            assert_in_range(text->finding, 0, FINDING_KINDS - 1);
    }
}

/* What was repaired is counted and told in a line, and makes no exit status. */
static void test_repaired_quirks_lose_nothing(void **state)
{
    char said[4096] = "";
    struct findings findings = {0};
    (void)state;
    report_quirk(&findings, QUIRK_HDR_FIRST, "record %d", 7);
    report_quirk(&findings, QUIRK_HDR_FIRST, "record %d", 8);
    report_quirk(&findings, QUIRK_NAME_EMPTY, "record %d", 9);
    report_quirk(&findings, QUIRK_LINES_BIASED, "record %d", 10); /* told with -v alone */
    assert_int_equal(findings_lost(&findings), 0);
    FILE *stream = fmemopen(said, sizeof said, "w");
    findings_print(&findings, stream);
    fclose(stream);
    assert_string_equal(said, "perfjit: repaired: 1 x name-empty, 2 x hdr-first; -v for details\n");
    findings.verbose = true;
    stream = fmemopen(said, sizeof said, "w");
    findings_print(&findings, stream);
    fclose(stream);
    assert_non_null(
        strstr(said, "perfjit: repaired: 2 x hdr-first: The .eh_frame_hdr comes before"));
    assert_non_null(strstr(said, "first: record 7\n"));
    assert_non_null(strstr(said, "1 x lines-biased"));
    assert_null(strstr(said, "record 8"));
    findings_free(&findings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_quirk_has_all_its_texts),
        cmocka_unit_test(test_repaired_quirks_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
