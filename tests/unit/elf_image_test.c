/* Images written as ELF files and read back with libelf. */
#include "injector/image/elf_image.h"

#include "tests/unit/process_builder.h"

#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>

enum { ADDR = 0x40000123, PAGE = 4096 };

static struct process_builder built;

/* The image of BUILT's functions, written to a directory of its own and opened again. */
struct written {
    struct image_plan plan;
    struct jit_image *image;
    char path[PATH_MAX];
    uint8_t *bytes;
    size_t size;
    Elf *elf;
};

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

static struct jit_function *function(uint32_t index)
{
    return &built.process.log.functions[index];
}

static uint32_t add_visible(uint64_t addr, uint64_t size)
{
    uint32_t index = build_load(&built, 1, addr, size);
    function(index)->visible = true;
    return index;
}

/* Write WRITTEN's image into a directory of its own, and read it. */
static void write_planned(struct written *written)
{
    static int number;
    char directory[64], name[IMAGE_FILE_NAME_BYTES];
    struct findings findings = {0};
    snprintf(directory, sizeof directory, "%s/%d", scratch, number++);
    assert_int_equal(mkdir(directory, 0700), 0);
    int dir_fd = open(directory, O_RDONLY | O_DIRECTORY);
    if (elf_image_write(written->image, &built.process, 7, dir_fd, NULL, &findings))
        fail_msg("%s", findings.failure);
    close(dir_fd);
    image_file_name(written->image, &built.process, 7, name);
    snprintf(written->path, sizeof written->path, "%s/%s", directory, name);
    written->bytes = read_whole(written->path, &written->size);
}

static void write_image(struct written *written)
{
    struct findings findings = {0};
    *written = (struct written){0};
    assert_int_equal(image_plan_add(&written->plan, &built.process, 0, LAYOUT_IMAGE, &findings), 0);
    assert_int_equal(written->plan.image_count, 1);
    written->image = written->plan.images;
    write_planned(written);
    elf_version(EV_CURRENT);
    written->elf = elf_memory((char *)written->bytes, written->size);
    assert_non_null(written->elf);
}

static void release(struct written *written)
{
    elf_end(written->elf);
    free(written->bytes);
    image_plan_free(&written->plan);
}

static Elf_Scn *find_section(const struct written *written, const char *name, GElf_Shdr *shdr)
{
    size_t strings;
    assert_int_equal(elf_getshdrstrndx(written->elf, &strings), 0);
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(written->elf, scn));) {
        assert_ptr_equal(gelf_getshdr(scn, shdr), shdr);
        if (strcmp(elf_strptr(written->elf, strings, shdr->sh_name), name) == 0)
            return scn;
    }
    fail_msg("no section %s", name);
    return NULL;
}

/* Every visible function's bytes, or zeros where they are unknown, at its address minus the base. */
static void assert_code(const struct written *written)
{
    static const uint8_t zeros[PAGE];
    for (size_t i = 0; i < written->image->function_count; i++) {
        const struct jit_function *here = function(written->image->functions[i]);
        uint64_t offset = here->addr - written->image->base;
        assert_true(offset + here->size <= written->size);
        assert_memory_equal(written->bytes + offset, here->code ? here->code : zeros, here->size);
    }
}

/* A null symbol, then one local FUNC symbol for each function, by address. */
static void assert_symbols(const struct written *written)
{
    GElf_Shdr shdr, text_shdr, strings_shdr;
    size_t count = written->image->function_count, text, strings;
    text = elf_ndxscn(find_section(written, ".text", &text_shdr));
    strings = elf_ndxscn(find_section(written, ".strtab", &strings_shdr));
    Elf_Data *data = elf_getdata(find_section(written, ".symtab", &shdr), NULL);
    assert_int_equal(shdr.sh_type, SHT_SYMTAB);
    assert_int_equal(shdr.sh_info, count + 1); /* all are local */
    assert_int_equal(shdr.sh_link, strings);
    assert_int_equal(shdr.sh_size, (count + 1) * shdr.sh_entsize);
    for (size_t i = 0; i <= count; i++) {
        GElf_Sym sym;
        assert_ptr_equal(gelf_getsym(data, (int)i, &sym), &sym);
        if (i == 0) {
            assert_int_equal(sym.st_info + sym.st_shndx + sym.st_value + sym.st_name, 0);
            continue;
        }
        const struct jit_function *here = function(written->image->functions[i - 1]);
        assert_int_equal(sym.st_info, GELF_ST_INFO(STB_LOCAL, STT_FUNC));
        assert_int_equal(sym.st_shndx, text);
        assert_int_equal(sym.st_value, here->addr - written->image->base);
        assert_int_equal(sym.st_size, here->size);
        assert_string_equal(elf_strptr(written->elf, strings, sym.st_name), here->name);
    }
}

