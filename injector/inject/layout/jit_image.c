/* See jit_image.h. */
#include "injector/inject/layout/jit_image.h"

#include <stdlib.h>

void image_plan_free(struct image_plan *plan)
{
    for (size_t i = 0; i < plan->process_count; i++) {
        free(plan->processes[i].places);
        free(plan->processes[i].bodies);
    }
    free(plan->processes);
    free(plan->images);
    free(plan->bodies);
    free(plan->rows);
}
