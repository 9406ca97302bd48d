/* The census in an injected recording: what was kept is read again, and what is damaged is not
 * there. */
#include "injector/check/census/kept_census.h"

#include "tests/unit/profile_builder.h"

#include <fcntl.h>
#include <unistd.h>

static const char path[] = "kept_census_test.data";

static struct sample_census example(void)
{
    static struct unknown_samples groups[] = {{.cause = CAUSE_NOT_LOGGED,
                                               .count = 40,
                                               .first_ip = 0x401000,
                                               .first_ns = 7,
                                               .pid = 4711,
                                               .comm = "node"},
                                              {.cause = CAUSE_INJECTED,
                                               .count = 2,
                                               .first_ip = 0x7fffffffff10,
                                               .first_ns = 1,
                                               .pid = 4712,
                                               .comm = "thirty-one characters of a name"}};
    return (struct sample_census){.samples = 100,
                                  .outside_user = 1,
                                  .incomplete = 2,
                                  .in_files = 20,
                                  .named = 30,
                                  .unmapped = 5,
                                  .unknown = 42,
                                  .groups = groups,
                                  .group_count = 2};
}

/* A file that has CENSUS behind its "records". */
static uint8_t *written(const struct sample_census *census, size_t *size)
{
    struct findings findings = {0};
    struct output_file output = {.fd = -1};
    uint8_t *bytes = malloc(4096);
    assert_int_equal(output_file_open(&output, path, &findings), 0);
    assert_int_equal(output_file_write(&output, "records.", 8, &findings), 0);
    assert_int_equal(kept_census_write(census, &output, &findings), 0);
    assert_int_equal(output_file_flush(&output, &findings), 0);
    assert_int_equal(output_file_commit(&output, &findings), 0);
    output_file_close(&output);
    int fd = open(path, O_RDONLY);
    *size = (size_t)read(fd, bytes, 4096);
    close(fd);
    unlink(path);
    return bytes;
}

static int read_again(struct sample_census *census, const uint8_t *bytes, size_t size,
                      size_t records)
{
    /* a copy of its own size, so that a read behind it is seen */
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    struct perf_file file = {.data = copy, .size = size, .records = {0, records}};
    int result = kept_census_read(census, &file);
    free(copy);
    return result;
}

static void all_is_read_again(void **state)
{
    (void)state;
    size_t size;
    struct sample_census census = example(), kept = {0};
    uint8_t *bytes = written(&census, &size);
    assert_int_equal(size, 8 + 72 + 2 * 80 + 16);
    assert_int_equal(read_again(&kept, bytes, size, 8), 1);
    assert_true(kept.is_kept);
    assert_int_equal(kept.samples, 100);
    assert_int_equal(kept.outside_user, 1);
    assert_int_equal(kept.incomplete, 2);
    assert_int_equal(kept.in_files, 20);
    assert_int_equal(kept.named, 30);
    assert_int_equal(kept.unmapped, 5);
    assert_int_equal(kept.unknown, 42);
    assert_int_equal(kept.group_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(kept.groups[i].cause, census.groups[i].cause);
        assert_int_equal(kept.groups[i].count, census.groups[i].count);
        assert_int_equal(kept.groups[i].first_ip, census.groups[i].first_ip);
        assert_int_equal(kept.groups[i].first_ns, census.groups[i].first_ns);
        assert_int_equal(kept.groups[i].pid, census.groups[i].pid);
        assert_string_equal(kept.groups[i].comm, census.groups[i].comm);
    }
    sample_census_free(&kept);
    free(bytes);
}

static void every_cause_is_known_by_its_id(void **state)
{
    (void)state;
    for (int cause = 0; cause < CAUSES; cause++) {
        size_t size;
        struct unknown_samples group = {.cause = (enum sample_cause)cause, .count = 1, .comm = "a"};
        struct sample_census census = {.unknown = 1, .groups = &group, .group_count = 1},
                             kept = {0};
        uint8_t *bytes = written(&census, &size);
        assert_int_equal(read_again(&kept, bytes, size, 8), 1);
        assert_int_equal(kept.groups[0].cause, cause);
        sample_census_free(&kept);
        free(bytes);
    }
}

/* The census is at AT, and becomes another one with VALUE there. */
static void refuses(size_t at, uint8_t value)
{
    size_t size;
    struct sample_census census = example(), kept = {0};
    uint8_t *bytes = written(&census, &size);
    assert_int_not_equal(bytes[8 + at], value);
    bytes[8 + at] = value;
    assert_int_equal(read_again(&kept, bytes, size, 8), 0);
    assert_null(kept.groups);
    free(bytes);
}

static void what_is_damaged_is_not_there(void **state)
{
    (void)state;
    const size_t group = 72, end = 72 + 2 * 80;
    refuses(0, 'X');          /* the magic */
    refuses(8, 2);            /* the version */
    refuses(12, 1);           /* the number of groups */
    refuses(12, 0xff);        /* more than there are bytes */
    refuses(64, 41);          /* unknown samples that are in no group */
    refuses(group, 'X');      /* an unknown cause */
    refuses(group + 47, 'X'); /* a name without an end */
    refuses(group + 56, 41);  /* a group's samples */
    refuses(end, 0);          /* the size */
    refuses(end + 1, 0xff);   /* one that reaches out of the file */
    refuses(end + 7, 0xff);
    refuses(end + 8, 'X'); /* the magic at the end */
}

static void it_lies_behind_the_records(void **state)
{
    (void)state;
    size_t size;
    struct sample_census census = example(), kept = {0};
    uint8_t *bytes = written(&census, &size);
    assert_int_equal(read_again(&kept, bytes, size, 9), 0);
    assert_int_equal(read_again(&kept, bytes, size, size), 0);
    assert_int_equal(read_again(&kept, bytes, size, size + 1), 0);
    for (size_t cut = 0; cut < size; cut++)
        assert_int_equal(read_again(&kept, bytes, cut, cut < 8 ? cut : 8), 0);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_read_again),
        cmocka_unit_test(every_cause_is_known_by_its_id),
        cmocka_unit_test(what_is_damaged_is_not_there),
        cmocka_unit_test(it_lies_behind_the_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
