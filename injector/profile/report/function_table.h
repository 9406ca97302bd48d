/* The functions of a profile, those with most of it first. */
#ifndef PERFJIT_FUNCTION_TABLE_H
#define PERFJIT_FUNCTION_TABLE_H

#include "injector/profile/report/report_view.h"

/* The numbers of all functions that have any of VIEW's profile, only of JIT code if VIEW says so.
 * They are sorted by self, then by total; with by_total the other way.  *COUNT is set to their
 * number.  NULL without memory; the caller frees them. */
uint32_t *function_table_order(const struct report_view *view, size_t *count);

/* Put them as a table.  Returns 0, or -1 without memory. */
int function_table_put(const struct report_view *view);

/* Put those whose name is NAME, or if there is none those whose name has that in it, each with its
 * callers (or CALLEES), and theirs as lines of shares.  Returns how many there are, or -1 without
 * memory. */
int function_table_put_calls(const struct report_view *view, const char *name, bool callees);

#endif
