/* A dump of four functions, put together record by record, each with what is wrong with it. */
#ifndef QUIRK_DUMP_H
#define QUIRK_DUMP_H

#include "jitdump/format/byte_sink.h"
#include "jitdump/format/eh_frame.h"
#include "jitdump/format/jitdump_format.h"

#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SLOT_BYTES = 64, ARENA_BYTES = 4096, ALPHA = 0, BETA, GAMMA, DELTA, FUNCTIONS };

/* A LOAD, and what is wrong with it. */
struct load {
    const char *name;
    uint64_t addr, code_size, code_index, time;
    const uint8_t *code;
    uint32_t pid, tid;
    size_t pad_bytes; /* between name and code */
    size_t cut_bytes; /* that are not written */
    bool wide_tid;    /* of 8 bytes */
    bool no_name;     /* no NUL either */
    bool no_nul;      /* behind the name */
    bool code_absent;
    bool code_behind; /* total_size leaves it out */
};

static uint8_t dump_bytes[1 << 18];
static struct byte_sink dump;
static uint8_t *arena;
static uint64_t start_ns;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint32_t own_pid(void)
{
    return (uint32_t)getpid();
}

/* ---- Functions ---- */

/* Counts down from 300000 and returns.  No byte of it is text, and it has no NUL before the fifth.
 */
static const uint8_t loop[] = {
#if defined(__x86_64__)
    0xb9, 0xe0, 0x93, 0x04, 0x00, /* mov ecx, 300000 */
    0xff, 0xc9,                   /* dec ecx */
    0x75, 0xfc,                   /* jnz to the dec */
    0xc3,                         /* ret */
#elif defined(__aarch64__)
    0x80, 0x00, 0xa0, 0xd2, /* movz x0, 4, lsl 16 */
    0x00, 0x04, 0x00, 0xf1, /* subs x0, x0, 1 */
    0xe1, 0xff, 0xff, 0x54, /* b.ne to the subs */
    0xc0, 0x03, 0x5f, 0xd6, /* ret */
#else
#error "no loop for this machine yet"
#endif
};

static uint8_t *slot(size_t function)
{
    return arena + function * SLOT_BYTES;
}

static void make_functions(void)
{
    arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
                 -1, 0);
    if (arena == MAP_FAILED)
        exit(EXIT_FAILURE);
    for (size_t i = 0; i < FUNCTIONS; i++)
        memcpy(slot(i), loop, sizeof loop);
    __builtin___clear_cache((char *)arena, (char *)arena + ARENA_BYTES);
}

/* For SECONDS of the CPU, so that on a busy machine there are samples, too; hardly any of them in
 * clock. */
static void run(double seconds)
{
    clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
    while (clock() < end)
        for (size_t i = 0; i < 100 * FUNCTIONS; i++)
            ((void (*)(void))(uintptr_t)slot(i % FUNCTIONS))();
}

/* ---- Records ---- */

struct header {
    uint32_t version, total_size, bytes, elf_mach, pid;
    uint64_t flags;
};

static struct header plain_header(void)
{
#if defined(__aarch64__)
    const uint32_t machine = EM_AARCH64;
#else
    const uint32_t machine = EM_X86_64;
#endif
    return (struct header){
        JITDUMP_FILE_VERSION, JITHEADER_BYTES, JITHEADER_BYTES, machine, own_pid(), 0};
}

static void put_header(const struct header *header)
{
    sink_u32(&dump, JITDUMP_MAGIC);
    sink_u32(&dump, header->version);
    sink_u32(&dump, header->total_size);
    sink_u32(&dump, header->elf_mach);
    sink_u32(&dump, 0);
    sink_u32(&dump, header->pid);
    sink_u64(&dump, start_ns);
    sink_u64(&dump, header->flags);
    sink_zeros(&dump, header->bytes - JITHEADER_BYTES);
}

static void put_plain_header(void)
{
    struct header header = plain_header();
    put_header(&header);
}

static size_t begin_record(uint32_t id, uint64_t time)
{
    size_t start = dump.size;
    sink_u32(&dump, id);
    sink_u32(&dump, 0);
    sink_u64(&dump, time);
    return start;
}

static void end_record(size_t start)
{
    struct byte_sink size = byte_sink_over(dump.data + start + 4, 4);
    size.big_endian = dump.big_endian;
    sink_u32(&size, (uint32_t)(dump.size - start));
}

static struct load plain_load(size_t function)
{
    static const char *const names[FUNCTIONS + 1] = {"alpha", "beta", "gamma", "delta", "omega"};
    return (struct load){.name = names[function],
                         .addr = (uintptr_t)slot(function),
                         .code_size = sizeof loop,
                         .code_index = function,
                         .time = start_ns + function,
                         .code = slot(function),
                         .pid = own_pid(),
                         .tid = own_pid()};
}

