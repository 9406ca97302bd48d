/* See kernel_code.h. */
#include "injector/recording/kernel_code.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/recording/perf_data/perf_format.h"
#include "jitdump/format/byte_cursor.h"

#include <stdlib.h>
#include <string.h>

/* Ranges that are looked at for one address: those of a kernel do not overlap, but for code that
 * was elsewhere at other times. */
enum { MOST_RANGES = 4096 };

int kernel_code_take(struct kernel_code *code, const struct perf_file *file,
                     const struct perf_record *record)
{
    struct byte_cursor cursor = byte_cursor_over(record->bytes, record->size, false);
    struct kernel_code_event event = {.at.number = record->number};
    cursor_skip(&cursor, PERF_RECORD_HEADER_BYTES);
    event.start = cursor_u64(&cursor);
    uint32_t len = cursor_u32(&cursor);
    cursor_skip(&cursor, 2); /* the kind of code */
    uint16_t flags = cursor_u16(&cursor);
    if (cursor.failed || len == 0 || event.start > UINT64_MAX - len)
        return 0;
    event.end = event.start + len;
    const char *name = (const char *)record->bytes + PERF_KSYMBOL_BYTES;
    if (!memchr(name, '\0', record->size - PERF_KSYMBOL_BYTES))
        return 0;
    event.name = flags & PERF_KSYMBOL_UNREGISTER ? NULL : name;
    perf_record_time(file, record, &event.at.time_ns);
    if (array_reserve(code->items, code->count, code->capacity))
        return -1;
    code->items[code->count++] = event;
    return 0;
}

static int compare_ranges(const struct kernel_code_event *a, const struct kernel_code_event *b)
{
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->end < b->end ? -1 : a->end > b->end;
}

static int compare(const void *left, const void *right)
{
    const struct kernel_code_event *a = left, *b = right;
    int order = compare_ranges(a, b);
    return order ? order : life_moment_compare(a->at, b->at);
}

void kernel_code_order(struct kernel_code *code)
{
    uint64_t most_end = 0;
    if (code->count)
        qsort(code->items, code->count, sizeof *code->items, compare);
    for (size_t i = 0; i < code->count; i++) {
        most_end = code->items[i].end > most_end ? code->items[i].end : most_end;
        code->items[i].most_end = most_end;
    }
}

/* The last event of ITEM's range up to MOMENT; NULL: there is none.  *FIRST is set to the first of
 * the range. */
static const struct kernel_code_event *last_of_range(const struct kernel_code *code,
                                                     const struct kernel_code_event *item,
                                                     struct life_moment moment, size_t *first)
{
    struct kernel_code_event wanted = {.start = item->start, .end = item->end, .at = moment};
    size_t behind;
    array_bisect(*first, code->count, compare_ranges(&code->items[*first], &wanted) < 0);
    array_bisect(behind, code->count, compare(&code->items[behind], &wanted) <= 0);
    return behind > *first ? &code->items[behind - 1] : NULL;
}

/* Of all ranges that have PC the last event counts: code whose end was not recorded has ended where
 * other code lies over it. */
size_t kernel_code_at(const struct kernel_code *code, uint64_t pc, struct life_moment moment)
{
    const struct kernel_code_event *last = NULL;
    size_t behind;
    array_bisect(behind, code->count, code->items[behind].start <= pc);
    for (unsigned i = 0; behind && i < MOST_RANGES; i++) {
        const struct kernel_code_event *item = &code->items[behind - 1];
        if (item->most_end <= pc)
            break;
        const struct kernel_code_event *found = last_of_range(code, item, moment, &behind);
        if (pc < item->end && found && (!last || life_moment_before(last->at, found->at)))
            last = found;
    }
    return last && last->name ? (size_t)(last - code->items) : NO_KERNEL_CODE;
}

void kernel_code_free(struct kernel_code *code)
{
    free(code->items);
    *code = (struct kernel_code){0};
}
