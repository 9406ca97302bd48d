/* The code of an image written before it is planned: whoever opens the file must not find out. */
#include "injector/inject/image/elf_image.h"
#include "injector/inject/image/image_name.h"
#include "injector/inject/layout/image_plan_by_name.h"

#include "tests/unit/process_builder.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

enum { ADDR = 0x40000123, FUNCTIONS = 3000, FUNCTION_BYTES = 1000, STEP = 1024 };

#define FAR_ADDR UINT64_C(0x7f0000000040)

static struct process_builder built;
static uint8_t *code;

/* FUNCTIONS functions, all of which a sample could hit. */
static int begin(void **state)
{
    (void)state;
    process_begin(&built);
    code = malloc(FUNCTIONS * (size_t)FUNCTION_BYTES);
    assert_non_null(code);
    for (size_t i = 0; i < FUNCTIONS * (size_t)FUNCTION_BYTES; i++)
        code[i] = (uint8_t)(i * 2654435761u >> 24);
    return 0;
}

static int end(void **state)
{
    (void)state;
    process_free(&built);
    free(code);
    return 0;
}

static struct jit_function *function(uint32_t index)
{
    return &built.process.log.functions[index];
}

static uint32_t add(uint64_t addr, const uint8_t *bytes, uint64_t size)
{
    uint32_t index = build_load(&built, 1, addr, size);
    function(index)->code = bytes;
    built.states[index].visible = true;
    return index;
}

static void add_all(void)
{
    for (uint32_t i = 0; i < FUNCTIONS; i++)
        add(ADDR + i * (uint64_t)STEP, code + i * (size_t)FUNCTION_BYTES, FUNCTION_BYTES);
}

static bool has_two_processors(void)
{
    return sysconf(_SC_NPROCESSORS_ONLN) > 1;
}

static int new_directory(void)
{
    static int number;
    char path[64];
    snprintf(path, sizeof path, "%s/%d", scratch, number++);
    assert_int_equal(mkdir(path, 0700), 0);
    int fd = open(path, O_RDONLY | O_DIRECTORY);
    assert_true(fd >= 0);
    return fd;
}

static size_t count_files(int dir_fd)
{
    size_t count = 0;
    DIR *stream = fdopendir(openat(dir_fd, ".", O_RDONLY | O_DIRECTORY));
    assert_non_null(stream);
    for (struct dirent *entry; (entry = readdir(stream));)
        count += entry->d_name[0] != '.';
    closedir(stream);
    return count;
}

static bool by_name; /* images are planned so */

static void start(struct image_draft *draft, int dir_fd)
{
    const struct jit_processes processes = {.items = &built.process, .count = 1};
    image_draft_begin(draft, &processes, dir_fd, by_name);
}

struct file {
    char name[IMAGE_FILE_NAME_BYTES];
    uint8_t *bytes;
    size_t size;
};

static void read_file(struct file *file, int dir_fd)
{
    int fd = openat(dir_fd, file->name, O_RDONLY);
    assert_true(fd >= 0);
    file->size = (size_t)lseek(fd, 0, SEEK_END);
    file->bytes = malloc(file->size);
    assert_non_null(file->bytes);
    assert_int_equal(pread(fd, file->bytes, file->size, 0), file->size);
    close(fd);
}

/* Each function's code, or nothing, is where its image has it. */
static void assert_code(const struct file *file, const struct jit_image *image)
{
    for (size_t i = 0; i < image->body_count; i++) {
        const struct jit_function *here = image->bodies[i].function;
        uint64_t offset = image->bodies[i].offset;
        assert_true(offset + here->size <= file->size);
        if (here->code)
            assert_memory_equal(file->bytes + offset, here->code, here->size);
    }
}

/* Write image number INDEX of the plan, perhaps from DRAFT, and read it. */
static void write_image(struct file *file, size_t index, int dir_fd, struct image_draft *draft)
{
    struct image_plan plan = {0};
    struct findings findings = {0};
    const struct timeline timeline = built_timeline(&built);
    if (by_name)
        assert_int_equal(
            image_plan_by_name(&plan, &built.process, &timeline, 1, ROWS_NAME, &findings), 0);
    else
        assert_int_equal(image_plan_add(&plan, &built.process, &timeline, LAYOUT_IMAGE, &findings),
                         0);
    assert_true(index < plan.image_count);
    struct jit_image *image = &plan.images[index];
    if (elf_image_write(image, &built.process, index, dir_fd, draft, &findings))
        fail_msg("%s", findings.failure);
    image_file_name(image, &built.process, index, file->name);
    read_file(file, dir_fd);
    assert_code(file, image);
    image_plan_free(&plan);
}

