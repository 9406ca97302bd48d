/* quirks NAME DIR SECONDS: run four functions, alpha, beta, gamma and delta, and log the first three in a dump that has the
 * quirk NAME of docs/quirks.md.  (Those of unwind tables: unwind_shapes.c.)
 *
 *     quirks --names      the names, one a line
 *
 * NAME sound is a dump without any; big-endian is one as an s390x writes it, with every kind of record; long-name has a name of
 * 100000 bytes.  delta is never logged, but for header-again, where a log of an earlier run in the same
 * file says that it was old_delta.
 */
#include "jitdump/format/byte_sink.h"
#include "jitdump/format/eh_frame.h"
#include "jitdump/format/jitdump_format.h"

#include <elf.h>
#include <fcntl.h>
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

/* Counts down from 300000 and returns.  No byte of it is text, and it has no NUL before the fifth. */
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

/* For SECONDS of the CPU, so that on a busy machine there are samples, too; hardly any of them in clock. */
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

/* ---- The quirks ---- */

static void sound(void)
{
    struct header header = plain_header();
    put_under(&header);
    put_plain_record(JIT_CODE_CLOSE, FUNCTIONS, 0);
}

static void header_version(void)
{
    struct header header = plain_header();
    header.version = 2;
    put_under(&header);
}

static void header_longer(void)
{
    struct header header = plain_header();
    header.total_size = header.bytes = 48;
    put_under(&header);
}

static void header_size(void)
{
    struct header header = plain_header();
    header.total_size = 48;
    put_under(&header);
}

static void header_flags(void)
{
    struct header header = plain_header();
    header.flags = 0x10;
    put_under(&header);
}

static void elf_machine(void)
{
    struct header header = plain_header();
    header.elf_mach = EM_RISCV;
    put_under(&header);
}

static void elf_class(void)
{
    struct header header = plain_header();
    header.elf_mach = header.elf_mach == EM_X86_64 ? EM_386 : EM_ARM;
    put_under(&header);
}

static void header_again(void)
{
    static const char *const old[FUNCTIONS] = {"old_alpha", "old_beta", "old_gamma", "old_delta"};
    put_plain_header();
    for (size_t i = 0; i < FUNCTIONS; i++) {
        struct load load = plain_load(i);
        load.name = old[i];
        load.time -= 1000000;
        put_load(&load);
    }
    sound();
}

static void header_foreign(void)
{
    struct header other = plain_header();
    other.pid++;
    put_plain_header();
    put_plain_load(ALPHA);
    put_header(&other);
    put_plain_load(BETA);
    put_plain_header();
    put_plain_load(GAMMA);
}

static void thread_id_64(void)
{
    put_plain_header();
    for (size_t i = ALPHA; i <= GAMMA; i++) {
        struct load load = plain_load(i);
        load.wide_tid = true;
        put_load(&load);
    }
}

static void pid_differs(void)
{
    struct load load = plain_load(BETA);
    load.pid = (uint32_t)getppid();
    put_around(&load);
}

static void tid_impossible(void)
{
    struct load load = plain_load(BETA);
    load.tid = 0x7f123456;
    put_around(&load);
}

static void name_absent(void)
{
    struct load load = plain_load(BETA);
    load.no_name = true;
    put_around(&load);
}

static void name_empty(void)
{
    struct load load = plain_load(BETA);
    load.name = "";
    put_around(&load);
}

static void name_open(void)
{
    struct load load = plain_load(BETA);
    load.no_nul = true;
    put_around(&load);
}

static void name_padded(void)
{
    struct load load = plain_load(BETA);
    load.pad_bytes = 11;
    put_around(&load);
}

static void name_unprintable(void)
{
    struct load load = plain_load(BETA);
    load.name = "be\nta \033[31m \xff";
    put_around(&load);
}

/* Between beta and gamma. */
static void code_empty(void)
{
    struct load load = plain_load(BETA);
    put_plain_header();
    put_plain_load(ALPHA);
    put_load(&load);
    load.name = "nothing";
    load.addr += SLOT_BYTES / 2;
    load.code_size = 0;
    load.code_index = GAMMA;
    put_load(&load);
    load = plain_load(GAMMA);
    load.code_index = DELTA;
    put_load(&load);
}

static void code_absent(void)
{
    struct load load = plain_load(BETA);
    load.code_absent = true;
    put_around(&load);
}

static void code_behind(void)
{
    struct load load = plain_load(BETA);
    load.code_behind = true;
    put_around(&load);
    load = plain_load(DELTA); /* so that one is the last */
    load.name = "last";
    load.code_behind = true;
    put_load(&load);
}

