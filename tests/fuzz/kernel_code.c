/* KSYMBOL records: what was where at which moment is what a reader that looks at all of them says.
 *
 * The input is records, each behind a byte for its size and one for its moment. */
#include "injector/recording/kernel_code.h"

#include "injector/recording/perf_data/perf_format.h"
#include "tests/fuzz/fuzz_target.h"

#include <string.h>

enum { HEAD_BYTES = 2, MOST_BYTES = 64 };

/* The last event that has PC up to MOMENT. */
static const char *name_at(const struct kernel_code *code, uint64_t pc, struct life_moment moment)
{
    const struct kernel_code_event *last = NULL;
    for (size_t i = 0; i < code->count; i++) {
        const struct kernel_code_event *event = &code->items[i];
        if (event->start <= pc && pc < event->end && !life_moment_before(moment, event->at) &&
            (!last || life_moment_before(last->at, event->at)))
            last = event;
    }
    return last ? last->name : NULL;
}

static void check(const struct kernel_code *code, uint64_t pc, uint64_t number)
{
    const struct life_moment moment = {0, number};
    size_t found = kernel_code_at(code, pc, moment);
    const char *name = name_at(code, pc, moment);
    promise((found == NO_KERNEL_CODE) == !name, "code is known while it lives");
    promise(found == NO_KERNEL_CODE || code->items[found].name == name, "code has its last name");
    promise(!name || strlen(name) < MOST_BYTES, "a name ends in its record");
}

static int take(struct kernel_code *code, const uint8_t *bytes, size_t size)
{
    static struct perf_event event; /* whose records have no times */
    static const struct perf_file file = {.events = &event, .event_count = 1, .one_layout = true};
    int result = 0;
    for (uint64_t i = 0; !result && size > HEAD_BYTES; i++) {
        size_t taken = bytes[0] % MOST_BYTES;
        taken = taken < size - HEAD_BYTES ? taken : size - HEAD_BYTES;
        const struct perf_record record = {.number = (uint64_t)bytes[1] << 32 | i,
                                           .type = PERF_RECORD_KSYMBOL,
                                           .bytes = bytes + HEAD_BYTES,
                                           .size = (uint16_t)taken};
        result = kernel_code_take(code, &file, &record);
        bytes += HEAD_BYTES + taken;
        size -= HEAD_BYTES + taken;
    }
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct kernel_code code = {0};
    if (!take(&code, bytes, size)) {
        kernel_code_order(&code);
        for (size_t i = 0; i < code.count; i++)
            for (uint64_t moment = 0; moment <= 256; moment += 64) {
                check(&code, code.items[i].start, moment << 32);
                check(&code, code.items[i].start - 1, moment << 32);
                check(&code, code.items[i].end - 1, moment << 32);
                check(&code, code.items[i].end, moment << 32);
            }
    }
    kernel_code_free(&code);
    return 0;
}
