/* See kept_records.h. */
#include "injector/run/record/kept_records.h"

#include "injector/arrays/array.h"
#include "injector/log/owner/dump_probe.h"
#include "injector/text/printable_text.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 64 };

static const struct kept_dump *find(const struct kept_records *kept, const struct jit_dump *dump)
{
    for (size_t i = 0; i < kept->count; i++)
        if (kept->items[i].dev == dump->dev && kept->items[i].ino == dump->ino)
            return &kept->items[i];
    return NULL;
}

/* ---- For later ---- */

/* Write DUMP, and the RECORDS that follow it, into FOLDER. */
static void write_whole(const struct jit_dump *dump, const struct unwritten_records *records,
                        uint32_t pid, const char *folder)
{
    char *path = NULL;
    if (asprintf(&path, "%s/jit-%" PRIu32 ".dump", folder, pid) < 0)
        return;
    FILE *file = fopen(path, "wxe");
    bool written = file && fwrite(dump->data, dump->size, 1, file) == 1 &&
                   fwrite(records->bytes, records->byte_count, 1, file) == 1;
    if (file)
        written = fclose(file) == 0 && written;
    if (written)
        printable_line(stderr,
                       "perfjit: kept: %s is the dump of process %" PRIu32
                       " with the records that it had not written: --jitdump %" PRIu32 ":FILE",
                       path, pid, pid);
    free(path);
}

/* ---- At the end of a recording ---- */

static int keep(struct kept_records *kept, struct jit_dump *dump, uint32_t pid, const char *folder)
{
    struct unwritten_records found;
    if (find(kept, dump))
        return 0;
    if (unwritten_records_of_process(dump, pid, &found))
        return -1;
    if (!found.record_count)
        return 0;
    if (array_reserve(kept->items, kept->count, kept->capacity)) {
        free(found.bytes);
        return -1;
    }
    kept->items[kept->count++] = (struct kept_dump){dump->dev, dump->ino, dump->size, found};
    if (folder)
        write_whole(dump, &found, pid, folder);
    return 0;
}

/* Keep that of the file at PATH, if it is a dump. */
static int keep_of(struct kept_records *kept, const char *path, uint32_t pid, const char *folder)
{
    struct jit_dump dump;
    char cause[256];
    uint32_t header_pid;
    if (!dump_probe_path(path, &header_pid)) /* its other files are not worth mapping */
        return 0;
    int result =
        jit_dump_open(&dump, path, cause, sizeof cause) ? 0 : keep(kept, &dump, pid, folder);
    jit_dump_close(&dump);
    return result;
}

int kept_records_take(struct kept_records *kept, uint32_t pid, const char *folder,
                      struct findings *findings)
{
    char path[PATH_BYTES];
    int result = 0;
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/fd", pid);
    DIR *files = opendir(path);
    for (struct dirent *entry; files && !result && (entry = readdir(files));) {
        snprintf(path, sizeof path, "/proc/%" PRIu32 "/fd/%.10s", pid, entry->d_name);
        result = keep_of(kept, path, pid, folder);
    }
    if (files)
        closedir(files);
    return result ? report_failure(findings, "out of memory") : 0;
}

/* ---- Later ---- */

static int find_kept(void *context, const struct jit_dump *dump, uint32_t pid,
                     struct unwritten_records *found)
{
    const struct kept_dump *kept = find(context, dump);
    (void)pid;
    *found = (struct unwritten_records){0};
    if (!kept || kept->size != dump->size)
        return 0;
    *found = kept->records;
    found->bytes = malloc(found->byte_count);
    if (!found->bytes)
        return -1;
    memcpy(found->bytes, kept->records.bytes, found->byte_count);
    return 0;
}

struct unwritten_source kept_records_source(struct kept_records *kept)
{
    return (struct unwritten_source){find_kept, kept, false};
}

void kept_records_free(struct kept_records *kept)
{
    for (size_t i = 0; i < kept->count; i++)
        free(kept->items[i].records.bytes);
    free(kept->items);
    *kept = (struct kept_records){0};
}
