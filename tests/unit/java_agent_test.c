/* The parts of Java's agent that know no JVM: names, options, the table of code, frames, redefined
 * classes. */
#include "agents/java/agent_options.h"
#include "agents/java/code_rows.h"
#include "agents/java/code_table.h"
#include "agents/java/frame_tables.h"
#include "agents/java/interpreter_layout.h"
#include "agents/java/method_text.h"
#include "agents/java/old_methods.h"
#include "agents/java/watched_methods.h"

#include "tests/unit/cfi_rows.h"

#include <sys/mman.h>

/* ---- Names ---- */

static void assert_name(const char *class, const char *method, const char *signature,
                        const char *expected)
{
    char *text = method_text(class, method, signature, false);
    if (expected)
        assert_string_equal(text, expected);
    else
        assert_null(text);
    free(text);
}

static void test_names_are_those_of_the_perf_map(void **state)
{
    (void)state;
    assert_name("Ljava/util/HashMap;", "hash", "(Ljava/lang/Object;)I",
                "int java.util.HashMap.hash(java.lang.Object)");
    assert_name("LA;", "main", "([Ljava/lang/String;)V", "void A.main(java.lang.String[])");
    assert_name("LA;", "<init>", "()V", "void A.<init>()");
    assert_name("La/B$C;", "f", "(BCDFIJSZ[[J)[La/B;",
                "a.B[] a.B$C.f(byte, char, double, float, int, long, short, boolean, long[][])");
}

static void test_a_hidden_class_has_no_address(void **state)
{
    (void)state;
    assert_name("LA$$Lambda$14.0x0000000800c03000;", "run", "()V", "void A$$Lambda$14.run()");
    assert_name("LA$$Lambda/0x00007f3c01003200;", "run", "()V", "void A$$Lambda.run()");
    assert_name("Lb/LambdaForm$MH.0x00007f3c0100;", "invoke", "(I)V",
                "void b.LambdaForm$MH.invoke(int)");
    assert_name("LA0x1f;", "run", "()V", "void A0x1f.run()"); /* a name like any other */
    assert_name("La/xbad;", "run", "()V", "void a.xbad.run()");
}

static void test_what_is_no_signature_has_no_name(void **state)
{
    (void)state;
    assert_name("LA;", "f", "", NULL);
    assert_name("LA;", "f", "(", NULL);
    assert_name("LA;", "f", "()", NULL);
    assert_name("LA;", "f", "(Q)V", NULL);
    assert_name("LA;", "f", "(Ljava/lang/Object)V", NULL);
    assert_name("LA;", "f", "([)V", NULL);
}

static void test_short_names_and_paths(void **state)
{
    (void)state;
    char *name = method_text("Ljava/util/HashMap$Node;", "hash", "(Ljava/lang/Object;)I", true);
    char *path = source_path("Ljava/util/HashMap$Node;", "HashMap.java");
    char *own = source_path("LA;", "A.java");
    assert_string_equal(name, "HashMap$Node.hash");
    assert_string_equal(path, "java/util/HashMap.java");
    assert_string_equal(own, "A.java");
    free(name);
    free(path);
    free(own);
}

/* ---- Options ---- */

static void test_options(void **state)
{
    (void)state;
    struct agent_options options;
    assert_null(agent_options_read(&options, NULL));
    assert_false(options.attach || options.short_names || options.no_lines || options.no_frames ||
                 options.no_interpreted);
    assert_null(
        agent_options_read(&options, "attach,,dir=/tmp/a b,short,nolines,noframes,nointerpreted"));
    assert_true(options.no_interpreted && options.attach && options.short_names &&
                options.no_lines && options.no_frames);
    assert_string_equal(options.dir, "/tmp/a b");
    agent_options_free(&options);
    assert_string_equal(agent_options_read(&options, "short,shorter,attach"), "shorter,attach");
    assert_true(options.short_names);
    assert_string_equal(agent_options_read(&options, "dir="), "dir=");
}

/* ---- The table of code ---- */

static struct known_code code_at(uint64_t key, uint64_t code_index)
{
    return (struct known_code){.key = key, .addr = key + 1, .bytes = 2, .code_index = code_index};
}

static void test_code_is_taken_out_once(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    struct code_table table = {0};
    struct known_code code;
    assert_false(code_table_take(&table, 64, &code));
    for (uint64_t i = 1; i <= COUNT; i++)
        assert_true(code_table_put(&table, &(struct known_code){.key = 64 * i, .code_index = i}));
    for (uint64_t i = 1; i <= COUNT; i += 2) {
        assert_true(code_table_take(&table, 64 * i, &code));
        assert_int_equal(code.code_index, i);
        assert_false(code_table_take(&table, 64 * i, &code));
    }
    for (uint64_t i = 2; i <= COUNT; i += 2) {
        assert_true(code_table_take(&table, 64 * i, &code));
        assert_int_equal(code.code_index, i);
    }
    assert_int_equal(table.count, 0);
    code_table_free(&table);
}

