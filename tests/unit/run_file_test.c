/* What perfjit bench keeps of a run comes back as it was; what is cut, flipped or contradicts
 * itself is refused. */
#include "injector/compare/kept_runs/bench_balance.h"
#include "injector/profile/run_file.h"
#include "jitdump/format/byte_sink.h"
#include "tests/unit/scratch.h"

#include <zstd.h>

/* ---- A profile ---- */

static uint32_t text(struct call_profile *profile, const char *word)
{
    return call_profile_add_string(profile, word, strlen(word));
}

/* main calls hot, inlined, in two threads of one name and one of another; the first has 3 samples.
 */
static void make(struct call_profile *profile)
{
    assert_int_equal(call_profile_begin(profile), 0);
    const struct call_frame outer = {
        .name = text(profile, "main"), .module = text(profile, "node"), .kind = FRAME_NATIVE};
    const struct call_frame inner = {.name = text(profile, "hot"),
                                     .file = text(profile, "/srv/app.js"),
                                     .line = 12,
                                     .column = 5,
                                     .tier = text(profile, "turbofan"),
                                     .kind = FRAME_JIT,
                                     .inlined = 1};
    uint32_t node = call_profile_add_node(profile, 0, call_profile_add_frame(profile, &outer));
    node = call_profile_add_node(profile, node, call_profile_add_frame(profile, &inner));
    for (uint32_t i = 0; i < 3; i++) {
        const struct profile_thread thread = {100, 100 + i, text(profile, i < 2 ? "node" : "gc"),
                                              text(profile, "node")};
        call_profile_add_thread(profile, &thread);
    }
    const struct profile_event event = {text(profile, "cpu-clock"), true};
    assert_int_equal(call_profile_add_event(profile, &event), 0);
    for (uint32_t i = 0; i < 6; i++) {
        const struct call_place place = {7, 13, text(profile, "/srv/app.js"), 1};
        const struct call_sample sample = {.time_ns = 1000 + i,
                                           .period = 10 + i,
                                           .node = i < 5 ? node : 1,
                                           .thread = i % 3,
                                           .place =
                                               i < 5 ? call_profile_add_place(profile, &place) : 0};
        assert_int_equal(call_profile_add_sample(profile, &sample), 0);
    }
}

static const char *word(const struct call_profile *profile, uint32_t number)
{
    return call_profile_string(profile, number);
}

static void test_a_run_comes_back(void **state)
{
    (void)state;
    struct call_profile profile, again;
    struct findings findings = {0};
    make(&profile);
    assert_int_equal(run_file_write(scratch_file, &profile, &findings), 0);
    assert_int_equal(run_file_read(&again, scratch_file, RUN_PERIODS, &findings), 0);
    assert_int_equal(again.node_count, 3);
    assert_int_equal(again.frame_count, 2);
    const struct call_frame *inner = &again.frames[again.nodes[2].frame];
    assert_string_equal(word(&again, inner->name), "hot");
    assert_string_equal(word(&again, inner->file), "/srv/app.js");
    assert_string_equal(word(&again, inner->tier), "turbofan");
    assert_int_equal(inner->line, 12);
    assert_int_equal(inner->column, 5);
    assert_int_equal(inner->inlined, 1);
    assert_int_equal(inner->kind, FRAME_JIT);
    assert_int_equal(again.thread_count, 2);
    assert_string_equal(word(&again, again.threads[1].name), "gc");
    assert_string_equal(word(&again, again.threads[1].process), "node");
    assert_true(again.events[0].counts_ns);
    /* (main, gc) 15; (hot, node) 10 + 11 + 13 + 14; (hot, gc) 12 */
    assert_int_equal(again.sample_count, 3);
    assert_int_equal(again.samples[0].period, 15);
    assert_int_equal(again.samples[1].period, 48);
    const struct call_place *place = &again.places[again.samples[1].place];
    assert_int_equal(again.samples[0].place, 0);
    assert_int_equal(place->offset, 7);
    assert_int_equal(place->line, 13);
    assert_string_equal(word(&again, place->file), "/srv/app.js");
    assert_int_equal(again.samples[2].period, 12);
    call_profile_free(&again);
    assert_int_equal(run_file_read(&again, scratch_file, RUN_COUNTS, &findings), 0);
    assert_int_equal(again.samples[1].period, 4);
    assert_false(again.events[0].counts_ns);
    call_profile_free(&again);
    assert_int_equal(run_file_read(&again, scratch_file, RUN_EACH, &findings), 0);
    assert_int_equal(again.sample_count, 6);
    assert_int_equal(again.samples[1].period + again.samples[2].period + again.samples[3].period +
                         again.samples[4].period,
                     48);
    assert_true(again.events[0].counts_ns);
    assert_true(run_file_is(scratch_file));
    assert_false(run_file_is("/proc/self/exe"));
    call_profile_free(&again);
    call_profile_free(&profile);
    findings_free(&findings);
}

