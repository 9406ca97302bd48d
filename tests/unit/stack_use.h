/* How much stack a call takes: it runs on a stack of its own, which was painted before. */
#ifndef TESTS_STACK_USE_H
#define TESTS_STACK_USE_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK_BYTES = 256 << 10, PAINT = 0xa5 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool is_sanitized = true;
#else
static const bool is_sanitized = false;
#endif

static ucontext_t here, there;

static inline void do_nothing(void)
{
}

/* How many bytes below its beginning CALL has written. */
static inline size_t stack_of(void (*call)(void))
{
    unsigned char *stack =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t untouched = 0;
    CHECK(stack != MAP_FAILED);
    memset(stack, PAINT, STACK_BYTES);
    CHECK(getcontext(&there) == 0);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = STACK_BYTES;
    there.uc_link = &here;
    makecontext(&there, call, 0);
    CHECK(swapcontext(&here, &there) == 0);
    while (stack[untouched] == PAINT)
        untouched++;
    munmap(stack, STACK_BYTES);
    return STACK_BYTES - untouched;
}

/* CALL takes less than LIMIT bytes; what the test itself takes there is not counted. */
static inline void check_stack(void (*call)(void), size_t limit, const char *what)
{
    size_t bytes = stack_of(call) - stack_of(do_nothing);
    printf("# %s: %zu bytes of stack\n", what, bytes);
    fflush(NULL);
    CHECK(bytes < limit);
}

#endif
