/* The digits of base64: of whole bytes in a data: URL, and of the numbers of five bits and more in
 * source maps and in the flame graph's page. */
#ifndef PERFJIT_BASE64_H
#define PERFJIT_BASE64_H

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* The value of LETTER; -1: it is no digit. */
static inline int base64_value(char letter)
{
    return letter >= 'A' && letter <= 'Z'   ? letter - 'A'
           : letter >= 'a' && letter <= 'z' ? letter - 'a' + 26
           : letter >= '0' && letter <= '9' ? letter - '0' + 52
           : letter == '+'                  ? 62
           : letter == '/'                  ? 63
                                            : -1;
}

#endif
