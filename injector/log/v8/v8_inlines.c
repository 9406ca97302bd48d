/* See v8_inlines.h. */
#include "injector/log/v8/v8_inlines.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/arrays/number_map.h"
#include "injector/files/memory_file.h"
#include "injector/log/code/line_assignment.h"
#include "injector/log/script/v8_place.h"
#include "injector/log/v8/script_places.h"
#include "jitdump/format/byte_sink.h"
#include "jitdump/format/jitdump_format.h"

#include <stdio.h>
#include <stdlib.h>

/* Code of the dump, or of the log. */
struct occurrence {
    uint64_t addr, size;
    uint32_t number; /* of the function in the dump, or of the code in the log */
};

struct pair {
    uint32_t function, code;
};

enum { NS_PER_US = 1000, SPREAD_MOST_NS = 10000000, SHORTEST_ROW = 3 }; /* "FO5" */
enum { LONGEST_KIND = 12 }; /* "LazyCompile:", of V8 before 11 */
enum { TIERS = 2 };         /* of code with inlined calls: TurboFan's and Maglev's */

struct giving {
    struct code_log *log;
    const struct v8_log *v8;
    struct findings *findings;
    uint64_t *times_ns; /* of LOG's functions */
    struct pair *pairs;
    size_t pair_count, pair_capacity;
    int64_t *offsets_ns; /* from the log's times to the dump's, of pairs that are sure */
    size_t offset_count, offset_capacity;
    int64_t offset_ns;   /* the median of those that are sure */
    bool has_one_offset; /* most of them are near it */
    struct script_places places;
    uint32_t *scripts;          /* of V8's functions */
    uint32_t (*names)[TIERS];   /* of V8's functions: in STRINGS, or JIT_INLINE_NONE */
    uint32_t *files;            /* of the scripts: the same */
    struct memory_file strings; /* of all functions */
    bool lines_alone;           /* the dump names a place by its line: V8 before 11 */
    struct memory_file tables;
    struct line_table lines;
};

/* ---- Which function is which ---- */

