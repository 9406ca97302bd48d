/* See chain_records.h; the format stands in sample_format.h and perf_format.h. */
#include "injector/unwind/stacks/chain_records.h"

#include "injector/recording/perf_data/event_names.h"
#include "injector/recording/perf_data/perf_format.h"

#include <stdlib.h>
#include <string.h>

enum { SIZE_AT = 6 };

#define ATTR_EXCLUDE_CALLCHAIN_USER (UINT64_C(1) << 22)

/* ---- Samples ---- */

static void put_chain(const struct user_stacks *stacks, const struct perf_sample *sample,
                      uint32_t chain, struct byte_sink *sink)
{
    const struct chain_node *nodes = stacks->tree.nodes;
    bool unwound = sample_type_has_stack(sample->format->sample_type);
    size_t kernel_count = unwound ? perf_sample_user_entry(sample) : 0;
    uint64_t count = chain ? nodes[chain].length + UINT64_C(1) : 0;
    sink_u64(sink, unwound ? kernel_count + count : nodes[chain].length);
    if (kernel_count)
        sink_bytes(sink, sample->chain.entries, 8 * kernel_count);
    if (unwound && count)
        sink_u64(sink, PERF_CONTEXT_USER);
    for (; chain; chain = nodes[chain].caller)
        sink_u64(sink, nodes[chain].ip);
}

/* What stands in front of the chain; FIRST: where the sample was taken, or 0. */
static void put_front(const struct perf_sample *sample, uint64_t first, struct byte_sink *sink)
{
    const size_t start = sink->size, ip = perf_sample_place(sample, SAMPLE_IP);
    sink_bytes(sink, sample->record->bytes, perf_sample_place(sample, SAMPLE_CALLCHAIN));
    if (first && (sample->has & PERF_SAMPLE_IP) && !sink->overflow)
        perf_put_u64(sink->data + start + ip, first);
}

/* Returns false if it has no room: a record's size is a u16. */
static bool put_sample(const struct user_stacks *stacks, const struct perf_sample *sample,
                       uint32_t chain, uint64_t first, struct byte_sink *sink)
{
    const struct perf_record *record = sample->record;
    size_t start = sink->size, behind_chain = perf_sample_place(sample, SAMPLE_BEHIND_CALLCHAIN);
    put_front(sample, first, sink);
    put_chain(stacks, sample, chain, sink);
    if (sample_type_has_stack(sample->format->sample_type)) {
        size_t registers = perf_sample_place(sample, SAMPLE_REGS_USER);
        sink_bytes(sink, record->bytes + behind_chain, registers - behind_chain);
        behind_chain = perf_sample_place(sample, SAMPLE_BEHIND_STACK);
    }
    sink_bytes(sink, record->bytes + behind_chain, record->size - behind_chain);
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
    struct perf_sample sample;
    if (record->type != PERF_RECORD_SAMPLE)
        return 0;
    const struct perf_file *file = stacks->source.records->file;
    const struct sample_format *format = &file->events[perf_sample_event(file, record)].format;
    if (!user_stacks_want(stacks, format))
        return 0;
    const bool is_known = stacks->next < stacks->count;
    const uint64_t first = is_known ? stacks->firsts[stacks->next] : 0;
    uint32_t chain = is_known ? stacks->chains[stacks->next++] : 0;
    if (!chain && !sample_type_has_stack(format->sample_type))
        return 0;
    if (!perf_sample_read_stack(&sample, format, record))
        return -1; /* which has been reported */
    return put_sample(stacks, &sample, chain, first, sink) ? 1 : -1;
}

/* ---- Attributes ---- */

static uint64_t new_sample_type(uint64_t type)
{
    return (type | PERF_SAMPLE_CALLCHAIN) &
           ~(uint64_t)(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER);
}

void chain_attribute_change(uint8_t *attr, size_t size)
{
    uint64_t type = perf_get_u64(attr + PERF_ATTR_SAMPLE_TYPE);
    uint64_t flags = perf_get_u64(attr + PERF_ATTR_FLAGS);
    perf_put_u64(attr + PERF_ATTR_SAMPLE_TYPE, new_sample_type(type));
    perf_put_u64(attr + PERF_ATTR_FLAGS, flags & ~ATTR_EXCLUDE_CALLCHAIN_USER);
    if (size >= PERF_ATTR_STACK_USER + 4) {
        struct byte_sink fields = byte_sink_over(attr + PERF_ATTR_REGS_USER, 12);
        sink_zeros(&fields, 12);
    }
    /* The limit of the kernel's chains is none of those that were unwound. */
    if (size >= PERF_ATTR_MAX_STACK + 2) {
        struct byte_sink field = byte_sink_over(attr + PERF_ATTR_MAX_STACK, 2);
        sink_u16(&field, UINT16_MAX);
    }
}

/* Change the attributes of EVENT_DESC in COPY, as far as they are sound. */
static void change_event_desc(const struct perf_file *file, const struct perf_feature *feature,
                              uint8_t *copy)
{
    struct event_names names = event_names_begin(&file->features);
    struct event_entry entry;
    while (names.attr_bytes >= PERF_ATTR_MIN_BYTES && event_names_entry(&names, &entry))
        if (sample_type_has_stack(perf_get_u64(entry.attr + PERF_ATTR_SAMPLE_TYPE)))
            chain_attribute_change(copy + (entry.attr - feature->bytes), names.attr_bytes);
}

int chain_features_set(struct perf_file *file, struct memory_file *memory)
{
    const struct perf_feature *feature =
        perf_features_find(&file->features, PERF_FEATURE_EVENT_DESC);
    if (!feature)
        return 0;
    if (memory_file_add(memory, feature->bytes, feature->size))
        return -1;
    change_event_desc(file, feature, memory->data);
    perf_features_set(&file->features, PERF_FEATURE_EVENT_DESC, memory->data, memory->size);
    return 0;
}
