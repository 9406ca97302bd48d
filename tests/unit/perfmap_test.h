/* What the tests of libperfmap's writer share: a directory for each test, children, and the text of
 * files. */
#ifndef PERFMAP_TEST_H
#define PERFMAP_TEST_H

#include "perfmap/perfmap.h"

#define LIBRARY_HANDLE    struct perfmap
#define LIBRARY_FILE(pid) "perf-%d.map", pid
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

static inline struct perfmap_options options_in_dir(void)
{
    struct perfmap_options options = PERFMAP_OPTIONS_INIT;
    options.dir = dir;
    options.flags = PERFMAP_ALWAYS;
    return options;
}

static inline int try_open(struct perfmap **map)
{
    struct perfmap_options options = options_in_dir();
    return perfmap_open(map, &options);
}

static inline struct perfmap *open_map(void)
{
    struct perfmap *map;
    assert_int_equal(try_open(&map), 0);
    assert_non_null(map);
    return map;
}

static inline void assert_file(const char *expected)
{
    assert_true(file_says(path, expected));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_dir, remove_dir)

#endif
