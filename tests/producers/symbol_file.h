/* An ELF file with code and the symbols that a test chooses. */
#ifndef PERFJIT_TEST_SYMBOL_FILE_H
#define PERFJIT_TEST_SYMBOL_FILE_H

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SYMBOL_FILE_CODE_AT = 0x1000,      /* in the file */
    SYMBOL_FILE_CODE_ADDR = 0x11000,   /* its virtual address */
    SYMBOL_FILE_NAMES_BYTES = 1 << 14, /* at most */
    SYMBOL_FILE_TEXT = 1               /* the section */
};

struct file_symbol {
    const char *name;
    uint64_t offset, size; /* in the code */
    unsigned char type, visibility;
    uint16_t section;
};

static inline int write_part(FILE *file, uint64_t offset, const void *bytes, size_t size)
{
    return fseek(file, (long)offset, SEEK_SET) || fwrite(bytes, 1, size, file) != size;
}

/* Write the file PATH for the machine MACHINE, with CODE_BYTES of code, and the COUNT SYMBOLS in a table of type TABLE, SHT_SYMTAB or
 * SHT_DYNSYM.  Returns 0, or -1. */
static inline int write_symbol_file(const char *path, uint16_t machine, const void *code,
                                    size_t code_bytes, const struct file_symbol *symbols,
                                    size_t count, uint32_t table)
{
    static const char first_names[] = "\0.text\0.symtab\0.strtab";
    char *names = calloc(1, SYMBOL_FILE_NAMES_BYTES);
    Elf64_Sym *entries = calloc(count + 1, sizeof *entries);
    size_t names_bytes = sizeof first_names, entries_bytes = (count + 1) * sizeof *entries;
    FILE *file = fopen(path, "w");
    if (!names || !entries || !file)
        return -1;
    memcpy(names, first_names, sizeof first_names);
    for (size_t i = 0; i < count; i++) {
        entries[i + 1] = (Elf64_Sym){.st_name = symbols[i].name[0] ? (Elf64_Word)names_bytes : 0,
                                     .st_value = SYMBOL_FILE_CODE_ADDR + symbols[i].offset,
                                     .st_size = symbols[i].size,
                                     .st_info = ELF64_ST_INFO(STB_GLOBAL, symbols[i].type),
                                     .st_other = symbols[i].visibility,
                                     .st_shndx = symbols[i].section};
        if (!symbols[i].name[0])
            continue;
        strcpy(names + names_bytes, symbols[i].name);
        names_bytes += strlen(symbols[i].name) + 1;
    }
    uint64_t code_end = SYMBOL_FILE_CODE_AT + code_bytes, entries_at = (code_end + 7) / 8 * 8;
    uint64_t names_at = entries_at + entries_bytes,
             sections_at = (names_at + names_bytes + 7) / 8 * 8;
    const Elf64_Shdr sections[] = {
        {0},
        {1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, SYMBOL_FILE_CODE_ADDR, SYMBOL_FILE_CODE_AT,
         code_bytes, 0, 0, 16, 0},
        {7, table, 0, 0, entries_at, entries_bytes, 3, 1, 8, sizeof *entries},
        {15, SHT_STRTAB, 0, 0, names_at, names_bytes, 0, 0, 1, 0}};
    const Elf64_Phdr segment = {PT_LOAD,
                                PF_R | PF_X,
                                SYMBOL_FILE_CODE_AT,
                                SYMBOL_FILE_CODE_ADDR,
                                SYMBOL_FILE_CODE_ADDR,
                                code_bytes,
                                code_bytes,
                                0x1000};
    const Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_DYN,
        .e_machine = machine,
        .e_version = EV_CURRENT,
        .e_phoff = sizeof header,
        .e_shoff = sections_at,
        .e_ehsize = sizeof header,
        .e_phentsize = sizeof segment,
        .e_phnum = 1,
        .e_shentsize = sizeof sections[0],
        .e_shnum = sizeof sections / sizeof sections[0],
        .e_shstrndx = 3};
    int failed = write_part(file, 0, &header, sizeof header) ||
                 write_part(file, sizeof header, &segment, sizeof segment) ||
                 write_part(file, SYMBOL_FILE_CODE_AT, code, code_bytes) ||
                 write_part(file, entries_at, entries, entries_bytes) ||
                 write_part(file, names_at, names, names_bytes) ||
                 write_part(file, sections_at, sections, sizeof sections);
    free(names);
    free(entries);
    return fclose(file) || failed ? -1 : 0;
}

#endif
