/* In which order samples ask, and what was mapped where when each of them does. */
#include "injector/unwind/addresses/life_walk.h"

#include "tests/unit/space_world.h"

#include <inttypes.h>

enum { FAR = 0x7000000, MOST_SAMPLES = 64 };

/* A sample that asks what is at ADDR. */
struct question {
    uint32_t pid;
    uint64_t time, addr;
};

/* What the samples found, in the order in which they asked. */
struct answer {
    uint32_t number, what;
};

struct answers {
    const struct question *questions;
    struct answer items[MOST_SAMPLES];
    size_t count, fails_at;
};

static struct answers answers;

static int look(void *context, const struct walk_sample *sample, const struct address_space *space)
{
    struct answers *to = context;
    const struct question *question = &to->questions[sample->number];
    assert_int_equal(sample->time_ns, question->time);
    assert_int_equal(sample->offset, 5000 + sample->number);
    assert_int_equal(sample->life, life_at(question->pid, question->time));
    to->items[to->count++] =
        (struct answer){sample->number, address_space_at(space, question->addr)};
    return to->count == to->fails_at ? -1 : 0;
}

static int walk(const struct question *questions, size_t count, size_t fails_at)
{
    struct life_walk walk = {.source = &source, .context = &answers, .visit = look, .count = count};
    answers = (struct answers){.questions = questions, .fails_at = fails_at};
    walk.samples = malloc((count + 1) * sizeof *walk.samples);
    assert_non_null(walk.samples);
    for (size_t i = 0; i < count; i++)
        walk.samples[i] = (struct walk_sample){
            questions[i].time, 5000 + i, life_at(questions[i].pid, questions[i].time), (uint32_t)i};
    int result = life_walk_go(&walk);
    free(walk.samples);
    return result;
}

/* The samples ask in this order, told by their numbers. */
static void assert_walks(const struct question *questions, size_t count, const char *order)
{
    char text[256] = "";
    begin_source();
    assert_int_equal(walk(questions, count, SIZE_MAX), 0);
    for (size_t i = 0, at = 0; i < answers.count; i++, at = strlen(text))
        snprintf(text + at, sizeof text - at, "%s%" PRIu32, i ? " " : "", answers.items[i].number);
    assert_string_equal(text, order);
}

/* What sample NUMBER found. */
static uint32_t answer_of(uint32_t number)
{
    for (size_t i = 0; i < answers.count; i++)
        if (answers.items[i].number == number)
            return answers.items[i].what;
    fail_msg("sample %" PRIu32 " was not visited", number);
    return 0;
}

/* ---- One life ---- */

static void test_samples_of_a_life_ask_by_time(void **state)
{
    const struct question questions[] = {
        {PID, 300, FAR}, {PID, 50, FAR}, {PID, 100, FAR}, {PID, 250, FAR}, {PID, 200, FAR}};
    (void)state;
    put_map(PID, FAR, "/bin/one", 1, 1, 100);
    put_map(PID, FAR, "/bin/two", 1, 2, 200);
    read_lives();
    assert_walks(questions, 5, "1 2 4 3 0");
    assert_int_equal(answer_of(1), SPACE_NOTHING);
    assert_int_equal(answer_of(2), map_number(PID, 0));
    assert_int_equal(answer_of(4), map_number(PID, 1));
    assert_int_equal(answer_of(0), map_number(PID, 1));
}

static void test_samples_of_one_time_ask_in_their_order(void **state)
{
    const struct question questions[] = {
        {PID, 300, FAR}, {PID, 300, FAR}, {PID, 200, FAR}, {PID, 300, FAR}};
    (void)state;
    put_map(PID, FAR, "/bin/one", 1, 1, 100);
    read_lives();
    assert_walks(questions, 4, "2 0 1 3");
}

/* The kernel runs in exec, and the user's registers are those of the program before. */
static void test_a_program_keeps_the_maps_of_the_one_before_where_it_has_none(void **state)
{
    const struct question questions[] = {{PID, 250, FAR},
                                         {PID, 150, FAR},
                                         {PID, 350, FAR + PAGE_BYTES},
                                         {PID, 450, FAR},
                                         {PID, 250, FAR + PAGE_BYTES}};
    (void)state;
    put_map(PID, FAR, "/bin/one", 1, 1, 100);
    put_exec(PID, 200);
    put_map(PID, FAR + PAGE_BYTES, "/bin/two", 1, 2, 300);
    put_map(PID, FAR, "/bin/two", 1, 2, 400);
    read_lives();
    assert_walks(questions, 5, "1 0 4 2 3");
    assert_int_equal(answer_of(0), map_number(PID, 0));
    assert_int_equal(answer_of(1), map_number(PID, 0));
    assert_int_equal(answer_of(2), map_number(PID, 1));
    assert_int_equal(answer_of(3), map_number(PID, 2));
    assert_int_equal(answer_of(4), SPACE_NOTHING);
}