/* Offset and virtual address of all that is loaded are one; the first PT_LOAD starts at 0, the last one is the text. */
static void assert_segments(const struct written *written)
{
    size_t count, notes = 0;
    GElf_Phdr phdr, first = {0}, last = {0};
    assert_int_equal(elf_getphdrnum(written->elf, &count), 0);
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(gelf_getphdr(written->elf, (int)i, &phdr), &phdr);
        assert_int_equal(phdr.p_vaddr, phdr.p_offset);
        assert_int_equal(phdr.p_filesz, phdr.p_memsz);
        assert_true(phdr.p_offset + phdr.p_filesz <= written->size);
        notes += phdr.p_type == PT_NOTE;
        if (phdr.p_type != PT_LOAD)
            continue;
        assert_true(phdr.p_offset >= last.p_offset + last.p_filesz);
        assert_int_equal(phdr.p_align, PAGE);
        first = last.p_type == PT_LOAD ? first : phdr;
        last = phdr;
    }
    assert_int_equal(first.p_vaddr, 0);
    assert_int_equal(first.p_flags, PF_R);
    assert_int_equal(last.p_vaddr, written->image->text_start);
    assert_int_equal(last.p_memsz, written->image->text_end - written->image->text_start);
    assert_int_equal(last.p_flags, PF_R | PF_X);
    assert_int_equal(notes, 1);
}

static void assert_build_id(const struct written *written)
{
    GElf_Shdr shdr;
    GElf_Nhdr nhdr;
    size_t name, descriptor;
    find_section(written, ".note.gnu.build-id", &shdr);
    assert_int_equal(shdr.sh_type, SHT_NOTE);
    if (shdr.sh_flags & SHF_ALLOC)
        assert_int_equal(shdr.sh_addr, shdr.sh_offset);
    Elf_Data *data =
        elf_getdata_rawchunk(written->elf, (int64_t)shdr.sh_offset, shdr.sh_size, ELF_T_NHDR);
    assert_non_null(data);
    assert_true(gelf_getnote(data, 0, &nhdr, &name, &descriptor) > 0);
    assert_int_equal(nhdr.n_type, NT_GNU_BUILD_ID);
    assert_int_equal(nhdr.n_descsz, IMAGE_BUILD_ID_BYTES);
    assert_string_equal((const char *)data->d_buf + name, "GNU");
    assert_memory_equal((const char *)data->d_buf + descriptor, written->image->build_id,
                        IMAGE_BUILD_ID_BYTES);
}

static void assert_text_section(const struct written *written)
{
    GElf_Shdr shdr;
    find_section(written, ".text", &shdr);
    assert_int_equal(shdr.sh_type, SHT_PROGBITS);
    assert_int_equal(shdr.sh_flags, SHF_ALLOC | SHF_EXECINSTR);
    assert_int_equal(shdr.sh_addr, written->image->text_start);
    assert_int_equal(shdr.sh_offset, written->image->text_start);
    assert_int_equal(shdr.sh_size, written->image->text_end - written->image->text_start);
}

static void assert_sound(const struct written *written)
{
    assert_text_section(written);
    assert_code(written);
    assert_symbols(written);
    assert_segments(written);
    assert_build_id(written);
}

/* ---- The tests ---- */

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
    assert_int_equal(written.image->function_count, 1);
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
    function(1)->visible = false;
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
    function(add_visible(ADDR - 48, 32))->generation = 1;
    assert_int_equal(image_plan_add(&plan, &built.process, 0, LAYOUT_APART, &findings), 0);
    for (size_t i = 0; i < plan.image_count; i++) {
        struct written written = {.image = &plan.images[i]};
        write_planned(&written);
        assert_code(&written);
        free(written.bytes);
    }
    assert_true(plan.images[plan.image_count - 1].text_start < PAGE);
    assert_true(plan.images[plan.image_count - 1].function_count == 2);
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
    assert_int_equal(image_plan_add(&plan, &built.process, 0, LAYOUT_IMAGE, &findings), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int result = elf_image_write(plan.images, &built.process, 7, dir_fd, NULL, &findings);
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
    assert_int_equal(elf_image_write(written.image, &built.process, 7, dir_fd, NULL, &findings),
                     -1);
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
