/* Images written as ELF files and read back with libelf. */
#include "tests/unit/written_image.h"

#include <signal.h>
#include <sys/resource.h>

enum { ADDR = 0x40000123 };

static int begin(void **state)
{
    (void)state;
    process_begin(&built);
    return 0;
}

static int end(void **state)
{
    (void)state;
    process_free(&built);
    return 0;
}

/* Headers and note of a function that is alone stand behind it. */
static void test_one_function(void **state)
{
    struct written written;
    GElf_Ehdr ehdr;
    GElf_Shdr note;
    (void)state;
    add_visible(ADDR, 0x85);
    write_image(&written);
    assert_sound(&written);
    assert_non_null(gelf_getehdr(written.elf, &ehdr));
    find_section(&written, ".note.gnu.build-id", &note);
    assert_true(ehdr.e_phoff >= written.image->text_end);
    assert_true(note.sh_offset >= written.image->text_end);
    assert_true(note.sh_offset + note.sh_size <= written.image->text_end + IMAGE_TRAILER_BYTES);
    release(&written);
}

static void test_headers_of_several_functions_stand_in_the_first_page(void **state)
{
    struct written written;
    GElf_Ehdr ehdr;
    GElf_Shdr note;
    (void)state;
    add_visible(ADDR, 0x85);
    add_visible(ADDR + 0x100, 0x85);
    write_image(&written);
    assert_sound(&written);
    assert_non_null(gelf_getehdr(written.elf, &ehdr));
    find_section(&written, ".note.gnu.build-id", &note);
    assert_true(ehdr.e_phoff + (uint64_t)ehdr.e_phnum * ehdr.e_phentsize <= note.sh_offset);
    assert_true(note.sh_offset + note.sh_size <= PAGE);
    assert_int_equal(note.sh_flags, SHF_ALLOC);
    release(&written);
}

static void test_header_says_what_the_dump_says(void **state)
{
    struct written written;
    GElf_Ehdr ehdr;
    (void)state;
    built.dump.elf_mach = EM_AARCH64;
    add_visible(ADDR, 0x85);
    write_image(&written);
    assert_non_null(gelf_getehdr(written.elf, &ehdr));
    assert_int_equal(ehdr.e_ident[EI_CLASS], ELFCLASS64);
    assert_int_equal(ehdr.e_ident[EI_DATA], ELFDATA2LSB);
    assert_int_equal(ehdr.e_type, ET_DYN);
    assert_int_equal(ehdr.e_machine, EM_AARCH64);
    release(&written);
}

static void test_file_name_carries_pid_number_and_build_id(void **state)
{
    struct jit_image image = {.build_id = {0xde, 0xad, 0x0e, 0xef, 1}};
    char name[IMAGE_FILE_NAME_BYTES];
    (void)state;
    image_file_name(&image, &built.process, 7, name);
    assert_string_equal(name, "jit-4711-7-dead0eef.so");
    built.process.pid = UINT32_MAX;
    image_file_name(&image, &built.process, SIZE_MAX, name);
    assert_string_equal(name + strlen(name) - 12, "-dead0eef.so");
}

/* What an image of all processes is called, by the machine that its dump says. */
static const char *name_for(uint32_t elf_mach, uint8_t address_bytes, bool big_endian)
{
    static char name[IMAGE_FILE_NAME_BYTES];
    struct jit_dump dump = {
        .elf_mach = elf_mach, .address_bytes = address_bytes, .big_endian = big_endian};
    const struct jit_process process = {.dumps = &dump, .dump_count = 1};
    const struct jit_function function = {.dump = 0};
    struct image_body body = {.function = &function};
    const struct jit_image image = {
        .process = NO_PROCESS, .bodies = &body, .body_count = 1, .build_id = {1, 2, 3, 4}};
    image_file_name(&image, &process, 0, name);
    return name + strlen("01020304/");
}

