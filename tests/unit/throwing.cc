/* See throwing.h. */
#include "tests/unit/throwing.h"

void throw_number(long number)
{
    throw number;
}

long catch_number(void (*code)(long number), long number)
{
    try {
        code(number);
    } catch (long thrown) {
        return thrown;
    }
    return -1;
}
