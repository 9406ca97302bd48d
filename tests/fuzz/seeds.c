/* Write the first inputs of the fuzzers: seeds DIR DUMP...
 *
 *     DIR/jit_dump      the dumps, which producers wrote
 *     DIR/eh_frame      the unwind tables in them, behind a byte of 0
 *     DIR/cfi_check     the same with their functions' code, and frames that are said by directives
 *     DIR/interpreted   an interpreter, its frame, and functions of it
 *     DIR/inline_info   the bodies of their INLINE_INFO records, likewise
 *     DIR/lines         records of lines and inlined calls, in pieces, with loads before or behind
 * them DIR/perf_data     small recordings: one event, several, rounds, AUX traces, tasks, a stream,
 * compressed, cut DIR/injection     such a recording with a dump of its process; scripts of both
 *     DIR/perf_map      texts
 *     DIR/kernel_symbols  lists
 *     DIR/kernel_code   KSYMBOL records, each behind its size and moment
 *     DIR/v8_log        the same
 *     DIR/source_map    the same
 *     DIR/demangle      mangled names
 *     DIR/bench         the list of a bench, a run, the body of one
 *     DIR/compare       the body of one, compared in each way
 *     DIR/stacks        the unwind tables again, with registers and stacks
 */
#include "injector/log/jitdump/jit_dump.h"
#include "injector/profile/run_file.h"
#include "injector/recording/perf_data/perf_pipe.h"
#include "jitdump/cfi.h"
#include "jitdump/jitdump.h"
#include "tests/fuzz/process_script.h"
#include "tests/unit/dump_builder.h"
#include "tests/unit/line_builder.h"
#include "tests/unit/profile_builder.h"

#include <elf.h>
#include <err.h>
#include <fcntl.h>
#include <limits.h>
#include <zstd.h>

static const char *directory;
static size_t seed_count;

/* A file of its own for each seed of TARGET, made of two pieces. */
static void put_seed(const char *target, const void *first, size_t first_bytes, const void *second,
                     size_t second_bytes)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", directory, target);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/seed-%04zu", directory, target, seed_count++);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(first, 1, first_bytes, file) != first_bytes ||
        fwrite(second, 1, second_bytes, file) != second_bytes || fclose(file))
        err(EXIT_FAILURE, "%s", path);
}

/* ---- Dumps, and what is in them ---- */

/* A stack to unwind by TABLE: registers that point into it, and frames that lead to each other. */
static void put_stack(const uint8_t *table, size_t size)
{
    uint8_t head[2 + 4096] = {0}, rest[(33 + 64) * 8] = {0};
    struct byte_sink sink = byte_sink_over(rest, sizeof rest);
    size_t units = (size + 15) / 16 < 255 ? (size + 15) / 16 : 255;
    head[1] = (uint8_t)units;
    memcpy(head + 2, table, size < 16 * units ? size : 16 * units);
    for (uint64_t i = 0; i < 33 + 64; i++)
        sink_u64(&sink, i < 33 ? 0x10000 + 8 * i : i % 2 ? 0x10010 + 8 * (i - 33) : i);
    put_seed("stacks", head, 2 + 16 * units, rest, sizeof rest);
}

/* The tables that stand before a LOAD, and its code: see cfi_check.c. */
static void put_checked(const struct jit_dump *dump, const struct jit_record *record)
{
    static struct jit_unwinding_info tables;
    uint8_t input[4096];
    struct byte_sink sink = byte_sink_over(input, sizeof input);
    if (record->id == JIT_CODE_UNWINDING_INFO)
        tables = record->unwinding_info;
    if (record->id != JIT_CODE_LOAD || !tables.data)
        return;
    sink_u8(&sink,
            (uint8_t)((dump->elf_mach == EM_AARCH64) | (tables.eh_frame_hdr_size / 4 & 15) << 4));
    sink_u8(&sink, (uint8_t)tables.unwinding_size);
    sink_u8(&sink, (uint8_t)(tables.unwinding_size >> 8));
    sink_bytes(&sink, tables.data, (size_t)tables.unwinding_size);
    if (record->load.code)
        sink_bytes(&sink, record->load.code, (size_t)record->load.code_size);
    if (!sink.overflow)
        put_seed("cfi_check", input, sink.size, "", 0);
    tables.data = NULL;
}

/* push rbp; mov rbp, rsp; push rbx; sub rsp, 24; nop; add rsp, 24; pop rbx; pop rbp; ret, and on
 * aarch64 stp x29, x30, [sp, -16]!; mov x29, sp; nop; ldp x29, x30, [sp], 16; ret; each as a frame,
 * and by directives. */
