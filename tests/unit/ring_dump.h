/* A dump of bounded size, for code in an arena that never is. */
#ifndef PERFJIT_TEST_RING_DUMP_H
#define PERFJIT_TEST_RING_DUMP_H

#include "tests/unit/child.h"
#include "tests/unit/jitdump_test.h"

enum { RING_BYTES = 4 << 20, NAME_BYTES = 24 };

#define ARENA UINT64_C(0x7f0000000000)

static inline struct jitdump *open_ring(uint32_t flags)
{
    struct jitdump_options options = options_in_dir();
    struct jitdump *dump;
    options.flags |= JITDUMP_RING | flags;
    options.max_bytes = RING_BYTES;
    CHECK(jitdump_open(&dump, &options) == 0);
    return dump;
}

static inline void check_bound(void)
{
    struct stat body, stage = {0};
    char stage_path[160];
    stage_path_of(stage_path, path);
    CHECK(stat(path, &body) == 0);
    (void)!stat(stage_path, &stage);
    CHECK(body.st_size + stage.st_size <= RING_BYTES);
    CHECK((body.st_blocks + stage.st_blocks) * 512 <= RING_BYTES + 16384); /* and its own blocks */
}

#endif
