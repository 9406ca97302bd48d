/* What becomes of a dump's records: functions, events in time order, and findings. */
#include "tests/unit/log_world.h"

/* Of a process that was killed, the stage has what the body has: all but the last load here, which
 * is another function of the same time. */
static void test_what_two_dumps_have_counts_once(void **state)
{
    struct fixture fixture;
    struct jit_dump other;
    (void)state;
    begin();
    dump_load(&built, 5, ADDR, "f", "code", 0);
    dump_load(&built, 5, ADDR, "f", "code", 0); /* in one dump: it was logged twice */
    dump_load(&built, 6, ADDR + 16, "g", "code", 1);
    dump_load(&built, 7, ADDR + 32, "h", "code", 2);
    read_built(&fixture);
    begin();
    dump_load(&built, 5, ADDR, "f", "code", 0);
    dump_load(&built, 6, ADDR + 16, "g", "Code", 1);
    dump_load(&built, 7, ADDR + 32, "h", "code", 2);
    open_cut_dump(&built, built.sink.size, &other);
    assert_int_equal(code_log_read(&fixture.log, &other, 4, &monotonic, true, &fixture.findings),
                     0);
    assert_int_equal(code_log_sort(&fixture.log, &fixture.findings), 0);
    code_log_drop_repeated(&fixture.log);
    assert_int_equal(fixture.log.event_count, 5);
    assert_event(&fixture.log, 1, 5, CODE_EVENT_LOAD, 1);
    assert_event(&fixture.log, 2, 6, CODE_EVENT_LOAD, 2);
    assert_event(&fixture.log, 3, 6, CODE_EVENT_LOAD, 5);
    assert_event(&fixture.log, 4, 7, CODE_EVENT_LOAD, 3);
    assert_int_equal(fixture.log.functions[6].dump, NO_DUMP);
    assert_int_equal(fixture.log.functions[5].dump, 4);
    jit_dump_close(&other);
    release(&fixture);
}

static void test_load_becomes_a_function_and_an_event(void **state)
{
    struct fixture fixture;
    (void)state;
    begin();
    dump_load(&built, 5, ADDR, "fib", "code", 7);
    read_built(&fixture);
    assert_int_equal(fixture.log.function_count, 1);
    const struct jit_function *function = fixture.log.functions;
    assert_int_equal(function->addr, ADDR);
    assert_int_equal(function->size, 4);
    assert_int_equal(function->code_index, 7);
    assert_string_equal(function->name, "fib");
    assert_memory_equal(function->code, "code", 4);
    assert_int_equal(function->dump, 3);
    assert_int_equal(fixture.log.event_count, 1);
    assert_event(&fixture.log, 0, 5, CODE_EVENT_LOAD, 0);
    assert_int_equal(findings_lost(&fixture.findings), 0);
    release(&fixture);
}

/* A residence of its own: name and code come from where it was moved from. */
static void test_move_becomes_a_second_residence(void **state)
{
    struct fixture fixture;
    (void)state;
    begin();
    dump_load(&built, 5, ADDR, "fib", "code", 7);
    dump_move(&built, 6, ADDR, ADDR + 64, 4, 7);
    read_built(&fixture);
    assert_int_equal(fixture.log.function_count, 2);
    assert_int_equal(fixture.log.functions[1].addr, ADDR + 64);
    assert_int_equal(fixture.log.functions[1].size, 4);
    assert_int_equal(fixture.log.functions[1].code_index, 7);
    assert_event(&fixture.log, 1, 6, CODE_EVENT_MOVE, 0);
    assert_int_equal(fixture.log.moves[0].old_addr, ADDR);
    assert_int_equal(fixture.log.moves[0].function, 1);
    release(&fixture);
}

