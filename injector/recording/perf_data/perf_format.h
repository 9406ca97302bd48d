/* The perf.data format, as far as this project touches it: offsets and numbers.
 *
 * File header, 104 bytes (a pipe's is only the first 16)
 *      0 u64 magic            "PERFILE2"
 *      8 u64 size             104; 16 in a pipe
 *     16 u64 attr_size        of one entry of attrs
 *     24     attrs            section: u64 offset, u64 size
 *     40     data             section
 *     56     event_types      section, unused
 *     72     features         256 bits, as four u64
 *
 * Entry of attrs: a perf_event_attr, then the section of its event ids (u64 each)
 *      0 u32 type,  4 u32 size,  8 u64 config, 16 u64 sample_period
 *     24 u64 sample_type, 32 u64 read_format
 *     40 u64 flags            bit 1 inherit, bits 4 and 5 exclude_user and exclude_kernel,
 *                             bit 10 freq, bit 18 sample_id_all,
 *                             bit 25 use_clockid, bit 26 context_switch,
 *                             bits 38 and 39 defer_callchain and defer_output
 *     72 u64 branch_sample_type, 80 u64 sample_regs_user, 88 u32 sample_stack_user
 *     92 s32 clockid (PERF_CLOCK_NONE: the times are none, see record_times.h)
 *     96 u64 sample_regs_intr, 108 u16 sample_max_stack (0: the machine's)
 *
 * data: records, one after another
 *      0 u32 type,  4 u16 misc,  6 u16 size (of the whole record, a multiple of 8 in practice)
 *     An AUXTRACE record is followed by the `size` bytes of trace that it announces at offset 8.
 *
 * After data: for each set feature bit, in order, a section; then, anywhere after, their contents.
 *
 * Kernel records (type < 64) other than SAMPLE end in the sample_id if sample_id_all is set.  It
 * and SAMPLE stand in sample_format.h.
 *
 * FORK    8 u32 pid, 12 u32 ppid, 16 u32 tid, 20 u32 ptid, 24 u64 time; of a thread if
 *         pid is ppid; misc bit 13: written by perf record for what ran already, an exec later than
 *         its fork: the child has nothing of its parent's
 * EXIT    as FORK; of the thread tid
 * NAMESPACES 8 u32 pid, 12 u32 tid, 16 u64 nr, then nr times {u64 dev, u64 inode}:
 *         net, uts, ipc, pid, user, mnt, cgroup
 * COMM    8 u32 pid, 12 u32 tid, 16 comm, NUL-terminated, padded to 8; misc bit 13: by exec
 * MMAP    8 u32 pid, 12 u32 tid, 16 u64 start, 24 u64 len, 32 u64 pgoff, 40 filename
 * MMAP2   8 u32 pid, 12 u32 tid, 16 u64 start, 24 u64 len, 32 u64 pgoff,
 *        40 u32 maj, 44 u32 min, 48 u64 ino, 56 u64 ino_generation
 *           (or, with misc bit 14: 40 u8 build_id_size, 44 build_id[20]),
 *        64 u32 prot, 68 u32 flags, 72 filename, NUL-terminated, padded to 8
 * LOST    8 u64 id, 16 u64 lost: so many records found no room in the kernel's buffer
 * LOST_SAMPLES 8 u64 lost; misc bit 15: the user's own filter left them out
 * SWITCH  nothing: the thread of its sample_id comes, or with misc bit 13 goes, and with bit 14 had
 *         more to do (since Linux 4.17)
 * SWITCH_CPU_WIDE the same; 8 u32 pid, 12 u32 tid of the other one
 * AUX     8 u64 offset, 16 u64 size, 24 u64 flags; bit 0: the trace was cut, its buffer was full
 * TIME_CONV 8 u64 time_shift, 16 u64 time_mult, 24 u64 time_zero, and since perf 5.10
 *        32 u64 time_cycles, 40 u64 time_mask, 48 u8 cap_user_time_zero, 49 u8 cap_user_time_short
 * CALLCHAIN_DEFERRED 8 u64 cookie, 16 u64 nr, 24 nr entries of a chain (u64 each): the user's part
 *        of the thread's chains that end in PERF_CONTEXT_USER_DEFERRED and this cookie
 *
 * Feature sections: HOSTNAME, OSRELEASE, ARCH (what uname -n, -r and -m print)
 *      0 u32 size, 4 text, NUL-terminated
 * CLOCK_DATA, of recordings with -k
 *      0 u32 version (1),  4 u32 clockid,  8 u64 wall clock and 16 u64 the clock CLOCKID,
 *                             read at one moment, in ns
 *
 * A record is valid if its size is at least 8 and it lies inside its section.
 */
