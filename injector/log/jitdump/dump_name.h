/* The names of dumps.  Most are jit-<pid>.dump.  JSC in Bun writes one for each thread,
 * jit-<tid>-<pid>.dump, or without a directory of its own jit-<tid>-<pid>-XXXXXX.  The map of a
 * removed dump has " (deleted)" after the name. */
#ifndef PERFJIT_DUMP_NAME_H
#define PERFJIT_DUMP_NAME_H

#include <stdbool.h>
#include <stdint.h>

/* The pid in the name at the end of PATH, or before " (deleted)" there.  Returns false if PATH is
 * not named so. */
bool jit_dump_name_pid(const char *path, uint32_t *pid);

/* Whether PATH is named so: a map of it is a piece of a dump and not of the program. */
bool jit_dump_has_name(const char *path);

/* Whether STAGE holds the records that libjitdump will add to the dump BODY.  It is the file of its
 * name in the directory "stage" beside it (jitdump/dump/dump_place.h). */
bool jit_dump_name_is_stage_of(const char *stage, const char *body);

/* Whether PATH may be such a stage. */
bool jit_dump_name_is_stage(const char *path);

/* The path of the stage of BODY, to be freed.  Returns NULL without memory. */
char *jit_dump_name_stage(const char *body);

#endif
