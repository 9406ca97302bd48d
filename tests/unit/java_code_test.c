/* Code in the heaps of Java's JVM that no event tells of: how it is found, and what the dump gets.
 */
#include "agents/java/untold_code.h"

#include "injector/log/code/log_reader.h"

#include "tests/unit/jitdump_test.h"

/* ---- A heap ---- */

enum { SEGMENT_BYTES = 128, SEGMENTS = 32, FREE = 0xff };

/* What HotSpot has, with fields as these structs have them. */
struct block {
    uint64_t length; /* in segments */
    uint64_t is_used;
    const char *name;
    uint64_t size, begin, end;
    int32_t state, compile_id; /* of a method */
};

static struct made_heap {
    uint64_t low, high, map_low, map_high, log2_segment;
} heap;
static uint64_t heap_addr;
static struct {
    uint64_t count;
    uint64_t *data;
} heaps;
static uint64_t heaps_addr;
static _Alignas(SEGMENT_BYTES) unsigned char memory[SEGMENTS * SEGMENT_BYTES];
static unsigned char segment_map[SEGMENTS];

static uint64_t address(const void *at)
{
    return (uint64_t)(uintptr_t)at;
}

static struct vm_structs made_structs(void)
{
#define FIELD(type, field)                                                                         \
    (struct vm_field)                                                                              \
    {                                                                                              \
        offsetof(type, field), 8, false                                                            \
    }
    struct vm_structs structs = {.known = true};
    structs.heaps = (struct vm_field){address(&heaps_addr), 8, false};
    structs.array_length = (struct vm_field){0, 8, false};
    structs.array_data = (struct vm_field){8, 8, false};
    structs.heap_memory.at = offsetof(struct made_heap, low);
    structs.heap_segmap.at = offsetof(struct made_heap, map_low);
    structs.heap_log2_segment = FIELD(struct made_heap, log2_segment);
    structs.space_low = (struct vm_field){0, 8, false};
    structs.space_high = (struct vm_field){8, 8, false};
    structs.block_length = FIELD(struct block, length);
    structs.block_used = FIELD(struct block, is_used);
    structs.block_bytes = offsetof(struct block, name);
    structs.blob_bytes = sizeof(struct block) - offsetof(struct block, name);
    structs.name = (struct vm_field){0, 8, false};
    structs.code_begin =
        (struct vm_field){offsetof(struct block, begin) - structs.block_bytes, 8, false};
    structs.code_end =
        (struct vm_field){offsetof(struct block, end) - structs.block_bytes, 8, false};
    structs.state = (struct vm_field){offsetof(struct block, state) - structs.block_bytes, 4, true};
    structs.compile_id =
        (struct vm_field){offsetof(struct block, compile_id) - structs.block_bytes, 4, true};
    return structs;
}

static struct block *block_at(size_t segment)
{
    return (struct block *)(void *)(memory + segment * SEGMENT_BYTES);
}

/* A block of COUNT segments; its code begins at its second segment. */
static void put_block(size_t segment, size_t count, const char *name)
{
    *block_at(segment) = (struct block){.length = count,
                                        .is_used = name != NULL,
                                        .name = name,
                                        .begin = address(block_at(segment + 1)),
                                        .end = address(block_at(segment + count))};
    for (size_t i = 0; i < count; i++)
        segment_map[segment + i] = (unsigned char)i;
}

static uint64_t code_of(size_t segment)
{
    return block_at(segment)->begin;
}

/* Methods, handlers, a free block, stubs in one piece; and the heap's end. */
static void make_heap(void)
{
    memset(memory, 0, sizeof memory);
    memset(segment_map, FREE, sizeof segment_map);
    heap = (struct made_heap){address(memory), address(memory + sizeof memory),
                              address(segment_map), address(segment_map + sizeof segment_map), 7};
    heap_addr = address(&heap);
    heaps.count = 1;
    heaps.data = &heap_addr;
    heaps_addr = address(&heaps);
    put_block(0, 3, "nmethod");
    put_block(3, 5, "handlers");
    put_block(8, 3, "was handlers");
    block_at(8)->is_used = 0;
    put_block(11, 3, "native nmethod");
    put_block(14, 7, "stubs");
}

