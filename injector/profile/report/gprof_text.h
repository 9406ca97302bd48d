/* The two tables of gprof: the flat profile, and the call graph. */
#ifndef PERFJIT_GPROF_TEXT_H
#define PERFJIT_GPROF_TEXT_H

#include "injector/profile/report/report_view.h"

/* Put both.  Returns 0, or -1 without memory. */
int gprof_text_put(const struct report_view *view);

#endif
