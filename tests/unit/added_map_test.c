/* From changes to maps, and from maps to the records that perf reads. */
#include "injector/inject/merge/added_map.h"

#include "tests/unit/process_builder.h"
#include "tests/unit/profile_builder.h"

#include <inttypes.h>
#include <sys/mman.h>

static struct process_builder built;
static struct timeline timeline;
static struct image_plan plan;
static struct added_records added;

static int begin(void **state)
{
    (void)state;
    process_begin(&built);
    timeline = (struct timeline){0};
    plan = (struct image_plan){0};
    added = (struct added_records){0};
    return 0;
}

static int end(void **state)
{
    (void)state;
    added_records_free(&added);
    image_plan_free(&plan);
    timeline_free(&timeline);
    process_free(&built);
    return 0;
}

/* ---- From changes to maps ---- */

/* Play BUILT with samples at every time that ends in 5, and plan its images. */
static void play(enum image_layout layout)
{
    uint64_t samples[20];
    struct findings findings = {0};
    for (uint64_t i = 0; i < 20; i++)
        samples[i] = 10 * i + 5;
    assert_int_equal(timeline_play(&timeline, &built.process, NULL, NULL, samples, 20, &findings),
                     0);
    assert_int_equal(image_plan_add(&plan, &built.process, &timeline, layout, &findings), 0);
    assert_int_equal(findings_lost(&findings), 0);
}

static void make_maps_for(const struct thread_list *threads, enum reset_policy policy)
{
    struct findings findings = {0};
    assert_int_equal(
        added_maps_add(&added, &timeline, &built.process, 0, &plan, threads, policy, &findings), 0);
    added_records_sort(&added);
}

static void make_maps(void)
{
    static const struct thread_list no_threads = {0};
    make_maps_for(&no_threads, RESET_NEVER);
}

/* The maps as "time:start-end=kind index, ..." with i for an image's code, t for its tables, m for
 * a part of a map, c and r for the process that forks and comes back, C for one that execs; "@tid"
 * if another than the main thread speaks. */
static void assert_maps(const char *expected)
{
    static const char kinds[] = {
        [CHANGE_FUNCTION] = 'i', [CHANGE_UNLOADED] = 'u', [CHANGE_MAP] = 'm', [ADDED_TABLES] = 't',
        [ADDED_CLONE] = 'c',     [ADDED_RETURN] = 'r',    [ADDED_COMM] = 'C'};
    char text[1024] = "";
    for (size_t i = 0, at = 0; i < added.count; i++, at = strlen(text)) {
        const struct added_record *map = &added.items[i];
        assert_int_equal(map->process, 0);
        snprintf(text + at, sizeof text - at, "%s%" PRIu64 ":%" PRIx64 "-%" PRIx64 "=%c%" PRIu32,
                 i ? " " : "", map->time_ns, map->start, map->end, kinds[map->kind], map->index);
        if (map->tid != BUILT_PID)
            sprintf(text + strlen(text), "@%" PRIu32, map->tid);
    }
    assert_string_equal(text, expected);
}

static void test_neighbours_of_one_moment_share_a_record(void **state)
{
    (void)state;
    build_load(&built, 10, 0x10000, 0x100);
    build_load(&built, 11, 0x10110, 0x100);
    build_load(&built, 12, 0x10210, 0x30);
    build_load(&built, 13, 0x1027f, 0x30); /* 63 bytes on */
    play(LAYOUT_IMAGE);
    make_maps();
    assert_maps("10:10000-102af=i0");
}

static void test_inherited_code_between_neighbours_is_not_covered(void **state)
{
    struct jit_process parent = {0};
    (void)state;
    build_load(&built, 10, 0x10000, 0x100);
    build_load(&built, 11, 0x10110, 0x100);
    build_load(&built, 12, 0x10210, 0x30);
    play(LAYOUT_IMAGE);
    built.process.parent = &parent;
    make_maps();
    built.process.parent = NULL;
    assert_maps("10:10000-10100=i0 10:10110-10240=i0");
}

static void test_order_of_the_loads_does_not_matter(void **state)
{
    (void)state;
    build_load(&built, 10, 0x10200, 0x100);
    build_load(&built, 11, 0x10000, 0x100);
    build_load(&built, 12, 0x10100, 0x100);
    play(LAYOUT_IMAGE);
    make_maps();
    assert_maps("10:10000-10300=i0");
}

