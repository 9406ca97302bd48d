/* See frame_survey.h. */
#include "injector/check/frame_survey.h"

#include "injector/arrays/array.h"

#include <stdlib.h>
#include <string.h>

/* The FDEs of FUNCTION as the check takes them; to be freed. */
static struct frame_fde *fdes_of(const struct code_log *log, const struct jit_function *function)
{
    struct frame_fde *fdes = malloc((function->fde_count + 1) * sizeof *fdes);
    for (uint32_t i = 0; fdes && i < function->fde_count; i++) {
        const struct code_fde *fde = &log->fdes[function->first_fde + i];
        fdes[i] = (struct frame_fde){fde->start, fde->size, &log->cies[fde->cie], fde->instructions,
                                     fde->instructions_bytes};
    }
    return fdes;
}

static int keep_fault(struct frame_survey *survey, const struct jit_function *function,
                      const struct frame_check *check)
{
    survey->wrong++;
    if (survey->fault_count >= FRAME_FAULTS_KEPT)
        return 0;
    if (array_reserve(survey->faults, survey->fault_count, survey->fault_capacity))
        return -1;
    struct frame_fault *fault = &survey->faults[survey->fault_count];
    *fault = (struct frame_fault){
        .name = strdup(function->name), .addr = function->addr, .at = check->fault_at};
    if (!fault->name)
        return -1;
    memcpy(fault->text, check->fault, sizeof fault->text);
    survey->fault_count++;
    return 0;
}

static int check_function(const struct code_log *log, const struct jit_function *function,
                          const struct code_machine *machine, struct frame_check *check)
{
    struct frame_fde *fdes = fdes_of(log, function);
    int error = fdes ? jd_frame_check(check, machine, fdes, function->fde_count, function->code,
                                      function->size)
                     : -1;
    free(fdes);
    return error;
}

static void count(struct frame_survey *survey, const struct frame_check *check)
{
    survey->functions++;
    survey->instructions += check->compared;
    survey->partly += check->beyond != UINT64_MAX;
    survey->on_trust += check->on_trust;
}

int frame_survey_take(struct frame_survey *survey, const struct code_log *log, uint32_t elf_mach)
{
    const struct code_machine *machine = jd_code_machine(elf_mach);
    struct frame_check check;
    for (size_t i = 0; machine && i < log->function_count; i++) {
        const struct jit_function *function = &log->functions[i];
        if (!function->name || !function->code || !function->fde_count)
            continue;
        if (check_function(log, function, machine, &check))
            return -1;
        count(survey, &check);
        if (check.wrong && keep_fault(survey, function, &check))
            return -1;
    }
    return 0;
}

void frame_survey_free(struct frame_survey *survey)
{
    for (size_t i = 0; i < survey->fault_count; i++)
        free(survey->faults[i].name);
    free(survey->faults);
}
