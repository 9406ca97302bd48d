/* See switch_list.h.
 *
 *     START-END PERMS OFFSET MAJOR:MINOR INODE     PATH
 *
 * A page's PATH is "/memfd:perfjit-attach (deleted)", or that of shared memory without a file:
 * "/dev/zero (deleted)", whose first bytes tell. */
#include "injector/run/attach/switch_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char page_path[] = "/memfd:" ATTACH_PAGE_NAME " (deleted)";
static const char memory_path[] = "/dev/zero (deleted)";

/* Whether a mapping without a name is a page. */
static bool is_page(struct switch_page *page)
{
    if (switch_page_open(page))
        return false;
    switch_page_close(page);
    return true;
}

static void add_page(struct switch_list *list, const struct switch_page *page)
{
    if (list->count < SWITCHES_MOST)
        list->pages[list->count++] = *page;
}

static bool is_dump(const char *path)
{
    const char *name = strrchr(path, '/');
    size_t length = strlen(path);
    return name && strncmp(name, "/jit-", 5) == 0 && length > 5 &&
           strcmp(path + length - 5, ".dump") == 0 && !strstr(path, "/stage/");
}

static void take_line(struct switch_list *list, pid_t process, const char *line)
{
    struct switch_page page = {.process = process, .fd = -1};
    char permissions[8];
    int path_at = -1;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*x %*x:%*x %" SCNu64 " %n", &page.start,
               &page.end, permissions, &page.inode, &path_at) < 4 ||
        path_at < 0)
        return;
    const char *path = line + path_at;
    page.has_file = strcmp(path, page_path) == 0;
    if (page.has_file ||
        (strcmp(path, memory_path) == 0 && strcmp(permissions, "rw-s") == 0 && is_page(&page)))
        add_page(list, &page);
    else if (strstr(path, "/libjitdump.so"))
        list->has_library = true;
    else if (!list->dump && is_dump(path))
        list->dump = strdup(path);
}

int switch_list_read(struct switch_list *list, pid_t process)
{
    char path[32], *line = NULL;
    size_t bytes = 0;
    *list = (struct switch_list){.is_empty = true};
    snprintf(path, sizeof path, "/proc/%d/maps", (int)process);
    FILE *maps = fopen(path, "re");
    if (!maps)
        return -1;
    errno = 0;
    while (getline(&line, &bytes, maps) > 0) {
        list->is_empty = false;
        line[strcspn(line, "\n")] = '\0';
        take_line(list, process, line);
        errno = 0;
    }
    int error = errno;
    free(line);
    fclose(maps);
    errno = error;
    return error ? -1 : 0;
}

void switch_list_free(struct switch_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        switch_page_close(&list->pages[i]);
    free(list->dump);
    list->dump = NULL;
    list->count = 0;
}
