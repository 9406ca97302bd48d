/* See given_file.h. */
#include "injector/recording/given_file.h"

#include <stdlib.h>

struct given_file given_file_of(const char *text)
{
    char *end;
    unsigned long long number = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
    if (number == 0 || *end != ':' || number > INT32_MAX)
        return (struct given_file){text, text, 0};
    return (struct given_file){text, end + 1, (uint32_t)number};
}
