/* Compares the functions of a program or library with its own .eh_frame, each by libjitdump's check
 * of frames: compilers' tables are right, so what is found is the check's own fault.
 *
 *     frame_sweep FILE    x86-64 or aarch64
 *
 * Prints each fault, "N functions, N faults, N instructions compared, N functions whole" and
 * returns 1 if there are faults.
 */
#include "jitdump/cfi_check/frame_check.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
    const uint8_t *data;
    size_t size;
    const Elf64_Ehdr *header;
    const Elf64_Shdr *sections;
};

struct counts {
    uint64_t functions, faults, compared, whole;
};

static bool map_file(struct file *file, const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status))
        return false;
    file->size = (size_t)status.st_size;
    file->data = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (file->data == MAP_FAILED)
        return false;
    file->header = (const void *)file->data;
    file->sections = (const void *)(file->data + file->header->e_shoff);
    return true;
}

static const Elf64_Shdr *find_section(const struct file *file, const char *name)
{
    const Elf64_Shdr *names = &file->sections[file->header->e_shstrndx];
    for (unsigned i = 0; i < file->header->e_shnum; i++)
        if (strcmp((const char *)file->data + names->sh_offset + file->sections[i].sh_name, name) ==
            0)
            return &file->sections[i];
    return NULL;
}

/* The bytes at ADDR, COUNT of them, or NULL. */
static const uint8_t *bytes_at(const struct file *file, uint64_t addr, uint64_t count)
{
    for (unsigned i = 0; i < file->header->e_shnum; i++) {
        const Elf64_Shdr *section = &file->sections[i];
        if (section->sh_flags & SHF_EXECINSTR && section->sh_type == SHT_PROGBITS &&
            addr >= section->sh_addr && addr - section->sh_addr < section->sh_size &&
            count <= section->sh_size - (addr - section->sh_addr))
            return file->data + section->sh_offset + (addr - section->sh_addr);
    }
    return NULL;
}

static void check_function(const struct file *file, const struct eh_fde *fde, uint64_t pc,
                           struct counts *counts)
{
    struct frame_fde frame = {0, fde->pc_range, &fde->cie, fde->instructions,
                              fde->instructions_bytes};
    const uint8_t *code = bytes_at(file, pc, fde->pc_range);
    struct frame_check check;
    if (!code || jd_frame_check(&check, jd_code_machine(file->header->e_machine), &frame, 1, code,
                                fde->pc_range))
        return;
    counts->functions++;
    counts->compared += check.compared;
    counts->whole += check.beyond == UINT64_MAX;
    counts->faults += check.wrong;
    if (check.wrong)
        printf("0x%" PRIx64 ": %s\n", pc, check.fault);
}

int main(int argc, char **argv)
{
    struct counts counts = {0};
    struct file file;
    struct eh_fde fde;
    if (argc != 2 || !map_file(&file, argv[1]))
        return 2;
    const Elf64_Shdr *section = find_section(&file, ".eh_frame");
    if (!section || !jd_code_machine(file.header->e_machine))
        return 2;
    struct eh_frame_walk walk =
        jd_eh_frame_begin(file.data + section->sh_offset, section->sh_size, false, 8);
    while (jd_eh_frame_next(&walk, &fde))
        check_function(&file, &fde, eh_fde_pc(&fde, section->sh_addr), &counts);
    jd_eh_frame_end(&walk);
    printf("%" PRIu64 " functions, %" PRIu64 " faults, %" PRIu64 " instructions compared, %" PRIu64
           " functions whole\n",
           counts.functions, counts.faults, counts.compared, counts.whole);
    return counts.faults != 0;
}
