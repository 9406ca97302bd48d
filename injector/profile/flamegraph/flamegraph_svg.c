/* See flamegraph_svg.h. */
#include "injector/profile/flamegraph/flamegraph_svg.h"

#include "injector/profile/flamegraph/markup.h"
#include "injector/profile/report/short_name.h"
#include "injector/text/character.h"
#include "injector/text/printable_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ROW = 18, TOP = 30, LETTER = 7 };
static const double least_width = 0.3;

/* Where the boxes are: by node.  The deepest is that of those that are drawn. */
struct svg_layout {
    uint64_t *start, *used;
    uint32_t *depth, deepest;
};

static double width_of(const struct flamegraph_request *request, size_t node)
{
    return (double)request->totals->below_node[node] * request->width /
           (double)request->totals->all;
}

static int make_layout(struct svg_layout *layout, const struct flamegraph_request *request)
{
    const struct call_profile *profile = request->profile;
    layout->start = calloc(profile->node_count + 1, sizeof *layout->start);
    layout->used = calloc(profile->node_count + 1, sizeof *layout->used);
    layout->depth = calloc(profile->node_count + 1, sizeof *layout->depth);
    if (!layout->start || !layout->used || !layout->depth)
        return -1;
    for (size_t i = 1; i < profile->node_count; i++) {
        uint32_t parent = profile->nodes[i].parent;
        uint64_t weight = request->totals->below_node[i];
        layout->start[i] = layout->start[parent] + layout->used[parent];
        layout->used[parent] += weight;
        layout->depth[i] = layout->depth[parent] + 1;
        if (width_of(request, i) >= least_width && layout->depth[i] > layout->deepest)
            layout->deepest = layout->depth[i];
    }
    return 0;
}

static const char *colour_of(const struct call_frame *frame)
{
    static const char *const colours[FRAME_KINDS] = {[FRAME_JIT] = "#8fd08a",
                                                     [FRAME_INTERPRETER] = "#e8cf6c",
                                                     [FRAME_NATIVE] = "#9dbfdd",
                                                     [FRAME_KERNEL] = "#eab08a",
                                                     [FRAME_UNKNOWN] = "#c9c6c0"};
    return frame->inlined && frame->kind == FRAME_JIT ? "#c4e8b4" : colours[frame->kind];
}

static void put_title(const struct flamegraph_request *request, FILE *stream,
                      const struct call_frame *frame, uint64_t weight)
{
    const struct call_profile *profile = request->profile;
    const char *file = call_profile_string(profile, frame->file);
    const char *tier = call_profile_string(profile, frame->tier);
    fputs("<title>", stream);
    markup_put(stream, call_profile_string(profile, frame->name));
    fputs(" (", stream);
    markup_put(stream, *file ? file : call_profile_string(profile, frame->module));
    if (*file && frame->line)
        fprintf(stream, ":%" PRIu32, frame->line);
    if (*file && frame->column)
        fprintf(stream, ":%" PRIu32, frame->column);
    fprintf(stream, ") %s%s", frame_kind_name(frame->kind), *tier ? " " : "");
    markup_put(stream, tier);
    fprintf(stream, "%s, %.2f %%</title>", frame->inlined ? " inlined" : "",
            100.0 * (double)weight / (double)request->totals->all);
}

/* As much of TEXT as has room in LETTERS of them. */
static void put_text(FILE *stream, const char *text, size_t letters, double x, double y)
{
    char part[1024];
    size_t count = 0, bytes = 0, left = strlen(text), next;
    while (left && count < letters && (next = utf8_bytes(text + bytes, left)) != 0 &&
           bytes + next < sizeof part) {
        count++;
        bytes += next;
        left -= next;
    }
    memcpy(part, text, bytes);
    part[bytes] = '\0';
    fprintf(stream, "<text x=\"%.1f\" y=\"%.1f\">", x, y);
    markup_put(stream, part);
    fputs(left ? "…</text>" : "</text>", stream);
}

static void put_name(FILE *stream, const char *name, size_t letters, double x, double y)
{
    char text[1024];
    put_text(stream, strlen(name) > letters ? short_name(name, text, sizeof text) : name, letters,
             x, y);
}

static void put_box(const struct flamegraph_request *request, const struct svg_layout *layout,
                    uint32_t node, FILE *stream)
{
    const struct call_frame *frame = &request->profile->frames[request->profile->nodes[node].frame];
    const double scale = (double)request->width / (double)request->totals->all;
    const uint64_t weight = request->totals->below_node[node];
    const double x = (double)layout->start[node] * scale, width = width_of(request, node);
    const double y = TOP + (double)(layout->deepest - layout->depth[node]) * ROW;
    if (width < least_width)
        return;
    fprintf(stream, "<g><rect x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>", x,
            y, width > 0.6 ? width - 0.5 : width, ROW - 1, colour_of(frame));
    put_title(request, stream, frame, weight);
    if (width > 4 * LETTER) {
        char *name = printable_copy(call_profile_string(request->profile, frame->name));
        put_name(stream, name ? name : "", (size_t)(width / LETTER) - 1, x + 3, y + ROW - 5);
        free(name);
    }
    fputs("</g>\n", stream);
}

static uint32_t lack_rows(const struct flamegraph_request *request)
{
    uint32_t rows = 0;
    for (const char *at = request->lacks; at && *at; at++)
        rows += *at == '\n';
    return rows;
}

/* Below the graph, the first line at Y. */
static void put_lacks(const struct flamegraph_request *request, uint32_t y, FILE *stream)
{
    const char *line = request->lacks, *end;
    for (; line && (end = strchr(line, '\n')); line = end + 1, y += ROW) {
        char *text = strndup(line, (size_t)(end - line));
        if (text)
            put_text(stream, text, SIZE_MAX, 3, y);
        free(text);
    }
}

int flamegraph_svg_write(const struct flamegraph_request *request, FILE *stream)
{
    struct svg_layout layout = {.deepest = 0};
    int result = make_layout(&layout, request);
    if (!result) {
        fprintf(stream,
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg "
                "xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %u %" PRIu32
                "\" font-family=\"sans-serif\" font-size=\"12\">\n"
                "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
                "<text x=\"3\" y=\"18\" font-weight=\"bold\">",
                request->width, TOP + (layout.deepest + 1 + lack_rows(request)) * ROW);
        markup_put(stream, request->title);
        fputs("</text>\n", stream);
        put_lacks(request, TOP + (layout.deepest + 2) * ROW - 5, stream);
        for (uint32_t i = 1; i < request->profile->node_count; i++)
            put_box(request, &layout, i, stream);
        fputs("</svg>\n", stream);
    }
    free(layout.start);
    free(layout.used);
    free(layout.depth);
    return result;
}