static void put_directives(void)
{
    static const uint8_t x86_64[] = {0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x83, 0xec, 0x18,
                                     0x90, 0x48, 0x83, 0xc4, 0x18, 0x5b, 0x5d, 0xc3};
    static const uint8_t aarch64[] = {0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x1f, 0x20,
                                      0x03, 0xd5, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6};
    static const uint8_t said_x86_64[] = {
        4, 20, 0, 2, 1, 0, 16, 4, 0, 6, (uint8_t)-2, 1, 3, 6, 0, 4, 1, 3, (uint8_t)-3, 0, 11, 7, 8};
    static const uint8_t said_aarch64[] = {5,           16, 0, 2,  4,           0, 16, 4, 0, 29,
                                           (uint8_t)-2, 4,  0, 30, (uint8_t)-1, 2, 12, 0, 0};
    static const uint8_t frame_x86_64[] = {4, 4, 0, 15, 0, 0x15, 10 | 3 << 5};
    put_seed("cfi_check", said_x86_64, sizeof said_x86_64, x86_64, sizeof x86_64);
    put_seed("cfi_check", said_aarch64, sizeof said_aarch64, aarch64, sizeof aarch64);
    put_seed("cfi_check", frame_x86_64, sizeof frame_x86_64, x86_64, sizeof x86_64);
}

/* rbp is odd registers' 0x7007 and so on; the word at rbp - 7 - 8 i stands for the function, that
 * at the end of the stack for its instruction. */
static void put_interpreted(uint8_t flags)
{
    uint8_t bytes[512];
    struct byte_sink sink = byte_sink_over(bytes, sizeof bytes);
    sink.big_endian = flags & 1;
    sink_u8(&sink, flags);
    sink_u32(&sink, 7);            /* frame_register: 0x7007 */
    sink_u32(&sink, (uint32_t)-7); /* function_offset */
    sink_u32(&sink, 1);            /* position_offset */
    sink_u32(&sink, 2);            /* position_register */
    sink.big_endian = false;       /* as stacks are */
    for (uint64_t i = 0; i < 8; i++)
        sink_u64(&sink, i ? 0x9000 + i : 0x8000);
    sink.big_endian = flags & 1;
    for (uint32_t i = 0; i < 2; i++) {
        sink_u8(&sink, 32 + 2 + 5 + 4);
        sink_u64(&sink, 0x8000);
        sink_u32(&sink, 88);
        sink_u32(&sink, 7 + i);
        sink_u64(&sink, 0x9000);
        sink_u32(&sink, 2);
        sink_u32(&sink, 4);
        sink_cstr(&sink, "f");
        sink_cstr(&sink, "a.js");
        sink_uleb(&sink, 0);
        sink_sleb(&sink, 3);
        sink_uleb(&sink, 2);
        sink_sleb(&sink, -1);
    }
    put_seed("interpreted", bytes, sink.size, "", 0);
}

static void put_record(const struct jit_dump *dump, const struct jit_record *record)
{
    const uint8_t order = dump->big_endian;
    if (record->broken)
        return;
    put_checked(dump, record);
    if (record->id == JIT_CODE_UNWINDING_INFO)
        put_seed("eh_frame", &order, 1, record->unwinding_info.data,
                 (size_t)record->unwinding_info.unwinding_size);
    if (record->id == JIT_CODE_UNWINDING_INFO)
        put_stack(record->unwinding_info.data, (size_t)record->unwinding_info.unwinding_size);
    if (record->id == JIT_CODE_INLINE_INFO)
        put_seed("inline_info", &order, 1, dump->data + record->offset + JR_PREFIX_BYTES,
                 record->total_size - JR_PREFIX_BYTES);
}

static void put_dump(const char *path)
{
    struct jit_dump dump;
    struct jit_record record;
    enum jit_dump_end end;
    char cause[256];
    if (jit_dump_open(&dump, path, cause, sizeof cause))
        errx(EXIT_FAILURE, "%s: %s", path, cause);
    put_seed("jit_dump", dump.data, dump.size, "", 0);
    struct jit_dump_walk walk = jit_dump_begin(&dump);
    while ((end = jit_dump_next(&walk, &record)) == JIT_DUMP_MORE || end == JIT_DUMP_TORN)
        if (end == JIT_DUMP_MORE)
            put_record(&dump, &record);
    jit_dump_close(&dump);
}

/* ---- Lines: see lines.c for what the pieces are ---- */

