/* A thread that is stopped, or gone, in the middle of a change: nobody waits for it, and what was
 * published is found. */
#include "jitunwind/arena_list.h"
#include "tests/unit/jitunwind_test.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CODE = 0x100, OTHER = 0x200 };

/* A thread in a change of ARENA, until a byte comes. */
struct changer {
    struct jitunwind *arena;
    int begun[2], go_on[2];
    pthread_t thread;
};

static void *change(void *context)
{
    struct changer *changer = context;
    char byte = 0;
    assert_int_equal(ju_change_begin(&changer->arena->lock), 0);
    assert_int_equal(write(changer->begun[1], &byte, 1), 1);
    assert_int_equal(read(changer->go_on[0], &byte, 1), 1);
    if (byte == 'e')
        ju_change_end(&changer->arena->lock);
    return NULL;
}

static void begin_change(struct changer *changer, struct jitunwind *arena)
{
    char byte;
    changer->arena = arena;
    assert_int_equal(pipe(changer->begun), 0);
    assert_int_equal(pipe(changer->go_on), 0);
    assert_int_equal(pthread_create(&changer->thread, NULL, change, changer), 0);
    assert_int_equal(read(changer->begun[0], &byte, 1), 1);
}

/* HOW: 'e': it ends the change; else it goes in the middle of it. */
static void end_change(struct changer *changer, char how)
{
    assert_int_equal(write(changer->go_on[1], &how, 1), 1);
    pthread_join(changer->thread, NULL);
    for (size_t i = 0; i < 2; i++) {
        close(changer->begun[i]);
        close(changer->go_on[i]);
    }
}

static void test_stopped(void **state)
{
    struct jitunwind *arena = arena_open();
    struct changer changer;
    (void)state;
    assert_int_equal(add_plain(arena, ARENA_START + CODE, 16, "first"), 0);
    begin_change(&changer, arena);
    assert_int_equal(add_plain(arena, ARENA_START + OTHER, 16, "second"), -EAGAIN);
    assert_int_equal(jitunwind_remove(arena, ARENA_START + CODE), -EAGAIN);
    expect_name(ARENA_START + CODE, "first");
    end_change(&changer, 'e');
    assert_int_equal(add_plain(arena, ARENA_START + OTHER, 16, "second"), 0);
    assert_int_equal(jitunwind_remove(arena, ARENA_START + CODE), 0);
    jitunwind_close(arena);
}

static void expect_left(struct jitunwind *arena)
{
    for (int i = 0; i < 2; i++)
        assert_int_equal(add_plain(arena, ARENA_START + OTHER, 16, "second"), -EOWNERDEAD);
    assert_int_equal(jitunwind_remove(arena, ARENA_START + CODE), -EOWNERDEAD);
    expect_name(ARENA_START + CODE, "first");
}

/* As by asynchronous cancellation. */
static void test_gone(void **state)
{
    struct jitunwind *arena = arena_open();
    struct changer changer;
    (void)state;
    assert_int_equal(add_plain(arena, ARENA_START + CODE, 16, "first"), 0);
    begin_change(&changer, arena);
    end_change(&changer, 'g');
    expect_left(arena);
    jitunwind_close(arena);
    arena = arena_open(); /* another one in its place */
    assert_int_equal(add_plain(arena, ARENA_START + OTHER, 16, "second"), 0);
    jitunwind_close(arena);
}

/* In a child there is no thread but the one that forked. */
static void test_child(void **state)
{
    struct jitunwind *arena = arena_open();
    struct changer changer;
    int status;
    (void)state;
    assert_int_equal(add_plain(arena, ARENA_START + CODE, 16, "first"), 0);
    begin_change(&changer, arena);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(30);
        expect_left(arena);
        jitunwind_close(arena);
        arena = arena_open();
        assert_int_equal(add_plain(arena, ARENA_START + CODE, 16, "child's"), 0);
        expect_name(ARENA_START + CODE, "child's");
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    end_change(&changer, 'e');
    jitunwind_close(arena);
}

/* By longjmp, say. */
static void test_left(void **state)
{
    struct jitunwind *arena = arena_open();
    (void)state;
    assert_int_equal(add_plain(arena, ARENA_START + CODE, 16, "first"), 0);
    assert_int_equal(ju_change_begin(&arena->lock), 0);
    expect_left(arena);
    jitunwind_close(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_child),
        cmocka_unit_test(test_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
