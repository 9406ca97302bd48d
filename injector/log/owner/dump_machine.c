/* See dump_machine.h. */
#include "injector/log/owner/dump_machine.h"

#include "injector/arrays/address_span.h"
#include "injector/arrays/array.h"
#include "injector/recording/host/recording_host.h"
#include "injector/recording/perf_data/perf_sample.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The addresses of DUMP's functions, sorted and joined.  NULL without memory. */
static struct address_span *collect_ranges(const struct jit_dump *dump, size_t *count)
{
    struct jit_dump_walk walk = jit_dump_begin(dump);
    struct jit_record record;
    struct address_span *ranges = NULL;
    size_t capacity = 0;
    enum jit_dump_end end;
    *count = 0;
    while (jit_dump_goes_on(end = jit_dump_next(&walk, &record))) {
        if (array_reserve(ranges, *count, capacity))
            break;
        if (end == JIT_DUMP_MORE && record.id == JIT_CODE_LOAD && !record.broken)
            ranges[(*count)++] = (struct address_span){
                record.load.code_addr, record.load.code_addr + record.load.code_size};
    }
    *count = address_spans_join(ranges, *count);
    return ranges;
}

static bool is_hit(const struct address_span *ranges, size_t count, uint64_t ip)
{
    const struct address_span *range = address_spans_find(ranges, count, ip);
    return range && range->start <= ip;
}

/* Whether a sample hit DUMP's code, which then is this machine's.  An emulator's guest (qemu-user)
 * logs code that never runs, and knows its machine. */
static bool ran_here(const struct jit_dump *dump, const struct perf_file *profile)
{
    struct perf_walk walk = perf_walk_begin(profile);
    struct perf_record record;
    size_t count;
    struct address_span *ranges = collect_ranges(dump, &count);
    bool hit = false;
    uint32_t pid;
    uint64_t ip;
    while (!hit && count && perf_walk_next(&walk, &record, NULL))
        hit = perf_record_sample(profile, &record, &pid, &ip) && is_hit(ranges, count, ip);
    free(ranges);
    return hit;
}

void dump_machine_correct(struct jit_dump *dump, const struct perf_file *profile,
                          struct findings *findings)
{
    struct recorded_machine said = recorded_machine_of(profile);
    const struct machine *machine = said.machine;
    bool other_order =
        machine && machine->order != EITHER && (machine->order == BIG) != dump->big_endian;
    if (!machine || other_order || (machine->compat && dump->elf_mach == machine->compat))
        return;
    bool named = dump->elf_mach != EM_NONE && dump->elf_mach != machine->elf_mach;
    if (named && !ran_here(dump, profile))
        return;
    if (dump->elf_mach != machine->elf_mach)
        report_quirk(findings, QUIRK_ELF_MACHINE, "%s: elf_mach %" PRIu32 ", recorded on %.*s",
                     dump->path, dump->elf_mach, (int)said.name_bytes, said.name);
    dump->elf_mach = machine->elf_mach;
    /* QUIRK_ELF_CLASS may have found more than the number tells. */
    if (!(dump->quirks & quirk_bit(QUIRK_ELF_CLASS)))
        dump->address_bytes = machine->address_bytes;
}

const char *dump_machine_refusal(const struct jit_dump *dump, char text[DUMP_MACHINE_TEXT_BYTES])
{
    char machine[MACHINE_TEXT_BYTES];
    if (dump->elf_mach == EM_NONE || machine_numbered(dump->elf_mach))
        return NULL;
    snprintf(text, DUMP_MACHINE_TEXT_BYTES,
             "its code is of %s, which is not known: no ELF file can be made of it",
             machine_text(machine, dump->elf_mach));
    return text;
}