static void test_code_is_known_by_its_compilation(void **state)
{
    (void)state;
    struct code_table table = {0};
    struct known_code code = code_at(64, 7), untold = code_at(128, 8);
    code.compile_id = 70;
    assert_false(code_table_has(&table, 64, 70));
    assert_true(code_table_put(&table, &code) && code_table_put(&table, &untold));
    assert_true(code_table_has(&table, 64, 70));
    assert_false(code_table_has(&table, 64, 71)); /* another method has its place now */
    assert_false(code_table_has(&table, 72, 70));
    assert_false(code_table_has(&table, 128, 0)); /* nobody knows */
    assert_true(code_table_take(&table, 64, &code));
    assert_false(code_table_has(&table, 64, 70));
    code_table_free(&table);
}

static void test_of_two_at_one_address_the_later_stays(void **state)
{
    (void)state;
    struct code_table table = {0};
    struct known_code code, first = code_at(64, 7), late = code_at(64, 5), next = code_at(64, 9);
    assert_true(code_table_put(&table, &first) && code_table_put(&table, &late));
    assert_true(code_table_take(&table, 64, &code));
    assert_int_equal(code.code_index, 7);
    assert_true(code_table_put(&table, &first) && code_table_put(&table, &next));
    assert_int_equal(table.count, 1);
    assert_true(code_table_take(&table, 64, &code));
    assert_int_equal(code.code_index, 9);
    code_table_free(&table);
}

/* ---- Frames ---- */

/* As C1 of JDK 17 made it of a getter: another class's entry, stack bang, frame, poll, stub. */
static const uint8_t getter[] = {
    0x44, 0x8b, 0x56, 0x08, 0x4c, 0x3b, 0xd0, 0x0f, 0x85, 0x46, 0x14, 0xac, 0xff,       /* entry */
    0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55, 0x48, 0x83, 0xec, 0x30,             /* 13 */
    0x8b, 0x46, 0x0c, 0x48, 0x83, 0xc4, 0x30, 0x5d,                                     /* 25 */
    0x49, 0x3b, 0xa7, 0x40, 0x03, 0x00, 0x00, 0x0f, 0x87, 0x01, 0x00, 0x00, 0x00, 0xc3, /* 33 */
    0x49, 0xba, 0x54, 0x7d, 0xec, 0x40, 0x3c, 0x7f, 0x00, 0x00,                         /* 47 */
    0x4d, 0x89, 0x97, 0x58, 0x03, 0x00, 0x00, 0xe9, 0x88, 0x8b, 0xac, 0xff,             /* 57 */
    0x48, 0x83, 0xc4, 0x30, 0x5d, 0xe9, 0x5f, 0x97, 0xad, 0xff, 0xf4, 0xf4};            /* 69 */

/* As C2 made it of an empty constructor: no bang, and rbp is stored. */
static const uint8_t empty[] = {
    0x48, 0x81, 0xec, 0x18, 0x00, 0x00, 0x00, 0x48, 0x89, 0x6c, 0x24, 0x10, /* sub, mov */
    0x48, 0x83, 0xc4, 0x10, 0x5d,                                           /* 12: add, pop */
    0x49, 0x3b, 0xa7, 0x40, 0x03, 0x00, 0x00, 0x0f, 0x87, 0x01, 0x00, 0x00, 0x00, 0xc3,
    0x4d, 0x89, 0x97, 0x58, 0x03, 0x00, 0x00, 0xe9, 0x2b, 0x7b, 0xac, 0xff}; /* 31: the stub */

/* A body that pushes two arguments for a stub, as C1 does. */
static const uint8_t pushing[] = {0x55, 0x48, 0x83, 0xec, 0x10, 0x53, 0x50, 0xe8, 0x00, 0x01,
                                  0x00, 0x00, 0x58, 0x5b, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3};

/* A getter that may be entered no more, and that C1 has not patched: jumps stand over longer
 * instructions, and what is behind them is none. */
static const uint8_t patched[] = {0xe9, 0xbb, 0x95, 0x46, 0x07, 0xfe, 0xff, 0x55, 0x48, 0x83,
                                  0xec, 0x30, 0xe9, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00,
                                  0x00, 0x00, 0x48, 0x83, 0xc4, 0x30, 0x5d, 0xc3};

/* A wrapper of a native method. */
static const uint8_t wrapper[] = {0x55, 0x48, 0x8b, 0xec, 0x48, 0x83, 0xec, 0x40, 0x56,
                                  0xe8, 0x00, 0x01, 0x00, 0x00, 0x5e, 0xc9, 0xc3, 0xf4};

/* A method that locks: its epilogue asks for the stack's reserve, and calls with rsp aligned. */
static const uint8_t locking[] = {
    0x55, 0x48, 0x83, 0xec, 0x30, 0x8b, 0x46, 0x0c, 0x48, 0x83, 0xc4, 0x30, 0x5d,
    0x49, 0x3b, 0xa7, 0xb8, 0x03, 0x00, 0x00, 0x72, 0x25, 0x49, 0x8b, 0xff, /* 13: cmp, jb 59 */
    0xf7, 0xc4, 0x0f, 0x00, 0x00, 0x00, 0x74, 0x0f, 0x48, 0x83, 0xec, 0x08, /* 25: test, je 48 */
    0xe8, 0x00, 0x01, 0x00, 0x00, 0x48, 0x83, 0xc4, 0x08, 0xeb, 0x05,       /* 37: call, jmp 53 */
    0xe8, 0xf5, 0x00, 0x00, 0x00, 0xe9, 0x00, 0x02, 0x00, 0x00, 0xf4, 0xc3};

