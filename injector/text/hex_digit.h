/* Digits of base 16. */
#ifndef PERFJIT_HEX_DIGIT_H
#define PERFJIT_HEX_DIGIT_H

/* The value of C as a digit, in either case; -1: it is none.  By a table: in the addresses of a
 * log, of which a large one has millions, no branch would be foreseen. */
static inline int hex_digit(char c)
{
    static const signed char above[256] = {
        ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,
        ['6'] = 7,  ['7'] = 8,  ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
        ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16, ['A'] = 11, ['B'] = 12,
        ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
    };
    return above[(unsigned char)c] - 1;
}

#endif
