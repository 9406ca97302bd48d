/* C++ exceptions through code that libjitunwind was told of: they come to their catch, with the
 * registers that functions preserve as they were. */
#include "jitdump/trampoline.h"
#include "tests/unit/jitdump_test.h"
#include "tests/unit/jitunwind_test.h"
#include "tests/unit/throwing.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)

enum {
    CODE_BYTES = 1 << 20,
    PLACE_BYTES = 128,
    PLACES = CODE_BYTES / PLACE_BYTES,
    FRAME_FORMS = 24,
    PRESERVED = 6,
};

static struct code_arena {
    uint8_t *code;
    struct jitunwind *arena;
} shared;

static uint8_t *map_code(void)
{
    void *code = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(code != MAP_FAILED);
    return code;
}

static int open_over(struct jitunwind **arena, const uint8_t *code)
{
    struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
    options.start = (uint64_t)(uintptr_t)code;
    options.bytes = CODE_BYTES;
    options.flags = JITUNWIND_EXCEPTIONS;
    return jitunwind_open(arena, &options);
}

/* ---- Code ---- */

/* In the order in which a frame saves them; rbp is not among them where it is the frame pointer. */
static const struct {
    uint8_t dwarf, push[2], pop[2], fill[3];
} preserved[PRESERVED] = {
    {JITDUMP_RBX, {0x53}, {0x5b}, {0x48, 0xc7, 0xc3}},
    {JITDUMP_R12, {0x41, 0x54}, {0x41, 0x5c}, {0x49, 0xc7, 0xc4}},
    {JITDUMP_R13, {0x41, 0x55}, {0x41, 0x5d}, {0x49, 0xc7, 0xc5}},
    {JITDUMP_R14, {0x41, 0x56}, {0x41, 0x5e}, {0x49, 0xc7, 0xc6}},
    {JITDUMP_R15, {0x41, 0x57}, {0x41, 0x5f}, {0x49, 0xc7, 0xc7}},
    {JITDUMP_RBP, {0x55}, {0x5d}, {0x48, 0xc7, 0xc5}},
};

static uint8_t *put(uint8_t *at, const void *bytes, size_t size)
{
    memcpy(at, bytes, size);
    return at + size;
}

static uint8_t *put_instruction(uint8_t *at, const uint8_t *opcode)
{
    return put(at, opcode, opcode[1] ? 2 : 1);
}

/* mov $value, %rax; call *%rax */
static uint8_t *put_call(uint8_t *at, const void *target)
{
    const uint64_t value = (uint64_t)(uintptr_t)target;
    at = put(at, "\x48\xb8", 2);
    at = put(at, &value, sizeof value);
    return put(at, "\xff\xd0", 2);
}

/* A function that saves registers, as FORM says, spoils them and calls TARGET with its own
 * argument. */
static size_t write_code(uint8_t *code, unsigned form, const void *target,
                         struct jitdump_frame *frame)
{
    const unsigned saved = form % (PRESERVED + 1);
    const bool framed = form & 1 && saved < PRESERVED;
    const uint8_t stack_bytes = (uint8_t)((saved + framed) % 2 ? 32 : 40);
    uint8_t *at = code;
    *frame = (struct jitdump_frame){.kind = framed ? JITDUMP_FRAME_POINTER : JITDUMP_FRAME_STACK,
                                    .stack_bytes = stack_bytes};
    if (framed)
        at = put(at, "\x55\x48\x89\xe5", 4);
    for (unsigned i = 0; i < saved; i++) {
        at = put_instruction(at, preserved[i].push);
        frame->saved[frame->saved_count++] = preserved[i].dwarf;
    }
    at = put(at, (const uint8_t[]){0x48, 0x83, 0xec, stack_bytes}, 4);
    for (unsigned i = 0; i < saved; i++) {
        const uint32_t spoilt = 0x1000 + form;
        at = put(at, preserved[i].fill, sizeof preserved[i].fill);
        at = put(at, &spoilt, sizeof spoilt);
    }
    return (size_t)(put(put_call(at, target), "\x0f\x0b", 2) - code);
}

