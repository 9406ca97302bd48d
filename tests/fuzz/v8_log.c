/* A code log of V8 beside functions of a dump: what is given to these makes sense, whatever the log
 * says.
 *
 * The input: the log behind its first line.  The functions are at 0x1000, 0x1060, and at both
 * again, 96 bytes each; the last one is of eval. */
#include "injector/log/v8/v8_inlines.h"
#include "tests/fuzz/fuzz_target.h"

#include <string.h>

enum { FIRST_ADDR = 0x1000, SIZE = 96, FUNCTIONS = 4 };

static const char begin[] = "v8-version,11\n";
static const char *const names[FUNCTIONS] = {"JS:*f /a.js:1:11", "JS:+g /a.js:2:1",
                                             "JS:o*'f /a.js:1:11", "JS:~e :1:2"};

static void add_functions(struct code_log *log)
{
    for (uint64_t i = 0; i < FUNCTIONS; i++)
        promise(code_log_add_named(log, NO_DUMP, i * 1000, FIRST_ADDR + (i & 1) * SIZE, SIZE,
                                   names[i]) == 0,
                "there is memory");
}

static void check_function(const struct jit_function *function)
{
    struct line_table table = {0};
    promise(code_lines_decode(function->lines, function->size, &table) == 0, "there is memory");
    for (size_t i = 0; i < table.inline_count; i++) {
        const struct line_inline *call = &table.inlines[i];
        promise(call->parent < (int32_t)i, "a call comes behind its caller");
        promise(call->depth < LINE_MAX_DEPTH, "calls are not too deep");
        promise(call->name.text && strncmp(call->name.text, "JS:", 3) == 0, "a call has a name");
    }
    for (size_t i = 0; i < table.span_count; i++) {
        promise(table.spans[i].offset < function->size, "a span lies in its function");
        promise(table.spans[i].inline_index < (int32_t)table.inline_count, "a span is of a call");
        promise(!i || table.spans[i - 1].offset < table.spans[i].offset, "spans ascend");
    }
    line_table_free(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct v8_log v8 = {.path = "v8.log"};
    struct code_log log = {0};
    struct findings findings = {.quiet = true};
    size_t given = 0;
    char *text = malloc(sizeof begin - 1 + size);
    promise(text, "there is memory");
    memcpy(text, begin, sizeof begin - 1);
    if (size)
        memcpy(text + sizeof begin - 1, bytes, size);
    add_functions(&log);
    promise(v8_log_parse(&v8, text, sizeof begin - 1 + size, &findings) == 0, "it is a log");
    promise(v8_inlines_give(&log, &v8, "/nowhere", &given, &findings) == 0, "there is memory");
    v8_log_free(&v8);
    free(text);
    const struct jit_function *of_eval = &log.functions[FUNCTIONS - 1];
    promise(of_eval->name_bytes >= strlen(names[FUNCTIONS - 1]) &&
                memcmp(of_eval->name, "JS:~e ", 6) == 0 &&
                memcmp(of_eval->name + of_eval->name_bytes - 4, ":1:2", 4) == 0,
            "a function has its name and its line");
    for (size_t i = 0; i < log.function_count; i++)
        if (log.functions[i].lines)
            check_function(&log.functions[i]);
    promise(given <= log.function_count, "each function is given calls once");
    code_log_free(&log);
    findings_free(&findings);
    return 0;
}
