/* How much stack libjitdump takes, as jitdump.h promises: a compiler's thread may have little.
 *
 * Measured is the library as it is shipped: AddressSanitizer's frames are larger.  The program is
 * linked with -z now, for the dynamic linker takes some KiB of a caller's stack when it binds a
 * function.
 */
#include "jitdump/trampoline.h"
#include "tests/unit/jitdump_test.h"
#include "tests/unit/stack_use.h"

/* The promise, and what is usual. */
enum { CALL_BYTES = 4096, USUAL_BYTES = 1536 };

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
    check(add_many, CALL_BYTES, "jitdump_add_code, when the stage is full");
    check(close_here, CALL_BYTES, "jitdump_close");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_stack_use, make_dir, remove_dir)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
