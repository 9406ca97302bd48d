/* What gdb finds in a process with PERFJIT=gdb: at each event the list is sound, and at rest its
 * objects say of each live function what the registry's table says. */
#include "jitunwind/arena_list.h"
#include "jitunwind/debugger_arena.h"
#include "jitunwind/frames/frame_entry.h"
#include "jitunwind/runtime_entry.h"
#include "tests/unit/jitunwind_test.h"

#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOT_BYTES = 64, SLOTS = ARENA_BYTES / SLOT_BYTES, RANDOM_CHANGES = 20000 };

/* gdb's interface, as it is in its manual. */
struct descriptor {
    uint32_t version, action;
    struct debugger_entry *relevant, *first;
};

extern struct descriptor __jit_debug_descriptor;
void __jit_debug_register_code(void);

static _Atomic uint64_t events;
static int gate_fds[2]; /* whoever is stopped in an event goes on when a byte comes */
static atomic_bool stops, is_stopped;
static bool is_added[SLOTS]; /* by which function begins there */

/* ---- The list ---- */

static bool is_in_list(const struct debugger_entry *wanted)
{
    const struct debugger_entry *previous = NULL, *entry = __jit_debug_descriptor.first;
    bool is_there = false;
    for (; entry; previous = entry, entry = entry->next) {
        assert_ptr_equal(entry->previous, previous);
        assert_memory_equal(entry->object, ELFMAG, SELFMAG);
        is_there |= entry == wanted;
    }
    return is_there;
}

/* In place of the library's, which is weak: where gdb has its breakpoint. */
__attribute__((visibility("default"))) void __jit_debug_register_code(void)
{
    events++;
    assert_in_range(__jit_debug_descriptor.action, 1, 2);
    assert_int_equal(is_in_list(__jit_debug_descriptor.relevant),
                     __jit_debug_descriptor.action == 1);
    char byte;
    if (atomic_exchange(&stops, false)) {
        is_stopped = true;
        assert_int_equal(read(gate_fds[0], &byte, 1), 1);
    }
}

static size_t count_objects(void)
{
    size_t count = 0;
    for (const struct debugger_entry *entry = __jit_debug_descriptor.first; entry;
         entry = entry->next)
        count++;
    return count;
}

/* ---- What an object says ---- */

static const Elf64_Shdr *section_of(const struct debugger_entry *entry, unsigned number)
{
    const Elf64_Ehdr *head = (const void *)entry->object;
    assert_in_range(number, 0, head->e_shnum - 1);
    const Elf64_Shdr *section =
        (const Elf64_Shdr *)(const void *)(entry->object + head->e_shoff) + number;
    if (section->sh_type != SHT_NOBITS)
        assert_true(section->sh_offset + section->sh_size <= entry->object_bytes);
    return section;
}

enum { TEXT = 1, EH_FRAME, SYMTAB, STRTAB };

/* Note down what the symbols say. */
static void see_symbols(const struct debugger_entry *entry, bool *seen)
{
    const Elf64_Shdr *text = section_of(entry, TEXT), *table = section_of(entry, SYMTAB);
    const char *names = (const char *)entry->object + section_of(entry, STRTAB)->sh_offset;
    const Elf64_Sym *symbols = (const void *)(entry->object + table->sh_offset);
    char name[32];
    for (size_t i = 0; i < table->sh_size / sizeof *symbols; i++) {
        if (symbols[i].st_shndx == SHN_UNDEF)
            continue;
        assert_in_range(symbols[i].st_value, text->sh_addr, text->sh_addr + text->sh_size - 1);
        assert_true(symbols[i].st_value + symbols[i].st_size <= text->sh_addr + text->sh_size);
        size_t slot = (symbols[i].st_value - ARENA_START) / SLOT_BYTES;
        snprintf(name, sizeof name, "f%zu", slot);
        assert_string_equal(names + symbols[i].st_name, name);
        assert_false(seen[slot]);
        seen[slot] = true;
    }
}

static void expect_rows(const struct jitunwind *arena, const struct cfi_entry *entry)
{
    struct frame_run run;
    struct frame_rule rule;
    uint64_t from, to, known_end = 0;
    const struct table_function *function = ju_function_table_find(&arena->table, entry->start);
    assert_non_null(function);
    assert_true(entry->start == function->start);
    assert_true(entry->end == function->start + function->bytes);
    ju_frame_run_begin(&run, entry, UINT32_MAX);
    while (ju_frame_run_next(&run, &from, &to, &rule)) {
        assert_int_equal(from, known_end);
        for (uint64_t at = from; at < to; at++)
            assert_memory_equal(ju_function_table_rule(&arena->table, function, entry->start + at),
                                &rule, sizeof rule);
        known_end = to;
    }
    assert_false(run.failed);
    assert_int_equal(known_end, function->bytes);
}

