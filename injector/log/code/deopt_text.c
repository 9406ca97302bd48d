/* See deopt_text.h. */
#include "injector/log/code/deopt_text.h"

#include <inttypes.h>
#include <string.h>

struct told_deopt told_deopt_of(const struct code_log *log, const struct code_deopt *deopt,
                                uint32_t pid)
{
    const struct jit_function *function = &log->functions[deopt->function];
    return (struct told_deopt){.time_ns = deopt->time_ns,
                               .pid = pid,
                               .kind = line_text_of(deopt->kind),
                               .place = line_text_of(deopt->place),
                               .reason = line_text_of(deopt->reason),
                               .function = {function->name, function->name_bytes}};
}

static void put(FILE *stream, char before, struct line_text text)
{
    putc(before, stream);
    if (text.bytes)
        fwrite(text.text, 1, text.bytes, stream);
}

void deopt_text_put(FILE *stream, const struct told_deopt *deopt)
{
    fprintf(stream, "%" PRIu64 " %" PRIu32, deopt->time_ns, deopt->pid);
    put(stream, '\t', deopt->kind);
    put(stream, '\t', deopt->place);
    put(stream, '\t', deopt->reason);
    put(stream, '\t', deopt->function);
    putc('\n', stream);
}

/* Take what is in front of END, which is in TEXT, off it; all of it if END is not there. */
static struct line_text take_until(struct line_text *text, char end)
{
    const char *at = text->bytes ? memchr(text->text, end, text->bytes) : NULL;
    const struct line_text taken = {text->text, at ? (uint32_t)(at - text->text) : text->bytes};
    const uint32_t used = taken.bytes + (at != NULL);
    *text = (struct line_text){text->text + used, text->bytes - used};
    return taken;
}

static bool read_number(struct line_text text, uint64_t most, uint64_t *number)
{
    enum { BASE = 10 };
    *number = 0;
    for (uint32_t i = 0; i < text.bytes; i++) {
        const unsigned digit = (unsigned)(text.text[i] - '0');
        if (digit >= BASE || *number > (most - digit) / BASE)
            return false;
        *number = *number * BASE + digit;
    }
    return text.bytes > 0;
}

int deopt_text_next(struct line_text *text, struct told_deopt *deopt)
{
    uint64_t pid;
    if (!text->bytes)
        return -1;
    struct line_text line = take_until(text, '\n');
    const struct line_text time = take_until(&line, ' ');
    if (!read_number(time, UINT64_MAX, &deopt->time_ns) ||
        !read_number(take_until(&line, '\t'), UINT32_MAX, &pid))
        return 0;
    deopt->pid = (uint32_t)pid;
    deopt->kind = take_until(&line, '\t');
    deopt->place = take_until(&line, '\t');
    deopt->reason = take_until(&line, '\t');
    deopt->function = line;
    return line.bytes > 0;
}
