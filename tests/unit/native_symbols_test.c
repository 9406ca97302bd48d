/* The names of native functions: linkage names, else namespaces.  The file is made by the
 * assembler: what rustc leaves out, C++ compilers write. */
#include "injector/native/symbols/native_symbols.h"
#include "tests/unit/scratch.h"

enum { TEXT = 0x10000 };

/* run at TEXT has 20 bytes.  In it are inlined, from its 4th, 8th, 12th and 16th byte on: a closure
 * in m::work, whose abstract entry has no linkage name; a member of a type in another unit,
 * declared there; a function with a linkage name; and a lambda in a block of that function. */
static const char source[] =
    ".text\n.globl run\n.type run,@function\nrun: .skip 20, 0x90\n.size run, 20\n"
    "call missing@plt\ncall _ZN3app1gEv@plt\n"
    ".section .debug_abbrev\n"
    ".uleb128 1,0x11\n.byte 1\n.uleb128 0x03,0x08,0x11,0x01,0x12,0x06,0,0\n" /* unit */
    ".uleb128 2,0x39\n.byte 1\n.uleb128 0x03,0x08,0,0\n"                     /* namespace */
    ".uleb128 3,0x2e\n.byte 0\n.uleb128 0x03,0x08,0x20,0x0b,0,0\n" /* abstract subprogram */
    ".uleb128 4,0x2e\n.byte 1\n.uleb128 0x03,0x08,0x11,0x01,0x12,0x06,0,0\n" /* subprogram */
    ".uleb128 5,0x1d\n.byte 0\n.uleb128 0x31,0x10,0x11,0x01,0x12,0x06,0,0\n" /* inlined */
    ".uleb128 6,0x13\n.byte 1\n.uleb128 0x03,0x08,0,0\n"                     /* structure */
    ".uleb128 7,0x2e\n.byte 0\n.uleb128 0x03,0x08,0x3c,0x19,0,0\n"           /* declaration */
    ".uleb128 8,0x2e\n.byte 0\n.uleb128 0x47,0x10,0x20,0x0b,0,0\n"           /* specification */
    ".uleb128 9,0x2e\n.byte 1\n.uleb128 0x03,0x08,0x6e,0x08,0x20,0x0b,0,0\n" /* linkage name */
    ".uleb128 10,0x39\n.byte 1\n.uleb128 0,0\n"                              /* anonymous */
    ".uleb128 11,0x0b\n.byte 1\n.uleb128 0,0\n"                              /* block */
    ".uleb128 12,0x13\n.byte 1\n.uleb128 0,0\n" /* structure without a name */
    ".byte 0\n"
    ".section .debug_info\n"
    "info: .long end1-begin1\nbegin1: .short 4\n.long 0\n.byte 8\n"
    ".uleb128 1\n.asciz \"one\"\n.quad run\n.long 20\n"
    ".uleb128 2\n.asciz \"m\"\n"
    ".uleb128 2\n.asciz \"work\"\n"
    "closure: .uleb128 3\n.asciz \"{closure#0}\"\n.byte 1\n"
    ".byte 0\n.byte 0\n"
    "linked: .uleb128 9\n.asciz \"f\"\n.asciz \"_ZN3app1fEv\"\n.byte 1\n"
    ".uleb128 11\n.uleb128 12\n"
    "lambda: .uleb128 3\n.asciz \"operator()\"\n.byte 1\n"
    ".byte 0\n.byte 0\n.byte 0\n"
    ".uleb128 4\n.asciz \"run\"\n.quad run\n.long 20\n"
    ".uleb128 5\n.long closure-info\n.quad run+4\n.long 4\n"
    ".uleb128 5\n.long member-info\n.quad run+8\n.long 4\n"
    ".uleb128 5\n.long linked-info\n.quad run+12\n.long 4\n"
    ".uleb128 5\n.long lambda-info\n.quad run+16\n.long 4\n"
    ".byte 0\n.byte 0\nend1:\n"
    ".long end2-begin2\nbegin2: .short 4\n.long 0\n.byte 8\n"
    ".uleb128 1\n.asciz \"two\"\n.quad 0\n.long 0\n"
    ".uleb128 10\n"
    ".uleb128 6\n.asciz \"Type\"\n"
    "declared: .uleb128 7\n.asciz \"member\"\n"
    ".byte 0\n.byte 0\n"
    "member: .uleb128 8\n.long declared-info\n.byte 1\n"
    ".byte 0\nend2:\n";

