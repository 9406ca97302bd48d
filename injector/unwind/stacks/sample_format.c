/* See sample_format.h, which has the format. */
#include "injector/unwind/stacks/sample_format.h"

#include "injector/recording/perf_data/perf_format.h"

#include <stdlib.h>

enum {
    ATTR_READ_FORMAT = 32,
    FLAG_INHERIT = 1 << 1,
    ATTR_BRANCH_SAMPLE_TYPE = 72,
    ATTR_REGS_USER = 80,
};

enum { READ_ENABLED = 1, READ_RUNNING = 2, READ_ID = 4, READ_GROUP = 8, READ_LOST = 16 };

#define BRANCH_HW_INDEX       (UINT64_C(1) << 17)
#define BRANCH_COUNTERS       (UINT64_C(1) << 19)
#define CONTEXT_USER          ((uint64_t)-512)
#define CONTEXT_USER_DEFERRED ((uint64_t)-640)

enum { BRANCH_BYTES = 24 };

/* ---- Events ---- */

static uint64_t attr_field(const struct perf_file *file, const struct perf_event *event, size_t at)
{
    if (event->attr.size < at + 8)
        return 0;
    return perf_get_u64(file->data + event->attr.offset + at);
}

static int compare_ids(const void *left, const void *right)
{
    const struct perf_id *a = left, *b = right;
    return a->id < b->id ? -1 : a->id > b->id;
}

static int collect_ids(struct sample_formats *formats)
{
    const struct perf_file *file = formats->file;
    size_t count = 0;
    for (size_t i = 0; i < file->event_count; i++)
        count += (size_t)file->events[i].ids.size / 8;
    formats->ids = calloc(count + 1, sizeof *formats->ids);
    if (!formats->ids)
        return -1;
    for (size_t i = 0; i < file->event_count; i++)
        for (size_t at = 0; at + 8 <= file->events[i].ids.size; at += 8)
            formats->ids[formats->id_count++] = (struct perf_id){
                perf_get_u64(file->data + file->events[i].ids.offset + at), (uint32_t)i};
    qsort(formats->ids, formats->id_count, sizeof *formats->ids, compare_ids);
    return 0;
}

int sample_formats_read(struct sample_formats *formats, const struct perf_file *file)
{
    *formats = (struct sample_formats){.file = file, .by_identifier = true};
    formats->items = calloc(file->event_count + 1, sizeof *formats->items);
    if (!formats->items)
        return -1;
    for (size_t i = 0; i < file->event_count; i++) {
        const struct perf_event *event = &file->events[i];
        formats->items[i] = (struct sample_format){
            event->layout.sample_type, attr_field(file, event, ATTR_READ_FORMAT),
            attr_field(file, event, ATTR_BRANCH_SAMPLE_TYPE),
            attr_field(file, event, ATTR_REGS_USER),
            attr_field(file, event, PERF_ATTR_FLAGS) & FLAG_INHERIT};
        if (!(event->layout.sample_type & PERF_SAMPLE_IDENTIFIER))
            formats->by_identifier = false;
    }
    return file->event_count > 1 ? collect_ids(formats) : 0;
}

bool sample_format_has_stack(const struct sample_format *format)
{
    return (format->sample_type & PERF_SAMPLE_STACK_USER) &&
           (format->sample_type & PERF_SAMPLE_REGS_USER);
}

bool sample_format_has_chain_alone(const struct sample_format *format)
{
    return (format->sample_type & PERF_SAMPLE_CALLCHAIN) && !sample_format_has_stack(format);
}

/* Where a SAMPLE tells its event's id; 0: nowhere.  Where the events do not begin with it they are
 * laid out alike. */
static size_t id_place(const struct sample_formats *formats)
{
    uint64_t type = formats->items[0].sample_type;
    if (formats->by_identifier)
        return PERF_RECORD_HEADER_BYTES;
    if (!(type & PERF_SAMPLE_ID))
        return 0;
    return PERF_RECORD_HEADER_BYTES +
           8 * (size_t)__builtin_popcountll(type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |
                                                    PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                                    PERF_SAMPLE_ADDR));
}

bool sample_formats_event_of(const struct sample_formats *formats, uint64_t id, uint32_t *event)
{
    if (formats->file->event_count == 1) {
        *event = 0;
        return true;
    }
    const struct perf_id wanted = {id, 0};
    const struct perf_id *found =
        formats->id_count
            ? bsearch(&wanted, formats->ids, formats->id_count, sizeof *formats->ids, compare_ids)
            : NULL;
    *event = found ? found->event : 0;
    return found != NULL;
}

const struct sample_format *sample_format_of(const struct sample_formats *formats,
                                             const struct perf_record *record)
{
    size_t at = formats->file->event_count > 1 ? id_place(formats) : 0;
    if (at == 0 || record->size < at + 8)
        return &formats->items[0];
    uint32_t event;
    sample_formats_event_of(formats, perf_get_u64(record->bytes + at), &event);
    return &formats->items[event];
}

void sample_formats_free(struct sample_formats *formats)
{
    free(formats->items);
    free(formats->ids);
    *formats = (struct sample_formats){0};
}

/* ---- Samples ---- */

/* COUNT things of BYTES each; more than there can be is a failure of CURSOR. */
static const uint8_t *take(struct byte_cursor *cursor, uint64_t count, size_t bytes)
{
    return cursor_bytes(cursor,
                        count <= cursor_left(cursor) / bytes ? (size_t)count * bytes : SIZE_MAX);
}

