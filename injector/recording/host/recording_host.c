/* See recording_host.h; the format of the feature sections stands in perf_format.h. */
#include "injector/recording/host/recording_host.h"

#include "injector/recording/perf_data/perf_format.h"
#include "jitdump/format/byte_cursor.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

enum { CLOCK_DATA_VERSION = 1 };

struct recorded_machine recorded_machine_of(const struct perf_file *file)
{
    size_t bytes = 0;
    const char *name = perf_file_string(file, PERF_FEATURE_ARCH, &bytes);
    if (!name || !bytes)
        return (struct recorded_machine){.name = NULL};
    return (struct recorded_machine){name, bytes, machine_named(name, bytes)};
}

const struct machine *recording_machine(const struct perf_file *file, const struct machine *here)
{
    struct recorded_machine said = recorded_machine_of(file);
    return said.name ? said.machine : here;
}

void recording_machine_report(const struct perf_file *file, const struct machine *here,
                              struct findings *findings)
{
    struct recorded_machine said = recorded_machine_of(file);
    if (said.name && !said.machine)
        report_finding(findings, FINDING_MACHINE_UNKNOWN, "%s: recorded on '%.*s'", file->path,
                       (int)said.name_bytes, said.name);
    else if (!said.name && !here)
        report_finding(findings, FINDING_MACHINE_UNKNOWN,
                       "%s: it does not say where it was recorded, and this machine is not known "
                       "either",
                       file->path);
}

/* The contents of feature section BIT; nothing if it is absent. */
static struct byte_cursor feature(const struct perf_file *file, unsigned bit)
{
    const struct perf_feature *found = perf_features_find(&file->features, bit);
    static const uint8_t nothing[1];
    return found ? byte_cursor_over(found->bytes, found->size, false)
                 : byte_cursor_over(nothing, 0, false);
}

/* A feature that is one text; "" without it. */
static const char *feature_text(const struct perf_file *file, unsigned bit)
{
    struct byte_cursor cursor = feature(file, bit);
    cursor_skip(&cursor, 4);
    const char *text = cursor_cstr(&cursor);
    return cursor.failed ? "" : text;
}

static void read_clock(struct recording_host *host, const struct perf_file *file)
{
    struct byte_cursor cursor = feature(file, PERF_FEATURE_CLOCK_DATA);
    uint32_t version = cursor_u32(&cursor);
    cursor_skip(&cursor, 4);
    host->wall_ns = cursor_u64(&cursor);
    host->perf_ns = cursor_u64(&cursor);
    host->has_wall_clock = !cursor.failed && version == CLOCK_DATA_VERSION;
}

void recording_host_read(struct recording_host *host, const struct perf_file *file)
{
    const struct machine *machine = recording_machine(file, machine_here());
    *host = (struct recording_host){.elf_mach = machine ? machine->elf_mach : EM_NONE,
                                    .address_bytes = machine ? machine->address_bytes : 8};
    snprintf(host->name, sizeof host->name, "%s", feature_text(file, PERF_FEATURE_HOSTNAME));
    read_clock(host, file);
}

bool recording_host_is_here(const struct recording_host *host)
{
    struct utsname here;
    return !host->name[0] || uname(&here) != 0 || strcmp(host->name, here.nodename) == 0;
}

uint64_t recording_host_wall_ns(const struct recording_host *host, uint64_t perf_ns)
{
    return host->wall_ns + (perf_ns - host->perf_ns);
}
