/* See move.h. */
#include "injector/compare/move.h"

#include "injector/log/code/tier_mark.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A function that keeps less than this share of its time has moved as a whole. */
static const double rest = 0.2;

/* A caller with this share of a function's calls is one that matters. */
static const double large = 0.1;

/* ---- States ---- */

static uint32_t function_of(const struct run_set *set, const struct compared_row *state)
{
    return set->function_of[state->number];
}

static int compare(const void *left, const void *right, void *context)
{
    const struct compared_row *a = left, *b = right;
    uint32_t first = function_of(context, a), second = function_of(context, b);
    double less = fabs(compared_row_change(a)), more = fabs(compared_row_change(b));
    if (first != second)
        return first < second ? -1 : 1;
    if (less != more)
        return less > more ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

int moves_find(struct moves *moves, const struct run_set *set, const struct verdicts *verdicts)
{
    const struct verdict_rows *states = &verdicts->tables[BY_STATE];
    const struct verdict_rows *functions = &verdicts->tables[BY_FUNCTION];
    *moves = (struct moves){.set = set, .verdicts = verdicts, .state_count = states->count};
    moves->states = malloc((states->count + 1) * sizeof *moves->states);
    moves->rows = calloc(run_set_count(set, BY_FUNCTION) + 1, sizeof *moves->rows);
    if (!moves->states || !moves->rows)
        return -1;
    memcpy(moves->states, states->items, states->count * sizeof *moves->states);
    qsort_r(moves->states, states->count, sizeof *moves->states, compare, (void *)(uintptr_t)set);
    for (size_t i = 0; i < functions->count; i++)
        moves->rows[functions->items[i].number] = &functions->items[i];
    return 0;
}

const struct compared_row *moves_states(const struct moves *moves, uint32_t function, size_t *count)
{
    size_t low = 0, high = moves->state_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (function_of(moves->set, &moves->states[middle]) < function)
            low = middle + 1;
        else
            high = middle;
    }
    for (high = low; high < moves->state_count; high++)
        if (function_of(moves->set, &moves->states[high]) != function)
            break;
    *count = high - low;
    return moves->states + low;
}

char *move_state_text(const struct run_set *set, const struct compared_row *state)
{
    static const char *const kinds[FRAME_KINDS] = {[FRAME_JIT] = "JIT code",
                                                   [FRAME_INTERPRETER] = "interpreter",
                                                   [FRAME_NATIVE] = "native code",
                                                   [FRAME_KERNEL] = "kernel",
                                                   [FRAME_UNKNOWN] = "unknown"};
    const struct call_frame *frame = &set->names.frames[state->number];
    const char *tier = call_profile_string(&set->names, frame->tier);
    char *text;
    return asprintf(&text, "%s%s", *tier ? tier : kinds[frame->kind],
                    frame->inlined ? ", inlined" : "") < 0
               ? NULL
               : text;
}

/* How much a compiler has done for code in this state; -1: it is not known. */
static int rank_of(const struct run_set *set, const struct compared_row *state)
{
    const struct call_frame *frame = &set->names.frames[state->number];
    const int rank = tier_rank(call_profile_string(&set->names, frame->tier));
    return frame->kind == FRAME_INTERPRETER && rank < 0 ? 0 : rank;
}

/* ---- From state to state ---- */

static const char *word_of(const struct run_set *set, const struct compared_row *from,
                           const struct compared_row *to)
{
    const struct call_frame *before = &set->names.frames[from->number];
    const struct call_frame *after = &set->names.frames[to->number];
    int less = rank_of(set, from), more = rank_of(set, to);
    if (before->inlined != after->inlined)
        return after->inlined ? "inlined into its callers" : "no longer inlined";
    if (before->kind == FRAME_JIT && after->kind == FRAME_INTERPRETER)
        return "deoptimised, interpreted";
    if (before->kind == FRAME_INTERPRETER && after->kind == FRAME_JIT)
        return "compiled";
    return less < 0 || more < 0 || less == more ? "moved"
           : more < less                        ? "deoptimised"
                                                : "optimised";
}

/* The text "TurboFan, then Sparkplug: deoptimised" if FUNCTION has less in one state and more in
 * another.  Both changes must be beyond noise, and one must be large enough to matter.  Otherwise
 * "", also if both states have one name (code that is in another library now).  NULL without
 * memory. */
