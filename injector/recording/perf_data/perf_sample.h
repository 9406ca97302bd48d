/* All that a SAMPLE can tell, as views into its record; see sample_format.h for its format.
 *
 * A sample of perf record --off-cpu (perf 6.16 and later) is written when another thread runs.  Its
 * own fields are of that one.  The thread that waited, and where and how long, stands in RAW:
 *      0 u32 pid, 4 u32 tid, 8 u64 period (ns), 16 u64 nr, 24 nr entries of a chain (u64 each),
 *     then u64 cgroup
 * pid, tid, period, chain, ip and mode are those; the ip is the chain's first address.  Registers
 * and stack, which are of the other thread, are left out.
 */
#ifndef PERFJIT_PERF_SAMPLE_H
#define PERFJIT_PERF_SAMPLE_H

#include "injector/recording/perf_data/perf_record.h"
#include "jitdump/format/byte_sink.h"

/* The counts so far: of each event of a group, or of the sample's own event.  Value number I stands
 * at values + I * value_bytes; its id and the number of its lost records stand in the same way. */
struct sample_counts {
    const uint8_t *values, *ids, *lost; /* the latter two NULL: not told */
    size_t count, value_bytes;
    uint64_t enabled_ns, running_ns;
    bool grouped; /* perf record -e '{a,b}:S' */
};

struct sample_chain {
    const uint8_t *entries; /* u64 each, with marks (PERF_CONTEXT_...) among them; none if one of
                             * the marks is unknown */
    size_t count;
};

struct sample_bytes {
    const uint8_t *bytes;
    size_t size;
};

struct sample_branches {
    const uint8_t *entries; /* u64 from, to, flags each */
    size_t count;
    uint64_t hw_idx;
    const uint8_t *counters; /* u64 for each; NULL: none */
};

enum { SAMPLE_ABI_NONE, SAMPLE_ABI_32, SAMPLE_ABI_64 };

struct sample_registers {
    uint64_t abi, mask;
    const uint8_t *values; /* u64 for each bit of mask; NULL: none */
};

struct sample_stack {
    const uint8_t *bytes; /* NULL: none */
    size_t size;          /* of the stack */
    bool cut;             /* the copy has the full requested size */
};

struct perf_sample {
    const struct perf_record *record;
    const struct sample_format *format;
    unsigned mode; /* PERF_MISC_USER or another cpumode */
    uint64_t has;  /* bits of sample_type: the fields that have been read; the others are 0 */
#define ONE_WORD(bit, name, member)        uint64_t member;
#define ONE_PAIR(bit, name, first, second) uint32_t first, second;
#define NO_PART(bit, name, member)
    PERF_SAMPLE_TABLE(ONE_WORD, ONE_PAIR, NO_PART)
#undef ONE_WORD
#undef ONE_PAIR
#undef NO_PART
    struct sample_counts counts;
    struct sample_chain chain;
    struct sample_bytes raw, aux;
    struct sample_branches branches;
    struct sample_registers user_registers, interrupt_registers;
    struct sample_stack user_stack;
    uint16_t places[SAMPLE_FIELDS + 1]; /* of the fields in order, and the end of the last */
};

/* The index of the event of FILE that the SAMPLE RECORD belongs to; 0 if the record does not
 * say. */
uint32_t perf_sample_event(const struct perf_file *file, const struct perf_record *record);

/* Read RECORD, a SAMPLE of FORMAT, up to LAST.  Both must outlive SAMPLE.  Returns false if it ends
 * too soon; the fields in front of that have been read. */
bool perf_sample_read(struct perf_sample *sample, const struct sample_format *format,
                      const struct perf_record *record, enum sample_field last);

/* The same as far as its stack; without a stack, up to the fields in front of the registers. */
bool perf_sample_read_stack(struct perf_sample *sample, const struct sample_format *format,
                            const struct perf_record *record);

/* Whether RECORD, a SAMPLE of FORMAT, ends in front of the end of its stack, read as above. */
bool perf_sample_is_broken(const struct sample_format *format, const struct perf_record *record);

/* Whose a sample is, and where and when it was taken. */
struct sample_place {
    uint32_t pid, tid;
    uint64_t ip, time_ns; /* 0: it has none */
    bool has_ip, has_time;
    unsigned mode; /* as of perf_record_sample_mode; of any record */
};

/* Returns false if RECORD is not a SAMPLE, or does not say whose it is. */
bool perf_record_sample_place(const struct perf_file *file, const struct perf_record *record,
                              struct sample_place *place);

/* The process and address of a sample (IP NULL: not wanted). Returns false if RECORD is not a
 * SAMPLE, or does not contain them. */
bool perf_record_sample(const struct perf_file *file, const struct perf_record *record,
                        uint32_t *pid, uint64_t *ip);

/* The process and thread of a sample. Returns false as above. */
bool perf_record_sample_thread(const struct perf_file *file, const struct perf_record *record,
                               uint32_t *pid, uint32_t *tid);

/* The mode in which the SAMPLE RECORD was taken: PERF_MISC_USER or another cpumode. */
unsigned perf_record_sample_mode(const struct perf_file *file, const struct perf_record *record);

/* The mode in which SAMPLE was taken: PERF_MISC_USER or another cpumode. */
unsigned perf_sample_mode(const struct perf_sample *sample);

/* How many entries of SAMPLE's chain are in front of the user's. */
size_t perf_sample_user_entry(const struct perf_sample *sample);

/* An address of a sample's stack. */
struct stack_address {
    uint64_t ip;
    unsigned mode; /* whose it is, as perf_sample_mode; 0: that is not known */
    bool called;   /* it is where a call returns to */
    uint64_t seen; /* or 0: where the processor was, more exactly, if both are of one function */
};

/* A walk over the chain in SAMPLE, the innermost address first.  The calls in a branch stack stand
 * in the place of the user's part.  If the first address is of the sample's mode, the processor was
 * at the sample's own address a moment before, and it is SEEN.  Else the sample's address stands in
 * front of all that is in the chain. */
struct stack_reading {
    const struct perf_sample *sample;
    size_t next, branch;
    unsigned mode;
    bool marked; /* the address at hand is the first behind a mark */
    bool begun;  /* an address was read */
};

struct stack_reading stack_reading_begin(const struct perf_sample *sample);
bool stack_reading_next(struct stack_reading *reading, struct stack_address *address);

/* Whether entries of the chain that follow, up to the next mark, are callers of user code. */
bool stack_reading_in_user_callers(const struct stack_reading *reading);

/* The offset of FIELD in SAMPLE's record, or the offset that it would have if it were there.  It
 * has been read up to FIELD or further. */
size_t perf_sample_place(const struct perf_sample *sample, enum sample_field field);

/* Read the sample_id of RECORD, no SAMPLE, of FILE.  Returns false if it has none. */
bool perf_sample_id_read(struct perf_sample *sample, const struct perf_file *file,
                         const struct perf_record *record);

/* Put the fields of 8 bytes that a SAMPLE of FORMAT begins with, as they are in SAMPLE. */
void perf_sample_put_front(const struct perf_sample *sample, const struct sample_format *format,
                           struct byte_sink *sink);

/* Put the sample_id of another record of FORMAT. */
void perf_sample_put_id(const struct perf_sample *sample, const struct sample_format *format,
                        struct byte_sink *sink);

#endif
