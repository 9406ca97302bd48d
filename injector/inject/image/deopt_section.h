/* The deopts of an image's functions, which perfjit's views read from there. */
#ifndef PERFJIT_DEOPT_SECTION_H
#define PERFJIT_DEOPT_SECTION_H

#include "injector/inject/layout/jit_image.h"
#include "injector/log/code/deopt_text.h"

struct deopt_section {
    char *text; /* as deopt_text.h has it; NULL: there are none */
    size_t bytes;
};

/* Returns 0, or -1 without memory.  Release with deopt_section_free in either case. */
int deopt_section_make(struct deopt_section *section, const struct jit_image *image,
                       const struct jit_process *processes);

void deopt_section_free(struct deopt_section *section);

#endif
