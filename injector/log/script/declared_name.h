/* The name that a function has where it is written, as V8 would call it: "total" of
 *
 *     function total(n) {     total(n) {     const total = n =>     { total: function (n)
 *
 * and "a.total" of "a.prototype.total = function (n)".  Only what stands directly around the place
 * is looked at: no text is parsed. */
#ifndef PERFJIT_DECLARED_NAME_H
#define PERFJIT_DECLARED_NAME_H

#include "injector/log/script/script_file.h"

enum { DECLARED_NAME_BYTES = 256 };

/* Put the name into NAME.  LINE and COLUMN, from 0: of the function, its name or its parameters.
 * IS_NAMED: it has a name in what was made of the text, so that one that stands at the place is its
 * own.  False: there is no name, or none that is sure. */
bool declared_name(const struct script_file *text, uint32_t line, uint32_t column, bool is_named,
                   char name[DECLARED_NAME_BYTES]);

#endif
