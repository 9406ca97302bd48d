/* A jitdump file, opened for reading, and its records one after another.
 *
 * The file is mapped; names, code and tables are views into the mapping and live until
 * jit_dump_close. The format, byte by byte, stands in jitdump/jitdump_format.h; what producers make
 * of it, in quirk.c.  The quirks that a header or a record was read in spite of are noted in it.
 */
#ifndef PERFJIT_JIT_DUMP_H
#define PERFJIT_JIT_DUMP_H

#include "injector/dump/jit_record.h"
#include "injector/findings/findings.h"

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
    /* Which file it is, of the descriptor that was read. */
    dev_t dev;
    ino_t ino;
    bool has_generation; /* its file system tells it */
    uint32_t generation; /* of the inode: another one when its number is used again */
    uint64_t born_ns;    /* on the wall clock; 0: the file system does not tell */
    bool mapped;         /* by jit_dump_open */
};

struct jit_dump_walk {
    const struct jit_dump *dump;
    bool big_endian;
    uint64_t offset; /* of the next record */
    uint64_t number;
    uint64_t time; /* of the last sound record; 0: there was none yet */
    uint32_t pid;  /* of the last LOAD, or of the header */
    /* What was read at AHEAD_OFFSET, in its byte order, to see whether a record follows: not to be
     * read twice. */
    struct jit_record ahead;
    uint64_t ahead_offset;
    bool has_ahead, ahead_big_endian;
};

/* How a walk ended. */
enum jit_dump_end {
    JIT_DUMP_MORE,  /* it has not: *RECORD is the next record */
    JIT_DUMP_TORN,  /* it has not, but there are no records in the *RECORD's extent */
    JIT_DUMP_WHOLE, /* after the last record, with nothing behind it but room never used */
    JIT_DUMP_CUT,   /* at a record that does not fit in the file, or can't be one */
};

/* Open, map and check the header of the regular file PATH, which must outlive DUMP.  Returns 0, or
 * -1 with the cause in CAUSE.  Release with jit_dump_close in either case. */
int jit_dump_open(struct jit_dump *dump, const char *path, char *cause, size_t cause_bytes);

/* The same for SIZE bytes that are in memory already, which must outlive DUMP and are not released
 * by jit_dump_close. */
int jit_dump_view(struct jit_dump *dump, const char *path, const uint8_t *data, size_t size,
                  char *cause, size_t cause_bytes);

void jit_dump_close(struct jit_dump *dump);

struct jit_dump_walk jit_dump_begin(const struct jit_dump *dump);

/* Read what stands at OFFSET, whatever its id, without a look at what follows.  Returns false if
 * its prefix can't be one or it does not fit in the file. */
bool jit_record_at(const struct jit_dump_walk *walk, uint64_t offset, struct jit_record *record);

/* The same, but for jit_record_check: in a time that does not grow with the record, for places that
 * may be one of many. */
bool jit_record_outline_at(const struct jit_dump_walk *walk, uint64_t offset,
                           struct jit_record *record);

/* The next record, whatever its id.  A record that is broken inside is still returned.  Behind a
 * tear, the walk goes on at the next place where records follow one another (torn_record.h). */
enum jit_dump_end jit_dump_next(struct jit_dump_walk *walk, struct jit_record *record);

#endif
