/* Read a struct jitdump_options of any version, and the environment's PERFJIT and JITDUMPDIR.
 */
#ifndef JITDUMP_OPEN_OPTIONS_H
#define JITDUMP_OPEN_OPTIONS_H

#include "jitdump/guest/first_error.h"
#include "jitdump/jitdump.h"
#include "jitdump/writer/dump_file.h"

#include <stdbool.h>

/* Read and check GIVEN, or NULL.  Returns 0 or a negative errno; OPTIONS can be used in either
 * case. */
int jd_options_read(struct jitdump_options *options, const struct jitdump_options *given);

/* Returns 0, or -EINVAL if PERFJIT has a word that nobody knows, or a ring= without a size; kept in
 * ERROR unless that is NULL. */
int jd_options_check_words(struct first_error *error);

/* Whether a dump is wanted from the start. */
bool jd_options_want_dump(const struct jitdump_options *options);

/* Whether a dump may be requested later.  A set-user-ID program accepts no requests, because it has
 * rights that the requesting user may not have. */
bool jd_options_can_be_asked(const struct jitdump_options *options);

/* Set KIND, for a dump that is opened now or later.  Returns 0 or a negative errno, kept in ERROR.
 */
int jd_options_kind(struct dump_kind *kind, const struct jitdump_options *options,
                    struct first_error *error);

/* Whether the unwind tables of functions are to be checked. */
bool jd_options_want_check(void);

/* DIR, or where the environment says, from the root; to be freed.  Returns NULL with errno. */
char *jd_options_dir(const char *dir);

#endif
