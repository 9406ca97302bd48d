/* How an event lays out its SAMPLE records, and the sample_id at the end of its other records.
 *
 * A SAMPLE has these fields in this order, each if its bit of sample_type is set:
 *     WORD           u64
 *     PAIR           two u32
 *     READ           {u64 value, times, u64 id, u64 lost}, or of a group
 *                    {u64 nr, times, nr times {u64 value, u64 id, u64 lost}}; times are u64 enabled
 *                    and u64 running; read_format says which of them are there
 *     CALLCHAIN      u64 nr, then nr addresses: from PERF_CONTEXT_KERNEL on the kernel's, from
 *                    PERF_CONTEXT_USER on the user's, and so on, the innermost first
 *     RAW            u32 size, then size bytes
 *     BRANCH_STACK   u64 nr, with bit 17 of branch_sample_type u64 hw_idx, nr times 24 bytes, with
 *                    bit 19 nr times u64.  With bit 11 they are the calls that have not returned,
 *                    the innermost first
 *     REGS_USER      u64 abi, and unless that is 0 a u64 for each bit of sample_regs_user
 *     STACK_USER     u64 size, and unless that is 0 size bytes and u64 dyn_size: how many of these
 *                    are the stack
 *     REGS_INTR      as REGS_USER, of sample_regs_intr
 *     AUX            u64 size, then size bytes
 * WEIGHT stands there with bit 24 (WEIGHT_STRUCT) as well.
 *
 * A sample_id has those of the fields that are in SAMPLE_ID_FIELDS; IDENTIFIER is its last.
 */
#ifndef PERFJIT_SAMPLE_FORMAT_H
#define PERFJIT_SAMPLE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bit of sample_type, name, member of struct perf_sample.  A new field of 8 bytes is one line; a
 * reader sees it if it reads that far (perf_sample_read). */
#define PERF_SAMPLE_TABLE(WORD, PAIR, PART)                                                        \
    WORD(16, IDENTIFIER, identifier)                                                               \
    WORD(0, IP, ip)                                                                                \
    PAIR(1, TID, pid, tid)                                                                         \
    WORD(2, TIME, time_ns)                                                                         \
    WORD(3, ADDR, addr)                                                                            \
    WORD(6, ID, id)                                                                                \
    WORD(9, STREAM_ID, stream_id)                                                                  \
    PAIR(7, CPU, cpu, cpu_reserved)                                                                \
    WORD(8, PERIOD, period)                                                                        \
    PART(4, READ, counts)                                                                          \
    PART(5, CALLCHAIN, chain)                                                                      \
    PART(10, RAW, raw)                                                                             \
    PART(11, BRANCH_STACK, branches)                                                               \
    PART(12, REGS_USER, user_registers)                                                            \
    PART(13, STACK_USER, user_stack)                                                               \
    WORD(14, WEIGHT, weight)                                                                       \
    WORD(15, DATA_SRC, data_src)                                                                   \
    WORD(17, TRANSACTION, transaction)                                                             \
    PART(18, REGS_INTR, interrupt_registers)                                                       \
    WORD(19, PHYS_ADDR, phys_addr)                                                                 \
    WORD(21, CGROUP, cgroup)                                                                       \
    WORD(22, DATA_PAGE_SIZE, data_page_size)                                                       \
    WORD(23, CODE_PAGE_SIZE, code_page_size)                                                       \
    PART(20, AUX, aux)

/* The bits of sample_type, PERF_SAMPLE_IP and so on. */
enum {
#define ONE_BIT(bit, name, ...) PERF_SAMPLE_##name = 1 << bit,
    PERF_SAMPLE_TABLE(ONE_BIT, ONE_BIT, ONE_BIT)
#undef ONE_BIT
        PERF_SAMPLE_WEIGHT_STRUCT = 1 << 24,
};

/* The fields by their place in the table, SAMPLE_IP and so on. */
enum sample_field {
#define ONE_FIELD(bit, name, ...) SAMPLE_##name,
    PERF_SAMPLE_TABLE(ONE_FIELD, ONE_FIELD, ONE_FIELD)
#undef ONE_FIELD
        SAMPLE_FIELDS,
    SAMPLE_BEHIND_CALLCHAIN = SAMPLE_CALLCHAIN + 1,
    SAMPLE_BEHIND_STACK = SAMPLE_STACK_USER + 1,
    SAMPLE_FRONT_FIELDS = SAMPLE_PERIOD + 1, /* of 8 bytes each: their places are fixed */
};

enum {
    SAMPLE_ID_FIELDS = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
                       PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER,
};

struct sample_format {
    uint64_t sample_type;
    uint64_t read_format;
    uint64_t branch_sample_type;
    uint64_t user_registers, interrupt_registers; /* masks */
    uint16_t max_stack; /* the most addresses of a chain; 0: as many as the machine allowed */
    bool inherits; /* children are counted as well: Linux 6.13 lets a group's sample do so, and has
                      each thread's own counts in its samples */
    bool sample_id_all;
    bool off_cpu; /* RAW says which thread waited: see perf_sample.h */
    /* sample_format_lay_out computes the following from the fields above: */
    uint8_t fields[SAMPLE_FIELDS]; /* of a SAMPLE, in order */
    uint8_t field_count;
    uint8_t front[SAMPLE_FRONT_FIELDS]; /* where each stands in a SAMPLE; 0: nowhere */
    uint8_t simple_end; /* where the fields end if they are first ones alone, and perhaps a chain
                           behind them, as of nearly all; 0: there are others */
    uint8_t id_fields[SAMPLE_FRONT_FIELDS]; /* of the sample_id, in order */
    uint8_t id_bytes;                       /* of the sample_id; 0: there is none */
    uint8_t id_time;                        /* where TIME stands in it; id_bytes: nowhere */
};

/* The format of the event with the attribute ATTR of SIZE bytes, PERF_ATTR_MIN_BYTES or more. */
struct sample_format sample_format_of_attr(const uint8_t *attr, size_t size);

void sample_format_lay_out(struct sample_format *format);

/* Whether samples of SAMPLE_TYPE hold the user's stack and registers. */
bool sample_type_has_stack(uint64_t sample_type);

/* Whether samples of FORMAT hold a call chain, and all of it is in that. */
bool sample_format_has_chain_alone(const struct sample_format *format);

/* Whether they hold the user's calls as branches (perf record --call-graph lbr). */
bool sample_format_has_calls(const struct sample_format *format);

#endif
