/* Code that breaks its own stack and then traps: what jitunwind_backtrace makes of it in the
 * handler, on an alternate stack.  It comes back, and says where it is not sure. */
#include "tests/unit/jitunwind_test.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__x86_64__)

enum { CODE_BYTES = 1 << 16, PLACE_BYTES = 256, FRAMES = 256, HANDLER_STACK_BYTES = 64 << 10 };

static uint8_t *code;
static struct jitunwind *arena;
static sigjmp_buf back;
static struct jitunwind_frame frames[FRAMES];
static volatile size_t count;

static void at_trap(int number, siginfo_t *info, void *ucontext)
{
    (void)number, (void)info;
    count = jitunwind_backtrace(ucontext, frames, FRAMES, 0);
    siglongjmp(back, 1);
}

/* cmocka has handlers of its own in each test. */
static void catch_traps(void)
{
    static const int traps[] = {SIGTRAP, SIGSEGV, SIGBUS, SIGILL};
    struct sigaction action = {.sa_sigaction = at_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    for (size_t i = 0; i < sizeof traps / sizeof traps[0]; i++)
        assert_int_equal(sigaction(traps[i], &action, NULL), 0);
    count = 0;
}

/* ---- Code ---- */

static uint8_t *put(uint8_t *at, const char *bytes, size_t size)
{
    memcpy(at, bytes, size);
    return at + size;
}

#define PUT(at, bytes) put(at, bytes, sizeof bytes - 1)

/* mov $TARGET, %rax; call *%rax */
static uint8_t *put_call(uint8_t *at, const void *target)
{
    const uint64_t value = (uint64_t)(uintptr_t)target;
    at = PUT(at, "\x48\xb8");
    at = put(at, (const char *)&value, sizeof value);
    return PUT(at, "\xff\xd0");
}

static uint8_t *place(unsigned number)
{
    return code + (size_t)number * PLACE_BYTES;
}

/* Tell the registry of the code from PLACE NUMBER to END: with a frame pointer, whose epilogue are
 * the last two bytes, or without anything on the stack. */
static void tell(unsigned number, const uint8_t *end, bool framed)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_HOST_ARCH);
    struct jitdump_unwind unwind;
    struct jitunwind_code added = JITUNWIND_CODE_INIT;
    added.addr = (uint64_t)(uintptr_t)place(number);
    added.bytes = (uint64_t)(end - place(number));
    const uint64_t epilogue = added.bytes - 2;
    const struct jitdump_frame frame = {
        .kind = JITDUMP_FRAME_POINTER, .epilogues = &epilogue, .epilogue_count = 1};
    if (framed)
        jitdump_cfi_frame(cfi, &frame);
    assert_int_equal(jitdump_cfi_finish(cfi, added.bytes, &unwind), 0);
    added.eh_frame = unwind.data;
    added.eh_frame_bytes = unwind.unwinding_size - unwind.eh_frame_hdr_size;
    assert_int_equal(jitunwind_add(arena, &added), 0);
    jitdump_cfi_free(cfi);
}

/* A function with a frame pointer that calls TARGET. */
static void put_caller(unsigned number, const void *target)
{
    uint8_t *at = PUT(place(number), "\x55\x48\x89\xe5");
    at = PUT(put_call(at, target), "\x5d\xc3");
    tell(number, at, true);
}

/* Two callers, and as the innermost what BODY does, with a frame pointer or without a frame. */
static void run(const char *body, size_t bytes, bool framed)
{
    uint8_t *at = framed ? PUT(place(0), "\x55\x48\x89\xe5") : place(0);
    at = put(at, body, bytes);
    at = framed ? PUT(at, "\x5d\xc3") : PUT(at, "\xc3");
    tell(0, at, framed);
    put_caller(1, place(0));
    put_caller(2, place(1));
    catch_traps();
    if (sigsetjmp(back, 1) == 0)
        ((void (*)(void))(uintptr_t)place(2))();
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(jitunwind_remove(arena, (uint64_t)(uintptr_t)place(i)), 0);
    assert_in_range(count, 1, FRAMES);
    assert_int_not_equal(frames[count - 1].end, JITUNWIND_GOES_ON);
}

#define RUN(body, framed) run(body, sizeof body - 1, framed)

