/* What the output has and the input had not: the maps that a sample needs, and none of the records
 * that they replace. */
#include "injector/inject/merge/recording_merge.h"

#include "injector/inject/layout/image_plan.h"

#include "tests/unit/space_world.h"

enum { FIRST = ARENA, SECOND = ARENA + 0x400, THIRD = ARENA + 0x800 };

static struct image_plan plan;
static struct recording_merge merge;
static const struct record_change *new_records; /* and what is asked for with them */
static const struct chain_tree *new_chains;

static int begin_merge(void **state)
{
    plan = (struct image_plan){0};
    merge = (struct recording_merge){0};
    new_records = NULL;
    new_chains = NULL;
    return begin_spaces(state);
}

static int end_merge(void **state)
{
    recording_merge_free(&merge);
    image_plan_free(&plan);
    return end_spaces(state);
}

/* ---- A recording ---- */

static void put_sample(uint64_t ip, uint64_t time)
{
    size_t at = profile_sample(&recording, 0, time);
    memcpy(recording.bytes + at + PERF_RECORD_HEADER_BYTES, &ip, sizeof ip);
}

/* PID has memory for three functions, and a sample at IP. */
static void put_process(uint64_t ip)
{
    put_memory(PID, ARENA, 100);
    put_sample(ip, 500);
}

/* They are loaded in one moment, but too far from each other for one map. */
static void load_three(void)
{
    read_lives();
    assert_int_equal(make_process(PID, 100), 0);
    load_function(0, 200, FIRST, "first");
    load_function(0, 200, SECOND, "second");
    load_function(0, 200, THIRD, "third");
}

/* Play what was loaded, with the samples that were recorded. */
static void play_timelines(void)
{
    size_t inherited = 0;
    for (size_t i = 0; i < processes.count; i++) {
        struct jit_process *process = &processes.items[i];
        process->trailer_record = process->maps[0].record;
        process->load_slack_ns = 0; /* a function is there when it is logged, and not before */
        assert_int_equal(timeline_play(&timelines[i], process, NULL, &inherited,
                                       records.sample_times_ns, records.sample_count, &findings),
                         0);
        assert_int_equal(image_plan_add(&plan, process, &timelines[i], LAYOUT_IMAGE, &findings), 0);
    }
}

static void plan_merge(void)
{
    const struct recording_merge_request request = {&records, &processes,  timelines,  &plan,
                                                    "/dso",   new_records, new_chains, NULL};
    assert_int_equal(recording_merge_plan(&merge, &request, &findings), 0);
}

/* What is added, in order, as "time:start" with "!" behind it if that is free from then on, "?" if
 * it is no map.  BASES: what of it is an image's beginning, or what is not. */
static void assert_added_of(bool bases, const char *expected)
{
    char text[1024] = "";
    for (size_t i = 0, at = 0; i < merge.added.count; i++, at = strlen(text)) {
        const struct added_record *record = &merge.added.items[i];
        if ((record->kind == ADDED_BASE) != bases)
            continue;
        snprintf(text + at, sizeof text - at, "%s%" PRIu64 ":%" PRIx64 "%s", at ? " " : "",
                 record->time_ns, record->start,
                 record->kind == CHANGE_UNLOADED ? "!"
                 : record->kind >= ADDED_COMM    ? "?"
                                                 : "");
    }
    assert_string_equal(text, expected);
}

static void assert_added(const char *expected)
{
    assert_added_of(false, expected);
}

static void assert_three_become(uint64_t ip, const char *expected)
{
    put_process(ip);
    load_three();
    play_timelines();
    plan_merge();
    assert_added(expected);
}

/* ---- Maps that a sample needs ---- */

/* The first map of an image stays in any case. */
static void test_a_map_with_no_sample_in_it_is_left_out(void **state)
{
    (void)state;
    assert_three_become(SECOND - 1, "200:100000");
}

static void test_a_map_with_a_sample_at_its_first_byte_stays(void **state)
{
    (void)state;
    assert_three_become(SECOND, "200:100000 200:100400");
}

static void test_a_map_with_a_sample_at_its_last_byte_stays(void **state)
{
    (void)state;
    assert_three_become(THIRD + SLOT - 1, "200:100000 200:100800");
}