/* ---- Damage ---- */

static bool is_read(const uint8_t *bytes, size_t size)
{
    struct call_profile profile;
    struct findings findings = {0};
    int result = run_file_parse(&profile, "damaged.run", bytes, size, RUN_PERIODS, &findings);
    assert_int_equal(result != 0, findings.failure[0] != '\0');
    if (result)
        assert_non_null(strstr(findings.failure, "damaged.run"));
    call_profile_free(&profile);
    findings_free(&findings);
    return result == 0;
}

/* Some bits mean nothing to zstd's reader: one that is not used, one for which the size of the
 * content is taken for that of a window, and those that fill up the last byte of a stream of bits.
 * Which, depends on the content: with one of them flipped, this is what it was. */
static bool is_idle(const uint8_t *bytes, const uint8_t *sound, size_t size)
{
    enum { HEADER = 16 };
    static uint8_t body[4096], sound_body[4096];
    size_t got = ZSTD_decompress(body, sizeof body, bytes + HEADER, size - HEADER);
    size_t wanted = ZSTD_decompress(sound_body, sizeof sound_body, sound + HEADER, size - HEADER);
    return memcmp(bytes, sound, HEADER) == 0 && got == wanted && memcmp(body, sound_body, got) == 0;
}

static void test_each_cut_and_flip_is_noticed(void **state)
{
    (void)state;
    enum { MOST_IDLE = 16 };
    static uint8_t bytes[4096], sound[4096];
    size_t idle = 0;
    struct call_profile profile;
    struct findings findings = {0};
    make(&profile);
    assert_int_equal(run_file_write(scratch_file, &profile, &findings), 0);
    FILE *file = fopen(scratch_file, "rb");
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(is_read(bytes, size));
    memcpy(sound, bytes, size);
    for (size_t cut = 0; cut < size; cut++)
        assert_false(is_read(bytes, cut));
    assert_false(is_read(bytes, size + 1));
    for (size_t bit = 0; bit < size * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (is_read(bytes, size)) {
            assert_true(is_idle(bytes, sound, size));
            idle++;
        }
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_in_range(idle, 0, MOST_IDLE);
    call_profile_free(&profile);
    findings_free(&findings);
}

/* Bodies that contradict themselves, each behind what is said of it. */
static const struct {
    const char *said;
    uint8_t bytes[40];
    size_t size;
} broken[] = {
    {"byte 0 of the body: it ends here", {0}, 0},
    {"byte 0 of the body: it ends here", {0x80}, 1},
    {"byte 0 of the body: a list is longer", {9, 1, 'a'}, 3},
    {"byte 1 of the body: a list is longer", {1, 9, 'a'}, 3},
    {"byte 1 of the body: a list is longer", {1, 2, 'a'}, 3},
    {"byte 2 of the body: a name that can't be shown", {1, 1, '\n'}, 3},
    {"byte 2 of the body: a name that can't be shown", {1, 1, 0xff}, 3},
    {"byte 2 of the body: there is no such string", {0, 1, 1, 0, 0, 0, 0, 0, 0}, 9},
    {"byte 7 of the body: there is no such kind", {0, 1, 0, 0, 0, 0, 0, 5, 0}, 9},
    {"byte 8 of the body: inlined is neither", {0, 1, 0, 0, 0, 0, 0, 0, 2}, 9},
    {"byte 3 of the body: a caller that is not before", {0, 0, 1, 1, 0}, 5},
    {"byte 4 of the body: there is no such frame", {0, 0, 1, 0, 0}, 5},
    {"byte 6 of the body: there is no such string", {0, 0, 0, 1, 5, 6, 1}, 7},
    {"byte 5 of the body: there is no such string", {0, 0, 0, 0, 1, 1, 0}, 7},
    {"byte 7 of the body: ns is neither", {0, 0, 0, 0, 0, 1, 0, 2}, 8},
    {"byte 8 of the body: there is no such thread", {0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1}, 13},
    {"byte 14 of the body: there is no such place",
     {0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 1, 1},
     17},
    {"byte 7 of the body: there is something behind", {0, 0, 0, 0, 0, 0, 0, 7}, 8},
};

static void test_what_contradicts_itself_is_refused_with_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        struct call_profile profile;
        struct findings findings = {0};
        assert_int_equal(call_profile_begin(&profile), 0);
        assert_int_equal(run_file_parse_body(&profile, "broken.run", RUN_FILE_OLDEST, broken[i].bytes,
                                             broken[i].size, RUN_PERIODS, &findings),
                         -1);
        if (!strstr(findings.failure, broken[i].said))
            fail_msg("case %zu: '%s' instead of '%s'", i, findings.failure, broken[i].said);
        call_profile_free(&profile);
        findings_free(&findings);
    }
}

