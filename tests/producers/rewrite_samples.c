/* rewrite_samples FORM INPUT OUTPUT: a recording that perf cannot make on every machine, from a
 * real one with frame pointers.
 *
 *     copy               nothing is changed
 *     read-alone         READ: the count of the event, which is not the sum of the periods
 *     kernel             two of eight samples are in a system call of the program, in the same one
 *     precise            the address is the one that a precise event tells, and the chain begins
 *                        where the interrupt came: a call or a return later
 *     user-callchains    the chains have nothing of the kernel
 *     kernel-callchains  they have nothing of the user
 *     guest              the kernel's samples, and every other of the user's, are a guest's
 *     guest-chains       the same, with the chains of guests
 *     hypervisor         the kernel's samples are the hypervisor's
 *     lbr                the callers stand in the branch stack; the chains end at the user's part
 *     deferred           the user's chains follow in records of type 22, equal ones but once
 *     deferred-early     these records stand in front of their samples, with later times
 *     deferred-late      each stands behind all samples
 *     deferred-twice     each stands there twice
 *     deferred-missing   every third of them is missing
 *     deferred-strange   each cookie occurs in another thread as well, and earlier in the same
 *     unknown-marks      three of four chains have an entry that looks like a mark and is none: at
 *                        their end, as a frame pointer of all ones leaves it, between two callers,
 *                        and in front
 *     lost               LOST and LOST_SAMPLES records: three each behind every tenth sample
 *
 * INPUT is a file or a stream of perf record -g, without AUX traces; OUTPUT is of the same kind. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RECORD_LOST = 2,
    RECORD_SAMPLE = 9,
    RECORD_LOST_SAMPLES = 13,
    RECORD_CALLCHAIN_DEFERRED = 22,
    RECORD_USER_TYPE_START = 64,
    RECORD_HEADER_ATTR = 64,
    RECORD_HEADER_TRACING_DATA = 66,
    RECORD_MOST_BYTES = 65528,
};

enum { KERNEL = 1, USER = 2, HYPERVISOR = 3, GUEST_KERNEL = 4, GUEST_USER = 5, MODES = 7 };

#define MARK(number)      ((uint64_t) - (number))
#define MARK_HYPERVISOR   MARK(32)
#define MARK_KERNEL       MARK(128)
#define MARK_USER         MARK(512)
#define MARK_DEFERRED     MARK(640)
#define MARK_GUEST_KERNEL MARK(2176)
#define MARK_GUEST_USER   MARK(2560)
#define MARK_LOWEST       MARK(4095)
#define READ              (UINT64_C(1) << 4) /* of sample_type */
#define READ_ID           UINT64_C(4)
#define BRANCHES          (UINT64_C(1) << 11) /* of sample_type */
#define BRANCH_TYPE       (UINT64_C(1) | 1 << 11 | 1 << 14 | 1 << 15 | 1 << 17)
#define DEFERS            (UINT64_C(3) << 38) /* of the attribute's flags */
#define FRONT_ORDER                                                                                \
    {                                                                                              \
        16, 0, 1, 2, 3, 6, 9, 7, 8                                                                 \
    } /* bits of sample_type, u64 each */
#define ID_ORDER                                                                                   \
    {                                                                                              \
        1, 2, 6, 9, 7, 16                                                                          \
    }

enum { FRONT_FIELDS = 9, ID_FIELDS = 6, EVENTS = 64, IDS = 4096, IPS = 8192 };

struct bytes {
    uint8_t *at;
    size_t size, capacity;
};

struct event {
    uint64_t type, read_format;
};

/* What is known of a SAMPLE. */
struct sample {
    uint64_t fields[64]; /* by the bit of sample_type */
    uint64_t ips[IPS];
    size_t count;
    size_t chain_at, behind_chain, behind_raw; /* in the record */
    unsigned mode;
};

static struct event events[EVENTS];
static size_t event_count;
static struct {
    uint64_t id;
    size_t event;
} ids[IDS];
static size_t id_count;
static struct bytes out, late; /* OUTPUT, and the records that go behind all others */
static const char *form;
static uint64_t sample_number, cookie = UINT64_C(0x1000000000000);

/* ---- Bytes ---- */

