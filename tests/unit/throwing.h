/* What needs C++: a function that throws and one that catches, for code between the two. */
#ifndef PERFJIT_TEST_THROWING_H
#define PERFJIT_TEST_THROWING_H

#ifdef __cplusplus
extern "C" {
#endif

/* Never returns to its caller. */
void throw_number(long number);

/* Call CODE with NUMBER.  Returns what was thrown, or -1: nothing was. */
long catch_number(void (*code)(long number), long number);

#ifdef __cplusplus
}
#endif

#endif
