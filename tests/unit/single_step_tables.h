/* The unwind tables that perfjit makes of a dump, as elfutils sees them.
 *
 *     dump -> code_log_read -> timeline_play -> image_plan_add -> unwind_tables_place ->
 * elf_image_write
 *          -> libelf, dwarf_getcfi_elf
 *          -> dwfl_report_elf, dwfl_module_eh_cfi, dwfl_module_addrname
 *
 * That is what perfjit inject does; the times of the samples are those of the steps.
 */
#ifndef PERFJIT_TEST_SINGLE_STEP_TABLES_H
#define PERFJIT_TEST_SINGLE_STEP_TABLES_H

#include "injector/history/timeline/timeline.h"
#include "injector/inject/image/elf_image.h"
#include "injector/inject/image/image_name.h"
#include "injector/inject/image/unwind_table.h"
#include "injector/log/code/log_reader.h"
#include "jitdump/cfi.h"
#include "tests/unit/scratch.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

struct tables_image {
    int fd;
    Elf *elf;
    Dwarf_CFI *cfi;
    Dwfl *dwfl;
    Dwfl_Module *module;
    Dwarf_CFI *dwfl_cfi;
    Dwarf_Addr bias; /* of dwfl_cfi */
};

struct tables {
    struct findings findings;
    struct jit_dump dump;
    char *dump_path;
    char directory[64]; /* of the ELF files */
    struct jit_process process;
    struct timeline timeline;
    struct image_plan plan;
    struct tables_image *images;
    Dwarf_Frame ***frames; /* by function, by offset; NULL: not asked for so far */
};

/* ---- Making the files ---- */

static inline void tables_check(struct tables *tables, int result)
{
    if (result)
        fail_msg("%s", tables->findings.failure);
}

static inline void tables_read(struct tables *tables)
{
    struct jit_clock clock = {.cycles = false};
    struct code_log *log = &tables->process.log;
    char cause[256];
    if (jit_dump_open(&tables->dump, tables->dump_path, cause, sizeof cause))
        fail_msg("%s: %s", tables->dump_path, cause);
    tables->process.pid = tables->dump.pid;
    tables->process.dumps = &tables->dump;
    tables->process.dump_paths = &tables->dump_path;
    tables->process.dump_count = 1;
    tables_check(tables, code_log_read(log, &tables->dump, 0, &clock, true, &tables->findings));
    tables_check(tables, code_log_sort(log, &tables->findings));
}

static inline void tables_plan(struct tables *tables, enum image_layout layout)
{
    tables_check(tables, image_plan_add(&tables->plan, &tables->process, &tables->timeline, layout,
                                        &tables->findings));
    assert_true(tables->process.log.has_unwinding);
    tables_check(tables,
                 unwind_tables_place(&tables->plan, &tables->process, 0, &tables->findings));
}

/* ---- Opening them ---- */

static inline int tables_no_debuginfo(Dwfl_Module *module, void **data, const char *name,
                                      Dwarf_Addr base, const char *path, const char *link,
                                      GElf_Word crc, char **found)
{
    (void)module, (void)data, (void)name, (void)base, (void)path, (void)link, (void)crc;
    (void)found;
    return -1;
}

static const Dwfl_Callbacks tables_callbacks = {.find_debuginfo = tables_no_debuginfo};

static inline void tables_report(struct tables_image *opened, const struct jit_image *image,
                                 const char *path)
{
    opened->dwfl = dwfl_begin(&tables_callbacks);
    assert_non_null(opened->dwfl);
    dwfl_report_begin(opened->dwfl);
    opened->module = dwfl_report_elf(opened->dwfl, path, path, -1, image->base, false);
    if (!opened->module)
        fail_msg("dwfl_report_elf(%s): %s", path, dwfl_errmsg(-1));
    dwfl_report_end(opened->dwfl, NULL, NULL);
    opened->dwfl_cfi = dwfl_module_eh_cfi(opened->module, &opened->bias);
    if (!opened->dwfl_cfi)
        fail_msg("dwfl_module_eh_cfi(%s): %s", path, dwfl_errmsg(-1));
    assert_int_equal(opened->bias, image->base);
}

static inline void tables_open_image(struct tables *tables, size_t index, int dir_fd)
{
    struct jit_image *image = &tables->plan.images[index];
    struct tables_image *opened = &tables->images[index];
    char name[IMAGE_FILE_NAME_BYTES], path[256];
    tables_check(tables,
                 elf_image_write(image, &tables->process, index, dir_fd, &tables->findings));
    image_file_name(image, &tables->process, index, name);
    snprintf(path, sizeof path, "%s/%s", tables->directory, name);
    opened->fd = open(path, O_RDONLY | O_CLOEXEC);
    opened->elf = elf_begin(opened->fd, ELF_C_READ, NULL);
    assert_non_null(opened->elf);
    opened->cfi = dwarf_getcfi_elf(opened->elf);
    if (!opened->cfi)
        fail_msg("dwarf_getcfi_elf(%s): %s", path, dwarf_errmsg(-1));
    tables_report(opened, image, path);
}

