/* The body of an INLINE_INFO record, in a dump that is sound otherwise: it is broken, or all that
 * it says lies in it.
 *
 * The first byte: the byte order of the dump. */
#include "injector/log/jitdump/jit_dump.h"
#include "jitdump/format/byte_sink.h"
#include "tests/fuzz/fuzz_target.h"

#include <elf.h>
#include <string.h>

static void put_header(struct byte_sink *sink)
{
    sink_u32(sink, JITDUMP_MAGIC);
    sink_u32(sink, JITDUMP_FILE_VERSION);
    sink_u32(sink, JITHEADER_BYTES);
    sink_u32(sink, EM_X86_64);
    sink_u32(sink, 0);
    sink_u32(sink, 1);
    sink_u64(sink, 1);
    sink_u64(sink, 0);
}

static bool is_string_inside(const struct jit_inline_info *info, const char *text)
{
    return !text ||
           (text >= info->strings && text + strlen(text) < info->strings + info->strings_bytes);
}

static void read_all(const struct jit_inline_info *info)
{
    struct jit_inline call;
    struct jit_inline_span span;
    uint32_t before = 0;
    for (uint32_t i = 0; i < info->nr_inline; i++) {
        jit_inline_at(info, i, &call);
        promise(call.name && is_string_inside(info, call.name), "a call has a name");
        promise(is_string_inside(info, call.call_file) && is_string_inside(info, call.decl_file),
                "files lie in the strings");
        promise(call.parent == JIT_INLINE_NONE || call.parent < i, "parents stand first");
    }
    for (uint32_t i = 0; i < info->nr_span; i++) {
        jit_inline_span_at(info, i, &span);
        promise(i == 0 || span.code_offset > before, "spans ascend");
        promise(span.inline_index == JIT_INLINE_NONE || span.inline_index < info->nr_inline,
                "a span's call is there");
        before = span.code_offset;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    size_t dump_bytes = JITHEADER_BYTES + JR_PREFIX_BYTES + size - 1;
    uint8_t *data = size ? malloc(dump_bytes) : NULL;
    struct byte_sink sink = byte_sink_over(data, dump_bytes);
    struct jit_dump dump;
    struct jit_record record;
    char cause[256];
    if (!data)
        return 0;
    sink.big_endian = bytes[0] & 1;
    put_header(&sink);
    sink_u32(&sink, JIT_CODE_INLINE_INFO);
    sink_u32(&sink, (uint32_t)(JR_PREFIX_BYTES + size - 1));
    sink_u64(&sink, 2);
    sink_bytes(&sink, bytes + 1, size - 1);
    promise(!sink.overflow &&
                !jit_dump_view(&dump, "fuzz.dump", data, dump_bytes, cause, sizeof cause),
            "the dump can be read");
    struct jit_dump_walk walk = jit_dump_begin(&dump);
    promise(jit_record_at(&walk.reader, JITHEADER_BYTES, &record), "the record is there");
    if (!record.broken)
        read_all(&record.inline_info);
    jit_dump_close(&dump);
    free(data);
    return 0;
}