/* Returns what adding it returned. */
static int put_function(struct code_arena *arena, unsigned place, unsigned form, const void *target)
{
    uint8_t *code = arena->code + place * PLACE_BYTES + form % 3;
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_HOST_ARCH);
    struct jitdump_frame frame;
    struct jitdump_unwind unwind;
    struct jitunwind_code added = JITUNWIND_CODE_INIT;
    added.addr = (uint64_t)(uintptr_t)code;
    added.bytes = write_code(code, form, target, &frame);
    assert_true(added.bytes + 3 <= PLACE_BYTES);
    jitdump_cfi_frame(cfi, &frame);
    assert_int_equal(jitdump_cfi_finish(cfi, added.bytes, &unwind), 0);
    added.eh_frame = unwind.data;
    added.eh_frame_bytes = unwind.unwinding_size - unwind.eh_frame_hdr_size;
    int error = jitunwind_add(arena->arena, &added);
    jitdump_cfi_free(cfi);
    return error;
}

static void add_function(struct code_arena *arena, unsigned place, unsigned form,
                         const void *target)
{
    int error;
    while ((error = put_function(arena, place, form, target)) == -EAGAIN)
        ;
    assert_int_equal(error, 0);
}

static const void *function_at(const struct code_arena *arena, unsigned place, unsigned form)
{
    return arena->code + place * PLACE_BYTES + form % 3;
}

static void remove_function(struct code_arena *arena, unsigned place, unsigned form)
{
    int error;
    uint64_t addr = (uint64_t)(uintptr_t)function_at(arena, place, form);
    while ((error = jitunwind_remove(arena->arena, addr)) == -EAGAIN)
        ;
    assert_int_equal(error, 0);
}

/* ---- Throwing ---- */

/* Have CODE called with NUMBER inside a catch, all preserved registers having values of their own.
 * Returns what was caught; *WRONG counts the registers that came back with others. */
__attribute__((noinline)) static long throw_through(const void *code, long number, unsigned *wrong)
{
    uint64_t after[PRESERVED];
    struct {
        const void *code;
        long number;
        uint64_t *after;
        const void *catcher;
    } call = {code, number, after, (const void *)(uintptr_t)&catch_number};
    long caught;
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
                     "push %%rbx; push %%rbp; push %%r12; push %%r13; push %%r14; push %%r15\n\t"
                     "push %%rax; mov %%rsp, %%rcx; and $-16, %%rsp; push %%rcx; push %%rax\n\t"
                     "mov $11, %%rbx; mov $12, %%r12; mov $13, %%r13; mov $14, %%r14\n\t"
                     "mov $15, %%r15; mov $16, %%rbp\n\t"
                     "mov (%%rax), %%rdi; mov 8(%%rax), %%rsi; call *24(%%rax)\n\t"
                     "pop %%rdx; mov 16(%%rdx), %%rdx\n\t"
                     "mov %%rbx, (%%rdx); mov %%r12, 8(%%rdx); mov %%r13, 16(%%rdx)\n\t"
                     "mov %%r14, 24(%%rdx); mov %%r15, 32(%%rdx); mov %%rbp, 40(%%rdx)\n\t"
                     "pop %%rsp; pop %%rcx\n\t"
                     "pop %%r15; pop %%r14; pop %%r13; pop %%r12; pop %%rbp; pop %%rbx\n\t"
                     "lea 128(%%rsp), %%rsp"
                     : "=a"(caught)
                     : "0"(&call)
                     : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0",
                       "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
    for (unsigned i = 0; i < PRESERVED; i++)
        *wrong += after[i] != 11 + i;
    return caught;
}

static void open_arena(struct code_arena *arena)
{
    arena->code = map_code();
    assert_int_equal(open_over(&arena->arena, arena->code), 0);
}

static void close_arena(struct code_arena *arena)
{
    jitunwind_close(arena->arena);
    munmap(arena->code, CODE_BYTES);
}

/* Place PLACE calls the one before it, and the first one throws. */
static const void *target_of(const struct code_arena *arena, unsigned place)
{
    return place ? function_at(arena, place - 1, (place - 1) % FRAME_FORMS)
                 : (const void *)(uintptr_t)&throw_number;
}

static void test_each_depth(void **state)
{
    enum { DEPTH = 60 };
    struct code_arena arena;
    unsigned wrong = 0;
    (void)state;
    open_arena(&arena);
    for (unsigned i = 0; i < DEPTH; i++) {
        const unsigned form = i % FRAME_FORMS;
        add_function(&arena, i, form, target_of(&arena, i));
        assert_int_equal(throw_through(function_at(&arena, i, form), i + 7, &wrong), i + 7);
    }
    assert_int_equal(wrong, 0);
    close_arena(&arena);
}

