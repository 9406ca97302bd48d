/* An ELF file for an unwinder: its segments, unwind tables, functions, and identity. */
#ifndef PERFJIT_ELF_VIEW_H
#define PERFJIT_ELF_VIEW_H

#include "injector/native/frame_section.h"
#include "injector/native/packed_section.h"

#include <libelf.h>
#include <sys/stat.h>

enum { BUILD_ID_BYTES = 20, BUILD_ID_HEX_BYTES = 2 * BUILD_ID_BYTES + 1 };

struct build_id {
    uint8_t bytes[BUILD_ID_BYTES];
    size_t size; /* 0: there is none */
};

bool build_id_is(const struct build_id *a, const struct build_id *b);

/* As file names have it: two digits a byte. */
void build_id_hex(char hex[BUILD_ID_HEX_BYTES], const struct build_id *id);

/* A PT_LOAD with its bytes in the file. */
struct elf_segment {
    uint64_t offset, vaddr, size;
    bool executable;
};

/* The first address of a function and the address after its last one; end 0: unknown. */
struct elf_function {
    uint64_t start, end;
};

struct elf_view {
    const uint8_t *bytes;
    size_t size;
    char *path;        /* of a file that elf_view_open mapped, or NULL */
    uint8_t *unpacked; /* bytes to be freed with it, or NULL */
    Elf *elf;          /* NULL: it is no ELF file */
    struct unpacked_sections sections;
    uint16_t elf_mach;
    uint8_t address_bytes;
    bool big_endian;
    uint64_t entry; /* where a process begins with it */
    struct build_id build_id;
    struct stat status; /* of the file at PATH */
    struct elf_segment *segments;
    size_t segment_count;
    struct frame_section eh_frame, debug_frame;
    struct elf_function *functions; /* by start */
    size_t function_count, function_capacity;
    bool functions_read;
};

/* Read the file at PATH, or SIZE BYTES that outlive VIEW.  An unreadable file gives a view without
 * segments.  elf_view_open returns 0 if there is a file, or -1.  Release with elf_view_close in any
 * case. */
int elf_view_open(struct elf_view *view, const char *path);
void elf_view_of(struct elf_view *view, const uint8_t *bytes, size_t size);

/* The address, in the file's terms, of the byte that is mapped from OFFSET.  Returns false if no
 * segment is there. */
bool elf_view_addr(const struct elf_view *view, uint64_t offset, uint64_t *addr);

/* The bytes from ADDR on. *SIZE is their number up to the segment's end, *BEFORE the number of
 * bytes in front of ADDR.  NULL if there are none. */
const uint8_t *elf_view_code(const struct elf_view *view, uint64_t addr, size_t *before,
                             size_t *size);

/* The function that ADDR is in, by the symbols.  Returns 1, 0 if it is in none, or -1 without
 * memory. */
int elf_view_function(struct elf_view *view, uint64_t addr, struct elf_function *function);

/* The contents of section NAME; NULL if there is none, or if it has no contents here. */
const uint8_t *elf_view_section(struct elf_view *view, const char *name, size_t *size,
                                uint64_t *addr);

/* Whether it has section NAME, with contents. */
bool elf_view_has(const struct elf_view *view, const char *name);

/* Unpack the packed sections that IS_WANTED says, as far as that is safe, and hide the others. */
void elf_view_unpack(struct elf_view *view, bool (*is_wanted)(const char *name));

/* Hide section NAME from libelf's users. */
void elf_view_hide(struct elf_view *view, const char *name);

/* The first table of symbols of that TYPE, with the section of its names in *NAMES; NULL: none that
 * can be read. */
Elf_Data *elf_view_symbols(struct elf_view *view, uint32_t type, size_t *names);

void elf_view_close(struct elf_view *view);

#endif
