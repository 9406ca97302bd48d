/* A runtime that can be asked for its dump, and who asks it from inside the same process. */
#ifndef ATTACH_ASKER_H
#define ATTACH_ASKER_H

#include "injector/run/attach/switch_list.h"
#include "tests/unit/jitdump_inventory.h"

/* ---- A runtime and who asks it ---- */

enum { LIVE = 3 };

struct told {
    unsigned calls;
    uint64_t indices[LIVE];
};

/* The runtime has LIVE functions. */
static inline void tell_live(struct jitdump *dump, void *user)
{
    struct told *told = user;
    told->calls++;
    CHECK(jitdump_is_on(dump));
    CHECK(jitdump_poll(dump, tell_live, user) == 0); /* does nothing, in here */
    for (unsigned i = 0; i < LIVE; i++)
        CHECK(add_function(dump, 0, i, &told->indices[i]) == 0);
}

static inline struct jitdump *open_attachable(void)
{
    struct jitdump_options options = JITDUMP_OPTIONS_INIT;
    struct jitdump *dump;
    options.flags = JITDUMP_ATTACHABLE;
    CHECK(jitdump_open(&dump, &options) == 0);
    CHECK(dump != NULL);
    return dump;
}

/* The page number INDEX of PROCESS, open. */
static inline struct switch_page page_of(pid_t process, size_t index)
{
    struct switch_list list;
    struct switch_page page;
    CHECK(switch_list_read(&list, process) == 0);
    CHECK(list.count > index);
    page = list.pages[index];
    CHECK(switch_page_open(&page) == 0);
    switch_list_free(&list);
    return page;
}

static inline uint32_t ask(enum attach_wanted wanted, const char *where)
{
    struct switch_page page = page_of(getpid(), 0);
    uint32_t request;
    CHECK(switch_page_ask(&page, wanted, where, &request) == 0);
    switch_page_close(&page);
    return request;
}

static inline struct switch_answer answer_of(pid_t process)
{
    static struct switch_answer answer;
    struct switch_page page = page_of(process, 0);
    CHECK(switch_page_read(&page, &answer) == 0);
    switch_page_close(&page);
    return answer;
}

/* Where the N-th dump of this process is, from 1. */
static inline void numbered_path(char to[128], unsigned number)
{
    int pid = (int)getpid();
    if (number == 1)
        snprintf(to, 128, "%s/jitdump-%d/jit-%d.dump", dir, pid, pid);
    else
        snprintf(to, 128, "%s/jitdump-%d-%u/jit-%d.dump", dir, pid, number, pid);
}

#endif
