/* A builder of unwind tables has nothing in common with others, and takes no memory for a function
 * like those before it. */
#include "jitdump/cfi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Step STEP of describing the function NUMBER. */
static void describe(struct jitdump_cfi *cfi, unsigned number, unsigned step)
{
    const struct jitdump_frame frame = {.kind = JITDUMP_FRAME_POINTER,
                                        JITDUMP_SAVED(JITDUMP_RBX, JITDUMP_R12),
                                        .stack_bytes = 32,
                                        .prologue = 100 * step};
    jitdump_cfi_block(cfi, 100 * step, 100);
    if (step % 2)
        jitdump_cfi_frame(cfi, &frame);
    else
        jitdump_cfi_def_cfa_offset(cfi, 100 * step + 1, 16 + number);
}

enum { STEPS = 8, FUNCTIONS = 4, CODE_BYTES = 100 * STEPS };

static struct jitdump_unwind finish(struct jitdump_cfi *cfi)
{
    struct jitdump_unwind unwind;
    assert_int_equal(jitdump_cfi_finish(cfi, CODE_BYTES, &unwind), 0);
    return unwind;
}

/* Built in turns, with one that fails, they are what each is alone. */
static void test_builders_are_independent(void **state)
{
    struct jitdump_cfi *failed = jitdump_cfi_new(JITDUMP_X86_64), *builders[FUNCTIONS];
    (void)state;
    for (unsigned i = 0; i < FUNCTIONS; i++)
        builders[i] = jitdump_cfi_new(JITDUMP_X86_64);
    for (unsigned step = 0; step < STEPS; step++) {
        for (unsigned i = 0; i < FUNCTIONS; i++)
            describe(builders[i], i, step);
        jitdump_cfi_restore_state(failed, 0);
    }
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        struct jitdump_cfi *alone = jitdump_cfi_new(JITDUMP_X86_64);
        for (unsigned step = 0; step < STEPS; step++)
            describe(alone, i, step);
        struct jitdump_unwind expected = finish(alone), unwind = finish(builders[i]);
        assert_int_equal(unwind.unwinding_size, expected.unwinding_size);
        assert_memory_equal(unwind.data, expected.data, expected.unwinding_size);
        assert_string_equal(jitdump_cfi_error(builders[i]), "");
        jitdump_cfi_free(alone);
        jitdump_cfi_free(builders[i]);
    }
    assert_string_not_equal(jitdump_cfi_error(failed), "");
    jitdump_cfi_free(failed);
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define CAN_COUNT_MALLOC 1

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static unsigned allocations;

void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    allocations++;
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    allocations++;
    return __libc_realloc(old, size);
}

static void test_a_builder_keeps_its_memory(void **state)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        jitdump_cfi_reset(cfi);
        for (unsigned step = 0; step < STEPS; step++)
            describe(cfi, i, step);
        finish(cfi);
        if (i == 0)
            allocations = 0;
    }
    assert_int_equal(allocations, 0);
    jitdump_cfi_free(cfi);
}

/* The tables of all functions between two resets, too. */
static void test_a_builder_keeps_the_memory_of_ended_functions(void **state)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_unwind unwind;
    (void)state;
    for (unsigned round = 0; round < 10; round++) {
        jitdump_cfi_reset(cfi);
        for (uint64_t at = 0; at < 64 * 400; at += 64) {
            jitdump_cfi_begin(cfi, at);
            jitdump_cfi_def_cfa_offset(cfi, at + 1, 16);
            assert_int_equal(jitdump_cfi_end(cfi, at + 64, &unwind), 0);
        }
        if (round == 0)
            allocations = 0;
    }
    assert_int_equal(allocations, 0);
    jitdump_cfi_free(cfi);
}
#else
#define CAN_COUNT_MALLOC 0
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_builders_are_independent),
#if CAN_COUNT_MALLOC
        cmocka_unit_test(test_a_builder_keeps_its_memory),
        cmocka_unit_test(test_a_builder_keeps_the_memory_of_ended_functions),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