static char *state_move(const struct moves *moves, uint32_t function)
{
    size_t count;
    const struct compared_row *states = moves_states(moves, function, &count);
    const struct compared_row *from = NULL, *to = NULL;
    for (size_t i = count; i-- > 0;)
        if (compared_row_is_sure(&states[i]))
            *(compared_row_change(&states[i]) < 0 ? &from : &to) = &states[i];
    if (!from || !to || !(compared_row_differs(from) || compared_row_differs(to)))
        return strdup("");
    char *before = move_state_text(moves->set, from), *after = move_state_text(moves->set, to);
    char *text = NULL;
    if (before && after && strcmp(before, after) == 0)
        text = strdup("");
    else if (!before || !after ||
             asprintf(&text, "%s, then %s: %s", before, after, word_of(moves->set, from, to)) < 0)
        text = NULL;
    free(before);
    free(after);
    return text;
}

/* ---- Callers ---- */

static bool is_generated(const struct call_frame *frame)
{
    return frame->kind == FRAME_JIT || frame->kind == FRAME_INTERPRETER;
}

/* An array, by function of JIT code: how much of FUNCTION that function calls, on both sides
 * together.  Element 0, which is no function, has the total.  NULL without memory; to be freed. */
static double *calls_of(const struct moves *moves, uint32_t function)
{
    const struct call_profile *names = &moves->set->names;
    const struct verdict_rows *stacks = &moves->verdicts->tables[BY_STACK];
    double *calls = calloc(names->string_count, sizeof *calls);
    for (size_t i = 1; calls && i < stacks->count; i++) {
        uint32_t parent = names->nodes[i].parent;
        double value = stacks->items[i].base + stacks->items[i].new;
        if (moves->set->function_of[names->nodes[i].frame] != function)
            continue;
        calls[0] += value;
        if (parent && is_generated(&names->frames[names->nodes[parent].frame]))
            calls[moves->set->function_of[names->nodes[parent].frame]] += value;
    }
    return calls;
}

static bool went_as_a_whole(const struct compared_row *row)
{
    return fmin(row->base, row->new) <= rest * fmax(row->base, row->new);
}

/* Whether CALLER's code has a good part of ROW's lines on the side where ROW has hardly any. */
static bool caller_has_lines(const struct moves *moves, const struct compared_row *row,
                             const struct compared_row *caller)
{
    const struct run_set *set = moves->set;
    bool in_new = row->new > row->base;
    double here = (double)(in_new ? set->new : set->base);
    double there = (double)(in_new ? set->base : set->new);
    double of;
    double inlined = function_lines_inlined(&set->lines, caller->number, row->number, in_new, &of);
    return of > 0 && inlined / there >= large * of / here;
}

/* The text for ROW that CALLER, another function, explains. */
static char *text_of_caller(const struct moves *moves, const struct compared_row *row,
                            const struct compared_row *caller)
{
    size_t count;
    const struct compared_row *state = moves_states(moves, row->number, &count);
    bool generated = is_generated(&moves->set->names.frames[state->number]);
    const char *name = call_profile_string(&moves->set->names, caller->number);
    char *text = NULL, *move;
    if (generated && went_as_a_whole(row) &&
        ((compared_row_differs(caller) && caller->verdict != row->verdict) ||
         caller_has_lines(moves, row, caller)))
        return asprintf(&text, "%s %s",
                        row->verdict == VERDICT_FASTER ? "inlined into" : "no longer inlined into",
                        name) < 0
                   ? NULL
                   : text;
    move = generated ? strdup("") : state_move(moves, caller->number);
    if (!move || !*move)
        return move;
    if (asprintf(&text, "called by %s: %s", name, move) < 0)
        text = NULL;
    free(move);
    return text;
}

/* Only callers with a good part of its calls count.  The first one with a text gives it: in a
 * prologue, frame pointers miss the caller. */
static char *caller_move(const struct moves *moves, const struct compared_row *row)
{
    const struct verdict_rows *functions = &moves->verdicts->tables[BY_FUNCTION];
    double *calls = calls_of(moves, row->number);
    char *text = calls ? strdup("") : NULL;
    for (size_t i = 0; text && !*text && i < functions->count; i++) {
        const struct compared_row *caller = &functions->items[i];
        if (caller->number == row->number || calls[caller->number] <= large * calls[0])
            continue;
        free(text);
        text = text_of_caller(moves, row, caller);
    }
    free(calls);
    return text;
}

char *move_text(const struct moves *moves, const struct compared_row *row)
{
    char *text = state_move(moves, row->number);
    if (!text || *text)
        return text;
    free(text);
    return caller_move(moves, row);
}

void moves_free(struct moves *moves)
{
    free(moves->states);
    free(moves->rows);
}
