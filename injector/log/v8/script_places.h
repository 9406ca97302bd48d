/* Lines and columns of characters in scripts.  V8's code log has characters alone.
 *
 * They come from the script's text: the log's, or that of the file, if it is there and is the one
 * that ran.  Each function's place in the log must be where the text has the function's first
 * character.  Otherwise they come from
 * places that are known: the functions' first characters, and rows of the dump at the same offsets.
 * Between two of these in one line the column is counted; elsewhere the place is not known.
 */
#ifndef PERFJIT_SCRIPT_PLACES_H
#define PERFJIT_SCRIPT_PLACES_H

#include "injector/arrays/number_map.h"
#include "injector/findings/findings.h"
#include "injector/log/lines/line_text.h"

#include <stddef.h>

struct script_place {
    uint32_t line, column; /* from 1; line 0: not known */
};

struct known_place;
struct script;

struct script_places {
    const char *root; /* where the paths begin, or NULL */
    struct findings *findings;
    struct known_place *items;
    size_t count, capacity;
    struct script *scripts;
    size_t script_count, script_capacity;
    struct number_map by_name; /* scripts, by a hash of their files */
};

/* The number of the script FILE, whose text outlives PLACES; UINT32_MAX without memory. */
uint32_t script_places_script(struct script_places *places, struct line_text file);

/* V8 compiled TEXT, as its log has it, for FILE, whatever that is now.  Both outlive PLACES.
 * Returns 0, or -1 without memory. */
int script_places_give(struct script_places *places, struct line_text file, struct line_text text);

/* Read the text of SCRIPT, which was given, or the file, if it is there and was not read yet. */
void script_places_read(struct script_places *places, uint32_t script);

/* A function of SCRIPT begins at character POSITION, which is at PLACE: a file that has it
 * elsewhere is told, and no longer used. */
void script_places_check(struct script_places *places, uint32_t script, uint32_t position,
                         struct script_place place);

/* Whether the places of SCRIPT come from its text: it was read, and has all functions that were
 * checked, at least one. */
bool script_places_have_text(const struct script_places *places, uint32_t script);

/* Character POSITION of SCRIPT, which has no text, is at PLACE.  Returns 0, or -1 without memory.
 */
int script_places_add(struct script_places *places, uint32_t script, uint32_t position,
                      struct script_place place);

/* Put what was added in order: all is there now. */
void script_places_close(struct script_places *places);

/* The place of character POSITION of SCRIPT. */
struct script_place script_places_find(const struct script_places *places, uint32_t script,
                                       uint32_t position);

void script_places_free(struct script_places *places);

#endif