/* What is left of a patched instruction is none; behind it C1 pushes for a stub. */
static const uint8_t no_instruction[] = {
    0x55, 0x48, 0x83, 0xec, 0x30, 0x85, 0xc0, 0x74, 0x0a, 0xe9, 0x00, 0x01, 0x00, 0x00, 0x06, 0x06,
    0x06, 0x06, 0x06, 0x53, 0xe8, 0x00, 0x01, 0x00, 0x00, 0x5b, 0x48, 0x83, 0xc4, 0x30, 0x5d, 0xc3};

/* Two words are pushed, a jump goes to 17, and each way pops them. */
static const uint8_t pushed_jump[] = {0x55, 0x48, 0x83, 0xec, 0x30, 0x53, 0x50, 0x85, 0xc0,
                                      0x74, 0x06, 0x58, 0x5b, 0xeb, 0x04, 0x90, 0x90, 0x58,
                                      0x5b, 0x48, 0x83, 0xc4, 0x30, 0x5d, 0xc3};

/* As ZGC's C1: r15 is used for something else meanwhile. */
static const uint8_t borrowed[] = {0x55, 0x48, 0x83, 0xec, 0x10, 0x41, 0x57, 0x49, 0x83, 0xef,
                                   0x10, 0x41, 0x5f, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3};

/* C1 will patch ten bytes, and jumps there meanwhile; the zeros are what is left of them. */
static const uint8_t to_patch[] = {0x55, 0x48, 0x83, 0xec, 0x10, 0x85, 0xc0, 0x74, 0x0a, 0xe9, 0x00,
                                   0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x48, 0x8b, 0x51,
                                   0x10, 0x8b, 0xc6, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3};

static void assert_frame(const struct compiled_frame *frame, const char *expected)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_unwind unwind;
    struct frame_edges edges = {0};
    bool good = frame_tables_make(cfi, frame, &edges, &unwind);
    free(edges.items);
    if (expected) {
        assert_true(good);
        struct rows_table table = rows_of(&unwind, frame->size, JITDUMP_X86_64);
        char *text = rows_text(&table, 0, frame->size);
        assert_string_equal(text, expected);
        free(text);
        assert_int_equal(jitdump_cfi_check(cfi, frame->code, frame->size), 0);
    } else {
        assert_false(good);
    }
    jitdump_cfi_free(cfi);
}

static void test_a_frame_with_a_stack_bang_and_a_poll(void **state)
{
    (void)state;
    struct compiled_frame frame = {getter, sizeof getter, 64, false, {13}, 1};
    assert_frame(&frame, "0 rsp+8 ra=c-8\n"
                         "21 rsp+16 rbp=c-16 ra=c-8\n"
                         "25 rsp+64 rbp=c-16 ra=c-8\n"
                         "32 rsp+16 rbp=c-16 ra=c-8\n"
                         "33 rsp+8 rbp=s ra=c-8\n"
                         "69 rsp+64 rbp=c-16 ra=c-8\n"
                         "73 rsp+16 rbp=c-16 ra=c-8\n"
                         "74 rsp+8 rbp=s ra=c-8\n"
                         "79 rsp+64 rbp=c-16 ra=c-8\n");
}

static void test_a_small_frame_stores_rbp(void **state)
{
    (void)state;
    struct compiled_frame frame = {empty, sizeof empty, 32, false, {0}, 1};
    assert_frame(&frame, "0 rsp+8 ra=c-8\n"
                         "7 rsp+32 ra=c-8\n"
                         "12 rsp+32 rbp=c-16 ra=c-8\n"
                         "16 rsp+16 rbp=c-16 ra=c-8\n"
                         "17 rsp+8 rbp=s ra=c-8\n");
}

static void test_pushes_in_a_body(void **state)
{
    (void)state;
    struct compiled_frame frame = {pushing, sizeof pushing, 32, false, {0}, 1};
    assert_frame(&frame, "0 rsp+8 ra=c-8\n"
                         "1 rsp+16 rbp=c-16 ra=c-8\n"
                         "5 rsp+32 rbp=c-16 ra=c-8\n"
                         "6 rsp+40 rbp=c-16 ra=c-8\n"
                         "7 rsp+48 rbp=c-16 ra=c-8\n"
                         "13 rsp+40 rbp=c-16 ra=c-8\n"
                         "14 rsp+32 rbp=c-16 ra=c-8\n"
                         "18 rsp+16 rbp=c-16 ra=c-8\n"
                         "19 rsp+8 rbp=s ra=c-8\n");
}

static void test_jumps_over_longer_instructions(void **state)
{
    (void)state;
    struct compiled_frame frame = {patched, sizeof patched, 64, false, {0}, 1};
    assert_frame(&frame, "0 rsp+8 ra=c-8\n"
                         "8 rsp+16 rbp=c-16 ra=c-8\n"
                         "12 rsp+64 rbp=c-16 ra=c-8\n"
                         "26 rsp+16 rbp=c-16 ra=c-8\n"
                         "27 rsp+8 rbp=s ra=c-8\n");
}

