/* See perf_sample.h. */
#include "injector/recording/perf_data/perf_sample.h"

#include "injector/recording/perf_data/perf_format.h"

#define BRANCH_HW_INDEX (UINT64_C(1) << 17)
#define BRANCH_COUNTERS (UINT64_C(1) << 19)

enum { BRANCH_BYTES = 24 };

uint32_t perf_sample_event(const struct perf_file *file, const struct perf_record *record)
{
    size_t at = file->sample_id_at;
    uint32_t event = 0;
    if (at && record->size >= at + 8)
        perf_file_event_of(file, perf_get_u64(record->bytes + at), &event);
    return event;
}

/* ---- Parts ---- */

/* COUNT things of BYTES each; more than there can be is a failure of CURSOR. */
static const uint8_t *take(struct byte_cursor *cursor, uint64_t count, size_t bytes)
{
    return cursor_bytes(cursor,
                        count <= cursor_left(cursor) / bytes ? (size_t)count * bytes : SIZE_MAX);
}

static void read_times(struct byte_cursor *cursor, uint64_t read_format,
                       struct sample_counts *counts)
{
    if (read_format & PERF_READ_ENABLED)
        counts->enabled_ns = cursor_u64(cursor);
    if (read_format & PERF_READ_RUNNING)
        counts->running_ns = cursor_u64(cursor);
}

/* For an event alone the times stand behind its value, not in front. */
static struct sample_counts read_counts(struct byte_cursor *cursor,
                                        const struct sample_format *format)
{
    const uint64_t read_format = format->read_format;
    const bool has_id = read_format & PERF_READ_ID, has_lost = read_format & PERF_READ_LOST;
    struct sample_counts counts = {.value_bytes = 8u + (has_id ? 8 : 0) + (has_lost ? 8 : 0),
                                   .grouped = read_format & PERF_READ_GROUP};
    const uint8_t *behind_value;
    if (counts.grouped) {
        uint64_t count = cursor_u64(cursor);
        read_times(cursor, read_format, &counts);
        counts.values = take(cursor, count, counts.value_bytes);
        counts.count = counts.values ? (size_t)count : 0;
        behind_value = counts.values ? counts.values + 8 : NULL;
    } else {
        counts.values = cursor_bytes(cursor, 8);
        counts.count = counts.values ? 1 : 0;
        read_times(cursor, read_format, &counts);
        behind_value = cursor_bytes(cursor, counts.value_bytes - 8);
    }
    counts.ids = has_id ? behind_value : NULL;
    counts.lost = has_lost && behind_value ? behind_value + (has_id ? 8 : 0) : NULL;
    return counts;
}

/* Whose the addresses behind MARK are. */
static unsigned mode_behind(uint64_t mark)
{
    switch (mark) {
    case PERF_CONTEXT_HYPERVISOR:
        return PERF_MISC_HYPERVISOR;
    case PERF_CONTEXT_KERNEL:
        return PERF_MISC_KERNEL;
    case PERF_CONTEXT_USER:
        return PERF_MISC_USER;
    case PERF_CONTEXT_GUEST:
    case PERF_CONTEXT_GUEST_KERNEL:
        return PERF_MISC_GUEST_KERNEL;
    case PERF_CONTEXT_GUEST_USER:
        return PERF_MISC_GUEST_USER;
    default:
        return 0;
    }
}

static bool is_unknown_mark(uint64_t entry)
{
    return entry >= PERF_CONTEXT_LOWEST && !mode_behind(entry) &&
           entry != PERF_CONTEXT_USER_DEFERRED;
}

/* A frame pointer of all ones, for one, leaves such a mark.  perf shows no caller of that chain. */
static struct sample_chain read_chain(struct byte_cursor *cursor,
                                      const struct sample_format *format)
{
    uint64_t count = cursor_u64(cursor);
    const uint8_t *entries = take(cursor, count, 8);
    (void)format;
    for (size_t i = 0; entries && i < count; i++)
        if (is_unknown_mark(perf_get_u64(entries + 8 * i)))
            return (struct sample_chain){0};
    return (struct sample_chain){entries, entries ? (size_t)count : 0};
}

static struct sample_bytes read_raw(struct byte_cursor *cursor, const struct sample_format *format)
{
    uint32_t size = cursor_u32(cursor);
    const uint8_t *bytes = cursor_bytes(cursor, size);
    (void)format;
    return (struct sample_bytes){bytes, bytes ? size : 0};
}

