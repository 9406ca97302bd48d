/* See line_survey.h. */
#include "injector/check/line_survey.h"

#include "injector/array.h"

#include <string.h>

/* What V8 and LLVM add to each address: where perf's ELF files had the code until perf 5.8 began to add it itself.  A table alone
 * shows it by entries behind its function's end; that no table of a dump begins with its function shows it, too. */
enum { BIAS_BYTES = 0x40, ENOUGH_TABLES = 3 };

/* Where the address of an entry may be: a last one may close the table, at the end. */
static bool is_inside(const struct jit_load *load, uint64_t addr)
{
    return addr >= load->code_addr && addr - load->code_addr <= load->code_size;
}

/* ---- Lines ---- */

struct line_count {
    uint64_t entries, outside, outside_less_bias;
    bool broken;
    bool begins_late; /* the bias fits in front of the first entry */
};

static struct line_count count_lines(const struct jit_debug_info *info, const struct jit_load *load)
{
    struct line_count count = {0};
    struct jit_debug_entry entry;
    size_t at = 0;
    for (uint64_t i = 0; i < info->nr_entry; i++) {
        count.broken = !jit_debug_entry_next(info, &at, &entry);
        if (count.broken)
            return count;
        if (count.entries++ == 0)
            count.begins_late =
                entry.addr >= BIAS_BYTES && entry.addr - BIAS_BYTES >= load->code_addr;
        count.outside += !is_inside(load, entry.addr);
        count.outside_less_bias +=
            entry.addr < BIAS_BYTES || !is_inside(load, entry.addr - BIAS_BYTES);
    }
    return count;
}

static void settle_lines(struct line_survey *lines, const struct jit_debug_info *info,
                         const struct jit_load *load)
{
    struct dump_survey *survey = lines->survey;
    struct line_count count = count_lines(info, load);
    bool biased = count.outside > 0 && count.outside_less_bias == 0;
    survey->with_lines++;
    survey->lines += count.entries;
    survey->lines_broken += count.broken;
    survey->lines_biased += biased;
    survey->lines_outside += biased ? 0 : count.outside;
    lines->begin_late += count.begins_late || count.entries == 0;
    lines->outside_less_bias += count.outside_less_bias;
}

/* ---- Inlined calls ---- */

static void settle_inlines(struct dump_survey *survey, const struct jit_inline_info *info,
                           const struct jit_load *load)
{
    survey->with_inlines++;
    survey->inlines += info->nr_inline;
    survey->spans += info->nr_span;
    for (uint32_t i = 0; i < info->nr_span; i++) {
        struct jit_inline_span span;
        jit_inline_span_at(info, i, &span);
        survey->inlines_outside += span.code_offset >= load->code_size;
    }
}

/* ---- Which belongs to which ---- */

/* The index that ADDR has in MAP, which it loses; false: it has none. */
static bool take_index(struct address_map *map, uint64_t addr, uint32_t *index)
{
    struct address_place place;
    const struct address_range *range = address_map_find(map, addr, &place);
    if (!range || range->start > addr)
        return false;
    *index = range->value;
    return address_map_clear(map, addr, addr + 1) == 0;
}

static int add_debug_info(struct line_survey *lines, const struct jit_debug_info *info)
{
    struct jit_debug_info *pending =
        array_room(lines->pending, lines->pending_count, &lines->pending_capacity, sizeof *pending);
    uint32_t replaced;
    if (!pending)
        return -1;
    lines->pending = pending;
    if (info->code_addr == UINT64_MAX) {
        lines->survey->lines_homeless++;
        return 0;
    }
    lines->survey->lines_homeless += take_index(&lines->debug_at, info->code_addr, &replaced);
    pending[lines->pending_count] = *info;
    return address_map_set(&lines->debug_at, info->code_addr, info->code_addr + 1,
                           (uint32_t)lines->pending_count++);
}

static int add_inline_info(struct line_survey *lines, const struct jit_inline_info *info)
{
    struct jit_inline_info *inlines =
        array_room(lines->inlines, lines->inline_count, &lines->inline_capacity, sizeof *inlines);
    uint32_t replaced;
    if (!inlines)
        return -1;
    lines->inlines = inlines;
    if (info->code_addr == UINT64_MAX) {
        lines->survey->inlines_homeless++;
        return 0;
    }
    lines->survey->inlines_homeless += take_index(&lines->inline_at, info->code_addr, &replaced);
    inlines[lines->inline_count] = *info;
    return address_map_set(&lines->inline_at, info->code_addr, info->code_addr + 1,
                           (uint32_t)lines->inline_count++);
}

int line_survey_add(struct line_survey *lines, const struct jit_record *record)
{
    uint32_t index;
    if (record->broken)
        return 0;
    if (record->id == JIT_CODE_DEBUG_INFO)
        return add_debug_info(lines, &record->debug_info);
    if (record->id == JIT_CODE_INLINE_INFO)
        return add_inline_info(lines, &record->inline_info);
    if (record->id != JIT_CODE_LOAD)
        return 0;
    const struct jit_load *load = &record->load;
    if (take_index(&lines->debug_at, load->code_addr, &index))
        settle_lines(lines, &lines->pending[index], load);
    if (take_index(&lines->inline_at, load->code_addr, &index))
        settle_inlines(lines->survey, &lines->inlines[index], load);
    return 0;
}

static uint64_t ranges(const struct address_map *map)
{
    uint64_t count = 0;
    struct address_place place;
    for (const struct address_range *range = address_map_find(map, 0, &place); range;
         range = address_map_next(map, &place))
        count++;
    return count;
}

void line_survey_end(struct line_survey *lines)
{
    struct dump_survey *survey = lines->survey;
    if (survey->with_lines >= ENOUGH_TABLES && lines->begin_late == survey->with_lines) {
        survey->lines_biased = survey->with_lines;
        survey->lines_outside = lines->outside_less_bias;
    }
    lines->survey->lines_homeless += ranges(&lines->debug_at);
    lines->survey->inlines_homeless += ranges(&lines->inline_at);
    address_map_free(&lines->debug_at);
    address_map_free(&lines->inline_at);
    free(lines->pending);
    free(lines->inlines);
    memset(lines, 0, sizeof *lines);
}
