/* See image_draft.h. */
#include "injector/inject/image/image_draft.h"

#include "injector/arrays/number_sort.h"
#include "injector/inject/image/dso_dir.h"
#include "injector/inject/image/text_stream.h"
#include "injector/inject/layout/neighbourhood.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- What is in it ---- */

static const struct jit_function *piece_at(const struct image_draft *draft, size_t i)
{
    return &draft->process->log.functions[draft->order ? draft->order[i] : i];
}

static uint64_t code_bytes(const struct jit_function *function)
{
    return function->code ? function->size : 0;
}

/* How many of the pieces from FIRST on make a neighbourhood; *BYTES receives what they have of
 * code, or 0 if one of them shares addresses with another, or with those in front of them, which
 * reach up to *BEFORE; moved on. */
static size_t measure(const struct image_draft *draft, size_t first, uint64_t *before,
                      uint64_t *bytes)
{
    struct neighbourhood those = {0};
    *bytes = 0;
    for (size_t i = first; i < draft->piece_count; i++) {
        const struct jit_function *piece = piece_at(draft, i);
        if (!neighbourhood_take(&those, piece->addr, piece->addr + piece->size))
            break;
        *bytes += code_bytes(piece);
    }
    if (those.shared || those.start < *before)
        *bytes = 0;
    *before = those.reach > *before ? those.reach : *before;
    return those.count;
}

/* Whether HASH is none of those in the SIZE SLOTS, 0 being a free one; it is one of them then.
 * They have half of it each, the other half says where it stands: that two names are taken for one
 * costs no more than the draft. */
static bool is_new(uint32_t *slots, size_t size, uint64_t hash)
{
    uint32_t half = (uint32_t)(hash >> 32) | 1;
    size_t slot = hash & (size - 1);
    for (; slots[slot]; slot = (slot + 1) & (size - 1))
        if (slots[slot] == half)
            return false;
    slots[slot] = half;
    return true;
}

/* Whether an image by name has what is in the draft as memory has it: no two functions have one
 * name, and nothing lies between them. */
static bool stands_so_by_name(const struct image_draft *draft)
{
    size_t size = 16;
    while (size < 2 * draft->count)
        size *= 2;
    uint32_t *slots = calloc(size, sizeof *slots);
    bool result = slots;
    const struct jit_function *before = NULL;
    for (size_t i = 0; i < draft->count && result; i++) {
        const struct jit_function *piece = piece_at(draft, draft->first + i);
        result = is_new(slots, size, piece->name_hash) &&
                 (!before || piece->addr - (before->addr + before->size) <= CODE_GAP_BYTES);
        before = piece;
    }
    free(slots);
    return result;
}

/* The neighbourhood with the most code.  Returns -1 if none is large. */
static int choose(struct image_draft *draft)
{
    uint64_t most = IMAGE_LARGE_BYTES - 1, before = 0, bytes;
    for (size_t at = 0, taken; at < draft->piece_count; at += taken) {
        taken = measure(draft, at, &before, &bytes);
        if (bytes <= most || taken == 1) /* one alone has another base */
            continue;
        most = bytes;
        draft->first = at;
        draft->count = taken;
    }
    if (draft->count == 0)
        return -1;
    const struct jit_function *first = piece_at(draft, draft->first);
    const struct jit_function *last = piece_at(draft, draft->first + draft->count - 1);
    draft->base = draft->by_name ? first->addr - IMAGE_PAGE_BYTES : image_plan_base(first->addr);
    draft->text_start = first->addr - draft->base;
    draft->text_end = last->addr + last->size - draft->base;
    return draft->by_name && !stands_so_by_name(draft) ? -1 : 0;
}

/* Nothing is shown of what was done before anybody waited for it, but it counts. */
static void show_progress(struct image_draft *draft, size_t *shown, size_t done)
{
    struct progress *progress = atomic_load_explicit(&draft->progress, memory_order_acquire);
    if (!progress)
        return;
    for (; *shown < done; ++*shown)
        progress_step(progress, 1, code_bytes(piece_at(draft, draft->first + *shown)));
}

static int put_code(struct image_draft *draft, struct text_stream *stream)
{
    size_t shown = 0;
    for (size_t i = 0; i < draft->count; i++) {
        const struct jit_function *piece = piece_at(draft, draft->first + i);
        show_progress(draft, &shown, i);
        if (atomic_load_explicit(&draft->unwanted, memory_order_relaxed))
            return -1;
        if (piece->code &&
            text_stream_put(stream, piece->addr - draft->base, piece->code, (size_t)piece->size))
            return -1;
    }
    return 0;
}

static int write_code(struct image_draft *draft)
{
    struct text_stream stream;
    if (text_stream_begin(&stream, draft->fd))
        return -1;
    return text_stream_end(&stream, put_code(draft, &stream), &draft->digest);
}

/* Whether the functions of LOG stand in order of address, and each has some. */
static bool is_in_order(const struct code_log *log)
{
    uint64_t before = 0;
    for (size_t i = 0; i < log->function_count; i++) {
        if (log->functions[i].addr < before || log->functions[i].size == 0)
            return false;
        before = log->functions[i].addr;
    }
    return true;
}