static struct sample_branches read_branches(struct byte_cursor *cursor,
                                            const struct sample_format *format)
{
    const uint64_t type = format->branch_sample_type;
    uint64_t count = cursor_u64(cursor);
    struct sample_branches branches = {.hw_idx = type & BRANCH_HW_INDEX ? cursor_u64(cursor) : 0};
    branches.entries = take(cursor, count, BRANCH_BYTES);
    if (type & BRANCH_COUNTERS)
        branches.counters = take(cursor, count, 8);
    branches.count = cursor->failed ? 0 : (size_t)count;
    return branches;
}

static struct sample_registers read_registers(struct byte_cursor *cursor, uint64_t mask)
{
    struct sample_registers registers = {.abi = cursor_u64(cursor), .mask = mask};
    if (registers.abi != SAMPLE_ABI_NONE)
        registers.values = take(cursor, (uint64_t)__builtin_popcountll(mask), 8);
    return registers;
}

static struct sample_registers read_user_registers(struct byte_cursor *cursor,
                                                   const struct sample_format *format)
{
    return read_registers(cursor, format->user_registers);
}

static struct sample_registers read_interrupt_registers(struct byte_cursor *cursor,
                                                        const struct sample_format *format)
{
    return read_registers(cursor, format->interrupt_registers);
}

/* A field that says that more of the copy is the stack than there is of the copy is wrong. */
static struct sample_stack read_user_stack(struct byte_cursor *cursor,
                                           const struct sample_format *format)
{
    uint64_t size = cursor_u64(cursor);
    (void)format;
    if (size == 0)
        return (struct sample_stack){0};
    struct sample_stack stack = {.bytes = take(cursor, size, 1)};
    uint64_t used = cursor_u64(cursor);
    stack.size = used <= size ? (size_t)used : 0;
    stack.cut = used == size;
    return stack;
}

static struct sample_bytes read_aux(struct byte_cursor *cursor, const struct sample_format *format)
{
    uint64_t size = cursor_u64(cursor);
    const uint8_t *bytes = take(cursor, size, 1);
    (void)format;
    return (struct sample_bytes){bytes, bytes ? (size_t)size : 0};
}

/* ---- All fields ---- */

/* Read FIELD; returns its bit. */
static inline uint64_t read_field(struct perf_sample *sample, struct byte_cursor *cursor,
                                  enum sample_field field)
{
    switch (field) {
#define READ_WORD(bit, name, member)                                                               \
    case SAMPLE_##name:                                                                            \
        sample->member = cursor_u64(cursor);                                                       \
        return PERF_SAMPLE_##name;
#define READ_PAIR(bit, name, first, second)                                                        \
    case SAMPLE_##name:                                                                            \
        sample->first = cursor_u32(cursor);                                                        \
        sample->second = cursor_u32(cursor);                                                       \
        return PERF_SAMPLE_##name;
#define READ_PART(bit, name, member)                                                               \
    case SAMPLE_##name:                                                                            \
        sample->member = read_##member(cursor, sample->format);                                    \
        return PERF_SAMPLE_##name;
        PERF_SAMPLE_TABLE(READ_WORD, READ_PAIR, READ_PART)
#undef READ_WORD
#undef READ_PAIR
#undef READ_PART
    default:
        return 0;
    }
}

static void take_off_cpu(struct perf_sample *sample)
{
    struct byte_cursor cursor = byte_cursor_over(sample->raw.bytes, sample->raw.size, false);
    uint32_t pid = cursor_u32(&cursor), tid = cursor_u32(&cursor);
    uint64_t period = cursor_u64(&cursor);
    if (cursor.failed)
        return;
    sample->pid = pid;
    sample->tid = tid;
    sample->period = period;
    sample->chain = read_chain(&cursor, sample->format);
    sample->has |= PERF_SAMPLE_TID | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_IP;
    sample->ip = 0;
    sample->mode = PERF_MISC_USER;
    for (size_t i = 0; i < sample->chain.count; i++) {
        sample->ip = perf_get_u64(sample->chain.entries + 8 * i);
        if (sample->ip < PERF_CONTEXT_LOWEST)
            break;
        sample->mode = sample->ip == PERF_CONTEXT_KERNEL ? PERF_MISC_KERNEL : PERF_MISC_USER;
        sample->ip = 0;
    }
    sample->user_registers = sample->interrupt_registers = (struct sample_registers){0};
    sample->user_stack = (struct sample_stack){0};
}

