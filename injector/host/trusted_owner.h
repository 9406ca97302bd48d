/* Whose files are believed: anybody can put a file where a runtime would have put its own. */
#ifndef PERFJIT_FILE_OWNER_H
#define PERFJIT_FILE_OWNER_H

#include <stdbool.h>
#include <stdint.h>

/* The user who runs this program, if through sudo; -1: nobody else than the effective one. */
int64_t file_owner_sudo_user(void);

/* Whether UID is root, whoever runs this program (through sudo, too), or the owner of the recording
 * at RECORDING. */
bool file_owner_is_trusted(uint32_t uid, const char *recording);

#endif
