/* Source lines and inlined calls, from the records of a dump into an ELF file, and read back with
 * libdw. */
#include "injector/inject/image/elf_image.h"
#include "injector/inject/image/image_name.h"

#include "injector/inject/dwarf/source_path.h"
#include "injector/log/code/log_reader.h"
#include "tests/unit/line_builder.h"
#include "tests/unit/process_builder.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <limits.h>

enum {
    ADDR = 0x40000040,
    STEP = 0x400,
    MAX_BYTES = 200, /* of a function */
    MAX_ROWS = 24,
    MAX_INLINES = 12,
    MAX_SPANS = 24,
    MAX_FUNCTIONS = 1200,
};

/* What a function's records say. */
struct model {
    char name[16];
    uint64_t addr, size;
    size_t row_count, inline_count, span_count;
    struct built_row rows[MAX_ROWS];
    struct built_inline inlines[MAX_INLINES];
    struct built_span spans[MAX_SPANS];
};

static struct model models[MAX_FUNCTIONS];
static size_t model_count;
static struct dump_builder records;
static struct process_builder built;
static struct jit_dump dump;
static uint64_t seed;

static const char *const files[] = {"/src/a.c", "file:///src/deep%20er/b.c", "relative/c.c",
                                    "node:internal/d"};
static const char *const names[] = {"alpha", "beta", "gamma", "delta of x"};

/* ---- Models ---- */

static struct model *add_model(uint64_t addr, uint64_t size)
{
    struct model *model = &models[model_count];
    *model = (struct model){.addr = addr, .size = size};
    snprintf(model->name, sizeof model->name, "f%zu", model_count++);
    return model;
}

static void add_row(struct model *model, uint64_t offset, uint32_t line, uint32_t column,
                    const char *file)
{
    model->rows[model->row_count++] = (struct built_row){model->addr + offset, line, column, file};
}

static uint32_t up_to(uint64_t limit)
{
    return random_below(&seed, (uint32_t)limit);
}

static const char *any(const char *const *texts)
{
    return texts[up_to(4)];
}

static void add_random_rows(struct model *model)
{
    size_t count = 1 + up_to(MAX_ROWS - 1);
    uint32_t line = 1 + up_to(100000);
    for (size_t i = 0; i < count; i++) {
        bool far = up_to(8) == 0, none = up_to(8) == 0;
        line += up_to(far ? 1000000 : 20);
        line -= line > 12 ? up_to(12) : 0;
        add_row(model, up_to(model->size), none ? 0 : line, up_to(300), any(files));
    }
}

static void add_random_inlines(struct model *model)
{
    model->inline_count = up_to(MAX_INLINES);
    for (uint32_t i = 0; i < model->inline_count; i++)
        model->inlines[i] =
            (struct built_inline){i == 0 || up_to(3) == 0 ? JIT_INLINE_NONE : up_to(i),
                                  any(names),
                                  any(files),
                                  1 + up_to(500),
                                  up_to(90),
                                  up_to(4) ? any(files) : NULL,
                                  up_to(500)};
    for (uint32_t offset = 0; model->inline_count && model->span_count < MAX_SPANS;) {
        offset += up_to(model->size / 8 + 1) + (model->span_count > 0);
        if (offset >= model->size)
            return;
        model->spans[model->span_count++] = (struct built_span){
            offset, up_to(5) == 0 ? JIT_INLINE_NONE : up_to(model->inline_count)};
    }
}

/* ---- What a model says about a byte ---- */

static const struct built_row *row_at(const struct model *model, uint64_t addr)
{
    const struct built_row *found = NULL;
    for (size_t i = 0; i < model->row_count; i++) {
        const struct built_row *row = &model->rows[i];
        if (row->addr <= addr && (!found || row->addr >= found->addr))
            found = row;
    }
    return found;
}

static uint32_t inline_at(const struct model *model, uint64_t addr)
{
    uint32_t found = JIT_INLINE_NONE;
    for (size_t i = 0; i < model->span_count; i++)
        if (model->addr + model->spans[i].offset <= addr)
            found = model->spans[i].inline_index;
    return found;
}

/* ---- The file ---- */

struct written {
    struct image_plan plan;
    struct jit_image *image;
    uint8_t *bytes;
    size_t size;
    Elf *elf;
    Dwarf *dwarf;
};

