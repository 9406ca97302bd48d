/* See default_file.h. */
#include "injector/recording/default_file.h"

#include <unistd.h>

/* What perfjit record writes, then what perfjit inject is told to write in all examples, then what
 * perf record writes. */
static const char *const usual[] = {"perfjit.perf.data", "perf.jit.data", "perf.data"};

const char *default_file(const char *given, struct findings *findings)
{
    if (given)
        return given;
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        if (access(usual[i], F_OK) == 0)
            return usual[i];
    report_failure(findings, "no recording is named, and none is here: neither %s, nor %s, nor %s",
                   usual[0], usual[1], usual[2]);
    return NULL;
}
