/* Scripts as people wrote them: the source maps of all scripts that code is of.
 *
 * A script that a compiler, bundler or minifier wrote ends in
 *
 *     //# sourceMappingURL=app.js.map                       a file, from the script's directory
 *     //# sourceMappingURL=data:application/json;base64,..  the map itself
 *
 * Then its places and names are shown as in the files that it was made of.  A script without such a
 * line is what people wrote.  A map that is not there, or can't be read, is told once.
 *
 * A function's name is the one that it has where it is written: in the text that the map has, or in
 * the file, if that is not newer than the script.  Without the text each identifier is that of the
 * map where the script has it, in front of the function's first character.  Else the script's name
 * stays. */
#ifndef PERFJIT_SOURCE_MAPS_H
#define PERFJIT_SOURCE_MAPS_H

#include "injector/arrays/number_map.h"
#include "injector/findings/findings.h"
#include "injector/log/lines/line_text.h"

#include <stddef.h>
#include <stdint.h>

struct source_map_options {
    const char *directory; /* where maps are looked for as well, by the scripts' names; or NULL */
    const char *root;      /* below which scripts are, or NULL */
    bool none;
};

struct mapped_script;

struct source_maps {
    struct source_map_options options;
    struct findings *findings;    /* while scripts are read the first time; or NULL */
    struct mapped_script *newest; /* that was asked for */
    struct mapped_script **scripts;
    size_t script_count, script_capacity;
    struct number_map by_file; /* scripts, by a hash of their names */
    char **names;              /* that were made */
    size_t name_count, name_capacity;
    struct number_map by_name; /* those, by a hash of what they stand for */
};

struct mapped_place {
    struct line_text file;
    uint32_t line, column; /* from 1; column 0: not known */
};

/* The BYTES bytes at TEXT are what ran for the script FILE, whatever that is now.  The first text
 * of a file counts.  Returns 0, or -1 without memory. */
int source_maps_give(struct source_maps *maps, struct line_text file, const char *text,
                     size_t bytes);

/* Replace *PLACE by where it comes from.  Returns whether a map has it. */
bool source_maps_place(struct source_maps *maps, struct mapped_place *place);

/* The name that is shown for NAME, "JS:*NAME FILE:LINE:COLUMN": NAME itself, or one that lives as
 * long as MAPS.  Its text is NULL without memory. */
struct line_text source_maps_name(struct source_maps *maps, struct line_text name);

void source_maps_free(struct source_maps *maps);

#endif
