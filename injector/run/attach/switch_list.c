/* See switch_list.h.
 *
 *     START-END PERMS OFFSET MAJOR:MINOR INODE     PATH
 *
 * A page's PATH is "/memfd:perfjit-attach (deleted)".  A process maps its file twice; the private
 * mapping is the page.  Without a file it is private memory of a page's size without a PATH; before
 * version 0.3 it is shared memory, of which there was one mapping in either case: "/dev/zero
 * (deleted)".  The first bytes tell whether such memory is a page. */
#include "injector/run/attach/switch_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Add the pages in a mapping of memory that is PAGE's: the kernel joins neighbours. */
static void add_memory(struct switch_list *list, const struct switch_page *memory)
{
    uint64_t unit = (uint64_t)sysconf(_SC_PAGESIZE);
    unit = (ATTACH_PAGE_BYTES + unit - 1) / unit * unit;
    uint64_t bytes = memory->end - memory->start;
    if (bytes % unit != 0 || bytes / unit > SWITCHES_MOST)
        return;
    for (uint64_t at = memory->start; at < memory->end; at += unit) {
        struct switch_page page = *memory;
        page.start = at;
        page.end = at + unit;
        if (is_page(&page))
            add_page(list, &page);
    }
}

/* Add the page of a file.  The mapping for answers is the process's own affair. */
static void add_file(struct switch_list *list, const struct switch_page *page, bool shared)
{
    for (size_t i = 0; i < list->count; i++) {
        struct switch_page *other = &list->pages[i];
        if (!other->has_file || other->inode != page->inode)
            continue;
        if (!shared)
            *other = *page;
        return;
    }
    add_page(list, page);
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
    bool shared = permissions[3] == 's';
    page.has_file = strcmp(path, page_path) == 0;
    if (page.has_file)
        add_file(list, &page, shared);
    else if (strcmp(path, shared ? memory_path : "") == 0 && strncmp(permissions, "rw-", 3) == 0)
        add_memory(list, &page);
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
