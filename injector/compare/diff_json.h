/* perfjit diff for other programs: docs/diff.schema.json describes the fields. */
#ifndef PERFJIT_DIFF_JSON_H
#define PERFJIT_DIFF_JSON_H

#include "injector/compare/diff_report.h"

/* A change in the meaning of fields, or a field left out, needs another version.  A reader skips
 * fields that it does not know. */
enum { DIFF_JSON_VERSION = 1 };

/* Put all of REPORT: every function, also those that the text leaves out. */
void diff_json_put(FILE *stream, const struct diff_report *report);

#endif