enum { LINES_ADDR = 0x40000000, PIECE_LOAD = 3, PIECE_WITH_LOAD = 4, PIECE_NEXT_ADDR = 8 };

static uint8_t pieces[1 << 14];
static struct byte_sink piece_sink;
static struct dump_builder line_dump;

static void begin_pieces(bool big_endian)
{
    piece_sink = byte_sink_over(pieces, sizeof pieces);
    sink_u8(&piece_sink, big_endian);
    dump_begin(&line_dump, big_endian, JITHEADER_BYTES);
}

/* The last record of line_dump, from START on, without what the target makes: prefix and address.
 */
static void put_piece(uint8_t kind, size_t start)
{
    const size_t skipped = JR_PREFIX_BYTES + 8;
    size_t bytes = line_dump.sink.size - start - skipped;
    sink_u8(&piece_sink, kind);
    sink_u8(&piece_sink, (uint8_t)bytes);
    sink_u8(&piece_sink, (uint8_t)(bytes >> 8));
    sink_bytes(&piece_sink, line_dump.bytes + start + skipped, bytes);
}

static void put_load_piece(uint8_t more, uint8_t code_bytes)
{
    const uint8_t piece[] = {(uint8_t)(PIECE_LOAD | more), code_bytes, 0};
    sink_bytes(&piece_sink, piece, sizeof piece);
}

/* A DEBUG_INFO of rows BIAS bytes too high, with names of which FILE is the second. */
static void put_rows(uint8_t more, uint64_t addr, uint64_t bias, const char *file)
{
    const struct built_row rows[] = {{addr + bias, 1, 2, "/a.js"},
                                     {addr + bias + 8, 7, 0, file},
                                     {addr + bias + 4, 3, 0, "/a.js"},
                                     {addr + bias + 8, 9, 1, "/b.js"}};
    size_t start = line_dump.sink.size;
    dump_lines(&line_dump, 2, addr, rows, 4);
    put_piece(more, start);
}

static void put_calls(uint8_t more, uint64_t addr)
{
    const struct built_inline calls[] = {{JIT_INLINE_NONE, "outer", "/a.js", 3, 4, "/b.js", 1},
                                         {0, "inner", "/b.js", 5, 6, NULL, 0},
                                         {JIT_INLINE_NONE, "outer", "/a.js", 8, 1, "/b.js", 1}};
    const struct built_span spans[] = {{2, 0}, {4, 1}, {6, 0}, {8, JIT_INLINE_NONE}, {12, 2}};
    const uint8_t order = line_dump.sink.big_endian;
    size_t start = line_dump.sink.size, body = start + JR_PREFIX_BYTES;
    dump_inlines(&line_dump, 2, addr, calls, 3, spans, 5);
    put_piece((uint8_t)(1 | more), start);
    put_seed("inline_info", &order, 1, line_dump.bytes + body, line_dump.sink.size - body);
}

static void put_pieces(void)
{
    if (piece_sink.overflow)
        errx(EXIT_FAILURE, "a piece is too large");
    put_seed("lines", pieces, piece_sink.size, "", 0);
}

static void put_line_seeds(bool big_endian)
{
    begin_pieces(big_endian);
    put_rows(0, LINES_ADDR, 0, "\xff");
    put_calls(PIECE_WITH_LOAD, LINES_ADDR);
    put_pieces();
    begin_pieces(big_endian); /* loads first */
    put_load_piece(0, 0x20);
    put_rows(0, LINES_ADDR, 0, "/long/name/of/a/file.js");
    put_load_piece(PIECE_NEXT_ADDR, 0x20);
    put_calls(0, LINES_ADDR + 0x100);
    put_pieces();
    begin_pieces(big_endian); /* 0x40 too high, and names overwritten */
    for (uint64_t i = 1; i <= 4; i++)
        put_rows(PIECE_WITH_LOAD | PIECE_NEXT_ADDR, LINES_ADDR + i * 0x100, 0x40,
                 i == 2 ? "\1\2\3\4\5\6\7\1\2\3\4\5\6\7\1\2a.js" : "/a.js");
    put_pieces();
}

/* ---- Recordings ---- */

static struct profile_builder built;

static void put_profile(void)
{
    if (built.sink.overflow)
        errx(EXIT_FAILURE, "a recording is too large");
    put_seed("perf_data", built.bytes, built.sink.size, "", 0);
}

