/* A jitdump file, opened for reading.
 *
 * The file is mapped; names, code and tables are views into the mapping and live until
 * jit_dump_close. The format, byte by byte, is in jitdump/format/jitdump_format.h; producers'
 * deviations are in quirk.c. The quirks tolerated while a header or record was parsed are noted in
 * it.
 */
#ifndef PERFJIT_JIT_DUMP_H
#define PERFJIT_JIT_DUMP_H

#include "injector/findings/findings.h"
#include "injector/log/jitdump/dump_walk.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct jit_dump {
    const char *path;
    const uint8_t *data;
    size_t size;
    size_t used_bytes; /* without the zeros at the file's end */
    bool big_endian;
    uint32_t version;
    uint32_t header_bytes; /* where the records begin */
    uint32_t elf_mach;
    uint32_t pid;
    uint64_t timestamp;
    uint64_t flags;
    uint8_t address_bytes; /* of the machine that elf_mach names: 4 or 8 */
    uint64_t quirks;       /* of the header */
    uint32_t owner_uid;    /* of the file */
    /* The identity of the file that was read, taken from its descriptor. */
    dev_t dev;
    ino_t ino;
    bool has_generation; /* its file system provides it */
    uint32_t generation; /* of the inode: another one when its number is used again */
    uint64_t born_ns;    /* on the wall clock; 0: the file system does not provide it */
    bool mapped;         /* by jit_dump_open */
};

/* Open, map and check the header of the regular file PATH, which must outlive DUMP.  Returns 0, or
 * -1 with the cause in CAUSE.  Release with jit_dump_close in either case. */
int jit_dump_open(struct jit_dump *dump, const char *path, char *cause, size_t cause_bytes);

/* The same for SIZE bytes that are in memory already, which must outlive DUMP and are not released
 * by jit_dump_close. */
int jit_dump_view(struct jit_dump *dump, const char *path, const uint8_t *data, size_t size,
                  char *cause, size_t cause_bytes);

void jit_dump_close(struct jit_dump *dump);

/* Whether its last record is a CODE_CLOSE. */
bool jit_dump_is_closed(const struct jit_dump *dump);

/* Whether it has no record with content. */
bool jit_dump_is_empty(const struct jit_dump *dump);

/* Go through its records: jit_dump_next. */
struct jit_dump_walk jit_dump_begin(const struct jit_dump *dump);

#endif