static void test_a_pid_that_is_used_again_has_nothing_of_its_last_process(void **state)
{
    const struct question questions[] = {{PID, 250, FAR}, {PID, 150, FAR}};
    (void)state;
    put_map(PID, FAR, "/bin/one", 1, 1, 100);
    put_fork(PID, OTHER, 200);
    read_lives();
    assert_walks(questions, 2, "1 0");
    assert_int_equal(answer_of(0), SPACE_NOTHING);
    assert_int_equal(answer_of(1), map_number(PID, 0));
}

static void test_so_it_is_where_its_fork_was_lost(void **state)
{
    const struct question questions[] = {{PID, 250, FAR}, {PID, 150, FAR}};
    (void)state;
    put_map(PID, FAR, "/bin/one", 1, 1, 100);
    put_exit(PID, PID, 180);
    put_map(PID, FAR + PAGE_BYTES, "/bin/two", 1, 2, 200);
    read_lives();
    assert_walks(questions, 2, "1 0");
    assert_int_equal(answer_of(0), SPACE_NOTHING);
    assert_int_equal(answer_of(1), map_number(PID, 0));
}

static void test_without_samples_nobody_asks(void **state)
{
    (void)state;
    put_map(PID, FAR, "/bin/one", 1, 1, 100);
    put_fork(CHILD, PID, 200);
    read_lives();
    assert_walks(NULL, 0, "");
}

/* ---- Families ---- */

static void test_a_child_asks_at_its_fork_and_its_parent_goes_on(void **state)
{
    const struct question questions[] = {{PID, 150, FAR}, {PID, 350, FAR}, {CHILD, 400, FAR}};
    (void)state;
    put_map(PID, FAR, "/bin/one", 1, 1, 100);
    put_fork(CHILD, PID, 200);
    put_map(PID, FAR, "/bin/two", 1, 2, 300);
    read_lives();
    assert_walks(questions, 3, "0 2 1");
    assert_int_equal(answer_of(0), map_number(PID, 0));
    assert_int_equal(answer_of(2), map_number(PID, 0)); /* not what its parent mapped later */
    assert_int_equal(answer_of(1), map_number(PID, 1));
}

static void test_a_child_has_what_its_parent_mapped_at_the_time_of_the_fork(void **state)
{
    const struct question questions[] = {{CHILD, 400, FAR}, {PID, 150, FAR}};
    (void)state;
    put_map(PID, FAR, "/bin/one", 1, 1, 100);
    put_map(PID, FAR, "/bin/two", 1, 2, 200);
    put_fork(CHILD, PID, 200);
    read_lives();
    assert_walks(questions, 2, "1 0");
    assert_int_equal(answer_of(1), map_number(PID, 0));
    assert_int_equal(answer_of(0), map_number(PID, 1));
}

static void test_a_child_that_was_forked_at_a_samples_time_asks_before_it(void **state)
{
    const struct question questions[] = {
        {PID, 199, FAR}, {PID, 200, FAR}, {PID, 201, FAR}, {CHILD, 300, FAR}};
    (void)state;
    put_map(PID, FAR, "/bin/one", 1, 1, 100);
    put_fork(CHILD, PID, 200);
    read_lives();
    assert_walks(questions, 4, "0 3 1 2");
}

/* The samples behind the parent's, in the block of all, are a stranger's early ones. */
static void test_a_child_that_was_forked_behind_its_parents_last_sample_asks(void **state)
{
    const struct question questions[] = {
        {PID, 150, FAR}, {CHILD, 300, FAR}, {OTHER, 110, FAR}, {OTHER, 120, FAR}};
    (void)state;
    put_map(PID, FAR, "/bin/one", 1, 1, 100);
    put_map(OTHER, FAR, "/bin/two", 1, 2, 115);
    put_fork(CHILD, PID, 200);
    read_lives();
    assert_walks(questions, 4, "0 1 2 3");
    assert_int_equal(answer_of(1), map_number(PID, 0));
}

static void test_children_ask_in_the_order_of_their_forks(void **state)
{
    const struct question questions[] = {{CHILD, 900, FAR},
                                         {CHILD + 1, 900, FAR},
                                         {CHILD + 2, 900, FAR},
                                         {PID, 250, FAR},
                                         {PID, 900, FAR}};
    (void)state;
    put_map(PID, FAR, "/bin/one", 1, 1, 100);
    put_fork(CHILD + 1, PID, 200);
    put_map(PID, FAR, "/bin/two", 1, 2, 210);
    put_fork(CHILD + 2, PID, 300);
    put_map(PID, FAR, "/bin/three", 1, 3, 310);
    put_fork(CHILD, PID, 400);
    read_lives();
    assert_walks(questions, 5, "1 3 2 0 4");
    assert_int_equal(answer_of(1), map_number(PID, 0));
    assert_int_equal(answer_of(2), map_number(PID, 1));
    assert_int_equal(answer_of(0), map_number(PID, 2));
}

