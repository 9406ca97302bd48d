/* See clock_candidate.h.
 *
 * Distances between clocks are computed modulo 2^64 and looked at as signed numbers. */
#include "injector/log/clock/clock_candidate.h"

#include "injector/recording/perf_data/perf_time.h"

#define MS  UINT64_C(1000000)
#define SEC (1000 * MS)

/* The header's time is of about the moment of the mapping.  Seen in quiet recordings with -k mono,
 * where both are on one clock: LLVM 3 us, Erlang 57, PHP 89, QEMU 114.  libjitdump says itself how
 * far they are apart. */
#define HEADER_ERROR_NS UINT64_C(200000)

/* On a busy machine the process may wait between the two, for a processor or for the disk.  The
 * header's time is before the mapping or after it: that depends on which of them the runtime does
 * first. */
#define HEADER_WAIT_NS (100 * MS)

/* Two clocks of one machine drift apart by less than this; NTP corrects CLOCK_MONOTONIC by 500 at
 * most, but by more than some tens only while it catches up. */
enum { DRIFT_PPM = 50, DRIFT_MAX_PPM = 500 };

/* Wall clocks: September 2001 to 2100, say.  No machine has run for that long. */
#define WALL_FIRST_NS (UINT64_C(1000000000) * SEC)
#define WALL_LAST_NS  (UINT64_C(4100000000) * SEC)

static uint64_t apart(uint64_t a, uint64_t b)
{
    uint64_t difference = a - b;
    return (int64_t)difference < 0 ? 0 - difference : difference;
}

static bool before(uint64_t a, uint64_t b)
{
    return (int64_t)(a - b) < 0;
}

static uint64_t drift(uint64_t span_ns, uint64_t ppm)
{
    return span_ns / 1000000 * ppm;
}

static bool is_wall(uint64_t ns)
{
    return ns >= WALL_FIRST_NS && ns <= WALL_LAST_NS;
}

/* A moment on the dump's clock and on the profile's. */
struct pair {
    bool known;
    uint64_t dump, records, error_ns;
};

/* Whether HEADER can have been written on the clock of the records: not after the first, and not
 * longer before it than the process lived. */
static bool header_fits(const struct clock_evidence *evidence, uint64_t header, uint64_t first)
{
    return evidence->marker_ns && header <= perf_time_after(first, MS) &&
           evidence->end_ns >= evidence->marker_ns &&
           (first <= header ||
            first - header <= perf_time_after(evidence->end_ns - evidence->marker_ns, SEC));
}

static struct pair header_pair(const struct clock_evidence *evidence, uint64_t header,
                               uint64_t first, uint64_t error_ns)
{
    return (struct pair){header_fits(evidence, header, first), header, evidence->marker_ns,
                         error_ns};
}

bool clock_header_is_wall(const struct clock_evidence *evidence)
{
    return evidence->header <= WALL_LAST_NS / 1000 && is_wall(evidence->header * 1000);
}

/* CLOCK_REALTIME and CLOCK_MONOTONIC run alike but when the clock is set: now they are as far apart
 * as then. */
static struct pair wall_pair(const struct clock_facts *facts, enum clock_kind kind)
{
    const struct clock_evidence *evidence = &facts->evidence;
    const struct clock_live *live = &facts->live;
    if (kind != CLOCK_KIND_MONOTONIC || !live->known[CLOCK_KIND_REALTIME] ||
        !clock_header_is_wall(evidence))
        return (struct pair){0};
    uint64_t header =
        evidence->header * 1000 - live->now[CLOCK_KIND_REALTIME] + live->now[CLOCK_KIND_MONOTONIC];
    return header_pair(evidence, header, evidence->stamps.first, HEADER_ERROR_NS);
}

static struct pair live_pair(const struct clock_facts *facts, enum clock_kind kind)
{
    const struct clock_live *live = &facts->live;
    if (facts->profile_kind >= CLOCK_KINDS || !live->known[kind] ||
        !live->known[facts->profile_kind])
        return (struct pair){0};
    return (struct pair){true, live->now[kind], live->now[facts->profile_kind], live->width_ns};
}

