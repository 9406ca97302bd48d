/* perfjit diff as Markdown, for the summary of a job or a comment. */
#ifndef PERFJIT_DIFF_MARKDOWN_H
#define PERFJIT_DIFF_MARKDOWN_H

#include "injector/compare/diff_report.h"

/* The limit of GitHub for a job's summary.  A longer summary is refused as a whole. */
enum { MARKDOWN_MOST_BYTES = 1024 * 1024 };

/* Put less than MOST_BYTES: the headline first; of functions as many as have room, and how many
 * are left out.  Returns 0, or -1 without memory. */
int diff_markdown_put(FILE *stream, const struct diff_report *report, size_t most_bytes);

/* Put TEXT, which is UTF-8 without control characters, as code: nothing in it is markup, a table's
 * border, or a mention of a user. */
void diff_markdown_put_code(FILE *stream, const char *text);

#endif
