/* A dump of bounded size: who asks for it, what does not fit, and functions in pieces. */
#include "jitdump/writer/dump_ring.h"
#include "tests/unit/ring_dump.h"

#include <sys/syscall.h>
#include <time.h>

/* The clocks go on by so much each time that they are read, besides. */
static uint64_t clock_step_ns, clock_ahead_ns;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int error = (int)syscall(SYS_clock_gettime, clock, now);
    clock_ahead_ns += clock_step_ns;
    uint64_t ns = (uint64_t)now->tv_nsec + clock_ahead_ns;
    now->tv_sec += (time_t)(ns / 1000000000);
    now->tv_nsec = (long)(ns % 1000000000);
    return error;
}

/* ---- Functions in pieces ---- */

enum { PIECED = 40000, HOT_PLACES = 1500, COLD_PLACES = 1000, PIECE_BYTES = 256 };

struct pieced {
    uint64_t index;
    bool unloaded;
    uint8_t seen; /* a bit for each piece that is in the dump */
};

static uint64_t hot_addr(uint32_t i)
{
    return ARENA + (uint64_t)(i * 7 % HOT_PLACES) * PIECE_BYTES;
}

static uint64_t cold_addr(uint32_t i)
{
    return ARENA + (1 << 30) + (uint64_t)(i * 11 % COLD_PLACES) * PIECE_BYTES;
}

static void add_pieced(struct jitdump *dump, struct pieced *function, uint32_t number)
{
    static uint8_t bytes[PIECE_BYTES];
    char name[NAME_BYTES];
    struct jitdump_code code = JITDUMP_CODE_INIT, cold = JITDUMP_CODE_INIT;
    snprintf(name, sizeof name, "p%u", number);
    code.name = name;
    code.code_size = cold.code_size = PIECE_BYTES;
    code.bytes = cold.bytes = bytes;
    code.code_addr = hot_addr(number);
    cold.code_addr = cold_addr(number);
    code.pieces = &cold;
    code.piece_count = 1;
    CHECK(jitdump_add_code(dump, &code, &function->index) == 0);
}

/* Of the functions in the dump both pieces are; and all are in it that are alive. */
static void check_pieced(struct pieced *functions)
{
    static uint32_t hot[HOT_PLACES], cold[COLD_PLACES];
    struct dump_bytes dump = read_dump(path);
    struct record record;
    uint64_t generation = 0;
    size_t offset = JITHEADER_BYTES;
    while (next_record(&dump, &offset, &record)) {
        uint32_t number;
        if (record.id == JIT_CODE_HISTORY)
            generation = cursor_u64(&record.body);
        if (record.id != JIT_CODE_LOAD)
            continue;
        cursor_skip(&record.body, 8 + 8 + 8 + 8);
        uint64_t index = cursor_u64(&record.body);
        CHECK(sscanf(cursor_cstr(&record.body), "p%u", &number) == 1);
        CHECK(index - functions[number].index < 2);
        functions[number].seen |= (uint8_t)(1 << (index - functions[number].index));
    }
    free(dump.data);
    CHECK(generation >= 3);
    for (uint32_t i = 0; i < PIECED; i++) {
        hot[i * 7 % HOT_PLACES] = i;
        cold[i * 11 % COLD_PLACES] = i;
    }
    for (uint32_t i = 0; i < PIECED; i++) {
        bool owns = hot[i * 7 % HOT_PLACES] == i || cold[i * 11 % COLD_PLACES] == i;
        CHECK(functions[i].seen == 0 || functions[i].seen == 3);
        CHECK(functions[i].seen == 3 || !owns || functions[i].unloaded);
    }
}

static void test_functions_in_pieces(void **state)
{
    static struct pieced functions[PIECED];
    struct jitdump *dump = open_ring(0);
    (void)state;
    for (uint32_t i = 0; i < PIECED; i++) {
        add_pieced(dump, &functions[i], i);
        if (i % 3 == 0 && i > 10) {
            struct pieced *old = &functions[i - 10];
            CHECK(jitdump_unload_code(dump, old->index, hot_addr(i - 10), PIECE_BYTES) == 0);
            old->unloaded = true;
        }
    }
    assert_int_equal(jitdump_close(dump), 0);
    check_pieced(functions);
    remove_dump(path);
}

/* ---- What does not fit ---- */

