/* CHECK(CONDITION), for the producers in C++: else the program ends with status 1, and says what is
 * not so, and where. */
#ifndef CXX_CHECK_HPP
#define CXX_CHECK_HPP

#include <cstdio>
#include <cstdlib>

[[noreturn]] inline void check_failed(const char *file, int line, const char *what)
{
    std::fprintf(stderr, "%s: line %d: %s\n", file, line, what);
    std::exit(EXIT_FAILURE);
}

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            check_failed(__FILE__, __LINE__, #condition);                                          \
    } while (false)

#endif