/* What older versions kept has no columns. */
static void test_an_older_run_is_read(void **state)
{
    (void)state;
    static const uint8_t body[] = {1, 1, 'a', 1, 1, 0, 0, 7, 0, 1, 0, 0, 0, 0, 0, 0};
    struct call_profile profile;
    struct findings findings = {0};
    assert_int_equal(call_profile_begin(&profile), 0);
    assert_int_equal(run_file_parse_body(&profile, "old.run", RUN_FILE_OLDEST, body, sizeof body,
                                         RUN_PERIODS, &findings),
                     0);
    assert_int_equal(profile.frame_count, 1);
    assert_int_equal(profile.frames[0].line, 7);
    assert_int_equal(profile.frames[0].column, 0);
    assert_int_equal(profile.frames[0].kind, FRAME_INTERPRETER);
    call_profile_free(&profile);
    findings_free(&findings);
}

/* Two samples whose periods are more together than a number can be. */
static void test_sums_do_not_overflow(void **state)
{
    (void)state;
    uint8_t bytes[64];
    struct byte_sink sink = byte_sink_over(bytes, sizeof bytes);
    struct call_profile profile;
    struct findings findings = {0};
    for (size_t i = 0; i < 4; i++)
        sink_uleb(&sink, 0);
    for (size_t i = 0; i < 2; i++) { /* a thread, an event */
        sink_uleb(&sink, 1);
        sink_u16(&sink, 0);
    }
    sink_uleb(&sink, 2);
    for (size_t i = 0; i < 2; i++) {
        sink_zeros(&sink, 4);
        sink_uleb(&sink, 1);
        sink_uleb(&sink, i ? UINT64_MAX : 1);
    }
    assert_int_equal(call_profile_begin(&profile), 0);
    assert_int_equal(
        run_file_parse_body(&profile, "sum.run", RUN_FILE_VERSION, bytes, sink.size, RUN_PERIODS, &findings), -1);
    assert_non_null(strstr(findings.failure, "too many samples"));
    call_profile_free(&profile);
    findings_free(&findings);
}

/* A body of 64 MiB of zeros, packed into 6 KiB, and one that says it has more. */
static void test_what_unpacks_to_more_than_it_says(void **state)
{
    (void)state;
    static uint8_t packed[1 << 16], zeros[1 << 20];
    const uint8_t header[] = {'p', 'j', 'r', 'u', 'n', '\r', '\n', 0x1a, 2, 0, 0, 0, 16, 0, 0, 0};
    memcpy(packed, header, sizeof header);
    size_t size = ZSTD_compress(packed + 16, sizeof packed - 16, zeros, sizeof zeros, 1);
    assert_false(ZSTD_isError(size));
    assert_false(is_read(packed, size + 16));
    packed[15] = 0xff;
    assert_false(is_read(packed, size + 16));
}

/* ---- Lists ---- */

static const char list_text[] = "perfjit-bench\t1\norder\tturns\nfact\tbase\tcpu\tone\n"
                                "later\tword\nfact\tnew\tcpu\ttwo\n"
                                "run\tbase\ta.run\tturn=1\tcpu_ns=7\tlater=x\n"
                                "run\tnew\tb.run\tturn=2\nend\n";

static int parse(struct bench_list *list, const char *bytes, size_t size, char *failure)
{
    struct findings findings = {0};
    int result = bench_list_parse(list, "list", bytes, size, &findings);
    strcpy(failure, findings.failure);
    findings_free(&findings);
    return result;
}

static void test_a_list_is_read_and_each_cut_is_noticed(void **state)
{
    (void)state;
    struct bench_list list;
    char failure[1024];
    assert_int_equal(parse(&list, list_text, strlen(list_text), failure), 0);
    assert_int_equal(list.order, ORDER_TURNS);
    assert_string_equal(bench_list_fact(&list, BENCH_NEW, "cpu"), "two");
    assert_int_equal(list.run_count, 2);
    assert_string_equal(list.runs[0].file, "a.run");
    assert_int_equal(list.runs[0].numbers[RUN_CPU_NS], 7);
    bench_list_free(&list);
    for (size_t cut = 1; cut < strlen(list_text); cut++) {
        assert_int_equal(parse(&list, list_text, cut, failure), -1);
        assert_non_null(strstr(failure, "list:"));
        bench_list_free(&list);
    }
}

