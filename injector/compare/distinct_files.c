/* See distinct_files.h. */
#include "injector/compare/distinct_files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct run_identity {
    struct stat status;
    size_t run;
};

static int compare_files(const struct stat *a, const struct stat *b)
{
    if (a->st_dev != b->st_dev)
        return a->st_dev < b->st_dev ? -1 : 1;
    return a->st_ino < b->st_ino ? -1 : a->st_ino > b->st_ino;
}

static int compare(const void *left, const void *right)
{
    const struct run_identity *a = left, *b = right;
    int order = compare_files(&a->status, &b->status);
    return order ? order : a->run < b->run ? -1 : a->run > b->run;
}

/* Regular files: a pipe's name may be another pipe each time. */
static bool look_at(struct stat *status, const char *path)
{
    return path && strcmp(path, "-") && stat(path, status) == 0 && S_ISREG(status->st_mode);
}

/* The runs that are files, those of one file next to each other.  Returns how many. */
static size_t identify(struct run_identity *identities, const struct distinct_files *files)
{
    size_t count = 0;
    for (size_t i = 0; i < files->run_count; i++)
        if (look_at(&identities[count].status, files->runs[i]))
            identities[count++].run = i;
    qsort(identities, count, sizeof *identities, compare);
    return count;
}

static int check_runs(const struct distinct_files *files, const struct run_identity *identities,
                      size_t count, bool *shared, struct findings *findings)
{
    *shared = false;
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1;
             k < count && compare_files(&identities[i].status, &identities[k].status) == 0; k++) {
            if (files->is_new[identities[i].run] == files->is_new[identities[k].run])
                return report_failure(findings,
                                      "%s: is there twice on one side: it would count as two runs, "
                                      "and a verdict would be wrong",
                                      files->runs[identities[k].run]);
            *shared = true;
        }
    return 0;
}

/* Whether OUTPUT is one of the COUNT runs, or a list. */
static bool is_input(const struct distinct_files *files, const struct run_identity *identities,
                     size_t count, const char *output)
{
    struct stat status, list;
    if (!look_at(&status, output))
        return false;
    for (size_t i = 0; i < count; i++)
        if (compare_files(&status, &identities[i].status) == 0)
            return true;
    for (size_t i = 0; i < files->list_count; i++)
        if (look_at(&list, files->lists[i]) && compare_files(&status, &list) == 0)
            return true;
    return false;
}

static int check_outputs(const struct distinct_files *files, const struct run_identity *identities,
                         size_t count, struct findings *findings)
{
    for (size_t i = 0; i < files->output_count; i++)
        if (is_input(files, identities, count, files->outputs[i]))
            return report_misuse(findings, "%s: is an input as well; name another output",
                                 files->outputs[i]);
    return 0;
}

int distinct_files_check(const struct distinct_files *files, bool *shared,
                         struct findings *findings)
{
    struct run_identity *identities = calloc(files->run_count + 1, sizeof *identities);
    if (!identities)
        return report_failure(findings, "out of memory");
    size_t count = identify(identities, files);
    int result = check_runs(files, identities, count, shared, findings) ||
                         check_outputs(files, identities, count, findings)
                     ? -1
                     : 0;
    free(identities);
    return result;
}

const char *distinct_files_common_output(const char *const *outputs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count; k++)
            if (outputs[i] && outputs[k] && strcmp(outputs[i], outputs[k]) == 0)
                return outputs[k];
    return NULL;
}
