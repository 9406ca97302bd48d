/* See deopt_section.h. */
#include "injector/inject/image/deopt_section.h"

#include <stdlib.h>

/* By function of PROCESS: whether IMAGE has its code.  NULL without memory. */
static bool *find_functions(const struct jit_image *image, const struct jit_process *processes,
                            uint32_t process)
{
    bool *has = calloc(processes[process].log.function_count + 1, sizeof *has);
    for (size_t i = 0; has && i < image->body_count; i++)
        if (image->bodies[i].process == process &&
            image->bodies[i].number < processes[process].log.function_count)
            has[image->bodies[i].number] = true;
    return has;
}

static int put_process(FILE *stream, const struct jit_image *image,
                       const struct jit_process *processes, uint32_t process)
{
    const struct code_log *log = &processes[process].log;
    bool *has = find_functions(image, processes, process);
    for (size_t i = 0; has && i < log->deopt_count; i++) {
        if (!has[log->deopts[i].function])
            continue;
        const struct told_deopt deopt = told_deopt_of(log, &log->deopts[i], processes[process].pid);
        deopt_text_put(stream, &deopt);
    }
    free(has);
    return has ? 0 : -1;
}

static int put_all(FILE *stream, const struct jit_image *image, const struct jit_process *processes)
{
    uint32_t last = 0;
    if (image->process != NO_PROCESS)
        return processes[image->process].log.deopt_count
                   ? put_process(stream, image, processes, image->process)
                   : 0;
    for (size_t i = 0; i < image->body_count; i++)
        if (image->bodies[i].process > last)
            last = image->bodies[i].process;
    for (uint32_t i = 0; i <= last; i++)
        if (processes[i].log.deopt_count && put_process(stream, image, processes, i))
            return -1;
    return 0;
}

int deopt_section_make(struct deopt_section *section, const struct jit_image *image,
                       const struct jit_process *processes)
{
    FILE *stream = open_memstream(&section->text, &section->bytes);
    int result = stream ? put_all(stream, image, processes) : -1;
    if (stream && (ferror(stream) | fclose(stream)))
        result = -1;
    return result;
}

void deopt_section_free(struct deopt_section *section)
{
    free(section->text);
}