static uint64_t offset_of(const struct pair *pair)
{
    return pair->records - pair->dump;
}

/* The least and greatest offset that a dump of nanoseconds can have. */
struct bounds {
    bool has_lower, has_upper;
    uint64_t lower, upper;
};

static void lower_upper(struct bounds *bounds, uint64_t upper)
{
    if (!bounds->has_upper || before(upper, bounds->upper))
        bounds->upper = upper;
    bounds->has_upper = true;
}

/* By the records alone. */
static struct bounds bounds_of_records(const struct clock_evidence *evidence)
{
    struct bounds bounds = {0};
    if (evidence->marker_ns) {
        bounds.has_lower = true;
        bounds.lower = evidence->marker_ns - evidence->stamps.first;
    }
    if (evidence->ended)
        lower_upper(&bounds, evidence->end_ns - evidence->stamps.last);
    return bounds;
}

static struct bounds bounds_of(const struct clock_evidence *evidence)
{
    struct bounds bounds = bounds_of_records(evidence);
    if (evidence->sampled)
        lower_upper(&bounds, evidence->sampled_ns - evidence->sampled_stamp);
    return bounds;
}

static bool within(const struct bounds *bounds, uint64_t offset)
{
    return (!bounds->has_lower || !before(offset, bounds->lower - MS)) &&
           (!bounds->has_upper || !before(bounds->upper + LATE_LOG_NS, offset));
}

static bool live_is_later(const struct clock_facts *facts, const struct pair *live)
{
    return live->known && !before(live->records, facts->evidence.end_ns) &&
           !before(live->dump, facts->evidence.stamps.last);
}

/* Whether the clocks now agree with the header, but for their drift. */
static bool is_close(const struct pair *marker, const struct pair *live, uint64_t drift_ppm)
{
    return apart(offset_of(live), offset_of(marker)) <=
           marker->error_ns + MS + drift(live->records - marker->records, drift_ppm);
}

/* Whether the clocks now, of the recording's boot, say that the dump was mapped a little before or
 * after its header's time.  Samples are no evidence: a forked child's first ones may have hit code
 * of its parent's where it put its own later.  CLOCK_MONOTONIC_RAW is some ms from CLOCK_MONOTONIC:
 * a dump that is stamped by it has not waited. */
static bool has_waited(const struct clock_facts *facts, const struct pair *marker,
                       const struct pair *live)
{
    uint64_t waited_ns = apart(offset_of(marker), offset_of(live));
    struct bounds bounds = bounds_of_records(&facts->evidence);
    struct pair raw = live_pair(facts, CLOCK_KIND_RAW);
    return facts->same_boot && waited_ns <= HEADER_WAIT_NS && within(&bounds, offset_of(live)) &&
           !(raw.known && is_close(marker, &raw, DRIFT_PPM));
}

/* Without a header: whether the clocks now agree with the bounds of the offset.  If they are of the
 * recording's boot, samples alone do not disprove them: code from no dump may have run where the
 * function is later. */
static bool is_within(const struct clock_facts *facts, const struct pair *live, bool *doubted)
{
    struct bounds bounds = bounds_of(&facts->evidence);
    struct bounds of_records = bounds_of_records(&facts->evidence);
    bool agrees = within(&bounds, offset_of(live));
    *doubted = facts->same_boot && !agrees && within(&of_records, offset_of(live));
    return *doubted || (agrees && (facts->same_boot || (bounds.has_lower && bounds.has_upper)));
}

/* ---- Nanoseconds of another clock ---- */

static void shift(struct clock_candidate *candidate, const struct pair *pair)
{
    candidate->clock.from_ref = pair->dump;
    candidate->clock.to_ref = pair->records;
}

/* The change of the offset since the header, without the part that the clocks' drift since the boot
 * explains.  The process may have waited that long between header and mapping. */
