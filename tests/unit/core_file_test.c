/* Cores: what is read of a sound one, and that nothing is read past the end of a damaged one. */
#include "injector/debug/snapshot/core_file.h"
#include "injector/native/mapped_build_id.h"
#include "jitdump/format/byte_sink.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    CORE_BYTES = 4096,
    HEADERS = 4,
    NOTES_AT = 64 + HEADERS * 56,
    MEMORY_AT = 2048, /* 256 bytes of code, 128 of a stack */
    CODE_BYTES = 256,
    STACK_BYTES = 128,
    WORDS = 27,
    RSP = 19,
    RIP = 16,
};

#define CODE_ADDR  UINT64_C(0x400000)
#define FILE_ADDR  UINT64_C(0x700000)
#define STACK_ADDR UINT64_C(0x7ff000)

static const char program[] = "/opt/program";

static void put_note(struct byte_sink *sink, uint32_t type, const struct byte_sink *desc)
{
    sink_u32(sink, 5);
    sink_u32(sink, (uint32_t)desc->size);
    sink_u32(sink, type);
    sink_bytes(sink, "CORE\0\0\0", 8);
    sink_bytes(sink, desc->data, desc->size);
    sink_align(sink, 4);
}

static void put_status(struct byte_sink *sink, uint32_t tid, uint16_t signal, uint64_t sp)
{
    uint8_t bytes[512];
    struct byte_sink desc = byte_sink_over(bytes, sizeof bytes);
    sink_zeros(&desc, 12);
    sink_u16(&desc, signal);
    sink_zeros(&desc, 32 - desc.size);
    sink_u32(&desc, tid);
    sink_zeros(&desc, 112 - desc.size);
    for (uint64_t i = 0; i < WORDS; i++)
        sink_u64(&desc, i == RSP ? sp : i == RIP ? CODE_ADDR + tid : i);
    sink_zeros(&desc, 8);
    put_note(sink, NT_PRSTATUS, &desc);
}

static void put_notes(struct byte_sink *sink)
{
    uint8_t bytes[512];
    struct byte_sink desc = byte_sink_over(bytes, sizeof bytes);
    put_status(sink, 77, 6, STACK_ADDR + 8);
    put_status(sink, 78, 6, 0);
    sink_zeros(&desc, 24);
    sink_u32(&desc, 77);
    sink_zeros(&desc, 40 - desc.size);
    sink_bytes(&desc, "name\0\0\0\0\0\0\0\0\0\0\0", 16);
    sink_zeros(&desc, 80);
    put_note(sink, NT_PRPSINFO, &desc);
    desc = byte_sink_over(bytes, sizeof bytes);
    const uint64_t files[] = {2, 4096,      CODE_ADDR,        CODE_ADDR + 4096,
                              1, FILE_ADDR, FILE_ADDR + 4096, 2};
    for (size_t i = 0; i < 8; i++)
        sink_u64(&desc, files[i]);
    sink_cstr(&desc, program);
    sink_cstr(&desc, "/opt/jit-77.dump");
    put_note(sink, NT_FILE, &desc);
}

static void put_header(struct byte_sink *sink, uint32_t type, uint32_t flags, uint64_t offset,
                       uint64_t addr, uint64_t file_bytes, uint64_t bytes)
{
    sink_u32(sink, type);
    sink_u32(sink, flags);
    sink_u64(sink, offset);
    sink_u64(sink, addr);
    sink_u64(sink, 0);
    sink_u64(sink, file_bytes);
    sink_u64(sink, bytes);
    sink_u64(sink, 1);
}

