/* A dump in memory, and the log that is read of it. */
#ifndef PERFJIT_TEST_LOG_WORLD_H
#define PERFJIT_TEST_LOG_WORLD_H

#include "injector/log/code/log_reader.h"

#include "tests/unit/dump_builder.h"

#include <inttypes.h>

enum { ADDR = 0x10000 };

static struct dump_builder built;
static const struct jit_clock monotonic = {0};

/* BUILT, cut after SIZE bytes, read into a log, sorted. */
struct fixture {
    struct jit_dump dump;
    struct code_log log;
    struct findings findings;
};

static inline void read_cut(struct fixture *fixture, size_t size)
{
    *fixture = (struct fixture){0};
    open_cut_dump(&built, size, &fixture->dump);
    assert_int_equal(
        code_log_read(&fixture->log, &fixture->dump, 3, &monotonic, true, &fixture->findings), 0);
    assert_int_equal(code_log_sort(&fixture->log, &fixture->findings), 0);
}

static inline void read_built(struct fixture *fixture)
{
    read_cut(fixture, built.sink.size);
}

static inline void release(struct fixture *fixture)
{
    code_log_free(&fixture->log);
    jit_dump_close(&fixture->dump);
    findings_free(&fixture->findings);
}

static inline void begin(void)
{
    dump_begin(&built, false, JITHEADER_BYTES);
}

static inline void assert_event(const struct code_log *log, size_t at, uint64_t time_ns,
                                enum code_event_kind kind, uint32_t index)
{
    assert_true(at < log->event_count);
    assert_int_equal(log->events[at].time_ns, time_ns);
    assert_int_equal(log->events[at].kind, kind);
    assert_int_equal(log->events[at].index, index);
}

/* Just COUNT findings of KIND, the first of which says WORDS. */
static inline void assert_found(const struct findings *findings, enum finding_kind kind,
                                uint64_t count, const char *words)
{
    for (int i = 0; i < FINDING_KINDS; i++)
        assert_int_equal(findings->count[i], i == (int)kind ? count : 0);
    if (!strstr(findings->first[kind], words))
        fail_msg("'%s' does not say '%s'", findings->first[kind], words);
}

/* Just COUNT repairs of QUIRK, and nothing lost. */
static inline void assert_repaired(const struct findings *findings, enum quirk quirk,
                                   uint64_t count)
{
    for (int i = 0; i < QUIRKS; i++)
        if (findings->repaired[i] != (i == (int)quirk ? count : 0))
            fail_msg("%" PRIu64 " x %s", findings->repaired[i], quirk_text((enum quirk)i)->id);
    assert_int_equal(findings_lost(findings), 0);
}

static inline void put_header(uint32_t pid, bool big_endian, uint64_t flags)
{
    static struct dump_builder other;
    dump_begin(&other, big_endian, JITHEADER_BYTES);
    struct byte_sink patch = byte_sink_over(other.bytes + 20, 20);
    patch.big_endian = big_endian;
    sink_u32(&patch, pid);
    sink_u64(&patch, 99);
    sink_u64(&patch, flags);
    sink_bytes(&built.sink, other.bytes, other.sink.size);
}

#endif