/* INDEX is a frame of the function at place NUMBER. */
static bool is_frame_of(size_t index, unsigned number)
{
    return index < count && frames[index].ip - (uint64_t)(uintptr_t)place(number) < PLACE_BYTES;
}

static bool is_whole(void)
{
    for (size_t i = 1; i < count; i++)
        if (frames[i].how != JITUNWIND_RULES && frames[i].how != JITUNWIND_EH_FRAME)
            return false;
    return count > 5 && frames[count - 1].end == JITUNWIND_OUTERMOST && is_frame_of(0, 0) &&
           is_frame_of(1, 1) && is_frame_of(2, 2);
}

/* ---- Troubles ---- */

static void test_nothing_wrong(void **state)
{
    (void)state;
    RUN("\xcc", true);
    assert_true(is_whole());
    RUN("\xcc", false);
    assert_true(is_whole());
}

/* mov $0x4141414141414141, %rax; mov %rax, 8(%rbp): the return address */
static void test_smashed_return_address(void **state)
{
    (void)state;
    RUN("\x48\xb8\x41\x41\x41\x41\x41\x41\x41\x41\x48\x89\x45\x08\xcc", true);
    assert_int_equal(count, 1);
    assert_int_equal(frames[0].end, JITUNWIND_LOST);
}

/* ... of the caller, by way of its frame: one frame more is known */
static void test_smashed_in_the_caller(void **state)
{
    (void)state;
    RUN("\x48\xb8\x41\x41\x41\x41\x41\x41\x41\x41\x48\x8b\x4d\x00\x48\x89\x41\x08\xcc", true);
    assert_int_equal(count, 2);
    assert_true(is_frame_of(1, 1));
    assert_int_equal(frames[1].end, JITUNWIND_LOST);
}

/* mov $VALUE, %rbp: no rule, no chain */
static void test_garbage_in_the_frame_pointer(void **state)
{
    static const char *const bodies[] = {
        "\x48\xbd\x41\x41\x41\x41\x41\x41\x41\x41\xcc", /* not canonical */
        "\x48\xbd\x01\x00\x00\x00\x00\x00\x00\x00\xcc", /* unaligned, near 0 */
        "\x48\xbd\xf8\xff\xff\xff\xff\xff\xff\xff\xcc", /* the end of all addresses */
        "\x48\xbd\x00\x00\x00\x00\x00\x80\xff\xff\xcc", /* the kernel's */
        "\x48\x8d\x6c\x24\x80\x90\x90\x90\x90\x90\xcc", /* lea -128(%rsp), %rbp: below the stack */
    };
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        run(bodies[i], 11, true);
        assert_int_equal(count, 1);
        assert_int_equal(frames[0].end, JITUNWIND_LOST);
    }
}

/* The same where the frame does not need it: the callers do, and say so. */
static void test_garbage_in_the_frame_pointer_of_a_leaf(void **state)
{
    (void)state;
    RUN("\x48\xbd\x41\x41\x41\x41\x41\x41\x41\x41\xcc", false);
    assert_int_equal(count, 2);
    assert_true(is_frame_of(1, 1));
    assert_int_equal(frames[1].end, JITUNWIND_LOST);
}

/* mov %rbp, 0(%rbp): the caller's frame is this one; mov 0(%rbp), %rax; mov %rbp, (%rax): ... the
 * caller's caller's is */
static void test_cyclic(void **state)
{
    (void)state;
    RUN("\x48\x89\x6d\x00\xcc", true);
    assert_int_equal(count, 2);
    assert_int_equal(frames[1].end, JITUNWIND_LOST);
    RUN("\x48\x8b\x45\x00\x48\x89\x28\xcc", true);
    assert_int_equal(count, 3);
    assert_int_equal(frames[2].end, JITUNWIND_LOST);
}

/* mov $8, %esp; mov $-8, %rsp: there is no stack at all */
static void test_no_stack(void **state)
{
    (void)state;
    RUN("\xbc\x08\x00\x00\x00\xcc", false);
    assert_int_equal(count, 1);
    assert_int_equal(frames[0].end, JITUNWIND_LOST);
    RUN("\x48\xc7\xc4\xf8\xff\xff\xff\xcc", false);
    assert_int_equal(count, 1);
    assert_int_equal(frames[0].end, JITUNWIND_LOST);
}