/* A core of two threads; what it ends with is the stack.  Returns its size. */
static size_t make_core(uint8_t core[CORE_BYTES])
{
    static const uint8_t ident[EI_NIDENT] = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1};
    uint8_t notes[2048];
    struct byte_sink sink = byte_sink_over(core, CORE_BYTES);
    struct byte_sink note_sink = byte_sink_over(notes, sizeof notes);
    put_notes(&note_sink);
    sink_bytes(&sink, ident, sizeof ident);
    const uint16_t types[] = {ET_CORE, EM_X86_64};
    sink_u16(&sink, types[0]);
    sink_u16(&sink, types[1]);
    sink_u32(&sink, 1);
    sink_u64(&sink, 0);
    sink_u64(&sink, 64);
    sink_u64(&sink, 0);
    sink_u32(&sink, 0);
    const uint16_t sizes[] = {64, 56, HEADERS, 0, 0, 0};
    for (size_t i = 0; i < 6; i++)
        sink_u16(&sink, sizes[i]);
    put_header(&sink, PT_NOTE, 0, NOTES_AT, 0, note_sink.size, 0);
    put_header(&sink, PT_LOAD, PF_R | PF_X, MEMORY_AT, CODE_ADDR, CODE_BYTES, 4096);
    put_header(&sink, PT_LOAD, PF_R | PF_X, MEMORY_AT, 0x600000, 0, 4096);
    put_header(&sink, PT_LOAD, PF_R | PF_W, MEMORY_AT + CODE_BYTES, STACK_ADDR, STACK_BYTES, 4096);
    sink_bytes(&sink, notes, note_sink.size);
    sink_zeros(&sink, MEMORY_AT - sink.size);
    for (unsigned i = 0; i < CODE_BYTES + STACK_BYTES; i++)
        sink_u8(&sink, (uint8_t)i);
    assert_false(sink.overflow);
    return sink.size;
}

static int read_core(struct snapshot *snapshot, const uint8_t *bytes, size_t size,
                     struct findings *findings)
{
    *findings = (struct findings){.quiet = true};
    return core_file_read(snapshot, "core", bytes, size, findings);
}

static void check_maps(const struct snapshot *snapshot)
{
    assert_int_equal(snapshot->map_count, 4);
    const struct snapshot_map *code = snapshot_map_at(snapshot, CODE_ADDR + 4095);
    assert_string_equal(code->path, program);
    assert_int_equal(code->offset, 4096);
    assert_true(code->executable);
    assert_null(snapshot_map_at(snapshot, 0x600000)->path);
    assert_string_equal(snapshot_map_at(snapshot, FILE_ADDR)->path, "/opt/jit-77.dump");
    assert_false(snapshot_map_at(snapshot, STACK_ADDR)->executable);
    assert_null(snapshot_map_at(snapshot, CODE_ADDR + 4096));
}

static void test_a_sound_core(void **state)
{
    uint8_t core[CORE_BYTES], word[8];
    struct snapshot snapshot;
    struct findings findings;
    size_t size = make_core(core);
    (void)state;
    assert_int_equal(read_core(&snapshot, core, size, &findings), 0);
    assert_int_equal(snapshot.pid, 77);
    assert_string_equal(snapshot.name, "name");
    check_maps(&snapshot);
    assert_int_equal(snapshot.thread_count, 2);
    assert_int_equal(snapshot.threads[0].signal, 6);
    assert_int_equal(snapshot.threads[1].signal, 0);
    assert_int_equal(snapshot.threads[1].tid, 78);
    assert_int_equal(snapshot.threads[0].registers[8], CODE_ADDR + 77);
    assert_int_equal(snapshot.threads[0].registers[6], 4);  /* rbp */
    assert_int_equal(snapshot.threads[0].registers[16], 9); /* r8 */
    assert_int_equal(snapshot.threads[0].stack_bytes, STACK_BYTES - 8);
    assert_ptr_equal(snapshot.threads[0].stack, core + MEMORY_AT + CODE_BYTES + 8);
    assert_null(snapshot.threads[1].stack);
    assert_true(snapshot_read(&snapshot, CODE_ADDR + CODE_BYTES - 8, word, 8));
    assert_int_equal(word[7], CODE_BYTES - 1);
    assert_false(snapshot_read(&snapshot, CODE_ADDR + CODE_BYTES - 7, word, 8));
    assert_false(snapshot_read(&snapshot, 0x600000, word, 1));
    snapshot_free(&snapshot);
    findings_free(&findings);
}

