/* See live_code.h. */
#include "jitdump/ring/live_code.h"
#include "jitdump/format/byte_cursor.h"
#include "jitdump/format/jitdump_format.h"

#include <errno.h>
#include <string.h>

void jd_live_begin(struct live_code *live, uint64_t offset, uint64_t first_code_index)
{
    *live = (struct live_code){.first_code_index = first_code_index, .next = offset};
}

void jd_live_end(struct live_code *live)
{
    mapped_array_free(&live->events);
    mapped_array_free(&live->indices);
    jd_paint_free(&live->paint);
}

/* ---- Reading ---- */

enum { FIXED_BYTES = JR_CODE_MOVE_BYTES }; /* the longest record that is read here */

struct prefix {
    uint32_t id, total_size;
    uint64_t time;
};

/* An interpreted function resides in the memory of what stands for it; the frame of an interpreter
 * nowhere. */
static void read_interpreted(struct byte_cursor *cursor, struct live_event *event)
{
    event->start = event->end = cursor_u64(cursor);
    if (event->id == JIT_INTERPRETED_FUNCTION)
        event->end += cursor_u32(cursor);
    if (event->end < event->start)
        event->end = UINT64_MAX;
}

/* The fields of an event's record after its prefix: pid and tid are not looked at. */
static void read_fields(struct byte_cursor *cursor, struct live_event *event)
{
    uint64_t size;
    if (event->id == JIT_INTERPRETER_FRAME || event->id == JIT_INTERPRETED_FUNCTION) {
        read_interpreted(cursor, event);
        return;
    }
    cursor_skip(cursor, 8);
    if (event->id != JIT_CODE_UNLOAD)
        cursor_skip(cursor, 8); /* vma */
    if (event->id == JIT_CODE_MOVE)
        event->old_addr = cursor_u64(cursor);
    event->start = cursor_u64(cursor);
    size = cursor_u64(cursor);
    event->code_index = cursor_u64(cursor);
    event->end = size > UINT64_MAX - event->start ? UINT64_MAX : event->start + size;
}

