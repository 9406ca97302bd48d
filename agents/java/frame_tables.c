/* See frame_tables.h. */
#include "agents/java/frame_tables.h"

#include "agents/java/array_room.h"
#include "jitdump/instructions/x86_64_decoder.h"

#include <stdlib.h>
#include <string.h>

enum {
    PROLOGUE_MOST = 16,
    EPILOGUE_MOST = 8,
    STUB_MOST = 6,
    DEEP_TARGETS = 16,
    VZEROUPPER_BYTES = 3
};
enum { OFFSET_IN_ENTRY = 8, OFFSET_PUSHED = 16 };

/* As instructions number them. */
enum { RSP = 4, RBP = 5 };

/* From offset AT on. */
struct row {
    uint64_t at;
    uint64_t cfa_offset; /* from rsp, or rbp */
    bool by_rbp;
    bool saved; /* rbp is at CFA - 16 */
    size_t number;
};

struct rows {
    struct row *items; /* owned */
    size_t count, capacity;
    struct frame_edges *edges; /* NULL: not wanted */
    bool no_memory;
};

static void add(struct rows *rows, uint64_t at, uint64_t cfa_offset, bool saved)
{
    struct row *items =
        array_with_room(rows->items, rows->count, 1, &rows->capacity, sizeof *items);
    rows->no_memory = rows->no_memory || !items;
    if (!items)
        return;
    rows->items = items;
    items[rows->count] =
        (struct row){.at = at, .cfa_offset = cfa_offset, .saved = saved, .number = rows->count};
    rows->count++;
}

static void add_body(struct rows *rows, uint64_t at, const struct compiled_frame *frame)
{
    add(rows, at, frame->keeps_rbp ? OFFSET_PUSHED : frame->frame_bytes, true);
    if (!rows->no_memory)
        rows->items[rows->count - 1].by_rbp = frame->keeps_rbp;
}

static void add_edge(struct rows *rows, uint64_t from, uint64_t to)
{
    struct frame_edges *edges = rows->edges;
    if (!edges || from >= to)
        return;
    struct frame_edge *items =
        array_with_room(edges->items, edges->count, 1, &edges->capacity, sizeof *items);
    rows->no_memory = rows->no_memory || !items;
    if (!items)
        return;
    edges->items = items;
    items[edges->count++] = (struct frame_edge){from, to};
}

/* ---- Instructions ---- */

static bool decode(const struct compiled_frame *frame, uint64_t at, struct x86_instruction *one)
{
    return at < frame->size && jd_x86_decode(frame->code + at, (size_t)(frame->size - at), one);
}

static bool is_plain(const struct x86_instruction *one, uint8_t opcode)
{
    return one->encoding == X86_LEGACY && one->map == 0 && one->opcode == opcode;
}

static bool is_push_rbp(const struct x86_instruction *one)
{
    return is_plain(one, 0x55) && !one->has_rex;
}

static bool is_pop_rbp(const struct x86_instruction *one)
{
    return is_plain(one, 0x5d) && !one->has_rex;
}

static bool is_ret(const struct x86_instruction *one)
{
    return is_plain(one, 0xc3) || is_plain(one, 0xc2);
}

static bool is_jump(const struct x86_instruction *one)
{
    return is_plain(one, 0xe9) || is_plain(one, 0xeb) ||
           (is_plain(one, 0xff) && (one->reg & 7) == 4);
}

/* Whether ONE adds (WHICH 0), subtracts (5) or compares (7) a number. */
static bool is_by_number(const struct x86_instruction *one, uint8_t which)
{
    return (is_plain(one, 0x81) || is_plain(one, 0x83)) && (one->reg & 7) == which;
}

/* Whether ONE does so with the register NUMBER, all of it. */
static bool is_register_by(const struct x86_instruction *one, uint8_t number, uint8_t which)
{
    return is_by_number(one, which) && one->wide && one->mode == 3 && one->rm == number;
}

static bool is_rsp_by(const struct x86_instruction *one, uint8_t which, int64_t *bytes)
{
    *bytes = one->immediate;
    return is_register_by(one, RSP, which);
}

static bool is_rbp_stored(const struct x86_instruction *one, int64_t at_rsp)
{
    return is_plain(one, 0x89) && one->wide && one->mode != 3 && one->reg == RBP &&
           one->base == RSP && one->index == X86_NO_REGISTER && one->displacement == at_rsp;
}

static bool is_rbp_set(const struct x86_instruction *one)
{
    return (is_plain(one, 0x8b) && one->mode == 3 && one->reg == RBP && one->rm == RSP) ||
           (is_plain(one, 0x89) && one->mode == 3 && one->reg == RSP && one->rm == RBP);
}

