/* Where directories for one run go. */
#ifndef PERFJIT_TEMPORARY_PLACE_H
#define PERFJIT_TEMPORARY_PLACE_H

/* $TMPDIR, if it is an absolute path without separators; else /tmp.  Runtimes and gdb get paths in
 * it among others or in quotes; PHP_INI_SCAN_DIR has no way to quote a colon. */
const char *temporary_place(void);

/* The same for files that are mapped executable, as dumps are: if that is mounted noexec, the first
 * of the other places that is not.  Valid until the next call. */
const char *temporary_place_to_map(void);

/* In this order: /tmp, /var/tmp, the current directory. */
enum other_place { OTHER_PLACE_HERE = 2, OTHER_PLACES };

/* The other place of that NUMBER, or NULL.  Valid until the next call. */
const char *other_place_to_map(enum other_place number);

#endif
