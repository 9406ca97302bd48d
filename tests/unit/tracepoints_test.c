/* Which recordings have tracepoints that a perf command counts thread by thread. */
#include "injector/recording/tracepoints.h"

#include "tests/unit/scratch.h"

#include <cmocka.h>

enum { SOFTWARE = 1, ATTR_BYTES = 136, MAX_EVENTS = 4, DESC_BYTES = 1024 };

static uint8_t desc[DESC_BYTES];
static size_t desc_bytes;
static struct perf_event events[MAX_EVENTS];
static struct perf_file file;

static void put_u32(size_t value)
{
    const uint32_t bytes = (uint32_t)value;
    memcpy(desc + desc_bytes, &bytes, sizeof bytes);
    desc_bytes += sizeof bytes;
}

/* A recording of cpu-clock and tracepoints of these names, and what feature EVENT_DESC says of it.
 */
static void build(const char *const *names, size_t count)
{
    memset(desc, 0, sizeof desc);
    desc_bytes = 0;
    put_u32(count + 1);
    put_u32(ATTR_BYTES);
    for (size_t i = 0; i <= count; i++) {
        const char *name = i ? names[i - 1] : "cpu-clock";
        const size_t name_bytes = 64, ids = i + 1;
        events[i].type = i ? PERF_TYPE_TRACEPOINT : SOFTWARE;
        put_u32(events[i].type);
        desc_bytes += ATTR_BYTES - sizeof(uint32_t);
        put_u32(ids);
        put_u32(name_bytes);
        memcpy(desc + desc_bytes, name, strlen(name));
        desc_bytes += name_bytes + ids * sizeof(uint64_t);
    }
    file = (struct perf_file){.events = events, .event_count = count + 1};
    perf_features_set(&file.features, PERF_FEATURE_EVENT_DESC, desc, desc_bytes);
}

static bool counted(const char *name)
{
    build(&name, 1);
    return tracepoints_are_counted(&file);
}

static void test_by_its_system(void **state)
{
    (void)state;
    assert_true(counted("raw_syscalls:sys_enter"));
    assert_true(counted("syscalls:sys_enter_mmap"));
    assert_true(counted("sched:sched_switch"));
    assert_true(counted("lock:contention_begin"));
    assert_true(counted("kvm:kvm_exit"));
    assert_false(counted("kmem:mm_page_alloc"));
    assert_false(counted("probe_node:malloc"));
    assert_false(counted("scheduler:any"));
}

/* -e sched:sched_switch/name=switch/ */
static void test_one_of_another_name_may_be_any(void **state)
{
    (void)state;
    assert_true(counted("switch"));
    assert_true(counted(""));
}

static void test_one_among_others_counts(void **state)
{
    static const char *const names[] = {"kmem:kmalloc", "sched:sched_switch",
                                        "block:block_bio_queue"};
    (void)state;
    build(names, 3);
    assert_true(tracepoints_are_counted(&file));
    build(names, 1);
    assert_false(tracepoints_are_counted(&file));
    build(names, 0);
    assert_false(tracepoints_are_counted(&file));
}

static void test_without_a_description_any_may_be(void **state)
{
    static const char *const names[] = {"kmem:kmalloc"};
    (void)state;
    build(names, 1);
    perf_features_remove(&file.features, PERF_FEATURE_EVENT_DESC);
    assert_true(tracepoints_are_counted(&file));
    build(names, 0);
    perf_features_remove(&file.features, PERF_FEATURE_EVENT_DESC);
    assert_false(tracepoints_are_counted(&file));
}

/* Cut off anywhere before the second event's name ends, or of no size that can be. */
static void test_a_damaged_description_is_none(void **state)
{
    static const char *const names[] = {"kmem:kmalloc"};
    const size_t ids_bytes = 2 * sizeof(uint64_t);
    (void)state;
    build(names, 1);
    for (size_t size = 0; size < desc_bytes - ids_bytes; size++) {
        uint8_t *copy = malloc(size + 1);
        assert_non_null(copy);
        memcpy(copy, desc, size);
        perf_features_set(&file.features, PERF_FEATURE_EVENT_DESC, copy, size);
        assert_true(tracepoints_are_counted(&file));
        free(copy);
    }
    build(names, 1);
    memset(desc, 0xff, sizeof(uint32_t));
    assert_false(tracepoints_are_counted(&file));
    memset(desc + sizeof(uint32_t), 0, sizeof(uint32_t));
    assert_true(tracepoints_are_counted(&file));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_its_system),
        cmocka_unit_test(test_one_of_another_name_may_be_any),
        cmocka_unit_test(test_one_among_others_counts),
        cmocka_unit_test(test_without_a_description_any_may_be),
        cmocka_unit_test(test_a_damaged_description_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
