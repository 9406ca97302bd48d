/* Where directories for one run go. */
#ifndef PERFJIT_TEMPORARY_PLACE_H
#define PERFJIT_TEMPORARY_PLACE_H

/* $TMPDIR, if it is an absolute path without separators; else /tmp.  Runtimes and gdb get paths in
 * it among others or in quotes; PHP_INI_SCAN_DIR has no way to quote a colon. */
const char *temporary_place(void);

/* The same for files that are mapped executable, as dumps are: if that is mounted noexec, /tmp,
 * /var/tmp or the current directory, the first that is not.  Valid until the next call. */
const char *temporary_place_to_map(void);

#endif