static void test_a_larger_gap_is_not_covered(void **state)
{
    (void)state;
    build_load(&built, 10, 0x10000, 0x100);
    build_load(&built, 11, 0x10140, 0x100);
    play(LAYOUT_IMAGE);
    make_maps();
    assert_maps("10:10000-10100=i0 10:10140-10240=i0");
}

static void test_moments_are_not_joined(void **state)
{
    (void)state;
    build_load(&built, 10, 0x10000, 0x100);
    build_load(&built, 20, 0x10100, 0x100);
    play(LAYOUT_IMAGE);
    make_maps();
    assert_maps("10:10000-10100=i0 20:10100-10200=i0");
}

/* The function in between came with another moment: a record over it would take its addresses. */
static void test_a_record_does_not_reach_over_another_function(void **state)
{
    (void)state;
    build_load(&built, 10, 0x10010, 0x10);
    build_load(&built, 20, 0x10000, 0x10);
    build_load(&built, 21, 0x10020, 0x10);
    play(LAYOUT_IMAGE);
    make_maps();
    assert_maps("10:10010-10020=i0 20:10000-10010=i0 20:10020-10030=i0");
}

static void test_images_are_not_joined(void **state)
{
    (void)state;
    build_load(&built, 10, 0x10000, 0x100);
    build_load(&built, 11, 0x10100, 0x100);
    play(LAYOUT_FUNCTION);
    make_maps();
    assert_maps("10:10000-10100=i0 10:10100-10200=i1");
}

static void test_reuse_names_the_image_of_the_generation(void **state)
{
    (void)state;
    build_load(&built, 10, 0x10000, 0x100);
    build_load(&built, 20, 0x10040, 0x40);
    play(LAYOUT_IMAGE);
    make_maps();
    assert_maps("10:10000-10100=i0 20:10040-10080=i1");
}

/* Where nothing is unwound (make_maps, above) there is no such record. */
static void test_reuse_makes_perf_forget_where_it_unwinds(void **state)
{
    static const struct thread_list no_threads = {0};
    (void)state;
    build_load(&built, 10, 0x10000, 0x100);
    build_load(&built, 20, 0x10040, 0x40);
    build_load(&built, 30, 0x20000, 0x40);
    play(LAYOUT_IMAGE);
    make_maps_for(&no_threads, RESET_BY_FORKS);
    assert_maps("10:10000-10100=i0 20:10040-10080=i1 20:0-0=c0 20:0-0=r0 30:20000-20040=i0");
}

/* ---- Threads ---- */

/* Code that comes when the main thread has ended, and before; made into maps as POLICY says. */
static void make_maps_around_the_end(struct thread_event *events, size_t count,
                                     enum reset_policy policy)
{
    struct thread_list threads = {.events = events, .count = count};
    for (size_t i = 0; i < count; i++) {
        events[i].pid = events[i].creator_tid = BUILT_PID;
        events[i].tid = events[i].tid ? events[i].tid : BUILT_PID;
    }
    build_load(&built, 10, 0x10000, 0x100);
    build_load(&built, 20, 0x20000, 0x100);
    build_load(&built, 30, 0x20040, 0x40);
    play(LAYOUT_IMAGE);
    make_maps_for(&threads, policy);
}

static void test_when_the_main_thread_has_ended_another_one_speaks(void **state)
{
    struct thread_event events[] = {{.time_ns = 5, .kind = THREAD_BORN, .tid = 7},
                                    {.time_ns = 6, .kind = THREAD_BORN, .tid = 8},
                                    {.time_ns = 15, .kind = THREAD_ENDED},
                                    {.time_ns = 25, .kind = THREAD_ENDED, .tid = 7}};
    (void)state;
    make_maps_around_the_end(events, 4, RESET_NEVER);
    assert_maps("10:10000-10100=i0 20:20000-20100=i0@7 30:20040-20080=i1@8");
}

static void test_a_sample_behind_its_end_does_not_revive_the_main_thread(void **state)
{
    struct thread_event events[] = {{.time_ns = 5, .kind = THREAD_BORN, .tid = 7},
                                    {.time_ns = 15, .kind = THREAD_ENDED},
                                    {.time_ns = 16, .kind = THREAD_SAMPLED}};
    (void)state;
    make_maps_around_the_end(events, 3, RESET_NEVER);
    assert_maps("10:10000-10100=i0 20:20000-20100=i0@7 30:20040-20080=i1@7");
}

