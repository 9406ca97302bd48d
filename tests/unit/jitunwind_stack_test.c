/* jitunwind_backtrace on stacks and registers that are damaged: it ends, does not fault, and says
 * where the chain is not known. */
#include "tests/unit/jitunwind_test.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__x86_64__)
#define IP(context) (context).uc_mcontext.gregs[REG_RIP]
#define SP(context) (context).uc_mcontext.gregs[REG_RSP]
#define FP(context) (context).uc_mcontext.gregs[REG_RBP]
#else
#define IP(context) (context).uc_mcontext.pc
#define SP(context) (context).uc_mcontext.sp
#define FP(context) (context).uc_mcontext.regs[29]
#endif

enum { FRAMES = 64, STACK_WORDS = 512, RANDOM_STACKS = 20000 };

static uint64_t fake_stack[STACK_WORDS];
static struct jitunwind_frame frames[FRAMES];

static uint64_t stack_addr(size_t word)
{
    return (uint64_t)(uintptr_t)&fake_stack[word];
}

/* A context in JIT code, with the fake stack. */
static ucontext_t context_at(uint64_t ip, uint64_t sp, uint64_t fp)
{
    ucontext_t context;
    memset(&context, 0, sizeof context);
    IP(context) = (__typeof__(IP(context)))ip;
    SP(context) = (__typeof__(SP(context)))sp;
    FP(context) = (__typeof__(FP(context)))fp;
    return context;
}

static size_t walk(const ucontext_t *context, uint32_t flags)
{
    memset(frames, 0, sizeof frames);
    return jitunwind_backtrace(context, frames, FRAMES, flags);
}

/* In the middle of a function with a frame pointer, whose frame is at word WORD. */
static struct jitunwind *framed_arena(void)
{
    struct jitunwind *arena = arena_open();
    assert_int_equal(add_framed(arena, ARENA_START, 64, "framed"), 0);
    return arena;
}

/* A function that puts nothing on the stack. */
static int add_leaf(struct jitunwind *arena, uint64_t addr, uint64_t bytes)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_HOST_ARCH);
    return add_described(arena, cfi, addr, bytes, NULL);
}

static void test_own_chain(void **state)
{
    (void)state;
    size_t count = jitunwind_backtrace(NULL, frames, FRAMES, 0);
    assert_true(count > 3);
    assert_int_equal(frames[count - 1].end, JITUNWIND_OUTERMOST);
    for (size_t i = 1; i < count; i++)
        assert_int_equal(frames[i].how, JITUNWIND_EH_FRAME);
    uint64_t here = (uint64_t)(uintptr_t)test_own_chain;
    assert_in_range(frames[0].ip, here, here + 4096);
    size_t rest = jitunwind_backtrace(NULL, frames, 2, 0);
    assert_int_equal(rest, 2);
    assert_int_equal(frames[1].end, JITUNWIND_FULL);
    assert_int_equal(jitunwind_backtrace(NULL, frames, 0, 0), 0);
}

static void test_errno_is_preserved(void **state)
{
    ucontext_t context = context_at(ARENA_START, 8, 8);
    (void)state;
    errno = 77;
    walk(&context, JITUNWIND_SCAN);
    assert_int_equal(errno, 77);
}

static void test_a_frame_that_is_not_there(void **state)
{
    struct jitunwind *arena = framed_arena();
    static const uint64_t nowhere[] = {0, 8, 4096, UINT64_MAX - 7, UINT64_MAX, UINT64_C(1) << 63};
    (void)state;
    for (size_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++) {
        ucontext_t context = context_at(ARENA_START + 30, nowhere[i], nowhere[i]);
        assert_int_equal(walk(&context, JITUNWIND_SCAN), 1);
        assert_int_equal(frames[0].end, JITUNWIND_LOST);
        assert_int_equal(frames[0].how, JITUNWIND_INTERRUPTED);
    }
    assert_int_equal(jitunwind_backtrace((const void *)8, frames, FRAMES, 0), 0);
    jitunwind_close(arena);
}

