/* Which instructions were visited, of all that there are.
 *
 * A piece is a name with its code: the same one may be compiled again, moved, and run in several
 * runs of the program, and what was visited of it counts together.  objdump says where its
 * instructions begin; from its jumps follows which of them can be reached at all, which what stands
 * behind a return can't.
 */
#ifndef PERFJIT_TEST_SINGLE_STEP_COVERAGE_H
#define PERFJIT_TEST_SINGLE_STEP_COVERAGE_H

#include "injector/arrays/array.h"
#include "injector/log/code/code_log.h"
#include "injector/log/jitdump/jit_dump.h"
#include "tests/unit/scratch.h"

#include <inttypes.h>

enum { PIECE_BOUNDARY = 1, PIECE_REACHABLE = 2, PIECE_VISITED = 4 };

struct piece {
    char *name;
    uint8_t *code;
    size_t size;
    uint8_t *state; /* of each byte: PIECE_BOUNDARY | ... */
    size_t *next;   /* at a boundary: where the instruction ends */
    size_t *target; /* where it jumps to, or SIZE_MAX */
    bool *ends;     /* it doesn't go on behind it */
};

/* What objdump is to disassemble, and what its jumps look like. */
struct coverage_machine {
    const char *objdump;
    const char *jumps[5]; /* how the mnemonics of all jumps begin */
    const char *ends[3];  /* and those of instructions after which nothing follows */
    const char *invalid;
};

static const struct coverage_machine coverage_x86_64 = {
    .objdump = "objdump -M intel -m i386:x86-64",
    .jumps = {"j"},
    .ends = {"jmp", "ret", "ud2"},
    .invalid = "(bad)",
};

static const struct coverage_machine coverage_aarch64 = {
    .objdump = "aarch64-linux-gnu-objdump -m aarch64",
    .jumps = {"b\t", "b.", "cbnz", "cbz", "tb"},
    .ends = {"b\t", "ret", "br\t"},
    .invalid = ".inst",
};

struct coverage {
    const struct coverage_machine *machine;
    struct piece *pieces;
    size_t count, capacity;
};

struct coverage_totals {
    size_t pieces, boundaries, reachable, visited;
};

/* ---- Disassembly ---- */