static struct recorded_map map;
static struct native_files files;
static struct native_symbols symbols = {.files = &files};
static struct native_file file = {.map = &map, .number = 1};

static int assemble(void **state)
{
    char command[256];
    if (make_scratch(state))
        return -1;
    snprintf(command, sizeof command, "%s/source.s", scratch);
    FILE *stream = fopen(command, "w");
    fputs(source, stream);
    fclose(stream);
    snprintf(command, sizeof command,
             "cc -nostdlib -shared -Wl,-Bsymbolic -Wl,-Ttext=0x%x -o %s %s/source.s", TEXT,
             scratch_file, scratch);
    if (system(command))
        return -1;
    map.map.filename = scratch_file;
    return elf_view_open(&file.view, scratch_file);
}

static int forget(void **state)
{
    native_symbols_free(&symbols);
    elf_view_close(&file.view);
    return remove_scratch(state);
}

/* The innermost function at OFFSET in run is shown as WANTED, inlined in run or run itself. */
static void assert_shown(uint64_t offset, const char *wanted)
{
    struct native_place places[NATIVE_PLACES];
    size_t count = native_symbols_at(&symbols, &file, TEXT + offset, places);
    assert_int_equal(count, strcmp(wanted, "run") ? 2 : 1);
    assert_int_equal(places[0].inlined, count == 2);
    assert_string_equal(places[count - 1].name, "run");
    char *shown = native_name_shown(places[0].name);
    assert_string_equal(shown, wanted);
    free(shown);
}

static void test_inlined_names(void **state)
{
    (void)state;
    assert_shown(0, "run");
    assert_shown(4, "m::work::{closure#0}");
    assert_shown(7, "m::work::{closure#0}");
    assert_shown(8, "(anonymous namespace)::Type::member");
    assert_shown(12, "app::f");
    assert_shown(16, "app::f::{unnamed}::operator()");
    assert_shown(18, "app::f::{unnamed}::operator()");
}

static void test_versions(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"free@@GLIBC_2.2.5", "free"},
        {"memcpy@plt", "memcpy@plt"},
        {"_ZN1a1fEv@@A_3.4", "a::f"},
        {"_RNvNtCs4fqI2P2rA04_4acme5inner3run@plt", "acme::inner::run@plt"},
        {"?f@@YAXXZ", "?f@@YAXXZ"},
        {"@f@8", "@f"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *shown = native_name_shown(names[i][0]);
        assert_string_equal(shown, names[i][1]);
        free(shown);
    }
}

/* Two stubs stand behind the first entry of the table, in the linker's order. */
static void test_stubs(void **state)
{
    struct native_place places[NATIVE_PLACES];
    unsigned bytes_of_missing = 0, bytes_of_app = 0;
    size_t size;
    uint64_t addr;
    (void)state;
    assert_non_null(elf_view_section(&file.view, ".plt", &size, &addr));
    assert_int_equal(size, 48);
    for (uint64_t offset = 16; offset < 48; offset++) {
        assert_int_equal(native_symbols_at(&symbols, &file, addr + offset, places), 1);
        char *shown = native_name_shown(places[0].name);
        bytes_of_missing += strcmp(shown, "missing@plt") == 0;
        bytes_of_app += strcmp(shown, "app::g@plt") == 0;
        free(shown);
    }
    assert_int_equal(bytes_of_missing, 16);
    assert_int_equal(bytes_of_app, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inlined_names),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_stubs),
    };
    return cmocka_run_group_tests(tests, assemble, forget);
}