/* A LOAD of another address, index or time than the PIECE before it says is a whole function. */
static void test_piece_is_of_the_load_that_it_is_about(void **state)
{
    static const uint32_t numbers[] = {1, 3, 0, 0, 0, 0, 0};
    struct fixture fixture;
    (void)state;
    begin();
    dump_piece(&built, 5, ADDR, 7, 0, 3);
    dump_load(&built, 5, ADDR, "f", "code", 7);
    dump_piece(&built, 5, ADDR + 64, 7, 2, 3);
    dump_load(&built, 5, ADDR + 64, "f", "code", 9);
    dump_load(&built, 6, ADDR + 64, "after", "code", 9);
    dump_piece(&built, 7, ADDR, 7, 1, 3);
    dump_load(&built, 7, ADDR + 1, "address", "code", 8);
    dump_load(&built, 7, ADDR, "too late", "code", 8);
    dump_piece(&built, 8, ADDR, 7, 1, 3);
    dump_load(&built, 8, ADDR, "index", "code", 10);
    dump_piece(&built, 9, ADDR, 7, 1, 3);
    dump_load(&built, 10, ADDR, "time", "code", 8);
    read_built(&fixture);
    assert_int_equal(fixture.log.function_count, 7);
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(fixture.log.functions[i].piece, numbers[i]);
    assert_true(fixture.log.has_pieces);
    release(&fixture);
}

static void test_unload_becomes_an_event(void **state)
{
    struct fixture fixture;
    (void)state;
    begin();
    dump_unload(&built, 6, ADDR, 4, 7);
    read_built(&fixture);
    assert_int_equal(fixture.log.function_count, 0);
    assert_event(&fixture.log, 0, 6, CODE_EVENT_UNLOAD, 0);
    assert_int_equal(fixture.log.unloads[0].addr, ADDR);
    assert_int_equal(fixture.log.unloads[0].size, 4);
    assert_int_equal(fixture.log.unloads[0].code_index, 7);
    release(&fixture);
}

static void test_function_without_a_name_gets_one(void **state)
{
    struct fixture fixture;
    (void)state;
    begin();
    dump_load(&built, 5, ADDR, "", "code", 7);
    read_built(&fixture);
    assert_string_equal(fixture.log.functions[0].name, "[unnamed JIT code]");
    release(&fixture);
}

static void test_function_without_code_bytes_is_kept_and_told(void **state)
{
    struct fixture fixture;
    (void)state;
    begin();
    size_t start = dump_begin_load(&built, 5, ADDR, 400, 7);
    sink_cstr(&built.sink, "stub");
    dump_end_record(&built, start);
    read_built(&fixture);
    assert_int_equal(fixture.log.functions[0].size, 400);
    assert_null(fixture.log.functions[0].code);
    assert_found(&fixture.findings, FINDING_BYTES_ABSENT, 1, "record 0 at 0x28: stub");
    assert_int_equal(findings_lost(&fixture.findings), 0);
    release(&fixture);
}

static void test_broken_records_are_skipped_and_told(void **state)
{
    struct fixture fixture;
    (void)state;
    begin();
    dump_plain(&built, JIT_CODE_MOVE, 4, 8);
    dump_load(&built, 5, ADDR, "fib", "code", 7);
    dump_unwinding(&built, 6, 400, 20, 40);
    read_built(&fixture);
    assert_int_equal(fixture.log.function_count, 1);
    assert_int_equal(fixture.log.event_count, 1);
    assert_found(&fixture.findings, FINDING_RECORD_BROKEN, 2,
                 "record 0 at 0x28: MOVE is shorter than its fixed part");
    release(&fixture);
}

static void test_unknown_records_are_skipped_and_told(void **state)
{
    struct fixture fixture;
    (void)state;
    begin();
    dump_load(&built, 5, ADDR, "fib", "code", 7);
    dump_plain(&built, 77, 4, 8);
    read_built(&fixture);
    assert_int_equal(fixture.log.event_count, 1);
    assert_found(&fixture.findings, FINDING_RECORD_UNKNOWN, 1, "id 77, 24 bytes");
    release(&fixture);
}

static void test_close_filler_and_lines_say_nothing(void **state)
{
    struct fixture fixture;
    (void)state;
    begin();
    dump_plain(&built, JIT_FILLER, 4, 80);
    dump_plain(&built, JIT_CODE_CLOSE, 5, 0);
    dump_plain(&built, JIT_CODE_DEBUG_INFO, 5, 16);
    dump_load(&built, 6, ADDR, "after the close", "code", 7);
    read_built(&fixture);
    assert_int_equal(fixture.log.event_count, 1);
    assert_int_equal(findings_lost(&fixture.findings), 0);
    release(&fixture);
}