static void test_wrong_lines_are_refused_with_their_number(void **state)
{
    (void)state;
    static const char *const lines[] = {"order\tsideways",
                                        "order",
                                        "fact\tbase\tcpu",
                                        "fact\tolder\tcpu\tx",
                                        "run\tbase",
                                        "run\tbase\t../a.run",
                                        "run\tbase\t.run",
                                        "run\tbase\ta.txt",
                                        "run\tbase\ta.run\tturn=x",
                                        "run\tbase\ta.run\tturn",
                                        "run\tbase\ta.run\tturn=-1",
                                        "fact\tbase\tcpu\t\033[2J",
                                        "run\tbase\ta.run\tturn=99999999999999999999"};
    struct bench_list list;
    char bytes[512], failure[1024];
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        snprintf(bytes, sizeof bytes, "perfjit-bench\t1\n%s\nend\n", lines[i]);
        assert_int_equal(parse(&list, bytes, strlen(bytes), failure), -1);
        assert_non_null(strstr(failure, "list:2: "));
        bench_list_free(&list);
    }
}

/* ---- Balance ---- */

static int append(void *context, const char *sentence)
{
    strcat(context, sentence);
    return 0;
}

/* What is told of 6 + 6 runs; LOAD: processors that others have in the new ones; DRIFT: percent
 * from run to run. */
static void tell(char *told, enum bench_order order, double load, double drift, uint64_t loop_ns)
{
    struct bench_list list = {.order = order};
    char name[] = "a.run";
    for (uint64_t i = 0; i < 12; i++) {
        bool is_new = order == ORDER_BLOCKS ? i >= 6 : i % 2;
        struct bench_run run = {is_new ? BENCH_NEW : BENCH_BASE, name, {0}};
        run.numbers[RUN_TURN] = i + 1;
        run.numbers[RUN_WALL_NS] = 1000000;
        run.numbers[RUN_CPU_NS] = 1000000 + (uint64_t)((double)i * drift * 1e4) + i * 7 % 3 * 100;
        run.numbers[RUN_BESIDE_NS] =
            100000 + i * 5 % 4 * 10000 + (is_new ? (uint64_t)(load * 1e6) : 0);
        run.numbers[RUN_LOOP_NS] = is_new ? loop_ns : 1000000;
        assert_int_equal(bench_list_add_run(&list, &run), 0);
    }
    const struct balance_side base = {&list, BENCH_BASE}, new = {&list, BENCH_NEW};
    *told = '\0';
    bench_balance_tell(&base, &new, order, append, told);
    bench_list_free(&list);
}

static void test_what_is_uneven_is_told_and_nothing_else(void **state)
{
    (void)state;
    char told[2048];
    tell(told, ORDER_TURNS, 0, 0, 1000000);
    assert_string_equal(told, "");
    tell(told, ORDER_TURNS, 0.5, 0, 1000000);
    assert_ptr_equal(strstr(told, "other work on the machine took 0.1"), told);
    tell(told, ORDER_TURNS, 0, 0, 1020000);
    assert_ptr_equal(strstr(told, "the machine was 2.0 % slower"), told);
    tell(told, ORDER_TURNS, 0, 1, 1000000);
    assert_string_equal(told, "");
    tell(told, ORDER_BLOCKS, 0, 0, 1000000);
    assert_string_equal(told, "");
    tell(told, ORDER_BLOCKS, 0, 1, 1000000);
    assert_ptr_equal(strstr(told, "the runs of a side became slower one after the other"), told);
}

static void test_lost_samples_of_either_side_are_told(void **state)
{
    (void)state;
    char told[2048] = "";
    struct bench_list list = {.order = ORDER_TOGETHER};
    for (int i = 0; i < 4; i++) {
        struct bench_run run = {.side = i % 2 ? BENCH_NEW : BENCH_BASE, .file = "1.run"};
        run.numbers[RUN_SAMPLES] = 300;
        run.numbers[RUN_LOST] = i == 3 ? 100 : i == 2 ? 1 : 0;
        assert_int_equal(bench_list_add_run(&list, &run), 0);
    }
    const struct balance_side base = {&list, BENCH_BASE}, new = {&list, BENCH_NEW};
    assert_int_equal(bench_balance_tell(&base, &new, ORDER_TOGETHER, append, told), 0);
    assert_ptr_equal(strstr(told, "perf lost samples in 2 of 4 runs, up to 25.0 % of a run"), told);
    bench_list_free(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_comes_back),
        cmocka_unit_test(test_each_cut_and_flip_is_noticed),
        cmocka_unit_test(test_what_contradicts_itself_is_refused_with_its_place),
        cmocka_unit_test(test_an_older_run_is_read),
        cmocka_unit_test(test_sums_do_not_overflow),
        cmocka_unit_test(test_what_unpacks_to_more_than_it_says),
        cmocka_unit_test(test_a_list_is_read_and_each_cut_is_noticed),
        cmocka_unit_test(test_wrong_lines_are_refused_with_their_number),
        cmocka_unit_test(test_what_is_uneven_is_told_and_nothing_else),
        cmocka_unit_test(test_lost_samples_of_either_side_are_told),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