#ifndef PERFJIT_PERF_FORMAT_H
#define PERFJIT_PERF_FORMAT_H

#include "jitdump/format/byte_cursor.h"
#include "jitdump/format/byte_sink.h"

#include <stdint.h>

#define PERF_MAGIC UINT64_C(0x32454c4946524550) /* "PERFILE2" */

enum {
    PERF_FILE_HEADER_BYTES = 104,
    PERF_PIPE_HEADER_BYTES = 16,
    PERF_SECTION_BYTES = 16,
    PERF_FEATURE_BITS = 256,
    PERF_ATTR_MIN_BYTES = 64, /* perf_event_attr, version 0 */
    PERF_RECORD_HEADER_BYTES = 8,
    PERF_RECORD_MOST_BYTES = 65528, /* the largest multiple of 8 in a u16 */
    PERF_COMM_BYTES = 16,           /* before the name */
    PERF_KSYMBOL_BYTES = 24,        /* before the name */
    PERF_MMAP_BYTES = 40,
    PERF_MMAP2_BYTES = 72,
    PERF_BUILD_ID_BYTES = 20,
    PERF_AUXTRACE_BYTES = 48,
    PERF_NAMESPACE_BYTES = 16,
    PERF_NAMESPACES_MOST = 64, /* in one record; Linux 6 has 7 */
    PERF_NAMESPACE_PID = 3,    /* which of a NAMESPACES record's links */
    PERF_NAMESPACE_MOUNT = 5,
};

/* The offsets of the fields of the file header. */
enum {
    PERF_HEADER_ATTR_SIZE = 16,
    PERF_HEADER_DATA = 40,
    PERF_HEADER_FEATURES = 72,
};

/* The offsets of the fields of an entry of attrs. */
enum {
    PERF_ATTR_SIZE = 4,
    PERF_ATTR_CONFIG = 8,
    PERF_ATTR_PERIOD = 16,
    PERF_ATTR_SAMPLE_TYPE = 24,
    PERF_ATTR_READ_FORMAT = 32,
    PERF_ATTR_FLAGS = 40,
    PERF_ATTR_BRANCH_SAMPLE_TYPE = 72,
    PERF_ATTR_REGS_USER = 80,
    PERF_ATTR_STACK_USER = 88,
    PERF_ATTR_CLOCKID = 92,
    PERF_ATTR_REGS_INTR = 96,
    PERF_ATTR_MAX_STACK = 108,
};

#define PERF_TYPE_SOFTWARE      1 /* of an attr */
#define PERF_TYPE_TRACEPOINT    2
#define PERF_SOFTWARE_OUTPUT    10            /* its config: a BPF program writes the samples */
#define PERF_OFF_CPU_NAME       "offcpu-time" /* one of those */
#define PERF_ATTR_INHERIT       (UINT64_C(1) << 1)
#define PERF_ATTR_NO_USER       (UINT64_C(1) << 4)
#define PERF_ATTR_NO_KERNEL     (UINT64_C(1) << 5)
#define PERF_ATTR_FREQ          (UINT64_C(1) << 10) /* of its flags */
#define PERF_ATTR_SAMPLE_ID_ALL (UINT64_C(1) << 18)
#define PERF_ATTR_USE_CLOCKID   (UINT64_C(1) << 25)
#define PERF_ATTR_SWITCHES      (UINT64_C(1) << 26)
#define PERF_ATTR_DEFERS        (UINT64_C(3) << 38)
#define PERF_CLOCK_NONE         (-1) /* a clockid */

/* read_format bits */
enum {
    PERF_READ_ENABLED = 1,
    PERF_READ_RUNNING = 2,
    PERF_READ_ID = 4,
    PERF_READ_GROUP = 8,
    PERF_READ_LOST = 16,
};

