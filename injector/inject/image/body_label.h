/* What the symbol in front of a body says, where several share one symbol: perf annotate
 * shows it.
 *
 *     body 2 of 3, tier2, loaded at 12345.678901
 *
 * The time is on the recording's clock, as perf script prints it.
 */
#ifndef PERFJIT_BODY_LABEL_H
#define PERFJIT_BODY_LABEL_H

#include "injector/inject/layout/image_plan.h"

/* Put into TEXT what is said of body NUMBER, from 0 on, of ROW, without a NUL.  Returns its length.
 */
size_t body_label(char text[BODY_LABEL_BYTES], const struct jit_image *image,
                  const struct image_row *row, uint32_t number);

#endif