static void index_reused(void)
{
    struct load load = plain_load(BETA);
    load.code_index = ALPHA;
    put_around(&load);
}

static void time_backwards(void)
{
    struct load load = plain_load(BETA);
    load.time = start_ns - 1;
    put_around(&load);
}

static void after_close(void)
{
    put_plain_header();
    put_plain_load(ALPHA);
    put_plain_record(JIT_CODE_CLOSE, ALPHA, 0);
    put_plain_load(BETA);
    put_plain_load(GAMMA);
}

static void record_unknown(void)
{
    put_plain_header();
    put_plain_load(ALPHA);
    put_plain_record(77, ALPHA, 5);
    put_plain_load(BETA);
    put_plain_load(GAMMA);
}

/* beta's write failed in the middle of its code, as .NET's do with EFAULT; the next record follows at once. */
static void record_torn(void)
{
    struct load load = plain_load(BETA);
    load.cut_bytes = 7;
    put_around(&load);
    load = plain_load(GAMMA);
    load.name = "again";
    load.code_index = DELTA;
    load.time += 10;
    put_load(&load);
}

static void dump_cut(void)
{
    struct load load = plain_load(GAMMA);
    load.cut_bytes = 7;
    put_plain_header();
    put_plain_load(ALPHA);
    put_plain_load(BETA);
    put_load(&load);
}

static void long_name(void)
{
    static char name[100001];
    struct load load = plain_load(BETA);
    memset(name, 'b', sizeof name - 1);
    load.name = name;
    put_around(&load);
}

/* ---- From another machine ---- */

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

/* As s390x has it: return address in register 14, CFA = r15 + 160; relative to perf's place behind the code. */
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

/* gamma ends before it runs, and what was loaded as omega is moved to delta's place. */
static void big_endian(void)
{
    struct header header = plain_header();
    struct load omega = plain_load(FUNCTIONS);
    dump.big_endian = true;
    header.elf_mach = EM_S390;
    put_header(&header);
    put_plain_record(JIT_FILLER, 0, 9);
    put_lines(ALPHA);
    put_tables(ALPHA);
    put_plain_load(ALPHA);
    put_plain_load(BETA);
    put_plain_load(GAMMA);
    omega.code = slot(DELTA);
    put_load(&omega);
    put_move(FUNCTIONS, DELTA);
    put_unload(GAMMA);
    put_plain_record(JIT_CODE_CLOSE, FUNCTIONS, 0);
}

static const struct {
    const char *name;
    void (*put)(void);
} quirks[] = {
    {"sound", sound},
    {"big-endian", big_endian},
    {"long-name", long_name},
    {"header-version", header_version},
    {"header-longer", header_longer},
    {"header-size", header_size},
    {"header-flags", header_flags},
    {"header-again", header_again},
    {"header-foreign", header_foreign},
    {"elf-machine", elf_machine},
    {"elf-class", elf_class},
    {"thread-id-64", thread_id_64},
    {"pid-differs", pid_differs},
    {"tid-impossible", tid_impossible},
    {"name-absent", name_absent},
    {"name-empty", name_empty},
    {"name-open", name_open},
    {"name-padded", name_padded},
    {"name-unprintable", name_unprintable},
    {"code-empty", code_empty},
    {"code-absent", code_absent},
    {"code-behind", code_behind},
    {"index-reused", index_reused},
    {"time-backwards", time_backwards},
    {"after-close", after_close},
    {"record-unknown", record_unknown},
    {"record-torn", record_torn},
    {"dump-cut", dump_cut},
};

enum { QUIRKS = sizeof quirks / sizeof quirks[0] };

static bool write_dump(const char *directory)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/jit-%d.dump", directory, (int)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, dump.data, dump.size) != (ssize_t)dump.size)
        return false;
    return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED;
}

int main(int argc, char **argv)
{
    size_t chosen = QUIRKS;
    if (argc == 2 && strcmp(argv[1], "--names") == 0) {
        for (size_t i = 0; i < QUIRKS; i++)
            puts(quirks[i].name);
        return 0;
    }
    for (size_t i = 0; argc == 4 && i < QUIRKS; i++)
        if (strcmp(argv[1], quirks[i].name) == 0)
            chosen = i;
    if (chosen == QUIRKS) {
        fprintf(stderr, "usage: quirks NAME DIR SECONDS | --names\n");
        return 2;
    }
    dump = byte_sink_over(dump_bytes, sizeof dump_bytes);
    make_functions();
    start_ns = now_ns();
    quirks[chosen].put();
    if (dump.overflow || !write_dump(argv[2]))
        return 1;
    run(atof(argv[3]));
    return 0;
}