/* Records of COUNT events and of a task, a mapped dump among them. */
static void put_records(size_t count)
{
    for (size_t i = 0; i < 6; i++) {
        size_t event = i % count;
        uint64_t time = 1000 + i * 10;
        profile_map(&built, i % 2 ? PERF_RECORD_MMAP2 : PERF_RECORD_MMAP, event,
                    0x40000000 + i * 0x1000, 0x2000, i == 0 ? "/tmp/jit-4711.dump" : "//anon",
                    time);
        profile_comm(&built, event, time + 1);
        profile_sample(&built, event, time + 2);
        if (i % 3 == 2)
            profile_round(&built);
    }
}

/* PERF_RECORD_FORK, EXIT: u32 pid, ppid, tid, ptid, u64 time. */
static void put_task(uint32_t type, uint32_t pid, uint32_t parent, uint64_t time)
{
    size_t start = profile_begin_record(&built, type, 0);
    sink_u32(&built.sink, pid);
    sink_u32(&built.sink, parent);
    sink_u32(&built.sink, pid);
    sink_u32(&built.sink, parent);
    sink_u64(&built.sink, time);
    profile_put_trailer(&built, 0, pid, time);
    profile_end_record(&built, start);
}

static void put_plain_profiles(void)
{
    static const uint64_t types[] = {SAMPLE_TYPE | PERF_SAMPLE_IDENTIFIER,
                                     PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU};
    profile_begin_one(&built);
    put_records(1);
    profile_end_records(&built);
    put_profile();
    profile_begin(&built, types, 2);
    put_records(2);
    profile_end_records(&built);
    profile_features(&built, NULL, 0);
    put_profile();
    profile_begin_one(&built);
    put_task(7, 4712, 4711, 900);
    put_records(1);
    put_task(4, 4712, 4711, 2000);
    profile_end_records(&built);
    profile_features(&built, NULL, 0);
    put_profile();
}

static void put_words(const uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sink_u64(&built.sink, words[i]);
}

/* Two samples of one kernel entry, a third one in its process, and their deferred chains. */
static void put_deferred_profile(void)
{
    static const uint64_t type = SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN, thread = 4711;
    static const uint64_t cookies[] = {7, 7, 8}, of_first[] = {7, 3, PERF_CONTEXT_USER, 1, 2};
    static const uint64_t of_last[] = {8, 1, 0x40000010};
    profile_begin(&built, &type, 1);
    put_task(7, 4712, 4711, 900);
    for (size_t i = 0; i < 3; i++) {
        const uint64_t words[] = {
            0x401000, thread << 32 | thread,      1000 + i,  1, 4, PERF_CONTEXT_KERNEL,
            0x401000, PERF_CONTEXT_USER_DEFERRED, cookies[i]};
        size_t start = profile_begin_record(&built, PERF_RECORD_SAMPLE, PERF_MISC_KERNEL);
        put_words(words, 9);
        profile_end_record(&built, start);
    }
    size_t first = profile_begin_record(&built, PERF_RECORD_CALLCHAIN_DEFERRED, PERF_MISC_USER);
    put_words(of_first, 5);
    profile_put_trailer(&built, 0, 4711, 1010);
    profile_end_record(&built, first);
    size_t last = profile_begin_record(&built, PERF_RECORD_CALLCHAIN_DEFERRED, PERF_MISC_USER);
    put_words(of_last, 3);
    profile_put_trailer(&built, 0, 4711, 1011);
    profile_end_record(&built, last);
    profile_end_records(&built);
    put_profile();
}

static void put_traced_profile(void)
{
    profile_begin_one(&built);
    put_records(1);
    const uint64_t traces[1][2] = {{profile_auxtrace(&built, 24), PERF_AUXTRACE_BYTES}};
    profile_sample(&built, 0, 5000);
    profile_end_records(&built);
    profile_features(&built, traces, 1);
    put_profile();
}

static void put_stream(void)
{
    static uint8_t stream[1 << 16];
    struct findings findings = {0};
    profile_begin_one(&built);
    put_records(1);
    profile_end_records(&built);
    profile_features(&built, NULL, 0);
    FILE *file = tmpfile();
    if (!file || perf_pipe_write(fileno(file), built.bytes, built.sink.size, "seed", &findings))
        errx(EXIT_FAILURE, "no stream: %s", findings.failure);
    ssize_t size = pread(fileno(file), stream, sizeof stream, 0);
    put_seed("perf_data", stream, size > 0 ? (size_t)size : 0, "", 0);
    fclose(file);
}

