/* See losses.h. */
#include "injector/recording/losses.h"

#include "injector/recording/perf_data/perf_format.h"
#include "injector/text/plural.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { AUX_TRUNCATED = 1 };

/* What others write may be any number: a sum does not wrap. */
static void add(uint64_t *sum, uint64_t count)
{
    *sum = count > UINT64_MAX - *sum ? UINT64_MAX : *sum + count;
}

void losses_take(struct losses *losses, uint32_t type, uint16_t misc, const uint8_t *at,
                 size_t bytes)
{
    struct byte_cursor cursor = byte_cursor_over(at, bytes, false);
    switch (type) {
    case PERF_RECORD_SAMPLE:
        losses->taken++;
        return;
    case PERF_RECORD_LOST:
        cursor_skip(&cursor, 8);
        add(&losses->records, cursor_u64(&cursor));
        return;
    case PERF_RECORD_LOST_SAMPLES:
        if (!(misc & PERF_MISC_LOST_BY_FILTER))
            add(&losses->samples, cursor_u64(&cursor));
        return;
    case PERF_RECORD_AUX:
        cursor_skip(&cursor, 16);
        losses->traces += cursor_u64(&cursor) & AUX_TRUNCATED;
        return;
    default:
        return;
    }
}

bool losses_any(const struct losses *losses)
{
    return losses->records || losses->samples || losses->traces;
}

uint64_t losses_samples(const struct losses *losses)
{
    return losses->samples > losses->records ? losses->samples : losses->records;
}

double losses_share(const struct losses *losses)
{
    double lost = (double)losses_samples(losses);
    return lost > 0 ? lost / (lost + (double)losses->taken) : 0;
}

static void append(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* To TEXT, which has room for SIZE bytes. */
static void append(char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

/* With the names of the records, as perf report -D and perf report --stats show them. */
void losses_text(const struct losses *losses, char *text, size_t size)
{
    uint64_t lost = losses_samples(losses);
    text[0] = '\0';
    if (lost)
        append(text, size, "perf lost %s%" PRIu64 " sample%s, %.1f %% of all (",
               losses->records > losses->samples ? "up to " : "", lost, plural(lost),
               100 * losses_share(losses));
    if (losses->samples)
        append(text, size, "LOST_SAMPLES %" PRIu64 "%s", losses->samples,
               losses->records ? ", " : ")");
    if (losses->records)
        append(text, size, "LOST %" PRIu64 ")", losses->records);
    if (losses->traces)
        append(text, size, "%s%" PRIu64 " part%s of processor traces",
               lost ? ", and " : "perf lost ", losses->traces, plural(losses->traces));
    append(
        text, size,
        ": the machine was too busy, or the buffer too small; a lower -F, a larger -m, or -g fp, "
        "helps");
}
