/* See inline_log.h. */
#include "examples/tinyjit/inline_log.h"

#include "examples/tinyjit/memory.h"

#include <inttypes.h>

void inline_log_begin(FILE *log)
{
    fputs("# Where tinyjit's instructions come from; the innermost function is the first.\n"
          "# code\tADDRESS\tSIZE\tNAME\n"
          "# at\tOFFSET\tFUNCTION\tFILE\tLINE\tCOLUMN\t...\n",
          log);
}

char *inline_log_name(const struct code_inline *call)
{
    char *name = NULL;
    int length = asprintf(&name, "tj::%s", call->function->name);
    return memory_or_exit(length < 0 ? NULL : name);
}

static void write_place(FILE *log, const char *function, const char *script, struct position at)
{
    fprintf(log, "\t%s\t%s\t%u\t%u", function, script, at.line, at.column);
}

static void write_line(FILE *log, const struct code *code, const struct code_line *line,
                       const char *script)
{
    struct position at = line->at;
    fprintf(log, "at\t%u", line->offset);
    for (uint32_t i = line->inlined; i != (uint32_t)NOT_INLINED; i = code->inlines[i].parent) {
        char *name = inline_log_name(&code->inlines[i]);
        write_place(log, name, script, at);
        at = code->inlines[i].call;
        free(name);
    }
    write_place(log, code->name, script, at);
    fputc('\n', log);
}

void inline_log_write(FILE *log, const struct code *code, const char *script)
{
    fprintf(log, "code\t%" PRIx64 "\t%zu\t%s\n", (uint64_t)(uintptr_t)code->addr, code->size,
            code->name);
    for (size_t i = 0; i < code->line_count; i++)
        write_line(log, code, &code->lines[i], script);
}
