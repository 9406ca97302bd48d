/* An .eh_frame section under way, with as many CIEs and FDEs as a test likes. */
#ifndef PERFJIT_TEST_EH_FRAME_SECTION_H
#define PERFJIT_TEST_EH_FRAME_SECTION_H

#include "jitdump/format/byte_sink.h"

/* In memory enough for all of them; one FDE of 16 bytes of code behind the other. */
struct section {
    struct byte_sink sink;
    uint64_t fde_count;
};

/* A CIE with INSTRUCTIONS times "def_cfa_offset NUMBER".  Returns its offset. */
static size_t put_cie(struct section *section, size_t instructions, uint32_t number)
{
    size_t start = section->sink.size;
    sink_u32(&section->sink, (uint32_t)(15 + instructions * 6));
    sink_u32(&section->sink, 0);
    sink_bytes(&section->sink, "\1zR\0\1\x78\x10\1", 8);
    sink_bytes(&section->sink, "\0\0\0", 3); /* absolute pointers, two nops */
    for (size_t i = 0; i < instructions; i++) {
        sink_u8(&section->sink, 0x0e);
        for (unsigned shift = 0; shift < 35; shift += 7)
            sink_u8(&section->sink, (uint8_t)((number >> shift & 0x7f) | (shift < 28 ? 0x80 : 0)));
    }
    return start;
}

static void put_fde(struct section *section, size_t cie)
{
    sink_u32(&section->sink, 24);
    sink_u32(&section->sink, (uint32_t)(section->sink.size - cie));
    sink_u64(&section->sink, section->fde_count++ * 16);
    sink_u64(&section->sink, 16);
    sink_zeros(&section->sink, 4);
}

#endif
