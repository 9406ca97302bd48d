/* See chain_records.h; the format stands in sample_format.h and perf_format.h.
 *
 * EVENT_DESC
 *      0 u32 number of events, 4 u32 bytes of each attribute; then for each
 *        the attribute, u32 number of ids, u32 length and bytes of its name, ids (u64 each)
 */
#include "injector/unwind/stacks/chain_records.h"

#include "injector/recording/perf_data/perf_format.h"

#include <stdlib.h>
#include <string.h>

enum { ATTR_REGS_USER = 80, ATTR_STACK_USER = 88, SIZE_AT = 6 };

#define ATTR_EXCLUDE_CALLCHAIN_USER (UINT64_C(1) << 22)
#define CONTEXT_USER                ((uint64_t)-512)

/* ---- Samples ---- */

static void put_chain(const struct user_stacks *stacks, const struct user_sample *sample,
                      uint32_t chain, struct byte_sink *sink)
{
    const struct chain_node *nodes = stacks->tree.nodes;
    bool unwound = sample_format_has_stack(sample->format);
    uint64_t count = chain ? nodes[chain].length + UINT64_C(1) : 0;
    sink_u64(sink, unwound ? sample->kernel_count + count : nodes[chain].length);
    if (unwound && sample->kernel_count)
        sink_bytes(sink, sample->record->bytes + sample->chain_at + 8,
                   8 * (size_t)sample->kernel_count);
    if (unwound && count)
        sink_u64(sink, CONTEXT_USER);
    for (; chain; chain = nodes[chain].caller)
        sink_u64(sink, nodes[chain].ip);
}

/* Returns false if it has no room: a record's size is a u16. */
static bool put_sample(const struct user_stacks *stacks, const struct user_sample *sample,
                       uint32_t chain, struct byte_sink *sink)
{
    const struct perf_record *record = sample->record;
    size_t start = sink->size;
    sink_bytes(sink, record->bytes, sample->chain_at);
    put_chain(stacks, sample, chain, sink);
    sink_bytes(sink, record->bytes + sample->chain_end, sample->regs_at - sample->chain_end);
    sink_bytes(sink, record->bytes + sample->stack_end, record->size - sample->stack_end);
    size_t size = sink->size - start;
    if (sink->overflow || size > UINT16_MAX)
        return false;
    struct byte_sink field = byte_sink_over(sink->data + start + SIZE_AT, 2);
    sink_u16(&field, (uint16_t)size);
    return true;
}

int chain_record_put(struct user_stacks *stacks, const struct perf_record *record,
                     struct byte_sink *sink)
{
    struct user_sample sample;
    if (record->type != PERF_RECORD_SAMPLE)
        return 0;
    const struct sample_format *format = sample_format_of(&stacks->formats, record);
    if (!user_stacks_want(stacks, format))
        return 0;
    uint32_t chain = stacks->next < stacks->count ? stacks->chains[stacks->next++] : 0;
    if (!chain && !sample_format_has_stack(format))
        return 0;
    if (!user_sample_read(&sample, format, record))
        return -1; /* which has been reported */
    return put_sample(stacks, &sample, chain, sink) ? 1 : -1;
}

/* ---- Attributes ---- */

static uint64_t new_sample_type(uint64_t type)
{
    return (type | PERF_SAMPLE_CALLCHAIN) &
           ~(uint64_t)(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER);
}

/* Change the attribute at ATTR, of SIZE bytes. */
static void change_attribute(uint8_t *attr, size_t size)
{
    uint64_t type = perf_get_u64(attr + PERF_ATTR_SAMPLE_TYPE);
    uint64_t flags = perf_get_u64(attr + PERF_ATTR_FLAGS);
    perf_put_u64(attr + PERF_ATTR_SAMPLE_TYPE, new_sample_type(type));
    perf_put_u64(attr + PERF_ATTR_FLAGS, flags & ~ATTR_EXCLUDE_CALLCHAIN_USER);
    if (size >= ATTR_STACK_USER + 4) {
        struct byte_sink fields = byte_sink_over(attr + ATTR_REGS_USER, 12);
        sink_zeros(&fields, 12);
    }
}

int chain_attributes_patch(const struct user_stacks *stacks, const struct perf_file *file,
                           struct output_file *output, struct findings *findings)
{
    for (size_t i = 0; i < file->event_count; i++) {
        const struct perf_section *section = &file->events[i].attr;
        size_t size = (size_t)section->size;
        if (!sample_format_has_stack(&stacks->formats.items[i]))
            continue;
        uint8_t *attr = malloc(size);
        if (!attr)
            return report_failure(findings, "out of memory");
        memcpy(attr, file->data + section->offset, size);
        change_attribute(attr, size);
        int result = output_file_patch(output, section->offset, attr, size, findings);
        free(attr);
        if (result)
            return -1;
    }
    return 0;
}

/* Change the attributes in the contents of EVENT_DESC at BYTES, as far as they are sound. */
static void change_event_desc(uint8_t *bytes, size_t size)
{
    struct byte_cursor cursor = byte_cursor_over(bytes, size, false);
    uint32_t count = cursor_u32(&cursor), attr_bytes = cursor_u32(&cursor);
    for (uint32_t i = 0; i < count && attr_bytes >= PERF_ATTR_MIN_BYTES; i++) {
        size_t at = cursor.offset;
        cursor_skip(&cursor, attr_bytes);
        uint32_t id_count = cursor_u32(&cursor);
        cursor_skip(&cursor, cursor_u32(&cursor));
        cursor_skip(&cursor, id_count <= size / 8 ? 8 * (size_t)id_count : SIZE_MAX);
        if (cursor.failed)
            return;
        uint64_t type = perf_get_u64(bytes + at + PERF_ATTR_SAMPLE_TYPE);
        const struct sample_format format = {.sample_type = type};
        if (sample_format_has_stack(&format))
            change_attribute(bytes + at, attr_bytes);
    }
}

int chain_features_set(struct perf_file *file, struct memory_file *memory)
{
    const struct perf_feature *feature =
        perf_features_find(&file->features, PERF_FEATURE_EVENT_DESC);
    if (!feature)
        return 0;
    if (memory_file_add(memory, feature->bytes, feature->size))
        return -1;
    change_event_desc(memory->data, memory->size);
    perf_features_set(&file->features, PERF_FEATURE_EVENT_DESC, memory->data, memory->size);
    return 0;
}
