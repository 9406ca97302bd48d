/* See silent_runtime.h. */
#include "injector/recording/silent_runtime.h"

#include "injector/text/file_name.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *begin; /* of the name of its program or library */
    const char *runtime;
} silent[] = {{"libpypy", "PyPy"},    {"pypy", "PyPy"},
              {"libguile-", "Guile"}, {"racket", "Racket"},
              {"libgjs.", "gjs"},     {"gjs-console", "gjs"},
              {"sbcl", "SBCL"},       {"libgccjit.so", "libgccjit"}};

static bool is_old_python(const char *name)
{
    unsigned major, minor;
    if (strncmp(name, "lib", 3) == 0)
        name += 3;
    return sscanf(name, "python%u.%u", &major, &minor) == 2 &&
           (major < 3 || (major == 3 && minor < 12));
}

const char *silent_runtime(const char *path)
{
    const char *name = file_name_of(path);
    for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++)
        if (strncmp(name, silent[i].begin, strlen(silent[i].begin)) == 0)
            return silent[i].runtime;
    return is_old_python(name) ? "Python before 3.12" : NULL;
}

const char *silent_runtime_in(const struct records *records, uint32_t *pid)
{
    const char *runtime = NULL;
    for (size_t i = 0; !runtime && i < records->map_count; i++) {
        runtime = silent_runtime(records->maps[i].map.filename);
        *pid = records->maps[i].map.pid;
    }
    return runtime;
}
