/* Code that came into the kernel and left it while perf recorded: BPF programs, their trampolines,
 * pages of kprobes and ftrace.
 *
 * A KSYMBOL record says that NAME is at [addr, addr + len) from then on, or with the flag
 * "unregister" that nothing is there any more:
 *
 *     0xffffffffc0200000   |-- bpf_prog_7a_filter --|      |-- bpf_prog_9c_trace ...
 *                       KSYMBOL              unregister  KSYMBOL (its address is used again)
 *
 * perf writes KSYMBOL without a time for programs that were there before the recording.  The
 * kernel's own list, which is read later, can't tell which program was there at a sample. */
#ifndef PERFJIT_KERNEL_CODE_H
#define PERFJIT_KERNEL_CODE_H

#include "injector/recording/life_moment.h"
#include "injector/recording/perf_data/perf_record.h"

#include <stddef.h>

struct kernel_code_event {
    uint64_t start, end;
    struct life_moment at;
    const char *name;  /* a view of the recording; NULL: nothing is there any more */
    uint64_t most_end; /* of this event and those before it */
};

struct kernel_code {
    struct kernel_code_event *items; /* by start, end, moment */
    size_t count, capacity;
};

#define NO_KERNEL_CODE SIZE_MAX

/* Take RECORD of FILE, a KSYMBOL; a damaged one says nothing.  Then put all in order.  CODE is
 * zeros at first.  Returns 0, or -1 without memory.  Release with kernel_code_free in any case. */
int kernel_code_take(struct kernel_code *code, const struct perf_file *file,
                     const struct perf_record *record);
void kernel_code_order(struct kernel_code *code);

/* The number, in CODE's items, of what was at PC at MOMENT; NO_KERNEL_CODE: nothing that is told.
 */
size_t kernel_code_at(const struct kernel_code *code, uint64_t pc, struct life_moment moment);

void kernel_code_free(struct kernel_code *code);

#endif
