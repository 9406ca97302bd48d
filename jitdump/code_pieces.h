/* A function in several pieces.  It is one group of records, and each piece has a LOAD of its own.
 *
 *     jd_pieces_make  ─▶  jd_pieces_measure  ─▶  jd_pieces_put  ─▶  jd_pieces_free
 */
#ifndef JITDUMP_CODE_PIECES_H
#define JITDUMP_CODE_PIECES_H

#include "jitdump/dump_record.h"

struct code_piece {
    struct jitdump_code code; /* with the function's name */
    struct inline_info inlining;
    struct function_sizes sizes;
};

struct code_pieces {
    struct code_piece *items; /* the function itself, then its pieces */
    uint32_t count;
};

/* Check and sort the pieces of CODE, which has some and has been read.  Returns 0 or a negative
 * errno, kept in ERROR.  Release with jd_pieces_free in either case. */
int jd_pieces_make(struct code_pieces *pieces, const struct jitdump_code *code,
                   struct first_error *error);

/* The size of the group; more than UINT32_MAX for one that no record can hold. */
uint64_t jd_pieces_measure(struct code_pieces *pieces);

/* Put the group.  The code indices of the pieces follow one another. */
void jd_pieces_put(struct dump_room *room, const struct code_pieces *pieces,
                   struct record_author author);

void jd_pieces_free(struct code_pieces *pieces);

#endif
