/* How much stack libjitdump takes, as jitdump.h promises: a compiler's thread may have little.
 *
 * Measured is the library as it is shipped: AddressSanitizer's frames are larger.  The program is
 * linked with -z now, for the dynamic linker takes some KiB of a caller's stack when it binds a
 * function.
 */
#include "jitdump/cfi.h"
#include "jitdump/trampoline.h"
#include "tests/unit/attach_asker.h"
#include "tests/unit/stack_use.h"

/* The promise, what is usual, and with the word "check". */
enum { CALL_BYTES = 4096, USUAL_BYTES = 1536, CHECKED_BYTES = 16 << 10 };

static struct jitdump *dump;
static uint64_t code_index;
static int result;
static bool with_lines, with_calls;

static void open_here(void)
{
    result = try_open(&dump);
}

static void add_here(void)
{
    static const uint8_t bytes[64] = {0xc3};
    const uint64_t addr = (uint64_t)(uintptr_t)bytes;
    const struct jitdump_line lines[] = {{addr, "a.src", 1, 0}, {addr + 8, "a.src", 2, 0}};
    static const struct jitdump_inline inlines[] = {
        {.name = "f", .call_file = "a.src", .call_line = 1, .parent = JITDUMP_NOT_INLINED},
        {.name = "g", .call_file = "a.src", .call_line = 2, .parent = 0}};
    static const uint32_t calls_of_lines[] = {0, 1};
    struct jitdump_code code = code_with_bytes(addr, bytes, sizeof bytes, "fib");
    if (with_lines) {
        code.lines = lines;
        code.line_count = 2;
    }
    if (with_calls) {
        code.inlines = inlines;
        code.inline_count = sizeof inlines / sizeof *inlines;
        code.line_inlines = calls_of_lines;
    }
    result = jitdump_add_code(dump, &code, &code_index);
}

static void move_here(void)
{
    result = jitdump_move_code(dump, code_index, 0x1000, 0x2000, 64);
}

static void unload_here(void)
{
    result = jitdump_unload_code(dump, code_index, 0x2000, 64);
}

static void make_trampoline_here(void)
{
    jitdump_entry *entry = (jitdump_entry *)unload_here;
    result = jitdump_trampoline(dump, "fib", "a.src", 1, entry) == entry;
}

static void free_trampolines_here(void)
{
    result = jitdump_trampolines_free(dump);
}

static void add_by_name_here(void)
{
    static const uint8_t bytes[64] = {0xc3};
    result = jitdump_add(dump, "fib", bytes, sizeof bytes, &code_index);
}

static void add_pieces_here(void)
{
    static const uint8_t bytes[64] = {0xc3};
    struct jitdump_code code = code_with_bytes(0x1000, bytes, sizeof bytes, "fib");
    const struct jitdump_code piece = code_with_bytes(0x9000, bytes, sizeof bytes, NULL);
    code.pieces = &piece;
    code.piece_count = 1;
    result = jitdump_add_code(dump, &code, &code_index);
}

static void move_pieces_here(void)
{
    static const struct jitdump_piece_move moves[] = {{0x1000, 0x2000, 64}, {0x9000, 0xa000, 64}};
    result = jitdump_move_pieces(dump, code_index, moves, 2);
}

static jitdump_entry *trampoline;

static void describe_trampoline_here(void)
{
    struct jitdump_trampoline_code code;
    result = jitdump_trampoline_describe(dump, trampoline, &code);
}

static void free_trampoline_here(void)
{
    result = jitdump_trampoline_free(dump, trampoline);
}

static void poll_here(void)
{
    result = jitdump_poll(dump, NULL, NULL);
}

static struct jitdump_spans *spans;

static void open_spans_here(void)
{
    result = jitdump_spans_open(&spans, dir, JITDUMP_ALWAYS);
}

static void end_span_here(void)
{
    result = jitdump_span_end(spans, jitdump_span_begin(), "a span");
}

static void close_spans_here(void)
{
    jitdump_spans_close(spans);
}

static void close_here(void)
{
    result = jitdump_close(dump);
}

/* A stage is emptied now and then. */
static void add_many(void)
{
    for (int i = 0; i < 20000 && !result; i++)
        add_here();
}

static void check(void (*call)(void), size_t limit, const char *what)
{
    check_stack(call, limit, what);
    CHECK(result == 0);
}