/* ---- Prologue ---- */

/* Behind the jump at AT, which HotSpot puts over the first instruction of a method that may be
 * entered no more: that was a stack bang, C2's sub, or a nop.  AT: there is no such jump. */
static uint64_t behind_not_entrant(const struct compiled_frame *frame, uint64_t at, bool *small)
{
    enum { NOP_BYTES = 5, OTHER_BYTES = 7 };
    struct x86_instruction one;
    *small = false;
    if (!decode(frame, at, &one) || !is_plain(&one, 0xe9))
        return at;
    if (decode(frame, at + OTHER_BYTES, &one)) {
        *small = is_rbp_stored(&one, (int64_t)frame->frame_bytes - OFFSET_PUSHED);
        if (*small || is_push_rbp(&one))
            return at + OTHER_BYTES;
    }
    return at + NOP_BYTES;
}

/* Read the prologue at AT.  False: there is none for this frame. */
static bool read_prologue(struct rows *rows, const struct compiled_frame *frame, uint64_t at,
                          uint64_t *body)
{
    struct x86_instruction one;
    const int64_t in_small = (int64_t)frame->frame_bytes - OFFSET_IN_ENTRY,
                  behind_push = (int64_t)frame->frame_bytes - OFFSET_PUSHED;
    bool pushed = false, small;
    int64_t bytes;
    add(rows, at, OFFSET_IN_ENTRY, false);
    at = behind_not_entrant(frame, at, &small);
    if (small)
        add(rows, at, frame->frame_bytes, false);
    for (size_t i = 0; i < PROLOGUE_MOST && decode(frame, at, &one); i++) {
        *body = at += one.length;
        if (!pushed && !small && is_push_rbp(&one)) {
            pushed = true;
            add(rows, at, OFFSET_PUSHED, true);
            if (behind_push == 0 && !frame->keeps_rbp)
                return true;
        } else if (frame->keeps_rbp && pushed && is_rbp_set(&one)) {
            add_body(rows, at, frame);
            return true;
        } else if (is_rsp_by(&one, 5, &bytes)) {
            small = !pushed && bytes == in_small;
            if (!small && !(pushed && bytes == behind_push))
                return false;
            add(rows, at, frame->frame_bytes, pushed);
            if (pushed)
                return true;
        } else if (small && is_rbp_stored(&one, in_small - 8)) {
            add_body(rows, at, frame);
            return true;
        } else if (is_ret(&one) || (pushed && is_jump(&one))) {
            return false;
        }
    }
    return false;
}

static bool jumps_to(const struct x86_instruction *one, uint64_t behind, uint64_t *target)
{
    const bool conditional = one->encoding == X86_LEGACY &&
                             ((one->map == 1 && one->opcode >= 0x80 && one->opcode <= 0x8f) ||
                              (one->map == 0 && one->opcode >= 0x70 && one->opcode <= 0x7f));
    *target = behind + (uint64_t)one->immediate;
    return conditional;
}

static bool is_nop(const struct x86_instruction *one)
{
    return (is_plain(one, 0x90) && one->opcode_register == 0) ||
           (one->encoding == X86_LEGACY && one->map == 1 && one->opcode == 0x1f);
}

/* Behind the test for collectors that change code (ZGC; each from JDK 20 on), which is aligned:
 * C2's "cmp $N,guard(%r15); jne", C1's "cmp $N,guard(%r15); je 1f; call; 1:".  AT: there is none.
 */
static uint64_t behind_barrier(const struct compiled_frame *frame, uint64_t at)
{
    enum { COMPARE = 7, R15 = 15, CALL = 0xe8 };
    struct x86_instruction one, call;
    uint64_t behind = at, target;
    while (decode(frame, behind, &one) && is_nop(&one))
        behind += one.length;
    if (!decode(frame, behind, &one) || !is_by_number(&one, COMPARE) || one.mode == 3 ||
        one.base != R15)
        return at;
    behind += one.length;
    if (!decode(frame, behind, &one) || !jumps_to(&one, behind + one.length, &target))
        return at;
    behind += one.length;
    return decode(frame, behind, &call) && is_plain(&call, CALL) && target == behind + call.length
               ? target
               : behind;
}

/* Behind what belongs to a prologue and changes nothing of where the caller is, AT being behind the
 * rest: C2 sets rbp in a small frame when it has stored it ("mov %rsp,%rbp; add $N,%rbp"). */
