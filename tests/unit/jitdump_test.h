/* What the tests of libjitdump share: a directory for each test, children, and a strict walk over a
 * dump. */
#ifndef JITDUMP_TEST_H
#define JITDUMP_TEST_H

#include "jitdump/format/byte_cursor.h"
#include "jitdump/format/jitdump_format.h"
#include "jitdump/jitdump.h"

#define LIBRARY_HANDLE    struct jitdump
#define LIBRARY_FILE(pid) "jitdump-%d/jit-%d.dump", pid, pid
#include "tests/unit/library_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- Opening ---- */

/* The directory that this process's dump goes to, for what is to be there before it. */
static inline void make_place(void)
{
    char folder[128];
    snprintf(folder, sizeof folder, "%s/jitdump-%d", dir, (int)getpid());
    mkdir(folder, 0700);
}

static inline struct jitdump_options options_in_dir(void)
{
    struct jitdump_options options = JITDUMP_OPTIONS_INIT;
    options.dir = dir;
    options.flags = JITDUMP_ALWAYS;
    return options;
}

static inline int try_open(struct jitdump **dump)
{
    struct jitdump_options options = options_in_dir();
    return jitdump_open(dump, &options);
}

static inline struct jitdump *open_dump(void)
{
    struct jitdump *dump;
    CHECK(try_open(&dump) == 0);
    CHECK(dump);
    return dump;
}

static inline struct jitdump_code code_with_bytes(uint64_t addr, const void *bytes, size_t size,
                                                  const char *name)
{
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = name;
    code.code_addr = addr;
    code.code_size = size;
    code.bytes = bytes;
    return code;
}

/* ---- Reading a dump ---- */

/* The stage that goes with the body BODY_PATH. */
static inline void stage_path_of(char to[160], const char *body_path)
{
    const char *name = strrchr(body_path, '/');
    snprintf(to, 160, "%.*s/stage%s", (int)(name - body_path), body_path, name);
}

static inline void remove_dump(const char *body_path)
{
    char stage_path[160];
    stage_path_of(stage_path, body_path);
    unlink(stage_path);
    unlink(body_path);
}

struct dump_bytes {
    uint8_t *data;
    size_t size;
};

struct record {
    uint32_t id, total_size;
    uint64_t timestamp;
    size_t offset;
    struct byte_cursor body; /* behind the prefix */
};

static inline struct dump_bytes read_dump(const char *file_path)
{
    struct dump_bytes dump = {NULL, 0};
    struct stat status;
    int fd = open(file_path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return dump;
    if (fstat(fd, &status) == 0 && (dump.data = malloc((size_t)status.st_size + 1)))
        dump.size = (size_t)read(fd, dump.data, (size_t)status.st_size);
    close(fd);
    return dump;
}

/* The record at *OFFSET.  Returns false at the end: of the file, or where only zeros follow.
 * Whatever else can't be a record ends the test. */
static inline bool next_record(const struct dump_bytes *dump, size_t *offset, struct record *record)
{
    struct byte_cursor cursor = byte_cursor_over(dump->data + *offset, dump->size - *offset, false);
    if (*offset == dump->size)
        return false;
    record->offset = *offset;
    record->id = cursor_u32(&cursor);
    record->total_size = cursor_u32(&cursor);
    record->timestamp = cursor_u64(&cursor);
    if (cursor.failed || record->total_size == 0) {
        for (size_t i = *offset; i < dump->size; i++)
            CHECK(dump->data[i] == 0);
        return false;
    }
    CHECK(record->total_size >= JR_PREFIX_BYTES);
    CHECK(record->total_size <= dump->size - *offset);
    *offset += record->total_size;
    cursor.size = record->total_size;
    record->body = cursor;
    return true;
}

static inline struct byte_cursor file_header(const struct dump_bytes *dump)
{
    CHECK(dump->data && dump->size >= JITHEADER_BYTES);
    return byte_cursor_over(dump->data, JITHEADER_BYTES, false);
}

/* How many records with ID the file has. */
static inline size_t count_records(const char *file_path, uint32_t id)
{
    struct dump_bytes dump = read_dump(file_path);
    struct record record;
    size_t offset = JITHEADER_BYTES, count = 0;
    file_header(&dump);
    while (next_record(&dump, &offset, &record))
        count += record.id == id;
    free(dump.data);
    return count;
}

#endif