static void test_a_new_life_of_the_pid_has_a_main_thread(void **state)
{
    for (size_t kind = 0; kind < 3; kind++) {
        struct thread_event events[] = {
            {.time_ns = 5, .kind = THREAD_BORN, .tid = 7},
            {.time_ns = 15, .kind = THREAD_ENDED},
            {.time_ns = 16,
             .kind = (enum thread_event_kind[]){THREAD_FORKED, THREAD_NAMED, THREAD_MAPPED}[kind]}};
        begin(state);
        make_maps_around_the_end(events, 3, RESET_NEVER);
        assert_maps("10:10000-10100=i0 20:20000-20100=i0 30:20040-20080=i1");
        if (kind < 2)
            end(state);
    }
}

/* Those that come later share the maps of a new main thread. */
static void test_late_threads_have_all_maps_as_well(void **state)
{
    struct thread_event events[] = {{.time_ns = 5, .kind = THREAD_BORN, .tid = 7},
                                    {.time_ns = 15, .kind = THREAD_ENDED},
                                    {.time_ns = 35, .kind = THREAD_BORN, .tid = 8}};
    (void)state;
    make_maps_around_the_end(events, 3, RESET_NEVER);
    assert_maps("10:10000-10100=i0 16:10000-10100=i0 20:20000-20100=i0@7 20:20000-20100=i0 "
                "30:20040-20080=i1@7 30:20040-20080=i1");
}

static void test_late_threads_are_not_made_again(void **state)
{
    struct thread_event events[] = {{.time_ns = 5, .kind = THREAD_BORN, .tid = 7},
                                    {.time_ns = 15, .kind = THREAD_ENDED},
                                    {.time_ns = 16, .kind = THREAD_SAMPLED, .tid = 8}};
    (void)state;
    make_maps_around_the_end(events, 3, RESET_BY_FORKS);
    assert_maps("10:10000-10100=i0 16:10000-10100=i0 20:20000-20100=i0@7 20:20000-20100=i0 "
                "30:20040-20080=i1@7 30:0-0=C0@7 30:20040-20080=i1");
}

/* Pieces of one function stay pieces, with the other function's record between them. */
static void test_pieces_of_a_function_are_not_joined(void **state)
{
    (void)state;
    build_load(&built, 10, 0x10000, 0x100);
    build_load(&built, 11, 0x10040, 0x20);
    play(LAYOUT_IMAGE);
    make_maps();
    assert_maps("10:10000-10040=i0 10:10060-10100=i0 10:10040-10060=i1");
}

static void test_what_is_gone_comes_before_what_is_new(void **state)
{
    (void)state;
    build_load(&built, 10, 0x10000, 0x100);
    build_move(&built, 20, 0, 0x10040, 0x100);
    play(LAYOUT_IMAGE);
    make_maps();
    assert_maps("10:10000-10100=i0 20:10000-10100=u0 20:10040-10140=i1");
}

static void test_part_of_a_dropped_map_keeps_its_number(void **state)
{
    (void)state;
    build_map(&built, 1, 0x10000, 0x1000, "//anon");
    build_load(&built, 10, 0x10000, 0x100);
    build_map(&built, 20, 0x10000, 0x2000, "//anon");
    play(LAYOUT_IMAGE);
    make_maps();
    assert_maps("10:10000-10100=i0 20:11000-12000=m1");
}

static void test_tables_come_once_with_the_first_function(void **state)
{
    (void)state;
    build_load(&built, 10, 0x10000, 0x100);
    build_load(&built, 20, 0x20000, 0x100);
    build_load(&built, 30, 0x10000, 0x100);
    play(LAYOUT_IMAGE);
    for (size_t i = 0; i < plan.image_count; i++) {
        plan.images[i].tables_start = 0x100000 - plan.images[i].base;
        plan.images[i].hdr_bytes = 0x20;
        plan.images[i].eh_frame_bytes = 0x40 + 0x10 * i;
    }
    make_maps();
    assert_maps("10:100000-100060=t0 10:10000-10100=i0 20:20000-20100=i0 30:100000-100070=t1 "
                "30:10000-10100=i1");
}