/* A frame pointer that leads back to where it came from. */
static void test_cyclic_frames(void **state)
{
    struct jitunwind *arena = framed_arena();
    ucontext_t context = context_at(ARENA_START + 30, stack_addr(0), stack_addr(2));
    (void)state;
    fake_stack[2] = stack_addr(2);
    fake_stack[3] = ARENA_START + 30;
    assert_int_equal(walk(&context, 0), 2);
    assert_int_equal(frames[1].how, JITUNWIND_RULES);
    assert_int_equal(frames[1].end, JITUNWIND_LOST);
    fake_stack[2] = stack_addr(4);
    fake_stack[4] = stack_addr(2);
    fake_stack[5] = ARENA_START + 30;
    assert_int_equal(walk(&context, 0), 3);
    assert_int_equal(frames[2].end, JITUNWIND_LOST);
    jitunwind_close(arena);
}

static void test_smashed_return_address(void **state)
{
    struct jitunwind *arena = framed_arena();
    ucontext_t context = context_at(ARENA_START + 30, stack_addr(0), stack_addr(2));
    (void)state;
    fake_stack[2] = stack_addr(4);
    fake_stack[3] = UINT64_C(0x4141414141414141);
    assert_int_equal(walk(&context, 0), 1);
    assert_int_equal(frames[0].end, JITUNWIND_LOST);
    fake_stack[3] = 0;
    assert_int_equal(walk(&context, 0), 1);
    assert_int_equal(frames[0].end, JITUNWIND_OUTERMOST);
    jitunwind_close(arena);
}

/* What was known of a return address is not known any more when other code is there. */
static void test_a_rule_is_not_kept_for_other_code(void **state)
{
    struct jitunwind *arena = framed_arena();
    ucontext_t context = context_at(ARENA_START + 30, stack_addr(0), stack_addr(2));
    (void)state;
    fake_stack[2] = stack_addr(6);
    fake_stack[3] = ARENA_START + 70;
    for (unsigned i = 0; i < 4; i++) {
        const bool framed = i % 2;
        /* With a frame pointer the caller's caller is the one at word 6; else the one behind. */
        fake_stack[4] = ARENA_START + 20;
        fake_stack[6] = 0;
        fake_stack[7] = ARENA_START + 40;
        assert_int_equal(framed ? add_framed(arena, ARENA_START + 64, 64, "framed")
                                : add_leaf(arena, ARENA_START + 64, 64),
                         0);
        for (unsigned again = 0; again < 3; again++) {
            assert_true(walk(&context, 0) >= 3);
            assert_int_equal(frames[2].ip, framed ? ARENA_START + 40 : ARENA_START + 20);
        }
        assert_int_equal(jitunwind_remove(arena, ARENA_START + 64), 0);
    }
    jitunwind_close(arena);
    /* Nor where the arena is another one. */
    arena = framed_arena();
    assert_int_equal(walk(&context, 0), 1);
    jitunwind_close(arena);
}

/* Where libc calls main: a return address in code. */
static uint64_t some_return_address(void)
{
    size_t count = walk(NULL, 0);
    assert_true(count > 3);
    return frames[count - 2].ip;
}

static void test_scan_only_on_request(void **state)
{
    struct jitunwind *arena = framed_arena();
    ucontext_t context = context_at(ARENA_START + 30, stack_addr(0), 3);
    uint64_t found = some_return_address();
    (void)state;
    memset(fake_stack, 0, sizeof fake_stack);
    fake_stack[7] = ARENA_START + 8; /* code, but not behind a call: its bytes are not there */
    fake_stack[9] = found;
    assert_int_equal(walk(&context, 0), 1);
    assert_int_equal(frames[0].end, JITUNWIND_LOST);
    assert_true(walk(&context, JITUNWIND_SCAN) >= 2);
    assert_int_equal(frames[1].how, JITUNWIND_SCANNED);
    assert_int_equal(frames[1].ip, found);
    jitunwind_close(arena);
}