static void build_dump(bool big_endian)
{
    static const char code[MAX_BYTES + 1];
    dump_begin(&records, big_endian, JITHEADER_BYTES);
    for (size_t i = 0; i < model_count; i++) {
        const struct model *model = &models[i];
        if (model->span_count)
            dump_inlines(&records, i, model->addr, model->inlines, model->inline_count,
                         model->spans, model->span_count);
        if (model->row_count)
            dump_lines(&records, i, model->addr, model->rows, model->row_count);
        size_t start = dump_begin_load(&records, i, model->addr, model->size, i);
        sink_cstr(&records.sink, model->name);
        if (model->size <= MAX_BYTES)
            sink_bytes(&records.sink, code, (size_t)model->size);
        dump_end_record(&records, start);
    }
}

static void read_dump(void)
{
    struct findings findings = {0};
    struct jit_clock clock = {0};
    struct code_log *log = &built.process.log;
    open_built_dump(&records, &dump);
    assert_int_equal(code_log_read(log, &dump, 0, &clock, true, &findings), 0);
    assert_int_equal(log->function_count, model_count);
    for (size_t i = 0; i < model_count; i++)
        built.states[i].visible = true;
    findings_free(&findings);
}

static void write_image(struct written *written, bool compress)
{
    static int number;
    char directory[64], name[IMAGE_FILE_NAME_BYTES], path[PATH_MAX];
    struct findings findings = {0};
    *written = (struct written){0};
    snprintf(directory, sizeof directory, "%s/%d", scratch, number++);
    assert_int_equal(mkdir(directory, 0700), 0);
    int dir_fd = open(directory, O_RDONLY | O_DIRECTORY);
    const struct timeline timeline = built_timeline(&built);
    assert_int_equal(
        image_plan_add(&written->plan, &built.process, &timeline, LAYOUT_IMAGE, &findings), 0);
    assert_int_equal(written->plan.image_count, 1);
    written->image = written->plan.images;
    written->image->compress_debug = compress;
    if (elf_image_write(written->image, &built.process, 0, dir_fd, &findings))
        fail_msg("%s", findings.failure);
    image_file_name(written->image, &built.process, 0, name);
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = openat(dir_fd, name, O_RDONLY);
    assert_true(fd >= 0);
    elf_version(EV_CURRENT);
    written->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    assert_non_null(written->elf);
    written->dwarf = dwarf_begin_elf(written->elf, DWARF_C_READ, NULL);
    close(dir_fd);
    close(fd);
}

static void release(struct written *written)
{
    if (written->dwarf)
        dwarf_end(written->dwarf);
    elf_end(written->elf);
    image_plan_free(&written->plan);
}

static void begin_built(bool big_endian)
{
    process_begin(&built);
    built.dump.big_endian = big_endian;
    if (big_endian) {
        built.dump.elf_mach = EM_PPC;
        built.dump.address_bytes = 4;
    }
    build_dump(big_endian);
    read_dump();
}

static void end_built(void)
{
    process_free(&built);
    jit_dump_close(&dump);
}

static int begin(void **state)
{
    (void)state;
    model_count = 0;
    return 0;
}

/* ---- Comparing ---- */

/* What FILE is called there: its path, if it is a URL. */
static const char *shown(const char *file)
{
    static struct source_path path;
    static char text[64];
    struct line_text shown = source_path_of(&path, line_text_of(file));
    snprintf(text, sizeof text, "%.*s", (int)shown.bytes, shown.text);
    source_path_free(&path);
    return text;
}

static void assert_line(Dwarf_Die *unit, Dwarf_Addr addr, const struct built_row *row)
{
    Dwarf_Line *line = dwarf_getsrc_die(unit, addr);
    int number, column;
    if (!row) {
        assert_null(line);
        return;
    }
    assert_non_null(line);
    assert_int_equal(dwarf_lineno(line, &number), 0);
    assert_int_equal((uint32_t)number, row->line);
    if (row->line == 0)
        return;
    assert_int_equal(dwarf_linecol(line, &column), 0);
    assert_int_equal(column, row->column);
    assert_string_equal(dwarf_linesrc(line, NULL, NULL), shown(row->file));
}

static Dwarf_Word number_of(Dwarf_Die *die, unsigned attribute)
{
    Dwarf_Attribute found;
    Dwarf_Word value = 0;
    assert_non_null(dwarf_attr(die, attribute, &found));
    assert_int_equal(dwarf_formudata(&found, &value), 0);
    return value;
}

static const char *file_of(Dwarf_Die *unit, Dwarf_Word number)
{
    Dwarf_Files *table;
    size_t count;
    assert_int_equal(dwarf_getsrcfiles(unit, &table, &count), 0);
    return number ? dwarf_filesrc(table, number, NULL, NULL) : NULL;
}