static uint64_t unexplained(const struct pair *marker, const struct pair *live)
{
    uint64_t moved = offset_of(live) - offset_of(marker);
    __int128 since_boot = (int64_t)offset_of(live);
    uint64_t expected =
        (uint64_t)(since_boot * (live->records - marker->records) / (live->records + 1));
    uint64_t rest = apart(moved, expected);
    return rest < apart(moved, 0) ? rest : apart(moved, 0);
}

/* Header and marker, and between them and now a straight line. */
static void by_marker_and_live(struct clock_candidate *candidate, const struct pair *marker,
                               const struct pair *live, uint64_t span_ns)
{
    uint64_t moved = apart(offset_of(live), offset_of(marker));
    uint64_t drifted = drift(span_ns, DRIFT_PPM);
    candidate->source = CLOCK_SOURCE_MARKER_LIVE;
    candidate->error_ns = marker->error_ns + live->error_ns + (moved < drifted ? moved : drifted);
    candidate->clock.from_span = live->dump - marker->dump;
    candidate->clock.to_span = live->records - marker->records;
}

static void by_marker(struct clock_candidate *candidate, const struct pair *marker,
                      uint64_t span_ns)
{
    candidate->source = CLOCK_SOURCE_MARKER;
    candidate->error_ns = marker->error_ns + drift(span_ns, DRIFT_PPM);
}

/* How fast two clocks that count from the boot may part, at MOST: twice as fast as on average since
 * then. */
static uint64_t parting_ppm(const struct pair *live, uint64_t most)
{
    uint64_t ppm = apart(offset_of(live), 0) / (live->records / 1000000 + 1);
    return ppm < most / 2 && 2 * ppm + 5 < most ? 2 * ppm + 5 : most;
}

static void by_live(struct clock_candidate *candidate, const struct pair *live, uint64_t first_ns)
{
    shift(candidate, live);
    candidate->source = CLOCK_SOURCE_LIVE;
    candidate->error_ns =
        live->error_ns + drift(live->dump - first_ns, parting_ppm(live, DRIFT_PPM));
}

/* The clocks now are compared exactly, and the header only roughly: soon after the recording the
 * drift is the lesser evil. */
static void by_best(struct clock_candidate *candidate, const struct pair *marker,
                    const struct pair *live, const struct clock_evidence *evidence)
{
    struct clock_candidate other = *candidate;
    shift(candidate, marker);
    by_marker_and_live(candidate, marker, live, evidence->stamps.last - evidence->stamps.first);
    candidate->unexplained_ns = unexplained(marker, live);
    if (!evidence->header_half)
        candidate->error_ns += candidate->unexplained_ns;
    by_live(&other, live, evidence->stamps.first);
    if (other.error_ns < candidate->error_ns)
        *candidate = other;
}

/* If no address is used again, code that appears too early does no harm, but samples before it
 * appears have no name.  Then the earliest time is the best.  Else the middle. */
static bool by_bounds(struct clock_candidate *candidate, const struct clock_evidence *evidence)
{
    struct bounds bounds = bounds_of(evidence);
    if (!bounds.has_lower || !bounds.has_upper || before(bounds.upper + LATE_LOG_NS, bounds.lower))
        return false;
    uint64_t width = before(bounds.upper, bounds.lower) ? 0 : bounds.upper - bounds.lower;
    uint64_t late = evidence->reused ? width / 2 : 0;
    candidate->source = CLOCK_SOURCE_BOUNDS;
    candidate->error_ns = width - late;
    candidate->clock.from_ref = evidence->stamps.first;
    candidate->clock.to_ref = evidence->marker_ns + late;
    return true;
}

/* Whether a dump of clock KIND and a profile of its own can be as far apart as OFFSET.  All but the
 * wall clocks count from about the boot; perf's clock and CLOCK_MONOTONIC stand still while the
 * machine sleeps. */
static bool possible_offset(const struct clock_facts *facts, enum clock_kind kind, uint64_t offset)
{
    uint64_t records = facts->evidence.end_ns;
    bool wall = kind == CLOCK_KIND_REALTIME || kind == CLOCK_KIND_TAI;
    if (wall != is_wall(facts->evidence.stamps.first))
        return false;
    if (wall || is_wall(records))
        return true;
    if (facts->profile_kind == CLOCK_KIND_BOOTTIME && !before(offset, 0))
        return true;
    return apart(offset, 0) <= 60 * SEC + records / 100;
}

