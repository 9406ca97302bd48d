/* See progress.h. */
#include "injector/findings/progress.h"

#include "injector/text/plural.h"
#include "injector/text/printable_text.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STEPS_BETWEEN_LOOKS = 64 };

static const uint64_t SECOND_NS = 1000000000, REDRAW_NS = 100000000;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

void progress_open(struct progress *progress, FILE *stream)
{
    bool terminal = isatty(fileno(stream));
    *progress = (struct progress){
        .stream = terminal ? stream : NULL, .delay_ns = SECOND_NS, .run_start_ns = now_ns()};
}

void progress_begin(struct progress *progress, const char *what, const char *path,
                    uint64_t total_bytes)
{
    const char *slash = strrchr(path, '/');
    if (!progress->stream)
        return;
    progress_end(progress);
    snprintf(progress->what, sizeof progress->what, "%s%s%s", what, *path ? " " : "",
             slash ? slash + 1 : path);
    progress->start_ns = now_ns();
    progress->functions = progress->bytes = 0;
    progress->total_bytes = total_bytes;
}

static void draw(struct progress *progress, uint64_t now)
{
    double seconds = (double)(now - progress->start_ns + 1) / (double)SECOND_NS;
    double speed = (double)progress->bytes / seconds;
    uint64_t left =
        progress->total_bytes > progress->bytes ? progress->total_bytes - progress->bytes : 0;
    fputs("\r\033[Kperfjit: ", progress->stream);
    printable_put(progress->stream, progress->what);
    fprintf(progress->stream, ": %" PRIu64 " function%s, %.0f MB/s", progress->functions,
            plural(progress->functions), speed / 1e6);
    if (speed > 0)
        fprintf(progress->stream, ", %.0f s left", (double)left / speed);
    fflush(progress->stream);
    progress->visible = true;
    progress->shown_ns = now;
}

void progress_step(struct progress *progress, uint64_t functions, uint64_t bytes)
{
    if (!progress->what[0])
        return;
    progress->functions += functions;
    progress->bytes += bytes;
    if (++progress->unlooked < STEPS_BETWEEN_LOOKS)
        return;
    progress->unlooked = 0;
    uint64_t now = now_ns();
    if (now - progress->run_start_ns >= progress->delay_ns && now - progress->shown_ns >= REDRAW_NS)
        draw(progress, now);
}

void progress_wipe(struct progress *progress)
{
    if (!progress->visible)
        return;
    fprintf(progress->stream, "\r\033[K");
    fflush(progress->stream);
    progress->visible = false;
}

void progress_end(struct progress *progress)
{
    progress_wipe(progress);
    progress->what[0] = '\0';
}