/* A call that never returns may be the last instruction: its return address is behind the code. */
static void test_a_map_with_a_sample_right_behind_it_stays(void **state)
{
    (void)state;
    assert_three_become(THIRD + SLOT, "200:100000 200:100800");
}

static void test_a_map_with_a_sample_one_byte_farther_is_left_out(void **state)
{
    (void)state;
    assert_three_become(SECOND + SLOT + 1, "200:100000");
}

/* What samples become, stacks or others, has addresses of its own. */
static void test_a_map_that_a_new_chain_needs_stays(void **state)
{
    const uint64_t ips[] = {0x401000, SECOND + SLOT};
    struct chain_tree tree = {0};
    (void)state;
    assert_int_equal(chain_tree_add(&tree, ips, 2), 2);
    new_chains = &tree;
    assert_three_become(0x401000, "200:100000 200:100400");
    chain_tree_free(&tree);
}

static void test_what_is_gone_where_no_sample_was_is_left_out(void **state)
{
    (void)state;
    put_process(SECOND);
    put_sample(SECOND, 700);
    load_three();
    unload_function(0, 600, 1);
    unload_function(0, 600, 2);
    play_timelines();
    plan_merge();
    assert_added("200:100000 200:100400 600:100400!");
}

/* Two images: of what was there first, and of what came to the same addresses. */
static void test_the_first_map_of_each_image_stays(void **state)
{
    (void)state;
    put_process(0x401000);
    put_sample(0x401000, 700);
    load_three();
    load_function(0, 600, SECOND, "later");
    load_function(0, 600, THIRD, "later, too");
    play_timelines();
    assert_int_equal(plan.image_count, 2);
    plan_merge();
    assert_added("200:100000 600:100400");
    assert_added_of(true, "200:ff000 600:ff000");
}

/* The one at 800 stands in front of a function that is left out, unless that was sampled. */
static void test_an_image_begins_again_behind_another_with_its_function(void **state)
{
    (void)state;
    for (int sampled = 0; sampled < 2; sampled++) {
        assert_int_equal(end_merge(NULL), 0);
        assert_int_equal(begin_merge(NULL), 0);
        put_process(FIRST);
        put_sample(SECOND, 700);
        put_sample(sampled ? THIRD + 0x400 : FIRST, 900);
        load_three();
        load_function(0, 600, SECOND, "later");
        load_function(0, 650, THIRD, "later, too");
        load_function(0, 800, THIRD + 0x400, "of the first image");
        play_timelines();
        plan_merge();
        for (size_t i = 0; i + 1 < merge.added.count; i++)
            if (merge.added.items[i].kind == ADDED_BASE) {
                assert_int_equal(merge.added.items[i + 1].kind, CHANGE_FUNCTION);
                assert_int_equal(merge.added.items[i + 1].index, merge.added.items[i].index);
                assert_int_equal(merge.added.items[i + 1].time_ns, merge.added.items[i].time_ns);
            }
        assert_added_of(true, sampled ? "200:ff000 600:ff000 800:ff000" : "200:ff000 600:ff000");
        assert_added(sampled ? "200:100000 200:100400 600:100400 800:100c00"
                             : "200:100000 200:100400 600:100400");
    }
}

/* A file of which a part was mapped did not begin, nor does memory. */
static void test_an_image_begins_again_behind_a_file(void **state)
{
    enum { LIBRARY = 0x70000000 };
    (void)state;
    for (uint64_t pgoff = 0; pgoff <= 0x1000; pgoff += 0x1000) {
        assert_int_equal(end_merge(NULL), 0);
        assert_int_equal(begin_merge(NULL), 0);
        put_memory(PID, ARENA, 100);
        put_map(PID, LIBRARY, "/lib/late.so", 1, 2, 250);
        put_map(PID, LIBRARY + PAGE_BYTES, "//anon", 0, 0, 350);
        put_sample(FIRST, 500);
        put_sample(SECOND, 500);
        put_sample(THIRD, 500);
        read_lives();
        assert_int_equal(make_process(PID, 100), 0);
        for (size_t i = 0; i < records.map_count; i++)
            if (records.maps[i].map.start == LIBRARY)
                records.maps[i].map.pgoff = pgoff;
        load_function(0, 200, FIRST, "first");
        load_function(0, 300, SECOND, "second");
        load_function(0, 400, THIRD, "third");
        play_timelines();
        plan_merge();
        assert_added("200:100000 300:100400 400:100800");
        assert_added_of(true, pgoff ? "200:ff000" : "200:ff000 300:ff000");
    }
}