/* All of an arena, again and again, in places of other functions' numbers. */
static void test_again_and_again(void **state)
{
    enum { ROUNDS = 6, THROWS_EVERY = 7 };
    struct code_arena arena;
    unsigned wrong = 0, thrown = 0;
    (void)state;
    open_arena(&arena);
    for (unsigned round = 0; round < ROUNDS; round++)
        for (unsigned i = 0; i < PLACES; i++) {
            unsigned place = i * 5 % PLACES, form = (place + round) % FRAME_FORMS;
            if (round)
                remove_function(&arena, place, (place + round - 1) % FRAME_FORMS);
            add_function(&arena, place, form, (const void *)(uintptr_t)&throw_number);
            if (i % THROWS_EVERY)
                continue;
            thrown++;
            assert_int_equal(throw_through(function_at(&arena, place, form), i, &wrong), i);
        }
    assert_int_equal(wrong, 0);
    assert_true(thrown > 5000);
    close_arena(&arena);
}

/* ---- While others add and remove ---- */

enum { THROWERS = 2, THROWN = 4000, OWN_PLACES = 8 };

static struct {
    atomic_uint wrong, lost, running;
} result;

/* Its functions stand between those that come and go. */
static void *throw_often(void *number)
{
    const unsigned first = *(const unsigned *)number;
    unsigned wrong = 0;
    for (unsigned i = 0; i < THROWN; i++) {
        unsigned place = first + i % OWN_PLACES * 2;
        const void *code = function_at(&shared, place, place % FRAME_FORMS);
        result.lost += throw_through(code, (long)i, &wrong) != (long)i;
    }
    result.wrong += wrong;
    result.running--;
    return NULL;
}

/* One-byte functions in the granules of the others, so that they share lists. */
static int add_small(unsigned place, unsigned at)
{
    return add_plain(shared.arena, (uint64_t)(uintptr_t)shared.code + place * PLACE_BYTES + at, 1,
                     NULL);
}

static void change_often(void)
{
    enum { SMALL = PLACE_BYTES - 8 };
    for (unsigned i = 0; result.running; i++) {
        const unsigned place = i % (THROWERS * OWN_PLACES * 2);
        for (unsigned j = 0; j < 4; j++)
            assert_int_equal(add_small(place, SMALL + j), 0);
        for (unsigned j = 0; j < 4; j++)
            assert_int_equal(jitunwind_remove(shared.arena, (uint64_t)(uintptr_t)shared.code +
                                                                place * PLACE_BYTES + SMALL + j),
                             0);
        if (place % 2 == 0)
            continue;
        add_function(&shared, place, i % FRAME_FORMS, (const void *)(uintptr_t)&throw_number);
        remove_function(&shared, place, i % FRAME_FORMS);
    }
}

