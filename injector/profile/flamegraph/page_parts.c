/* See page_parts.h.  The Makefile knows that this file is made of those in page/. */
#include "injector/profile/flamegraph/page_parts.h"

#include <stddef.h>

#define PART(symbol, file)                                                                         \
    __asm__(".pushsection .rodata\n.global " #symbol "\n.hidden " #symbol "\n" #symbol             \
            ":\n.incbin \"injector/profile/flamegraph/page/" file "\"\n.byte 0\n.popsection\n")

PART(page_begin, "page.html");
PART(page_end, "page_end.html");
PART(page_style, "style.css");
PART(page_script_inflate, "inflate.js");
PART(page_script_profile, "profile.js");
PART(page_script_tree, "tree.js");
PART(page_script_tiers, "tiers.js");
PART(page_script_filter, "filter.js");
PART(page_script_moments, "moments.js");
PART(page_script_strip, "strip.js");
PART(page_script_waits, "waits.js");
PART(page_script_spans, "spans.js");
PART(page_script_difference, "difference.js");
PART(page_script_colours, "colours.js");
PART(page_script_format, "format.js");
PART(page_script_search, "search.js");
PART(page_script_canvas, "canvas.js");
PART(page_script_page, "page.js");

extern const char page_script_inflate[], page_script_profile[], page_script_tree[],
    page_script_tiers[], page_script_filter[], page_script_moments[], page_script_strip[],
    page_script_waits[], page_script_spans[], page_script_difference[], page_script_colours[],
    page_script_format[], page_script_search[], page_script_canvas[], page_script_page[];

const char *const page_scripts[] = {
    page_script_inflate, page_script_profile,    page_script_tree,    page_script_tiers,
    page_script_filter,  page_script_moments,    page_script_strip,   page_script_waits,
    page_script_spans,   page_script_difference, page_script_colours, page_script_format,
    page_script_search,  page_script_canvas,     page_script_page,    NULL};