/* One counter, corrected as one: they keep their distance, but for sleep and a clock that is set.
 */
static bool is_steered(enum clock_kind kind)
{
    return kind == CLOCK_KIND_MONOTONIC || kind == CLOCK_KIND_BOOTTIME ||
           kind == CLOCK_KIND_REALTIME || kind == CLOCK_KIND_TAI;
}

/* How fast a clock KIND may have left the profile's clock since the recording.  Two clocks that are
 * both steered stay together.  CLOCK_MONOTONIC_RAW leaves the steered ones at a rate that follows
 * from the time since the boot. */
static uint64_t drift_ppm(const struct clock_facts *facts, enum clock_kind kind,
                          const struct pair *live)
{
    if (is_steered(kind) && is_steered(facts->profile_kind))
        return 0;
    if (kind != CLOCK_KIND_RAW || facts->profile_kind != CLOCK_KIND_MONOTONIC || !live->known)
        return DRIFT_MAX_PPM;
    return parting_ppm(live, DRIFT_MAX_PPM);
}

static bool make_ns(struct clock_candidate *candidate, const struct clock_facts *facts,
                    enum clock_kind kind)
{
    const struct clock_evidence *evidence = &facts->evidence;
    uint64_t span_ns = evidence->stamps.last - evidence->stamps.first;
    struct pair live = live_pair(facts, kind);
    struct pair marker =
        header_pair(evidence, evidence->header, evidence->stamps.first,
                    evidence->header_half ? evidence->header_half : HEADER_ERROR_NS);
    bool exact = marker.known && evidence->header_half;
    uint64_t ppm = marker.known ? drift_ppm(facts, kind, &live) : DRIFT_MAX_PPM;
    if (!marker.known)
        marker = wall_pair(facts, kind);
    bool later = live_is_later(facts, &live);
    bool close = later && marker.known && is_close(&marker, &live, ppm);
    /* By the clocks now, without regard to the header. */
    bool alone = later && !close &&
                 (marker.known ? has_waited(facts, &marker, &live)
                               : is_within(facts, &live, &candidate->doubted));
    bool agrees = close || alone;
    candidate->paired = close || (exact && !alone);
    candidate->proven = (agrees && !candidate->doubted) ||
                        (kind == CLOCK_KIND_REALTIME && is_wall(evidence->stamps.first));
    if (close) {
        by_best(candidate, &marker, &live, evidence);
    } else if (alone) {
        by_live(candidate, &live, evidence->stamps.first);
    } else if (marker.known) {
        shift(candidate, &marker);
        by_marker(candidate, &marker, span_ns);
    } else if (!by_bounds(candidate, evidence)) {
        return false;
    }
    return agrees ||
           possible_offset(facts, kind, candidate->clock.to_ref - candidate->clock.from_ref);
}

/* ---- Cycles ---- */

/* The facts, with all that is the dump's converted by CLOCK. */
static struct clock_facts convert(const struct clock_facts *facts, const struct jit_clock *clock)
{
    struct clock_facts converted = *facts;
    struct clock_evidence *evidence = &converted.evidence;
    uint64_t half_end = jit_clock_to_perf(clock, evidence->header + evidence->header_half);
    evidence->header = jit_clock_to_perf(clock, evidence->header);
    evidence->header_half = half_end - evidence->header;
    evidence->stamps.first = jit_clock_to_perf(clock, evidence->stamps.first);
    evidence->stamps.last = jit_clock_to_perf(clock, evidence->stamps.last);
    evidence->sampled_stamp = jit_clock_to_perf(clock, evidence->sampled_stamp);
    return converted;
}

/* TIME_CONV leads to perf's clock, and from there on it is as if the dump had been stamped with
 * that.  Not without the header's time: bounds alone would make any times fit. */