static int add_event(struct live_code *live, const uint8_t *record, const struct prefix *prefix)
{
    uint64_t group = live->group ? live->group : live->next;
    size_t bytes = prefix->total_size < FIXED_BYTES ? prefix->total_size : FIXED_BYTES;
    struct byte_cursor cursor =
        byte_cursor_over(record, bytes, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    if (mapped_array_reserve(&live->events, (live->count + 1) * sizeof(struct live_event)))
        return -ENOMEM;
    struct live_event *event = jd_live_event(live, live->count++);
    *event = (struct live_event){.id = prefix->id,
                                 .time = prefix->time,
                                 .offset = (uint32_t)group,
                                 .bytes = (uint32_t)(live->next + prefix->total_size - group),
                                 .piece = live->piece,
                                 .pieces = live->pieces};
    cursor_skip(&cursor, JR_PREFIX_BYTES);
    read_fields(&cursor, event);
    return cursor.failed ? -ESTALE : 0;
}

static void end_group(struct live_code *live)
{
    live->group = 0;
    live->piece = live->pieces = 0;
}

static int take_record(struct live_code *live, const uint8_t *record, const struct prefix *prefix)
{
    int error = 0;
    switch (prefix->id) {
    case JIT_CODE_LOAD:
    case JIT_CODE_MOVE:
    case JIT_CODE_UNLOAD:
    case JIT_INTERPRETER_FRAME:
    case JIT_INTERPRETED_FUNCTION:
        error = add_event(live, record, prefix);
        end_group(live);
        break;
    case JIT_CODE_PIECE:
        if (prefix->total_size < JR_CODE_PIECE_BYTES)
            return -ESTALE;
        memcpy(&live->piece, record + JR_CODE_PIECE_NUMBER, sizeof live->piece);
        memcpy(&live->pieces, record + JR_CODE_PIECE_NUMBER + 4, sizeof live->pieces);
        live->group = live->next;
        break;
    case JIT_CODE_UNWINDING_INFO:
    case JIT_CODE_INLINE_INFO:
    case JIT_CODE_DEBUG_INFO:
        live->group = live->group ? live->group : live->next;
        break;
    default:
        end_group(live);
        return 0; /* nor is its time one */
    }
    live->time = prefix->time;
    return error;
}

/* Whether it is another piece of the function before, which is of one group with it. */
static bool goes_on(const uint8_t *record, const struct prefix *prefix)
{
    uint32_t number = 0;
    if (prefix->id == JIT_CODE_PIECE && prefix->total_size >= JR_CODE_PIECE_BYTES)
        memcpy(&number, record + JR_CODE_PIECE_NUMBER, sizeof number);
    return number > 0;
}

/* This process wrote these records, unless somebody else wrote to the file. */
int jd_live_read(struct live_code *live, struct record_window *window, uint64_t until)
{
    struct prefix prefix;
    while (live->next < window->end) {
        uint64_t left = window->end - live->next;
        size_t bytes = left < FIXED_BYTES ? (size_t)left : FIXED_BYTES;
        const uint8_t *record = jd_window_at(window, live->next, bytes);
        if (!record)
            return window->error;
        if (bytes < sizeof prefix)
            return -ESTALE;
        memcpy(&prefix, record, sizeof prefix);
        if (prefix.total_size < JR_PREFIX_BYTES || prefix.total_size > left)
            return -ESTALE;
        if (live->next >= until && !live->group && !goes_on(record, &prefix))
            return 0;
        int error = take_record(live, record, &prefix);
        if (error)
            return error;
        live->next += prefix.total_size;
    }
    return 0;
}

/* ---- Which event is of which function ---- */

static bool has_code_index(const struct live_event *event)
{
    return event->id != JIT_INTERPRETER_FRAME && event->id != JIT_INTERPRETED_FUNCTION;
}

/* The slot of CODE_INDEX: of its last event, or an empty one. */
static uint32_t *slot_of(const struct live_code *live, uint64_t code_index)
{
    uint32_t *table = live->indices.data;
    uint32_t at = (uint32_t)((code_index * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (live->slots - 1);
    while (table[at] && jd_live_event(live, table[at] - 1)->code_index != code_index)
        at = (at + 1) & (live->slots - 1);
    return &table[at];
}

/* The pieces of a function stand side by side, in order of their numbers; those without code have
 * no LOAD.  From the piece NUMBER to the first, and to behind the last. */
static bool is_piece_of(const struct live_code *live, uint32_t number, uint64_t first_index,
                        uint32_t pieces)
{
    const struct live_event *event = jd_live_event(live, number);
    return event->pieces == pieces && event->code_index - first_index < pieces;
}

static struct paint_cells pieces_of(const struct live_code *live, uint32_t number)
{
    const struct live_event *event = jd_live_event(live, number);
    uint64_t first_index = event->code_index - event->piece;
    struct paint_cells range = {number, number + 1};
    while (range.first > 0 && is_piece_of(live, range.first - 1, first_index, event->pieces))
        range.first--;
    while (range.end < live->count && is_piece_of(live, range.end, first_index, event->pieces))
        range.end++;
    return range;
}

/* The unload of piece 0 is of the whole function, wherever its pieces are. */
static void end_pieces(struct live_code *live, uint32_t load)
{
    const struct live_event *event = jd_live_event(live, load);
    if (!event->pieces || event->piece)
        return;
    const struct paint_cells range = pieces_of(live, load);
    for (uint32_t i = range.first; i < range.end; i++) {
        uint32_t last = *slot_of(live, jd_live_event(live, i)->code_index);
        if (last)
            jd_live_event(live, last - 1)->over = true;
    }
}

/* BEFORE_NUMBER is the last event before NUMBER of the same function, if there is one. */
static void link_event(struct live_code *live, uint32_t number, uint32_t before_number)
{
    struct live_event *event = jd_live_event(live, number);
    event->over = event->owns = event->keep = event->whole = false;
    event->load = event->ends = event->first = event->last = LIVE_NONE;
    if (event->id == JIT_CODE_LOAD || !has_code_index(event))
        return;
    if (before_number != LIVE_NONE) {
        struct live_event *before = jd_live_event(live, before_number);
        before->over = true;
        event->ends = before_number;
        event->first = before->first;
        event->load = before->id == JIT_CODE_LOAD ? before_number : before->load;
    } else if (event->code_index < live->first_code_index) {
        event->first = number;
    }
    if (event->first != LIVE_NONE)
        jd_live_event(live, event->first)->last = number;
    if (event->id == JIT_CODE_UNLOAD && event->load != LIVE_NONE)
        end_pieces(live, event->load);
}

static int link_events(struct live_code *live)
{
    live->slots = 16;
    while (live->slots < 2 * live->count)
        live->slots *= 2;
    mapped_array_free(&live->indices);
    if (mapped_array_reserve(&live->indices, live->slots * sizeof(uint32_t)))
        return -ENOMEM;
    for (uint32_t i = 0; i < live->count; i++) {
        if (!has_code_index(jd_live_event(live, i))) {
            link_event(live, i, LIVE_NONE);
            continue;
        }
        uint32_t *slot = slot_of(live, jd_live_event(live, i)->code_index);
        link_event(live, i, *slot ? *slot - 1 : LIVE_NONE);
        *slot = i + 1;
    }
    return 0;
}

/* ---- Who owns what ---- */

static int paint_all(struct live_code *live)
{
    jd_paint_free(&live->paint);
    if (jd_paint_begin(&live->paint, live->count))
        return -ENOMEM;
    for (uint32_t i = 0; i < live->count; i++) {
        const struct live_event *event = jd_live_event(live, i);
        bool resides = event->id != JIT_CODE_UNLOAD;
        jd_paint_bounds(&live->paint, i, event->start, resides ? event->end : event->start);
    }
    jd_paint_sort(&live->paint, live->count);
    for (uint32_t i = live->count; i-- > 0;)
        jd_live_event(live, i)->owns = jd_paint_range(&live->paint, i);
    return 0;
}

/* The LOAD of the function of event NUMBER, or LIVE_NONE. */
static uint32_t load_of(const struct live_code *live, uint32_t number)
{
    const struct live_event *event = jd_live_event(live, number);
    return event->id == JIT_CODE_LOAD ? number : event->load;
}

/* Keep all events of the function of LOAD, with all its pieces: a reader needs all or none. */
static void make_whole(struct live_code *live, uint32_t load)
{
    struct paint_cells range = {load, load + 1};
    if (load == LIVE_NONE || jd_live_event(live, load)->whole)
        return;
    if (jd_live_event(live, load)->pieces)
        range = pieces_of(live, load);
    for (uint32_t i = range.first; i < range.end; i++)
        jd_live_event(live, i)->whole = true;
    live->more_is_whole = true;
}

/* The functions that are gone from where the older residence NUMBER would be again without them. */
static void keep_covers(struct live_code *live, uint32_t number)
{
    const struct paint_cells cells = jd_paint_cells(&live->paint, number);
    for (uint32_t cell = cells.first; cell < cells.end; cell++) {
        uint32_t owner = jd_paint_owner(&live->paint, cell);
        if (owner != number && jd_live_event(live, owner)->over)
            make_whole(live, load_of(live, owner));
    }
}

/* Two interpreted functions are never in one place. */
static bool owns_all(const struct live_code *live, uint32_t number)
{
    const struct paint_cells cells = jd_paint_cells(&live->paint, number);
    for (uint32_t cell = cells.first; cell < cells.end; cell++)
        if (jd_paint_owner(&live->paint, cell) != number)
            return false;
    return true;
}

static bool is_alive(const struct live_code *live, uint32_t number)
{
    const struct live_event *event = jd_live_event(live, number);
    if (!has_code_index(event))
        return owns_all(live, number);
    return event->owns && !event->over &&
           (event->id == JIT_CODE_LOAD || (event->id == JIT_CODE_MOVE && event->load != LIVE_NONE));
}

/* For a function that is kept whole although others took all its addresses, and went. */
static bool would_be_again(const struct live_code *live, uint32_t number)
{
    const struct live_event *event = jd_live_event(live, number);
    uint32_t load = event->id == JIT_CODE_UNLOAD || event->over ? LIVE_NONE : load_of(live, number);
    return load != LIVE_NONE && jd_live_event(live, load)->whole;
}

static void keep_whole(struct live_code *live)
{
    for (uint32_t i = 0; i < live->count; i++) {
        struct live_event *event = jd_live_event(live, i);
        uint32_t load = load_of(live, i);
        event->whole = load != LIVE_NONE && jd_live_event(live, load)->whole;
        event->keep |= event->whole || event->first == i;
    }
}

static void count_kept(struct live_code *live)
{
    live->kept_bytes = live->kept_loads = live->dropped_loads = 0;
    for (uint32_t i = 0; i < live->count; i++) {
        const struct live_event *event = jd_live_event(live, i);
        bool as_load = event->id == JIT_CODE_MOVE && event->load != LIVE_NONE && !event->whole;
        if (event->keep)
            live->kept_bytes += as_load ? jd_live_event(live, event->load)->bytes : event->bytes;
        live->kept_loads += event->keep && (as_load || event->id == JIT_CODE_LOAD);
        live->dropped_loads += event->id == JIT_CODE_LOAD;
    }
    live->dropped_loads -= live->kept_loads;
}

static void keep_pieces(struct live_code *live)
{
    for (uint32_t i = 0; i < live->count; i++) {
        uint32_t load = load_of(live, i);
        if (is_alive(live, i) && has_code_index(jd_live_event(live, i)) &&
            jd_live_event(live, load)->pieces)
            make_whole(live, load);
    }
}

/* Functions that are kept whole may need newer ones, whose pieces and moves may be anywhere. */
static void keep_alive(struct live_code *live)
{
    do {
        live->more_is_whole = false;
        for (uint32_t i = 0; i < live->count; i++) {
            struct live_event *event = jd_live_event(live, i);
            event->keep = is_alive(live, i);
            if (event->keep || would_be_again(live, i))
                keep_covers(live, i);
        }
    } while (live->more_is_whole);
}

int jd_live_judge(struct live_code *live)
{
    int error = link_events(live);
    if (!error)
        error = paint_all(live);
    if (error)
        return error;
    keep_pieces(live);
    keep_alive(live);
    keep_whole(live);
    count_kept(live);
    return 0;
}
