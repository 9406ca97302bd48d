/* The parts of the page that are the same for all recordings: the files in page/, as they are. */
#ifndef PERFJIT_PAGE_PARTS_H
#define PERFJIT_PAGE_PARTS_H

/* NUL-terminated. */
extern const char page_begin[], page_end[], page_style[];

/* The script's, in the order in which they stand in the page, up to NULL. */
extern const char *const page_scripts[];

#endif
