/* Digits of base 16. */
#ifndef PERFJIT_HEX_DIGIT_H
#define PERFJIT_HEX_DIGIT_H

/* The value of C as a digit, in either case; -1: it is none. */
static inline int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 'a' ^ 'A';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif
