/* See input_guard.h. */
#include "injector/files/input_guard.h"

#include <string.h>

enum { MOST_OUTPUTS = 8 };

/* Of the process: a command is one. */
static struct guarded_output {
    const char *path;
    dev_t device;
    ino_t inode;
    bool is_input;
} outputs[MOST_OUTPUTS];
static size_t output_count;

void input_guard_output(const char *path)
{
    struct stat status;
    if (!path || strcmp(path, "-") == 0 || output_count == MOST_OUTPUTS || stat(path, &status) ||
        !S_ISREG(status.st_mode))
        return;
    for (size_t i = 0; i < output_count; i++)
        if (status.st_dev == outputs[i].device && status.st_ino == outputs[i].inode)
            return;
    outputs[output_count++] = (struct guarded_output){path, status.st_dev, status.st_ino, false};
}

bool input_guard_is_needed(void)
{
    return output_count > 0;
}

void input_guard_input(const struct stat *status)
{
    for (size_t i = 0; i < output_count; i++)
        if (status->st_dev == outputs[i].device && status->st_ino == outputs[i].inode)
            outputs[i].is_input = true;
}

void input_guard_input_at(const char *path)
{
    struct stat status;
    if (output_count && stat(path, &status) == 0)
        input_guard_input(&status);
}

int input_guard_check(struct findings *findings)
{
    for (size_t i = 0; i < output_count; i++)
        if (outputs[i].is_input)
            return report_misuse(findings,
                                 "%s: is an input as well; name another output with -o FILE",
                                 outputs[i].path);
    return 0;
}