static uint64_t u64_at(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint16_t u16_at(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static uint32_t u32_at(const uint8_t *at)
{
    return u16_at(at) | (uint32_t)u16_at(at + 2) << 16;
}

static void set_u64(uint8_t *at, uint64_t value)
{
    memcpy(at, &value, sizeof value);
}

static void set_u16(uint8_t *at, size_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

static void put(struct bytes *to, const void *bytes, size_t size)
{
    if (to->size + size > to->capacity) {
        to->capacity = 2 * (to->size + size) + 4096;
        to->at = realloc(to->at, to->capacity);
        if (!to->at)
            exit(1);
    }
    if (size)
        memcpy(to->at + to->size, bytes, size);
    to->size += size;
}

static void put_u64(struct bytes *to, uint64_t value)
{
    put(to, &value, sizeof value);
}

static size_t begin_record(struct bytes *to, uint32_t type, uint16_t misc)
{
    size_t start = to->size;
    put_u64(to, type | (uint64_t)misc << 32);
    return start;
}

static void end_record(struct bytes *to, size_t start)
{
    if (to->size - start > RECORD_MOST_BYTES)
        exit(1);
    set_u16(to->at + start + 6, to->size - start);
}

/* ---- Samples ---- */

static bool has(const struct event *event, unsigned bit)
{
    return event->type >> bit & 1;
}

static const struct event *event_of(const uint8_t *record)
{
    static const unsigned order[] = FRONT_ORDER;
    size_t at = 8;
    for (size_t i = 0; i < FRONT_FIELDS && order[i] != 6 && !has(&events[0], 16); i++)
        at += has(&events[0], order[i]) ? 8 : 0;
    for (size_t i = 0; i < id_count && (has(&events[0], 16) || has(&events[0], 6)); i++)
        if (ids[i].id == u64_at(record + at))
            return &events[ids[i].event];
    return &events[0];
}

/* How long READ is, at AT. */
static size_t read_bytes(const uint8_t *at, uint64_t format)
{
    size_t times = 8 * ((format & 1) + (format >> 1 & 1));
    size_t value = 8 + 8 * ((format >> 2 & 1) + (format >> 4 & 1));
    return format & 8 ? 8 + times + value * u64_at(at) : times + value;
}

static void read_sample(struct sample *sample, const uint8_t *record, const struct event *event)
{
    static const unsigned order[] = FRONT_ORDER;
    size_t at = 8;
    sample->mode = u16_at(record + 4) & MODES;
    for (size_t i = 0; i < FRONT_FIELDS; i++)
        if (has(event, order[i])) {
            sample->fields[order[i]] = u64_at(record + at);
            at += 8;
        }
    if (has(event, 4))
        at += read_bytes(record + at, event->read_format);
    sample->chain_at = at;
    sample->count = 0;
    if (has(event, 5)) {
        sample->count = u64_at(record + at);
        if (sample->count > IPS)
            exit(1);
        memcpy(sample->ips, record + at + 8, 8 * sample->count);
        at += 8 + 8 * sample->count;
    }
    sample->behind_chain = at;
    if (has(event, 10))
        at += 4 + u32_at(record + at);
    sample->behind_raw = at;
}

/* The first place of MARK in the chain, or its end. */
static size_t find_mark(const struct sample *sample, uint64_t mark)
{
    size_t at = 0;
    while (at < sample->count && sample->ips[at] != mark)
        at++;
    return at;
}

static void remove_ips(struct sample *sample, size_t from, size_t to)
{
    memmove(sample->ips + from, sample->ips + to, 8 * (sample->count - to));
    sample->count -= to - from;
}

static void insert_ip(struct sample *sample, size_t at, uint64_t ip)
{
    if (sample->count == IPS)
        exit(1);
    memmove(sample->ips + at + 1, sample->ips + at, 8 * (sample->count - at));
    sample->ips[at] = ip;
    sample->count++;
}

static void put_id(struct bytes *to, const struct event *event, const struct sample *sample)
{
    static const unsigned order[] = ID_ORDER;
    for (size_t i = 0; i < ID_FIELDS; i++)
        if (has(event, order[i]))
            put_u64(to, sample->fields[order[i]]);
}

/* ---- Forms ---- */

static bool is(const char *name)
{
    return strcmp(form, name) == 0;
}

/* The processor counted at a call that the interrupt came behind, or at a return. */
static void make_precise(struct sample *sample)
{
    if (sample->mode != USER || sample->count < 4 || sample->ips[0] != MARK_USER)
        return;
    if (sample_number % 3 == 0)
        sample->fields[0] = sample->ips[2] - 1;
    else if (sample_number % 3 == 1)
        remove_ips(sample, 1, 2);
}

/* The second of two samples has the first's user part. */
static void make_kernel(struct sample *sample)
{
    static uint64_t before[IPS];
    static size_t count;
    const uint64_t ip = UINT64_C(0xffffffff81000100) + sample_number % 64;
    const uint64_t kernel[] = {MARK_KERNEL, ip, UINT64_C(0xffffffff81000080)};
    if (sample->mode != USER || sample_number % 8 > 1 || sample->count + 3 > IPS)
        return;
    if (sample_number % 8 == 1 && count)
        memcpy(sample->ips, before, 8 * (sample->count = count));
    memcpy(before, sample->ips, 8 * (count = sample->count));
    memmove(sample->ips + 3, sample->ips, 8 * sample->count);
    memcpy(sample->ips, kernel, sizeof kernel);
    sample->count += 3;
    sample->mode = KERNEL;
    sample->fields[0] = ip;
}

static void make_guest(struct sample *sample)
{
    if (sample->mode == KERNEL)
        sample->mode = GUEST_KERNEL;
    else if (sample_number % 2)
        sample->mode = GUEST_USER;
    else
        return;
    for (size_t i = 0; i < sample->count; i++) {
        if (sample->ips[i] == MARK_KERNEL)
            sample->ips[i] = MARK_GUEST_KERNEL;
        else if (sample->ips[i] == MARK_USER)
            sample->ips[i] = MARK_GUEST_USER;
    }
    if (is("guest-chains"))
        return;
    sample->ips[0] = MARK_KERNEL; /* Linux unwinds no guests */
    sample->count = sample->count ? 1 : 0;
}

static void make_hypervisor(struct sample *sample)
{
    if (sample->mode != KERNEL)
        return;
    sample->mode = HYPERVISOR;
    if (sample->count && sample->ips[0] == MARK_KERNEL)
        sample->ips[0] = MARK_HYPERVISOR;
}

static void make_unknown_marks(struct sample *sample)
{
    const size_t caller = find_mark(sample, MARK_USER) + 2;
    if (sample_number % 4 == 0)
        insert_ip(sample, sample->count, MARK(1));
    else if (sample_number % 4 == 1 && caller < sample->count)
        insert_ip(sample, caller, MARK(100));
    else if (sample_number % 4 == 2)
        insert_ip(sample, 0, MARK_LOWEST);
}

/* Put the user's callers as calls into BRANCHES, and leave the chain the user's address alone.
 * Without a caller it is a call from the same place: perf reads what is not there if there is no
 * branch. */
static size_t take_branches(struct sample *sample, struct bytes *branches)
{
    size_t user = find_mark(sample, MARK_USER), count = 0;
    if (user + 2 == sample->count || (user + 2 < sample->count && sample->ips[user + 2] <= 5)) {
        sample->ips[user + 2] = sample->ips[user + 1] + 5;
        sample->count = user + 3;
    }
    for (size_t i = user + 2; i < sample->count && sample->ips[i] > 5; i++, count++) {
        put_u64(branches, sample->ips[i] - 5);
        put_u64(branches, sample->ips[i - 1]);
        put_u64(branches, 0);
    }
    if (count)
        sample->count = user + 2;
    return count;
}

/* ---- Deferred chains ---- */

static struct {
    const struct event *event;
    struct sample sample; /* the last one of those that wait for their chain */
    uint64_t ips[IPS];    /* of that */
    size_t count;         /* 0: none waits */
    uint64_t cookie;
} waiting;

static void put_deferred(struct bytes *to, const uint64_t *chain, size_t count,
                         const struct sample *sample)
{
    size_t start = begin_record(to, RECORD_CALLCHAIN_DEFERRED, USER);
    put_u64(to, waiting.cookie);
    put_u64(to, count);
    put(to, chain, 8 * count);
    put_id(to, waiting.event, sample);
    end_record(to, start);
}

/* A wrong chain of the same cookie: in another thread, and in this one a second ago. */
static void put_strange(void)
{
    const uint64_t wrong[] = {MARK_USER, 0x1234, 0x5678};
    struct sample other = waiting.sample;
    other.fields[1] += UINT64_C(1) << 32;
    put_deferred(&out, wrong, 3, &other);
    other = waiting.sample;
    other.fields[2] -= 1000000000;
    put_deferred(&out, wrong, 3, &other);
}

static void end_waiting(void)
{
    struct bytes *to = is("deferred-late") ? &late : &out;
    if (!waiting.count)
        return;
    waiting.sample.fields[2] += is("deferred-early") ? 0 : 1; /* the time */
    if (is("deferred-strange"))
        put_strange();
    if (!is("deferred-early") && !(is("deferred-missing") && waiting.cookie % 3 == 0))
        put_deferred(to, waiting.ips, waiting.count, &waiting.sample);
    if (is("deferred-twice"))
        put_deferred(to, waiting.ips, waiting.count, &waiting.sample);
    waiting.count = 0;
}

/* Several samples in the kernel have one chain of the user; those in user mode have one each. */
static void defer(struct sample *sample, const struct event *event)
{
    size_t user = find_mark(sample, MARK_USER), count = sample->count - user;
    bool same = !is("deferred-early") && sample->mode == KERNEL && waiting.count &&
                waiting.sample.mode == KERNEL && waiting.sample.fields[1] == sample->fields[1] &&
                count == waiting.count && memcmp(sample->ips + user, waiting.ips, 8 * count) == 0;
    if (!same)
        end_waiting();
    if (!count)
        return;
    if (!same) {
        waiting.count = count;
        waiting.cookie = ++cookie;
        memcpy(waiting.ips, sample->ips + user, 8 * count);
    }
    waiting.event = event;
    waiting.sample = *sample;
    if (!same && is("deferred-early")) {
        waiting.sample.fields[2] += 50000;
        put_deferred(&out, waiting.ips, waiting.count, &waiting.sample);
    }
    sample->ips[user] = MARK_DEFERRED;
    sample->ips[user + 1] = waiting.cookie;
    sample->count = user + 2;
}

/* ---- Records ---- */

static void put_losses(const struct event *event, const struct sample *sample)
{
    if (sample_number % 10)
        return;
    size_t start = begin_record(&out, RECORD_LOST, 0);
    put_u64(&out, id_count ? ids[0].id : 0);
    put_u64(&out, 3);
    put_id(&out, event, sample);
    end_record(&out, start);
    start = begin_record(&out, RECORD_LOST_SAMPLES, 0);
    put_u64(&out, 3);
    put_id(&out, event, sample);
    end_record(&out, start);
}

static void change(struct sample *sample, const struct event *event)
{
    if (is("kernel"))
        make_kernel(sample);
    else if (is("precise"))
        make_precise(sample);
    else if (is("user-callchains"))
        remove_ips(sample, 0, find_mark(sample, MARK_USER));
    else if (is("kernel-callchains"))
        sample->count = find_mark(sample, MARK_USER);
    else if (is("guest") || is("guest-chains"))
        make_guest(sample);
    else if (is("hypervisor"))
        make_hypervisor(sample);
    else if (is("unknown-marks"))
        make_unknown_marks(sample);
    else if (strncmp(form, "deferred", 8) == 0)
        defer(sample, event);
}

/* Whether the sample of TIME is one of another processor's, which perf sorts in front of others in
 * the file.  Processors have counts of their own, and the form has one. */
static bool is_earlier(uint64_t time_ns)
{
    static uint64_t last_ns;
    bool earlier = time_ns < last_ns;
    last_ns = earlier ? last_ns : time_ns;
    return earlier;
}

/* READ of an event alone, as perf record -e a:S has it: the count, which grows with the time, and
 * the event's id. */
static void put_count(uint64_t time_ns)
{
    put_u64(&out, time_ns / 3000 * 1000);
    put_u64(&out, ids[0].id);
}

static void put_sample(const uint8_t *record, size_t size)
{
    static struct sample sample;
    static struct bytes branches;
    const struct event *event = event_of(record);
    read_sample(&sample, record, event);
    change(&sample, event);
    if (is("read-alone") && is_earlier(sample.fields[2]))
        return;
    branches.size = 0;
    size_t count = is("lbr") ? take_branches(&sample, &branches) : 0;
    size_t ip_at = has(event, 16) ? 16 : 8;
    size_t start = begin_record(&out, RECORD_SAMPLE,
                                (uint16_t)((u16_at(record + 4) & ~(unsigned)MODES) | sample.mode));
    put(&out, record + 8, sample.chain_at - 8);
    if (is("read-alone"))
        put_count(sample.fields[2]);
    if (has(event, 0))
        set_u64(out.at + start + ip_at, sample.fields[0]);
    if (has(event, 5)) {
        put_u64(&out, sample.count);
        put(&out, sample.ips, 8 * sample.count);
    }
    put(&out, record + sample.behind_chain, sample.behind_raw - sample.behind_chain);
    if (is("lbr")) {
        put_u64(&out, count);
        put_u64(&out, 0); /* hw_idx */
        put(&out, branches.at, branches.size);
    }
    put(&out, record + sample.behind_raw, size - sample.behind_raw);
    end_record(&out, start);
    if (is("lost"))
        put_losses(event, &sample);
    sample_number++;
}

static void add_event(uint8_t *attr, size_t ids_bytes, const uint8_t *id)
{
    if (event_count == EVENTS)
        exit(1);
    events[event_count] = (struct event){u64_at(attr + 24), u64_at(attr + 32)};
    for (size_t i = 0; i + 8 <= ids_bytes && id_count < IDS; i += 8, id_count++) {
        ids[id_count].id = u64_at(id + i);
        ids[id_count].event = event_count;
    }
    event_count++;
    if (is("read-alone")) {
        set_u64(attr + 24, u64_at(attr + 24) | READ);
        set_u64(attr + 32, READ_ID);
    }
    if (is("lbr")) {
        set_u64(attr + 24, u64_at(attr + 24) | BRANCHES);
        set_u64(attr + 72, BRANCH_TYPE);
    }
    if (strncmp(form, "deferred", 8) == 0)
        set_u64(attr + 40, u64_at(attr + 40) | DEFERS);
}

static void put_records(uint8_t *at, const uint8_t *end)
{
    while (at + 8 <= end) {
        size_t size = u16_at(at + 6), span = size;
        uint32_t type = u32_at(at);
        if (type == RECORD_HEADER_ATTR) {
            size_t attr = u32_at(at + 12);
            add_event(at + 8, size - 8 - attr, at + 8 + attr);
        }
        if (type == RECORD_HEADER_TRACING_DATA)
            span += (u32_at(at + 8) + 7) & ~7u;
        if (size < 8 || span > (size_t)(end - at))
            exit(1);
        if (type == RECORD_SAMPLE)
            put_sample(at, size);
        else
            put(&out, at, span);
        at += span;
    }
    end_waiting();
    put(&out, late.at, late.size);
}

/* ---- Files ---- */

static struct bytes read_file(const char *path)
{
    struct bytes in = {0};
    uint8_t piece[65536];
    size_t count;
    FILE *file = fopen(path, "rb");
    while (file && (count = fread(piece, 1, sizeof piece, file)))
        put(&in, piece, count);
    if (!file || fclose(file) || in.size < 16) {
        fprintf(stderr, "rewrite_samples: %s: %s\n", path, strerror(errno));
        exit(1);
    }
    return in;
}

/* The sections of features stand behind the records, and their places move with these. */
static void put_features(const struct bytes *in, size_t behind_data)
{
    size_t delta = out.size - behind_data, table = out.size, count = 0;
    for (size_t i = 72; i < 104; i++)
        count += (size_t)__builtin_popcount(in->at[i]);
    put(&out, in->at + behind_data, in->size - behind_data);
    for (size_t i = 0; i < count; i++)
        set_u64(out.at + table + 16 * i, u64_at(out.at + table + 16 * i) + delta);
}

static void rewrite_file(const struct bytes *in)
{
    size_t entry = u64_at(in->at + 16), attrs = u64_at(in->at + 24),
           attrs_size = u64_at(in->at + 32);
    size_t data = u64_at(in->at + 40), size = u64_at(in->at + 48);
    for (size_t at = attrs; at < attrs + attrs_size; at += entry)
        add_event(in->at + at, u64_at(in->at + at + entry - 8),
                  in->at + u64_at(in->at + at + entry - 16));
    put(&out, in->at, data);
    put_records(in->at + data, in->at + data + size);
    set_u64(out.at + 48, out.size - data);
    put_features(in, data + size);
}

static bool is_form(const char *name)
{
    static const char *const forms[] = {"copy",
                                        "read-alone",
                                        "kernel",
                                        "precise",
                                        "user-callchains",
                                        "kernel-callchains",
                                        "guest",
                                        "guest-chains",
                                        "hypervisor",
                                        "unknown-marks",
                                        "lbr",
                                        "deferred",
                                        "deferred-early",
                                        "deferred-late",
                                        "deferred-twice",
                                        "deferred-missing",
                                        "deferred-strange",
                                        "lost"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(forms[i], name) == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    if (argc != 4 || !is_form(argv[1]))
        return 2;
    form = argv[1];
    struct bytes in = read_file(argv[2]);
    if (u64_at(in.at + 8) == 16) {
        put(&out, in.at, 16);
        put_records(in.at + 16, in.at + in.size);
    } else {
        rewrite_file(&in);
    }
    FILE *file = fopen(argv[3], "wb");
    bool written = file && fwrite(out.at, 1, out.size, file) == out.size;
    return !written || fclose(file) != 0;
}
