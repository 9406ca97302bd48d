/* See frame_check.h: tables as bytes, in the form that libjitdump takes. */
#include "jitdump/cfi_check/frame_check.h"

#include <errno.h>
#include <stdlib.h>

/* The FDEs that were read, and the same in frame_check's form. */
struct table_list {
    struct eh_fde *entries;
    struct frame_fde *fdes;
    size_t count, capacity;
};

static bool grow(struct table_list *list)
{
    size_t capacity = list->capacity ? list->capacity * 2 : 8;
    if (list->count < list->capacity)
        return true;
    struct eh_fde *entries = realloc(list->entries, capacity * sizeof *entries);
    if (entries)
        list->entries = entries;
    struct frame_fde *fdes = realloc(list->fdes, capacity * sizeof *fdes);
    if (fdes)
        list->fdes = fdes;
    if (entries && fdes)
        list->capacity = capacity;
    return entries && fdes;
}

/* The offset at which FDE begins in the code of SIZE bytes at CODE_ADDR.  In perf's layout the code
 * is at 0, and the tables at the next multiple of 8.  An address that is not relative is the code's
 * own. */
static uint64_t start_of(const struct eh_fde *fde, uint64_t code_addr, uint64_t size)
{
    uint64_t pc = eh_fde_pc(fde, (size + 7) & ~UINT64_C(7));
    return pc < size ? pc : pc - code_addr;
}

static int by_start(const void *a, const void *b)
{
    uint64_t x = ((const struct frame_fde *)a)->start, y = ((const struct frame_fde *)b)->start;
    return (x > y) - (x < y);
}

static int read_fdes(struct table_list *list, struct eh_frame_walk *walk, uint64_t code_addr,
                     uint64_t size)
{
    for (;;) {
        if (!grow(list))
            return -ENOMEM;
        if (!jd_eh_frame_next(walk, &list->entries[list->count]))
            return walk->no_memory ? -ENOMEM : 0;
        const struct eh_fde *fde = &list->entries[list->count];
        list->fdes[list->count++] =
            (struct frame_fde){.start = start_of(fde, code_addr, size),
                               .size = fde->pc_range,
                               .instructions = fde->instructions,
                               .instructions_bytes = fde->instructions_bytes};
    }
}

int jd_tables_check(struct frame_check *check, const struct code_machine *machine,
                    const void *tables, uint64_t tables_bytes, uint64_t hdr_bytes, const void *code,
                    uint64_t code_addr, uint64_t size)
{
    struct table_list list = {0};
    struct eh_frame_walk walk =
        jd_eh_frame_begin(tables, (size_t)(tables_bytes - hdr_bytes), false, 8);
    int error = read_fdes(&list, &walk, code_addr, size);
    for (size_t i = 0; i < list.count; i++)
        list.fdes[i].cie = &list.entries[i].cie;
    if (list.count > 1)
        qsort(list.fdes, list.count, sizeof *list.fdes, by_start);
    if (!error)
        error = jd_frame_check(check, machine, list.fdes, list.count, code, size);
    jd_eh_frame_end(&walk);
    free(list.entries);
    free(list.fdes);
    return error;
}
