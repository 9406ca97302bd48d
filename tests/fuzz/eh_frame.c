/* .eh_frame: the reader in both byte orders and address sizes, and jitdump_cfi_import, whose output
 * must be sound.
 *
 * The first byte: bit 0 the byte order, bit 1 the address size, bits 2 to 4 how far off the section
 * is taken to be. */
#include "jitdump/format/eh_frame.h"
#include "jitdump/cfi.h"
#include "jitdump/jitdump.h"
#include "tests/fuzz/fuzz_target.h"

#include <errno.h>

enum { CODE_ADDR = 0x10000, CODE_BYTES = 0x1000 };

static size_t count_fdes(const uint8_t *bytes, size_t size, bool big_endian, uint8_t address_bytes,
                         const char **broken)
{
    struct eh_frame_walk walk = jd_eh_frame_begin(bytes, size, big_endian, address_bytes);
    struct eh_fde fde;
    size_t count = 0;
    while (jd_eh_frame_next(&walk, &fde)) {
        promise(fde.instructions >= bytes &&
                    fde.instructions + fde.instructions_bytes <= bytes + size &&
                    fde.cie.instructions >= bytes &&
                    fde.cie.instructions + fde.cie.instructions_bytes <= bytes + size,
                "instructions lie in the section");
        promise(++count <= size, "the walk ends");
    }
    jd_eh_frame_end(&walk);
    promise(!walk.broken || walk.broken_at <= size, "damage is in the section");
    *broken = walk.broken;
    return count;
}

static void import(const uint8_t *bytes, size_t size, uint64_t section_addr)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_unwind unwind;
    const char *broken;
    int error = jitdump_cfi_import(cfi, bytes, size, section_addr, CODE_ADDR, CODE_BYTES);
    promise(error == 0 || error == -ENOENT || error == -EINVAL || error == -ENOMEM,
            "import's errors are those that it lists");
    promise(error != -EINVAL || jitdump_cfi_error(cfi)[0], "an error has a text");
    if (error == 0 && jitdump_cfi_finish(cfi, CODE_BYTES, &unwind) == 0) {
        size_t frame_bytes = (size_t)(unwind.unwinding_size - unwind.eh_frame_hdr_size);
        promise(count_fdes(unwind.data, frame_bytes, false, 8, &broken) > 0 && !broken,
                "what was imported can be read");
    }
    jitdump_cfi_free(cfi);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *broken;
    if (size == 0)
        return 0;
    uint8_t how = bytes[0];
    count_fdes(bytes + 1, size - 1, how & 1, how & 2 ? 4 : 8, &broken);
    import(bytes + 1, size - 1, CODE_ADDR + CODE_BYTES - (how >> 2 & 7) * (uint64_t)0x80);
    import(bytes + 1, size - 1, 0);
    return 0;
}
