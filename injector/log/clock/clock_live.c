/* See clock_live.h. */
#include "injector/log/clock/clock_live.h"

#include "injector/log/clock/perf_clock.h"
#include "jitdump/format/dump_clock.h"

#include <time.h>

enum { TRIES = 20, RATE_MS = 20 };

static uint64_t read_ns(int32_t clockid)
{
    struct timespec now;
    clock_gettime(clockid, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool read_kind(enum clock_kind kind, struct perf_clock *perf, uint64_t *now)
{
    if (kind == CLOCK_KIND_PERF)
        return perf_clock_now(perf, now);
    *now = kind == CLOCK_KIND_CYCLES ? jd_clock_now(true) : read_ns(clock_kind_id(kind));
    return true;
}

/* A reading of a clock and of CLOCK_MONOTONIC, of the same moment but for WIDTH_NS. */
struct reading {
    uint64_t value, mono_ns, width_ns;
};

/* The closest of some tries: in the others an interrupt came in between. */
static bool read_closely(enum clock_kind kind, struct perf_clock *perf, struct reading *best)
{
    best->width_ns = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        uint64_t value, before = read_ns(CLOCK_MONOTONIC);
        if (!read_kind(kind, perf, &value))
            return false;
        uint64_t width = read_ns(CLOCK_MONOTONIC) - before;
        if (width < best->width_ns)
            *best = (struct reading){value, before + width / 2, width};
    }
    return true;
}

/* The counter at two moments; the later one is the moment that all other readings are brought
 * to. */
static void read_cycles(struct clock_live *live, struct perf_clock *perf)
{
    const struct timespec pause = {0, RATE_MS * 1000000};
    struct reading first, second;
    read_closely(CLOCK_KIND_CYCLES, perf, &first);
    nanosleep(&pause, NULL);
    read_closely(CLOCK_KIND_CYCLES, perf, &second);
    if (second.value <= first.value || second.mono_ns <= first.mono_ns)
        return;
    live->cycles_per_s = (uint64_t)((unsigned __int128)(second.value - first.value) * 1000000000 /
                                    (second.mono_ns - first.mono_ns));
    live->known[CLOCK_KIND_CYCLES] = true;
    live->now[CLOCK_KIND_CYCLES] = second.value;
    live->now[CLOCK_KIND_MONOTONIC] = second.mono_ns;
    live->width_ns = second.width_ns;
}

void clock_live_read(struct clock_live *live, bool with_cycles)
{
    struct perf_clock perf;
    *live = (struct clock_live){0};
    bool has_perf = perf_clock_open(&perf);
    live->now[CLOCK_KIND_MONOTONIC] = read_ns(CLOCK_MONOTONIC);
    live->known[CLOCK_KIND_MONOTONIC] = true;
    if (with_cycles && jd_clock_has_counter())
        read_cycles(live, &perf);
    for (int kind = CLOCK_KIND_RAW; kind <= CLOCK_KIND_PERF; kind++) {
        struct reading reading;
        if (kind == CLOCK_KIND_PERF && !has_perf)
            continue;
        if (!read_closely((enum clock_kind)kind, &perf, &reading))
            continue;
        live->known[kind] = true;
        live->now[kind] = reading.value - reading.mono_ns + live->now[CLOCK_KIND_MONOTONIC];
        if (reading.width_ns > live->width_ns)
            live->width_ns = reading.width_ns;
    }
    perf_clock_close(&perf);
}