static int begin(void **state)
{
    make_heap();
    return make_dir(state);
}

static void assert_blobs(const struct vm_blobs *blobs, size_t count, const size_t *segments)
{
    assert_int_equal(blobs->count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(blobs->items[i].begin, code_of(segments[i]));
}

static void test_all_code_but_methods_is_found_in_the_heaps(void **state)
{
    (void)state;
    const struct vm_structs structs = made_structs();
    struct vm_blobs blobs = {0};
    assert_true(vm_blobs_read(&structs, &blobs));
    assert_blobs(&blobs, 2, (const size_t[]){3, 14});
    assert_int_equal(blobs.items[0].end, code_of(3) + 4 * SEGMENT_BYTES);
    char name[VM_NAME_BYTES];
    assert_true(vm_name_copy(blobs.items[1].name, name));
    assert_string_equal(name, "stubs");
    free(blobs.items);
}

static void test_a_heap_that_changes_meanwhile(void **state)
{
    (void)state;
    const struct vm_structs structs = made_structs();
    struct vm_blobs blobs = {0};
    block_at(8)->length = 0;
    assert_false(vm_blobs_read(&structs, &blobs));
    block_at(8)->length = SEGMENTS - 8 + 1;
    assert_false(vm_blobs_read(&structs, &blobs));
    block_at(8)->length = 4; /* into the middle of a block */
    block_at(12)->length = 2;
    assert_false(vm_blobs_read(&structs, &blobs));
    block_at(8)->length = 3;
    block_at(14)->end += 1; /* code that is not in its block */
    assert_true(vm_blobs_read(&structs, &blobs));
    assert_blobs(&blobs, 1, (const size_t[]){3});
    block_at(14)->end -= 1;
    block_at(14)->begin = address(memory);
    assert_true(vm_blobs_read(&structs, &blobs));
    assert_blobs(&blobs, 1, (const size_t[]){3});
    heap.map_high = heap.map_low + 10; /* the map grows after the memory */
    assert_false(vm_blobs_read(&structs, &blobs));
    heap.map_high = heap.map_low + 8;
    assert_true(vm_blobs_read(&structs, &blobs));
    free(blobs.items);
}

struct seen_methods {
    uint64_t begins[4], ids[4];
    size_t count, most;
};

static bool see_method(void *user, uint64_t begin, uint64_t compile_id)
{
    struct seen_methods *seen = user;
    assert_true(seen->count < 4);
    seen->begins[seen->count] = begin;
    seen->ids[seen->count] = compile_id;
    return ++seen->count < seen->most;
}

static void test_methods_that_may_still_run_are_found_in_the_heaps(void **state)
{
    (void)state;
    const struct vm_structs structs = made_structs();
    struct seen_methods seen = {.most = 4}, first = {.most = 1};
    block_at(0)->compile_id = 70;
    block_at(11)->compile_id = 7;
    block_at(11)->state = 1; /* not entrant: it may be on a stack */
    put_block(21, 3, "nmethod");
    block_at(21)->state = -1; /* it is being made */
    put_block(24, 3, "nmethod");
    block_at(24)->state = 4; /* it is gone */
    put_block(27, 3, "nmethod");
    block_at(27)->end = address(memory + sizeof memory) + 1;
    assert_true(vm_methods_are_known(&structs));
    assert_true(vm_methods_all(&structs, see_method, &seen));
    assert_int_equal(seen.count, 2);
    assert_true(seen.begins[0] == code_of(0) && seen.begins[1] == code_of(11));
    assert_true(seen.ids[0] == 70 && seen.ids[1] == 7);
    assert_false(vm_methods_all(&structs, see_method, &first)); /* it is not so for one */
    assert_int_equal(first.count, 1);
    block_at(14)->length = 0; /* and cut short */
    seen.count = 0;
    assert_false(vm_methods_all(&structs, see_method, &seen));
}

static void test_a_name_that_is_gone_is_none(void **state)
{
    (void)state;
    char name[VM_NAME_BYTES];
    static char longest[VM_NAME_BYTES + 1];
    memset(longest, 'x', VM_NAME_BYTES);
    assert_false(vm_name_copy(0, name));
    assert_false(vm_name_copy(UINT64_C(0x123456789000), name));
    assert_false(vm_name_copy(address(""), name));
    assert_false(vm_name_copy(address("\033[31m"), name));
    assert_false(vm_name_copy(address(longest), name));
    assert_true(vm_name_copy(address(longest + 1), name));
    assert_string_equal(name, longest + 1);
}

/* ---- What is left ---- */

static void assert_gap(const struct told_code *told, uint64_t begin, uint64_t end,
                       uint64_t gap_begin, uint64_t gap_end)
{
    struct told_range gap;
    if (gap_begin == gap_end) {
        assert_false(told_code_gap(told, begin, end, &gap));
        return;
    }
    assert_true(told_code_gap(told, begin, end, &gap));
    assert_int_equal(gap.begin, gap_begin);
    assert_int_equal(gap.end, gap_end);
}

static void tell(struct told_code *told, uint64_t begin, uint64_t end, unsigned walk)
{
    assert_true(told_code_add(told, &(struct told_range){begin, end, walk}));
}

static void test_what_stubs_leave_of_a_piece(void **state)
{
    (void)state;
    struct told_code told = {0};
    assert_gap(&told, 100, 200, 100, 200);
    tell(&told, 120, 140, 1);
    tell(&told, 140, 150, 1);
    tell(&told, 90, 100, 1);
    assert_gap(&told, 100, 200, 100, 120);
    assert_gap(&told, 120, 200, 150, 200);
    assert_gap(&told, 120, 150, 0, 0);
    tell(&told, 100, 200, 2); /* over them */
    assert_int_equal(told.count, 2);
    tell(&told, 130, 140, 3); /* in the middle */
    assert_int_equal(told.count, 4);
    assert_gap(&told, 90, 200, 0, 0);
    tell(&told, 195, 210, 3);
    assert_gap(&told, 90, 220, 210, 220);
    told_code_free(&told);
}

static void test_what_is_in_no_piece_any_more_is_dropped(void **state)
{
    (void)state;
    struct told_code told = {0};
    struct vm_blob of_now = {100, 200, 1}, of_before = {300, 400, 1};
    const struct vm_blobs now = {.items = &of_now, .count = 1},
                          before = {.items = &of_before, .count = 1};
    for (uint64_t begin = 0; begin < 2000; begin += 100)
        tell(&told, begin + 10, begin + 20, begin == 1900 ? 7 : 6);
    tell(&told, 195, 205, 6);
    told_code_drop(&told, &now, &before, 7);
    assert_int_equal(told.count, 3);
    assert_gap(&told, 110, 120, 0, 0);
    assert_gap(&told, 310, 320, 0, 0);
    assert_gap(&told, 1910, 1920, 0, 0); /* it came while the walk went on */
    told_code_free(&told);
}

/* ---- The dump ---- */

/* The functions of DUMP, which is closed: "name @ segment+offset size". */
static void assert_logged(struct jitdump *dump, size_t count, const char *const *expected)
{
    static const struct jit_clock same;
    struct findings findings = {.quiet = true};
    char cause[256];
    struct jit_dump opened;
    struct code_log log = {0};
    assert_int_equal(jitdump_close(dump), 0);
    assert_int_equal(jit_dump_open(&opened, path, cause, sizeof cause), 0);
    assert_int_equal(code_log_read(&log, &opened, 0, &same, true, &findings), 0);
    for (size_t i = 0; i < log.function_count && i < count; i++) {
        const uint64_t offset = log.functions[i].addr - address(memory);
        char text[200];
        snprintf(text, sizeof text, "%s @ %d+%d %d", log.functions[i].name,
                 (int)(offset / SEGMENT_BYTES), (int)(offset % SEGMENT_BYTES),
                 (int)log.functions[i].size);
        assert_string_equal(text, expected[i]);
    }
    assert_int_equal(log.function_count, count);
    code_log_free(&log);
    jit_dump_close(&opened);
    findings_free(&findings);
}

/* As an event does it. */
static void tell_of(struct untold_code *untold, struct jitdump *dump, uint64_t begin,
                    uint64_t bytes, const char *name)
{
    untold_code_note(untold, begin, begin + bytes);
    assert_int_equal(jitdump_add(dump, name, (const void *)(uintptr_t)begin, bytes, NULL), 0);
}

static void test_what_two_walks_saw_is_logged_once_without_what_events_told(void **state)
{
    (void)state;
    const struct vm_structs structs = made_structs();
    struct untold_code untold = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct jitdump *dump = open_dump();
    tell_of(&untold, dump, code_of(14) + 31, 100, "a stub"); /* 31 bytes align it */
    untold_code_log(&untold, &structs, dump, false);
    for (int i = 0; i < 4; i++)
        untold_code_log(&untold, &structs, dump, false);
    put_block(21, 4, "C1 temporary CodeBuffer"); /* where code does not run */
    put_block(25, 3, "new");
    untold_code_log(&untold, &structs, dump, false);
    tell_of(&untold, dump, code_of(25), 256, "its event was on the way");
    tell_of(&untold, dump, code_of(3) + 64, 32, "made later in there");
    untold_code_log(&untold, &structs, dump, false);
    untold_code_log(&untold, &structs, dump, false);
    untold_code_free(&untold);
    assert_logged(dump, 5,
                  (const char *const[]){"a stub @ 15+31 100", "handlers @ 4+0 512",
                                        "stubs @ 16+3 637", "its event was on the way @ 26+0 256",
                                        "made later in there @ 4+64 32"});
}

static void test_code_that_went_leaves_its_memory_to_the_next(void **state)
{
    (void)state;
    const struct vm_structs structs = made_structs();
    struct untold_code untold = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct jitdump *dump = open_dump();
    tell_of(&untold, dump, code_of(14), 6 * SEGMENT_BYTES, "upcall");
    for (int i = 0; i < 2; i++)
        untold_code_log(&untold, &structs, dump, false);
    put_block(14, 7, NULL);
    for (int i = 0; i < 2; i++)
        untold_code_log(&untold, &structs, dump, false);
    put_block(14, 7, "untold");
    block_at(11)->length = 0; /* a walk that is cut short says nothing */
    untold_code_log(&untold, &structs, dump, false);
    block_at(11)->length = 3;
    untold_code_log(&untold, &structs, dump, false);
    untold_code_log(&untold, &structs, dump, false);
    untold_code_free(&untold);
    assert_logged(
        dump, 3,
        (const char *const[]){"upcall @ 15+0 768", "handlers @ 4+0 512", "untold @ 15+0 768"});
}

static void test_the_last_walk_takes_what_is_there(void **state)
{
    (void)state;
    const struct vm_structs structs = made_structs();
    struct untold_code untold = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct jitdump *dump = open_dump();
    untold_code_log(&untold, &structs, dump, true);
    untold_code_free(&untold);
    assert_logged(dump, 2, (const char *const[]){"handlers @ 4+0 512", "stubs @ 15+0 768"});
}

static void test_without_the_tables_nothing_is_found(void **state)
{
    (void)state;
    struct vm_structs structs = made_structs();
    struct untold_code untold = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct jitdump *dump = open_dump();
    structs.compile_id.bytes = 0;
    assert_false(vm_methods_are_known(&structs));
    structs.block_length.bytes = 0;
    untold_code_log(&untold, &structs, dump, true);
    structs = made_structs();
    structs.known = false;
    untold_code_log(&untold, &structs, dump, true);
    untold_code_free(&untold);
    assert_logged(dump, 0, NULL);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_all_code_but_methods_is_found_in_the_heaps),
        TEST(test_a_heap_that_changes_meanwhile),
        TEST(test_methods_that_may_still_run_are_found_in_the_heaps),
        TEST(test_a_name_that_is_gone_is_none),
        TEST(test_what_stubs_leave_of_a_piece),
        TEST(test_what_is_in_no_piece_any_more_is_dropped),
        TEST(test_what_two_walks_saw_is_logged_once_without_what_events_told),
        TEST(test_code_that_went_leaves_its_memory_to_the_next),
        TEST(test_the_last_walk_takes_what_is_there),
        TEST(test_without_the_tables_nothing_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