static size_t see_frames(const struct jitunwind *arena, const struct debugger_entry *entry)
{
    const Elf64_Shdr *frames = section_of(entry, EH_FRAME);
    const struct frame_section section = {entry->object + frames->sh_offset, frames->sh_size,
                                          frames->sh_addr};
    struct cfi_entry found;
    enum frame_entry_kind kind;
    size_t offset = 0, count = 0;
    assert_int_equal(frames->sh_addr, (uint64_t)(uintptr_t)section.bytes);
    while ((kind = ju_frame_entry_read(&section, &offset, &found)) != ENTRY_END) {
        assert_int_not_equal(kind, ENTRY_BROKEN);
        if (kind != ENTRY_FDE || found.start == 0)
            continue;
        expect_rows(arena, &found);
        count++;
    }
    return count;
}

static void expect_disjoint(void)
{
    for (const struct debugger_entry *left = __jit_debug_descriptor.first; left; left = left->next)
        for (const struct debugger_entry *right = left->next; right; right = right->next) {
            const Elf64_Shdr *a = section_of(left, TEXT), *b = section_of(right, TEXT);
            assert_true(a->sh_addr + a->sh_size <= b->sh_addr ||
                        b->sh_addr + b->sh_size <= a->sh_addr);
        }
}

/* Nothing was removed since the last one was added. */
static void expect_all(const struct jitunwind *arena)
{
    static bool seen[SLOTS];
    size_t frames = 0, live = 0;
    memset(seen, 0, sizeof seen);
    for (const struct debugger_entry *entry = __jit_debug_descriptor.first; entry;
         entry = entry->next) {
        see_symbols(entry, seen);
        frames += see_frames(arena, entry);
    }
    for (size_t slot = 0; slot < SLOTS; slot++) {
        assert_int_equal(seen[slot], is_added[slot]);
        live += is_added[slot];
    }
    assert_int_equal(frames, live);
    expect_disjoint();
}

/* ---- Changes ---- */

static void add(struct jitunwind *arena, size_t slot)
{
    char name[32];
    snprintf(name, sizeof name, "f%zu", slot);
    assert_int_equal(
        add_framed(arena, ARENA_START + slot * SLOT_BYTES, SLOT_BYTES - slot % 3, name), 0);
    is_added[slot] = true;
}

static struct jitunwind *begin(void)
{
    memset(is_added, 0, sizeof is_added);
    setenv("PERFJIT", "dump,gdb", 1);
    assert_null(__jit_debug_descriptor.first);
    return arena_open();
}

static void end(struct jitunwind *arena)
{
    jitunwind_close(arena);
    assert_null(__jit_debug_descriptor.first);
    assert_int_equal(__jit_debug_descriptor.action, 0);
}

static void test_only_on_request(void **state)
{
    uint64_t before = events;
    (void)state;
    setenv("PERFJIT", "gdbx,dump", 1);
    struct jitunwind *arena = arena_open();
    add(arena, 0);
    jitunwind_close(arena);
    assert_int_equal(events, before);
}

static void test_each_way_up_and_down(void **state)
{
    (void)state;
    for (unsigned down = 0; down < 2; down++) {
        struct jitunwind *arena = begin();
        for (size_t i = 0; i < SLOTS; i++)
            add(arena, down ? SLOTS - 1 - i : i);
        expect_all(arena);
        assert_in_range(count_objects(), 2, 24);
        end(arena);
    }
}

/* No object is large that was changed within, so that a debugger has little to read again. */
static void test_in_any_order(void **state)
{
    enum { STEP = 7919 };
    struct jitunwind *arena = begin();
    (void)state;
    for (size_t i = 0; i < SLOTS; i++)
        add(arena, i * STEP % SLOTS);
    expect_all(arena);
    for (const struct debugger_entry *entry = __jit_debug_descriptor.first; entry;
         entry = entry->next)
        assert_in_range(section_of(entry, SYMTAB)->sh_size / sizeof(Elf64_Sym), 2,
                        MOST_CHANGED + 2);
    end(arena);
}