static uint64_t behind_prologue(const struct compiled_frame *frame, uint64_t at)
{
    struct x86_instruction one;
    if (decode(frame, at, &one) && is_rbp_set(&one)) {
        at += one.length;
        if (decode(frame, at, &one) && is_register_by(&one, RBP, 0))
            at += one.length;
    }
    return behind_barrier(frame, at);
}

/* ---- Epilogues ---- */

/* The stub at AT is reached by a jump from behind an epilogue: the frame is gone in it. */
static void read_stub(struct rows *rows, const struct compiled_frame *frame, uint64_t at)
{
    struct x86_instruction one = {0};
    const uint64_t begin = at;
    add(rows, at, OFFSET_IN_ENTRY, false);
    for (size_t i = 0; i < STUB_MOST && !is_jump(&one) && decode(frame, at, &one); i++)
        at += one.length;
    add_body(rows, at, frame);
    add_edge(rows, begin, at);
}

/* In methods that lock (@ReservedStackAccess) the epilogue asks whether the stack's reserve was
 * used: "cmp reserve(%r15),%rsp; jb", and behind that calls, with rsp aligned for them.  Returns
 * where the jump at AT goes to; AT: there is none. */
static uint64_t read_reserve(struct rows *rows, const struct compiled_frame *frame, uint64_t at)
{
    enum { R15 = 15, BELOW = 2 };
    struct x86_instruction compare, jump, one;
    uint64_t target;
    int64_t depth = 0, bytes;
    if (!decode(frame, at, &compare) || !is_plain(&compare, 0x3b) || compare.reg != RSP ||
        compare.mode == 3 || compare.base != R15 || !decode(frame, at + compare.length, &jump))
        return at;
    uint64_t next = at + compare.length + jump.length;
    if (!jumps_to(&jump, next, &target) || (jump.opcode & 15) != BELOW || target < next ||
        target >= frame->size)
        return at;
    while (next < target && decode(frame, next, &one)) {
        next += one.length;
        if (is_rsp_by(&one, 5, &bytes))
            depth += bytes;
        else if (is_rsp_by(&one, 0, &bytes))
            depth -= bytes;
        else
            continue;
        depth = depth < 0 ? 0 : depth;
        add(rows, next, OFFSET_IN_ENTRY + (uint64_t)depth, false);
    }
    add(rows, target, OFFSET_IN_ENTRY, false);
    return target;
}

/* rbp has been popped, the next instruction stands at AT.  Returns the place behind the function's
 * end. */
static uint64_t read_behind_pop(struct rows *rows, const struct compiled_frame *frame, uint64_t at)
{
    struct x86_instruction one;
    uint64_t target;
    add(rows, at, OFFSET_IN_ENTRY, false);
    at = read_reserve(rows, frame, at);
    for (size_t i = 0; i < EPILOGUE_MOST && decode(frame, at, &one); i++) {
        at += one.length;
        if (is_ret(&one) || is_jump(&one))
            break;
        if (jumps_to(&one, at, &target) && target > at && target < frame->size)
            read_stub(rows, frame, target);
    }
    add_body(rows, at, frame);
    return at;
}

/* By how much ONE, in a body, makes the frame longer: C1 passes some stubs' arguments by pushes. */
static int64_t pushed_by(const struct x86_instruction *one)
{
    int64_t bytes;
    if (is_rsp_by(one, 5, &bytes))
        return bytes;
    if (is_rsp_by(one, 0, &bytes))
        return -bytes;
    if (one->encoding != X86_LEGACY || one->map != 0)
        return 0;
    const uint8_t opcode = one->opcode, group = one->reg & 7;
    if ((opcode >= 0x50 && opcode <= 0x57) || opcode == 0x68 || opcode == 0x6a || opcode == 0x9c ||
        (opcode == 0xff && group == 6))
        return 8;
    if ((opcode >= 0x58 && opcode <= 0x5f) || opcode == 0x9d || (opcode == 0x8f && group == 0))
        return -8;
    return 0;
}

/* Whether an epilogue begins at AT with ONE.  *POPPED is behind its last pop. */
static bool is_epilogue(const struct compiled_frame *frame, uint64_t at,
                        const struct x86_instruction *one, uint64_t *popped)
{
    struct x86_instruction next;
    int64_t bytes;
    const int64_t wanted = (int64_t)frame->frame_bytes - OFFSET_PUSHED;
    *popped = at + one->length;
    if (is_plain(one, 0xc9)) /* leave */
        return true;
    if ((wanted == 0 || frame->keeps_rbp) && is_pop_rbp(one))
        return true;
    if (!is_rsp_by(one, 0, &bytes) || bytes != wanted || !decode(frame, *popped, &next) ||
        !is_pop_rbp(&next))
        return false;
    *popped += next.length;
    return true;
}

