/* See earlier_result.h. */
#include "injector/inject/image/earlier_result.h"

#include "injector/inject/image/dso_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The names beside PATH; NULL without memory. */
struct names {
    char *dsos, *old, *old_dsos;
};

static char *name_of(const char *path, const char *suffix)
{
    char *name;
    return asprintf(&name, "%s%s", path, suffix) < 0 ? NULL : name;
}

static int take_names(struct names *names, const char *path)
{
    *names =
        (struct names){name_of(path, ".dso"), name_of(path, ".old"), name_of(path, ".old.dso")};
    return names->dsos && names->old && names->old_dsos ? 0 : -1;
}

static void free_names(struct names *names)
{
    free(names->dsos);
    free(names->old);
    free(names->old_dsos);
}

int earlier_result_keep(const char *path, struct findings *findings)
{
    struct names names;
    int result = 0;
    if (take_names(&names, path))
        result = report_failure(findings, "out of memory");
    else if (access(path, F_OK) == 0 &&
             (rename(path, names.old) || dso_dir_put_aside(names.dsos, names.old_dsos)))
        result = report_failure(findings, "%s: can't keep the earlier result there: %s", names.old,
                                strerror(errno));
    free_names(&names);
    return result;
}

void earlier_result_refer(const char *path)
{
    struct names names;
    if (take_names(&names, path) == 0)
        dso_dir_refer(names.dsos, names.old_dsos);
    free_names(&names);
}
