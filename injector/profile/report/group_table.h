/* A profile by process, thread, tier, runtime or kind: where the innermost frames are. */
#ifndef PERFJIT_GROUP_TABLE_H
#define PERFJIT_GROUP_TABLE_H

#include "injector/profile/report/report_view.h"
#include "injector/text/json_writer.h"

enum report_group {
    GROUP_PROCESS,
    GROUP_THREAD,
    GROUP_TIER,
    GROUP_RUNTIME,
    GROUP_KIND,
    REPORT_GROUPS
};

/* The group that WORD names; REPORT_GROUPS: none. */
enum report_group report_group_named(const char *word);

/* Put it as a table, where JSON is NULL; else as the items of its array.  Returns 0, or -1 without
 * memory. */
int group_table_put(const struct report_view *view, enum report_group group,
                    struct json_writer *json);

#endif