static void test_random_changes(void **state)
{
    struct jitunwind *arena = begin();
    uint32_t random = 12345;
    (void)state;
    for (unsigned i = 0; i < RANDOM_CHANGES; i++) {
        random = random * 1664525 + 1013904223;
        size_t slot = (random >> 8) % (i < RANDOM_CHANGES / 2 ? SLOTS : 64);
        if (is_added[slot]) {
            assert_int_equal(jitunwind_remove(arena, ARENA_START + slot * SLOT_BYTES), 0);
            is_added[slot] = false;
            continue;
        }
        add(arena, slot);
        if (i % 500 < 2)
            expect_all(arena);
    }
    end(arena);
}

/* Code that goes on in front of and behind what was removed in the middle of it. */
static void test_a_second_life(void **state)
{
    struct jitunwind *arena = begin();
    (void)state;
    for (size_t slot = 0; slot < SLOTS; slot++)
        add(arena, slot);
    for (size_t slot = 1000; slot < 5000; slot++) {
        assert_int_equal(jitunwind_remove(arena, ARENA_START + slot * SLOT_BYTES), 0);
        is_added[slot] = false;
    }
    for (size_t slot = 1000; slot < 5000; slot++)
        add(arena, slot);
    expect_all(arena);
    end(arena);
}

/* One that is longer than what an object is asked about; and one that is refused. */
static void test_across_ranges(void **state)
{
    enum { FIRST = 1000, HOLE = 3000, BEGIN = 1500, TAKEN = 400 };
    struct jitunwind *arena = begin();
    (void)state;
    for (size_t slot = 0; slot < SLOTS; slot++)
        add(arena, slot);
    for (size_t slot = FIRST; slot < FIRST + HOLE; slot++) {
        assert_int_equal(jitunwind_remove(arena, ARENA_START + slot * SLOT_BYTES), 0);
        is_added[slot] = false;
    }
    assert_int_equal(add_framed(arena, ARENA_START + TAKEN * SLOT_BYTES + SLOT_BYTES - 1,
                                BEGIN * SLOT_BYTES, "x"),
                     -EEXIST);
    assert_int_equal(
        add_framed(arena, ARENA_START + BEGIN * SLOT_BYTES, 2000 * SLOT_BYTES, "f1500"), 0);
    is_added[BEGIN] = true;
    expect_all(arena);
    end(arena);
}

static const uint8_t foreign_object[] = ELFMAG;

static void put_foreign(struct debugger_entry *entry)
{
    *entry = (struct debugger_entry){__jit_debug_descriptor.first, NULL, foreign_object,
                                     sizeof foreign_object};
    if (entry->next)
        entry->next->previous = entry;
    __jit_debug_descriptor.first = entry;
}

/* Another compiler's entries stay where they are. */
static void test_others_in_the_list(void **state)
{
    static struct debugger_entry first, second;
    struct jitunwind *arena = begin();
    (void)state;
    put_foreign(&first);
    for (size_t slot = 0; slot < 1000; slot++)
        add(arena, slot);
    put_foreign(&second);
    for (size_t slot = 1000; slot < 3000; slot++)
        add(arena, slot);
    assert_true(is_in_list(&first) && is_in_list(&second));
    jitunwind_close(arena);
    assert_true(is_in_list(&first) && is_in_list(&second));
    assert_int_equal(count_objects(), 2);
    __jit_debug_descriptor.first = NULL;
}