static void test_what_is_alive_leaves_no_room(void **state)
{
    struct jitdump *dump = open_ring(0);
    static uint8_t bytes[1000];
    struct jitdump_code code = JITDUMP_CODE_INIT;
    int error = 0;
    uint32_t added = 0;
    (void)state;
    code.name = "f";
    code.code_size = sizeof bytes;
    code.bytes = bytes;
    for (; !error && added < 10000; added++) {
        code.code_addr = ARENA + added * sizeof bytes;
        error = jitdump_add_code(dump, &code, NULL);
    }
    assert_int_equal(error, -EFBIG);
    assert_int_equal(jitdump_lost(dump), 1);
    assert_non_null(strstr(jitdump_error(dump), "alive"));
    assert_in_range(added, RING_BYTES / 3 / sizeof bytes, RING_BYTES / 2 / sizeof bytes);
    check_bound();
    assert_int_equal(jitdump_close(dump), -EFBIG);
    remove_dump(path);
}

enum { CROWD = 2000, CROWD_BYTES = 4000, STAYS = 8, LATER = 3000 };

static int add_of_crowd(struct jitdump *dump, uint32_t number, uint64_t *index)
{
    static uint8_t bytes[CROWD_BYTES];
    char name[NAME_BYTES];
    struct jitdump_code code = JITDUMP_CODE_INIT;
    snprintf(name, sizeof name, "f%u", number);
    code.name = name;
    code.code_addr = ARENA + (uint64_t)(number % CROWD) * CROWD_BYTES;
    code.code_size = CROWD_BYTES;
    code.bytes = bytes;
    return jitdump_add_code(dump, &code, index);
}

static int unload_of_crowd(struct jitdump *dump, uint32_t number, uint64_t index)
{
    return jitdump_unload_code(dump, index, ARENA + (uint64_t)(number % CROWD) * CROWD_BYTES,
                               CROWD_BYTES);
}

/* At its end the dump has every function that was recorded and stays.  It has none that was
 * unloaded before the last ones were added. */
static void check_crowd(const uint64_t indices[CROWD])
{
    static bool there[2 * CROWD + LATER];
    struct dump_bytes dump = read_dump(path);
    struct record record;
    uint32_t number;
    memset(there, 0, sizeof there);
    for (size_t offset = JITHEADER_BYTES; next_record(&dump, &offset, &record);) {
        if (record.id != JIT_CODE_LOAD && record.id != JIT_CODE_UNLOAD)
            continue;
        cursor_skip(&record.body, record.id == JIT_CODE_LOAD ? 8 + 8 + 8 + 8 : 8 + 8 + 8);
        uint64_t index = cursor_u64(&record.body);
        CHECK(index < sizeof there);
        there[index] = record.id == JIT_CODE_LOAD;
        if (record.id == JIT_CODE_LOAD)
            CHECK(sscanf(cursor_cstr(&record.body), "f%u", &number) == 1);
    }
    free(dump.data);
    for (uint32_t i = 0; i < CROWD; i++)
        if (indices[i] != JITDUMP_NO_CODE)
            CHECK(there[indices[i]] == (i % STAYS == 0));
    CHECK(number == CROWD + LATER);
}

/* Fill DUMP, while the clocks take steps of STEP_NS until there is no room, and unload the most of
 * what is in it.  Returns how many functions found no room. */
static uint32_t fill_up(struct jitdump *dump, uint64_t indices[CROWD], uint64_t step_ns)
{
    uint32_t lost = 0;
    for (uint32_t i = 0; i < CROWD; i++) {
        clock_step_ns = lost ? 0 : step_ns;
        lost += add_of_crowd(dump, i, &indices[i]) == -EFBIG;
    }
    assert_in_range(lost, CROWD / 2, CROWD - 1);
    for (uint32_t i = 0; i < CROWD; i++)
        if (i % STAYS)
            assert_int_equal(unload_of_crowd(dump, i, indices[i]), 0);
    return lost;
}

static void go_on_when_it_was_full(uint32_t flags)
{
    static uint64_t indices[CROWD];
    struct jitdump *dump = open_ring(flags);
    uint32_t lost = fill_up(dump, indices, 0), tries = 0;
    uint64_t index;
    while (add_of_crowd(dump, CROWD + 1, &index)) {
        assert_true(++tries < 1000);
        usleep(20000);
    }
    for (uint32_t i = 2; i <= LATER; i++) {
        assert_int_equal(unload_of_crowd(dump, CROWD + i - 1, index), 0);
        i += i % CROWD % STAYS == 0 && i < LATER; /* not where one stays */
        assert_int_equal(add_of_crowd(dump, CROWD + i, &index), 0);
    }
    assert_int_equal(jitdump_lost(dump), lost + tries);
    check_bound();
    assert_int_equal(jitdump_close(dump), -EFBIG);
    check_crowd(indices);
    remove_dump(path);
}