static void test_file_name_carries_the_machine(void **state)
{
    (void)state;
    assert_string_equal(name_for(EM_X86_64, 8, false), "jit-x86_64.so");
    assert_string_equal(name_for(EM_386, 4, false), "jit-i386.so");
    assert_string_equal(name_for(EM_ARM, 4, false), "jit-arm.so");
    assert_string_equal(name_for(EM_AARCH64, 8, false), "jit-aarch64.so");
    assert_string_equal(name_for(EM_PPC64, 8, false), "jit-ppc64le.so");
    assert_string_equal(name_for(EM_PPC64, 8, true), "jit-ppc64.so");
    assert_string_equal(name_for(EM_S390, 8, true), "jit-s390x.so");
    assert_string_equal(name_for(EM_RISCV, 8, false), "jit-riscv64.so");
    assert_string_equal(name_for(EM_RISCV, 4, false), "jit-riscv32.so");
    assert_string_equal(name_for(258, 8, false), "jit-loongarch64.so");
}

/* Those that have no name have their number. */
static void test_file_name_carries_the_number(void **state)
{
    (void)state;
    assert_string_equal(name_for(EM_MIPS, 8, false), "jit-8-64le.so");
    assert_string_equal(name_for(EM_PPC, 4, true), "jit-20-32be.so");
    assert_string_equal(name_for(EM_SPARCV9, 8, true), "jit-43-64be.so");
    assert_string_equal(name_for(EM_AARCH64, 8, true), "jit-183-64be.so");
    assert_string_equal(name_for(EM_X86_64, 4, false), "jit-62-32le.so");
    assert_string_equal(name_for(EM_S390, 8, false), "jit-22-64le.so");
    assert_string_equal(name_for(EM_NONE, 8, false), "jit-0-64le.so");
}

static void test_functions_with_gaps_of_all_sizes(void **state)
{
    struct written written;
    uint64_t addr = ADDR, seed = 5;
    (void)state;
    for (uint32_t i = 0; i < 300; i++) {
        uint32_t size = 1 + random_below(&seed, 200);
        add_visible(addr, size);
        addr += size + random_below(&seed, i % 10 ? 20 : 12000);
    }
    write_image(&written);
    assert_sound(&written);
    release(&written);
}

static void test_more_functions_than_one_system_call_writes(void **state)
{
    struct written written;
    (void)state;
    for (uint32_t i = 0; i < 3 * IOV_MAX + 100; i++)
        add_visible(ADDR + i * 64ull, i % 3 ? 48 : 64);
    write_image(&written);
    assert_sound(&written);
    release(&written);
}

static void test_invisible_functions_are_not_in_the_file(void **state)
{
    struct written written;
    (void)state;
    add_visible(ADDR, 0x80);
    build_load(&built, 2, ADDR, 0x80); /* never seen: not in the image */
    write_image(&written);
    assert_int_equal(written.image->body_count, 1);
    assert_sound(&written);
    release(&written);
}

static void test_large_gaps_stay_holes(void **state)
{
    struct written written;
    struct stat status;
    (void)state;
    add_visible(ADDR, 0x80);
    add_visible(ADDR + (15 << 20), 0x80);
    add_visible(ADDR + (30 << 20), 0x80);
    write_image(&written);
    assert_sound(&written);
    assert_int_equal(stat(written.path, &status), 0);
    assert_true(status.st_size > 30 << 20);
    assert_true(status.st_blocks * 512 < 1 << 16);
    release(&written);
}

static void test_a_large_function_without_code_stays_a_hole_even_alone(void **state)
{
    struct written written;
    struct stat status;
    (void)state;
    function(add_visible(ADDR, 30 << 20))->code = NULL;
    write_image(&written);
    assert_int_equal(stat(written.path, &status), 0);
    assert_true(status.st_size > 30 << 20);
    assert_true(status.st_blocks * 512 < 1 << 16);
    assert_segments(&written);
    assert_symbols(&written);
    release(&written);
}

/* The first, the middle or the last of three, or all of them; and one alone. */
static void test_functions_without_code_have_a_symbol_and_zeros(void **state)
{
    struct written written;
    (void)state;
    for (uint32_t lacking = 0; lacking < 5; lacking++) {
        begin(NULL);
        for (uint32_t i = 0; i < (lacking == 4 ? 1 : 3); i++) {
            uint32_t index = add_visible(ADDR + i * 0x100, 0x85);
            if (i == lacking || lacking >= 3)
                function(index)->code = NULL;
        }
        write_image(&written);
        assert_sound(&written);
        release(&written);
        end(NULL);
    }
}