/* C2 puts "vzeroupper" in front of an epilogue, if the method uses vectors. */
static bool is_vzeroupper(const struct x86_instruction *one)
{
    return one->encoding == X86_VEX && one->map == 1 && one->opcode == 0x77 &&
           one->length == VZEROUPPER_BYTES;
}

/* The first place from AT on with the bytes of "add $S,%rsp; pop %rbp" of FRAME; its size: there is
 * none. */
static uint64_t find_epilogue(const struct compiled_frame *frame, uint64_t at)
{
    const uint32_t bytes = (uint32_t)(frame->frame_bytes - OFFSET_PUSHED);
    uint8_t near[] = {0x48, 0x83, 0xc4, (uint8_t)bytes, 0x5d},
            far[] = {0x48, 0x81, 0xc4, 0, 0, 0, 0, 0x5d};
    for (size_t i = 0; i < 4; i++)
        far[3 + i] = (uint8_t)(bytes >> 8 * i);
    const uint8_t *begin = frame->code + at;
    const size_t left = (size_t)(frame->size - at);
    const uint8_t *one = bytes < 128 ? memmem(begin, left, near, sizeof near) : NULL,
                  *other = memmem(begin, left, far, sizeof far);
    const uint8_t *first = !one || (other && other < one) ? other : one;
    return first ? (uint64_t)(first - frame->code) : frame->size;
}

/* Where the newest jumps led to while C1 had pushed something: as much is on the stack there. */
struct deep_targets {
    struct {
        uint64_t at;
        int64_t depth;
    } items[DEEP_TARGETS];
    size_t next;
};

static void note_jump(struct deep_targets *targets, const struct x86_instruction *one,
                      uint64_t behind, int64_t depth)
{
    uint64_t target;
    if (depth <= 0 || !jumps_to(one, behind, &target) || target <= behind)
        return;
    targets->items[targets->next].at = target;
    targets->items[targets->next].depth = depth;
    targets->next = (targets->next + 1) % DEEP_TARGETS;
}

/* DEPTH, or what was there when a jump led to AT. */
static int64_t depth_at(const struct deep_targets *targets, uint64_t at, int64_t depth)
{
    for (size_t i = 0; i < DEEP_TARGETS; i++)
        if (targets->items[i].at == at && targets->items[i].depth)
            return targets->items[i].depth;
    return depth;
}

/* From AT in the body on, to the next entry at UNTIL (0: there is none). */
static void read_body(struct rows *rows, const struct compiled_frame *frame, uint64_t at,
                      uint64_t until)
{
    struct x86_instruction one;
    struct deep_targets targets = {0};
    int64_t depth = 0;
    uint64_t epilogue = find_epilogue(frame, at), vectors_end = frame->size;
    for (uint64_t popped; at < until || until == 0;) {
        if (epilogue < at)
            epilogue = find_epilogue(frame, at);
        if (!decode(frame, at, &one)) { /* the rest of such an instruction is none */
            if (epilogue >= frame->size)
                return;
            at++;
            continue;
        }
        if (is_epilogue(frame, at, &one, &popped)) {
            if (popped > at + one.length)
                add(rows, at + one.length, OFFSET_PUSHED, true);
            const uint64_t behind = read_behind_pop(rows, frame, popped);
            add_edge(rows, vectors_end == at ? at - VZEROUPPER_BYTES : at, behind);
            at = behind;
            depth = 0;
            continue;
        }
        if (epilogue > at && epilogue < at + one.length) { /* behind a jump that C1 put over longer
                                                              instructions, until it patches them */
            at = epilogue;
            continue;
        }
        at += one.length;
        vectors_end = is_vzeroupper(&one) ? at : frame->size;
        while (is_plain(&one, 0xe9) && at < frame->size && !frame->code[at])
            at++; /* what is left of a number that C1 patches */
        const int64_t before = depth;
        depth += pushed_by(&one);
        depth = depth < 0 || is_jump(&one) || is_ret(&one) ? 0 : depth;
        note_jump(&targets, &one, at, depth);
        depth = depth_at(&targets, at, depth);
        if (depth != before && !frame->keeps_rbp)
            add(rows, at, frame->frame_bytes + (uint64_t)depth, true);
    }
}

/* ---- Tables ---- */

static int by_begin(const void *a, const void *b)
{
    const struct frame_edge *one = a, *other = b;
    return one->from < other->from ? -1 : one->from > other->from;
}