/* Marks in a chain: whose the addresses behind it are.  No address is as high as the lowest. */
#define PERF_CONTEXT_LOWEST        ((uint64_t)-4095)
#define PERF_CONTEXT_HYPERVISOR    ((uint64_t)-32)
#define PERF_CONTEXT_KERNEL        ((uint64_t)-128)
#define PERF_CONTEXT_USER          ((uint64_t)-512)
#define PERF_CONTEXT_USER_DEFERRED ((uint64_t)-640) /* behind it stands a cookie */
#define PERF_CONTEXT_GUEST         ((uint64_t)-2048)
#define PERF_CONTEXT_GUEST_KERNEL  ((uint64_t)-2176)
#define PERF_CONTEXT_GUEST_USER    ((uint64_t)-2560)

/* record types */
enum {
    PERF_RECORD_MMAP = 1,
    PERF_RECORD_LOST = 2,
    PERF_RECORD_COMM = 3,
    PERF_RECORD_EXIT = 4,
    PERF_RECORD_FORK = 7,
    PERF_RECORD_SAMPLE = 9,
    PERF_RECORD_MMAP2 = 10,
    PERF_RECORD_AUX = 11,
    PERF_RECORD_LOST_SAMPLES = 13,
    PERF_RECORD_SWITCH = 14,
    PERF_RECORD_SWITCH_CPU_WIDE = 15,
    PERF_RECORD_NAMESPACES = 16,
    PERF_RECORD_KSYMBOL = 17,
    PERF_RECORD_CALLCHAIN_DEFERRED = 22,
    PERF_RECORD_USER_TYPE_START = 64, /* from here on records of the tool, without sample_id */
    PERF_RECORD_HEADER_ATTR = 64,
    PERF_RECORD_HEADER_TRACING_DATA = 66,
    PERF_RECORD_HEADER_BUILD_ID = 67,
    PERF_RECORD_FINISHED_ROUND = 68,
    PERF_RECORD_AUXTRACE = 71,
    PERF_RECORD_TIME_CONV = 79,
    PERF_RECORD_HEADER_FEATURE = 80,
    PERF_RECORD_COMPRESSED = 81,
    PERF_RECORD_FINISHED_INIT = 82, /* behind what perf record tells of processes that run already */
    PERF_RECORD_COMPRESSED2 = 83,
};

#define PERF_KSYMBOL_UNREGISTER 1 /* a flag of KSYMBOL */

/* misc bits */
enum {
    PERF_MISC_CPUMODE_MASK = 7,
    PERF_MISC_KERNEL = 1,
    PERF_MISC_USER = 2,
    PERF_MISC_HYPERVISOR = 3,
    PERF_MISC_GUEST_KERNEL = 4,
    PERF_MISC_GUEST_USER = 5,
    PERF_MISC_MMAP_DATA = 1 << 13,
    PERF_MISC_COMM_EXEC = 1 << 13,
    PERF_MISC_FORK_EXEC = 1 << 13,
    PERF_MISC_SWITCH_OUT = 1 << 13,
    PERF_MISC_SWITCH_OUT_PREEMPT = 1 << 14,
    PERF_MISC_MMAP_BUILD_ID = 1 << 14,
    PERF_MISC_LOST_BY_FILTER = 1 << 15,
};

/* feature bits */
enum {
    PERF_FEATURE_TRACING_DATA = 1,
    PERF_FEATURE_BUILD_ID = 2,
    PERF_FEATURE_HOSTNAME = 3,
    PERF_FEATURE_OSRELEASE = 4,
    PERF_FEATURE_ARCH = 6,
    PERF_FEATURE_CMDLINE = 11,
    PERF_FEATURE_EVENT_DESC = 12,
    PERF_FEATURE_AUXTRACE = 18,
    PERF_FEATURE_DIR_FORMAT = 24,
    PERF_FEATURE_COMPRESSED = 27,
    PERF_FEATURE_CLOCK_DATA = 29,
    PERF_FEATURE_OLD_LAST = 32, /* of perf 6.1 */
};

/* One u64 field at a place that has been checked to hold it. */
static inline uint64_t perf_get_u64(const uint8_t *at)
{
    struct byte_cursor cursor = byte_cursor_over(at, 8, false);
    return cursor_u64(&cursor);
}

static inline void perf_put_u64(uint8_t *at, uint64_t value)
{
    struct byte_sink sink = byte_sink_over(at, 8);
    sink_u64(&sink, value);
}

#endif