static void test_32_bit_big_endian_machine(void **state)
{
    struct written written;
    GElf_Ehdr ehdr;
    (void)state;
    built.dump.elf_mach = EM_PPC;
    built.dump.address_bytes = 4;
    built.dump.big_endian = true;
    for (uint32_t i = 0; i < 10; i++)
        add_visible(ADDR + i * 0x40, 0x30);
    write_image(&written);
    assert_non_null(gelf_getehdr(written.elf, &ehdr));
    assert_int_equal(ehdr.e_ident[EI_CLASS], ELFCLASS32);
    assert_int_equal(ehdr.e_ident[EI_DATA], ELFDATA2MSB);
    assert_int_equal(ehdr.e_machine, EM_PPC);
    assert_int_equal(written.bytes[18] << 8 | written.bytes[19], EM_PPC);
    assert_sound(&written);
    release(&written);
}

/* ---- Build-ids ---- */

static void build_three(uint64_t addr)
{
    process_begin(&built);
    for (uint32_t i = 0; i < 3; i++)
        add_visible(addr + i * 0x100, 0x85);
}

static void test_equal_inputs_give_equal_bytes(void **state)
{
    struct written first, second;
    (void)state;
    process_free(&built);
    build_three(ADDR);
    write_image(&first);
    process_free(&built);
    build_three(ADDR);
    write_image(&second);
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.bytes, second.bytes, first.size);
    release(&first);
    release(&second);
}

/* Two images of three functions, one of which CHANGE changed, have different build-ids. */
static void assert_tells_apart(void (*change)(void))
{
    struct written first, second;
    build_three(ADDR);
    write_image(&first);
    process_free(&built);
    build_three(ADDR);
    change();
    write_image(&second);
    assert_memory_not_equal(first.image->build_id, second.image->build_id, IMAGE_BUILD_ID_BYTES);
    assert_sound(&second);
    release(&first);
    release(&second);
    process_free(&built);
}

static void move_by_a_page(void)
{
    for (uint32_t i = 0; i < 3; i++)
        function(i)->addr += PAGE;
}

static void move_in_the_page(void)
{
    for (uint32_t i = 0; i < 3; i++)
        function(i)->addr += 16;
}

/* Two functions that are together too large for one thread to copy alone. */
enum { LARGE_FUNCTION_BYTES = 3 << 19 };

static uint8_t *add_large_functions(void)
{
    uint8_t *code = malloc(2 * LARGE_FUNCTION_BYTES);
    assert_non_null(code);
    for (size_t i = 0; i < 2 * LARGE_FUNCTION_BYTES; i++)
        code[i] = (uint8_t)(i * 2654435761u >> 24);
    for (uint32_t i = 0; i < 2; i++) {
        add_visible(ADDR + i * (LARGE_FUNCTION_BYTES + UINT64_C(16)), LARGE_FUNCTION_BYTES);
        function(i)->code = code + i * (size_t)LARGE_FUNCTION_BYTES;
    }
    return code;
}

static void test_large_image_is_as_a_small_one(void **state)
{
    struct written written;
    (void)state;
    uint8_t *code = add_large_functions();
    write_image(&written);
    assert_code(&written);
    assert_symbols(&written);
    assert_segments(&written);
    assert_build_id(&written);
    release(&written);
    free(code);
}

/* Its headers stand behind its code. */
static void test_large_function_that_is_alone(void **state)
{
    struct written written;
    (void)state;
    uint8_t *code = add_large_functions();
    built.states[1].visible = false;
    function(0)->size = 2 * LARGE_FUNCTION_BYTES;
    write_image(&written);
    assert_true(written.image->text_start < PAGE);
    assert_code(&written);
    assert_symbols(&written);
    assert_build_id(&written);
    release(&written);
    free(code);
}

