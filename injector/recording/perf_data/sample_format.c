/* See sample_format.h. */
#include "injector/recording/perf_data/sample_format.h"

#include "injector/recording/perf_data/perf_format.h"

#define BRANCH_CALL_STACK (UINT64_C(1) << 11)

static const uint64_t bits[SAMPLE_FIELDS] = {
#define ONE_BIT(bit, name, ...) [SAMPLE_##name] = PERF_SAMPLE_##name,
    PERF_SAMPLE_TABLE(ONE_BIT, ONE_BIT, ONE_BIT)
#undef ONE_BIT
};

static void add_id_field(struct sample_format *format, uint64_t type, enum sample_field field)
{
    if (!(type & SAMPLE_ID_FIELDS & bits[field]))
        return;
    if (field == SAMPLE_TIME)
        format->id_time = format->id_bytes;
    format->id_fields[format->id_bytes / 8] = (uint8_t)field;
    format->id_bytes = (uint8_t)(format->id_bytes + 8);
}

static void lay_out_id(struct sample_format *format)
{
    uint64_t type = format->sample_id_all ? format->sample_type : 0;
    for (size_t field = 0; field < SAMPLE_FRONT_FIELDS; field++)
        if (field != SAMPLE_IDENTIFIER)
            add_id_field(format, type, (enum sample_field)field);
    add_id_field(format, type, SAMPLE_IDENTIFIER);
    if (!(type & PERF_SAMPLE_TIME))
        format->id_time = format->id_bytes;
}

static uint8_t simple_end_of(const struct sample_format *format)
{
    size_t count = format->field_count;
    if (count && format->fields[count - 1] == SAMPLE_CALLCHAIN)
        count--;
    return count && format->fields[count - 1] < SAMPLE_FRONT_FIELDS
               ? (uint8_t)(PERF_RECORD_HEADER_BYTES + 8 * format->field_count)
               : 0;
}

void sample_format_lay_out(struct sample_format *format)
{
    uint64_t type = format->sample_type;
    if (type & PERF_SAMPLE_WEIGHT_STRUCT)
        type |= PERF_SAMPLE_WEIGHT;
    format->field_count = format->id_bytes = 0;
    for (size_t field = 0; field < SAMPLE_FIELDS; field++) {
        bool has = type & bits[field];
        if (field < SAMPLE_FRONT_FIELDS)
            format->front[field] =
                has ? (uint8_t)(PERF_RECORD_HEADER_BYTES + 8 * format->field_count) : 0;
        if (has)
            format->fields[format->field_count++] = (uint8_t)field;
    }
    format->simple_end = simple_end_of(format);
    lay_out_id(format);
}

/* 0: a shorter attribute of an older perf. */
static uint64_t field_at(const uint8_t *attr, size_t size, size_t at)
{
    return size < at + 8 ? 0 : perf_get_u64(attr + at);
}

struct sample_format sample_format_of_attr(const uint8_t *attr, size_t size)
{
    uint64_t flags = field_at(attr, size, PERF_ATTR_FLAGS);
    struct sample_format format = {
        .sample_type = field_at(attr, size, PERF_ATTR_SAMPLE_TYPE),
        .read_format = field_at(attr, size, PERF_ATTR_READ_FORMAT),
        .branch_sample_type = field_at(attr, size, PERF_ATTR_BRANCH_SAMPLE_TYPE),
        .user_registers = field_at(attr, size, PERF_ATTR_REGS_USER),
        .interrupt_registers = field_at(attr, size, PERF_ATTR_REGS_INTR),
        /* The upper half of a field of 8 bytes; behind it stands a u16 that is 0. */
        .max_stack = (uint16_t)(field_at(attr, size, PERF_ATTR_MAX_STACK - 4) >> 32),
        .inherits = flags & PERF_ATTR_INHERIT,
        .sample_id_all = flags & PERF_ATTR_SAMPLE_ID_ALL,
    };
    sample_format_lay_out(&format);
    return format;
}

bool sample_type_has_stack(uint64_t sample_type)
{
    return (sample_type & PERF_SAMPLE_STACK_USER) && (sample_type & PERF_SAMPLE_REGS_USER);
}

bool sample_format_has_calls(const struct sample_format *format)
{
    return (format->branch_sample_type & BRANCH_CALL_STACK) &&
           (format->sample_type & PERF_SAMPLE_BRANCH_STACK) &&
           (format->sample_type & PERF_SAMPLE_CALLCHAIN);
}

bool sample_format_has_chain_alone(const struct sample_format *format)
{
    return (format->sample_type & PERF_SAMPLE_CALLCHAIN) &&
           !sample_type_has_stack(format->sample_type) && !sample_format_has_calls(format);
}
