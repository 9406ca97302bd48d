/* See export_format.h. */
#include "injector/profile/export/export_format.h"

#include <string.h>

const struct export_format export_formats[] = {
    {"folded", "flamegraph.pl, speedscope, inferno", ".folded", false, export_folded},
    {"pprof", "go tool pprof, pprof.me, Grafana Pyroscope", ".pb.gz", true, export_pprof},
    {"firefox", "profiler.firefox.com", ".json", true, export_firefox},
    {"speedscope", "speedscope.app", ".speedscope.json", false, export_speedscope},
    {"callgrind", "kcachegrind, callgrind_annotate", ".callgrind", true, export_callgrind},
    {0}};

const struct export_format *export_format_named(const char *name)
{
    const struct export_format *format = export_formats;
    while (format->name && strcmp(format->name, name))
        format++;
    return format->name ? format : NULL;
}