/* The same records in a COMPRESSED one, which holds a zstd frame. */
static void put_compressed(void)
{
    static uint8_t records[1 << 14], packed[1 << 14];
    profile_begin_one(&built);
    put_records(1);
    size_t bytes = built.sink.size - built.records_start;
    memcpy(records, built.bytes + built.records_start, bytes);
    size_t packed_bytes = ZSTD_compress(packed, sizeof packed, records, bytes, 1);
    profile_begin_one(&built);
    size_t start = profile_begin_record(&built, PERF_RECORD_COMPRESSED, 0);
    sink_bytes(&built.sink, packed, packed_bytes);
    profile_end_record(&built, start);
    profile_end_records(&built);
    put_profile();
}

/* ---- Recordings with dumps ---- */

static struct dump_builder dumped;

static void put_tables(uint64_t time, uint64_t code_size)
{
    static const struct jitdump_frame frame = {.kind = JITDUMP_FRAME_POINTER};
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_unwind unwind;
    jitdump_cfi_frame(cfi, &frame);
    if (jitdump_cfi_finish(cfi, code_size, &unwind))
        errx(EXIT_FAILURE, "no tables: %s", jitdump_cfi_error(cfi));
    size_t start = dump_begin_record(&dumped, JIT_CODE_UNWINDING_INFO, time);
    sink_u64(&dumped.sink, unwind.unwinding_size);
    sink_u64(&dumped.sink, unwind.eh_frame_hdr_size);
    sink_u64(&dumped.sink, unwind.mapped_size);
    sink_bytes(&dumped.sink, unwind.data, (size_t)unwind.unwinding_size);
    dump_end_record(&dumped, start);
    jitdump_cfi_free(cfi);
}

static void put_dumped(bool with_tables)
{
    dump_begin(&dumped, false, JITHEADER_BYTES);
    if (with_tables)
        put_tables(1001, 12);
    dump_load(&dumped, 1001, 0x40000100, "first", "twelve bytes", 1);
    dump_load(&dumped, 1005, 0x40001100, "second", "bytes too", 2);
    dump_move(&dumped, 1015, 0x40000100, 0x40002100, 12, 1);
    dump_load(&dumped, 1021, 0x40000108, "third", "again", 3);
    dump_unload(&dumped, 1032, 0x40001100, 9, 2);
    dump_load(&dumped, 1041, 0x40001100, "fourth", "at the same", 4);
}

/* STACKS: samples say that a piece of the stack follows, so that perf will unwind. */
static void put_injection(bool with_tables, bool stacks)
{
    uint8_t first[2 + sizeof dumped.bytes];
    uint64_t type = SAMPLE_TYPE | (stacks ? (uint64_t)PERF_SAMPLE_STACK_USER : 0);
    put_dumped(with_tables);
    struct byte_sink sink = byte_sink_over(first, sizeof first);
    sink_u16(&sink, (uint16_t)dumped.sink.size);
    sink_bytes(&sink, dumped.bytes, dumped.sink.size);
    profile_begin(&built, &type, 1);
    put_task(7, 4711, 4710, 900);
    put_records(1);
    put_task(7, 4712, 4711, 1043);
    put_task(4, 4711, 4710, 2000);
    profile_end_records(&built);
    put_seed("injection", first, sink.size, built.bytes, built.sink.size);
}

static void put_step(struct byte_sink *sink, uint32_t what, uint8_t whose, uint8_t where,
                     uint8_t how)
{
    sink_u8(sink, (uint8_t)what);
    sink_u8(sink, whose);
    sink_u8(sink, where);
    sink_u8(sink, how);
}

/* Scripts (process_script.h): LOADS loads, as many moves and unloads, a second header, and this
 * again; children of which one was forked before and one behind the header, and that are logged in
 * the same dump. */
static void put_script(uint8_t loads, bool with_tables)
{
    uint8_t script[2 + 4 * SCRIPT_STEPS];
    struct byte_sink sink = byte_sink_over(script, sizeof script);
    const uint32_t later = 1 << 4;
    sink_u16(&sink, 0);
    for (uint8_t round = 0; round < 2; round++) {
        put_step(&sink, later | SCRIPT_MAP, round, 0, 15 << 2);
        for (uint8_t i = 0; i < loads; i++) {
            if (with_tables)
                put_step(&sink, SCRIPT_TABLES, 0, 0, i);
            put_step(&sink, later | SCRIPT_LOAD, round & i, i, i);
            put_step(&sink, later | SCRIPT_SAMPLE, round & i, i, 0);
            put_step(&sink, SCRIPT_MOVE, round & i, i, (uint8_t)(i + 16));
            put_step(&sink, later | SCRIPT_UNLOAD, round & i, (uint8_t)(i + 16), i);
            put_step(&sink, later | SCRIPT_LOAD, 0, i, (uint8_t)(i + 1));
        }
        put_step(&sink, later | SCRIPT_FORK, (uint8_t)(round + 1), 0, 0);
        put_step(&sink, later | SCRIPT_HEADER, 0, 0, 0);
    }
    put_step(&sink, later | SCRIPT_LOAD, 1, 3, 9);
    put_step(&sink, later | SCRIPT_EXEC, 2, 0, 0);
    put_step(&sink, later | SCRIPT_EXIT, 1, 0, 0);
    if (sink.overflow)
        errx(EXIT_FAILURE, "a script is too large");
    put_seed("injection", script, sink.size, "", 0);
}