/* Image number INDEX, for which DRAFT may be, is the file that it is without one.  TAKEN: it is. */
static void assert_same_file(size_t index, int dir_fd, struct image_draft *draft, bool taken)
{
    struct file with, without;
    int other_fd = new_directory();
    write_image(&with, index, dir_fd, draft);
    assert_int_equal(count_files(dir_fd), draft->process ? 2 : 1);
    assert_true(!taken || !has_two_processors() ||
                !(draft->process || atomic_load(&draft->failed)));
    image_draft_end(draft);
    assert_int_equal(count_files(dir_fd), 1);
    write_image(&without, index, other_fd, NULL);
    assert_string_equal(with.name, without.name);
    assert_int_equal(with.size, without.size);
    assert_memory_equal(with.bytes, without.bytes, with.size);
    free(with.bytes);
    free(without.bytes);
    close(other_fd);
    close(dir_fd);
}

/* The same of a draft of what was added, image number 0. */
static void assert_drafted(bool taken)
{
    struct image_draft draft;
    int dir_fd = new_directory();
    start(&draft, dir_fd);
    assert_same_file(0, dir_fd, &draft, taken);
}

static void test_image_takes_it(void **state)
{
    struct image_draft draft;
    int dir_fd = new_directory();
    (void)state;
    add_all();
    start(&draft, dir_fd);
    assert_true(!has_two_processors() || image_draft_is_of(&draft, &built.process));
    assert_same_file(0, dir_fd, &draft, true);
}

static void test_image_by_name_takes_it(void **state)
{
    by_name = true;
    test_image_takes_it(state);
    by_name = false;
}

/* Then their bodies stand elsewhere than in memory. */
static void test_two_of_one_name(void **state)
{
    struct image_draft draft;
    int dir_fd = new_directory();
    (void)state;
    by_name = true;
    add_all();
    jit_function_set_name(function(FUNCTIONS - 1), function(0)->name, function(0)->name_bytes);
    start(&draft, dir_fd);
    assert_same_file(0, dir_fd, &draft, false);
    by_name = false;
}

static void test_functions_in_any_order(void **state)
{
    (void)state;
    for (uint32_t i = FUNCTIONS; i-- > 0;)
        add(ADDR + i * (uint64_t)STEP, code + i * (size_t)FUNCTION_BYTES, FUNCTION_BYTES);
    assert_drafted(true);
}

static void test_holes_and_functions_without_code(void **state)
{
    (void)state;
    add(ADDR - 64, NULL, 32);
    add_all();
    function(9)->code = NULL;
    add(ADDR + (FUNCTIONS + 100) * (uint64_t)STEP, code, 2 * FUNCTION_BYTES);
    add(ADDR + (FUNCTIONS + 200) * (uint64_t)STEP, NULL, FUNCTION_BYTES);
    uint32_t nothing = add(ADDR + (FUNCTIONS + 300) * (uint64_t)STEP, code, 0); /* in no image */
    built.states[nothing].visible = false;
    assert_drafted(true);
}

/* A function larger than any buffer. */
static void test_one_large_function(void **state)
{
    (void)state;
    add(ADDR - 64, code, 32);
    add(ADDR, code, FUNCTIONS * (uint64_t)FUNCTION_BYTES);
    assert_drafted(true);
}

/* Its headers stand behind its code (image_plan.c, place). */
static void test_none_of_a_function_that_is_alone(void **state)
{
    (void)state;
    add(ADDR, code, FUNCTIONS * (uint64_t)FUNCTION_BYTES);
    assert_drafted(false);
}

static void test_larger_of_two_neighbourhoods(void **state)
{
    (void)state;
    add(FAR_ADDR, code, 5000);
    add_all();
    add(FAR_ADDR + 8192, code, 5000);
    assert_drafted(true);
}

/* An image of the same process that the draft is not of, and then the one that it is of. */
static void test_waits_for_its_image(void **state)
{
    struct image_draft draft;
    struct file file;
    int dir_fd = new_directory();
    (void)state;
    add(0x10000, code, 5000);
    add(0x10000 + (3 << 20), code, 5000); /* large, most of it a hole */
    add_all();
    start(&draft, dir_fd);
    write_image(&file, 0, dir_fd, &draft);
    assert_true(!has_two_processors() || image_draft_is_of(&draft, &built.process));
    assert_int_equal(unlinkat(dir_fd, file.name, 0), 0);
    free(file.bytes);
    assert_same_file(1, dir_fd, &draft, true);
}

static void test_function_that_no_sample_could_hit(void **state)
{
    struct image_draft draft;
    int dir_fd = new_directory();
    (void)state;
    add_all();
    start(&draft, dir_fd);
    built.states[17].visible = false;
    assert_same_file(0, dir_fd, &draft, false);
}

/* A neighbourhood ends where it gets too long, even if two functions share addresses there.  The
 * child's and the parent's, which are in one dump, make as many in the same place as the parent's
 * alone. */
static void test_other_functions_in_the_same_place(void **state)
{
    const uint64_t step = UINT64_C(16) << 20, first = 0x40000000, next = first + 63 * step;
    const uint64_t large_bytes = FUNCTIONS * (uint64_t)FUNCTION_BYTES - 100;
    (void)state;
    for (uint64_t addr = first; addr <= next; addr += step)
        built.states[add(addr, code, 64)].visible = false; /* the child's */
    uint64_t last = first + (UINT64_C(1) << 30) - 1000;
    built.states[add(last - step / 2, code, 64)].visible = false;
    add(last, code + 77, 32);
    built.states[add(last, code, large_bytes)].visible = false;
    add(last + large_bytes, code, 100);
    assert_drafted(false);
}