bool perf_sample_read(struct perf_sample *sample, const struct sample_format *format,
                      const struct perf_record *record, enum sample_field last)
{
    struct byte_cursor cursor = byte_cursor_over(record->bytes, record->size, false);
    size_t i = 0;
    *sample = (struct perf_sample){
        .record = record, .format = format, .mode = record->misc & PERF_MISC_CPUMODE_MASK};
    if (format->off_cpu && last < SAMPLE_RAW)
        last = SAMPLE_RAW;
    cursor_skip(&cursor, PERF_RECORD_HEADER_BYTES);
    for (; i < format->field_count && format->fields[i] <= last && !cursor.failed; i++) {
        sample->places[i] = (uint16_t)cursor.offset;
        uint64_t bit = read_field(sample, &cursor, (enum sample_field)format->fields[i]);
        sample->has |= cursor.failed ? 0 : bit;
    }
    sample->places[i] = (uint16_t)cursor.offset;
    if (format->off_cpu && sample->has & PERF_SAMPLE_RAW)
        take_off_cpu(sample);
    return !cursor.failed;
}

bool perf_sample_read_stack(struct perf_sample *sample, const struct sample_format *format,
                            const struct perf_record *record)
{
    return perf_sample_read(sample, format, record,
                            sample_type_has_stack(format->sample_type) ? SAMPLE_STACK_USER
                                                                       : SAMPLE_BRANCH_STACK);
}

bool perf_sample_is_broken(const struct sample_format *format, const struct perf_record *record)
{
    struct perf_sample sample;
    const size_t end = format->simple_end;
    if (!end || format->off_cpu)
        return !perf_sample_read_stack(&sample, format, record);
    return record->size < end || (format->fields[format->field_count - 1] == SAMPLE_CALLCHAIN &&
                                  perf_get_u64(record->bytes + end - 8) > (record->size - end) / 8);
}

/* ---- Whose a sample is ---- */

/* Read RECORD into *SAMPLE if it is one of a thread that waited. */
static bool read_off_cpu(const struct perf_file *file, const struct perf_record *record,
                         struct perf_sample *sample)
{
    if (!file->has_off_cpu || record->type != PERF_RECORD_SAMPLE)
        return false;
    const struct sample_format *format = &file->events[perf_sample_event(file, record)].format;
    return format->off_cpu && perf_sample_read(sample, format, record, SAMPLE_RAW);
}

unsigned perf_record_sample_mode(const struct perf_file *file, const struct perf_record *record)
{
    struct perf_sample sample;
    return read_off_cpu(file, record, &sample) ? sample.mode
                                               : record->misc & PERF_MISC_CPUMODE_MASK;
}

bool perf_record_sample_place(const struct perf_file *file, const struct perf_record *record,
                              struct sample_place *place)
{
    struct perf_sample sample;
    const struct sample_format *format;
    uint64_t ids;
    *place = (struct sample_place){.mode = record->misc & PERF_MISC_CPUMODE_MASK};
    if (record->type != PERF_RECORD_SAMPLE || !(format = perf_record_format(file, record)))
        return false;
    place->has_time = perf_record_front_of(format, record, SAMPLE_TIME, &place->time_ns);
    if (read_off_cpu(file, record, &sample)) {
        place->pid = sample.pid;
        place->tid = sample.tid;
        place->ip = sample.ip;
        place->mode = sample.mode;
        return place->has_ip = true;
    }
    if (!perf_record_front_of(format, record, SAMPLE_TID, &ids))
        return false;
    place->pid = (uint32_t)ids;
    place->tid = (uint32_t)(ids >> 32);
    place->has_ip = perf_record_front_of(format, record, SAMPLE_IP, &place->ip);
    return true;
}

bool perf_record_sample(const struct perf_file *file, const struct perf_record *record,
                        uint32_t *pid, uint64_t *ip)
{
    struct sample_place place;
    if (!perf_record_sample_place(file, record, &place) || (ip && !place.has_ip))
        return false;
    *pid = place.pid;
    if (ip)
        *ip = place.ip;
    return true;
}

bool perf_record_sample_thread(const struct perf_file *file, const struct perf_record *record,
                               uint32_t *pid, uint32_t *tid)
{
    struct sample_place place;
    if (!perf_record_sample_place(file, record, &place))
        return false;
    *pid = place.pid;
    *tid = place.tid;
    return true;
}

unsigned perf_sample_mode(const struct perf_sample *sample)
{
    return sample->mode;
}

static uint64_t entry_of(const struct perf_sample *sample, size_t index)
{
    return perf_get_u64(sample->chain.entries + 8 * index);
}

size_t perf_sample_user_entry(const struct perf_sample *sample)
{
    size_t count = 0;
    for (; count < sample->chain.count; count++) {
        uint64_t entry = entry_of(sample, count);
        if (entry == PERF_CONTEXT_USER || entry == PERF_CONTEXT_USER_DEFERRED)
            break;
    }
    return count;
}

/* ---- Stacks ---- */

