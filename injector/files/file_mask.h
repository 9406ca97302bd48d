/* The bits that new files of this process are made without. */
#ifndef PERFJIT_FILE_MASK_H
#define PERFJIT_FILE_MASK_H

#include <sys/stat.h>

/* umask(2) tells it only by setting another. */
static inline mode_t file_mask(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return mask;
}

#endif