static void test_an_epilogue_that_asks_for_the_stacks_reserve(void **state)
{
    (void)state;
    struct compiled_frame frame = {locking, sizeof locking, 64, false, {0}, 1};
    assert_frame(&frame, "0 rsp+8 ra=c-8\n"
                         "1 rsp+16 rbp=c-16 ra=c-8\n"
                         "5 rsp+64 rbp=c-16 ra=c-8\n"
                         "12 rsp+16 rbp=c-16 ra=c-8\n"
                         "13 rsp+8 rbp=s ra=c-8\n"
                         "37 rsp+16 rbp=s ra=c-8\n"
                         "46 rsp+8 rbp=s ra=c-8\n");
}

static void test_bytes_that_are_no_instruction_are_skipped(void **state)
{
    (void)state;
    struct compiled_frame frame = {no_instruction, sizeof no_instruction, 64, false, {0}, 1};
    assert_frame(&frame, "0 rsp+8 ra=c-8\n"
                         "1 rsp+16 rbp=c-16 ra=c-8\n"
                         "5 rsp+64 rbp=c-16 ra=c-8\n"
                         "20 rsp+72 rbp=c-16 ra=c-8\n"
                         "26 rsp+64 rbp=c-16 ra=c-8\n"
                         "30 rsp+16 rbp=c-16 ra=c-8\n"
                         "31 rsp+8 rbp=s ra=c-8\n");
}

static void test_a_jump_takes_what_was_pushed_along(void **state)
{
    (void)state;
    struct compiled_frame frame = {pushed_jump, sizeof pushed_jump, 64, false, {0}, 1};
    assert_frame(&frame, "0 rsp+8 ra=c-8\n"
                         "1 rsp+16 rbp=c-16 ra=c-8\n"
                         "5 rsp+64 rbp=c-16 ra=c-8\n"
                         "6 rsp+72 rbp=c-16 ra=c-8\n"
                         "7 rsp+80 rbp=c-16 ra=c-8\n"
                         "12 rsp+72 rbp=c-16 ra=c-8\n"
                         "13 rsp+64 rbp=c-16 ra=c-8\n"
                         "17 rsp+80 rbp=c-16 ra=c-8\n"
                         "18 rsp+72 rbp=c-16 ra=c-8\n"
                         "19 rsp+64 rbp=c-16 ra=c-8\n"
                         "23 rsp+16 rbp=c-16 ra=c-8\n"
                         "24 rsp+8 rbp=s ra=c-8\n");
}

static void test_registers_that_native_code_keeps_are_used(void **state)
{
    (void)state;
    struct compiled_frame frame = {borrowed, sizeof borrowed, 32, false, {0}, 1};
    assert_frame(&frame, "0 rsp+8 ra=c-8\n"
                         "1 rsp+16 rbp=c-16 ra=c-8\n"
                         "5 rsp+32 rbp=c-16 ra=c-8\n"
                         "7 rsp+40 rbp=c-16 ra=c-8\n"
                         "13 rsp+32 rbp=c-16 ra=c-8\n"
                         "17 rsp+16 rbp=c-16 ra=c-8\n"
                         "18 rsp+8 rbp=s ra=c-8\n");
}

static void test_what_is_left_of_a_number_is_no_instruction(void **state)
{
    (void)state;
    struct compiled_frame frame = {to_patch, sizeof to_patch, 32, false, {0}, 1};
    assert_frame(&frame, "0 rsp+8 ra=c-8\n"
                         "1 rsp+16 rbp=c-16 ra=c-8\n"
                         "5 rsp+32 rbp=c-16 ra=c-8\n"
                         "29 rsp+16 rbp=c-16 ra=c-8\n"
                         "30 rsp+8 rbp=s ra=c-8\n");
}

static void test_a_wrapper_is_unwound_by_rbp(void **state)
{
    (void)state;
    struct compiled_frame frame = {wrapper, sizeof wrapper, 80, true, {0}, 1};
    assert_frame(&frame, "0 rsp+8 ra=c-8\n"
                         "1 rsp+16 rbp=c-16 ra=c-8\n"
                         "4 rbp+16 rbp=c-16 ra=c-8\n"
                         "16 rsp+8 rbp=s ra=c-8\n"
                         "17 rbp+16 rbp=c-16 ra=c-8\n");
}

static void test_a_prologue_of_another_frame_has_no_tables(void **state)
{
    (void)state;
    struct compiled_frame frame = {getter, sizeof getter, 72, false, {13}, 1};
    assert_frame(&frame, NULL); /* of another size */
    frame = (struct compiled_frame){getter, sizeof getter, 64, false, {25}, 1};
    assert_frame(&frame, NULL); /* not where one begins */
    frame = (struct compiled_frame){getter, 16, 64, false, {13}, 1};
    assert_frame(&frame, NULL); /* cut short */
    frame = (struct compiled_frame){getter, sizeof getter, 64, false, {0}, 0};
    assert_frame(&frame, NULL); /* it has no entry */
}

/* "0-25 ": from offset 0 up to 25. */
static void assert_edges(const struct compiled_frame *frame, const char *expected)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_unwind unwind;
    struct frame_edges edges = {0};
    char text[200] = "";
    assert_true(frame_tables_make(cfi, frame, &edges, &unwind));
    for (size_t i = 0; i < edges.count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d-%d ",
                 (int)edges.items[i].from, (int)edges.items[i].to);
    assert_string_equal(text, expected);
    free(edges.items);
    jitdump_cfi_free(cfi);
}

/* As C2 of JDK 21: between the prologue and the body it asks whether a collector changed the code.
 */