static void test_stack_use(void **state)
{
    (void)state;
    if (is_sanitized)
        skip();
    check(open_here, CALL_BYTES, "jitdump_open");
    check(add_here, USUAL_BYTES, "the first jitdump_add_code");
    check(add_here, USUAL_BYTES, "jitdump_add_code");
    with_lines = true;
    check(add_here, USUAL_BYTES, "jitdump_add_code, with lines");
    with_calls = true;
    check(add_here, CALL_BYTES, "jitdump_add_code, with inlined calls");
    with_lines = with_calls = false;
    check(move_here, USUAL_BYTES, "jitdump_move_code");
    check(unload_here, USUAL_BYTES, "jitdump_unload_code");
    check(make_trampoline_here, CALL_BYTES, "the first jitdump_trampoline");
    check(make_trampoline_here, USUAL_BYTES, "jitdump_trampoline");
    check(free_trampolines_here, CALL_BYTES, "jitdump_trampolines_free");
    trampoline = jitdump_trampoline(dump, "fib", "a.src", 1, (jitdump_entry *)unload_here);
    check(describe_trampoline_here, USUAL_BYTES, "jitdump_trampoline_describe");
    check(free_trampoline_here, USUAL_BYTES, "jitdump_trampoline_free");
    check(free_trampolines_here, CALL_BYTES, "jitdump_trampolines_free");
    check(add_by_name_here, USUAL_BYTES, "jitdump_add");
    check(add_pieces_here, CALL_BYTES, "jitdump_add_code, with pieces");
    check(move_pieces_here, USUAL_BYTES, "jitdump_move_pieces");
    check(add_many, CALL_BYTES, "jitdump_add_code, when the stage is full");
    check(close_here, CALL_BYTES, "jitdump_close");
}

static void use_in_child(struct jitdump *of_parent)
{
    dump = of_parent;
    check(add_here, CALL_BYTES, "the first call in a child");
    check(close_here, CALL_BYTES, "jitdump_close in a child");
}

static void test_stack_use_in_a_child(void **state)
{
    (void)state;
    if (is_sanitized)
        skip();
    struct jitdump *of_parent = open_dump();
    assert_int_equal(run_in_child(use_in_child, of_parent), 0);
    assert_int_equal(jitdump_close(of_parent), 0);
}

static void test_stack_use_of_a_poll(void **state)
{
    (void)state;
    if (is_sanitized)
        skip();
    dump = open_attachable();
    check(poll_here, USUAL_BYTES, "jitdump_poll");
    ask(ATTACH_ON, dir);
    check(poll_here, CALL_BYTES, "jitdump_poll that opens a dump");
    CHECK(jitdump_is_on(dump));
    ask(ATTACH_OFF, NULL);
    check(poll_here, CALL_BYTES, "jitdump_poll that closes it");
    CHECK(!jitdump_is_on(dump));
    check(close_here, CALL_BYTES, "jitdump_close");
}

static void test_stack_use_of_spans(void **state)
{
    (void)state;
    if (is_sanitized)
        skip();
    check(open_spans_here, CALL_BYTES, "jitdump_spans_open");
    check(end_span_here, USUAL_BYTES, "jitdump_span_end");
    check(close_spans_here, USUAL_BYTES, "jitdump_spans_close");
}

/* A large function, with many jumps: what is followed stands on the heap. */
static void add_checked_here(void)
{
    static uint8_t bytes[8000];
    static const struct jitdump_frame frame = {.kind = JITDUMP_FRAME_LEAF};
    struct jitdump_code code = code_with_bytes(0x1000, bytes, sizeof bytes, "fib");
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_HOST_ARCH);
    struct jitdump_unwind unwind;
    for (size_t i = 0; i + 2 <= sizeof bytes; i += 2)
        memcpy(bytes + i, (const uint8_t[]){0x74, 0x00}, 2); /* x86-64: je to the next */
    bytes[sizeof bytes - 1] = bytes[sizeof bytes - 2] = 0xc3;
    jitdump_cfi_frame(cfi, &frame);
    result = jitdump_cfi_finish(cfi, sizeof bytes, &unwind);
    code.unwind = &unwind;
    result = result ? result : jitdump_add_code(dump, &code, &code_index);
    jitdump_cfi_free(cfi);
}

static void test_stack_use_of_a_check(void **state)
{
    (void)state;
    if (is_sanitized)
        skip();
    setenv("PERFJIT", "dump,check", 1);
    check(open_here, CALL_BYTES, "jitdump_open");
    unsetenv("PERFJIT");
    check(add_checked_here, CHECKED_BYTES, "jitdump_add_code, checked");
    assert_int_equal(jitdump_faults(dump), 0);
    check(close_here, CALL_BYTES, "jitdump_close");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_stack_use, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_stack_use_in_a_child, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_stack_use_of_a_poll, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_stack_use_of_spans, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_stack_use_of_a_check, make_dir, remove_dir)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
