/* The pages of a process through which its dumps are requested, one for each JIT in the process.
 * If there are none, it has the other signs of JIT code in the process's mappings. */
#ifndef PERFJIT_SWITCH_LIST_H
#define PERFJIT_SWITCH_LIST_H

#include "injector/run/attach/switch_page.h"

#include <stddef.h>

enum { SWITCHES_MOST = 32 };

struct switch_list {
    struct switch_page pages[SWITCHES_MOST];
    size_t count;
    bool is_empty;    /* nothing is mapped: a kernel thread, or it has ended */
    bool has_library; /* libjitdump.so */
    char *dump;       /* one that is mapped, owned; or NULL */
};

/* Read /proc/PROCESS/maps.  Returns 0, or -1 with errno: ENOENT, ESRCH: no such process; EACCES,
 * EPERM: whose else it is.  Free with switch_list_free in either case. */
int switch_list_read(struct switch_list *list, pid_t process);

void switch_list_free(struct switch_list *list);

#endif