static void test_events_are_sorted_by_time(void **state)
{
    struct fixture fixture;
    (void)state;
    begin();
    dump_load(&built, 30, ADDR, "late", "code", 1);
    dump_load(&built, 10, ADDR, "early", "code", 2);
    dump_load(&built, 20, ADDR, "middle", "code", 3);
    read_built(&fixture);
    assert_event(&fixture.log, 0, 10, CODE_EVENT_LOAD, 1);
    assert_event(&fixture.log, 1, 20, CODE_EVENT_LOAD, 2);
    assert_event(&fixture.log, 2, 30, CODE_EVENT_LOAD, 0);
    release(&fixture);
}

/* A log of COUNT events with random times below TIMES; the index says where each stood. */
static void assert_sorts_stably(uint32_t count, uint32_t times, uint64_t seed)
{
    struct code_log log = {0};
    struct findings findings = {0};
    log.events = calloc(count + 1, sizeof *log.events);
    log.event_count = count;
    for (uint32_t i = 0; i < count; i++)
        log.events[i] = (struct code_event){random_below(&seed, times), CODE_EVENT_LOAD, i};
    assert_int_equal(code_log_sort(&log, &findings), 0);
    uint64_t indices = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct code_event *event = &log.events[i];
        indices += event->index;
        if (i > 0)
            assert_true(event[-1].time_ns < event->time_ns ||
                        (event[-1].time_ns == event->time_ns && event[-1].index < event->index));
    }
    assert_int_equal(indices, (uint64_t)count * (count - (count > 0)) / 2);
    code_log_free(&log);
}

static void test_events_with_equal_times_keep_their_order(void **state)
{
    (void)state;
    for (uint32_t count = 0; count < 300; count++)
        for (uint32_t times = 1; times < 600; times += 83)
            assert_sorts_stably(count, times, count * 1000 + times + 1);
    assert_sorts_stably(100000, 1000, 5);
}

static void test_cycles_become_the_profiles_time(void **state)
{
    struct fixture fixture = {0};
    const struct jit_clock cycles = {
        .cycles = true, .conv = {.known = true, .shift = 1, .mult = 3, .zero_ns = 1000}};
    (void)state;
    begin();
    dump_load(&built, 100, ADDR, "fib", "code", 7);
    open_built_dump(&built, &fixture.dump);
    assert_int_equal(
        code_log_read(&fixture.log, &fixture.dump, 0, &cycles, true, &fixture.findings), 0);
    assert_event(&fixture.log, 0, 1150, CODE_EVENT_LOAD, 0);
    release(&fixture);
}

static void test_several_dumps_make_one_log(void **state)
{
    struct fixture fixture;
    (void)state;
    begin();
    dump_load(&built, 30, ADDR, "one", "code", 1);
    read_built(&fixture);
    assert_int_equal(
        code_log_read(&fixture.log, &fixture.dump, 4, &monotonic, true, &fixture.findings), 0);
    assert_int_equal(fixture.log.function_count, 2);
    assert_int_equal(fixture.log.functions[0].dump, 3);
    assert_int_equal(fixture.log.functions[1].dump, 4);
    assert_event(&fixture.log, 1, 30, CODE_EVENT_LOAD, 1);
    release(&fixture);
}

static void test_dump_of_the_other_byte_order_reads_alike(void **state)
{
    struct fixture fixture;
    (void)state;
    dump_begin(&built, true, JITHEADER_BYTES);
    dump_load(&built, 5, ADDR, "fib", "code", 7);
    dump_move(&built, 6, ADDR, ADDR + 64, 4, 7);
    read_built(&fixture);
    assert_int_equal(fixture.log.functions[1].addr, ADDR + 64);
    assert_event(&fixture.log, 1, 6, CODE_EVENT_MOVE, 0);
    assert_int_equal(findings_lost(&fixture.findings), 0);
    release(&fixture);
}

