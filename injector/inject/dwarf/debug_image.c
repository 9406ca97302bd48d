/* See debug_image.h. */
#include "injector/inject/dwarf/debug_image.h"

#include "injector/log/lines/code_lines.h"

#include <inttypes.h>

enum { UNIT_FUNCTIONS = 512 };

const char *const debug_section_names[DEBUG_SECTIONS] = {
    [DEBUG_LINE] = ".debug_line",       [DEBUG_INFO] = ".debug_info",
    [DEBUG_ABBREV] = ".debug_abbrev",   [DEBUG_STR] = ".debug_str",
    [DEBUG_ARANGES] = ".debug_aranges", [DEBUG_RANGES] = ".debug_ranges",
};

static bool is_known(const struct jit_image *image)
{
    for (size_t i = 0; i < image->body_count; i++)
        if (image->bodies[i].function->lines)
            return true;
    return false;
}

static int put_functions(struct debug_tree *tree, const struct jit_image *image,
                         const struct jit_process *processes)
{
    struct line_table table = {0};
    char name[64];
    size_t in_unit = 0, last = 0;
    int result = 0;
    if (image->process == NO_PROCESS)
        snprintf(name, sizeof name, "JIT code");
    else
        snprintf(name, sizeof name, "JIT code of process %" PRIu32, processes[image->process].pid);
    for (size_t i = 0; i < image->body_count && !result; i++) {
        const struct jit_function *function = image->bodies[i].function;
        if (!function->lines)
            continue;
        if (in_unit == 0)
            debug_tree_begin_unit(tree, name);
        result = code_lines_decode(function->lines, function->size, &table);
        if (image->no_inlined_calls)
            table.inline_count = table.span_count = 0;
        if (!result)
            debug_tree_put_function(tree, function->name, image->bodies[i].offset, function->size,
                                    &table, last + 1 == i);
        last = i;
        if (++in_unit == UNIT_FUNCTIONS) {
            debug_tree_end_unit(tree);
            in_unit = 0;
        }
    }
    if (in_unit)
        debug_tree_end_unit(tree);
    line_table_free(&table);
    return result;
}

int debug_image_make(struct debug_image *debug, const struct jit_image *image,
                     const struct jit_process *processes, uint8_t address_bytes, bool big_endian)
{
    struct debug_tree *tree = &debug->tree;
    *debug = (struct debug_image){0};
    if (!is_known(image))
        return 0;
    debug_tree_open(tree, address_bytes, big_endian);
    if (put_functions(tree, image, processes) || debug_tree_close(tree))
        return -1;
    debug->sections[DEBUG_LINE] = &tree->lines.section;
    debug->sections[DEBUG_INFO] = &tree->info;
    debug->sections[DEBUG_ABBREV] = &tree->abbrev;
    debug->sections[DEBUG_STR] = &tree->strings.section;
    debug->sections[DEBUG_ARANGES] = &tree->aranges;
    debug->sections[DEBUG_RANGES] = &tree->ranges;
    return 0;
}

void debug_image_free(struct debug_image *debug)
{
    debug_tree_free(&debug->tree);
}