/* There may be millions: what is needed longer is in short. */
static int put_in_order(struct image_draft *draft)
{
    struct numbered {
        uint64_t addr; /* first, to be sorted by */
        uint32_t function;
    };
    const struct code_log *log = &draft->process->log;
    draft->piece_count = log->function_count;
    if (is_in_order(log))
        return 0;
    struct numbered *pieces = malloc((log->function_count + 1) * sizeof *pieces);
    draft->order = malloc((log->function_count + 1) * sizeof *draft->order);
    draft->piece_count = 0;
    for (size_t i = 0; pieces && i < log->function_count; i++)
        if (log->functions[i].size)
            pieces[draft->piece_count++] = (struct numbered){log->functions[i].addr, (uint32_t)i};
    if (pieces)
        number_sort(pieces, draft->piece_count, sizeof *pieces);
    for (size_t i = 0; pieces && draft->order && i < draft->piece_count; i++)
        draft->order[i] = pieces[i].function;
    free(pieces);
    return pieces && draft->order ? 0 : -1;
}

static void *write_draft(void *context)
{
    struct image_draft *draft = context;
    if (put_in_order(draft) || choose(draft) || write_code(draft))
        atomic_store_explicit(&draft->failed, true, memory_order_release);
    return NULL;
}

/* ---- Whose it is ---- */

static const struct jit_process *largest(const struct jit_processes *processes)
{
    const struct jit_process *found = NULL;
    for (size_t i = 0; i < processes->count; i++)
        if (!found || processes->items[i].log.function_count > found->log.function_count)
            found = &processes->items[i];
    return found;
}

static bool is_worth_a_thread(const struct code_log *log)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < log->function_count; i++)
        bytes += code_bytes(&log->functions[i]);
    return bytes >= IMAGE_LARGE_BYTES;
}

static int create(struct image_draft *draft, int dir_fd)
{
    draft->dir_fd = dir_fd;
    snprintf(draft->name, sizeof draft->name, "jit-%" PRIu32 "-0-draft.so", draft->process->pid);
    draft->fd = dso_dir_create(dir_fd, draft->name);
    return draft->fd < 0 ? -1 : 0;
}

static void discard(struct image_draft *draft)
{
    close(draft->fd);
    unlinkat(draft->dir_fd, draft->name, 0);
    draft->process = NULL;
}

void image_draft_begin(struct image_draft *draft, const struct jit_processes *processes, int dir_fd,
                       bool by_name)
{
    const struct jit_process *process = largest(processes);
    *draft = (struct image_draft){.process = process, .by_name = by_name};
    if (process && process->log.move_count == 0 && process->log.unload_count == 0 &&
        side_thread_pays() && is_worth_a_thread(&process->log) && create(draft, dir_fd) == 0) {
        if (side_thread_begin(&draft->thread, write_draft, draft))
            return;
        discard(draft);
    }
    draft->process = NULL;
}

/* ---- What becomes of it ---- */

/* PROGRESS is the thread's until it ends. */
static void wait_for(struct image_draft *draft, struct progress *progress)
{
    atomic_store_explicit(&draft->progress, progress, memory_order_release);
    side_thread_join(&draft->thread);
    free(draft->order);
    draft->order = NULL;
}

/* Then no other image can be it: its space is better used for the images. */
static bool shares_addresses(const struct image_draft *draft, const struct jit_image *image)
{
    return image->base + image->text_start < draft->base + draft->text_end &&
           draft->base + draft->text_start < image->base + image->text_end;
}

static bool has_failed(const struct image_draft *draft)
{
    return atomic_load_explicit(&draft->failed, memory_order_acquire);
}

bool image_draft_is_of(struct image_draft *draft, const struct jit_process *process)
{
    if (draft->process != process)
        return false;
    if (has_failed(draft))
        image_draft_end(draft);
    return draft->process == process;
}

/* Whether IMAGE has the draft's functions where it has them. */
static bool is_same_by_name(const struct image_draft *draft, const struct jit_image *image)
{
    const struct jit_function *functions = draft->process->log.functions;
    if (image->body_count != draft->count || image->text_end != draft->text_end)
        return false;
    for (size_t i = 0; i < image->body_count; i++) {
        const struct image_body *body = &image->bodies[i];
        if (body->function != &functions[body->number] ||
            body->offset != body->function->addr - draft->base)
            return false;
    }
    return true;
}

/* Whether IMAGE is at the draft's place.  No function has come or gone or moved since, so as many
 * at the same place are the same. */
static bool is_same(const struct image_draft *draft, const struct jit_image *image)
{
    if (draft->by_name)
        return is_same_by_name(draft, image);
    return image->base == draft->base && image->text_start == draft->text_start &&
           image->text_end == draft->text_end && image->body_count == draft->count;
}

int image_draft_take(struct image_draft *draft, const struct jit_image *image,
                     char name[IMAGE_TEXT_NAME_BYTES], struct progress *progress,
                     XXH128_hash_t *digest)
{
    wait_for(draft, progress);
    if (has_failed(draft)) {
        discard(draft);
        return -1;
    }
    if (!is_same(draft, image)) {
        if (draft->by_name || shares_addresses(draft, image))
            discard(draft);
        return -1;
    }
    memcpy(name, draft->name, sizeof draft->name);
    *digest = draft->digest;
    draft->process = NULL;
    return draft->fd;
}

void image_draft_end(struct image_draft *draft)
{
    if (!draft->process)
        return;
    atomic_store(&draft->unwanted, true);
    wait_for(draft, NULL);
    discard(draft);
}