static void test_unwinding_info_is_noticed_even_if_empty(void **state)
{
    struct fixture fixture;
    (void)state;
    begin();
    dump_load(&built, 5, ADDR, "fib", "code", 7);
    read_built(&fixture);
    assert_false(fixture.log.has_unwinding);
    release(&fixture);
    dump_unwinding(&built, 6, 0, 0, 0);
    dump_load(&built, 6, ADDR, "fob", "code", 8);
    read_built(&fixture);
    assert_true(fixture.log.has_unwinding);
    assert_int_equal(fixture.log.functions[1].fde_count, 0);
    release(&fixture);
}

/* Twenty records, the file cut at every byte: what stands in front of the cut counts, and the cut
 * is told.  A load that lost only code counts, too. */
static void test_cut_at_every_byte_keeps_what_stands_before_it(void **state)
{
    enum { NAMED_BYTES = JR_CODE_LOAD_BYTES + sizeof "a function" };
    size_t boundaries[21];
    (void)state;
    begin();
    for (uint32_t i = 0; i < 20; i++) {
        boundaries[i] = built.sink.size;
        if (i % 4 == 3)
            dump_unwinding(&built, i + 1, 30, 20, 32);
        else
            dump_load(&built, 100 - i, ADDR + i * 64, "a function", "some code", i + 1);
    }
    boundaries[20] = built.sink.size;
    size_t whole = 0, loads = 0;
    for (size_t size = JITHEADER_BYTES; size <= built.sink.size; size++) {
        struct fixture fixture;
        if (whole < 20 && size == boundaries[whole + 1])
            loads += whole++ % 4 != 3;
        read_cut(&fixture, size);
        bool named = whole < 20 && whole % 4 != 3 && size >= boundaries[whole] + NAMED_BYTES;
        assert_int_equal(fixture.log.function_count, loads + named);
        assert_int_equal(fixture.log.event_count, loads + named);
        if (named)
            assert_string_equal(fixture.log.functions[loads].name, "a function");
        if (named)
            assert_null(fixture.log.functions[loads].code);
        assert_int_equal(fixture.findings.count[FINDING_UNWIND_UNMATCHED], 0);
        if (size == boundaries[whole])
            assert_int_equal(fixture.findings.count[FINDING_DUMP_TRUNCATED], 0);
        else if (size >= boundaries[whole] + 8) /* a few zeros pass for room never used */
            assert_int_equal(fixture.findings.count[FINDING_DUMP_TRUNCATED], 1);
        release(&fixture);
    }
    assert_int_equal(loads, 15);
}

static void test_cut_tells_where_it_is(void **state)
{
    struct fixture fixture;
    (void)state;
    begin();
    dump_load(&built, 5, ADDR, "fib", "code", 7);
    size_t at = built.sink.size;
    dump_load(&built, 5, ADDR, "fob", "code", 7);
    read_cut(&fixture, built.sink.size - 1);
    assert_int_equal(at, 0x68);
    assert_found(&fixture.findings, FINDING_DUMP_TRUNCATED, 1,
                 "record 1 at 0x68: ends after 63 of its 64 bytes; its name, fob, is kept");
    release(&fixture);
    read_cut(&fixture, built.sink.size - 5);
    assert_found(&fixture.findings, FINDING_DUMP_TRUNCATED, 1,
                 "record 1 at 0x68: 64 bytes long by its prefix, 59 are left");
    release(&fixture);
}

