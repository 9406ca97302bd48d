/* A directory for one test program's files, and whole files in and out of memory. */
#ifndef PERFJIT_TEST_SCRATCH_H
#define PERFJIT_TEST_SCRATCH_H

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

static char scratch[48];
static char scratch_file[64]; /* a file in it, for tests that need no more than one */

static inline int make_scratch(void **state)
{
    static const char name[] = "perfjit-unit.XXXXXX";
    const char *in = getenv("TMPDIR");
    (void)state;
    if (!in || strlen(in) + sizeof name >= sizeof scratch)
        in = "/tmp";
    snprintf(scratch, sizeof scratch, "%s/%s", in, name);
    if (!mkdtemp(scratch))
        return -1;
    snprintf(scratch_file, sizeof scratch_file, "%s/file", scratch);
    return 0;
}

static inline int remove_scratch(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", scratch);
    return system(command);
}

static inline void write_scratch(const void *bytes, size_t size)
{
    FILE *file = fopen(scratch_file, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* All of PATH, to be freed by the caller. */
static inline uint8_t *read_whole(const char *path, size_t *size)
{
    struct stat status;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &status), 0);
    *size = (size_t)status.st_size;
    uint8_t *bytes = malloc(*size + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

/* A repeatable random number below LIMIT (xorshift). */
static inline uint32_t random_below(uint64_t *seed, uint32_t limit)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (uint32_t)((*seed >> 32) % limit);
}

#endif
