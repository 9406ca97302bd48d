/* See image_name.h. */
#include "injector/inject/image/image_name.h"

#include "injector/recording/machine.h"

#include <inttypes.h>
#include <stdio.h>

enum { MACHINE_NAME_BYTES = 24 };

static void name_machine(const struct jit_dump *dump, char name[MACHINE_NAME_BYTES])
{
    const struct machine *machine =
        machine_of_elf(dump->elf_mach, dump->address_bytes, dump->big_endian);
    if (machine && machine->image_name && (machine->order == BIG) == dump->big_endian)
        snprintf(name, MACHINE_NAME_BYTES, "%s", machine->image_name);
    else
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

const char *image_file_name_again(struct named_image *named, const struct jit_image *image,
                                  const struct jit_process *processes, size_t index)
{
    if (named->image != image)
        image_file_name(image, processes, index, named->name);
    named->image = image;
    return named->name;
}
