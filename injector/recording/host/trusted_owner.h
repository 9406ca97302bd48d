/* Decides which users' files are trusted: any user can put a file where a runtime would have put
 * its own. */
#ifndef PERFJIT_TRUSTED_OWNER_H
#define PERFJIT_TRUSTED_OWNER_H

#include <stdbool.h>
#include <stdint.h>

/* Whether UID is root, the user who runs this program (also through sudo), or RECORDING_OWNER, the
 * owner of the recording; -1: not known. */
bool owner_is_trusted(uint32_t uid, int64_t recording_owner);

#endif
