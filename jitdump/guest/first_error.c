/* See first_error.h. */
#include "jitdump/guest/first_error.h"

#include <stdarg.h>
#include <stdio.h>

void jd_error_init(struct first_error *error)
{
    atomic_flag_clear(&error->taken);
    atomic_init(&error->ready, false);
    error->code = 0;
    error->text[0] = '\0';
}

int jd_error_keep(struct first_error *error, int code, const char *format, ...)
{
    if (atomic_flag_test_and_set(&error->taken))
        return code;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    error->code = code;
    atomic_store_explicit(&error->ready, true, memory_order_release);
    return code;
}

const char *jd_error_text(const struct first_error *error)
{
    return atomic_load_explicit(&error->ready, memory_order_acquire) ? error->text : "";
}

int jd_error_code(const struct first_error *error)
{
    return atomic_load_explicit(&error->ready, memory_order_acquire) ? error->code : 0;
}
