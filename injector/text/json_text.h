/* Values from files, as JSON on standard output. */
#ifndef PERFJIT_JSON_TEXT_H
#define PERFJIT_JSON_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Put the SIZE bytes at TEXT, in quotes.  They may be anything: what is not printable UTF-8
 * (printable_text.h) is escaped, so that a line is not broken; each byte that is not UTF-8 becomes
 * U+FFFD. */
void json_text_put(const char *text, size_t size);

/* Put VALUE: a number up to 2^53, which every reader of JSON has exactly, and above that a string
 * of its decimal digits, which most would round as a number. */
void json_number_put(uint64_t value);

#endif