static bool make_converted(struct clock_candidate *candidate, const struct clock_facts *facts)
{
    struct jit_clock *clock = &candidate->clock;
    clock->cycles = true;
    clock->conv = facts->conv;
    if (facts->profile_kind == CLOCK_KIND_PERF) {
        candidate->source = CLOCK_SOURCE_CONV;
        candidate->proven = true;
        return true;
    }
    struct clock_facts converted = convert(facts, clock);
    const struct clock_evidence *evidence = &converted.evidence;
    if (!header_fits(evidence, evidence->header, evidence->stamps.first))
        return false;
    make_ns(candidate, &converted, CLOCK_KIND_PERF);
    return true;
}

static uint64_t to_cycles(uint64_t ns, uint64_t rate)
{
    return (uint64_t)((unsigned __int128)ns * rate / SEC);
}

static uint64_t to_ns(uint64_t cycles, uint64_t rate)
{
    return (uint64_t)((unsigned __int128)cycles * SEC / rate);
}

/* The counter's rate is known to one part in so many. */
enum { RATE_PRECISION = 5000 };

/* From now back, at the counter's rate: between the header's time and the mapping the process
 * waited. */
static void by_rate(struct clock_candidate *candidate, const struct pair *live, uint64_t rate,
                    uint64_t since_marker_ns)
{
    shift(candidate, live);
    candidate->clock.from_span = rate;
    candidate->clock.to_span = SEC;
    candidate->source = CLOCK_SOURCE_LIVE;
    candidate->error_ns = live->error_ns + since_marker_ns / RATE_PRECISION;
}

/* Without TIME_CONV: from the header to now the counter went so many cycles, the profile's clock so
 * many ns.  That must be the rate that the counter has now. */
static bool make_measured(struct clock_candidate *candidate, const struct clock_facts *facts)
{
    const struct clock_evidence *evidence = &facts->evidence;
    struct pair live = live_pair(facts, CLOCK_KIND_CYCLES);
    uint64_t rate = facts->live.cycles_per_s;
    if (!live.known || !rate || !evidence->marker_ns || evidence->header > evidence->stamps.first ||
        live.dump <= evidence->stamps.last || live.records <= evidence->end_ns)
        return false;
    uint64_t cycles = live.dump - evidence->header, ns = live.records - evidence->marker_ns;
    uint64_t expected = to_cycles(ns, rate);
    uint64_t waited_ns = facts->same_boot ? HEADER_WAIT_NS : 10 * MS;
    if (apart(cycles, expected) > expected / 500 + to_cycles(waited_ns, rate))
        return false;
    struct pair marker = {true, evidence->header, evidence->marker_ns, HEADER_ERROR_NS};
    if (evidence->header_half)
        marker.error_ns = evidence->header_half * 1000 / (rate / MS + 1) + 1;
    candidate->proven = true;
    candidate->paired = evidence->header_half != 0;
    if (facts->same_boot &&
        apart(cycles, expected) >
            expected / RATE_PRECISION + to_cycles(marker.error_ns + live.error_ns, rate)) {
        by_rate(candidate, &live, rate, ns);
        return true;
    }
    shift(candidate, &marker);
    candidate->clock.from_span = cycles;
    candidate->clock.to_span = ns;
    candidate->source = CLOCK_SOURCE_MARKER_LIVE;
    candidate->unexplained_ns = to_ns(apart(cycles, expected), rate);
    candidate->error_ns =
        marker.error_ns + live.error_ns +
        drift(to_ns(evidence->stamps.last - evidence->stamps.first, rate), DRIFT_PPM);
    return true;
}

/* ---- Another dump's clock ---- */

/* Whether the records of the dump lie in the process's life by another dump's CLOCK, and its header
 * is no further from the marker than a process may wait.  *DOUBTED: only samples speak against
 * it. */
