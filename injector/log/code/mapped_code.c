/* See mapped_code.h. */
#include "injector/log/code/mapped_code.h"

#include "injector/log/script/v8_place.h"
#include "injector/text/code_name.h"

static void map_row(void *of, struct line_row *row)
{
    struct mapped_place place = {row->file, row->line, row->column};
    if (!row->line || !source_maps_place(of, &place))
        return;
    row->file = place.file;
    row->line = place.line;
    row->column = place.column;
}

static void map_call(void *of, struct line_inline *call)
{
    struct mapped_place at = {call->call_file, call->call_line, call->call_column};
    const struct line_text name = source_maps_name(of, call->name);
    struct v8_place place;
    if (call->call_line && source_maps_place(of, &at)) {
        call->call_file = at.file;
        call->call_line = at.line;
        call->call_column = at.column;
    }
    if (!name.text || line_text_same(name, call->name))
        return;
    call->name = name;
    if (v8_place_of(name.text, name.bytes, &place)) {
        call->decl_file = (struct line_text){place.file, (uint32_t)place.file_bytes};
        call->decl_line = place.line;
    }
}

static int map_name(struct source_maps *maps, struct code_log *log, struct jit_function *function)
{
    const struct line_text own = {function->name, function->name_bytes};
    const struct line_text name = source_maps_name(maps, own);
    size_t bytes = name.bytes;
    if (!name.text)
        return -1;
    if (line_text_same(name, own))
        return 0;
    const char *shown =
        code_log_shown_name(log, name.text, &bytes, code_name_is_printable(name.text, bytes));
    if (shown)
        jit_function_set_name(function, shown, bytes);
    return shown ? 0 : -1;
}

static int show_log(struct code_log *log, struct source_maps *maps,
                    const struct line_translation *translation)
{
    for (struct line_block *block = log->line_blocks; block; block = block->next)
        for (size_t i = 0; i < block->count; i++)
            block->lines[i].translation = translation;
    for (size_t i = 0; i < log->function_count; i++)
        if (log->functions[i].placed_name && map_name(maps, log, &log->functions[i]))
            return -1;
    return 0;
}

int mapped_code_show(struct jit_processes *processes, const struct source_map_options *options,
                     struct findings *findings)
{
    struct source_maps *maps = &processes->source_maps;
    int result = 0;
    if (options->none)
        return 0;
    maps->options = *options;
    maps->findings = findings;
    processes->translation = (struct line_translation){maps, map_row, map_call};
    for (size_t i = 0; !result && i < processes->count; i++)
        result = show_log(&processes->items[i].log, maps, &processes->translation);
    maps->findings = NULL; /* FINDINGS may end before the lines do */
    return result ? report_failure(findings, "out of memory") : 0;
}
