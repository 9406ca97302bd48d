/* See map_error.h.
 *
 * printf is not used, because it takes kilobytes of stack. strerror is not used, because it
 * translates and takes libc's locks for that.  The first error may happen in a signal handler, on a
 * small stack, or while other threads are stopped. */
#include "perfmap/map_error.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

/* Other libcs don't know __GLIBC_PREREQ; musl's strerror takes no lock, and translates by a table.
 */
#ifdef __GLIBC_PREREQ
#define HAS_ERROR_TEXTS __GLIBC_PREREQ(2, 32)
#else
#define HAS_ERROR_TEXTS 0
#endif

static const char *text_of_errno(int error)
{
#if HAS_ERROR_TEXTS
    const char *text = strerrordesc_np(error);
#else
    const char *text = strerror(error);
#endif
    return text ? text : "unknown error";
}

/* Takes text as long as there is room. */
struct error_sink {
    char *at, *end;
};

static void put(struct error_sink *sink, const char *text)
{
    while (*text && sink->at < sink->end)
        *sink->at++ = *text++;
}

static void put_decimal(struct error_sink *sink, uint64_t number)
{
    char digits[21], *first = digits + sizeof digits - 1;
    *first = '\0';
    do
        *--first = (char)('0' + number % 10);
    while (number /= 10);
    put(sink, first);
}

int pm_error_keep(struct map_error *error, int code, const char *format, ...)
{
    int error_number = errno;
    if (atomic_flag_test_and_set(&error->taken))
        return code;
    struct error_sink sink = {error->text, error->text + sizeof error->text - 1};
    char plain[2] = "";
    va_list arguments;
    va_start(arguments, format);
    for (; *format; format++) {
        if (*format != '%') {
            plain[0] = *format;
            put(&sink, plain);
        } else if (*++format == 's') {
            put(&sink, va_arg(arguments, const char *));
        } else if (*format == 'm') {
            put(&sink, text_of_errno(error_number));
        } else {
            format++; /* %ju */
            put_decimal(&sink, va_arg(arguments, uintmax_t));
        }
    }
    va_end(arguments);
    *sink.at = '\0';
    error->code = code;
    atomic_store(&error->ready, true);
    return code;
}