static void test_a_file_with_one_function_has_no_beginning(void **state)
{
    (void)state;
    put_process(FIRST);
    read_lives();
    assert_int_equal(make_process(PID, 100), 0);
    load_function(0, 200, FIRST, "first");
    play_timelines();
    plan_merge();
    assert_added("200:100000");
    assert_added_of(true, "");
}

/* ---- Recordings of which all maps stay ---- */

/* Their 3 maps take 384 bytes: 16 times that, and 16 bytes more. */
static void test_of_a_large_recording_all_maps_stay(void **state)
{
    enum { LARGE_BYTES = 16 * 3 * 128 };
    (void)state;
    for (int more = 1; more >= 0; more--) {
        assert_int_equal(end_merge(NULL), 0);
        assert_int_equal(begin_merge(NULL), 0);
        put_process(0x401000);
        size_t last = 40; /* read_lives puts the last sample */
        size_t left = LARGE_BYTES - last - (recording.sink.size - recording.records_start);
        profile_plain(&recording, PERF_RECORD_FINISHED_ROUND, left - 8 + (more ? 16 : 0));
        load_three();
        assert_int_equal(file.records.size, LARGE_BYTES + (more ? 16 : 0));
        play_timelines();
        plan_merge();
        assert_added(more ? "200:100000 200:100400 200:100800" : "200:100000");
    }
}

static void record_with(uint64_t more_fields)
{
    const uint64_t sample_type = SAMPLE_TYPE | more_fields;
    memset(&recording, 0, sizeof recording);
    profile_begin(&recording, &sample_type, 1);
}

static void test_where_addresses_are_in_raw_data_all_maps_stay(void **state)
{
    (void)state;
    record_with(PERF_SAMPLE_RAW);
    assert_three_become(0x401000, "200:100000 200:100400 200:100800");
}

static int change_nothing(void *context, const struct perf_record *record, struct byte_sink *sink)
{
    (void)context;
    (void)record;
    (void)sink;
    return 0;
}

/* perf finds more in a copy of the stack than it says, unless the copy becomes a chain. */
static void test_where_perf_unwinds_all_maps_stay(void **state)
{
    (void)state;
    record_with(PERF_SAMPLE_STACK_USER);
    assert_three_become(0x401000, "200:100000 200:100400 200:100800");
}

static void test_where_stacks_become_chains_maps_are_left_out(void **state)
{
    static const struct record_change change = {NULL, change_nothing};
    (void)state;
    record_with(PERF_SAMPLE_STACK_USER);
    new_records = &change;
    assert_three_become(0x401000, "200:100000");
}

/* perf unwinds in what it has read before, until it is made to forget. */
static void test_only_where_perf_unwinds_it_is_made_to_forget(void **state)
{
    static const struct record_change change = {NULL, change_nothing};
    (void)state;
    for (int changed = 1; changed >= 0; changed--) {
        size_t others = 0;
        assert_int_equal(end_merge(NULL), 0);
        assert_int_equal(begin_merge(NULL), 0);
        record_with(PERF_SAMPLE_STACK_USER);
        new_records = changed ? &change : NULL;
        put_process(SECOND);
        put_sample(SECOND, 700);
        load_three();
        load_function(0, 600, SECOND, "later");
        play_timelines();
        plan_merge();
        for (size_t i = 0; i < merge.added.count; i++)
            others += merge.added.items[i].kind >= ADDED_COMM;
        assert_int_equal(others != 0, !changed);
    }
}

/* ---- Several processes ---- */

static void test_maps_of_two_processes_are_by_time(void **state)
{
    (void)state;
    put_memory(OTHER, ARENA, 90);
    put_process(SECOND);
    put_sample(SECOND, 700);
    load_three();
    assert_int_equal(make_process(OTHER, 100), 1);
    load_function(1, 150, FIRST, "other");
    load_function(1, 600, SECOND, "other, too");
    play_timelines();
    plan_merge();
    assert_added("150:100000 200:100000 200:100400 600:100400");
    const uint32_t wanted[] = {1, 1, 0, 0, 0, 1}; /* each with the beginning of its image */
    assert_int_equal(merge.added.count, sizeof wanted / sizeof *wanted);
    for (size_t i = 0; i < merge.added.count; i++)
        assert_int_equal(merge.added.items[i].process, wanted[i]);
}