static const uint8_t guarded[] = {
    0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55, 0x48, 0x83, 0xec, 0x10, /* prologue */
    0x41, 0x81, 0x7f, 0x20, 0x01, 0x00, 0x00, 0x00, 0x0f, 0x85, 0x1a, 0x00, 0x00, 0x00, /* 12 */
    0x8b, 0xc6, 0x48, 0x83, 0xc4, 0x10, 0x5d,                                           /* 26 */
    0x49, 0x3b, 0xa7, 0x40, 0x03, 0x00, 0x00, 0x0f, 0x87, 0x01, 0x00, 0x00, 0x00, 0xc3, /* 33 */
    0xe9, 0x00, 0x01, 0x00, 0x00, 0xf4}; /* 47: the stubs */

/* The same by C1, which calls when it was changed. */
static const uint8_t guarded_by_c1[] = {
    0x55, 0x48, 0x8b, 0xec, 0x48, 0x83, 0xec, 0x10,             /* prologue */
    0x41, 0x81, 0x7f, 0x68, 0x10, 0x15, 0x00, 0x00, 0x74, 0x05, /* 8: cmp, je 23 */
    0xe8, 0x00, 0x01, 0x00, 0x00,                               /* 18: call */
    0x8b, 0xc6, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3};            /* 23 */

/* A small frame of C2 with -XX:+PreserveFramePointer: rbp is set behind it; a nop aligns the test.
 * The method used vectors. */
static const uint8_t small_guarded[] = {
    0x48, 0x81, 0xec, 0x18, 0x00, 0x00, 0x00, 0x48, 0x89, 0x6c, 0x24, 0x10, /* sub, mov */
    0x48, 0x8b, 0xec, 0x48, 0x83, 0xc5, 0x10, 0x90,                         /* 12: mov, add, nop */
    0x41, 0x81, 0x7f, 0x68, 0x10, 0x15, 0x00, 0x00, 0x0f, 0x85, 0x0b, 0x00, 0x00, 0x00, /* 20 */
    0x8b, 0xc6, 0xc5, 0xf8, 0x77, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3, 0xf4};            /* 34 */

static void test_where_frames_are_made_and_left(void **state)
{
    (void)state;
    struct compiled_frame frame = {getter, sizeof getter, 64, false, {13}, 1};
    assert_edges(&frame, "0-25 28-79 ");
    frame = (struct compiled_frame){empty, sizeof empty, 32, false, {0}, 1};
    assert_edges(&frame, "0-43 ");
    frame = (struct compiled_frame){guarded, sizeof guarded, 32, false, {0}, 1};
    assert_edges(&frame, "0-26 28-52 ");
    frame = (struct compiled_frame){guarded_by_c1, sizeof guarded_by_c1, 32, false, {0}, 1};
    assert_edges(&frame, "0-23 25-31 ");
    frame = (struct compiled_frame){small_guarded, sizeof small_guarded, 32, false, {0}, 1};
    assert_edges(&frame, "0-34 36-45 ");
    frame = (struct compiled_frame){locking, sizeof locking, 64, false, {0}, 1};
    assert_edges(&frame, "0-5 8-60 ");
}

/* "0 12 -": at offset 0 line 12, which is not inlined. */
static void assert_rows(const struct code_rows *rows, uint64_t begin, const char *expected)
{
    char text[400] = "";
    for (size_t i = 0; i < rows->count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 rows->inlines[i] == JITDUMP_NOT_INLINED ? "%d %d -\n" : "%d %d %d\n",
                 (int)(rows->lines[i].addr - begin), (int)rows->lines[i].line,
                 (int)rows->inlines[i]);
    assert_string_equal(text, expected);
}

static void test_edges_of_frames_are_the_methods_own(void **state)
{
    (void)state;
    enum { BEGIN = 1000, END = 1100 };
    /* At line 12 of the method "outer" is called, which calls "inner" at its line 22. */
    const struct jitdump_inline calls[] = {
        {.name = "outer", .parent = JITDUMP_NOT_INLINED, .call_file = "M", .call_line = 12},
        {.name = "inner", .parent = 0, .call_file = "O", .call_line = 22}};
    const struct {
        uint64_t at;
        uint32_t line, call;
    } given[] = {{0, 10, JITDUMP_NOT_INLINED},  {1, 31, 1},  {30, 22, 0},
                 {40, 13, JITDUMP_NOT_INLINED}, {50, 32, 1}, {90, 0, JITDUMP_NOT_INLINED}};
    struct frame_edge items[] = {{0, 8}, {41, 47}, {60, 70}, {96, 100}};
    const struct frame_edges edges = {.items = items, .count = 4};
    struct code_rows rows = {0};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        assert_true(code_rows_add(
            &rows, &(struct jitdump_line){.addr = BEGIN + given[i].at, .line = given[i].line},
            given[i].call));
    assert_true(code_rows_set_own(&rows, calls, &edges, BEGIN, END));
    assert_rows(&rows, BEGIN,
                "0 10 -\n"
                "8 31 1\n"
                "30 22 0\n"
                "40 13 -\n"
                "41 13 -\n"
                "47 13 -\n"
                "50 32 1\n"
                "60 12 -\n"
                "70 32 1\n"
                "90 0 -\n"
                "96 0 -\n");
    assert_string_equal(rows.lines[7].file, "M");
    assert_null(rows.lines[8].file);
    code_rows_free(&rows);
}

