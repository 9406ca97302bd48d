/* See chain_census.h. */
#include "injector/check/census/chain_census.h"

#include <stdlib.h>
#include <string.h>

static int make_room(struct chain_census *census, const struct stack_walker *walker)
{
    size_t wanted = walker->files.count + 1;
    if (!census->functions)
        census->functions =
            calloc((size_t)walker->source->function_count + 1, sizeof *census->functions);
    if (!census->functions)
        return -1;
    if (wanted <= census->file_count)
        return 0;
    struct chain_place *files = realloc(census->files, 2 * wanted * sizeof *files);
    if (!files)
        return -1;
    memset(files + census->file_count, 0, (2 * wanted - census->file_count) * sizeof *files);
    census->files = files;
    census->file_count = 2 * wanted;
    return 0;
}

static struct chain_place *place_of(struct chain_census *census, const struct stack_walker *walker,
                                    uint32_t what)
{
    if (what == SPACE_NOTHING)
        return &census->files[0];
    if (what & SPACE_FUNCTION)
        return &census->functions[what & ~SPACE_FUNCTION];
    return &census->files[walker->files.of_map[what]];
}

int chain_census_add(void *context, const struct stack_walker *walker)
{
    struct chain_census *census = context;
    enum chain_end end = walker->chain_end;
    if (make_room(census, walker))
        return -1;
    census->chains++;
    census->ends[end]++;
    for (size_t i = 0; i < walker->ip_count; i++) {
        struct chain_place *place = place_of(census, walker, walker->frames[i].what);
        place->chains += place->last_chain != census->chains;
        place->last_chain = census->chains;
    }
    if (end == CHAIN_WHOLE || walker->ip_count == 0)
        return 0;
    struct chain_place *place = place_of(census, walker, walker->frames[walker->blamed].what);
    bool first = true;
    for (int i = 0; i < CHAIN_ENDS; i++)
        first = first && !(chain_end_is_early(i) && place->ends[i]);
    if (first)
        place->first_addr = walker->blamed_addr;
    place->ends[end]++;
    return 0;
}

uint64_t chain_census_misled(const struct chain_census *census, const struct space_source *source)
{
    uint64_t count = 0;
    for (uint32_t i = 0; census->functions && i < source->function_count; i++)
        for (int end = 0; end < CHAIN_ENDS; end++)
            count += chain_end_is_wrong(end) ? census->functions[i].ends[end] : 0;
    return count;
}

void chain_census_free(struct chain_census *census)
{
    free(census->functions);
    free(census->files);
    *census = (struct chain_census){0};
}