/* .NET 10.0: the code of the block, all of it or from some page on, could not be read. */
static void test_a_block_of_stubs_at_the_end_is_no_loss(void **state)
{
    static const struct {
        const char *name;
        bool is_stubs;
    } cases[] = {
        {"stub ReportStubBlock<FixupPrecode>", true},
        {"stub<2> ReportStubBlock<FixupPrecode>", true},
        {"stub A<?>", true},
        {"stub", false},
        {"stub A", false},
        {"stub<2>", false},
        {"stub<2", false},
        {"stub<x> A<B>", false},
        {"stubborn<B>", false},
        {"int32 [app] A::stub A<B>", false},
        {"stub A<B> [tier1]", false},
    };
    struct fixture fixture;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t left = 0; left < 4; left++) { /* of its code */
            begin();
            dump_load(&built, 5, ADDR, "stub A<B>", "code", 1);
            dump_load(&built, 6, ADDR + 64, cases[i].name, "code", 2);
            read_cut(&fixture, built.sink.size - 4 + left);
            assert_int_equal(fixture.log.function_count, 2);
            assert_string_equal(fixture.log.functions[1].name, cases[i].name);
            assert_true(fixture.log.cut);
            assert_int_equal(fixture.log.stubs_unread, cases[i].is_stubs);
            assert_int_equal(fixture.findings.repaired[QUIRK_STUBS_UNREAD], cases[i].is_stubs);
            assert_int_equal(findings_lost(&fixture.findings), !cases[i].is_stubs);
            release(&fixture);
        }
}

/* Its tables, and lines, are of the load that was cut. */
static void test_tables_in_front_of_a_cut_are_no_second_loss(void **state)
{
    struct fixture fixture;
    (void)state;
    begin();
    dump_load(&built, 5, ADDR, "fib", "code", 7);
    dump_unwinding(&built, 6, 30, 20, 32);
    dump_load(&built, 6, ADDR + 64, "fob", "code", 8);
    read_cut(&fixture, built.sink.size - 8);
    assert_int_equal(fixture.log.function_count, 1);
    assert_int_equal(fixture.findings.count[FINDING_DUMP_TRUNCATED], 1);
    assert_int_equal(findings_lost(&fixture.findings), 1);
    release(&fixture);
}

/* ---- Quirks that show between records ---- */

static void test_repeated_indices_are_counted(void **state)
{
    static const uint8_t indices[] = {5, 3, 5, 4, 3, 5};
    struct fixture fixture;
    (void)state;
    begin();
    for (uint32_t i = 0; i < sizeof indices; i++)
        dump_load(&built, i, ADDR + i * 64, "fib", "code", indices[i]);
    dump_move(&built, 9, ADDR, ADDR + 0x1000, 4, 5); /* which says it again by right */
    read_built(&fixture);
    assert_repaired(&fixture.findings, QUIRK_INDEX_REUSED, 3);
    release(&fixture);
}

static void test_indices_that_only_fall_are_unique(void **state)
{
    struct fixture fixture;
    (void)state;
    begin();
    for (uint32_t i = 0; i < 5; i++)
        dump_load(&built, i, ADDR + i * 64, "fib", "code", 4 - i);
    read_built(&fixture);
    assert_repaired(&fixture.findings, QUIRKS, 0);
    release(&fixture);
}

/* Functions end at the time of the first event behind the header, and a dump before this one in the
 * log has no part in it. */
static void test_second_header_ends_what_was_logged_before(void **state)
{
    struct fixture fixture;
    (void)state;
    begin();
    dump_load(&built, 5, ADDR, "old", "code", 0);
    put_header(4711, false, 0);
    dump_load(&built, 7, ADDR + 64, "new", "code", 0);
    dump_load(&built, 8, ADDR + 128, "newer", "code", 1);
    read_built(&fixture);
    assert_repaired(&fixture.findings, QUIRK_HEADER_AGAIN, 1);
    assert_int_equal(fixture.log.event_count, 4);
    assert_event(&fixture.log, 0, 5, CODE_EVENT_LOAD, 0);
    assert_event(&fixture.log, 1, 7, CODE_EVENT_END, 0);
    assert_event(&fixture.log, 2, 7, CODE_EVENT_LOAD, 1);
    assert_event(&fixture.log, 3, 8, CODE_EVENT_LOAD, 2);
    assert_int_equal(fixture.log.unloads[0].addr, ADDR);
    assert_int_equal(fixture.log.unloads[0].size, 4);
    size_t unloads = fixture.log.unload_count;
    assert_int_equal(
        code_log_read(&fixture.log, &fixture.dump, 4, &monotonic, true, &fixture.findings), 0);
    assert_int_equal(fixture.log.unload_count, 2 * unloads);
    assert_int_equal(fixture.log.unloads[unloads].addr, ADDR);
    release(&fixture);
}