/* The same of a run behind another image that is alive with it. */
static void test_large_images_apart(void **state)
{
    struct image_plan plan = {0};
    struct findings findings = {0};
    (void)state;
    uint8_t *code = add_large_functions();
    add_visible(ADDR - 64, 32);
    built.states[add_visible(ADDR - 48, 32)].generation = 1;
    const struct timeline timeline = built_timeline(&built);
    assert_int_equal(image_plan_add(&plan, &built.process, &timeline, LAYOUT_APART, &findings), 0);
    for (size_t i = 0; i < plan.image_count; i++) {
        struct written written = {.image = &plan.images[i]};
        write_planned(&written);
        assert_code(&written);
        free(written.bytes);
    }
    assert_true(plan.images[plan.image_count - 1].text_start < PAGE);
    assert_true(plan.images[plan.image_count - 1].body_count == 2);
    image_plan_free(&plan);
    free(code);
}

static void test_large_image_that_can_not_be_written_is_a_failure(void **state)
{
    struct rlimit before, small = {1 << 20, RLIM_INFINITY};
    struct image_plan plan = {0};
    struct findings findings = {0};
    (void)state;
    uint8_t *code = add_large_functions();
    int dir_fd = open(scratch, O_RDONLY | O_DIRECTORY);
    const struct timeline timeline = built_timeline(&built);
    assert_int_equal(image_plan_add(&plan, &built.process, &timeline, LAYOUT_IMAGE, &findings), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int result = elf_image_write(plan.images, &built.process, 7, dir_fd, &findings);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(result, -1);
    assert_non_null(strstr(findings.failure, "can't write it: File too large"));
    image_plan_free(&plan);
    close(dir_fd);
    free(code);
}

static void change_pid(void)
{
    built.process.pid++;
}

static void change_name(void)
{
    function(1)->name = "f2";
    function(1)->name_bytes = 2;
}

static void change_code(void)
{
    function(1)->code++;
}

static void lose_code(void)
{
    function(1)->code = NULL;
}

static void grow(void)
{
    function(1)->size++;
}

static void test_build_id_tells_images_apart(void **state)
{
    static void (*const changes[])(void) = {
        move_by_a_page, move_in_the_page, change_pid, change_name, change_code, lose_code, grow};
    (void)state;
    process_free(&built);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
        assert_tells_apart(changes[i]);
    process_begin(&built);
}

static void test_never_writes_over_a_file(void **state)
{
    struct written written;
    struct findings findings = {0};
    (void)state;
    add_visible(ADDR, 0x80);
    write_image(&written);
    *strrchr(written.path, '/') = '\0';
    int dir_fd = open(written.path, O_RDONLY | O_DIRECTORY);
    assert_int_equal(elf_image_write(written.image, &built.process, 7, dir_fd, &findings), -1);
    assert_non_null(strstr(findings.failure, "File exists"));
    close(dir_fd);
    release(&written);
}

#define IMAGE_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IMAGE_TEST(test_one_function),
        IMAGE_TEST(test_headers_of_several_functions_stand_in_the_first_page),
        IMAGE_TEST(test_header_says_what_the_dump_says),
        IMAGE_TEST(test_file_name_carries_pid_number_and_build_id),
        IMAGE_TEST(test_file_name_carries_the_machine),
        IMAGE_TEST(test_file_name_carries_the_number),
        IMAGE_TEST(test_functions_with_gaps_of_all_sizes),
        IMAGE_TEST(test_more_functions_than_one_system_call_writes),
        IMAGE_TEST(test_invisible_functions_are_not_in_the_file),
        IMAGE_TEST(test_large_gaps_stay_holes),
        IMAGE_TEST(test_a_large_function_without_code_stays_a_hole_even_alone),
        cmocka_unit_test(test_functions_without_code_have_a_symbol_and_zeros),
        IMAGE_TEST(test_32_bit_big_endian_machine),
        IMAGE_TEST(test_equal_inputs_give_equal_bytes),
        IMAGE_TEST(test_build_id_tells_images_apart),
        IMAGE_TEST(test_never_writes_over_a_file),
        IMAGE_TEST(test_large_image_is_as_a_small_one),
        IMAGE_TEST(test_large_function_that_is_alone),
        IMAGE_TEST(test_large_images_apart),
        IMAGE_TEST(test_large_image_that_can_not_be_written_is_a_failure),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
