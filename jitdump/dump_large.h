/* A group that is too large for the stage: it goes to the body at once, behind all that was in the stage.
 *
 * It is put together before any lock is taken, and gets its time and code index afterwards.  Others go on in the stage while it is written.
 * jd_writer_begin_large is in dump_writer.h.
 */
#ifndef JITDUMP_DUMP_LARGE_H
#define JITDUMP_DUMP_LARGE_H

#include "jitdump/dump_writer.h"

/* Write the group of ROOM if it is WHOLE, and let go of its memory.  Returns 0 or a negative errno. */
int jd_writer_end_large(struct dump_room *room, bool whole);

#endif
