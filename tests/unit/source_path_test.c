/* What source files are called in debug info. */
#include "injector/inject/dwarf/source_path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static struct source_path path;

/* FILE, in memory of just its size, becomes WANTED. */
static void assert_becomes(const char *file, const char *wanted)
{
    uint32_t bytes = (uint32_t)strlen(file);
    char *copy = malloc(bytes + !bytes);
    assert_non_null(copy);
    memcpy(copy, file, bytes);
    struct line_text got = source_path_of(&path, (struct line_text){copy, bytes});
    if (got.bytes != strlen(wanted) || memcmp(got.text, wanted, got.bytes) != 0)
        fail_msg("%s became %.*s", file, (int)got.bytes, got.text);
    free(copy);
}

static void test_paths_and_names_without_colons_stay(void **state)
{
    (void)state;
    assert_becomes("", "");
    assert_becomes("/", "/");
    assert_becomes("/a/b.js", "/a/b.js");
    assert_becomes("/a%20b/c:d.js?v=1#x", "/a%20b/c:d.js?v=1#x");
    assert_becomes("a.js", "a.js");
    assert_becomes("[eval]", "[eval]");
    assert_becomes("evalmachine.<anonymous>", "evalmachine.<anonymous>");
}

static void test_urls_of_files_become_paths(void **state)
{
    (void)state;
    assert_becomes("file:///", "/");
    assert_becomes("file:///a", "/a");
    assert_becomes("file:///a/b.mjs", "/a/b.mjs");
    assert_becomes("file://localhost/a/b.mjs", "/a/b.mjs");
    assert_becomes("file:///a/b.mjs?v=1", "/a/b.mjs");
    assert_becomes("file:///a/b.mjs#top", "/a/b.mjs");
    assert_becomes("file:///a:1/b.mjs", "/a:1/b.mjs");
}

static void test_percents_are_decoded_where_they_encode_something(void **state)
{
    (void)state;
    assert_becomes("file:///a%20b%C3%a9%25%3F%23", "/a b\xc3\xa9%?#");
    assert_becomes("file:///100%", "/100%");
    assert_becomes("file:///100%2", "/100%2");
    assert_becomes("file:///100%zz%2g%g2", "/100%zz%2g%g2");
    assert_becomes("file:///%2541", "/%41");
    assert_becomes("file:///a%00b", "/a%00b");
}

static void test_others_lose_their_colons(void **state)
{
    (void)state;
    assert_becomes("node:internal/util", "node_internal/util");
    assert_becomes("https://deno.land:80/x%20y.ts?a", "https_//deno.land_80/x%20y.ts?a");
    assert_becomes("file:", "file_");
    assert_becomes("file://", "file_//");
    assert_becomes("file://server/a.mjs", "file_//server/a.mjs");
    assert_becomes("file://localhost", "file_//localhost");
    assert_becomes("file:a.js", "file_a.js");
    assert_becomes("C:\\a.js", "C_\\a.js");
    assert_becomes(":", "_");
}

static int release(void **state)
{
    (void)state;
    source_path_free(&path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths_and_names_without_colons_stay),
        cmocka_unit_test(test_urls_of_files_become_paths),
        cmocka_unit_test(test_percents_are_decoded_where_they_encode_something),
        cmocka_unit_test(test_others_lose_their_colons),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
