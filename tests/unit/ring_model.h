/* Operations on a dump of bounded size, and what the dump keeps of them, compared with a model that
 * knows all that was ever logged.
 *
 * The records that follow the time at which the dump's history begins are the last ones that were
 * logged, one for one; and what those before it leave behind is what the model says of that moment.
 */
#ifndef PERFJIT_TEST_RING_MODEL_H
#define PERFJIT_TEST_RING_MODEL_H

#include "tests/unit/ring_dump.h"

#include <stdatomic.h>
#include <sys/mman.h>

enum {
    SLOTS = 1 << 14,
    SLOT_BYTES = 64,
    OPS_MAX = 1 << 19,
    CODE_MAX = 40000,
};

/* ---- What was logged ---- */

enum op_kind { ADD, MOVE, UNLOAD };

struct op {
    uint8_t kind;
    uint32_t function; /* the number of its ADD, from 1 */
    uint32_t slot;     /* ADD, MOVE: the first */
    uint32_t slots;
};

/* In memory that a child shares with who kills it. */
struct model {
    _Atomic uint32_t returned; /* operations that returned 0 */
    uint32_t count;
    struct op ops[OPS_MAX];
    uint64_t indices[OPS_MAX]; /* code_index of each function */
};

struct place {
    uint32_t slot, slots;
};

/* What a function has is in the place that it was last put to, less what others were put over. */
struct state {
    uint32_t owners[SLOTS];
    struct place places[OPS_MAX];
};

static inline void end_function(struct state *state, uint32_t function)
{
    const struct place *place = &state->places[function];
    for (uint32_t i = place->slot; i < place->slot + place->slots; i++)
        if (state->owners[i] == function)
            state->owners[i] = 0;
}

static inline void settle(struct state *state, uint32_t function, uint32_t slot, uint32_t slots)
{
    state->places[function] = (struct place){slot, slots};
    for (uint32_t i = slot; i < slot + slots; i++)
        state->owners[i] = function;
}

static inline void play(struct state *state, const struct op *op)
{
    if (op->kind != ADD)
        end_function(state, op->function);
    if (op->kind != UNLOAD)
        settle(state, op->function, op->slot, op->slots);
}

static inline uint64_t addr_of_slot(uint32_t slot)
{
    return ARENA + (uint64_t)slot * SLOT_BYTES;
}

/* ---- Logging ---- */

static uint32_t random_state = 1;

static inline uint32_t random_below(uint32_t limit)
{
    random_state = random_state * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)(random_state >> 4) * limit >> 28);
}

/* How a program behaves. */
struct habits {
    uint32_t moves, unloads, large; /* so many of 100, 100, 10 000 operations */
    uint32_t functions;             /* that it has at a time; its arena is what they need */
    bool partly;                    /* code is put over parts of older code */
};

static inline int add_one(struct jitdump *dump, struct model *model, struct op *op)
{
    static uint8_t bytes[CODE_MAX + SLOT_BYTES];
    char name[NAME_BYTES];
    uint64_t addr = addr_of_slot(op->slot);
    snprintf(name, sizeof name, "f%u", op->function);
    memset(bytes, (int)(op->function % 251), (size_t)op->slots * SLOT_BYTES);
    const struct jitdump_line lines[] = {{addr, name, op->function, 1}, {addr + 8, "b", 7, 8}};
    const uint32_t line_inlines[] = {JITDUMP_NOT_INLINED, 0};
    const struct jitdump_inline inlines[] = {
        {.name = name, .parent = JITDUMP_NOT_INLINED, .call_line = 3}};
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = name;
    code.code_addr = addr;
    code.code_size = (uint64_t)op->slots * SLOT_BYTES;
    code.bytes = bytes;
    if (op->function % 3 == 0) {
        code.lines = lines;
        code.line_count = 2;
    }
    if (op->function % 9 == 0) {
        code.inlines = inlines;
        code.inline_count = 1;
        code.line_inlines = line_inlines;
    }
    return jitdump_add_code(dump, &code, &model->indices[op->function]);
}

static inline void choose_add(const struct habits *habits, struct op *op)
{
    uint32_t most = 8, place = random_below(habits->functions);
    bool large = random_below(10000) < habits->large;
    op->slots = large ? CODE_MAX / SLOT_BYTES : habits->partly ? 1 + random_below(most) : most;
    op->slot = habits->partly ? place * most + random_below(most) : place * most;
    if (op->slot + op->slots > SLOTS)
        op->slot = SLOTS - op->slots;
}

