/* See code_spot.h. */
#include "injector/unwind/addresses/code_spot.h"

static void find_in_function(struct code_spot *spot, const struct space_source *source, uint64_t pc)
{
    size_t process;
    spot->function = space_function(source, spot->what & ~SPACE_FUNCTION, &process);
    spot->log = source->timelines[process].log;
    spot->owner = spot->what;
    spot->addr = pc - spot->function->addr;
    spot->is_code = true;
}

/* Perf may have lost the record of a library's text: its addresses then belong to the mapping of
 * the whole file, which ld.so makes first, and which is data.  The file shows whether there is code
 * at an address. */
static bool is_code_in_file(const struct code_spot *spot)
{
    size_t before, size;
    return spot->owner && code_spot_bytes(spot, &before, &size) && size;
}

static int find_in_file(struct code_spot *spot, const struct space_source *source,
                        struct native_files *files, uint64_t pc)
{
    spot->file = native_file_of(files, spot->what);
    if (spot->file && native_file_unwinds(files, spot->file) &&
        native_file_addr(files, spot->file, spot->what, pc, &spot->addr))
        spot->owner = spot->file->number;
    spot->is_code = !source->records->maps[spot->what].map.data || is_code_in_file(spot);
    return spot->file ? 0 : -1;
}

int code_spot_find(struct code_spot *spot, const struct address_space *space,
                   struct native_files *files, uint64_t pc)
{
    *spot = (struct code_spot){.what = address_space_at(space, pc)};
    if (spot->what == SPACE_NOTHING)
        return 0;
    if (!(spot->what & SPACE_FUNCTION))
        return find_in_file(spot, space->source, files, pc);
    find_in_function(spot, space->source, pc);
    return 0;
}

const uint8_t *code_spot_bytes(const struct code_spot *spot, size_t *before, size_t *size)
{
    if (spot->function) {
        *before = (size_t)spot->addr;
        *size = (size_t)(spot->function->size - spot->addr);
        return spot->function->code ? spot->function->code + spot->addr : NULL;
    }
    return spot->owner ? elf_view_code(&spot->file->view, spot->addr, before, size) : NULL;
}
