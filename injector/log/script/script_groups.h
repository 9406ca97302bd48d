/* The groups of a script: what stands between two brackets, strings, templates, regular expressions
 * and comments.  Found without a grammar: whether a "/" divides is told from what stands in front
 * of it.  Where that goes wrong, a string and a regular expression end with their line at the
 * latest, and a bracket that has no partner closes nothing. */
#ifndef PERFJIT_SCRIPT_GROUPS_H
#define PERFJIT_SCRIPT_GROUPS_H

#include "injector/log/script/script_file.h"

#define SCRIPT_GROUP_NONE UINT32_MAX

struct script_group {
    uint32_t open, close; /* its first and its last unit */
    uint32_t outer;       /* index of the group around it; or SCRIPT_GROUP_NONE */
};

struct script_groups {
    struct script_group *items; /* ascending by OPEN */
    size_t count, capacity;
};

/* Find the groups of TEXT.  Returns 0, or -1 without memory.  Release with script_groups_free in
 * either case. */
int script_groups_find(struct script_groups *groups, const struct script_file *text);

/* The innermost group that begins before AT and does not end before it. */
uint32_t script_group_around(const struct script_groups *groups, size_t at);

/* The last group directly in OUTER that begins before AT. */
uint32_t script_group_before(const struct script_groups *groups, uint32_t outer, size_t at);

void script_groups_free(struct script_groups *groups);

#endif
