/* See image_name.h. */
#include "injector/inject/image/image_name.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>

struct machine {
    uint32_t number;
    uint8_t address_bytes;
    bool big_endian;
    const char *name;
};

static const struct machine machines[] = {
    {EM_386, 4, false, "i386"},      {EM_X86_64, 8, false, "x86_64"},
    {EM_ARM, 4, false, "arm"},       {EM_AARCH64, 8, false, "aarch64"},
    {EM_PPC64, 8, false, "ppc64le"}, {EM_PPC64, 8, true, "ppc64"},
    {EM_S390, 8, true, "s390x"},     {EM_RISCV, 8, false, "riscv64"},
    {EM_RISCV, 4, false, "riscv32"}, {EM_LOONGARCH, 8, false, "loongarch64"},
};

enum { MACHINE_NAME_BYTES = 24 };

static void name_machine(const struct jit_dump *dump, char name[MACHINE_NAME_BYTES])
{
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        if (machines[i].number == dump->elf_mach &&
            machines[i].address_bytes == dump->address_bytes &&
            machines[i].big_endian == dump->big_endian) {
            snprintf(name, MACHINE_NAME_BYTES, "%s", machines[i].name);
            return;
        }
    snprintf(name, MACHINE_NAME_BYTES, "%" PRIu32 "-%d%s", (uint32_t)dump->elf_mach,
             8 * dump->address_bytes, dump->big_endian ? "be" : "le");
}

static void name_of_all(const struct jit_image *image, const struct jit_dump *dump,
                        char name[IMAGE_FILE_NAME_BYTES])
{
    const uint8_t *id = image->build_id;
    char machine[MACHINE_NAME_BYTES], part[16] = "";
    name_machine(dump, machine);
    if (image->part)
        snprintf(part, sizeof part, ".%" PRIu32, image->part + 1);
    snprintf(name, IMAGE_FILE_NAME_BYTES, "%02x%02x%02x%02x/jit-%s%s.so", id[0], id[1], id[2],
             id[3], machine, part);
}

void image_file_name(const struct jit_image *image, const struct jit_process *processes,
                     size_t index, char name[IMAGE_FILE_NAME_BYTES])
{
    const uint8_t *id = image->build_id;
    if (image->process == NO_PROCESS)
        name_of_all(image, image_dump(image, processes), name);
    else
        snprintf(name, IMAGE_FILE_NAME_BYTES, "jit-%" PRIu32 "-%zu-%02x%02x%02x%02x.so",
                 processes[image->process].pid, index, id[0], id[1], id[2], id[3]);
}
