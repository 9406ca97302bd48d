/* See output.h. */
#include "examples/tinyjit/output.h"

#include "examples/tinyjit/memory.h"

#include <inttypes.h>

void output_add(struct output *output, int64_t value)
{
    if (!output->keep) {
        printf("%" PRId64 "\n", value);
        return;
    }
    output->values =
        array_room(output->values, output->count, &output->capacity, sizeof *output->values);
    output->values[output->count++] = value;
}

void output_free(struct output *output)
{
    free(output->values);
}
