/* Where print() goes: to stdout, or into memory, to be compared (--check). */
#ifndef TINYJIT_OUTPUT_H
#define TINYJIT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct output {
    bool keep;
    int64_t *values; /* that were kept */
    size_t count, capacity;
};

void output_add(struct output *output, int64_t value);
void output_free(struct output *output);

#endif