/* ---- Records that are left out ---- */

static void test_markers_and_dropped_maps_are_left_out_in_file_order(void **state)
{
    static const uint64_t offsets[] = {500, 100, 400, 200, 300};
    (void)state;
    put_memory(PID, ARENA, 100);
    put_memory(OTHER, ARENA, 100);
    read_lives();
    make_process(PID, 100);
    make_process(OTHER, 100);
    play_timelines();
    processes.marker_offsets = malloc(2 * sizeof offsets[0]);
    assert_non_null(processes.marker_offsets);
    memcpy(processes.marker_offsets, offsets, 2 * sizeof offsets[0]);
    processes.marker_count = 2;
    drop_record(0, offsets[2]);
    drop_record(0, offsets[3]);
    drop_record(1, offsets[4]);
    plan_merge();
    assert_int_equal(merge.dropped_count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(merge.dropped[i], 100 * (i + 1));
    assert_added("");
}

/* ---- The output ---- */

/* The names of what PID maps in the output are these, each behind a space. */
static void assert_maps_in(const char *path, const char *expected)
{
    struct perf_file written = {0};
    struct records read = {0};
    char text[1024] = "";
    size_t count;
    assert_int_equal(perf_file_open(&written, path, &findings), 0);
    assert_int_equal(records_read(&read, &written, &findings), 0);
    const struct recorded_map *maps = records_maps_of(&read, PID, &count);
    for (size_t i = 0; i < count; i++) {
        const char *name = maps[i].map.filename;
        size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, " %" PRIu64 ":%s", maps[i].time_ns,
                 strncmp(name, "/dso/", 5) == 0 ? "image" : name);
    }
    assert_string_equal(text, expected);
    records_free(&read);
    perf_file_close(&written);
}

static void test_the_output_has_what_is_planned(void **state)
{
    struct output_file output;
    (void)state;
    put_process(SECOND);
    put_map(PID, FIRST, "/bin/dropped", 1, 1, 300);
    put_map(PID, THIRD + PAGE_BYTES, "/bin/kept", 1, 2, 400);
    load_three();
    play_timelines();
    drop_record(0, records.maps[map_number(PID, 1)].record.offset);
    plan_merge();
    assert_int_equal(output_file_open(&output, other_path, &findings), 0);
    assert_int_equal(recording_merge_write(&merge, &output, &findings), 0);
    assert_int_equal(output_file_commit(&output, &findings), 0);
    output_file_close(&output);
    assert_maps_in(other_path, " 100://anon 200:image 200:image 200:image 400:/bin/kept");
}

#define MERGE_TEST(test) cmocka_unit_test_setup_teardown(test, begin_merge, end_merge)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MERGE_TEST(test_a_map_with_no_sample_in_it_is_left_out),
        MERGE_TEST(test_a_map_with_a_sample_at_its_first_byte_stays),
        MERGE_TEST(test_a_map_with_a_sample_at_its_last_byte_stays),
        MERGE_TEST(test_a_map_with_a_sample_right_behind_it_stays),
        MERGE_TEST(test_a_map_with_a_sample_one_byte_farther_is_left_out),
        MERGE_TEST(test_a_map_that_a_new_chain_needs_stays),
        MERGE_TEST(test_what_is_gone_where_no_sample_was_is_left_out),
        MERGE_TEST(test_the_first_map_of_each_image_stays),
        MERGE_TEST(test_an_image_begins_again_behind_another_with_its_function),
        MERGE_TEST(test_an_image_begins_again_behind_a_file),
        MERGE_TEST(test_a_file_with_one_function_has_no_beginning),
        MERGE_TEST(test_of_a_large_recording_all_maps_stay),
        MERGE_TEST(test_where_addresses_are_in_raw_data_all_maps_stay),
        MERGE_TEST(test_where_perf_unwinds_all_maps_stay),
        MERGE_TEST(test_where_stacks_become_chains_maps_are_left_out),
        MERGE_TEST(test_only_where_perf_unwinds_it_is_made_to_forget),
        MERGE_TEST(test_maps_of_two_processes_are_by_time),
        MERGE_TEST(test_markers_and_dropped_maps_are_left_out_in_file_order),
        MERGE_TEST(test_the_output_has_what_is_planned),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