static int compare_occurrences(const void *left, const void *right)
{
    const struct occurrence *a = left, *b = right;
    if (a->addr != b->addr)
        return a->addr < b->addr ? -1 : 1;
    if (a->size != b->size)
        return a->size < b->size ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* The code at the places of code that is needed, *COUNT of it; to be freed.  NULL without memory.
 */
static struct occurrence *occurrences_of_log(const struct v8_log *v8, size_t *count)
{
    struct number_map needed = {0};
    struct occurrence *items = malloc((v8->code_count + 1) * sizeof *items);
    int result = items ? 0 : -1;
    *count = 0;
    for (size_t i = 0; !result && i < v8->code_count; i++)
        if (v8->codes[i].is_needed)
            result = number_map_put(&needed, v8->codes[i].addr, 0);
    for (size_t i = 0; !result && i < v8->code_count; i++)
        if (v8->deopt_count || number_map_get(&needed, v8->codes[i].addr) == 0)
            items[(*count)++] =
                (struct occurrence){v8->codes[i].addr, v8->codes[i].size, (uint32_t)i};
    number_map_free(&needed);
    if (result) {
        free(items);
        return NULL;
    }
    if (*count)
        qsort(items, *count, sizeof *items, compare_occurrences);
    return items;
}

static bool has_address(const struct occurrence *items, size_t count, uint64_t addr)
{
    size_t at;
    array_bisect(at, count, items[at].addr < addr);
    return at < count && items[at].addr == addr;
}

/* Of the dump's code only that at addresses of the log: most logs are of another process.  *ITEMS
 * is to be freed. */
static int occurrences_of_dump(const struct code_log *log, const struct occurrence *logged,
                               size_t logged_count, struct occurrence **items, size_t *count)
{
    size_t capacity = 0;
    *items = NULL;
    *count = 0;
    for (size_t i = 0; i < log->function_count; i++) {
        const struct jit_function *function = &log->functions[i];
        if (!function->name || !has_address(logged, logged_count, function->addr))
            continue;
        if (array_reserve(*items, *count, capacity))
            return -1;
        (*items)[(*count)++] = (struct occurrence){function->addr, function->size, (uint32_t)i};
    }
    if (*count)
        qsort(*items, *count, sizeof **items, compare_occurrences);
    return 0;
}

static bool are_of_one_place(const struct occurrence *a, const struct occurrence *b)
{
    return a->addr == b->addr && a->size == b->size;
}

/* The number of ITEMS of the place of the first of them. */
static size_t run_length(const struct occurrence *items, size_t count)
{
    size_t length = 1;
    while (length < count && are_of_one_place(&items[length], items))
        length++;
    return length;
}

static bool ends_with(const struct jit_function *function, const char *name, size_t bytes)
{
    return bytes <= function->name_bytes &&
           memcmp(function->name + function->name_bytes - bytes, name, bytes) == 0;
}

/* The bytes of NAME, "f a.js:1:2", without its column; 0: it has none. */
static size_t bytes_without_column(const char *name)
{
    const char *colon = strrchr(name, ':');
    if (!colon || !colon[1] || colon[1 + strspn(colon + 1, "0123456789")])
        return 0;
    const size_t bytes = (size_t)(colon - name);
    size_t digits = 0;
    while (digits < bytes && name[bytes - digits - 1] >= '0' && name[bytes - digits - 1] <= '9')
        digits++;
    return digits && digits < bytes && name[bytes - digits - 1] == ':' ? bytes : 0;
}

/* The dump has the log's name behind its mark of the tier, or all of it but the column. */
static int is_named_alike(struct giving *giving, struct pair pair, bool *alike)
{
    const struct jit_function *function = &giving->log->functions[pair.function];
    const struct v8_code *code = &giving->v8->codes[pair.code];
    size_t bytes;
    char *name = v8_text_plain(giving->v8->functions[code->function].name, &bytes);
    if (!name)
        return -1;
    const size_t without = bytes_without_column(name);
    *alike = ends_with(function, name, bytes);
    if (!*alike && without && ends_with(function, name, without))
        *alike = giving->lines_alone = true;
    free(name);
    return 0;
}

static int64_t offset_of(const struct giving *giving, struct pair pair)
{
    return (int64_t)(giving->times_ns[pair.function] -
                     giving->v8->codes[pair.code].time_us * NS_PER_US);
}

static int add_pair(struct giving *giving, struct pair pair)
{
    bool alike;
    if (is_named_alike(giving, pair, &alike))
        return -1;
    if (!alike)
        return 0;
    if (array_reserve(giving->pairs, giving->pair_count, giving->pair_capacity) ||
        array_reserve(giving->offsets_ns, giving->offset_count, giving->offset_capacity))
        return -1;
    giving->pairs[giving->pair_count++] = pair;
    giving->offsets_ns[giving->offset_count++] = offset_of(giving, pair);
    return 0;
}

static int compare_offsets(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

/* The code of the log that was made nearest to the time of FUNCTION, whose place it has. */
static uint32_t nearest_code(const struct giving *giving, uint32_t function,
                             const struct occurrence *codes, size_t count, int64_t offset_ns)
{
    uint32_t nearest = codes[0].number;
    int64_t least_ns = INT64_MAX;
    for (size_t i = 0; i < count; i++) {
        const int64_t distance_ns =
            llabs(offset_of(giving, (struct pair){function, codes[i].number}) - offset_ns);
        if (distance_ns < least_ns) {
            least_ns = distance_ns;
            nearest = codes[i].number;
        }
    }
    return nearest;
}

/* SURE: take the places that dump and log have equally often.  Else the others, by OFFSET_NS. */
static int pair_places(struct giving *giving, const struct occurrence *dumped, size_t dumped_count,
                       const struct occurrence *logged, size_t logged_count, bool sure,
                       int64_t offset_ns)
{
    size_t d = 0, l = 0;
    while (d < dumped_count && l < logged_count) {
        const size_t of_dump = run_length(dumped + d, dumped_count - d);
        const size_t of_log = run_length(logged + l, logged_count - l);
        if (!are_of_one_place(&dumped[d], &logged[l])) {
            const struct occurrence *a = &dumped[d], *b = &logged[l];
            if (a->addr < b->addr || (a->addr == b->addr && a->size < b->size))
                d += of_dump;
            else
                l += of_log;
            continue;
        }
        for (size_t i = 0; (of_dump == of_log) == sure && i < of_dump; i++) {
            const uint32_t function = dumped[d + i].number;
            const uint32_t code =
                sure ? logged[l + i].number
                     : nearest_code(giving, function, logged + l, of_log, offset_ns);
            if (add_pair(giving, (struct pair){function, code}))
                return -1;
        }
        d += of_dump;
        l += of_log;
    }
    return 0;
}

static int find_times(struct giving *giving)
{
    const struct code_log *log = giving->log;
    giving->times_ns = calloc(log->function_count + 1, sizeof *giving->times_ns);
    if (!giving->times_ns)
        return -1;
    for (size_t i = 0; i < log->event_count; i++)
        if (log->events[i].kind == CODE_EVENT_LOAD)
            giving->times_ns[log->events[i].index] = log->events[i].time_ns;
    return 0;
}

static int pair_all(struct giving *giving, const struct occurrence *dumped, size_t dumped_count,
                    const struct occurrence *logged, size_t logged_count)
{
    if (find_times(giving) ||
        pair_places(giving, dumped, dumped_count, logged, logged_count, true, 0))
        return -1;
    if (!giving->offset_count)
        return 0;
    qsort(giving->offsets_ns, giving->offset_count, sizeof *giving->offsets_ns, compare_offsets);
    const size_t quarter = giving->offset_count / 4;
    giving->offset_ns = giving->offsets_ns[giving->offset_count / 2];
    giving->has_one_offset =
        giving->offsets_ns[giving->offset_count - 1 - quarter] - giving->offsets_ns[quarter] <
        SPREAD_MOST_NS;
    return pair_places(giving, dumped, dumped_count, logged, logged_count, false,
                       giving->offset_ns);
}

static int find_pairs(struct giving *giving)
{
    size_t logged_count, dumped_count = 0;
    struct occurrence *logged = occurrences_of_log(giving->v8, &logged_count), *dumped = NULL;
    int result =
        logged ? occurrences_of_dump(giving->log, logged, logged_count, &dumped, &dumped_count)
               : -1;
    if (!result && dumped_count)
        result = pair_all(giving, dumped, dumped_count, logged, logged_count);
    free(dumped);
    free(logged);
    return result;
}

/* Look for one of the first COUNT pieces of the log's code in the dump. */
static int look_for_code(struct code_log *log, const struct v8_log *v8, size_t count)
{
    struct number_map codes = {0}; /* by address */
    int result = 0;
    for (size_t i = 0; !result && i < count; i++)
        result = number_map_put(&codes, v8->codes[i].addr, (uint32_t)i);
    for (size_t i = 0; !result && !log->has_v8_log && i < log->function_count; i++) {
        const uint32_t code = number_map_get(&codes, log->functions[i].addr);
        log->has_v8_log = code != V8_NOWHERE && v8->codes[code].size == log->functions[i].size;
    }
    number_map_free(&codes);
    return result;
}

/* Whether the log is of the process that wrote the dump: most code needs no pair.  In most cases
 * some of its first code tells. */
static int look_for_process(struct giving *giving)
{
    enum { FIRST = 1000 };
    struct code_log *log = giving->log;
    const size_t count = giving->v8->code_count;
    log->has_v8_log = log->has_v8_log || giving->pair_count;
    if (!log->has_v8_log && look_for_code(log, giving->v8, count < FIRST ? count : FIRST))
        return -1;
    return !log->has_v8_log && count > FIRST ? look_for_code(log, giving->v8, count) : 0;
}

/* ---- Code that was given up ---- */

/* TEXT as it can be shown; it lives as long as the dump's log.  NULL without memory. */
static const char *shown_text(struct giving *giving, struct line_text text)
{
    size_t bytes;
    char *plain = v8_text_plain(text, &bytes);
    const char *kept = plain ? code_log_keep_text(giving->log, plain, bytes) : NULL;
    free(plain);
    return kept;
}

/* PLACE without the brackets around each part: "/a.js:1:29 inlined at /a.js:2:57". */
static const char *place_of(struct giving *giving, struct line_text place)
{
    static const char between[] = "> inlined at <";
    size_t bytes;
    char *plain = v8_text_plain(place, &bytes), *to = plain;
    for (const char *at = plain; at && *at;) {
        if (strncmp(at, between, sizeof between - 1) == 0) {
            to = mempcpy(to, between + 1, sizeof between - 3);
            at += sizeof between - 1;
        } else if ((at == plain && *at == '<') || (*at == '>' && !at[1])) {
            at++;
        } else {
            *to++ = *at++;
        }
    }
    const char *kept = plain ? code_log_keep_text(giving->log, plain, (size_t)(to - plain)) : NULL;
    free(plain);
    return kept;
}

static int add_deopt(struct giving *giving, const struct v8_deopt *deopt, uint32_t function)
{
    struct code_log *log = giving->log;
    const struct code_deopt added = {.time_ns =
                                         deopt->time_us * NS_PER_US + (uint64_t)giving->offset_ns,
                                     .function = function,
                                     .kind = shown_text(giving, deopt->kind),
                                     .place = place_of(giving, deopt->place),
                                     .reason = shown_text(giving, deopt->reason)};
    if (!added.kind || !added.place || !added.reason ||
        array_reserve(log->deopts, log->deopt_count, log->deopt_capacity))
        return -1;
    log->deopts[log->deopt_count++] = added;
    return 0;
}

static int add_deopts(struct giving *giving)
{
    const struct v8_log *v8 = giving->v8;
    if (!v8->deopt_count || !giving->has_one_offset)
        return 0;
    uint32_t *functions = malloc((v8->code_count + 1) * sizeof *functions); /* by code */
    if (!functions)
        return -1;
    memset(functions, 0xff, v8->code_count * sizeof *functions);
    for (size_t i = 0; i < giving->pair_count; i++)
        functions[giving->pairs[i].code] = giving->pairs[i].function;
    int result = 0;
    for (size_t i = 0; !result && i < v8->deopt_count; i++)
        if (functions[v8->deopts[i].code] != NO_FUNCTION)
            result = add_deopt(giving, &v8->deopts[i], functions[v8->deopts[i].code]);
    free(functions);
    return result;
}

/* ---- Functions of eval ---- */

/* NAME, "f :1:2", with FILE in its place, to be freed; NULL without memory.  In node 18's "f :1"
 * there is no place. */
static char *name_with_file(const char *name, size_t bytes, struct line_text file)
{
    struct v8_place place;
    char *made;
    if (!v8_place_of(name, bytes, &place))
        return strndup(name, bytes);
    const size_t front = (size_t)(place.file - name);
    return asprintf(&made, "%.*s%.*s%.*s", (int)front, name, (int)file.bytes, file.text,
                    (int)(bytes - front), name + front) < 0
               ? NULL
               : made;
}

/* The functions of scripts that are in no file and call themselves something. */
static int name_functions(struct giving *giving)
{
    for (size_t i = 0; i < giving->pair_count; i++) {
        const struct pair pair = giving->pairs[i];
        struct jit_function *function = &giving->log->functions[pair.function];
        const struct v8_function *logged =
            &giving->v8->functions[giving->v8->codes[pair.code].function];
        if (logged->script == V8_NOWHERE)
            continue;
        char *made = name_with_file(function->name, function->name_bytes, logged->file);
        const char *kept = made ? code_log_keep_text(giving->log, made, strlen(made)) : NULL;
        free(made);
        if (!kept)
            return -1;
        jit_function_set_name(function, kept, strlen(kept));
    }
    return 0;
}

/* Keep the pairs of code with inlined calls, of functions that have none yet. */
static void keep_inlining(struct giving *giving)
{
    size_t kept = 0;
    for (size_t i = 0; i < giving->pair_count; i++) {
        const struct pair pair = giving->pairs[i];
        const struct code_lines *lines = giving->log->functions[pair.function].lines;
        if (giving->v8->codes[pair.code].inlining != V8_NOWHERE && !(lines && lines->inlines))
            giving->pairs[kept++] = pair;
    }
    giving->pair_count = kept;
}

/* ---- Where the characters are ---- */

static const struct v8_inlining *inlining_of(const struct giving *giving,
                                             const struct v8_code *code)
{
    return &giving->v8->inlinings[code->inlining];
}

/* The function that CALL of CODE was inlined from: the code's own without one. */
static uint32_t function_of(const struct giving *giving, const struct v8_code *code,
                            const struct v8_row *calls, size_t call_count, uint32_t call)
{
    if (call == V8_NOWHERE)
        return code->function;
    const struct v8_inlining *inlining = inlining_of(giving, code);
    if (call >= call_count || calls[call].first >= inlining->callee_count)
        return V8_NOWHERE;
    return giving->v8->callees[inlining->first_callee + calls[call].first];
}

/* The rows of INLINES, to be freed, or NULL; BROKEN: they are none. */
static struct v8_row *calls_of(const struct v8_inlining *inlining, size_t *count,
                               const char **broken)
{
    struct v8_row *calls = malloc((inlining->inlines.bytes / SHORTEST_ROW + 1) * sizeof *calls);
    struct line_text text = inlining->inlines;
    int result = 0;
    *count = 0;
    while (calls && (result = v8_row_next(&text, 'F', &calls[*count])) > 0)
        ++*count;
    if (calls && result < 0)
        *broken = "its inlined calls can't be read";
    return calls;
}

static int find_scripts(struct giving *giving)
{
    const struct v8_log *v8 = giving->v8;
    giving->scripts = malloc((v8->function_count + 1) * sizeof *giving->scripts);
    if (!giving->scripts)
        return -1;
    for (size_t i = 0; i < v8->function_count; i++) {
        const struct v8_function *function = &v8->functions[i];
        giving->scripts[i] = i && line_text_same(function->file, v8->functions[i - 1].file)
                                 ? giving->scripts[i - 1]
                                 : script_places_script(&giving->places, function->file);
        if (giving->scripts[i] == UINT32_MAX)
            return -1;
    }
    for (size_t i = 0; i < v8->source_count; i++)
        if (script_places_give(&giving->places, v8->sources[i].file, v8->sources[i].text))
            return -1;
    return 0;
}

static void read_script(struct giving *giving, uint32_t function)
{
    if (function != V8_NOWHERE)
        script_places_read(&giving->places, giving->scripts[function]);
}

/* Those of the pairs' code alone. */
static void read_scripts(struct giving *giving)
{
    for (size_t i = 0; i < giving->pair_count; i++) {
        const struct v8_code *code = &giving->v8->codes[giving->pairs[i].code];
        read_script(giving, code->function);
        const struct v8_inlining *inlining = inlining_of(giving, code);
        for (size_t c = 0; c < inlining->callee_count; c++)
            read_script(giving, giving->v8->callees[inlining->first_callee + c]);
    }
}

static bool is_placed(const struct v8_function *function)
{
    return function->start != V8_NOWHERE && function->line;
}

static void check_scripts(struct giving *giving)
{
    const struct v8_log *v8 = giving->v8;
    for (size_t i = 0; i < v8->function_count; i++) {
        const struct v8_function *function = &v8->functions[i];
        if (is_placed(function))
            script_places_check(&giving->places, giving->scripts[i], function->start,
                                (struct script_place){function->line, function->column});
    }
}

/* The functions of scripts without a text. */
static int add_functions(struct giving *giving)
{
    const struct v8_log *v8 = giving->v8;
    int result = 0;
    for (size_t i = 0; !result && i < v8->function_count; i++) {
        const struct v8_function *function = &v8->functions[i];
        if (is_placed(function) && !script_places_have_text(&giving->places, giving->scripts[i]))
            result = script_places_add(&giving->places, giving->scripts[i], function->start,
                                       (struct script_place){function->line, function->column});
    }
    return result;
}

/* The row that begins at OFFSET, or NULL.  V8 names FILE in all of them, that of the function which
 * has the code, and not the one of what was inlined. */
static const struct line_row *row_at(const struct line_table *table, uint64_t offset,
                                     struct line_text file)
{
    size_t at;
    array_bisect(at, table->row_count, table->rows[at].offset < offset);
    const struct line_row *row = at < table->row_count ? &table->rows[at] : NULL;
    return row && row->offset == offset && row->line && row->column &&
                   line_text_same(row->file, file)
               ? row
               : NULL;
}

/* The dump has line and column of what the log has the character of, at the same offsets. */
static int add_rows(struct giving *giving, struct pair pair)
{
    const struct jit_function *function = &giving->log->functions[pair.function];
    const struct v8_code *code = &giving->v8->codes[pair.code];
    const char *broken = NULL;
    struct line_text text = inlining_of(giving, code)->positions;
    struct v8_row position;
    size_t call_count;
    if (!function->lines)
        return 0;
    struct v8_row *calls = calls_of(inlining_of(giving, code), &call_count, &broken);
    int result = calls ? code_lines_decode(function->lines, function->size, &giving->lines) : -1;
    while (!result && v8_row_next(&text, 'C', &position) > 0) {
        const uint32_t of = function_of(giving, code, calls, call_count, position.call);
        const struct line_row *row = of == V8_NOWHERE
                                         ? NULL
                                         : row_at(&giving->lines, position.first,
                                                  giving->v8->functions[code->function].file);
        if (row && position.position != V8_NOWHERE)
            result = script_places_add(&giving->places, giving->scripts[of], position.position,
                                       (struct script_place){row->line, row->column});
    }
    free(calls);
    return result;
}

static bool has_text(const struct giving *giving, uint32_t function)
{
    return function == V8_NOWHERE ||
           script_places_have_text(&giving->places, giving->scripts[function]);
}

static bool have_texts(const struct giving *giving, const struct v8_code *code)
{
    const struct v8_inlining *inlining = inlining_of(giving, code);
    bool all = has_text(giving, code->function);
    for (size_t i = 0; all && i < inlining->callee_count; i++)
        all = has_text(giving, giving->v8->callees[inlining->first_callee + i]);
    return all;
}

/* The dump's rows are decoded for scripts without a text alone: that takes longer than all else. */
static int find_places(struct giving *giving)
{
    if (find_scripts(giving))
        return -1;
    read_scripts(giving);
    check_scripts(giving);
    if (add_functions(giving))
        return -1;
    for (size_t i = 0; i < giving->pair_count; i++)
        if (!have_texts(giving, &giving->v8->codes[giving->pairs[i].code]) &&
            add_rows(giving, giving->pairs[i]))
            return -1;
    script_places_close(&giving->places);
    return 0;
}

/* ---- The calls, as a record has them ---- */

/* Add the text BEFORE and TEXT, which is freed; NULL: there is no memory. */
static int add_string(struct giving *giving, const char *before, char *text, uint32_t *at)
{
    *at = (uint32_t)giving->strings.size;
    int result =
        !text || giving->strings.size + strlen(before) + strlen(text) + 1 >= JIT_INLINE_NONE ||
                memory_file_add(&giving->strings, before, strlen(before)) ||
                memory_file_add(&giving->strings, text, strlen(text) + 1)
            ? -1
            : 0;
    free(text);
    return result;
}

/* The name of FUNCTION as the dump would have it behind its marks, to be freed; NULL without
 * memory. */
static char *name_of(const struct giving *giving, const struct v8_function *function)
{
    size_t bytes;
    char *plain = v8_text_plain(function->name, &bytes), *named = plain;
    if (plain && function->script != V8_NOWHERE) {
        named = name_with_file(plain, bytes, function->file);
        free(plain);
    }
    const size_t without = named && giving->lines_alone ? bytes_without_column(named) : 0;
    if (without)
        named[without] = '\0';
    return named;
}

/* The name of inlined function OF in code of FUNCTION: with the marks of its code, as if it had
 * code of its own, but that one for code that is entered in a loop. */
static int name_in(struct giving *giving, uint32_t of, const struct jit_function *function,
                   uint32_t *name)
{
    const bool turbofan = memchr(function->name, '*', function->name_bytes);
    uint32_t *known = &giving->names[of][turbofan];
    if (*known == JIT_INLINE_NONE) {
        const char *colon = memchr(function->name, ':', function->name_bytes);
        const long kind_bytes =
            colon && colon - function->name < LONGEST_KIND ? colon + 1 - function->name : 0;
        char mark[LONGEST_KIND + 3];
        snprintf(mark, sizeof mark, "%.*s%c", (int)kind_bytes, function->name,
                 turbofan ? '*' : '+');
        if (add_string(giving, mark, name_of(giving, &giving->v8->functions[of]), known))
            return -1;
    }
    *name = *known;
    return 0;
}

static int file_of(struct giving *giving, uint32_t of, uint32_t *file)
{
    uint32_t *known = &giving->files[giving->scripts[of]];
    const struct line_text text = giving->v8->functions[of].file;
    size_t bytes;
    *file = JIT_INLINE_NONE;
    if (!text.bytes)
        return 0;
    if (*known == JIT_INLINE_NONE && add_string(giving, "", v8_text_plain(text, &bytes), known))
        return -1;
    *file = *known;
    return 0;
}

/* Calls of functions that the log does not name, such as builtins, are left out: what they call is
 * called by their callers, at their places.  NUMBERS: of the calls among those that are left. */
static int put_call(struct giving *giving, const struct jit_function *function,
                    const struct v8_code *code, const struct v8_row *calls, size_t call_count,
                    const uint32_t *numbers, uint32_t at)
{
    const uint32_t of = function_of(giving, code, calls, call_count, at);
    uint32_t name, decl_file, call_file, by;
    struct v8_row call = calls[at];
    uint8_t bytes[JR_INLINE_BYTES];
    struct byte_sink sink = byte_sink_over(bytes, sizeof bytes);
    while ((by = function_of(giving, code, calls, call_count, call.call)) == V8_NOWHERE)
        call = calls[call.call];
    if (name_in(giving, of, function, &name) || file_of(giving, of, &decl_file) ||
        file_of(giving, by, &call_file))
        return -1;
    const struct script_place place =
        call.position == V8_NOWHERE
            ? (struct script_place){0, 0}
            : script_places_find(&giving->places, giving->scripts[by], call.position);
    sink_u32(&sink, call.call == V8_NOWHERE ? JIT_INLINE_NONE : numbers[call.call]);
    sink_u32(&sink, call_file);
    sink_u32(&sink, place.line);
    sink_u32(&sink, place.column);
    sink_u32(&sink, name);
    sink_u32(&sink, decl_file);
    sink_u32(&sink, giving->v8->functions[of].line);
    return memory_file_add(&giving->tables, bytes, sizeof bytes);
}

/* Put the calls of functions that have a name.  NUMBERS is set for each call: its number among
 * these, or that of the one around it, or V8_NOWHERE. */
static int put_calls(struct giving *giving, const struct jit_function *function,
                     const struct v8_code *code, const struct v8_row *calls, size_t call_count,
                     uint32_t *numbers, uint32_t *count, const char **broken)
{
    *count = 0;
    for (uint32_t i = 0; i < call_count; i++) {
        const uint32_t parent = calls[i].call;
        if (parent != V8_NOWHERE && parent >= i) {
            *broken = "an inlined call comes before its caller";
            return 0;
        }
        if (function_of(giving, code, calls, call_count, i) == V8_NOWHERE) {
            numbers[i] = parent == V8_NOWHERE ? V8_NOWHERE : numbers[parent];
            continue;
        }
        if (put_call(giving, function, code, calls, call_count, numbers, i))
            return -1;
        numbers[i] = (*count)++;
    }
    return 0;
}

static int put_span(struct giving *giving, uint32_t offset, uint32_t call)
{
    uint8_t bytes[JR_INLINE_SPAN_BYTES];
    struct byte_sink sink = byte_sink_over(bytes, sizeof bytes);
    sink_u32(&sink, offset);
    sink_u32(&sink, call == V8_NOWHERE ? JIT_INLINE_NONE : call);
    return memory_file_add(&giving->tables, bytes, sizeof bytes);
}

/* Of positions of one offset the last one counts. */
static int put_spans(struct giving *giving, const struct v8_code *code, const uint32_t *numbers,
                     size_t call_count, uint32_t *count, const char **broken)
{
    struct line_text text = inlining_of(giving, code)->positions;
    struct v8_row position, before = {.call = V8_NOWHERE};
    bool any = false;
    int result;
    *count = 0;
    while ((result = v8_row_next(&text, 'C', &position)) > 0) {
        if (position.first == V8_NOWHERE || (any && position.first < before.first) ||
            (position.call != V8_NOWHERE && position.call >= call_count))
            result = -1;
        if (result < 0 || position.first >= code->size)
            break;
        if (any && position.first == before.first) {
            giving->tables.size -= JR_INLINE_SPAN_BYTES;
            --*count;
        }
        if (put_span(giving, position.first,
                     position.call == V8_NOWHERE ? V8_NOWHERE : numbers[position.call]))
            return -1;
        ++*count;
        before = position;
        any = true;
    }
    if (result < 0)
        *broken = "its positions can't be read";
    return 0;
}

/* Put the tables of PAIR, of which *INFO tells the lengths. */
static int put_tables(struct giving *giving, struct pair pair, struct jit_inline_info *info,
                      const char **broken)
{
    const struct jit_function *function = &giving->log->functions[pair.function];
    const struct v8_code *code = &giving->v8->codes[pair.code];
    size_t call_count;
    struct v8_row *calls = calls_of(inlining_of(giving, code), &call_count, broken);
    uint32_t *numbers = malloc((call_count + 1) * sizeof *numbers);
    int result = calls && numbers ? 0 : -1;
    info->code_addr = function->addr;
    info->big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    if (!result && !*broken)
        result =
            put_calls(giving, function, code, calls, call_count, numbers, &info->nr_inline, broken);
    if (!result && !*broken)
        result = put_spans(giving, code, numbers, call_count, &info->nr_span, broken);
    free(calls);
    free(numbers);
    return result;
}

/* ---- All functions ---- */

static void report_broken(const struct giving *giving, struct pair pair, const char *broken)
{
    report_finding(giving->findings, FINDING_INLINES_BROKEN, "%s: line %u: %s", giving->v8->path,
                   giving->v8->codes[pair.code].line, broken);
}

/* The strings are all there now.  Returns whether the tables make sense. */
static bool point_to_tables(struct giving *giving, const struct line_block *block,
                            struct jit_inline_info *info, size_t at, const char **broken)
{
    info->inlines = block->made + giving->strings.size + at;
    info->spans = info->inlines + (size_t)info->nr_inline * JR_INLINE_BYTES;
    info->strings = (const char *)block->made;
    info->strings_bytes = (uint32_t)giving->strings.size;
    *broken = jit_inline_info_check(info);
    return !*broken;
}

/* The lines of the pair's function, with the calls of INFO. */
static int give(struct giving *giving, struct line_block *block, struct pair pair,
                struct jit_inline_info *info, size_t at, size_t *given)
{
    struct jit_function *function = &giving->log->functions[pair.function];
    const char *broken = NULL;
    if (point_to_tables(giving, block, info, at, &broken) &&
        line_inlines_check(&giving->lines, info, function->size, &broken))
        return -1;
    if (broken) {
        report_broken(giving, pair, broken);
        return 0;
    }
    struct code_lines *lines = &block->lines[block->count++];
    *lines = function->lines
                 ? *function->lines
                 : (struct code_lines){.name = function->name, .origin = function->addr};
    lines->inlines = info;
    lines->files_of_calls = true;
    function->lines = lines;
    ++*given;
    return 0;
}

/* Room in LOG for all pairs: strings first, then tables. */
static struct line_block *add_block(struct giving *giving)
{
    struct line_block *block = calloc(1, sizeof *block);
    const size_t strings = giving->strings.size, tables = giving->tables.size;
    if (!block)
        return NULL;
    block->next = giving->log->line_blocks;
    giving->log->line_blocks = block;
    block->lines = calloc(giving->pair_count, sizeof *block->lines);
    block->calls = calloc(giving->pair_count, sizeof *block->calls);
    block->made = malloc(strings + tables + 1);
    if (!block->lines || !block->calls || !block->made)
        return NULL;
    if (strings)
        memcpy(block->made, giving->strings.data, strings);
    if (tables)
        memcpy(block->made + strings, giving->tables.data, tables);
    return block;
}

static int give_all(struct giving *giving, size_t *given)
{
    struct jit_inline_info *infos = calloc(giving->pair_count, sizeof *infos);
    size_t *starts = calloc(giving->pair_count, sizeof *starts), count = 0;
    int result = infos && starts ? 0 : -1;
    for (size_t i = 0; !result && i < giving->pair_count; i++) {
        const char *broken = NULL;
        starts[count] = giving->tables.size;
        infos[count] = (struct jit_inline_info){0};
        result = put_tables(giving, giving->pairs[i], &infos[count], &broken);
        if (broken) {
            giving->tables.size = starts[count];
            report_broken(giving, giving->pairs[i], broken);
        } else {
            giving->pairs[count++] = giving->pairs[i];
        }
    }
    giving->pair_count = count;
    struct line_block *block = result || !count ? NULL : add_block(giving);
    if (count && !block)
        result = -1;
    for (size_t i = 0; !result && i < count; i++) {
        block->calls[i] = infos[i];
        result = give(giving, block, giving->pairs[i], &block->calls[i], starts[i], given);
    }
    free(infos);
    free(starts);
    return result;
}

static int begin_strings(struct giving *giving)
{
    const size_t functions = giving->v8->function_count;
    giving->names = malloc((functions + 1) * sizeof *giving->names);
    giving->files = malloc((giving->places.script_count + 1) * sizeof *giving->files);
    if (!giving->names || !giving->files)
        return -1;
    memset(giving->names, 0xff, functions * sizeof *giving->names);
    memset(giving->files, 0xff, giving->places.script_count * sizeof *giving->files);
    return 0;
}

static void end(struct giving *giving)
{
    free(giving->times_ns);
    free(giving->pairs);
    free(giving->offsets_ns);
    free(giving->scripts);
    free(giving->names);
    free(giving->files);
    memory_file_free(&giving->strings);
    memory_file_free(&giving->tables);
    script_places_free(&giving->places);
    line_table_free(&giving->lines);
}

int v8_inlines_give(struct code_log *log, const struct v8_log *v8, const char *root, size_t *given,
                    struct findings *findings)
{
    struct giving giving = {
        .log = log, .v8 = v8, .findings = findings, .places = {.root = root, .findings = findings}};
    int result = find_pairs(&giving) || look_for_process(&giving) || add_deopts(&giving) ||
                         name_functions(&giving)
                     ? -1
                     : 0;
    keep_inlining(&giving);
    if (!result && giving.pair_count)
        result =
            find_places(&giving) || begin_strings(&giving) || give_all(&giving, given) ? -1 : 0;
    end(&giving);
    return result ? report_failure(findings, "out of memory") : 0;
}