static void put_load(const struct load *load)
{
    size_t start = begin_record(JIT_CODE_LOAD, load->time);
    sink_u32(&dump, load->pid);
    sink_u32(&dump, load->wide_tid ? 0 : load->tid); /* or padding */
    if (load->wide_tid)
        sink_u64(&dump, 0x1f3a2b000 + load->tid);
    sink_u64(&dump, load->addr);
    sink_u64(&dump, load->addr);
    sink_u64(&dump, load->code_size);
    sink_u64(&dump, load->code_index);
    if (!load->no_name)
        sink_bytes(&dump, load->name, strlen(load->name) + !load->no_nul);
    sink_zeros(&dump, load->pad_bytes);
    if (load->code_behind)
        end_record(start);
    if (!load->code_absent)
        sink_bytes(&dump, load->code, (size_t)load->code_size);
    if (!load->code_behind)
        end_record(start);
    dump.size -= load->cut_bytes;
}

static void put_plain_load(size_t function)
{
    struct load load = plain_load(function);
    put_load(&load);
}

static void put_plain_record(uint32_t id, uint64_t time, size_t bytes)
{
    size_t start = begin_record(id, start_ns + time);
    sink_zeros(&dump, bytes);
    end_record(start);
}

/* alpha, LOAD instead of beta, gamma. */
static void put_around(const struct load *load)
{
    put_plain_header();
    put_plain_load(ALPHA);
    put_load(load);
    put_plain_load(GAMMA);
}

static void put_under(const struct header *header)
{
    put_header(header);
    for (size_t i = ALPHA; i <= GAMMA; i++)
        put_plain_load(i);
}

static void put_lines(size_t function)
{
    size_t start = begin_record(JIT_CODE_DEBUG_INFO, start_ns + function);
    sink_u64(&dump, (uintptr_t)slot(function));
    sink_u64(&dump, 1);
    sink_u64(&dump, (uintptr_t)slot(function));
    sink_u32(&dump, 258);
    sink_u32(&dump, 3);
    sink_cstr(&dump, "big.src");
    end_record(start);
}

/* As s390x has it: return address in register 14, CFA = r15 + 160; relative to perf's place behind
 * the code. */
static void put_tables(size_t function)
{
    static const uint8_t rules[] = {0x0c, 15, 0xa0, 1};
    uint8_t bytes[256];
    struct byte_sink frame = byte_sink_over(bytes, sizeof bytes);
    uint64_t addr = (uintptr_t)slot(function), place = addr + (sizeof loop + 7) / 8 * 8;
    struct eh_cie cie = {.code_align = 1,
                         .data_align = -8,
                         .return_register = 14,
                         .instructions = rules,
                         .instructions_bytes = sizeof rules};
    struct eh_frame_writer writer = {&frame, 0, place};
    frame.big_endian = true;
    size_t offset = jd_eh_frame_put_cie(&writer, &cie);
    size_t fde = jd_eh_frame_put_fde(&writer, offset, addr, sizeof loop, NULL, 0);
    const struct eh_frame_hdr_entry entry = {addr, place + fde};
    jd_eh_frame_put_end(&writer);
    jd_eh_frame_hdr_put(&frame, place + frame.size, place, &entry, 1);
    size_t start = begin_record(JIT_CODE_UNWINDING_INFO, start_ns + function);
    sink_u64(&dump, frame.size);
    sink_u64(&dump, EH_FRAME_HDR_BYTES + EH_FRAME_HDR_ENTRY_BYTES);
    sink_u64(&dump, frame.size);
    sink_bytes(&dump, bytes, frame.size);
    end_record(start);
}

static void put_move(size_t from, size_t to)
{
    size_t start = begin_record(JIT_CODE_MOVE, start_ns + FUNCTIONS);
    sink_u32(&dump, own_pid());
    sink_u32(&dump, own_pid());
    sink_u64(&dump, (uintptr_t)slot(to));
    sink_u64(&dump, (uintptr_t)slot(from));
    sink_u64(&dump, (uintptr_t)slot(to));
    sink_u64(&dump, sizeof loop);
    sink_u64(&dump, from);
    end_record(start);
}

static void put_unload(size_t function)
{
    size_t start = begin_record(JIT_CODE_UNLOAD, start_ns + FUNCTIONS);
    sink_u32(&dump, own_pid());
    sink_u32(&dump, own_pid());
    sink_u64(&dump, (uintptr_t)slot(function));
    sink_u64(&dump, sizeof loop);
    sink_u64(&dump, function);
    end_record(start);
}

#endif