/* A function that was added lately, or long ago. */
static inline uint32_t choose_function(const struct model *model, const struct habits *habits)
{
    uint32_t back = random_below(habits->functions);
    return model->count > back ? model->ops[model->count - 1 - back].function : 0;
}

static inline void choose(const struct model *model, const struct habits *habits, struct op *op)
{
    uint32_t dice = random_below(100), function = choose_function(model, habits);
    choose_add(habits, op);
    op->kind = ADD;
    op->function = model->count + 1;
    if (!function || dice >= habits->moves + habits->unloads)
        return;
    op->function = function;
    op->kind = dice < habits->moves ? MOVE : UNLOAD;
}

/* The moved or unloaded function must be somewhere: a MOVE of what is not there means nothing. */
static inline bool is_somewhere(const struct state *state, uint32_t function)
{
    const struct place *place = &state->places[function];
    for (uint32_t i = place->slot; i < place->slot + place->slots; i++)
        if (state->owners[i] == function)
            return true;
    return false;
}

static inline int log_one(struct jitdump *dump, struct model *model, struct state *state,
                          const struct habits *habits)
{
    struct op *op = &model->ops[model->count];
    choose(model, habits, op);
    if (op->kind != ADD && !is_somewhere(state, op->function)) {
        op->kind = ADD;
        op->function = model->count + 1;
    }
    const struct place *place = &state->places[op->function];
    int error = 0;
    if (op->kind != ADD)
        op->slots = place->slots;
    if (op->kind == ADD) {
        error = add_one(dump, model, op);
    } else if (op->kind == MOVE) {
        if (op->slot + op->slots > SLOTS)
            op->slot = SLOTS - op->slots;
        if (state->owners[place->slot] != op->function)
            op->kind = UNLOAD; /* who overwrote its begin did not move it */
    }
    if (op->kind == MOVE)
        error = jitdump_move_code(dump, model->indices[op->function], addr_of_slot(place->slot),
                                  addr_of_slot(op->slot), (uint64_t)op->slots * SLOT_BYTES);
    else if (op->kind == UNLOAD)
        error = jitdump_unload_code(dump, model->indices[op->function], addr_of_slot(place->slot),
                                    (uint64_t)place->slots * SLOT_BYTES);
    if (error)
        return error;
    play(state, op);
    model->count++;
    atomic_store(&model->returned, model->count);
    return 0;
}

/* ---- What is in the dump ---- */

struct logged {
    uint64_t time;
    struct op op;
};

struct in_dump {
    uint64_t begin; /* of the history; 0: all that was logged is there */
    uint64_t generation, dropped, kept;
    uint64_t last_time;
    uint32_t count;
    struct logged logged[OPS_MAX];
    uint32_t by_index[OPS_MAX]; /* the function of each code_index */
};

static inline void take_load(struct in_dump *in, struct byte_cursor *body, uint64_t info_addr,
                             struct op *op)
{
    cursor_skip(body, 8 + 8);
    uint64_t addr = cursor_u64(body), size = cursor_u64(body), index = cursor_u64(body);
    const char *name = cursor_cstr(body);
    CHECK(name && sscanf(name, "f%u", &op->function) == 1 && index < OPS_MAX);
    CHECK(!info_addr || info_addr == addr);
    CHECK(cursor_left(body) == size);
    for (uint64_t i = 0; i < size; i++)
        CHECK(body->data[body->offset + i] == op->function % 251);
    in->by_index[index] = op->function;
    op->kind = ADD;
    op->slot = (uint32_t)((addr - ARENA) / SLOT_BYTES);
    op->slots = (uint32_t)(size / SLOT_BYTES);
}

/* Of functions with indices below, which a child has from its parent, the model knows nothing. */
static uint64_t inherited_below;

/* Returns false if it is about one of those. */
static inline bool take_change(const struct in_dump *in, struct record *record, struct op *op)
{
    bool moves = record->id == JIT_CODE_MOVE;
    cursor_skip(&record->body, moves ? 8 + 8 + 8 : 8);
    uint64_t addr = cursor_u64(&record->body), size = cursor_u64(&record->body);
    uint64_t index = cursor_u64(&record->body);
    if (index < inherited_below)
        return false;
    CHECK(index < OPS_MAX);
    op->kind = moves ? MOVE : UNLOAD;
    op->function = in->by_index[index];
    op->slot = (uint32_t)((addr - ARENA) / SLOT_BYTES);
    op->slots = (uint32_t)(size / SLOT_BYTES);
    return true;
}