static void test_processes_are_brought_into_time_order(void **state)
{
    static const struct thread_list no_threads = {0};
    struct findings findings = {0};
    (void)state;
    build_load(&built, 10, 0x10000, 0x100);
    build_load(&built, 20, 0x20000, 0x100);
    play(LAYOUT_IMAGE);
    for (uint32_t process = 0; process < 2; process++)
        assert_int_equal(image_plan_add(&plan, &built.process, &timeline, LAYOUT_IMAGE, &findings),
                         0);
    for (uint32_t process = 0; process < 3; process++)
        assert_int_equal(added_maps_add(&added, &timeline, &built.process, process, &plan,
                                        &no_threads, RESET_NEVER, &findings),
                         0);
    added_records_sort(&added);
    assert_int_equal(added.count, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(added.items[i].time_ns, i < 3 ? 10 : 20);
        assert_int_equal(added.items[i].process, i % 3);
    }
}

static void test_nothing_to_add(void **state)
{
    (void)state;
    play(LAYOUT_IMAGE);
    make_maps();
    assert_maps("");
}

/* ---- From maps to records ---- */

/* A profile with a map of the process, whose trailer the added records copy, and one image. */
struct fixture {
    struct profile_builder builder;
    struct perf_file file;
    struct records records;
    struct jit_process process;
    struct jit_image image;
    struct image_plan plan;
    struct added_record_source source;
    uint8_t bytes[ADDED_MAP_MAX_BYTES];
    struct byte_sink sink;
};

static struct fixture fixture;

static void open_fixture(uint32_t map_type, uint64_t sample_type)
{
    struct findings findings = {0};
    fixture = (struct fixture){0};
    profile_begin(&fixture.builder, &sample_type, 1);
    profile_map(&fixture.builder, map_type, 0, 0x10000, 0x4000, "//anon", 77);
    profile_sample(&fixture.builder, 0, 88);
    profile_end_records(&fixture.builder);
    open_built_profile(&fixture.builder, &fixture.file);
    assert_int_equal(records_read(&fixture.records, &fixture.file, &findings), 0);
    fixture.process = (struct jit_process){.pid = 4711,
                                           .maps = fixture.records.maps,
                                           .map_count = 1,
                                           .trailer_record = fixture.records.maps[0].record};
    fixture.image = (struct jit_image){.base = 0xf000, .text_start = 0x1000, .text_end = 0x2000};
    for (uint8_t i = 0; i < IMAGE_BUILD_ID_BYTES; i++)
        fixture.image.build_id[i] = (uint8_t)(0xa0 + i);
    fixture.plan = (struct image_plan){.images = &fixture.image, .image_count = 1};
    fixture.source = (struct added_record_source){.records = &fixture.records,
                                                  .processes = &fixture.process,
                                                  .plan = &fixture.plan,
                                                  .dso_dir = "/out/perf.jit.data.dso"};
    fixture.sink = byte_sink_over(fixture.bytes, sizeof fixture.bytes);
}

static void close_fixture(void)
{
    records_free(&fixture.records);
    perf_file_close(&fixture.file);
}

/* Put MAP and read the record as any other of the file. */
static void put_map(const struct added_record *map, struct perf_record *record,
                    struct perf_map *read)
{
    uint64_t time_ns;
    assert_int_equal(added_map_put(map, &fixture.source, &fixture.sink), 0);
    *record = (struct perf_record){.bytes = fixture.bytes, .size = (uint16_t)fixture.sink.size};
    memcpy(&record->type, fixture.bytes, 4);
    memcpy(&record->misc, fixture.bytes + 4, 2);
    assert_int_equal(fixture.bytes[6] | fixture.bytes[7] << 8, fixture.sink.size);
    assert_int_equal(fixture.sink.size % 8, 0);
    assert_true(perf_record_map(&fixture.file, record, read));
    assert_int_equal(read->start, map->start);
    assert_int_equal(read->len, map->end - map->start);
    assert_true(perf_record_time(&fixture.file, record, &time_ns));
    assert_int_equal(time_ns, map->time_ns);
}