static void assert_call(Dwarf_Die *unit, Dwarf_Die *die, const struct built_inline *call)
{
    Dwarf_Attribute attribute;
    Dwarf_Die origin;
    int line;
    assert_int_equal(dwarf_tag(die), DW_TAG_inlined_subroutine);
    assert_string_equal(dwarf_diename(die), call->name);
    assert_int_equal(number_of(die, DW_AT_call_line), call->call_line);
    assert_int_equal(number_of(die, DW_AT_call_column), call->call_column);
    assert_string_equal(file_of(unit, number_of(die, DW_AT_call_file)), shown(call->call_file));
    assert_non_null(dwarf_attr(die, DW_AT_abstract_origin, &attribute));
    assert_non_null(dwarf_formref_die(&attribute, &origin));
    assert_int_equal(dwarf_tag(&origin), DW_TAG_subprogram);
    assert_int_equal(number_of(&origin, DW_AT_inline), DW_INL_inlined);
    if (!call->decl_file) {
        assert_null(dwarf_decl_file(&origin));
        return;
    }
    assert_string_equal(dwarf_decl_file(&origin), shown(call->decl_file));
    assert_int_equal(dwarf_decl_line(&origin, &line), 0);
    assert_int_equal(line, call->decl_line);
}

/* The entry that is DIE's parent, in its place. */
static void go_up(Dwarf_Die *die)
{
    Dwarf_Die *scopes;
    assert_true(dwarf_getscopes_die(die, &scopes) > 1);
    *die = scopes[1];
    free(scopes);
}

static void assert_chain(Dwarf_Die *unit, Dwarf_Addr addr, const struct model *model,
                         uint32_t inlined)
{
    Dwarf_Die *scopes, die;
    Dwarf_Addr low, high;
    assert_true(dwarf_getscopes(unit, addr, &scopes) > 0);
    die = scopes[0];
    free(scopes);
    for (; inlined != JIT_INLINE_NONE; inlined = model->inlines[inlined].parent) {
        assert_call(unit, &die, &model->inlines[inlined]);
        go_up(&die);
    }
    assert_int_equal(dwarf_tag(&die), DW_TAG_subprogram);
    assert_string_equal(dwarf_diename(&die), model->name);
    assert_int_equal(dwarf_lowpc(&die, &low), 0);
    assert_int_equal(dwarf_highpc(&die, &high), 0);
    assert_int_equal(high - low, model->size);
}

static void assert_byte(const struct written *written, const struct model *model, uint64_t addr)
{
    Dwarf_Die unit;
    Dwarf_Addr virtual_addr = addr - written->image->base;
    assert_ptr_equal(dwarf_addrdie(written->dwarf, virtual_addr, &unit), &unit);
    assert_line(&unit, virtual_addr, row_at(model, addr));
    assert_chain(&unit, virtual_addr, model, inline_at(model, addr));
}

static void assert_no_line_behind(const struct written *written, const struct model *model)
{
    Dwarf_Die unit;
    Dwarf_Addr behind = model->addr + model->size - written->image->base;
    if (dwarf_addrdie(written->dwarf, behind, &unit))
        assert_null(dwarf_getsrc_die(&unit, behind));
}

static void assert_models(const struct written *written)
{
    assert_non_null(written->dwarf);
    for (size_t i = 0; i < model_count; i++) {
        const struct model *model = &models[i];
        if (model->row_count + model->span_count == 0)
            continue;
        for (uint64_t at = 0; at < model->size && at < MAX_BYTES; at++)
            assert_byte(written, model, model->addr + at);
        for (size_t row = 0; row < model->row_count; row++)
            assert_byte(written, model, model->rows[row].addr);
        assert_byte(written, model, model->addr + model->size - 1);
        assert_no_line_behind(written, model);
    }
}

static void check_models(bool big_endian, bool compress)
{
    struct written written;
    begin_built(big_endian);
    write_image(&written, compress);
    assert_models(&written);
    release(&written);
    end_built();
}

/* ---- The tests ---- */

static void make_random_models(void)
{
    model_count = 0;
    for (uint64_t i = 0; i < 12; i++) {
        struct model *model = add_model(ADDR + i * STEP, 1 + up_to(MAX_BYTES - 1));
        unsigned kind = up_to(8);
        if (kind > 0)
            add_random_rows(model);
        if (kind > 2)
            add_random_inlines(model);
    }
}

static void test_any_records(void **state)
{
    (void)state;
    seed = 7;
    for (int i = 0; i < 60; i++) {
        make_random_models();
        check_models(i % 3 == 1, i % 3 == 2);
    }
}

static void test_functions_of_several_units(void **state)
{
    (void)state;
    seed = 8;
    for (uint64_t i = 0; i < MAX_FUNCTIONS; i++) {
        struct model *model = add_model(ADDR + i * 20, 16);
        add_row(model, i % 16, 1 + (uint32_t)i, 3, files[i % 4]);
        model->inline_count = model->span_count = i % 5 == 0;
        model->inlines[0] =
            (struct built_inline){JIT_INLINE_NONE, names[i % 3], files[1], 5, 6, files[2], 7};
    }
    check_models(false, false);
}