/* A call of NULL: the caller is known by the return address that the call put there. */
static void test_called_nowhere(void **state)
{
    uint64_t caller = some_return_address();
    ucontext_t context = context_at(0, stack_addr(4), 3);
    (void)state;
    fake_stack[4] = caller;
#if defined(__aarch64__)
    context.uc_mcontext.regs[30] = caller;
#endif
    assert_true(walk(&context, 0) >= 2);
    assert_int_equal(frames[1].how, JITUNWIND_LEAF);
    assert_int_equal(frames[1].ip, caller);
}

/* glibc's __memmove_chk runs into memmove through padding, which is in no table. */
#if defined(__x86_64__)
extern const char padded_end[], padding_ends[];
__asm__(".text\n.type padded, @function\npadded: .cfi_startproc\n mov %rdi, %rax\n"
        ".cfi_endproc\n.size padded, .-padded\npadded_end: .rept 2\n"
        ".byte 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0\n.endr\n"
        ".byte 0x0f, 0x1f, 0x44, 0, 0, 0x0f, 0x1f, 0x40, 0, 0x0f, 0x1f, 0, 0x66, 0x90, 0x90\n"
        ".byte 0x0f, 0x1f, 0x80, 0, 0, 0, 0\npadding_ends:\n"
        ".type behind_it, @function\nbehind_it: .cfi_startproc\n ret\n.cfi_endproc\n"
        ".size behind_it, .-behind_it\n");
static const uint8_t padding_bytes[] = {11, 11, 5, 4, 3, 2, 1, 7};
#else
extern const char padded_end[], padding_ends[];
__asm__(".text\n.type padded, %function\npadded: .cfi_startproc\n mov x0, x1\n"
        ".cfi_endproc\n.size padded, .-padded\npadded_end: nop\n nop\n nop\npadding_ends:\n"
        ".type behind_it, %function\nbehind_it: .cfi_startproc\n ret\n.cfi_endproc\n"
        ".size behind_it, .-behind_it\n");
static const uint8_t padding_bytes[] = {4, 4, 4};
#endif

static void test_padding_that_is_run_through(void **state)
{
    uint64_t caller = some_return_address(), ip = (uint64_t)(uintptr_t)padded_end;
    (void)state;
    fake_stack[4] = caller;
    for (size_t i = 0; i < sizeof padding_bytes; ip += padding_bytes[i++]) {
        ucontext_t context = context_at(ip, stack_addr(4), 3);
#if defined(__aarch64__)
        context.uc_mcontext.regs[30] = caller;
#endif
        assert_true(walk(&context, 0) >= 2);
        assert_int_equal(frames[1].how, JITUNWIND_EH_FRAME);
        assert_int_equal(frames[1].ip, caller);
    }
    assert_true(ip == (uint64_t)(uintptr_t)padding_ends);
}

/* The page behind the stack is not there. */
static void test_end_of_memory(void **state)
{
    struct jitunwind *arena = framed_arena();
    uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(mprotect(pages + 4096, 4096, PROT_NONE), 0);
    for (uint64_t back = 0; back <= 64; back++) {
        uint64_t at = (uint64_t)(uintptr_t)pages + 4096 - back;
        ucontext_t context = context_at(ARENA_START + 30, at, at);
        size_t count = walk(&context, JITUNWIND_SCAN);
        assert_in_range(count, 1, 2);
    }
    munmap(pages, 8192);
    jitunwind_close(arena);
}

