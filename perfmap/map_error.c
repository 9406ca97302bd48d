/* See map_error.h. */
#include "perfmap/map_error.h"

#include <stdarg.h>
#include <stdio.h>

int pm_error_keep(struct map_error *error, int code, const char *format, ...)
{
    if (atomic_flag_test_and_set(&error->taken))
        return code;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    error->code = code;
    atomic_store(&error->ready, true);
    return code;
}