/* In memory of just that size, so that AddressSanitizer sees a byte more. */
static void test_cut_anywhere(void **state)
{
    uint8_t core[CORE_BYTES];
    size_t size = make_core(core);
    (void)state;
    for (size_t cut = 0; cut < size; cut++) {
        struct snapshot snapshot;
        struct findings findings;
        uint8_t *bytes = malloc(cut ? cut : 1);
        assert_non_null(bytes);
        memcpy(bytes, core, cut);
        assert_int_equal(read_core(&snapshot, bytes, cut, &findings), -1);
        assert_non_null(strstr(findings.failure, "core: "));
        snapshot_free(&snapshot);
        findings_free(&findings);
        free(bytes);
    }
}

static void test_each_bit_flipped(void **state)
{
    uint8_t core[CORE_BYTES];
    size_t size = make_core(core);
    uint8_t *bytes = malloc(size);
    assert_non_null(bytes);
    (void)state;
    for (size_t bit = 0; bit < MEMORY_AT * 8; bit++) {
        struct snapshot snapshot;
        struct findings findings;
        memcpy(bytes, core, size);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        int result = read_core(&snapshot, bytes, size, &findings);
        assert_true(result == 0 || findings.failure[0]);
        for (size_t i = 0; i < snapshot.map_count; i++) {
            const struct snapshot_map *map = &snapshot.maps[i];
            assert_true(map->byte_count <= map->end - map->start);
            assert_true(!map->byte_count || map->bytes + map->byte_count <= bytes + size);
        }
        snapshot_free(&snapshot);
        findings_free(&findings);
    }
    free(bytes);
}

static void test_no_core(void **state)
{
    uint8_t core[CORE_BYTES];
    struct snapshot snapshot;
    struct findings findings;
    size_t size = make_core(core);
    (void)state;
    core[16] = ET_DYN;
    assert_int_equal(read_core(&snapshot, core, size, &findings), -1);
    assert_non_null(strstr(findings.failure, "no core"));
    snapshot_free(&snapshot);
    core[16] = ET_CORE;
    core[18] = EM_386;
    assert_int_equal(read_core(&snapshot, core, size, &findings), -1);
    assert_string_equal(findings.failure,
                        "core: is a core of machine 3 (i386), a machine whose stacks can't be read "
                        "here");
    snapshot_free(&snapshot);
    core[18] = EM_NONE;
    core[19] = 0x90;
    assert_int_equal(read_core(&snapshot, core, size, &findings), -1);
    assert_string_equal(findings.failure,
                        "core: is a core of machine 36864, a machine whose stacks can't be read "
                        "here");
    snapshot_free(&snapshot);
}

static void test_build_id_of_a_first_page(void **state)
{
    uint8_t page[64 + 56 + 32] = {0};
    struct byte_sink sink = byte_sink_over(page, sizeof page);
    struct build_id id;
    (void)state;
    sink_bytes(&sink, "\177ELF\2\1\1", 7);
    sink.size = 32;
    sink_u64(&sink, 64);
    sink.size = 54;
    sink_u16(&sink, 56);
    sink_u16(&sink, 1);
    sink.size = 64;
    put_header(&sink, PT_NOTE, PF_R, 64 + 56, 0, 32, 32);
    sink_u32(&sink, 4);
    sink_u32(&sink, 16);
    sink_u32(&sink, NT_GNU_BUILD_ID);
    sink_bytes(&sink, "GNU", 4);
    sink_bytes(&sink, "0123456789abcdef", 16);
    for (size_t cut = 0; cut < sizeof page; cut++) {
        uint8_t *bytes = malloc(cut ? cut : 1);
        assert_non_null(bytes);
        memcpy(bytes, page, cut);
        mapped_build_id_read(&id, bytes, cut);
        assert_int_equal(id.size, 0);
        free(bytes);
    }
    mapped_build_id_read(&id, page, sizeof page);
    assert_int_equal(id.size, 16);
    assert_memory_equal(id.bytes, "0123456789abcdef", 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sound_core),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_each_bit_flipped),
        cmocka_unit_test(test_no_core),
        cmocka_unit_test(test_build_id_of_a_first_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
