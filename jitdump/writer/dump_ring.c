/* See dump_ring.h. */
#include "jitdump/writer/dump_ring.h"
#include "jitdump/disk/disk_room.h"
#include "jitdump/format/byte_sink.h"
#include "jitdump/format/dump_clock.h"
#include "jitdump/format/jitdump_format.h"
#include "jitdump/ring/live_code.h"

#include <errno.h>
#include <string.h>

enum {
    ID_AND_SIZE_BYTES = 8,
    FILLERS_BYTES = 2 * JR_PREFIX_BYTES, /* that may follow the last group */
    SEGMENT_ALIGN_BYTES = 4096,
    LEAST_ROOM_DIVISOR = 8, /* of a segment is free at least after it was rewritten */
};

uint64_t jd_ring_begin(struct dump_ring *ring, uint64_t body_bytes, uint64_t first_code_index)
{
    if (body_bytes > JD_RING_MAX_BYTES)
        body_bytes = JD_RING_MAX_BYTES;
    uint64_t segment_bytes = (body_bytes - JITHEADER_BYTES) / 2;
    *ring = (struct dump_ring){.segment_bytes = segment_bytes - segment_bytes % SEGMENT_ALIGN_BYTES,
                               .first_code_index = first_code_index};
    return JITHEADER_BYTES + ring->segment_bytes;
}

/* The record tells a reader of a live process that the file may be rewritten meanwhile. */
int jd_ring_mark(const struct dump_ring *ring, struct dump_body *body)
{
    uint8_t history[JR_CODE_HISTORY_BYTES];
    struct byte_sink sink = byte_sink_over(history, sizeof history);
    if (!ring->segment_bytes)
        return 0;
    sink_u32(&sink, JIT_CODE_HISTORY);
    sink_u32(&sink, sizeof history);
    sink_zeros(&sink, sizeof history - sink.size);
    return jd_body_add(body, history, sizeof history, false);
}

static uint64_t start_of(const struct dump_ring *ring, bool b)
{
    return JITHEADER_BYTES + (b ? ring->segment_bytes : 0);
}

/* ---- Writing a generation ---- */

/* The next generation, in the segment that is hidden. */
struct generation {
    const struct dump_body *body;
    uint64_t start, at; /* `memory` goes to `at` */
    struct mapped_array memory;
    size_t used;
    int error;
};

static int begin_generation(struct generation *generation, const struct dump_ring *ring,
                            const struct dump_body *body)
{
    *generation = (struct generation){.body = body, .start = start_of(ring, !ring->in_b)};
    generation->at = generation->start;
    return mapped_array_reserve(&generation->memory, WINDOW_BYTES) ? -ENOMEM : 0;
}

/* The first eight bytes of A are not written here: they hide the generation, or are hidden. */
static void write_out(struct generation *generation)
{
    const uint8_t *data = generation->memory.data;
    size_t hidden = generation->at == JITHEADER_BYTES ? ID_AND_SIZE_BYTES : 0;
    if (!generation->error && generation->used > hidden)
        generation->error = jd_body_write(generation->body, data + hidden,
                                          generation->used - hidden, generation->at + hidden);
    generation->at += generation->used;
    generation->used = 0;
}

/* Room for the next BYTES, at most WINDOW_BYTES. */
static uint8_t *room_for(struct generation *generation, size_t bytes)
{
    if (bytes > WINDOW_BYTES - generation->used)
        write_out(generation);
    uint8_t *room = (uint8_t *)generation->memory.data + generation->used;
    generation->used += bytes;
    return room;
}

static uint64_t end_of(const struct generation *generation)
{
    return generation->at + generation->used;
}

static void put_prefix(struct generation *generation, uint32_t id, uint64_t bytes, uint64_t time)
{
    struct byte_sink sink = byte_sink_over(room_for(generation, JR_PREFIX_BYTES), JR_PREFIX_BYTES);
    sink_u32(&sink, id);
    sink_u32(&sink, (uint32_t)bytes);
    sink_u64(&sink, time);
}

/* The bytes [FROM, TO) of the file as they are. */
static int copy(struct generation *generation, struct record_window *window, uint64_t from,
                uint64_t to)
{
    while (from < to) {
        size_t bytes = to - from < WINDOW_BYTES ? (size_t)(to - from) : WINDOW_BYTES;
        const uint8_t *data = jd_window_at(window, from, bytes);
        if (!data)
            return window->error;
        memcpy(room_for(generation, bytes), data, bytes);
        from += bytes;
    }
    return generation->error;
}