/* A draft that no image can take any more leaves its space to them. */
static void test_is_removed_as_soon_as_it_is_in_vain(void **state)
{
    struct image_draft draft;
    struct file file;
    int dir_fd = new_directory();
    (void)state;
    add_all();
    start(&draft, dir_fd);
    built.states[17].visible = false;
    write_image(&file, 0, dir_fd, &draft);
    assert_null(draft.process);
    assert_int_equal(count_files(dir_fd), 1);
    free(file.bytes);
    close(dir_fd);
}

static void test_addresses_used_twice(void **state)
{
    struct image_draft draft;
    struct file file;
    int dir_fd = new_directory();
    (void)state;
    add_all();
    uint32_t again = add(ADDR + 4 * (uint64_t)STEP, code, FUNCTION_BYTES);
    built.states[again].generation = 1;
    start(&draft, dir_fd);
    write_image(&file, 0, dir_fd, &draft);
    assert_null(draft.process);
    assert_int_equal(count_files(dir_fd), 1);
    free(file.bytes);
    close(dir_fd);
}

static void assert_no_draft(void)
{
    struct image_draft draft;
    int dir_fd = new_directory();
    start(&draft, dir_fd);
    assert_null(draft.process);
    assert_int_equal(count_files(dir_fd), 0);
    image_draft_end(&draft);
    close(dir_fd);
}

static void test_none_of_little_code(void **state)
{
    (void)state;
    assert_no_draft();
    add(ADDR, code, IMAGE_LARGE_BYTES - 1);
    add(FAR_ADDR, NULL, IMAGE_LARGE_BYTES);
    assert_no_draft();
}

static void test_none_where_code_moves_or_goes(void **state)
{
    (void)state;
    add_all();
    built.process.log.move_count = 1;
    assert_no_draft();
    built.process.log.move_count = 0;
    built.process.log.unload_count = 1;
    assert_no_draft();
    built.process.log.unload_count = 0;
}

static void test_nobody_takes_it(void **state)
{
    struct image_draft draft;
    int dir_fd = new_directory();
    (void)state;
    add_all();
    start(&draft, dir_fd);
    image_draft_end(&draft);
    assert_int_equal(count_files(dir_fd), 0);
    image_draft_end(&draft);
    close(dir_fd);
}

static void test_not_of_another_process(void **state)
{
    struct image_draft draft;
    struct process_builder other;
    int dir_fd = new_directory();
    (void)state;
    process_begin(&other);
    add_all();
    start(&draft, dir_fd);
    assert_false(image_draft_is_of(&draft, &other.process));
    image_draft_end(&draft);
    process_free(&other);
    close(dir_fd);
}

/* The disk was full; then there was room. */
static void test_that_could_not_be_written(void **state)
{
    struct rlimit before, small = {1 << 20, RLIM_INFINITY};
    struct image_draft draft;
    int dir_fd = new_directory();
    (void)state;
    add_all();
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    start(&draft, dir_fd);
    if (draft.process)
        side_thread_join(&draft.thread);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    if (draft.process) { /* as it is when the thread has been waited for */
        assert_true(draft.failed);
        free(draft.order);
        draft.order = NULL;
    }
    assert_same_file(0, dir_fd, &draft, false);
}

static void test_in_a_directory_that_is_not_there(void **state)
{
    struct image_draft draft;
    (void)state;
    add_all();
    start(&draft, -1);
    assert_null(draft.process);
}

#define DRAFT_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DRAFT_TEST(test_image_takes_it),
        DRAFT_TEST(test_image_by_name_takes_it),
        DRAFT_TEST(test_two_of_one_name),
        DRAFT_TEST(test_functions_in_any_order),
        DRAFT_TEST(test_holes_and_functions_without_code),
        DRAFT_TEST(test_one_large_function),
        DRAFT_TEST(test_none_of_a_function_that_is_alone),
        DRAFT_TEST(test_larger_of_two_neighbourhoods),
        DRAFT_TEST(test_waits_for_its_image),
        DRAFT_TEST(test_function_that_no_sample_could_hit),
        DRAFT_TEST(test_other_functions_in_the_same_place),
        DRAFT_TEST(test_is_removed_as_soon_as_it_is_in_vain),
        DRAFT_TEST(test_addresses_used_twice),
        DRAFT_TEST(test_none_of_little_code),
        DRAFT_TEST(test_none_where_code_moves_or_goes),
        DRAFT_TEST(test_nobody_takes_it),
        DRAFT_TEST(test_not_of_another_process),
        DRAFT_TEST(test_that_could_not_be_written),
        DRAFT_TEST(test_in_a_directory_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