/* Up to the largest numbers that the records have, in a function as large as one can be. */
static void test_long_ways_between_rows(void **state)
{
    struct model *model = add_model(ADDR, UINT64_C(1) << 30);
    (void)state;
    add_row(model, 0, 1, UINT16_MAX, files[0]);
    add_row(model, 1, 0x7fffffff, 0, files[1]);
    add_row(model, 300, 2, 1, files[2]);
    add_row(model, 317, 1, 1, files[2]);
    add_row(model, 334, 12, 1, files[2]);
    add_row(model, 374, 12, 1, files[2]);
    add_row(model, (1 << 30) - 1, 500, 1, files[3]);
    check_models(false, false);
}

static void test_one_row_at_each_place(void **state)
{
    (void)state;
    for (uint64_t offset = 0; offset < 40; offset += 13) {
        struct model *model = add_model(ADDR + offset * STEP, 40);
        add_row(model, offset, 9, 1, files[0]);
    }
    check_models(false, false);
}

static void test_calls_without_lines(void **state)
{
    struct model *model = add_model(ADDR, 40);
    (void)state;
    model->inline_count = model->span_count = 1;
    model->inlines[0] =
        (struct built_inline){JIT_INLINE_NONE, "alpha", files[0], 1, 2, files[1], 3};
    model->spans[0] = (struct built_span){8, 0};
    check_models(false, false);
}

static void test_nothing_known_nothing_written(void **state)
{
    struct written written;
    (void)state;
    add_model(ADDR, 40);
    begin_built(false);
    write_image(&written, false);
    assert_null(written.dwarf);
    release(&written);
    end_built();
}

/* perf takes addr2line's answers line by line. */
static void test_names_with_control_characters(void **state)
{
    struct written written;
    Dwarf_Die unit;
    struct model *model = add_model(ADDR, 40);
    (void)state;
    add_row(model, 0, 9, 1, "/src/new\nline\t.c");
    begin_built(false);
    write_image(&written, false);
    Dwarf_Addr addr = ADDR - written.image->base;
    assert_non_null(dwarf_addrdie(written.dwarf, addr, &unit));
    assert_string_equal(dwarf_linesrc(dwarf_getsrc_die(&unit, addr), NULL, NULL),
                        "/src/new line .c");
    release(&written);
    end_built();
}

/* As in a symbol table, so that a call has one name wherever perf takes it from. */
static void test_names_of_calls_are_cleaned(void **state)
{
    struct written written;
    Dwarf_Die unit, *scopes = NULL;
    struct model *model = add_model(ADDR, 40);
    (void)state;
    model->inline_count = model->span_count = 1;
    model->inlines[0] =
        (struct built_inline){JIT_INLINE_NONE, "\033[31mred\tone\xff", files[0], 1, 2, files[1], 3};
    begin_built(false);
    write_image(&written, false);
    Dwarf_Addr addr = ADDR - written.image->base;
    assert_non_null(dwarf_addrdie(written.dwarf, addr, &unit));
    assert_true(dwarf_getscopes(&unit, addr, &scopes) > 0);
    assert_int_equal(dwarf_tag(&scopes[0]), DW_TAG_inlined_subroutine);
    assert_string_equal(dwarf_diename(&scopes[0]), "?[31mred one?");
    free(scopes);
    release(&written);
    end_built();
}

static void test_lines_change_the_build_id(void **state)
{
    struct written first, second;
    (void)state;
    add_row(add_model(ADDR, 40), 0, 9, 1, files[0]);
    begin_built(false);
    write_image(&first, false);
    end_built();
    models[0].rows[0].line++;
    begin_built(false);
    write_image(&second, false);
    assert_memory_not_equal(first.image->build_id, second.image->build_id, IMAGE_BUILD_ID_BYTES);
    release(&first);
    release(&second);
    end_built();
}

#define DEBUG_TEST(test) cmocka_unit_test_setup(test, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEBUG_TEST(test_any_records),
        DEBUG_TEST(test_functions_of_several_units),
        DEBUG_TEST(test_long_ways_between_rows),
        DEBUG_TEST(test_one_row_at_each_place),
        DEBUG_TEST(test_calls_without_lines),
        DEBUG_TEST(test_nothing_known_nothing_written),
        DEBUG_TEST(test_names_with_control_characters),
        DEBUG_TEST(test_names_of_calls_are_cleaned),
        DEBUG_TEST(test_lines_change_the_build_id),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
