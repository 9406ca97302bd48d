/* The fields of a SAMPLE up to the user's stack, as its event lays them out.
 *
 * In this order, each if its bit of sample_type is set:
 *     IDENTIFIER IP TID TIME ADDR ID STREAM_ID CPU PERIOD      u64 each
 *     READ           a value and times, or with read_format's bit 3 (a group) u64 nr, times, then
 *                    nr values; behind each value its event's id, if bit 2 is set
 *     CALLCHAIN      u64 nr, then nr addresses: from PERF_CONTEXT_KERNEL on the kernel's, from
 *                    PERF_CONTEXT_USER on the user's, the innermost first
 *     RAW            u32 size, then size bytes
 *     BRANCH_STACK   u64 nr, with bit 17 of branch_sample_type u64 hw_idx, nr times 24 bytes, with
 *                    bit 19 nr times u64
 *     REGS_USER      u64 abi, and unless that is 0 a u64 for each bit of sample_regs_user
 *     STACK_USER     u64 size, and unless that is 0 size bytes and u64 dyn_size: how many of these
 *                    are the stack
 * A sample is valid if all that lies in its record.
 */
#ifndef PERFJIT_SAMPLE_FORMAT_H
#define PERFJIT_SAMPLE_FORMAT_H

#include "injector/recording/machine.h"
#include "injector/recording/perf_data/perf_record.h"
#include "injector/unwind/user_stack.h"

/* What of an event's perf_event_attr the layout depends on. */
struct sample_format {
    uint64_t sample_type;
    uint64_t read_format;
    uint64_t branch_sample_type;
    uint64_t regs_user;
    bool inherits; /* children are counted as well: Linux 6.13 lets a group's sample do so, and has
                      each thread's own counts in its samples */
};

struct sample_formats {
    const struct perf_file *file;
    struct sample_format *items; /* by event */
    struct perf_id *ids;         /* by id */
    size_t id_count;
    bool by_identifier; /* IDENTIFIER, at its start, says which event a sample is of */
};

enum { USER_ABI_NONE, USER_ABI_32, USER_ABI_64 };

/* Where the parts of a SAMPLE stand in its record. */
struct user_sample {
    const struct perf_record *record;
    const struct sample_format *format;
    size_t chain_at, chain_end; /* with nr; equal: the event has no chains */
    uint64_t kernel_count;      /* entries in front of the user's */
    size_t regs_at;             /* where the registers begin */
    size_t stack_end;           /* where what follows the stack begins */
    uint64_t abi;
    const uint8_t *registers; /* one for each bit of regs_user; NULL: none */
    const uint8_t *stack;     /* NULL: none */
    uint64_t stack_bytes;     /* of the stack */
    bool cut;                 /* the copy is as large as was asked for */
};

/* Returns 0, or -1 without memory.  Release with sample_formats_free in either case. */
int sample_formats_read(struct sample_formats *formats, const struct perf_file *file);

/* Whether samples of EVENT hold the user's stack and registers. */
bool sample_format_has_stack(const struct sample_format *format);

/* Whether samples of EVENT hold a call chain, and all of it is in that. */
bool sample_format_has_chain_alone(const struct sample_format *format);

/* The format of RECORD, a SAMPLE. */
const struct sample_format *sample_format_of(const struct sample_formats *formats,
                                             const struct perf_record *record);

/* Read RECORD, of FORMAT; without a stack in that, what stands in front of the registers.  Returns
 * false if it is not valid. */
bool user_sample_read(struct user_sample *sample, const struct sample_format *format,
                      const struct perf_record *record);

/* The counts that a SAMPLE of perf record -e '{a,b}:S' has: of each event of the group one. */
struct sample_counts {
    const uint8_t *values; /* each with its event's id behind it */
    size_t count, value_bytes;
};

/* Read those of RECORD, of FORMAT.  Returns false if it has none, or is not valid. */
bool sample_counts_read(struct sample_counts *counts, const struct sample_format *format,
                        const struct perf_record *record);

/* Which event has ID.  Returns false if none has. */
bool sample_formats_event_of(const struct sample_formats *formats, uint64_t id, uint32_t *event);

/* How many frames a record can have room for in the place of SAMPLE's registers and stack. */
size_t user_sample_most_frames(const struct user_sample *sample);

void sample_formats_free(struct sample_formats *formats);

/* The registers of SAMPLE, as DWARF numbers them: its innermost frame.  Returns false if the
 * program counter or the stack pointer is missing. */
bool user_sample_frame(const struct user_sample *sample, const struct machine *machine,
                       struct unwind_frame *frame);

#endif