static void test_the_interpreter_knows_its_callers_stack_pointer(void **state)
{
    (void)state;
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_unwind unwind;
    assert_true(frame_tables_of_rbp(cfi, 32, -1, &unwind));
    struct rows_table table = rows_of(&unwind, 32, JITDUMP_X86_64);
    char row[ROW_TEXT_BYTES];
    row_at(&table, 7, row);
    assert_string_equal(row, "rbp+16 rbp=c-16 rsp=c-24 ra=c-8");
    jitdump_cfi_free(cfi);
}

/* ---- Redefined classes ---- */

static void test_methods_that_are_others_now(void **state)
{
    (void)state;
    enum { COUNT = 3000, PART = 1000 };
    static uint64_t places[COUNT];
    const uint64_t *changed[PART];
    struct watched_methods watched = {.lock = PTHREAD_MUTEX_INITIALIZER};
    assert_int_equal(watched_methods_look(&watched, PART, changed), 0);
    for (size_t i = 0; i < COUNT; i++) {
        places[i] = 8 + i;
        watched_methods_add(&watched, &places[i]);
    }
    places[5] = 1;
    places[COUNT - 1] = 2;
    assert_int_equal(watched_methods_look(&watched, PART, changed), 1);
    assert_ptr_equal(changed[0], &places[5]);
    assert_int_equal(watched_methods_look(&watched, PART, changed), 0);
    assert_int_equal(watched_methods_look(&watched, PART, changed), 1);
    assert_ptr_equal(changed[0], &places[COUNT - 1]);
    for (size_t i = 0; i < COUNT / PART; i++) /* each is told once */
        assert_int_equal(watched_methods_look(&watched, PART, changed), 0);
    for (size_t i = 0; i < COUNT; i++) /* all but two are unloaded */
        places[i] = i == 7 || i == 1500 ? places[i] : 0;
    for (size_t i = 0; i < COUNT / PART; i++)
        assert_int_equal(watched_methods_look(&watched, PART, changed), 0);
    assert_int_equal(watched.count, 2);
    places[1500] = 3;
    assert_int_equal(watched_methods_look(&watched, PART, changed), 1);
    assert_ptr_equal(changed[0], &places[1500]);
    watched_methods_free(&watched);
}

/* ---- The interpreter's frames ---- */

enum { STACK = 0x7000, WORDS = 60, CODE = 0x40000, CODE_BYTES = 0x100 };

static const struct measured_frame INNER = {0x1230, 0x2003}, OUTER = {0x1290, 0x3001};

/* Two frames, M and B words below their rbp, with some other words. */
static void put_two_frames(uint64_t words[WORDS], size_t m, size_t b)
{
    for (size_t i = 0; i < WORDS; i++)
        words[i] = 0x99;
    words[3] = INNER.method; /* of something else */
    words[20] = STACK + 8 * 45;
    words[21] = CODE + 0x20;
    words[20 - m] = INNER.method;
    words[20 - b] = INNER.position;
    words[45 - m] = OUTER.method;
    words[45 - b] = OUTER.position;
}

static bool find_layout(const uint64_t words[WORDS], struct interpreter_layout *layout)
{
    const struct stack_words stack = {words, WORDS, STACK};
    return interpreter_layout_find(layout, &stack, &INNER, &OUTER, CODE, CODE_BYTES);
}

static void test_the_layout_of_frames_is_measured(void **state)
{
    (void)state;
    uint64_t words[WORDS];
    struct interpreter_layout layout;
    put_two_frames(words, 3, 8);
    assert_true(find_layout(words, &layout));
    assert_int_equal(layout.method_offset, -24);
    assert_int_equal(layout.position_offset, -64);
    put_two_frames(words, 5, 2);
    assert_true(find_layout(words, &layout));
    assert_int_equal(layout.method_offset, -40);
    assert_int_equal(layout.position_offset, -16);
    words[45 - 2] = 0; /* a place that only one frame has there */
    assert_true(find_layout(words, &layout));
    assert_int_equal(layout.position_offset, 0);
}

static void test_a_layout_that_is_not_clear_is_none(void **state)
{
    (void)state;
    uint64_t words[WORDS];
    struct interpreter_layout layout;
    put_two_frames(words, 3, 8);
    words[21] = CODE + CODE_BYTES; /* the interpreter has not called it */
    assert_false(find_layout(words, &layout));
    put_two_frames(words, 3, 8);
    words[45 - 3] = INNER.method;
    assert_false(find_layout(words, &layout));
    put_two_frames(words, 3, 8);
    words[20] = STACK + 8 * 45 + 4;
    assert_false(find_layout(words, &layout));
    put_two_frames(words, 3, 8);
    words[20] = UINT64_MAX;
    assert_false(find_layout(words, &layout));
    put_two_frames(words, 3, 8);
    words[15] = INNER.method; /* it stands there twice, and so does its caller's */
    words[40] = OUTER.method;
    assert_false(find_layout(words, &layout));
}

/* ---- Old methods ---- */

enum { STACK_WORDS = 512 * 40, PAGE_WORDS = 512, ENTRIES = 4, EQUAL_BYTES = 9, CONST_BYTES = 64 };

