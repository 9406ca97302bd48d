/* A sample of a thread that waited, whose RAW a BPF program wrote: read as far as one of the
 * fields, with other fields around it.
 *
 *     1 byte    bits 0 to 4 fields that the event has beside IP, TID, TIME, PERIOD and RAW
 *     1 byte    the last field that is read
 *     1 byte    misc
 *               the record, behind its header
 */
#include "injector/recording/cut_chains.h"
#include "injector/recording/perf_data/perf_format.h"
#include "tests/fuzz/fuzz_target.h"

#include <string.h>

enum { HEAD_BYTES = 3, OTHERS = 5 };

static const uint64_t others[OTHERS] = {
    PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_READ, PERF_SAMPLE_IDENTIFIER,
    PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER, PERF_SAMPLE_BRANCH_STACK};

static struct sample_format format_of(uint8_t bits)
{
    struct sample_format format = {.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                                  PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD |
                                                  PERF_SAMPLE_RAW,
                                   .user_registers = 0x107,
                                   .off_cpu = true};
    for (size_t i = 0; i < OTHERS; i++)
        if (bits >> i & 1)
            format.sample_type |= others[i];
    sample_format_lay_out(&format);
    return format;
}

static bool is_inside(const struct perf_record *record, const uint8_t *bytes, size_t count)
{
    return count == 0 || (bytes >= record->bytes && bytes + count <= record->bytes + record->size);
}

static void look(const struct perf_sample *sample)
{
    const struct perf_record *record = sample->record;
    const size_t count = sample->chain.count;
    promise(is_inside(record, sample->raw.bytes, sample->raw.size), "RAW is in the record");
    promise(count <= record->size / 8 && is_inside(record, sample->chain.entries, 8 * count),
            "the chain is in the record");
    if (!(sample->has & PERF_SAMPLE_RAW) || sample->raw.size < 16)
        return;
    promise(sample->ip < PERF_CONTEXT_LOWEST, "an address is no mark");
    promise(!sample->user_registers.values && !sample->user_stack.bytes,
            "registers of another thread are left out");
    promise(perf_sample_mode(sample) == PERF_MISC_USER ||
                perf_sample_mode(sample) == PERF_MISC_KERNEL,
            "it waited somewhere");
    promise(sample->period == perf_get_u64(sample->raw.bytes + 8), "the period is how long");
    promise(!cut_chains_may_be(sample), "BPF's chains have another limit");
}

/* What the whole file's readers say is the same. */
static void ask(const struct perf_file *file, const struct perf_record *record)
{
    struct perf_sample sample;
    uint32_t pid, tid;
    uint64_t ip;
    if (!perf_sample_read(&sample, &file->events[0].format, record, SAMPLE_RAW))
        return;
    promise(perf_record_sample(file, record, &pid, &ip) && pid == sample.pid && ip == sample.ip,
            "the same process and address");
    promise(perf_record_sample_thread(file, record, &pid, &tid) && tid == sample.tid,
            "the same thread");
    promise(perf_record_sample_mode(file, record) == perf_sample_mode(&sample), "the same mode");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size < HEAD_BYTES || size - HEAD_BYTES > UINT16_MAX - PERF_RECORD_HEADER_BYTES)
        return 0;
    size_t record_bytes = size - HEAD_BYTES + PERF_RECORD_HEADER_BYTES;
    uint8_t *copy = calloc(record_bytes, 1);
    if (!copy)
        exit(0);
    memcpy(copy + PERF_RECORD_HEADER_BYTES, bytes + HEAD_BYTES, size - HEAD_BYTES);
    struct perf_event event = {.format = format_of(bytes[0]), .off_cpu = true};
    struct perf_file file = {
        .events = &event, .event_count = 1, .one_layout = true, .has_off_cpu = true};
    const struct perf_record record = {.bytes = copy,
                                       .type = PERF_RECORD_SAMPLE,
                                       .misc = bytes[2],
                                       .size = (uint16_t)record_bytes};
    struct perf_sample sample;
    perf_sample_read(&sample, &event.format, &record,
                     (enum sample_field)(bytes[1] % SAMPLE_FIELDS));
    look(&sample);
    ask(&file, &record);
    free(copy);
    return 0;
}