static inline bool begins_with_any(const char *text, const char *const *starts, size_t count)
{
    for (size_t i = 0; i < count && starts[i]; i++)
        if (strncmp(text, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

/* "  2c:\tmov    rax,rcx".  A jump's target is the only number with 0x: "jne    0x2c", "cbnz\tx0,
 * 0x2c". */
static inline void piece_take_line(struct piece *piece, const struct coverage_machine *machine,
                                   const char *line, size_t *last)
{
    size_t at;
    int text = 0;
    if (sscanf(line, " %zx:\t%n", &at, &text) != 1 || !text || at >= piece->size)
        return;
    const char *mnemonic = line + text;
    if (*last != SIZE_MAX)
        piece->next[*last] = at;
    *last = at;
    piece->next[at] = piece->size;
    piece->state[at] |= PIECE_BOUNDARY;
    piece->target[at] = SIZE_MAX;
    const char *target =
        strstr(mnemonic, " 0x") ? strstr(mnemonic, " 0x") : strstr(mnemonic, "\t0x");
    if (target && begins_with_any(mnemonic, machine->jumps, 5))
        sscanf(target, "%zx", &piece->target[at]);
    piece->ends[at] = begins_with_any(mnemonic, machine->ends, 3);
    assert_null(strstr(mnemonic, machine->invalid));
}

static inline void piece_disassemble(struct piece *piece, const struct coverage_machine *machine)
{
    char command[256], line[256];
    size_t last = SIZE_MAX;
    write_scratch(piece->code, piece->size);
    snprintf(command, sizeof command, "%s -D -b binary --no-show-raw-insn '%s'", machine->objdump,
             scratch_file);
    FILE *output = popen(command, "r");
    assert_non_null(output);
    while (fgets(line, sizeof line, output))
        piece_take_line(piece, machine, line, &last);
    assert_int_equal(pclose(output), 0);
    assert_true(piece->state[0] & PIECE_BOUNDARY);
}

/* Follow the code from its first instruction on.  Jumps ahead are taken up by further rounds. */
static inline void piece_find_reachable(struct piece *piece)
{
    bool more = true;
    piece->state[0] |= PIECE_REACHABLE;
    while (more) {
        more = false;
        for (size_t at = 0; at < piece->size; at++) {
            if (!(piece->state[at] & PIECE_REACHABLE))
                continue;
            size_t next = piece->ends[at] ? SIZE_MAX : piece->next[at];
            size_t both[] = {next, piece->target[at]};
            for (size_t i = 0; i < 2; i++)
                if (both[i] < piece->size && !(piece->state[both[i]] & PIECE_REACHABLE)) {
                    piece->state[both[i]] |= PIECE_REACHABLE;
                    more = true;
                }
        }
    }
}

/* ---- Pieces ---- */

static inline struct piece *coverage_add(struct coverage *coverage, const char *name,
                                         const uint8_t *code, size_t size)
{
    coverage->pieces = array_room(coverage->pieces, coverage->count, &coverage->capacity,
                                  sizeof *coverage->pieces);
    assert_non_null(coverage->pieces);
    struct piece *piece = &coverage->pieces[coverage->count++];
    *piece = (struct piece){.name = strdup(name), .code = malloc(size), .size = size};
    piece->state = calloc(size, 1);
    piece->next = calloc(size, sizeof *piece->next);
    piece->target = calloc(size, sizeof *piece->target);
    piece->ends = calloc(size, sizeof *piece->ends);
    assert_true(piece->name && piece->code && piece->state && piece->next && piece->target &&
                piece->ends);
    memcpy(piece->code, code, size);
    piece_disassemble(piece, coverage->machine);
    piece_find_reachable(piece);
    return piece;
}

/* The piece that FUNCTION is an instance of. */
static inline struct piece *coverage_piece(struct coverage *coverage,
                                           const struct jit_function *function)
{
    for (size_t i = 0; i < coverage->count; i++) {
        struct piece *piece = &coverage->pieces[i];
        if (piece->size == function->size && strcmp(piece->name, function->name) == 0 &&
            memcmp(piece->code, function->code, piece->size) == 0)
            return piece;
    }
    return coverage_add(coverage, function->name, function->code, (size_t)function->size);
}

static inline void coverage_visit(struct piece *piece, uint64_t offset)
{
    if (!(piece->state[offset] & PIECE_BOUNDARY))
        fail_msg("%s+0x%" PRIx64 ": by objdump no instruction begins here", piece->name, offset);
    if (!(piece->state[offset] & PIECE_REACHABLE))
        fail_msg("%s+0x%" PRIx64 ": by the jumps this can't be reached", piece->name, offset);
    piece->state[offset] |= PIECE_VISITED;
}

/* Print what could be reached and was not visited. */
static inline struct coverage_totals coverage_report(const struct coverage *coverage)
{
    struct coverage_totals totals = {.pieces = coverage->count};
    for (size_t i = 0; i < coverage->count; i++) {
        const struct piece *piece = &coverage->pieces[i];
        for (size_t at = 0; at < piece->size; at++) {
            uint8_t state = piece->state[at];
            totals.boundaries += (state & PIECE_BOUNDARY) != 0;
            totals.reachable += (state & PIECE_REACHABLE) != 0;
            totals.visited += (state & PIECE_VISITED) != 0;
            if (state & PIECE_REACHABLE && !(state & PIECE_VISITED))
                print_message("# not visited: %s+0x%zx\n", piece->name, at);
        }
    }
    return totals;
}

static inline void coverage_free(struct coverage *coverage)
{
    for (size_t i = 0; i < coverage->count; i++) {
        struct piece *piece = &coverage->pieces[i];
        free(piece->name);
        free(piece->code);
        free(piece->state);
        free(piece->next);
        free(piece->target);
        free(piece->ends);
    }
    free(coverage->pieces);
}

#endif