/* xor %eax, %eax; call *%rax: by the return address of that call */
static void test_called_nowhere(void **state)
{
    (void)state;
    RUN("\x31\xc0\xff\xd0", true);
    assert_int_equal(frames[1].how, JITUNWIND_LEAF);
    assert_true(is_frame_of(1, 0) && is_frame_of(2, 1) && is_frame_of(3, 2));
    assert_int_equal(frames[count - 1].end, JITUNWIND_OUTERMOST);
}

/* Code that the registry does not know: by its frame pointer, which is told. */
static void test_code_that_nobody_told_of(void **state)
{
    uint8_t *at = PUT(place(4), "\x55\x48\x89\xe5\xcc");
    (void)state;
    PUT(at, "\x5d\xc3");
    put_caller(1, place(4));
    put_caller(2, place(1));
    catch_traps();
    if (sigsetjmp(back, 1) == 0)
        ((void (*)(void))(uintptr_t)place(2))();
    assert_true(is_frame_of(0, 4) && is_frame_of(1, 1) && is_frame_of(2, 2));
    assert_int_equal(frames[1].how, JITUNWIND_FRAME_POINTER);
    assert_int_equal(frames[2].how, JITUNWIND_RULES);
    for (unsigned i = 1; i < 3; i++)
        assert_int_equal(jitunwind_remove(arena, (uint64_t)(uintptr_t)place(i)), 0);
}

/* ---- A full stack ---- */

/* Calls itself for ever; the stack ends at its push or at its call, as FILL has it. */
static void *overflow(void *fill)
{
    static char handler_stack[HANDLER_STACK_BYTES];
    const stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof handler_stack};
    stack_t former; /* a sanitizer's, which it takes back at the thread's end */
    uint8_t *at = PUT(place(0), "\x55\x48\x89\xe5");
    assert_int_equal(sigaltstack(&stack, &former), 0);
    at = PUT(put_call(at, place(0)), "\x5d\xc3");
    tell(0, at, true);
    catch_traps();
    if (sigsetjmp(back, 1) == 0) {
        if (fill)
            __asm__ volatile("sub $8, %%rsp; call *%0" ::"r"(place(0)) : "memory");
        else
            __asm__ volatile("call *%0" ::"r"(place(0)) : "memory");
    }
    assert_int_equal(jitunwind_remove(arena, (uint64_t)(uintptr_t)place(0)), 0);
    assert_int_equal(sigaltstack(&former, NULL), 0);
    return NULL;
}

static void test_overflow(void **state)
{
    pthread_t thread;
    unsigned at_push = 0, at_call = 0;
    (void)state;
    for (uintptr_t fill = 0; fill < 2; fill++) {
        assert_int_equal(pthread_create(&thread, NULL, overflow, (void *)fill), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(count, FRAMES);
        assert_int_equal(frames[FRAMES - 1].end, JITUNWIND_FULL);
        for (size_t i = 1; i < FRAMES; i++) {
            assert_true(is_frame_of(i, 0));
            assert_int_equal(frames[i].how, JITUNWIND_RULES);
            assert_true(i == 1 || frames[i].sp == frames[i - 1].sp + 16);
        }
        at_push += frames[0].ip == (uint64_t)(uintptr_t)place(0);
        at_call += frames[0].ip != (uint64_t)(uintptr_t)place(0);
    }
    assert_int_equal(at_push, 1);
    assert_int_equal(at_call, 1);
}

static int open_all(void **state)
{
    static char handler_stack[HANDLER_STACK_BYTES];
    const stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof handler_stack};
    (void)state;
    code = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
                -1, 0);
    if (code == MAP_FAILED || sigaltstack(&stack, NULL))
        return -1;
    arena = arena_at((uint64_t)(uintptr_t)code, CODE_BYTES);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_wrong),
        cmocka_unit_test(test_smashed_return_address),
        cmocka_unit_test(test_smashed_in_the_caller),
        cmocka_unit_test(test_garbage_in_the_frame_pointer),
        cmocka_unit_test(test_garbage_in_the_frame_pointer_of_a_leaf),
        cmocka_unit_test(test_cyclic),
        cmocka_unit_test(test_no_stack),
        cmocka_unit_test(test_called_nowhere),
        cmocka_unit_test(test_code_that_nobody_told_of),
        cmocka_unit_test(test_overflow),
    };
    return cmocka_run_group_tests(tests, open_all, NULL);
}

#else

int main(void)
{
    return 0;
}

#endif