static void test_a_parent_without_samples_is_played_for_its_grandchild(void **state)
{
    const struct question questions[] = {{CHILD + 1, 900, FAR}, {CHILD + 1, 900, ARENA}};
    (void)state;
    put_map(PID, FAR, "/bin/one", 1, 1, 100);
    put_fork(CHILD, PID, 200);
    put_map(PID, FAR, "/bin/late", 1, 2, 250);
    put_map(CHILD, ARENA, "/bin/two", 1, 3, 300);
    put_fork(CHILD + 1, CHILD, 400);
    put_map(CHILD, ARENA, "/bin/late", 1, 2, 450);
    read_lives();
    assert_walks(questions, 2, "0 1");
    assert_int_equal(answer_of(0), map_number(PID, 0));
    assert_int_equal(answer_of(1), map_number(CHILD, 0));
}

static void test_strangers_have_nothing_of_each_other(void **state)
{
    const struct question questions[] = {
        {OTHER, 300, FAR}, {PID, 300, FAR}, {OTHER, 400, FAR}, {PID, 150, FAR}};
    (void)state;
    put_map(PID, FAR, "/bin/one", 1, 1, 100);
    put_map(OTHER, FAR + PAGE_BYTES, "/bin/two", 1, 2, 110);
    read_lives();
    assert_walks(questions, 4, "3 1 0 2");
    assert_int_equal(answer_of(0), SPACE_NOTHING);
    assert_int_equal(answer_of(1), map_number(PID, 0));
}

/* Of two lives of one begin the child may come first, before its parent is played. */
static void test_a_child_as_old_as_its_parent_is_walked_alone(void **state)
{
    const struct question questions[] = {{CHILD, 300, FAR}, {PID, 300, FAR}};
    (void)state;
    put_fork(PID, 1, 100);
    put_map(PID, FAR, "/bin/one", 1, 1, 150);
    put_fork(CHILD, PID, 200);
    read_lives();
    processes.lives.items[life_at(CHILD, 300)].begin =
        processes.lives.items[life_at(PID, 300)].begin;
    assert_walks(questions, 2, "1 0");
    assert_int_equal(answer_of(0), SPACE_NOTHING);
    assert_int_equal(answer_of(1), map_number(PID, 0));
}

static void test_after_22_forks_a_sample_finds_the_eldest_ancestors_maps(void **state)
{
    enum { FORKS = 22 };
    struct question questions[FORKS + 1];
    (void)state;
    for (uint32_t i = 0; i <= FORKS; i++) {
        if (i > 0)
            put_fork(PID + i, PID + i - 1, 100 * i);
        put_map(PID + i, FAR + i * PAGE_BYTES, "/bin/own", 1, 1, 100 * i + 10);
    }
    for (uint32_t i = 0; i <= FORKS; i++)
        questions[i] = (struct question){PID + FORKS, 9000, FAR + i * PAGE_BYTES};
    read_lives();
    begin_source();
    assert_int_equal(walk(questions, FORKS + 1, SIZE_MAX), 0);
    for (uint32_t i = 0; i <= FORKS; i++)
        assert_int_equal(answer_of(i), map_number(PID + i, 0));
}

/* ---- Without memory ---- */

static void test_where_a_sample_fails_nobody_asks_after_it(void **state)
{
    const struct question questions[] = {
        {PID, 150, FAR}, {CHILD, 300, FAR}, {CHILD, 400, FAR}, {PID, 500, FAR}, {OTHER, 600, FAR}};
    (void)state;
    put_map(PID, FAR, "/bin/one", 1, 1, 100);
    put_map(OTHER, FAR, "/bin/one", 1, 1, 150);
    put_fork(CHILD, PID, 200);
    read_lives();
    begin_source();
    for (size_t i = 1; i <= 5; i++) {
        assert_int_equal(walk(questions, 5, i), -1);
        assert_int_equal(answers.count, i);
    }
    assert_int_equal(walk(questions, 5, 6), 0);
    assert_int_equal(answers.count, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SPACE_TEST(test_samples_of_a_life_ask_by_time),
        SPACE_TEST(test_samples_of_one_time_ask_in_their_order),
        SPACE_TEST(test_a_program_keeps_the_maps_of_the_one_before_where_it_has_none),
        SPACE_TEST(test_a_pid_that_is_used_again_has_nothing_of_its_last_process),
        SPACE_TEST(test_so_it_is_where_its_fork_was_lost),
        SPACE_TEST(test_without_samples_nobody_asks),
        SPACE_TEST(test_a_child_asks_at_its_fork_and_its_parent_goes_on),
        SPACE_TEST(test_a_child_has_what_its_parent_mapped_at_the_time_of_the_fork),
        SPACE_TEST(test_a_child_that_was_forked_at_a_samples_time_asks_before_it),
        SPACE_TEST(test_a_child_that_was_forked_behind_its_parents_last_sample_asks),
        SPACE_TEST(test_children_ask_in_the_order_of_their_forks),
        SPACE_TEST(test_a_parent_without_samples_is_played_for_its_grandchild),
        SPACE_TEST(test_strangers_have_nothing_of_each_other),
        SPACE_TEST(test_a_child_as_old_as_its_parent_is_walked_alone),
        SPACE_TEST(test_after_22_forks_a_sample_finds_the_eldest_ancestors_maps),
        SPACE_TEST(test_where_a_sample_fails_nobody_asks_after_it),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
