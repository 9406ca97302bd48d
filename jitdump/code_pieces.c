/* See code_pieces.h; the record's layout stands in jitdump_format.h. */
#include "jitdump/code_pieces.h"
#include "jitdump/code_argument.h"

#include <stdlib.h>

/* ---- Checking ---- */

static const char *what_is_wrong(const struct jitdump_code *function,
                                 const struct jitdump_code *piece)
{
    if (piece->size != function->size)
        return "size is not that of the function's struct";
    if (piece->name)
        return "name is set: a piece has the function's";
    if (piece->piece_count)
        return "piece_count is set: a piece has none";
    return piece->code_addr + piece->code_size < piece->code_addr ? "past the end of memory" : NULL;
}

/* Piece NUMBER of the function, given at FROM. */
static int read_piece(struct code_pieces *pieces, uint32_t number, const void *from,
                      struct first_error *error)
{
    const struct jitdump_code *function = &pieces->items[0].code, *given = from;
    struct jitdump_code *piece = &pieces->items[number].code;
    int result = jd_code_read(error, &given, piece);
    if (result)
        return result;
    const char *wrong = what_is_wrong(function, given);
    if (wrong)
        return jd_error_keep(error, -EINVAL, "struct jitdump_code, pieces[%u]: %s", number - 1,
                             wrong);
    if (given != piece)
        *piece = *given;
    piece->name = function->name;
    return 0;
}

static int by_address(const void *left, const void *right)
{
    const struct jitdump_code *a = *(const struct jitdump_code *const *)left;
    const struct jitdump_code *b = *(const struct jitdump_code *const *)right;
    return (a->code_addr > b->code_addr) - (a->code_addr < b->code_addr);
}

/* If two pieces were at one address, only the later one would be found. */
static int check_places(const struct code_pieces *pieces, struct first_error *error)
{
    uint64_t end = 0;
    int result = 0;
    const struct jitdump_code **order = malloc(pieces->count * sizeof *order);
    if (!order)
        return jd_error_keep(error, -ENOMEM, "no memory for the pieces of a function");
    for (uint32_t i = 0; i < pieces->count; i++)
        order[i] = &pieces->items[i].code;
    qsort(order, pieces->count, sizeof *order, by_address);
    for (uint32_t i = 0; i < pieces->count && !result; i++) {
        if (order[i]->code_size && order[i]->code_addr < end)
            result =
                jd_error_keep(error, -EINVAL, "struct jitdump_code: two pieces overlap at 0x%llx",
                              (unsigned long long)order[i]->code_addr);
        if (order[i]->code_size)
            end = order[i]->code_addr + order[i]->code_size;
    }
    free(order);
    return result;
}

/* ---- Making ---- */

static int read_pieces(struct code_pieces *pieces, const struct jitdump_code *code,
                       struct first_error *error)
{
    const char *from = (const char *)code->pieces;
    pieces->items[0].code = *code;
    for (uint32_t i = 1; i < pieces->count; i++, from += code->size) {
        int result = read_piece(pieces, i, from, error);
        if (result)
            return result;
    }
    return check_places(pieces, error);
}

static int make_inlining(struct code_piece *piece, struct first_error *error)
{
    const struct jitdump_code *code = &piece->code;
    if (!code->inline_count && !code->line_inlines)
        return 0;
    int result = jd_inline_info_check(code, error);
    if (result)
        return result;
    result = jd_inline_info_make(&piece->inlining, code);
    return result ? jd_error_keep(error, result,
                                  "no memory to bring a function's inlined calls in order")
                  : 0;
}

int jd_pieces_make(struct code_pieces *pieces, const struct jitdump_code *code,
                   struct first_error *error)
{
    *pieces = (struct code_pieces){0};
    if (!code->pieces)
        return jd_error_keep(error, -EINVAL,
                             "struct jitdump_code: piece_count is set, and pieces is NULL");
    if (!code->code_size)
        return jd_error_keep(error, -EINVAL,
                             "struct jitdump_code: a function in pieces whose code_size is 0");
    if (code->code_size > UINT64_MAX - code->code_addr)
        return jd_error_keep(error, -EINVAL,
                             "struct jitdump_code: a function in pieces past the end of memory");
    if (code->piece_count >= UINT32_MAX / JR_CODE_LOAD_BYTES)
        return jd_error_keep(error, -EFBIG,
                             "struct jitdump_code: more pieces than a dump can hold");
    pieces->count = (uint32_t)code->piece_count + 1;
    pieces->items = calloc(pieces->count, sizeof *pieces->items);
    if (!pieces->items)
        return jd_error_keep(error, -ENOMEM, "no memory for the pieces of a function");
    int result = read_pieces(pieces, code, error);
    for (uint32_t i = 0; i < pieces->count && !result; i++)
        result = make_inlining(&pieces->items[i], error);
    return result;
}

void jd_pieces_free(struct code_pieces *pieces)
{
    for (uint32_t i = 0; pieces->items && i < pieces->count; i++)
        jd_inline_info_free(&pieces->items[i].inlining);
    free(pieces->items);
}

/* ---- Putting ---- */

/* A piece without code has a number, and no records. */
uint64_t jd_pieces_measure(struct code_pieces *pieces)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < pieces->count && bytes < JD_TOO_LARGE; i++) {
        struct code_piece *piece = &pieces->items[i];
        if (piece->code.code_size)
            bytes += JR_CODE_PIECE_BYTES +
                     jd_function_measure(&piece->code, &piece->inlining, &piece->sizes);
    }
    return bytes;
}

static void put_piece(struct dump_room *room, const struct code_pieces *pieces, uint32_t number,
                      struct record_author author)
{
    const struct code_piece *piece = &pieces->items[number];
    jd_room_begin_record(room, JIT_CODE_PIECE, JR_CODE_PIECE_BYTES);
    sink_u64(&room->sink, piece->code.code_addr);
    sink_u64(&room->sink, room->code_index - number);
    sink_u32(&room->sink, number);
    sink_u32(&room->sink, pieces->count);
    jd_put_function(room, &piece->code, &piece->inlining, &piece->sizes, author);
}

void jd_pieces_put(struct dump_room *room, const struct code_pieces *pieces,
                   struct record_author author)
{
    for (uint32_t i = 0; i < pieces->count; i++, room->code_index++)
        if (pieces->items[i].code.code_size)
            put_piece(room, pieces, i, author);
    room->code_index -= pieces->count;
}