/* ---- Perf maps ---- */

static void put_names(void)
{
    static const char *const names[] = {
        "_ZN3app5sieveEPhi [tier2]",
        "JS:_Z1f1AIiiE-3-liftoff",
        "_ZN51_$LT$acme..Alpha$LT$T$GT$$u20$as$u20$acme..Work$GT$4step17h03b5a052cf7308efE",
        "_RNvXNtC1w1mINtB2_5AlphamENtB2_4Work4step",
        "_RINvC1w1fRShQDG_INtC1x1YL0_Ep1TyEL_E",
        "_RINvC1w1fFG0_KCRL1_hRL0_tEuFUEzAxj10_TaETlsEPnOoE",
        "_RINvC1w1fKRe616222_KAh1_h2_EKTh1_EKVNtC1w1PS1xh1_1yb0_EKVNtC1w1OUE",
        "_RNvC1wu8gdel_5qa",
        "_D4acme4tool__T3genTiVii3VAyaa4_68c3a979S_DQBpQBn6helperFiZiZQBuFG3iPOiZi",
        "_D1a__T1fTHAyaiTDFiZvTPFZvTxbVbi1VaN97Z1fFZv",
        "_D1a1fFNaNbNiNfKiLaMxkXv",
        "camlO__$2b$7c_83",
        "$s4main3FooC3bar1xySi_tF",
        "La/B$C;f(JZ[BLjava/util/List;[[D)Ljava/lang/Object;",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        put_seed("demangle", names[i], strlen(names[i]), "", 0);
}

static void put_perf_maps(void)
{
    static const char *const texts[] = {
        "1000 10 one\n1010 20 two words\n1008 10 over both\n",
        "0x1000 0x0 zero\r\nffffffffffffffff 1 last\nfffffffffffffff0 10 end\n",
        "1000 100 outer\n1010 10 inner\n1018 20 next\n\nbad\n10 z\n2000 8 open",
        "",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        put_seed("perf_map", texts[i], strlen(texts[i]), "", 0);
}

/* ---- The kernel's code ---- */

static void put_kernel_lists(void)
{
    static const char *const texts[] = {
        "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\nffffffff81000000 T "
        "_text\n"
        "ffffffff81000100 t one\nffffffff81000180 D data\nffffffff81000200 W weak \n"
        "ffffffff81001000 T _etext\nffffffff81200000 T _sinittext\nffffffff81201000 T _einittext\n",
        "ffffffffc0000010 t one\t[ext4]\nffffffffc0000100 d data\t[ext4]\n"
        "ffffffffc0002000 t two\t[snd_pcm]\nffffffffc0200000 t bpf_prog_1_a\t[bpf]\n"
        "fffffffffffffff8 t ftrace_trampoline\t[__builtin__ftrace]",
        "0000000000000000 T _text\n\nno address\nffffffff81000300\nffffffff81000300 T\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        put_seed("kernel_symbols", texts[i], strlen(texts[i]), "", 0);
}

static void put_ksymbol(struct byte_sink *sink, uint8_t moment, uint64_t start, uint32_t len,
                        uint16_t flags, const char *name)
{
    size_t bytes = strlen(name) + 1;
    sink_u8(sink, (uint8_t)(24 + bytes));
    sink_u8(sink, moment);
    sink_zeros(sink, 8); /* the header */
    sink_u64(sink, start);
    sink_u32(sink, len);
    sink_u16(sink, 1);
    sink_u16(sink, flags);
    sink_bytes(sink, name, bytes);
}

static void put_kernel_code(void)
{
    uint8_t bytes[512];
    struct byte_sink sink = byte_sink_over(bytes, sizeof bytes);
    put_ksymbol(&sink, 10, 0x1000, 0x100, 0, "bpf_prog_1_a");
    put_ksymbol(&sink, 80, 0x1000, 0x100, 1, "bpf_prog_1_a");
    put_ksymbol(&sink, 90, 0x1000, 0x40, 0, "bpf_prog_2_b");
    put_ksymbol(&sink, 140, 0x1020, 0x40, 0, "bpf_trampoline_3");
    put_ksymbol(&sink, 200, 0x1020, 0x40, 1, "bpf_trampoline_3");
    put_ksymbol(&sink, 0, 0x2000, 0x1000, 0, "kprobe_insn_page");
    put_seed("kernel_code", bytes, sink.size, "", 0);
}

/* ---- Code logs of V8 ---- */

static void put_v8_logs(void)
{
    static const char functions[] = "code-creation,JS,10,1,0x771,50,f /a.js:1:11,0xa0,~\n"
                                    "code-source-info,0x771,5,10,39,C0O10,,\n"
                                    "code-creation,JS,10,2,0x772,50,g /a.js:2:1,0xb0,~\n"
                                    "code-source-info,0x772,5,40,69,C0O40,,\n";
    static const char *const codes[] = {
        "code-creation,JS,13,9,0x1000,96,f /a.js:1:11,0xa0,*\n"
        "code-source-info,0x1000,5,10,39,C0O10C8O45I0C16O75I1C24O20C90O21I0,F0O25F1O55I0,"
        "S0xb0S0xa0\n",
        "code-creation,JS,11,9,0x1060,96,g /a.js:2:1,0xb0,+\n"
        "code-source-info,0x1060,5,40,69,C0O40C8O1I0C16O15I1,FO50F0O3I0,S0xa0\n"
        "sfi-move,0xa0,0xb8\ncode-move,0x1,0x2\ncode-delete,0x1\n",
        "code-creation,JS,13,9,0x1000,96,f /a.js:1:11,0xa0,*\n"
        "code-source-info,0x1000,5,10,39,C8O45I0,F0O25I0,S0xb0\n"
        "code-creation,JS,13,12,0x1000,96,f /a.js:1:11,0xa0,o*'\n"
        "code-source-info,0x1000,5,10,39,C8O-1I0C8O41,F0O-1,S0xb0\nnothing\n",
        "script-source,7,<unknown>,e(){}\\n//# sourceURL=w:///./b\\x2Cc.js\\n})\n"
        "code-creation,JS,2,3,0x1060,96,e :1:2,0xc0,~\n"
        "code-source-info,0x1060,7,1,5,,,\n",
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        put_seed("v8_log", functions, strlen(functions), codes[i], strlen(codes[i]));
}

/* ---- Source maps ---- */

static void put_source_maps(void)
{
    static const char *const texts[] = {
        "{\"version\":3,\"sources\":[\"../a.ts\",null,\"webpack://x/./"
        "b.ts\"],\"names\":[\"total\"],"
        "\"sourceRoot\":\"src/..\",\"mappings\":\"AAASA,EAAC,CAAD;;AACA,CCCCC,CDDA;A\"}",
        "{\"version\":3,\"sections\":[{\"offset\":{\"line\":1,\"column\":5},\"map\":{\"version\":3,"
        "\"sources\":[\"a\"],\"names\":[],\"mappings\":\"qxmvrHAAA,rxmvrHAqxmvrHqxmvrH\"}}]}",
        ")]}'\n{\"version\":3,\"sources\":[],\"mappings\":\"A,C;D\"}",
        "{\"version\":3,\"sources\":[\"a\"],\"sourcesContent\":[\"class t{a=1;constructor(n){"
        "this.a=/[(/]/}}\\nt={a:`${[t=>t]}`,[k]:function(n){}};t.a[0]||=n=>n//"
        "(\\nfunction*t(){}\"],"
        "\"mappings\":\"AAAA,gBAAgB\"}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        put_seed("source_map", texts[i], strlen(texts[i]), "", 0);
}

/* ---- Benches ---- */

static void put_bench(uint8_t kind, const void *bytes, size_t size)
{
    put_seed("bench", &kind, 1, bytes, size);
}

static void put_benches(void)
{
    static const char list[] = "perfjit-bench\t1\norder\tblocks\nfact\tbase\tcpu\tone\n"
                               "fact\tnew\tboot\ttwo\nrun\tbase\ta.run\tturn=1\twall_ns=9\n"
                               "run\tnew\tb.run\tturn=2\tloop_ns=7\nend\n";
    struct call_profile profile;
    struct findings findings = {0};
    char path[PATH_MAX];
    uint8_t bytes[4096], body[4096];
    snprintf(path, sizeof path, "%s/bench.run", directory);
    if (call_profile_begin(&profile))
        errx(EXIT_FAILURE, "out of memory");
    const struct call_frame frame = {.name = call_profile_add_string(&profile, "hot", 3)};
    const struct profile_thread thread = {.name = frame.name, .process = frame.name};
    const struct profile_event event = {.name = frame.name, .counts_ns = true};
    uint32_t node = call_profile_add_node(&profile, 0, call_profile_add_frame(&profile, &frame));
    const struct call_frame inlined = {.name = frame.name,
                                       .file = call_profile_add_string(&profile, "a.js", 4),
                                       .line = 3,
                                       .tier = call_profile_add_string(&profile, "Maglev", 6),
                                       .inlined = true};
    const struct call_place place = {.known = 1, .offset = 20, .line = 3, .file = inlined.file};
    const struct call_sample sample = {
        .node = call_profile_add_node(&profile, node, 0), .period = 999, .thread = 0};
    const struct call_sample other = {
        .node = call_profile_add_node(&profile, node, call_profile_add_frame(&profile, &inlined)),
        .period = 5000,
        .place = call_profile_add_place(&profile, &place)};
    call_profile_add_thread(&profile, &thread);
    if (call_profile_add_event(&profile, &event) || call_profile_add_sample(&profile, &sample) ||
        call_profile_add_sample(&profile, &other) || run_file_write(path, &profile, &findings))
        errx(EXIT_FAILURE, "no run: %s", findings.failure);
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (!file || fclose(file) || unlink(path) || size < 16)
        err(EXIT_FAILURE, "%s", path);
    put_bench(0, list, strlen(list));
    put_bench(1, bytes, size);
    size = ZSTD_decompress(body, sizeof body, bytes + 16, size - 16);
    put_bench(2, body, size);
    for (uint8_t options = 0; options < 8; options++)
        put_seed("compare", &options, 1, body, size);
    call_profile_free(&profile);
}

/* A sample of a thread that waited, with each of the fields beside it that off_cpu.c knows. */
static void put_off_cpu(void)
{
    for (uint8_t fields = 0; fields < 2; fields++) {
        const uint8_t head[] = {fields, SAMPLE_RAW, PERF_MISC_USER};
        uint8_t bytes[256];
        struct byte_sink sink = byte_sink_over(bytes, sizeof bytes);
        const uint64_t chain[] = {PERF_CONTEXT_USER, 0x401000, 0x402000};
        for (uint64_t field = 1; field <= 4; field++) /* ip, pid and tid, time, period */
            sink_u64(&sink, field);
        if (fields)
            sink_u64(&sink, 0);
        sink_u32(&sink, 60);
        sink_u32(&sink, 4711);
        sink_u32(&sink, 4712);
        sink_u64(&sink, 700000000);
        sink_u64(&sink, sizeof chain / sizeof chain[0]);
        for (size_t i = 0; i < sizeof chain / sizeof chain[0]; i++)
            sink_u64(&sink, chain[i]);
        sink_u64(&sink, 1); /* cgroup */
        sink_zeros(&sink, 4);
        put_seed("off_cpu", head, sizeof head, bytes, sink.size);
    }
}

static void put_markers(void)
{
    static const char lines[] = "100 200 GET /users\n150 300 GET /\r\n150 150 an instant\n"
                                "300 200 backwards\nno span\n9223372036854775806 "
                                "9223372036854775807 last";
    for (uint8_t of = 0; of < 4; of++)
        put_seed("marker_file", &of, 1, lines, sizeof lines - 1);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        errx(2, "usage: seeds DIR DUMP...");
    directory = argv[1];
    for (int i = 2; i < argc; i++)
        put_dump(argv[i]);
    for (uint8_t flags = 0; flags < 8; flags++)
        put_interpreted(flags);
    put_directives();
    put_line_seeds(false);
    put_line_seeds(true);
    put_plain_profiles();
    put_deferred_profile();
    put_traced_profile();
    put_stream();
    put_compressed();
    for (int kind = 0; kind < 4; kind++)
        put_injection(kind & 1, kind & 2);
    for (uint8_t loads = 1; loads <= 16; loads *= 4) {
        put_script(loads, false);
        put_script(loads, true);
    }
    put_perf_maps();
    put_names();
    put_kernel_lists();
    put_kernel_code();
    put_v8_logs();
    put_source_maps();
    put_benches();
    put_off_cpu();
    put_markers();
    return 0;
}