struct stack_reading stack_reading_begin(const struct perf_sample *sample)
{
    return (struct stack_reading){.sample = sample, .mode = PERF_MISC_USER, .marked = true};
}

/* The user's part of a chain whose calls are branches: the function that was called last, then the
 * places of the calls. */
static bool next_call(struct stack_reading *reading, struct stack_address *address)
{
    const struct perf_sample *sample = reading->sample;
    const struct sample_branches *branches = &sample->branches;
    const uint8_t *call =
        branches->entries + BRANCH_BYTES * (reading->branch ? reading->branch - 1 : 0);
    if (reading->branch > branches->count)
        return false;
    *address = (struct stack_address){.mode = PERF_MISC_USER};
    if (reading->branch)
        address->ip = perf_get_u64(call);
    else {
        address->ip = perf_get_u64(call + 8);
        address->seen = reading->next < sample->chain.count ? entry_of(sample, reading->next) : 0;
    }
    reading->branch++;
    return true;
}

static bool next_entry(struct stack_reading *reading, struct stack_address *address)
{
    const struct perf_sample *sample = reading->sample;
    if (reading->branch)
        return next_call(reading, address);
    while (reading->next < sample->chain.count) {
        uint64_t entry = entry_of(sample, reading->next++);
        if (entry < PERF_CONTEXT_LOWEST) {
            *address = (struct stack_address){entry, reading->mode, !reading->marked, 0};
            reading->marked = false;
            return true;
        }
        reading->mode = mode_behind(entry);
        reading->marked = true;
        if (entry == PERF_CONTEXT_USER && sample->branches.count &&
            sample_format_has_calls(sample->format))
            return next_call(reading, address);
        if (entry == PERF_CONTEXT_USER_DEFERRED)
            reading->next = sample->chain.count; /* the cookie is no address */
    }
    return false;
}

bool stack_reading_next(struct stack_reading *reading, struct stack_address *address)
{
    const struct perf_sample *sample = reading->sample;
    if (!next_entry(reading, address))
        return false;
    if (!reading->begun && (sample->has & PERF_SAMPLE_IP) &&
        address->mode == perf_sample_mode(sample))
        address->seen = sample->ip;
    reading->begun = true;
    return true;
}

bool stack_reading_in_user_callers(const struct stack_reading *reading)
{
    return reading->mode == PERF_MISC_USER && !reading->marked && !reading->branch;
}

size_t perf_sample_place(const struct perf_sample *sample, enum sample_field field)
{
    size_t i = 0;
    while (i < sample->format->field_count && sample->format->fields[i] < field)
        i++;
    return sample->places[i];
}

bool perf_sample_id_read(struct perf_sample *sample, const struct perf_file *file,
                         const struct perf_record *record)
{
    const struct sample_format *format;
    const uint8_t *trailer = perf_record_trailer(file, record, &format);
    if (!trailer)
        return false;
    *sample = (struct perf_sample){.record = record, .format = format};
    struct byte_cursor cursor = byte_cursor_over(trailer, format->id_bytes, false);
    for (size_t i = 0; i < format->id_bytes / 8; i++)
        sample->has |= read_field(sample, &cursor, (enum sample_field)format->id_fields[i]);
    return true;
}

/* ---- Writing ---- */

static void put_field(const struct perf_sample *sample, enum sample_field field,
                      struct byte_sink *sink)
{
    switch (field) {
#define PUT_WORD(bit, name, member)                                                                \
    case SAMPLE_##name:                                                                            \
        sink_u64(sink, sample->member);                                                            \
        return;
#define PUT_PAIR(bit, name, first, second)                                                         \
    case SAMPLE_##name:                                                                            \
        sink_u32(sink, sample->first);                                                             \
        sink_u32(sink, sample->second);                                                            \
        return;
#define NO_PART(bit, name, member)
        PERF_SAMPLE_TABLE(PUT_WORD, PUT_PAIR, NO_PART)
#undef PUT_WORD
#undef PUT_PAIR
#undef NO_PART
    default:
        return;
    }
}

void perf_sample_put_front(const struct perf_sample *sample, const struct sample_format *format,
                           struct byte_sink *sink)
{
    for (size_t i = 0; i < format->field_count && format->fields[i] < SAMPLE_FRONT_FIELDS; i++)
        put_field(sample, (enum sample_field)format->fields[i], sink);
}

void perf_sample_put_id(const struct perf_sample *sample, const struct sample_format *format,
                        struct byte_sink *sink)
{
    for (size_t i = 0; i < format->id_bytes / 8; i++)
        put_field(sample, (enum sample_field)format->id_fields[i], sink);
}