static uint64_t random_number(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* A word as stacks have them, or any. */
static uint64_t random_word(uint64_t *seed, uint64_t native)
{
    switch (random_number(seed) % 6) {
    case 0:
        return stack_addr(random_number(seed) % STACK_WORDS);
    case 1:
        return ARENA_START + random_number(seed) % 200;
    case 2:
        return native + random_number(seed) % 64;
    case 3:
        return random_number(seed) % 16;
    default:
        return random_number(seed);
    }
}

static void check_frames(size_t count)
{
    assert_in_range(count, 1, FRAMES);
    for (size_t i = 0; i + 1 < count; i++) {
        assert_int_equal(frames[i].end, JITUNWIND_GOES_ON);
        assert_true(frames[i + 1].sp >= frames[i].sp || frames[i + 1].how == JITUNWIND_SIGNAL);
    }
    assert_int_not_equal(frames[count - 1].end, JITUNWIND_GOES_ON);
}

static void test_random_stacks(void **state)
{
    struct jitunwind *arena = framed_arena();
    uint64_t seed = 88172645463325252u, native = some_return_address();
    (void)state;
    assert_int_equal(add_plain(arena, ARENA_START + 64, 64, "plain"), 0);
    for (unsigned i = 0; i < RANDOM_STACKS; i++) {
        for (size_t k = 0; k < STACK_WORDS; k++)
            fake_stack[k] = random_word(&seed, native);
        ucontext_t context = context_at(random_word(&seed, native), random_word(&seed, native),
                                        random_word(&seed, native));
        check_frames(walk(&context, i % 2 ? JITUNWIND_SCAN : 0));
    }
    jitunwind_close(arena);
}

/* What a handler sees of what it interrupted, through the kernel's own frame. */
static volatile size_t handled; /* raise() is said not to call back */

static void at_signal(int number)
{
    (void)number;
    handled = walk(NULL, 0);
}

static void test_through_a_signal_frame(void **state)
{
    (void)state;
    signal(SIGUSR2, at_signal);
    handled = 0;
    raise(SIGUSR2);
    assert_true(handled > 4);
    assert_int_equal(frames[handled - 1].end, JITUNWIND_OUTERMOST);
    bool through = false;
    for (size_t i = 0; i < handled; i++)
        through |= frames[i].how == JITUNWIND_SIGNAL && frames[i].exact;
    assert_true(through);
}

static void test_crash_report(void **state)
{
    struct jitunwind *arena = framed_arena();
    ucontext_t context = context_at(ARENA_START + 30, stack_addr(0), stack_addr(2));
    char text[8192];
    int pipe_fds[2];
    (void)state;
    fake_stack[2] = stack_addr(4);
    fake_stack[3] = ARENA_START + 20;
    fake_stack[4] = 0;
    fake_stack[5] = 0;
    assert_int_equal(pipe(pipe_fds), 0);
    assert_int_equal(jitunwind_print_crash(pipe_fds[1], &context), 0);
    close(pipe_fds[1]);
    ssize_t bytes = read(pipe_fds[0], text, sizeof text - 1);
    close(pipe_fds[0]);
    assert_true(bytes > 0);
    text[bytes] = '\0';
    assert_non_null(strstr(text, "  #0 0x000000001000001e framed+0x1e\n"));
    assert_non_null(strstr(text, "  #1 0x0000000010000014 framed+0x14\n"));
    assert_null(strstr(text, "#2"));
    assert_int_equal(jitunwind_print_crash(-1, &context), -EBADF);
    jitunwind_close(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_chain),
        cmocka_unit_test(test_errno_is_preserved),
        cmocka_unit_test(test_a_frame_that_is_not_there),
        cmocka_unit_test(test_cyclic_frames),
        cmocka_unit_test(test_smashed_return_address),
#if defined(__x86_64__) /* where the return address is on the stack */
        cmocka_unit_test(test_a_rule_is_not_kept_for_other_code),
#endif
        cmocka_unit_test(test_scan_only_on_request),
        cmocka_unit_test(test_called_nowhere),
        cmocka_unit_test(test_padding_that_is_run_through),
        cmocka_unit_test(test_end_of_memory),
        cmocka_unit_test(test_random_stacks),
        cmocka_unit_test(test_through_a_signal_frame),
        cmocka_unit_test(test_crash_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