/* The tables of the dump DUMP_NAME in the scratch directory, for COUNT steps at TIMES_NS. */
static inline void tables_open(struct tables *tables, const char *dump_name,
                               const uint64_t *times_ns, size_t count, enum image_layout layout)
{
    static int number;
    *tables = (struct tables){0};
    if (asprintf(&tables->dump_path, "%s/%s", scratch, dump_name) < 0)
        abort();
    tables_read(tables);
    tables_check(tables, timeline_play(&tables->timeline, &tables->process, NULL, NULL, times_ns,
                                       count, &tables->findings));
    tables_plan(tables, layout);
    snprintf(tables->directory, sizeof tables->directory, "%s/%d", scratch, number++);
    assert_int_equal(mkdir(tables->directory, 0700), 0);
    int dir_fd = open(tables->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    elf_version(EV_CURRENT);
    tables->images = calloc(tables->plan.image_count, sizeof *tables->images);
    tables->frames = calloc(tables->timeline.log->function_count, sizeof(Dwarf_Frame **));
    assert_true(tables->images && tables->frames);
    for (size_t i = 0; i < tables->plan.image_count; i++)
        tables_open_image(tables, i, dir_fd);
    close(dir_fd);
    if (findings_lost(&tables->findings)) {
        findings_print(&tables->findings, stderr);
        fail_msg("perfjit would lose parts of the dump");
    }
}

static inline void tables_close_images(struct tables *tables)
{
    for (size_t i = 0; i < tables->plan.image_count; i++) {
        struct tables_image *image = &tables->images[i];
        dwarf_cfi_end(image->cfi);
        elf_end(image->elf);
        close(image->fd);
        dwfl_end(image->dwfl);
    }
    free(tables->images);
}

static inline void tables_close(struct tables *tables)
{
    const struct code_log *log = tables->timeline.log;
    for (size_t i = 0; i < log->function_count; i++) {
        for (size_t at = 0; tables->frames[i] && at < log->functions[i].size; at++)
            free(tables->frames[i][at]);
        free(tables->frames[i]);
    }
    free(tables->frames);
    tables_close_images(tables);
    image_plan_free(&tables->plan);
    timeline_free(&tables->timeline);
    code_log_free(&tables->process.log);
    jit_dump_close(&tables->dump);
    findings_free(&tables->findings);
    free(tables->dump_path);
}

/* ---- What they say about one instruction ---- */

static inline bool same_ops(const Dwarf_Op *left, size_t left_count, const Dwarf_Op *right,
                            size_t right_count)
{
    if (left_count != right_count || (left == NULL) != (right == NULL))
        return false;
    for (size_t i = 0; i < left_count; i++)
        if (left[i].atom != right[i].atom || left[i].number != right[i].number ||
            left[i].number2 != right[i].number2)
            return false;
    return true;
}

static inline bool same_frames(Dwarf_Frame *left, Dwarf_Frame *right, unsigned last_register)
{
    Dwarf_Op *left_ops, *right_ops, left_memory[3], right_memory[3];
    size_t left_count, right_count;
    if (dwarf_frame_cfa(left, &left_ops, &left_count) ||
        dwarf_frame_cfa(right, &right_ops, &right_count) ||
        !same_ops(left_ops, left_count, right_ops, right_count))
        return false;
    for (int reg = 0; reg <= (int)last_register; reg++)
        if (dwarf_frame_register(left, reg, left_memory, &left_ops, &left_count) ||
            dwarf_frame_register(right, reg, right_memory, &right_ops, &right_count) ||
            !same_ops(left_ops, left_count, right_ops, right_count))
            return false;
    return true;
}

/* libdwfl, which perf goes by, must know the same about RIP in FUNCTION. */
static inline void tables_check_dwfl(const struct tables *tables, Dwarf_Frame *frame,
                                     const struct tables_image *image,
                                     const struct jit_function *function, uint64_t rip)
{
    unsigned last_register = tables->dump.elf_mach == EM_AARCH64 ? JITDUMP_D15 : JITDUMP_RIP;
    Dwarf_Frame *other;
    if (dwarf_cfi_addrframe(image->dwfl_cfi, rip - image->bias, &other))
        fail_msg("%s+0x%" PRIx64 ": dwfl: %s", function->name, rip - function->addr,
                 dwarf_errmsg(-1));
    if (!same_frames(frame, other, last_register))
        fail_msg("%s+0x%" PRIx64 ": libdwfl finds another frame", function->name,
                 rip - function->addr);
    free(other);
    const char *name = dwfl_module_addrname(image->module, rip);
    assert_non_null(name);
    assert_string_equal(name, function->name);
}

/* How to unwind from RIP, which is in function INDEX.  *FIRST is set if this is the first question
 * about it. */
static inline Dwarf_Frame *tables_frame(struct tables *tables, uint32_t index, uint64_t rip,
                                        bool *first)
{
    const struct jit_function *function = &tables->timeline.log->functions[index];
    const uint32_t number = tables->plan.processes[0].places[index].image;
    const struct tables_image *image = &tables->images[number];
    Dwarf_Frame ***frames = &tables->frames[index];
    if (!*frames)
        *frames = calloc(function->size, sizeof **frames);
    assert_non_null(*frames);
    Dwarf_Frame **frame = &(*frames)[rip - function->addr];
    *first = !*frame;
    if (*frame)
        return *frame;
    uint64_t base = tables->plan.images[number].base;
    if (dwarf_cfi_addrframe(image->cfi, rip - base, frame))
        fail_msg("%s+0x%" PRIx64 ": %s", function->name, rip - function->addr, dwarf_errmsg(-1));
    tables_check_dwfl(tables, *frame, image, function, rip);
    return *frame;
}

#endif
