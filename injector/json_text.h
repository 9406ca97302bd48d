/* Text from files, as a JSON string on standard output. */
#ifndef PERFJIT_JSON_TEXT_H
#define PERFJIT_JSON_TEXT_H

#include <stddef.h>

/* Put the SIZE bytes at TEXT, in quotes.  They may be anything: what is not printable UTF-8 (printable_text.h) is escaped, so
 * that a line stays a line; each byte that is no UTF-8 becomes U+FFFD. */
void json_text_put(const char *text, size_t size);

#endif