static void test_in_a_child(void **state)
{
    struct jitunwind *arena = begin();
    (void)state;
    for (size_t slot = 0; slot < 1000; slot++)
        add(arena, slot);
    pid_t child = fork();
    if (child == 0) {
        for (size_t slot = 1000; slot < 2000; slot++)
            add(arena, slot);
        expect_all(arena);
        end(arena);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    expect_all(arena);
    end(arena);
}

/* ---- A thread that is stopped in the middle ---- */

static void *add_stopped(void *arena)
{
    add(arena, 1);
    return NULL;
}

static struct jitunwind *stop_one(struct jitunwind *arena, pthread_t *thread)
{
    assert_int_equal(pipe(gate_fds), 0);
    add(arena, 0);
    is_stopped = false;
    stops = true;
    assert_int_equal(pthread_create(thread, NULL, add_stopped, arena), 0);
    while (!is_stopped)
        usleep(1000);
    return arena_at(ARENA_START + ARENA_BYTES, ARENA_BYTES);
}

static void go_on(pthread_t thread)
{
    assert_int_equal(write(gate_fds[1], "", 1), 1);
    pthread_join(thread, NULL);
    close(gate_fds[0]);
    close(gate_fds[1]);
}

static void test_nobody_waits_for_one_that_is_stopped(void **state)
{
    const uint64_t addr = ARENA_START + ARENA_BYTES;
    struct jitunwind *arena = begin();
    pthread_t thread;
    (void)state;
    struct jitunwind *other = stop_one(arena, &thread);
    assert_int_equal(add_plain(other, addr, 16, "f"), -EAGAIN);
    expect_name(addr, NULL);
    go_on(thread);
    assert_int_equal(add_plain(other, addr, 16, "f"), 0);
    expect_name(addr, "f");
    jitunwind_close(other);
    expect_all(arena);
    end(arena);
}

/* The list stays as it was, and all else goes on. */
static void test_a_child_of_the_moment(void **state)
{
    const uint64_t addr = ARENA_START + ARENA_BYTES;
    struct jitunwind *arena = begin();
    pthread_t thread;
    int status;
    (void)state;
    struct jitunwind *other = stop_one(arena, &thread);
    pid_t child = fork();
    if (child == 0) {
        size_t objects = count_objects();
        assert_int_equal(add_plain(arena, ARENA_START + 2 * SLOT_BYTES, 16, "f"), -EOWNERDEAD);
        for (unsigned i = 0; i < 100; i++) {
            assert_int_equal(add_plain(other, addr, 16, "f"), 0);
            expect_name(addr, "f");
            assert_int_equal(jitunwind_remove(other, addr), 0);
        }
        jitunwind_close(other);
        jitunwind_close(arena);
        assert_int_equal(count_objects(), objects);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    go_on(thread);
    jitunwind_close(other);
    expect_all(arena);
    end(arena);
}

/* Of what has neither rows nor a name nothing is told, and names are copied. */
static void test_functions_without(void **state)
{
    struct jitunwind *arena = begin();
    char name[] = "f1";
    (void)state;
    assert_int_equal(add_plain(arena, ARENA_START, SLOT_BYTES, NULL), 0);
    assert_int_equal(add_plain(arena, ARENA_START + SLOT_BYTES, SLOT_BYTES, name), 0);
    name[0] = 'x';
    const struct debugger_entry *entry = __jit_debug_descriptor.first;
    bool seen[2] = {false};
    see_symbols(entry, seen);
    assert_true(!seen[0] && seen[1]);
    assert_int_equal(see_frames(arena, entry), 0);
    end(arena);
}

/* ---- A process without an unwinder ---- */

/* In place of the library's: nobody there can throw exceptions. */
int ju_runtime_entry_open(struct function_table *table, void **entry)
{
    (void)table;
    (void)entry;
    return -ENOTSUP;
}

void ju_runtime_entry_close(void *entry)
{
    assert_null(entry);
}

/* What the library has mapped, in bytes. */
static int64_t mapped_bytes;

void *mmap(void *addr, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    void *memory = (void *)syscall(SYS_mmap, addr, bytes, protection, flags, fd, offset);
    if (memory != MAP_FAILED)
        mapped_bytes += (int64_t)bytes;
    return memory;
}

int munmap(void *memory, size_t bytes)
{
    mapped_bytes -= (int64_t)bytes;
    return (int)syscall(SYS_munmap, memory, bytes);
}

static void refuse_exceptions(void)
{
    struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
    struct jitunwind *arena;
    options.start = ARENA_START;
    options.bytes = ARENA_BYTES;
    options.flags = JITUNWIND_EXCEPTIONS;
    assert_int_equal(jitunwind_open(&arena, &options), -ENOTSUP);
    assert_null(arena);
    assert_null(__jit_debug_descriptor.first);
}

static void test_exceptions_refused_under_a_debugger_leave_nothing(void **state)
{
    (void)state;
    setenv("PERFJIT", "gdb", 1);
    refuse_exceptions();
    int64_t before = mapped_bytes;
    for (int i = 0; i < 4; i++)
        refuse_exceptions();
    assert_int_equal(mapped_bytes, before);
    struct jitunwind *arena = begin(); /* the addresses are free */
    add(arena, 0);
    expect_all(arena);
    end(arena);
    assert_int_equal(mapped_bytes, before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_on_request),
        cmocka_unit_test(test_each_way_up_and_down),
        cmocka_unit_test(test_random_changes),
        cmocka_unit_test(test_a_second_life),
        cmocka_unit_test(test_others_in_the_list),
        cmocka_unit_test(test_in_any_order),
        cmocka_unit_test(test_in_a_child),
        cmocka_unit_test(test_across_ranges),
        cmocka_unit_test(test_functions_without),
        cmocka_unit_test(test_nobody_waits_for_one_that_is_stopped),
        cmocka_unit_test(test_a_child_of_the_moment),
        cmocka_unit_test(test_exceptions_refused_under_a_debugger_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