/* What HotSpot has, with fields as made_structs says. */
struct made_const {
    uint64_t pool, name_index, signature_index, code_bytes, id_number;
};

static struct made_vm {
    uint64_t list, thread, threads[2]; /* count, data */
    uint64_t stack[2];                 /* base, bytes */
    struct made_const consts[3];
    uint64_t methods[3]; /* each a Method: where its const is */
    uint64_t pools[2][1 + ENTRIES];
    uint64_t class[2];         /* methods, their IDs */
    uint64_t array[2], ids[3]; /* count, items */
    uint64_t place;
} vm;

static _Alignas(4096) uint64_t stack[STACK_WORDS];

static uint64_t address(const void *at)
{
    return (uint64_t)(uintptr_t)at;
}

static struct vm_structs made_structs(void)
{
#define FIELD(number)                                                                              \
    (struct vm_field)                                                                              \
    {                                                                                              \
        8 * (number), 8, false                                                                     \
    }
    return (struct vm_structs){.const_method = FIELD(0),
                               .constants = FIELD(0),
                               .name_index = FIELD(1),
                               .signature_index = FIELD(2),
                               .code_bytes = FIELD(3),
                               .id_number = FIELD(4),
                               .holder = FIELD(0),
                               .constants_bytes = 8,
                               .const_method_bytes = CONST_BYTES,
                               .methods = FIELD(0),
                               .method_ids = FIELD(1),
                               .items_length = FIELD(0),
                               .methods_data = FIELD(1),
                               .threads = {address(&vm.list), 8, false},
                               .threads_length = FIELD(0),
                               .threads_data = FIELD(1),
                               .stack_base = FIELD(0),
                               .stack_bytes = FIELD(1)};
}

/* A class whose one method is methods[0].  methods[1] has its name, and methods[2] another one. */
static int make_vm(void **state)
{
    (void)state;
    memset(stack, 0, sizeof stack);
    vm = (struct made_vm){
        .list = address(vm.threads),
        .thread = address(vm.stack),
        .threads = {1, address(&vm.thread)},
        .stack = {address(stack + STACK_WORDS), sizeof stack},
        .pools = {{address(vm.class), 100, 200}, {address(vm.class), 300, 100, 200}},
        .consts = {{address(vm.pools[0]), 0, 1, EQUAL_BYTES, 1},
                   {address(vm.pools[1]), 1, 2, EQUAL_BYTES, 1},
                   {address(vm.pools[1]), 0, 2, EQUAL_BYTES, 1}},
        .class = {address(vm.array), address(vm.ids)},
        .array = {1, address(&vm.methods[0])},
        .ids = {2, 0, address(&vm.place)},
        .place = address(&vm.methods[0])};
    for (size_t i = 0; i < 3; i++) {
        vm.methods[i] = address(&vm.consts[i]);
        stack[STACK_WORDS - 10 - i] = address(&vm.methods[i]);
    }
    return 0;
}

static bool goes_on(void)
{
    return true;
}

static bool has_ended(void)
{
    return false;
}

/* One with CODE_BYTES where the new one has EQUAL_BYTES; 0: there is none. */
static void assert_old(uint64_t code_bytes)
{
    const struct vm_structs structs = made_structs();
    struct old_methods old = {0};
    old_methods_find(&structs, &old, goes_on);
    assert_int_equal(old.count, code_bytes != 0);
    if (code_bytes) {
        assert_int_equal(old.items[0].method, address(&vm.methods[1]));
        assert_int_equal(old.items[0].codes.addr, address(&vm.consts[1]) + CONST_BYTES);
        assert_int_equal(old.items[0].codes.bytes, code_bytes);
        assert_ptr_equal(old.items[0].place, &vm.place);
        assert_int_equal(old.items[0].same_code,
                         code_bytes == EQUAL_BYTES &&
                             vm.consts[1].id_number == vm.consts[0].id_number);
        assert_false(old.again);
    }
    old_methods_free(&old);
}

static void test_a_method_on_a_stack_that_its_class_has_no_more(void **state)
{
    (void)state;
    assert_old(EQUAL_BYTES);
    stack[STACK_WORDS - 30] = address(&vm.methods[1]); /* once more */
    assert_old(EQUAL_BYTES);
    vm.consts[1].id_number = 3; /* that of a method that was changed, and is as long */
    assert_old(EQUAL_BYTES);
    vm.consts[1].id_number = 1;
    vm.consts[1].code_bytes = EQUAL_BYTES + 1;
    assert_old(EQUAL_BYTES + 1);
    const struct vm_bytecodes codes =
        old_method_bytecodes(&(const struct vm_structs){0}, address(&vm.methods[1]));
    assert_int_equal(codes.bytes, 0);
}

/* What was a Method points anywhere now: to a page that is not there, or to none. */
static void test_a_method_that_is_being_freed(void **state)
{
    const struct vm_structs structs = made_structs();
    struct vm_bytecodes codes;
    (void)state;
    assert_true(newest_method_bytecodes(&structs, address(&vm.methods[0]), &codes));
    assert_int_equal(codes.addr, address(&vm.consts[0]) + CONST_BYTES);
    assert_int_equal(codes.bytes, EQUAL_BYTES);
    void *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(gone, MAP_FAILED);
    const uint64_t places[] = {address(gone), 0, 1, UINT64_MAX - 2};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        vm.methods[0] = places[i];
        assert_true(newest_method_bytecodes(&structs, address(&vm.methods[0]), &codes));
        assert_int_equal(codes.bytes, 0);
        assert_true(newest_method_bytecodes(&structs, places[i], &codes));
        assert_int_equal(codes.bytes, 0);
    }
    munmap(gone, 4096);
}

