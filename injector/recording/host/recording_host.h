/* The machine that a recording was made on: its name, the kind of its code, and its wall clock. */
#ifndef PERFJIT_RECORDING_HOST_H
#define PERFJIT_RECORDING_HOST_H

#include "injector/recording/machine.h"
#include "injector/recording/perf_data/perf_file.h"

#include <sys/utsname.h>

struct recording_host {
    char name[sizeof((struct utsname *)0)->nodename]; /* "": the recording does not say */
    uint32_t elf_mach;         /* of its code; 0: it is of no machine that is known */
    uint8_t address_bytes;     /* of elf_mach: 4 or 8 */
    bool has_wall_clock;       /* recorded with -k, by perf 5.10 or newer */
    uint64_t wall_ns, perf_ns; /* the wall clock and perf's, at one moment */
};

/* The data in FILE about the machine that it was recorded on. */
struct recorded_machine {
    const char *name; /* of NAME_BYTES letters; NULL: it does not say */
    size_t name_bytes;
    const struct machine *machine; /* NULL: it does not say, or the name is not known */
};

struct recorded_machine recorded_machine_of(const struct perf_file *file);

/* The same, or HERE where FILE does not say; NULL: it is not known. */
const struct machine *recording_machine(const struct perf_file *file, const struct machine *here);

/* Report that recording_machine is not known, if it is not. */
void recording_machine_report(const struct perf_file *file, const struct machine *here,
                              struct findings *findings);

void recording_host_read(struct recording_host *host, const struct perf_file *file);

/* Whether the recording was made on the machine that this program runs on, by only its name. */
bool recording_host_is_here(const struct recording_host *host);

/* The wall clock's time at PERF_NS on perf's clock; valid with has_wall_clock. */
uint64_t recording_host_wall_ns(const struct recording_host *host, uint64_t perf_ns);

#endif
