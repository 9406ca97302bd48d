/* A flame graph as a picture, to embed: SVG without script, each box with its text as a title. */
#ifndef PERFJIT_FLAMEGRAPH_SVG_H
#define PERFJIT_FLAMEGRAPH_SVG_H

#include "injector/profile/flamegraph/flamegraph_page.h"

/* Write it to STREAM.  Returns 0, or -1 without memory. */
int flamegraph_svg_write(const struct flamegraph_request *request, FILE *stream);

#endif