static void test_words_that_are_no_old_method(void **state)
{
    (void)state;
    void *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(gone, MAP_FAILED);
    const uint64_t words[] = {1,          8,          address(gone), UINT64_MAX - 7, address(stack),
                              UINT64_MAX, 1ULL << 46, address(&vm),  address("text")};
    memcpy(stack + STACK_WORDS - 60, words, sizeof words);
    assert_old(EQUAL_BYTES);
    stack[STACK_WORDS - 11] = 0;
    assert_old(0);
    stack[STACK_WORDS - 11] = address(&vm.methods[1]);
    vm.array[0] = 1 << 20; /* no class has as many */
    assert_old(0);
    vm.array[0] = 1;
    vm.pools[1][3] = 201; /* another signature */
    assert_old(0);
    vm.pools[1][3] = 200;
    vm.pools[1][2] = 101; /* another name */
    assert_old(0);
    munmap(gone, 4096);
}

static void test_a_stack_is_read_down_to_where_it_is_empty_or_guarded(void **state)
{
    (void)state;
    stack[STACK_WORDS - 11] = 0;
    stack[STACK_WORDS - 12 * PAGE_WORDS] = address(&vm.methods[1]);
    assert_old(EQUAL_BYTES);
    stack[STACK_WORDS - 12 * PAGE_WORDS] = 0;
    stack[STACK_WORDS - 30 * PAGE_WORDS] = address(&vm.methods[1]); /* left there once */
    assert_old(0);
    stack[STACK_WORDS - 11] = address(&vm.methods[1]);
    assert_int_equal(mprotect(stack + STACK_WORDS - 3 * PAGE_WORDS, 4096, PROT_NONE), 0);
    assert_old(EQUAL_BYTES);
    assert_int_equal(mprotect(stack + STACK_WORDS - 3 * PAGE_WORDS, 4096, PROT_READ | PROT_WRITE),
                     0);
}

static void test_a_class_that_is_just_being_redefined(void **state)
{
    (void)state;
    const struct vm_structs structs = made_structs();
    struct old_methods old = {0};
    vm.place = address(&vm.methods[1]); /* the ID is the old one's still */
    old_methods_find(&structs, &old, goes_on);
    assert_int_equal(old.count, 0);
    assert_true(old.again);
    old_methods_free(&old);
}

static void test_a_jvm_that_ends_is_not_looked_at(void **state)
{
    (void)state;
    const struct vm_structs structs = made_structs();
    struct old_methods old = {0};
    old_methods_find(&structs, &old, has_ended);
    assert_int_equal(old.count, 0);
    old_methods_free(&old);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_those_of_the_perf_map),
        cmocka_unit_test(test_a_hidden_class_has_no_address),
        cmocka_unit_test(test_what_is_no_signature_has_no_name),
        cmocka_unit_test(test_short_names_and_paths),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_code_is_taken_out_once),
        cmocka_unit_test(test_code_is_known_by_its_compilation),
        cmocka_unit_test(test_of_two_at_one_address_the_later_stays),
        cmocka_unit_test(test_a_frame_with_a_stack_bang_and_a_poll),
        cmocka_unit_test(test_a_small_frame_stores_rbp),
        cmocka_unit_test(test_pushes_in_a_body),
        cmocka_unit_test(test_jumps_over_longer_instructions),
        cmocka_unit_test(test_an_epilogue_that_asks_for_the_stacks_reserve),
        cmocka_unit_test(test_bytes_that_are_no_instruction_are_skipped),
        cmocka_unit_test(test_a_jump_takes_what_was_pushed_along),
        cmocka_unit_test(test_registers_that_native_code_keeps_are_used),
        cmocka_unit_test(test_what_is_left_of_a_number_is_no_instruction),
        cmocka_unit_test(test_a_wrapper_is_unwound_by_rbp),
        cmocka_unit_test(test_a_prologue_of_another_frame_has_no_tables),
        cmocka_unit_test(test_where_frames_are_made_and_left),
        cmocka_unit_test(test_edges_of_frames_are_the_methods_own),
        cmocka_unit_test(test_the_layout_of_frames_is_measured),
        cmocka_unit_test(test_a_layout_that_is_not_clear_is_none),
        cmocka_unit_test(test_methods_that_are_others_now),
        cmocka_unit_test(test_the_interpreter_knows_its_callers_stack_pointer),
        cmocka_unit_test_setup(test_a_method_on_a_stack_that_its_class_has_no_more, make_vm),
        cmocka_unit_test_setup(test_a_method_that_is_being_freed, make_vm),
        cmocka_unit_test_setup(test_words_that_are_no_old_method, make_vm),
        cmocka_unit_test_setup(test_a_stack_is_read_down_to_where_it_is_empty_or_guarded, make_vm),
        cmocka_unit_test_setup(test_a_class_that_is_just_being_redefined, make_vm),
        cmocka_unit_test_setup(test_a_jvm_that_ends_is_not_looked_at, make_vm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