static void assert_foreign(uint32_t pid, bool big_endian, uint64_t flags, const char *words)
{
    struct fixture fixture;
    begin();
    dump_load(&built, 5, ADDR, "own", "code", 0);
    put_header(pid, big_endian, flags);
    built.sink.big_endian = big_endian;
    dump_load(&built, 7, ADDR + 64, "another's", "code", 0);
    dump_plain(&built, 77, 7, 5);
    read_built(&fixture);
    assert_int_equal(fixture.log.function_count, 1);
    assert_string_equal(fixture.log.functions[0].name, "own");
    assert_found(&fixture.findings, FINDING_DUMP_FOREIGN, 1, words);
    release(&fixture);
}

static void test_what_another_wrote_is_left_out_and_told(void **state)
{
    (void)state;
    assert_foreign(4712, false, 0,
                   "record 1 at 0x68: a header of process 4712 after one of process 4711");
    assert_foreign(4711, true, 0, "of the other byte order");
    assert_foreign(4711, false, JITDUMP_FLAG_ARCH_TIMESTAMP, "with another clock");
}

/* A LOAD as CPython writes it on macOS, and one that merely is damaged. */
static void test_wide_thread_ids_are_read_and_damage_is_not(void **state)
{
    for (int damaged = 0; damaged < 2; damaged++) {
        struct fixture fixture;
        begin();
        size_t start = dump_begin_record(&built, JIT_CODE_LOAD, 5);
        dump_ids(&built);
        sink_u64(&built.sink, 0x1f3a2b000);
        sink_u64(&built.sink, ADDR); /* vma */
        sink_u64(&built.sink, ADDR + (damaged ? 16 : 0));
        sink_u64(&built.sink, 4);
        sink_u64(&built.sink, 7);
        sink_cstr(&built.sink, "py::fib");
        sink_bytes(&built.sink, "code", 4);
        dump_end_record(&built, start);
        read_built(&fixture);
        assert_int_equal(fixture.findings.repaired[QUIRK_THREAD_ID_64], !damaged);
        assert_int_equal(fixture.findings.count[FINDING_RECORD_BROKEN], damaged);
        release(&fixture);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load_becomes_a_function_and_an_event),
        cmocka_unit_test(test_what_two_dumps_have_counts_once),
        cmocka_unit_test(test_move_becomes_a_second_residence),
        cmocka_unit_test(test_piece_is_of_the_load_that_it_is_about),
        cmocka_unit_test(test_unload_becomes_an_event),
        cmocka_unit_test(test_function_without_a_name_gets_one),
        cmocka_unit_test(test_function_without_code_bytes_is_kept_and_told),
        cmocka_unit_test(test_broken_records_are_skipped_and_told),
        cmocka_unit_test(test_unknown_records_are_skipped_and_told),
        cmocka_unit_test(test_close_filler_and_lines_say_nothing),
        cmocka_unit_test(test_events_are_sorted_by_time),
        cmocka_unit_test(test_events_with_equal_times_keep_their_order),
        cmocka_unit_test(test_cycles_become_the_profiles_time),
        cmocka_unit_test(test_several_dumps_make_one_log),
        cmocka_unit_test(test_dump_of_the_other_byte_order_reads_alike),
        cmocka_unit_test(test_unwinding_info_is_noticed_even_if_empty),
        cmocka_unit_test(test_cut_at_every_byte_keeps_what_stands_before_it),
        cmocka_unit_test(test_cut_tells_where_it_is),
        cmocka_unit_test(test_a_block_of_stubs_at_the_end_is_no_loss),
        cmocka_unit_test(test_tables_in_front_of_a_cut_are_no_second_loss),
        cmocka_unit_test(test_repeated_indices_are_counted),
        cmocka_unit_test(test_indices_that_only_fall_are_unique),
        cmocka_unit_test(test_second_header_ends_what_was_logged_before),
        cmocka_unit_test(test_what_another_wrote_is_left_out_and_told),
        cmocka_unit_test(test_wide_thread_ids_are_read_and_damage_is_not),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
