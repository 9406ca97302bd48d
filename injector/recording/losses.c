/* See losses.h. */
#include "injector/recording/losses.h"

#include "injector/recording/perf_data/perf_format.h"
#include "injector/text/plural.h"

#include <inttypes.h>
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

/* Append to TEXT, which has room for SIZE bytes. */
static void append(char *text, size_t size, const char *before, uint64_t count, const char *what)
{
    size_t used = strlen(text);
    if (count)
        snprintf(text + used, size - used, "%s%" PRIu64 " %s%s", before, count, what,
                 plural(count));
}

void losses_text(const struct losses *losses, char *text, size_t size)
{
    char shares[48] = "";
    const bool lost = losses->samples || losses->records;
    snprintf(text, size, "perf lost ");
    append(text, size, "", losses->samples, "sample");
    append(text, size, losses->samples ? " and " : "", losses->records, "record");
    append(text, size, lost ? " and parts of " : "parts of ", losses->traces, "trace");
    if (lost)
        snprintf(shares, sizeof shares, ", %s%.1f %% of all samples",
                 losses->records > losses->samples ? "up to " : "", 100 * losses_share(losses));
    size_t used = strlen(text);
    snprintf(text + used, size - used,
             "%s: the machine was too busy, or the buffer too small; a lower -F, a larger -m, or "
             "-g fp, helps",
             shares);
}