static void test_record_of_an_image_carries_its_build_id(void **state)
{
    const struct added_record map = {
        1234, 0x10100, 0x10180, 0x10100 - 0xf000, 0, 4712, CHANGE_FUNCTION, 0, 0};
    static const uint8_t zeros[8];
    struct perf_record record;
    struct perf_map read;
    uint32_t prot_and_flags[2];
    (void)state;
    open_fixture(PERF_RECORD_MMAP2, SAMPLE_TYPE);
    put_map(&map, &record, &read);
    assert_int_equal(record.type, PERF_RECORD_MMAP2);
    assert_int_equal(record.misc, PERF_MISC_USER | PERF_MISC_MMAP_BUILD_ID);
    assert_int_equal(read.pid, 4711);
    assert_int_equal(read.tid, 4712);
    assert_int_equal(read.pgoff, 0x10100 - 0xf000);
    assert_string_equal(read.filename, "/out/perf.jit.data.dso/jit-4711-0-a0a1a2a3.so");
    assert_int_equal(fixture.bytes[40], IMAGE_BUILD_ID_BYTES);
    assert_memory_equal(fixture.bytes + 41, zeros, 3);
    assert_memory_equal(fixture.bytes + 44, fixture.image.build_id, IMAGE_BUILD_ID_BYTES);
    assert_memory_equal(fixture.bytes + 44 + IMAGE_BUILD_ID_BYTES, zeros, 4);
    memcpy(prot_and_flags, fixture.bytes + 64, 8);
    assert_int_equal(prot_and_flags[0], PROT_READ | PROT_EXEC);
    assert_int_equal(prot_and_flags[1], MAP_PRIVATE);
    close_fixture();
}

/* perf's unwinders want one start - pgoff for all records of a file, those of its tables included.
 */
static void test_all_records_of_an_image_say_one_base(void **state)
{
    const struct added_record maps[] = {
        {1, 0x10000, 0x10040, 0x10000 - 0xf000, 0, 4712, CHANGE_FUNCTION, 0, 0},
        {2, 0x10fff, 0x11000, 0x10fff - 0xf000, 0, 4712, CHANGE_FUNCTION, 0, 0},
        {3, 0x900000, 0x900100, 0x900000 - 0xf000, 0, 4712, ADDED_TABLES, 0, 0}};
    struct perf_record record;
    struct perf_map read;
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        open_fixture(PERF_RECORD_MMAP2, SAMPLE_TYPE);
        put_map(&maps[i], &record, &read);
        assert_int_equal(read.start - read.pgoff, 0xf000);
        assert_string_equal(read.filename, "/out/perf.jit.data.dso/jit-4711-0-a0a1a2a3.so");
        close_fixture();
    }
}

static void test_record_of_the_unloaded_names_no_file(void **state)
{
    const struct added_record map = {1234, 0x10100,         0x10180, 0x10100, 0,
                                     4712, CHANGE_UNLOADED, 0,       0};
    struct perf_record record;
    struct perf_map read;
    (void)state;
    open_fixture(PERF_RECORD_MMAP2, SAMPLE_TYPE);
    put_map(&map, &record, &read);
    assert_int_equal(record.type, PERF_RECORD_MMAP2);
    assert_int_equal(record.misc, PERF_MISC_USER);
    assert_string_equal(read.filename, "[unloaded JIT code]");
    for (size_t i = 40; i < PERF_MMAP2_BYTES; i++)
        assert_int_equal(fixture.bytes[i], 0);
    close_fixture();
}

/* The same record as the dropped one, but for start, length and offset. */
static void test_part_of_a_map_is_the_map_with_other_bounds(void **state)
{
    static const uint32_t types[] = {PERF_RECORD_MMAP, PERF_RECORD_MMAP2};
    const struct added_record map = {77, 0x11000, 0x12000, 0x11000, 0, 4712, CHANGE_MAP, 0, 0};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct perf_record record;
        struct perf_map read;
        open_fixture(types[i], SAMPLE_TYPE);
        put_map(&map, &record, &read);
        const struct perf_record *whole = &fixture.records.maps[0].record;
        assert_int_equal(read.pgoff, 0x3000 + 0x1000);
        assert_int_equal(record.size, whole->size);
        assert_memory_equal(record.bytes, whole->bytes, 16);
        assert_memory_equal(record.bytes + 40, whole->bytes + 40, whole->size - 40u);
        close_fixture();
    }
}