/* The end of an epilogue may be the beginning of a stub, or of another entry: that one counts, and
 * so stands last. */
static int by_place(const void *a, const void *b)
{
    const struct row *one = a, *other = b;
    if (one->at != other->at)
        return one->at < other->at ? -1 : 1;
    if (one->saved != other->saved)
        return one->saved ? -1 : 1;
    return one->number < other->number ? -1 : 1;
}

/* One edge for those that meet: a poll's stub may stand right behind its epilogue. */
static void sort_edges(struct frame_edges *edges)
{
    size_t kept = 0;
    if (edges->count)
        qsort(edges->items, edges->count, sizeof *edges->items, by_begin);
    for (size_t i = 0; i < edges->count; i++) {
        struct frame_edge *last = kept ? &edges->items[kept - 1] : NULL;
        if (!last || edges->items[i].from > last->to)
            edges->items[kept++] = edges->items[i];
        else if (edges->items[i].to > last->to)
            last->to = edges->items[i].to;
    }
    edges->count = kept;
}

/* Compiled code keeps none of the registers that native code keeps, but for rbp.  ZGC's C1 pushes
 * some of them around a use of its own. */
static void forget_registers(struct jitdump_cfi *cfi, uint64_t at)
{
    static const unsigned kept_by_c[] = {JITDUMP_RBX, JITDUMP_R12, JITDUMP_R13, JITDUMP_R14,
                                         JITDUMP_R15};
    for (size_t i = 0; i < sizeof kept_by_c / sizeof *kept_by_c; i++)
        jitdump_cfi_undefined(cfi, at, kept_by_c[i]);
}

static void put_rows(struct jitdump_cfi *cfi, const struct rows *rows, uint64_t size)
{
    const struct row *last = &(const struct row){.cfa_offset = OFFSET_IN_ENTRY};
    bool forgot = false;
    for (size_t i = 0; i < rows->count; i++) {
        const struct row *row = &rows->items[i];
        if (row->at >= size || (i + 1 < rows->count && rows->items[i + 1].at == row->at))
            continue;
        if (row->cfa_offset != last->cfa_offset || row->by_rbp != last->by_rbp)
            jitdump_cfi_def_cfa(cfi, row->at, row->by_rbp ? JITDUMP_RBP : JITDUMP_RSP,
                                (int64_t)row->cfa_offset);
        if (row->saved && !forgot)
            forget_registers(cfi, row->at);
        forgot = forgot || row->saved;
        if (row->saved && !last->saved)
            jitdump_cfi_offset(cfi, row->at, JITDUMP_RBP, -16);
        else if (!row->saved && last->saved)
            jitdump_cfi_same_value(cfi, row->at, JITDUMP_RBP);
        last = row;
    }
}

bool frame_tables_make(struct jitdump_cfi *cfi, const struct compiled_frame *frame,
                       struct frame_edges *edges, struct jitdump_unwind *unwind)
{
    struct rows rows = {.edges = edges};
    bool good = frame->frame_bytes >= OFFSET_PUSHED && frame->entry_count > 0;
    for (unsigned i = 0; good && i < frame->entry_count; i++) {
        uint64_t body;
        good = read_prologue(&rows, frame, frame->entries[i], &body);
        if (!good)
            break;
        /* A call checks its receiver's class in front of the first entry. */
        add_edge(&rows, i ? frame->entries[i] : 0, behind_prologue(frame, body));
        read_body(&rows, frame, body, i + 1 < frame->entry_count ? frame->entries[i + 1] : 0);
    }
    if (edges)
        sort_edges(edges);
    if (good) {
        qsort(rows.items, rows.count, sizeof *rows.items, by_place);
        put_rows(cfi, &rows, frame->size);
        good = !rows.no_memory && jitdump_cfi_finish(cfi, frame->size, unwind) == 0 &&
               jitdump_cfi_check(cfi, frame->code, frame->size) == 0;
    }
    free(rows.items);
    return good;
}

bool frame_tables_of_rbp(struct jitdump_cfi *cfi, uint64_t size, int32_t sender_sp_words,
                         struct jitdump_unwind *unwind)
{
    jitdump_cfi_def_cfa(cfi, 0, JITDUMP_RBP, OFFSET_PUSHED);
    jitdump_cfi_offset(cfi, 0, JITDUMP_RBP, -OFFSET_PUSHED);
    if (sender_sp_words)
        jitdump_cfi_offset(cfi, 0, JITDUMP_RSP, 8 * (int64_t)sender_sp_words - OFFSET_PUSHED);
    return jitdump_cfi_finish(cfi, size, unwind) == 0;
}