/* ---- A function that was moved, as if it had been loaded where it is now ---- */

enum { /* offsets in records */
       AT_SIZE = 4,
       AT_TIME = 8,
       AT_PID_AND_TID = 16,
       AT_LOAD_VMA = 24,
       AT_LOAD_ADDR = 32,
       AT_MOVE_OLD_ADDR = 32,
       AT_MOVE_NEW_ADDR = 40,
       AT_MOVE_SIZE = 48,
       AT_MOVE_INDEX = 56,
       AT_INFO_ADDR = 16, /* of DEBUG_INFO and INLINE_INFO */
       AT_DEBUG_COUNT = 24,
};

static uint64_t word_at(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static void add_at(uint8_t *at, uint64_t delta)
{
    uint64_t word = word_at(at) + delta;
    memcpy(at, &word, sizeof word);
}

static void move_lines(uint8_t *record, size_t bytes, uint64_t delta)
{
    uint64_t count = word_at(record + AT_DEBUG_COUNT);
    size_t at = JR_CODE_DEBUG_INFO_BYTES;
    for (uint64_t i = 0; i < count && bytes - at > JR_DEBUG_ENTRY_BYTES; i++) {
        add_at(record + at, delta);
        at += JR_DEBUG_ENTRY_BYTES;
        at += strnlen((const char *)record + at, bytes - at - 1) + 1;
    }
}

static void move_record(uint8_t *record, uint32_t id, size_t bytes, uint64_t delta)
{
    if (id == JIT_CODE_LOAD && bytes >= JR_CODE_LOAD_BYTES) {
        add_at(record + AT_LOAD_VMA, delta);
        add_at(record + AT_LOAD_ADDR, delta);
    } else if (id == JIT_CODE_DEBUG_INFO && bytes >= JR_CODE_DEBUG_INFO_BYTES) {
        add_at(record + AT_INFO_ADDR, delta);
        move_lines(record, bytes, delta);
    } else if (id == JIT_CODE_INLINE_INFO && bytes >= JR_CODE_INLINE_INFO_BYTES) {
        add_at(record + AT_INFO_ADDR, delta);
    }
}

/* Add DELTA to all addresses in the BYTES of GROUP, and give its records TIME.  Returns 0, or
 * -ESTALE if they are no records. */
static int move_group(uint8_t *group, size_t bytes, uint64_t delta, uint64_t time)
{
    for (size_t at = 0; at < bytes;) {
        uint32_t id, total_size;
        if (bytes - at < JR_PREFIX_BYTES)
            return -ESTALE;
        memcpy(&id, group + at, sizeof id);
        memcpy(&total_size, group + at + AT_SIZE, sizeof total_size);
        if (total_size < JR_PREFIX_BYTES || total_size > bytes - at)
            return -ESTALE;
        memcpy(group + at + AT_TIME, &time, sizeof time);
        move_record(group + at, id, total_size, delta);
        at += total_size;
    }
    return 0;
}

/* Have MOVE, a CODE_MOVE, end at NEW_ADDR. */
static void move_further(uint8_t *move, uint64_t new_addr)
{
    memcpy(move + AT_MOVE_NEW_ADDR, &new_addr, sizeof new_addr);
}

/* The CODE_UNLOAD, at UNLOAD, of what MOVE moves away. */
static void put_unload_of_move(uint8_t *unload, const uint8_t *move)
{
    struct byte_sink sink = byte_sink_over(unload, JR_CODE_UNLOAD_BYTES);
    sink_u32(&sink, JIT_CODE_UNLOAD);
    sink_u32(&sink, JR_CODE_UNLOAD_BYTES);
    sink_u64(&sink, word_at(move + AT_TIME));
    sink_u64(&sink, word_at(move + AT_PID_AND_TID));
    sink_u64(&sink, word_at(move + AT_MOVE_OLD_ADDR));
    sink_u64(&sink, word_at(move + AT_MOVE_SIZE));
    sink_u64(&sink, word_at(move + AT_MOVE_INDEX));
}

/* ---- What is kept ---- */

/* The group of a function that was moved, as if it had been loaded where it is now.  A group larger
 * than the window is put together in memory of its own. */
static int put_moved(struct generation *generation, const struct live_code *live,
                     struct record_window *window, const struct live_event *move)
{
    const struct live_event *load = jd_live_event(live, move->load);
    struct mapped_array memory = {NULL, 0};
    if (mapped_array_reserve(&memory, load->bytes))
        return -ENOMEM;
    uint8_t *group = memory.data;
    int error = 0;
    for (uint64_t done = 0; done < load->bytes && !error;) {
        size_t bytes =
            load->bytes - done < WINDOW_BYTES ? load->bytes - (size_t)done : WINDOW_BYTES;
        const uint8_t *data = jd_window_at(window, load->offset + done, bytes);
        error = data ? 0 : window->error;
        if (data)
            memcpy(group + done, data, bytes);
        done += bytes;
    }
    if (!error)
        error = move_group(group, load->bytes, move->start - load->start, move->time);
    for (uint64_t done = 0; done < load->bytes && !error;) {
        size_t bytes =
            load->bytes - done < WINDOW_BYTES ? load->bytes - (size_t)done : WINDOW_BYTES;
        memcpy(room_for(generation, bytes), group + done, bytes);
        done += bytes;
    }
    mapped_array_free(&memory);
    return error ? error : generation->error;
}

/* Put the event that says where a function of the parent's dump is now, or that it is gone.  FIRST
 * is its first event. */
static int put_inherited(struct generation *generation, const struct live_code *live,
                         struct record_window *window, const struct live_event *first)
{
    const struct live_event *last = jd_live_event(live, first->last);
    const uint8_t *record = jd_window_at(window, first->offset, first->bytes);
    if (!record)
        return window->error;
    if (first->id == JIT_CODE_UNLOAD) {
        memcpy(room_for(generation, first->bytes), record, first->bytes);
    } else if (last->id == JIT_CODE_MOVE && last->owns) {
        uint8_t *move = room_for(generation, JR_CODE_MOVE_BYTES);
        memcpy(move, record, JR_CODE_MOVE_BYTES);
        move_further(move, last->start);
    } else {
        put_unload_of_move(room_for(generation, JR_CODE_UNLOAD_BYTES), record);
    }
    return generation->error;
}

static int put_kept(struct generation *generation, const struct live_code *live,
                    struct record_window *window)
{
    int error = 0;
    for (uint32_t i = 0; i < live->count && !error; i++) {
        const struct live_event *event = jd_live_event(live, i);
        if (!event->keep)
            continue;
        if (event->first == i)
            error = put_inherited(generation, live, window, event);
        else if (event->id == JIT_CODE_MOVE && !event->whole)
            error = put_moved(generation, live, window, event);
        else
            error = copy(generation, window, event->offset, event->offset + event->bytes);
    }
    return error;
}

/* ---- Where the history begins ---- */

static uint64_t room_wanted(const struct dump_ring *ring, uint64_t count)
{
    uint64_t least = ring->segment_bytes / LEAST_ROOM_DIVISOR;
    return count + FILLERS_BYTES > least ? count + FILLERS_BYTES : least;
}

static uint64_t history_beside(const struct dump_ring *ring, uint64_t live_bytes, uint64_t wanted)
{
    uint64_t free = ring->segment_bytes > live_bytes ? ring->segment_bytes - live_bytes : 0;
    uint64_t most = free > wanted ? free - wanted : 0;
    return free / 2 < most ? free / 2 : most;
}

/* Read LIVE up to the begin of the history, so that the kept records leave room for WANTED bytes.
 * History is half of the room that the live functions leave: with more, the file would be rewritten
 * more often. */
static int find_history(struct dump_ring *ring, struct live_code *live,
                        struct record_window *window, uint64_t wanted)
{
    enum { TRIES = 3 };
    uint64_t live_bytes = ring->live_bytes;
    for (int i = 0;; i++) {
        uint64_t history = i < TRIES ? history_beside(ring, live_bytes, wanted) : 0;
        uint64_t all = window->end - start_of(ring, ring->in_b);
        int error = jd_live_read(live, window, window->end - (history < all ? history : all));
        if (!error)
            error = jd_live_judge(live);
        if (error)
            return error;
        live_bytes = ring->live_bytes = live->kept_bytes;
        if (JR_CODE_HISTORY_BYTES + live->kept_bytes + (window->end - live->next) + wanted <=
            ring->segment_bytes)
            return 0;
        if (live->next == window->end)
            return -EFBIG;
    }
}

/* The time of the first record that is history; of none, right after the last one. */
static uint64_t time_of_history(const struct live_code *live, struct record_window *window)
{
    uint64_t at = live->next;
    uint32_t id_and_size[2];
    uint64_t time = live->time + 1;
    while (at < window->end) {
        const uint8_t *record = jd_window_at(window, at, JR_PREFIX_BYTES);
        if (!record)
            return 0;
        memcpy(id_and_size, record, sizeof id_and_size);
        memcpy(&time, record + sizeof id_and_size, sizeof time);
        if (id_and_size[0] != JIT_FILLER)
            return time;
        at += id_and_size[1] < JR_PREFIX_BYTES ? JR_PREFIX_BYTES : id_and_size[1];
        time = live->time + 1;
    }
    return time;
}

static int put_history(struct generation *generation, const struct dump_ring *ring,
                       const struct live_code *live, struct record_window *window)
{
    struct byte_sink sink;
    put_prefix(generation, JIT_CODE_HISTORY, JR_CODE_HISTORY_BYTES, time_of_history(live, window));
    enum { REST_BYTES = JR_CODE_HISTORY_BYTES - JR_PREFIX_BYTES };
    sink = byte_sink_over(room_for(generation, REST_BYTES), REST_BYTES);
    sink_u64(&sink, ring->generation + 1);
    sink_u64(&sink, ring->dropped + live->dropped_loads);
    sink_u64(&sink, live->kept_loads);
    return window->error;
}

/* ---- From one generation to the next ---- */

/* Show the groups up to END in the hidden segment, and hide those in the other one.  FIRST has
 * their first id and size. */
static int show(struct dump_ring *ring, struct dump_body *body, uint64_t end,
                const uint32_t first[2])
{
    const uint32_t to_b[2] = {JIT_FILLER, (uint32_t)ring->segment_bytes};
    int error = jd_body_write(body, ring->in_b ? first : to_b, ID_AND_SIZE_BYTES, JITHEADER_BYTES);
    if (error)
        return error;
    ring->in_b = !ring->in_b;
    body->end = end;
    return 0;
}

/* Close the new generation with its FILLER, and write the rest of it.  Returns the end of its
 * groups. */
static uint64_t end_groups(struct generation *generation)
{
    if (jd_body_is_across_pages(end_of(generation)))
        put_prefix(generation, JIT_FILLER, JR_PREFIX_BYTES, 0);
    uint64_t end = end_of(generation);
    put_prefix(generation, JIT_FILLER, generation->body->filler_end - end, 0);
    write_out(generation);
    return end;
}

/* The second segment is there once it is used. */
static int make_b(const struct dump_ring *ring, struct dump_body *body)
{
    uint64_t end = start_of(ring, true) + ring->segment_bytes;
    if (body->filler_end >= end)
        return 0;
    return end > jd_file_size_limit() ? -EFBIG : jd_body_reach(body, end);
}

static int write_generation(struct dump_ring *ring, struct dump_body *body, struct live_code *live,
                            struct record_window *window)
{
    const uint32_t first[2] = {JIT_CODE_HISTORY, JR_CODE_HISTORY_BYTES};
    struct generation generation;
    uint64_t end = 0;
    int error = begin_generation(&generation, ring, body);
    if (!error)
        error = put_history(&generation, ring, live, window);
    if (!error)
        error = put_kept(&generation, live, window);
    if (!error)
        error = copy(&generation, window, live->next, window->end);
    if (!error)
        end = end_groups(&generation);
    if (!error)
        error = generation.error;
    mapped_array_free(&generation.memory);
    if (!error)
        error = show(ring, body, end, first);
    if (!error) {
        ring->generation++;
        ring->dropped += live->dropped_loads;
    }
    return error;
}

/* Rewrite, with the TAIL_BYTES of groups at TAIL as the newest, so that there is room for WANTED
 * bytes. */
static int rewrite(struct dump_ring *ring, struct dump_body *body, const void *tail,
                   size_t tail_bytes, uint64_t wanted)
{
    struct live_code live;
    struct record_window window;
    int error = make_b(ring, body);
    if (!error && body->end + tail_bytes > UINT32_MAX)
        error = -EFBIG; /* what live_code can count */
    if (error)
        return error;
    jd_live_begin(&live, start_of(ring, ring->in_b), ring->first_code_index);
    error = jd_window_begin(&window, &body->fd, body->end, tail, tail_bytes);
    if (!error)
        error = find_history(ring, &live, &window, wanted);
    if (!error)
        error = write_generation(ring, body, &live, &window);
    jd_live_end(&live);
    jd_window_end(&window);
    return error;
}

/* Not a negative errno: nothing was tried, so nobody knows whether there is room. */
enum { TOO_SOON = 1 };

/* The whole ring is read for this: what may have to be repeated soon takes a tenth of the time at
 * most.  TOO_SOON before *AGAIN_NS, which is set.  What takes longer than the bytes explain was
 * waiting for a processor: on a busy machine functions would be lost for seconds. */
static int rewrite_seldom(struct dump_ring *ring, struct dump_body *body, const void *tail,
                          size_t tail_bytes, uint64_t wanted, uint64_t *again_ns)
{
    enum { PAUSE_FACTOR = 10, MOST_NS_PER_BYTE = 10 };
    uint64_t start_ns = jd_clock_now(false);
    if (start_ns < *again_ns)
        return TOO_SOON;
    int error = rewrite(ring, body, tail, tail_bytes, wanted);
    uint64_t end_ns = jd_clock_now(false), took_ns = end_ns - start_ns;
    if (took_ns > MOST_NS_PER_BYTE * ring->segment_bytes)
        took_ns = MOST_NS_PER_BYTE * ring->segment_bytes;
    *again_ns = end_ns + PAUSE_FACTOR * took_ns;
    return error;
}

static int make_room(struct dump_ring *ring, struct dump_body *body, size_t count)
{
    uint64_t stop = start_of(ring, ring->in_b) + ring->segment_bytes;
    int error = 0;
    if (body->end + count + FILLERS_BYTES > stop) {
        if (ring->refused_bytes && count >= ring->refused_bytes)
            return -EFBIG;
        error = rewrite_seldom(ring, body, NULL, 0, room_wanted(ring, count), &ring->full_until_ns);
        if (error == TOO_SOON)
            return -EFBIG;
        if (!error)
            ring->full_until_ns = 0;
    }
    if (error == -EFBIG)
        ring->refused_bytes = count;
    else if (!error)
        ring->refused_bytes = ring->refused_tail_bytes = 0;
    return error;
}

int jd_ring_add(struct dump_ring *ring, struct dump_body *body, const void *groups, size_t count,
                bool last)
{
    int error = ring->segment_bytes ? make_room(ring, body, count) : 0;
    return error ? error : jd_body_add(body, groups, count, last);
}

/* Groups that were refused fit only after more unloads. */
int jd_ring_add_with_effect(struct dump_ring *ring, struct dump_body *body, const void *groups,
                            size_t count)
{
    if (!ring->segment_bytes || count == ring->refused_tail_bytes)
        return -EFBIG;
    int error = rewrite_seldom(ring, body, groups, count, room_wanted(ring, 0), &ring->again_ns);
    if (error == TOO_SOON)
        return -EFBIG;
    if (error == -EFBIG)
        ring->refused_tail_bytes = count;
    else if (!error)
        ring->refused_bytes = ring->refused_tail_bytes = ring->full_until_ns = 0;
    return error;
}

int jd_ring_settle(struct dump_ring *ring, struct dump_body *body)
{
    struct generation generation;
    struct record_window window;
    uint32_t first[2];
    uint64_t end = 0;
    if (!ring->in_b)
        return 0;
    int error = jd_window_begin(&window, &body->fd, body->end, NULL, 0);
    if (!error)
        error = begin_generation(&generation, ring, body);
    if (!error) {
        const uint8_t *start = jd_window_at(&window, start_of(ring, true), sizeof first);
        if (start)
            memcpy(first, start, sizeof first);
        error = copy(&generation, &window, start_of(ring, true), body->end);
        if (!error)
            end = end_groups(&generation);
        if (!error)
            error = generation.error;
        mapped_array_free(&generation.memory);
    }
    jd_window_end(&window);
    return error ? error : show(ring, body, end, first);
}