/* Pid and time are the record's own, all else is the trailer_record's. */
static void test_trailers_of_every_layout(void **state)
{
    static const uint64_t bits[] = {PERF_SAMPLE_TID, PERF_SAMPLE_ID, PERF_SAMPLE_STREAM_ID,
                                    PERF_SAMPLE_CPU, PERF_SAMPLE_IDENTIFIER};
    const struct added_record map = {
        1234, 0x10100, 0x10180, 0x10100 - 0xf000, 0, 4712, CHANGE_FUNCTION, 0, 0};
    (void)state;
    for (unsigned set = 0; set < 32; set++) {
        uint64_t sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TIME;
        struct perf_record record;
        struct perf_map read;
        for (unsigned i = 0; i < 5; i++)
            sample_type |= set >> i & 1 ? bits[i] : 0;
        open_fixture(PERF_RECORD_MMAP2, sample_type);
        put_map(&map, &record, &read);
        struct profile_builder *builder = &fixture.builder;
        size_t start = builder->sink.size;
        profile_put_trailer(builder, 0, 4712, 1234);
        size_t bytes = builder->sink.size - start;
        assert_memory_equal(record.bytes + record.size - bytes, builder->bytes + start, bytes);
        close_fixture();
    }
}

static void test_records_fit_with_the_longest_path(void **state)
{
    const struct added_record map = {
        1234, 0x10100, 0x10180, 0x10100 - 0xf000, 0, 4712, CHANGE_FUNCTION, 0, 0};
    char directory[4096];
    struct perf_record record;
    struct perf_map read;
    (void)state;
    memset(directory, 'd', sizeof directory);
    directory[sizeof directory - 1] = '\0';
    open_fixture(PERF_RECORD_MMAP2, SAMPLE_TYPE);
    fixture.source.dso_dir = directory;
    put_map(&map, &record, &read);
    assert_int_equal(strlen(read.filename), 4095 + strlen("/jit-4711-0-a0a1a2a3.so"));
    close_fixture();
}

static void test_a_path_that_is_too_long_is_refused(void **state)
{
    const struct added_record map = {
        1234, 0x10100, 0x10180, 0x10100 - 0xf000, 0, 4712, CHANGE_FUNCTION, 0, 0};
    static char directory[1 << 17];
    static uint8_t room[1 << 18];
    (void)state;
    memset(directory, 'd', sizeof directory - 1);
    open_fixture(PERF_RECORD_MMAP2, SAMPLE_TYPE);
    fixture.source.dso_dir = directory;
    assert_int_equal(added_map_put(&map, &fixture.source, &fixture.sink), -1);
    struct byte_sink large = byte_sink_over(room, sizeof room);
    assert_int_equal(added_map_put(&map, &fixture.source, &large), -1);
    close_fixture();
}

#define MAPS_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MAPS_TEST(test_neighbours_of_one_moment_share_a_record),
        MAPS_TEST(test_inherited_code_between_neighbours_is_not_covered),
        MAPS_TEST(test_order_of_the_loads_does_not_matter),
        MAPS_TEST(test_a_larger_gap_is_not_covered),
        MAPS_TEST(test_moments_are_not_joined),
        MAPS_TEST(test_a_record_does_not_reach_over_another_function),
        MAPS_TEST(test_images_are_not_joined),
        MAPS_TEST(test_reuse_names_the_image_of_the_generation),
        MAPS_TEST(test_reuse_makes_perf_forget_where_it_unwinds),
        MAPS_TEST(test_when_the_main_thread_has_ended_another_one_speaks),
        MAPS_TEST(test_a_sample_behind_its_end_does_not_revive_the_main_thread),
        MAPS_TEST(test_a_new_life_of_the_pid_has_a_main_thread),
        MAPS_TEST(test_late_threads_have_all_maps_as_well),
        MAPS_TEST(test_late_threads_are_not_made_again),
        MAPS_TEST(test_pieces_of_a_function_are_not_joined),
        MAPS_TEST(test_what_is_gone_comes_before_what_is_new),
        MAPS_TEST(test_part_of_a_dropped_map_keeps_its_number),
        MAPS_TEST(test_tables_come_once_with_the_first_function),
        MAPS_TEST(test_processes_are_brought_into_time_order),
        MAPS_TEST(test_nothing_to_add),
        cmocka_unit_test(test_record_of_an_image_carries_its_build_id),
        cmocka_unit_test(test_all_records_of_an_image_say_one_base),
        cmocka_unit_test(test_record_of_the_unloaded_names_no_file),
        cmocka_unit_test(test_part_of_a_map_is_the_map_with_other_bounds),
        cmocka_unit_test(test_trailers_of_every_layout),
        cmocka_unit_test(test_records_fit_with_the_longest_path),
        cmocka_unit_test(test_a_path_that_is_too_long_is_refused),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