static void test_throwing_while_others_change(void **state)
{
    static unsigned first[THROWERS];
    pthread_t threads[THROWERS];
    (void)state;
    open_arena(&shared);
    result.running = THROWERS;
    for (unsigned i = 0; i < THROWERS * OWN_PLACES; i++)
        add_function(&shared, i * 2, i * 2 % FRAME_FORMS, (const void *)(uintptr_t)&throw_number);
    for (unsigned i = 0; i < THROWERS; i++) {
        first[i] = i * OWN_PLACES * 2;
        assert_int_equal(pthread_create(&threads[i], NULL, throw_often, &first[i]), 0);
    }
    change_often();
    for (unsigned i = 0; i < THROWERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(result.lost, 0);
    assert_int_equal(result.wrong, 0);
    close_arena(&shared);
}

/* ---- Ends ---- */

static void test_arenas_come_and_go(void **state)
{
    struct code_arena arenas[8];
    unsigned wrong = 0;
    (void)state;
    for (unsigned round = 0; round < 20; round++)
        for (unsigned i = 0; i < 8; i++) {
            if (round)
                close_arena(&arenas[i]);
            open_arena(&arenas[i]);
            add_function(&arenas[i], i, i, (const void *)(uintptr_t)&throw_number);
            assert_int_equal(throw_through(function_at(&arenas[i], i, i), 5, &wrong), 5);
        }
    for (unsigned i = 0; i < 8; i++)
        close_arena(&arenas[i]);
    assert_int_equal(wrong, 0);
}

/* A child throws through what its parent added, and ends without closing it. */
static void test_fork(void **state)
{
    struct code_arena arena;
    unsigned wrong = 0;
    int status;
    (void)state;
    open_arena(&arena);
    add_function(&arena, 3, 3, (const void *)(uintptr_t)&throw_number);
    pid_t child = fork();
    assert_int_not_equal(child, -1);
    if (child == 0)
        _exit(throw_through(function_at(&arena, 3, 3), 9, &wrong) == 9 && !wrong ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close_arena(&arena);
}

/* ---- Trampolines ---- */

/* That of ENTRY, known to the unwinder. */
static jitdump_entry *known_trampoline(struct jitdump *dump, jitdump_entry *entry,
                                       struct jitunwind **arena)
{
    struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
    struct jitunwind_code code = JITUNWIND_CODE_INIT;
    struct jitdump_trampoline_code is;
    jitdump_entry *call = jitdump_trampoline(dump, "f", NULL, 0, entry);
    assert_int_equal(jitdump_trampoline_describe(dump, call, &is), 0);
    options.start = is.arena_addr;
    options.bytes = is.arena_bytes;
    options.flags = JITUNWIND_EXCEPTIONS;
    assert_int_equal(jitunwind_open(arena, &options), 0);
    code.addr = is.code_addr;
    code.bytes = is.code_size;
    code.name = is.name;
    code.eh_frame = is.eh_frame;
    code.eh_frame_bytes = is.eh_frame_bytes;
    assert_int_equal(jitunwind_add(*arena, &code), 0);
    return call;
}

static void test_through_a_trampoline(void **state)
{
    struct jitdump *dump = open_dump();
    struct jitunwind *arena;
    unsigned wrong = 0;
    (void)state;
    jitdump_entry *call = known_trampoline(dump, (jitdump_entry *)throw_number, &arena);
    for (long i = 0; i < 100; i++)
        assert_int_equal(throw_through((const void *)(uintptr_t)call, i, &wrong), i);
    assert_int_equal(wrong, 0);
    jitunwind_close(arena);
    assert_int_equal(jitdump_close(dump), 0);
}

static void *exit_through(void *call)
{
    ((void (*)(void *))(uintptr_t)call)(&shared);
    return NULL; /* it does not come here */
}

static void test_a_thread_exits_through_a_trampoline(void **state)
{
    struct jitdump *dump = open_dump();
    struct jitunwind *arena;
    pthread_t thread;
    void *exited = NULL;
    (void)state;
    jitdump_entry *call = known_trampoline(dump, (jitdump_entry *)pthread_exit, &arena);
    assert_int_equal(pthread_create(&thread, NULL, exit_through, (void *)(uintptr_t)call), 0);
    assert_int_equal(pthread_join(thread, &exited), 0);
    assert_ptr_equal(exited, &shared);
    jitunwind_close(arena);
    assert_int_equal(jitdump_close(dump), 0);
}

/* Nobody else tells the unwinder of this code: without the option a throw does not come through. */
static void test_without_the_option(void **state)
{
    struct code_arena arena = {.code = map_code()};
    unsigned wrong = 0;
    int status;
    (void)state;
    arena.arena = arena_at((uint64_t)(uintptr_t)arena.code, CODE_BYTES);
    add_function(&arena, 3, 3, (const void *)(uintptr_t)&throw_number);
    pid_t child = fork();
    assert_int_not_equal(child, -1);
    if (child == 0) {
        freopen("/dev/null", "w", stderr);
        signal(SIGABRT, SIG_DFL);
        throw_through(function_at(&arena, 3, 3), 9, &wrong);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    close_arena(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_depth),
        cmocka_unit_test(test_again_and_again),
        cmocka_unit_test(test_throwing_while_others_change),
        cmocka_unit_test(test_arenas_come_and_go),
        cmocka_unit_test(test_fork),
        cmocka_unit_test_setup_teardown(test_through_a_trampoline, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_a_thread_exits_through_a_trampoline, make_dir,
                                        remove_dir),
        cmocka_unit_test(test_without_the_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void test_other_machines(void **state)
{
    struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
    struct jitunwind *arena;
    (void)state;
    options.start = ARENA_START;
    options.bytes = ARENA_BYTES;
    options.flags = JITUNWIND_EXCEPTIONS;
    assert_int_equal(jitunwind_open(&arena, &options), -ENOTSUP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_other_machines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
