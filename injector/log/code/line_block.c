/* See line_block.h. */
#include "injector/log/code/line_block.h"

#include "injector/arrays/array.h"

/* Whether RECORD is empty. */
static bool is_empty(const struct jit_record *record)
{
    return record->id == JIT_CODE_DEBUG_INFO ? record->debug_info.nr_entry == 0
                                             : record->inline_info.nr_span == 0;
}

int line_records_keep(struct line_records *records, const struct jit_record *record,
                      size_t next_function)
{
    if (is_empty(record))
        return 0;
    if (array_reserve(records->items, records->count, records->capacity))
        return -1;
    records->items[records->count++] = (struct line_record){*record, next_function};
    return 0;
}

void line_blocks_free(struct line_block *block)
{
    while (block) {
        struct line_block *next = block->next;
        named_files_free(&block->files);
        free(block->lines);
        free(block->records.items);
        free(block);
        block = next;
    }
}