/* The addresses of a DEBUG_INFO, and of its rows, are where the function is. */
static inline uint64_t lines_addr(struct byte_cursor body)
{
    uint64_t addr = cursor_u64(&body);
    CHECK(cursor_u64(&body) == 2 && cursor_u64(&body) == addr);
    cursor_skip(&body, 8);
    cursor_cstr(&body);
    CHECK(cursor_u64(&body) == addr + 8);
    return addr;
}

static inline void take_history(struct in_dump *in, struct record *record)
{
    CHECK(in->count == 0 && in->begin == 0);
    in->begin = record->timestamp;
    in->generation = cursor_u64(&record->body);
    in->dropped = cursor_u64(&record->body);
    in->kept = cursor_u64(&record->body);
}

static inline void read_file(struct in_dump *in, const char *file_path)
{
    struct dump_bytes dump = read_dump(file_path);
    struct record record;
    uint64_t info_addr = 0, body_time = in->last_time;
    size_t offset = JITHEADER_BYTES;
    file_header(&dump);
    while (next_record(&dump, &offset, &record)) {
        if (record.id == JIT_CODE_HISTORY)
            take_history(in, &record);
        else if (record.id == JIT_CODE_DEBUG_INFO)
            info_addr = lines_addr(record.body);
        bool is_op = record.id == JIT_CODE_LOAD || record.id == JIT_CODE_MOVE ||
                     record.id == JIT_CODE_UNLOAD;
        /* Killed between two instructions, the stage has what the body has as well. */
        if (is_op && record.timestamp <= body_time)
            info_addr = 0;
        if (!is_op || record.timestamp <= body_time)
            continue;
        struct logged *logged = &in->logged[in->count++];
        logged->time = record.timestamp;
        CHECK(record.timestamp > in->last_time || record.timestamp == in->last_time);
        in->last_time = record.timestamp;
        if (record.id == JIT_CODE_LOAD)
            take_load(in, &record.body, info_addr, &logged->op);
        else if (!take_change(in, &record, &logged->op))
            in->count--;
        info_addr = 0;
    }
    free(dump.data);
}

static inline bool same_op(const struct op *a, const struct op *b)
{
    return a->kind == b->kind && a->function == b->function && a->slots == b->slots &&
           (a->kind == UNLOAD || a->slot == b->slot);
}

/* Whether the dump's history is the last of the first TOTAL operations. */
static inline bool ends_with(const struct in_dump *in, uint32_t first, const struct model *model,
                             uint32_t total)
{
    uint32_t history = in->count - first;
    for (uint32_t i = 0; i < history && history <= total; i++)
        if (!same_op(&in->logged[first + i].op, &model->ops[total - history + i]))
            return false;
    return history <= total;
}

static inline const struct state *state_after(const struct op *ops, uint32_t count)
{
    static struct state state;
    memset(&state, 0, sizeof state);
    for (uint32_t i = 0; i < count; i++)
        play(&state, &ops[i]);
    return &state;
}

/* The dump at PATH_OF_BODY against MODEL, of which all that returned must be there; with OR_ONE
 * perhaps one more.  Returns its generation. */
static inline uint64_t check_dump(const char *path_of_body, const struct model *model, bool or_one)
{
    static struct in_dump in;
    static struct state kept;
    char stage_path[160];
    memset(&in, 0, sizeof in);
    stage_path_of(stage_path, path_of_body);
    read_file(&in, path_of_body);
    if (access(stage_path, F_OK) == 0)
        read_file(&in, stage_path);
    uint32_t first = 0, loads = 0, total = atomic_load(&model->returned);
    memset(&kept, 0, sizeof kept);
    for (; first < in.count && in.logged[first].time < in.begin; first++) {
        play(&kept, &in.logged[first].op);
        loads += in.logged[first].op.kind == ADD;
    }
    CHECK(loads == in.kept);
    if (or_one && ends_with(&in, first, model, total + 1))
        total++;
    CHECK(ends_with(&in, first, model, total));
    uint32_t dropped_ops = total - (in.count - first), added = 0;
    CHECK(in.begin || dropped_ops == 0);
    const struct state *then = state_after(model->ops, dropped_ops);
    CHECK(memcmp(then->owners, kept.owners, sizeof kept.owners) == 0);
    for (uint32_t i = 0; i < dropped_ops; i++)
        added += model->ops[i].kind == ADD;
    CHECK(in.dropped + in.kept == added);
    return in.generation;
}

/* ---- A model ---- */

static inline struct model *model_new(void)
{
    struct model *model =
        mmap(NULL, sizeof *model, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(model != MAP_FAILED);
    return model;
}

/* Parts of functions are overwritten, by code that is moved or unloaded later. */
static const struct habits wild = {
    .functions = 1000, .unloads = 20, .moves = 30, .partly = true, .large = 10};

#endif
