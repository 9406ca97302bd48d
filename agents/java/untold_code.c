/* See untold_code.h. */
#include "agents/java/untold_code.h"

#include <stdlib.h>
#include <string.h>

/* What is shorter stands there to align what is behind it. */
enum { GAP_BYTES_LEAST = 32 };

/* In these HotSpot puts code together that runs elsewhere. */
static bool is_workplace(const char *name)
{
    static const char *const names[] = {"C1 temporary CodeBuffer", "Compile::scratch_buffer",
                                        "adapters", "Signature Handler Temp Buffer"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static void note(struct untold_code *untold, uint64_t begin, uint64_t end)
{
    const struct told_range range = {begin, end, untold->walks};
    told_code_add(&untold->told, &range); /* without memory it is logged again, by another name */
}

void untold_code_note(struct untold_code *untold, uint64_t begin, uint64_t end)
{
    pthread_mutex_lock(&untold->lock);
    note(untold, begin, end);
    pthread_mutex_unlock(&untold->lock);
}

/* ---- A walk ---- */

static bool was_there(const struct untold_code *untold, const struct vm_blob *blob)
{
    const struct vm_blob *other = vm_blobs_find(&untold->before, blob->begin);
    return other && other->begin == blob->begin && other->end == blob->end &&
           other->name == blob->name;
}

static void log_gap(struct jitdump *dump, const struct told_range *gap, const char *name)
{
    struct jitdump_code added = JITDUMP_CODE_INIT;
    added.name = name;
    added.code_addr = gap->begin;
    added.code_size = gap->end - gap->begin;
    added.bytes = (const void *)(uintptr_t)gap->begin;
    if (added.code_size >= GAP_BYTES_LEAST && !is_workplace(name))
        jitdump_add_code(dump, &added, NULL);
}

/* The lock is held meanwhile: a stub that is made in there comes behind it in the dump. */
static void log_gaps(struct untold_code *untold, struct jitdump *dump, const struct vm_blob *blob)
{
    struct told_range gap;
    char name[VM_NAME_BYTES];
    pthread_mutex_lock(&untold->lock);
    if (told_code_gap(&untold->told, blob->begin, blob->end, &gap) &&
        vm_name_copy(blob->name, name))
        do {
            log_gap(dump, &gap, name);
            note(untold, gap.begin, gap.end);
        } while (told_code_gap(&untold->told, gap.end, blob->end, &gap));
    pthread_mutex_unlock(&untold->lock);
}

void untold_code_log(struct untold_code *untold, const struct vm_structs *structs,
                     struct jitdump *dump, bool is_last)
{
    pthread_mutex_lock(&untold->lock);
    const unsigned walk = ++untold->walks;
    pthread_mutex_unlock(&untold->lock);
    if (!vm_blobs_read(structs, &untold->next))
        return;
    const struct vm_blobs spare = untold->before;
    untold->before = untold->now;
    untold->now = untold->next;
    untold->next = spare;
    for (size_t i = 0; i < untold->now.count; i++)
        if (is_last || was_there(untold, &untold->now.items[i]))
            log_gaps(untold, dump, &untold->now.items[i]);
    pthread_mutex_lock(&untold->lock);
    told_code_drop(&untold->told, &untold->now, &untold->before, walk);
    pthread_mutex_unlock(&untold->lock);
}

void untold_code_free(struct untold_code *untold)
{
    pthread_mutex_lock(&untold->lock);
    told_code_free(&untold->told);
    pthread_mutex_unlock(&untold->lock);
    free(untold->now.items);
    free(untold->before.items);
    free(untold->next.items);
    untold->now = untold->before = untold->next = (struct vm_blobs){0};
}
