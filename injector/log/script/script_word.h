/* Words of a script's text, and the spaces around them. */
#ifndef PERFJIT_SCRIPT_WORD_H
#define PERFJIT_SCRIPT_WORD_H

#include "injector/log/script/script_file.h"

/* Part of a text: a word, or nothing. */
struct script_part {
    const struct script_file *text;
    size_t from, to;
};

/* The unit at AT, or 0 behind the end. */
unsigned script_unit(const struct script_file *text, size_t at);

/* Whether UNIT is one of the ASCII ones; 0 is none. */
bool script_unit_is_one_of(unsigned unit, const char *ascii);

size_t script_behind_spaces(const struct script_file *text, size_t at);

/* Where the spaces in front of AT begin. */
size_t script_before_spaces(const struct script_file *text, size_t at);

/* The word that begins at AT. */
struct script_part script_word_at(const struct script_file *text, size_t at);

/* The word that ends at AT. */
struct script_part script_word_before(const struct script_file *text, size_t at);

/* Whether WORD is the ASCII WANTED, of BYTES bytes; or one of a list that ends with NULL. */
bool script_word_is_of(struct script_part word, const char *wanted, size_t bytes);
bool script_word_is(struct script_part word, const char *wanted);
bool script_word_is_any(struct script_part word, const char *const *wanted);

/* Whether a "=" that assigns stands at AT: of "=", "||=", "&&=" or "??=", the last one. */
bool script_assigns(const struct script_file *text, size_t at);

#endif
