/* See body_label.h. */
#include "injector/inject/image/body_label.h"

#include "injector/inject/layout/tier_mark.h"

#include <inttypes.h>
#include <stdio.h>

enum { NS_PER_S = 1000000000, NS_PER_US = 1000 };

size_t body_label(char text[BODY_LABEL_BYTES], const struct jit_image *image,
                  const struct image_row *row, uint32_t number)
{
    size_t at = row->first + (size_t)number;
    const struct jit_function *function = image->bodies[at].function;
    uint64_t time_ns = image->bodies[at].loaded_ns;
    char tier[TIER_TEXT_BYTES];
    tier_mark_text(function->name, tier_mark_of(function->name, function->name_bytes), tier);
    int bytes = snprintf(text, BODY_LABEL_BYTES,
                         "body %" PRIu32 " of %" PRIu32 "%s%s, loaded at %" PRIu64 ".%06" PRIu64,
                         number + 1, row->count, *tier ? ", " : "", tier, time_ns / NS_PER_S,
                         time_ns % NS_PER_S / NS_PER_US);
    return (size_t)bytes;
}
