/* See newest_records.h. */
#include "injector/log/jitdump/newest_records.h"

#include "injector/log/jitdump/dump_name.h"
#include "injector/text/printable_text.h"

#include <stdlib.h>

static bool has_records(const char *path)
{
    struct jit_dump stage;
    char cause[256];
    bool has = jit_dump_open(&stage, path, cause, sizeof cause) == 0 && !jit_dump_is_empty(&stage);
    jit_dump_close(&stage);
    return has;
}

char *newest_records_print(const struct jit_dump *dump)
{
    char *stage = jit_dump_is_closed(dump) ? NULL : jit_dump_name_stage(dump->path);
    if (stage && has_records(stage)) {
        printable_line(stderr, "perfjit: %s: was not closed; its newest records are in %s",
                       dump->path, stage);
        return stage;
    }
    free(stage);
    return NULL;
}