/* All that was unloaded meanwhile makes room, though the stage was full as well. */
static void test_a_ring_that_was_full_goes_on(void **state)
{
    (void)state;
    go_on_when_it_was_full(0);
}

static void test_an_unmapped_ring_that_was_full_goes_on(void **state)
{
    (void)state;
    go_on_when_it_was_full(JITDUMP_UNMAPPED);
}

/* A rewrite that waited for a processor makes no long pause: here each takes more than 60 s. */
static void test_a_rewrite_that_waited_is_tried_again_soon(void **state)
{
    static uint64_t indices[CROWD];
    struct jitdump *dump = open_ring(0);
    uint32_t tries = 0;
    uint64_t index;
    (void)state;
    fill_up(dump, indices, 60000000000);
    while (add_of_crowd(dump, CROWD + 1, &index)) {
        assert_true(++tries < 1000);
        usleep(20000);
    }
    jitdump_close(dump);
    remove_dump(path);
}

/* What came before the ring may be rewritten again was not looked at: it may fit then. */
static void test_what_was_not_tried_is_not_refused(void **state)
{
    struct dump_ring ring;
    struct dump_body body = {.end = jd_ring_begin(&ring, RING_BYTES, 0)};
    (void)state;
    ring.full_until_ns = ring.again_ns = UINT64_MAX;
    assert_int_equal(jd_ring_add(&ring, &body, NULL, 100, false), -EFBIG);
    assert_int_equal(ring.refused_bytes, 0);
    assert_int_equal(jd_ring_add_with_effect(&ring, &body, NULL, 100), -EFBIG);
    assert_int_equal(ring.refused_tail_bytes, 0);
}

/* ---- The environment ---- */

static int open_by(const char *perfjit, struct jitdump **dump)
{
    struct jitdump_options options = options_in_dir();
    options.flags = 0;
    setenv("PERFJIT", perfjit, 1);
    int error = jitdump_open(dump, &options);
    unsetenv("PERFJIT");
    return error;
}

static void test_environment(void **state)
{
    static const char *const wrong[] = {"dump,ring=",
                                        "dump,ring=x",
                                        "ring=64Q,dump",
                                        "dump,ring=1M",
                                        "dump,ring=-1",
                                        "dump,ring=64MB",
                                        "dump,ring=99999999999999999999",
                                        "dump,ring=99999999999G"};
    static const char *const right[] = {"dump,ring=4M", "ring=4194304,dump", "dump,ring=1G,map"};
    struct jitdump *dump;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(open_by(wrong[i], &dump), -EINVAL);
        assert_non_null(strstr(jitdump_error(dump), "ring="));
        jitdump_close(dump);
    }
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        assert_int_equal(open_by(right[i], &dump), 0);
        assert_int_equal(count_records(path, JIT_CODE_HISTORY), 1);
        assert_int_equal(jitdump_close(dump), 0);
        remove_dump(path);
    }
    assert_int_equal(open_by("ring=4M,map", &dump), 0); /* no dump is asked for */
    assert_null(dump);
    assert_int_equal(open_by("ring=1", &dump), -EINVAL);
    assert_non_null(strstr(jitdump_error(dump), "ring="));
    jitdump_close(dump);
}

static void test_options(void **state)
{
    struct jitdump_options options = options_in_dir();
    struct jitdump *dump;
    (void)state;
    options.flags |= JITDUMP_RING;
    for (options.max_bytes = 0; options.max_bytes < RING_BYTES;
         options.max_bytes += RING_BYTES - 1) {
        assert_int_equal(jitdump_open(&dump, &options), -EINVAL);
        assert_non_null(strstr(jitdump_error(dump), "JITDUMP_RING"));
        jitdump_close(dump);
    }
}

/* By what the body has room for: nobody wants a file of 4 GiB for that. */
static void test_a_ring_is_at_most_4_gib(void **state)
{
    const uint64_t most = UINT64_C(4) << 30;
    struct dump_ring ring;
    (void)state;
    for (uint64_t bytes = most + 1; bytes; bytes <<= 1) {
        jd_ring_begin(&ring, bytes, 0);
        assert_in_range(JITHEADER_BYTES + 2 * ring.segment_bytes, most - (16 << 10), most);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_ring_is_at_most_4_gib),
        cmocka_unit_test_setup_teardown(test_options, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_environment, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_what_is_alive_leaves_no_room, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_a_ring_that_was_full_goes_on, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_a_rewrite_that_waited_is_tried_again_soon, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(test_an_unmapped_ring_that_was_full_goes_on, make_dir,
                                        remove_dir),
        cmocka_unit_test(test_what_was_not_tried_is_not_refused),
        cmocka_unit_test_setup_teardown(test_functions_in_pieces, make_dir, remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
