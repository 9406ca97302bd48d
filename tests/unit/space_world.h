/* The address spaces of a hand-made recording (process_world.h), with timelines that the test sets.
 */
#ifndef PERFJIT_TEST_SPACE_WORLD_H
#define PERFJIT_TEST_SPACE_WORLD_H

#include "injector/arrays/array.h"
#include "injector/arrays/number_sort.h"
#include "injector/history/timeline/timeline.h"
#include "injector/unwind/addresses/address_space.h"

#include "tests/unit/process_world.h"

enum { SPACE_PROCESSES = 4, PAGE_BYTES = 0x1000 };

static struct timeline timelines[SPACE_PROCESSES]; /* by process */
static struct space_source source;

static inline int begin_spaces(void **state)
{
    memset(timelines, 0, sizeof timelines);
    source = (struct space_source){0};
    return begin(state);
}

static inline int end_spaces(void **state)
{
    space_source_free(&source);
    for (size_t i = 0; i < SPACE_PROCESSES; i++)
        timeline_free(&timelines[i]);
    return end(state);
}

/* What was recorded, in which nobody has a dump. */
static inline void read_lives(void)
{
    assert_int_equal(read_all(NULL), -1);
    assert_non_null(processes.no_code);
}

/* The life of PID that is at TIME. */
static inline uint32_t life_at(uint32_t pid, uint64_t time)
{
    uint32_t life = process_life_at(&processes.lives, pid, (struct life_moment){time, UINT64_MAX});
    assert_int_not_equal(life, NO_LIFE);
    return life;
}

/* That life has JIT code.  Returns the number of its process. */
static inline size_t make_process(uint32_t pid, uint64_t time)
{
    struct jit_process *process = jit_process_of_life(&processes, life_at(pid, time));
    assert_non_null(process);
    assert_true(processes.count <= SPACE_PROCESSES);
    process->maps =
        process_life_maps(&records, pid, process->begin, process->next, &process->map_count);
    return processes.count - 1;
}

/* Process number PROCESS loads a function of SLOT bytes. */
static inline void load_function(size_t process, uint64_t time, uint64_t addr, const char *name)
{
    struct code_log *log = &processes.items[process].log;
    assert_int_equal(code_log_add_named(log, NO_DUMP, time, addr, SLOT, name), 0);
    log->functions[log->function_count - 1].code_index = log->function_count;
}

static inline void add_function(size_t process, uint64_t addr, const char *name)
{
    load_function(process, 1, addr, name);
}

/* It unloads its function number INDEX. */
static inline void unload_function(size_t process, uint64_t time, uint32_t index)
{
    struct code_log *log = &processes.items[process].log;
    const struct jit_function *gone = &log->functions[index];
    assert_int_equal(array_reserve(log->unloads, log->unload_count, log->unload_capacity), 0);
    log->unloads[log->unload_count] = (struct code_unload){
        .addr = gone->addr, .size = gone->size, .code_index = gone->code_index, .dump = NO_DUMP};
    assert_int_equal(code_log_add_event(log, time, CODE_EVENT_UNLOAD, log->unload_count++), 0);
}

static inline void add_change(size_t process, const struct change *change)
{
    struct timeline *timeline = &timelines[process];
    assert_int_equal(
        array_reserve(timeline->changes, timeline->change_count, timeline->change_capacity), 0);
    timeline->changes[timeline->change_count++] = *change;
}

static inline void drop_record(size_t process, uint64_t offset)
{
    struct timeline *timeline = &timelines[process];
    assert_int_equal(
        array_reserve(timeline->dropped, timeline->dropped_count, timeline->dropped_capacity), 0);
    timeline->dropped[timeline->dropped_count++] = offset;
}

/* The last step: nothing may be added then. */
static inline void begin_source(void)
{
    for (size_t i = 0; i < processes.count; i++) {
        timelines[i].log = &processes.items[i].log;
        number_sort(timelines[i].dropped, timelines[i].dropped_count, sizeof(uint64_t));
    }
    assert_int_equal(space_source_begin(&source, &records, &processes, timelines), 0);
}

/* Of PID's maps, by time, the number in the profile of the one at INDEX. */
static inline uint32_t map_number(uint32_t pid, size_t index)
{
    size_t count;
    const struct recorded_map *maps = records_maps_of(&records, pid, &count);
    assert_true(index < count);
    return (uint32_t)(maps + index - records.maps);
}

#define SPACE_TEST(test) cmocka_unit_test_setup_teardown(test, begin_spaces, end_spaces)

#endif