static bool may_share(const struct clock_facts *facts, const struct jit_clock *clock,
                      enum clock_kind kind, bool *doubted)
{
    struct clock_facts converted = convert(facts, clock);
    struct clock_evidence *evidence = &converted.evidence;
    struct pair marker =
        header_pair(evidence, evidence->header, evidence->stamps.first, HEADER_ERROR_NS);
    struct pair own = header_pair(&facts->evidence, facts->evidence.header,
                                  facts->evidence.stamps.first, HEADER_ERROR_NS);
    struct pair raw = live_pair(facts, CLOCK_KIND_RAW);
    bool is_raw = kind != CLOCK_KIND_CYCLES && own.known && live_is_later(facts, &raw) &&
                  is_close(&own, &raw, DRIFT_PPM);
    struct bounds of_records = bounds_of_records(evidence);
    if (is_raw || !within(&of_records, 0))
        return false;
    if (marker.known)
        return apart(marker.dump, marker.records) <= HEADER_WAIT_NS;
    struct bounds bounds = bounds_of(evidence);
    *doubted = kind != CLOCK_KIND_CYCLES && !within(&bounds, 0);
    return true;
}

/* How far another dump's clock may be off at this one's records. */
static uint64_t shared_error(const struct clock_facts *facts, const struct shared_clock *shared)
{
    const struct clock_candidate *candidate = &shared->candidate;
    struct pair live = live_pair(facts, candidate->kind);
    uint64_t first_ns = jit_clock_to_perf(&candidate->clock, facts->evidence.stamps.first);
    uint64_t last_ns = jit_clock_to_perf(&candidate->clock, facts->evidence.stamps.last);
    uint64_t known_from_ns = jit_clock_to_perf(&candidate->clock, shared->stamps.first);
    uint64_t known_to_ns = jit_clock_to_perf(&candidate->clock, shared->stamps.last);
    uint64_t away_ns = (first_ns < known_from_ns ? known_from_ns - first_ns : 0) +
                       (last_ns > known_to_ns ? last_ns - known_to_ns : 0);
    bool rate_known = candidate->source != CLOCK_SOURCE_MARKER && live.known &&
                      candidate->kind != CLOCK_KIND_CYCLES;
    return candidate->error_ns +
           drift(away_ns, rate_known ? parting_ppm(&live, DRIFT_PPM) : DRIFT_PPM);
}

/* Put another dump's clock in the place of CANDIDATE, which was MADE from this one, if that is
 * worse or none.  Returns whether there is one then. */
static bool take_shared(struct clock_candidate *candidate, const struct clock_facts *facts,
                        bool made)
{
    const struct shared_clock *shared = facts->shared ? &facts->shared->of[candidate->kind] : NULL;
    bool doubted = false, is_exact = candidate->paired && facts->evidence.header_half;
    if (!shared || !shared->known || (made && is_exact) ||
        !may_share(facts, &shared->candidate.clock, candidate->kind, &doubted))
        return made;
    uint64_t error_ns = shared_error(facts, shared);
    /* The bounds may leave no room, because they are exact only to some ms. */
    uint64_t own_ns =
        candidate->error_ns + (candidate->source == CLOCK_SOURCE_BOUNDS ? LATE_LOG_NS : 0);
    if (made && !candidate->doubted && own_ns <= error_ns)
        return true;
    *candidate = shared->candidate;
    candidate->source = CLOCK_SOURCE_SHARED;
    candidate->error_ns = error_ns;
    candidate->doubted = doubted;
    candidate->proven = !doubted;
    candidate->paired = false;
    return true;
}

static bool make_own(struct clock_candidate *candidate, const struct clock_facts *facts,
                     enum clock_kind kind)
{
    if (kind != CLOCK_KIND_CYCLES)
        return make_ns(candidate, facts, kind);
    return facts->conv.known ? make_converted(candidate, facts) : make_measured(candidate, facts);
}

bool clock_candidate_make(struct clock_candidate *candidate, const struct clock_facts *facts,
                          enum clock_kind kind)
{
    *candidate = (struct clock_candidate){.kind = kind};
    if (kind == facts->profile_kind) {
        candidate->source = CLOCK_SOURCE_SAME;
        candidate->proven = true;
        return true;
    }
    bool made = make_own(candidate, facts, kind);
    if (made && candidate->source == CLOCK_SOURCE_CONV)
        return true;
    return take_shared(candidate, facts, made);
}
