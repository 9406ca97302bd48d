/* readelf's opinion about call frame information, in the form of cfi_rows.h: an oracle. */
#ifndef CFI_READELF_H
#define CFI_READELF_H

#include <ctype.h>
#include <elf.h>
#include <unistd.h>

#include "tests/unit/cfi_rows.h"

enum { READELF_CODE_MAX = 4096, READELF_COLUMNS = 40 };

struct readelf_rows {
    char *rows[READELF_CODE_MAX]; /* of each code offset, or NULL */
    uint64_t end;                 /* of the code */
    char columns[READELF_COLUMNS][16];
    size_t column_count;
    uint64_t begin, limit;        /* of the FDE that is being read; limit 0 in a CIE */
    char initial[ROW_TEXT_BYTES]; /* the row of the CIE before it */
};

static inline void readelf_set(struct readelf_rows *all, uint64_t from, const char *row)
{
    for (uint64_t pc = from; pc < all->limit && pc < READELF_CODE_MAX; pc++) {
        free(all->rows[pc]);
        all->rows[pc] = strdup(row);
    }
}

/* "   LOC           CFA      rbx   ra" */
static inline void readelf_columns(struct readelf_rows *all, char *line)
{
    char *save, *word = strtok_r(line, " \n", &save);
    for (all->column_count = 0; word && all->column_count < READELF_COLUMNS;
         word = strtok_r(NULL, " \n", &save))
        snprintf(all->columns[all->column_count++], 16, "%s", word);
}

/* "0000000000000001 rsp+16   c-16  r0 (rax) u": what is "u" has no rule. */
static inline void readelf_row(struct readelf_rows *all, char *line)
{
    char row[ROW_TEXT_BYTES] = "";
    char *save, *word = strtok_r(line, " \n", &save);
    uint64_t pc = strtoull(word, NULL, 16);
    size_t column = 0;
    while ((word = strtok_r(NULL, " \n", &save)) != NULL) {
        if (isdigit((unsigned char)word[1]) && word[0] == 'r' && *save == '(') {
            word = strtok_r(NULL, " ()\n", &save);
            save++;
        }
        column++;
        if (column == 1)
            rows_append(row, "%s", word);
        else if (strcmp(word, "u") != 0)
            rows_append(row, " %s=%s", all->columns[column], word);
    }
    if (all->limit)
        readelf_set(all, pc, row);
    else
        strcpy(all->initial, row);
}

static inline void readelf_line(struct readelf_rows *all, char *line)
{
    const char *pc = strstr(line, " pc=");
    if (strstr(line, " CIE ")) {
        all->limit = 0;
    } else if (strstr(line, " FDE ") && pc) {
        sscanf(pc, " pc=%lx..%lx", &all->begin, &all->limit);
        all->end = all->limit > all->end ? all->limit : all->end;
        readelf_set(all, all->begin, all->initial); /* an FDE without instructions has no row */
    } else if (strstr(line, " LOC ")) {
        readelf_columns(all, line);
    } else if (strlen(line) > 17 && isxdigit((unsigned char)line[0]) && line[16] == ' ') {
        readelf_row(all, line);
    }
}

/* The rows in the .eh_frame of the ELF file at PATH, from address START on.  To be freed. */
static inline char *readelf_rows(const char *path, uint64_t start)
{
    static struct readelf_rows all;
    char command[512], line[ROW_TEXT_BYTES], *text = NULL;
    size_t bytes;
    all = (struct readelf_rows){0};
    snprintf(command, sizeof command, "readelf -W --debug-dump=frames-interp %s 2>&1", path);
    FILE *pipe = popen(command, "r");
    while (fgets(line, sizeof line, pipe))
        readelf_line(&all, line);
    pclose(pipe);
    FILE *stream = open_memstream(&text, &bytes);
    const char *last = "";
    for (uint64_t pc = start; pc < all.end && pc < READELF_CODE_MAX; pc++) {
        const char *row = all.rows[pc] ? all.rows[pc] : "-";
        if (strcmp(row, last) != 0)
            fprintf(stream, "%d %s\n", (int)(pc - start), row);
        last = row;
    }
    fclose(stream);
    for (size_t i = 0; i < READELF_CODE_MAX; i++)
        free(all.rows[i]);
    return text;
}

/* Write an ELF file at PATH with nothing but TABLE as its .eh_frame. */
static inline void readelf_write(const char *path, const struct rows_table *table)
{
    static const char names[] = "\0.eh_frame\0.shstrtab";
    Elf64_Ehdr head = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_EXEC,
        .e_machine = (Elf64_Half)table->arch,
        .e_version = EV_CURRENT,
        .e_shoff = sizeof head,
        .e_ehsize = sizeof head,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = 3,
        .e_shstrndx = 2};
    size_t names_offset = sizeof head + 3 * sizeof(Elf64_Shdr);
    Elf64_Shdr sections[3] = {
        {0},
        {.sh_name = 1,
         .sh_type = SHT_PROGBITS,
         .sh_flags = SHF_ALLOC,
         .sh_addr = table->addr,
         .sh_offset = names_offset + sizeof names,
         .sh_size = table->size},
        {.sh_name = 11, .sh_type = SHT_STRTAB, .sh_offset = names_offset, .sh_size = sizeof names}};
    FILE *file = fopen(path, "w");
    fwrite(&head, sizeof head, 1, file);
    fwrite(sections, sizeof sections, 1, file);
    fwrite(names, sizeof names, 1, file);
    fwrite(table->data, table->size, 1, file);
    fclose(file);
}

#endif