/* Of an event alone the times stand behind its value, not in front; nobody asks for that value. */
static struct sample_counts read_counts(struct byte_cursor *cursor, uint64_t format)
{
    size_t times = (format & READ_ENABLED ? 1 : 0) + (format & READ_RUNNING ? 1 : 0);
    size_t value = 1u + (format & READ_ID ? 1 : 0) + (format & READ_LOST ? 1 : 0);
    uint64_t count = format & READ_GROUP ? cursor_u64(cursor) : 1;
    cursor_skip(cursor, 8 * times);
    const uint8_t *values = take(cursor, count, 8 * value);
    return (struct sample_counts){values, values ? (size_t)count : 0, 8 * value};
}

static void read_chain(struct byte_cursor *cursor, struct user_sample *sample)
{
    uint64_t count = cursor_u64(cursor);
    const uint8_t *entries = take(cursor, count, 8);
    sample->kernel_count = 0;
    while (entries && sample->kernel_count < count) {
        uint64_t entry = perf_get_u64(entries + 8 * sample->kernel_count);
        if (entry == CONTEXT_USER || entry == CONTEXT_USER_DEFERRED)
            break;
        sample->kernel_count++;
    }
}

static void skip_raw(struct byte_cursor *cursor)
{
    uint32_t size = cursor_u32(cursor);
    cursor_skip(cursor, size);
}

static void skip_branches(struct byte_cursor *cursor, uint64_t type)
{
    uint64_t count = cursor_u64(cursor);
    if (type & BRANCH_HW_INDEX)
        cursor_skip(cursor, 8);
    take(cursor, count, BRANCH_BYTES + (type & BRANCH_COUNTERS ? 8 : 0));
}

static void read_registers(struct byte_cursor *cursor, struct user_sample *sample)
{
    sample->abi = cursor_u64(cursor);
    if (sample->abi != USER_ABI_NONE)
        sample->registers =
            take(cursor, (uint64_t)__builtin_popcountll(sample->format->regs_user), 8);
}

static void read_stack(struct byte_cursor *cursor, struct user_sample *sample)
{
    uint64_t size = cursor_u64(cursor);
    if (size == 0)
        return;
    sample->stack = take(cursor, size, 1);
    sample->stack_bytes = cursor_u64(cursor);
    sample->cut = sample->stack_bytes == size;
    if (sample->stack_bytes > size)
        sample->stack_bytes = 0;
}

/* What stands behind PERIOD in RECORD. */
static struct byte_cursor behind_period(const struct perf_record *record, uint64_t type)
{
    struct byte_cursor cursor = byte_cursor_over(record->bytes, record->size, false);
    cursor_skip(&cursor, PERF_RECORD_HEADER_BYTES);
    cursor_skip(&cursor,
                8 * (size_t)__builtin_popcountll(
                        type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
                                PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)));
    return cursor;
}

bool sample_counts_read(struct sample_counts *counts, const struct sample_format *format,
                        const struct perf_record *record)
{
    if (!(format->sample_type & PERF_SAMPLE_READ) || !(format->read_format & READ_GROUP) ||
        !(format->read_format & READ_ID))
        return false;
    struct byte_cursor cursor = behind_period(record, format->sample_type);
    *counts = read_counts(&cursor, format->read_format);
    return !cursor.failed;
}

bool user_sample_read(struct user_sample *sample, const struct sample_format *format,
                      const struct perf_record *record)
{
    uint64_t type = format->sample_type;
    struct byte_cursor cursor = behind_period(record, type);
    *sample = (struct user_sample){.record = record, .format = format};
    if (type & PERF_SAMPLE_READ)
        read_counts(&cursor, format->read_format);
    sample->chain_at = cursor.offset;
    if (type & PERF_SAMPLE_CALLCHAIN)
        read_chain(&cursor, sample);
    sample->chain_end = cursor.offset;
    if (type & PERF_SAMPLE_RAW)
        skip_raw(&cursor);
    if (type & PERF_SAMPLE_BRANCH_STACK)
        skip_branches(&cursor, format->branch_sample_type);
    sample->regs_at = cursor.offset;
    if (sample_format_has_stack(format)) {
        read_registers(&cursor, sample);
        read_stack(&cursor, sample);
    }
    sample->stack_end = cursor.offset;
    return !cursor.failed;
}

size_t user_sample_most_frames(const struct user_sample *sample)
{
    enum { RECORD_MOST_BYTES = 65528, CHAIN_BYTES = 16 }; /* its length, and PERF_CONTEXT_USER */
    size_t kept = sample->chain_at + (sample->regs_at - sample->chain_end) +
                  (sample->record->size - sample->stack_end);
    size_t used = kept + CHAIN_BYTES + 8 * (size_t)sample->kernel_count;
    return used < RECORD_MOST_BYTES ? (RECORD_MOST_BYTES - used) / 8 : 0;
}

bool user_sample_frame(const struct user_sample *sample, const struct machine *machine,
                       struct unwind_frame *frame)
{
    bool has_pc = false;
    size_t index = 0;
    frame->known = 0;
    for (unsigned bit = 0; bit < 64; bit++) {
        if (!(sample->format->regs_user >> bit & 1))
            continue;
        uint64_t value = perf_get_u64(sample->registers + 8 * index++);
        if (bit == machine->perf_pc) {
            frame->pc = value;
            has_pc = true;
        } else if (machine_dwarf_of_perf(machine, bit) != UNWIND_NO_REGISTER) {
            unwind_frame_set(frame, machine->dwarf_of_perf[bit], value);
        }
    }
    if (machine->link_register == UNWIND_NO_REGISTER)
        unwind_frame_set(frame, machine->return_register, frame->pc);
    frame->exact = frame->innermost = true;
    return has_pc && unwind_frame_knows(frame, machine->sp);
}
