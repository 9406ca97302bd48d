/* See address_names.h. */
#include "injector/profile/address_names.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/arrays/hash.h"
#include "injector/log/code/jit_name.h"
#include "injector/log/lines/code_lines.h"
#include "injector/log/lines/line_entry.h"
#include "injector/profile/frame_name.h"
#include "injector/recording/injected_map.h"
#include "injector/recording/perf_data/perf_format.h"
#include "injector/text/file_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SIZE = 4096 };
/* Of a key, for the kernel's code: with the number of what the recording tells of it, or without.
 */
#define KERNEL_CODE (UINT64_C(1) << 32)
#define KERNEL_TOLD (UINT64_C(1) << 33)
#define OTHER_MODES (UINT64_C(1) << 34) /* + cpumode */

struct address_key {
    uint64_t pc;
    uint64_t what;
};

struct named_address {
    struct address_key key;
    size_t first;
    size_t count; /* 0: the place is free */
    uint32_t place;
};

/* ---- The cache ---- */

static struct named_address *place_of(const struct address_names *names, struct address_key key)
{
    size_t at = XXH3_64bits(&key, sizeof key) & (names->size - 1);
    while (names->items[at].count &&
           (names->items[at].key.pc != key.pc || names->items[at].key.what != key.what))
        at = (at + 1) & (names->size - 1);
    return &names->items[at];
}

static int grow(struct address_names *names)
{
    if (names->count * 2 < names->size)
        return 0;
    struct address_names larger = *names;
    larger.size = names->size ? names->size * 2 : FIRST_SIZE;
    larger.items = calloc(larger.size, sizeof *larger.items);
    if (!larger.items)
        return -1;
    for (size_t i = 0; i < names->size; i++)
        if (names->items[i].count)
            *place_of(&larger, names->items[i].key) = names->items[i];
    free(names->items);
    *names = larger;
    return 0;
}

/* ---- Frames ---- */

static uint32_t add_text(struct address_names *names, const char *text, size_t bytes)
{
    return text ? call_profile_add_text(names->to, text, bytes) : 0;
}

/* Add FRAME, with its source place FOUND; only FOUND's number is set here.  FOUND, but for its
 * number. */
static int add_frame_at(struct address_names *names, const struct call_frame *frame,
                        struct address_frame found)
{
    uint32_t number = frame->name == PROFILE_NOTHING || frame->module == PROFILE_NOTHING ||
                              frame->file == PROFILE_NOTHING || frame->tier == PROFILE_NOTHING
                          ? PROFILE_NOTHING
                          : call_profile_add_frame(names->to, frame);
    if (number == PROFILE_NOTHING || found.at_file == PROFILE_NOTHING ||
        array_reserve(names->frames, names->frame_count, names->frame_capacity))
        return -1;
    found.frame = number;
    names->frames[names->frame_count++] = found;
    return 0;
}

static int add_frame(struct address_names *names, const struct call_frame *frame)
{
    return add_frame_at(names, frame, (struct address_frame){.line = 0});
}

/* A piece of source. */
struct frame_source {
    struct line_text file;
    uint32_t line;
};

static struct frame_source source_in(const char *file, int line)
{
    return (struct frame_source){line_text_of(file), line > 0 ? (uint32_t)line : 0};
}

/* A file may be written as a path and as a URL, or below another directory. */
static bool is_of_file(struct line_text a, struct line_text b)
{
    if (!a.bytes || !b.bytes)
        return false;
    const char *slash_a = memrchr(a.text, '/', a.bytes), *slash_b = memrchr(b.text, '/', b.bytes);
    const char *name_a = slash_a ? slash_a + 1 : a.text, *name_b = slash_b ? slash_b + 1 : b.text;
    size_t bytes_a = (size_t)(a.text + a.bytes - name_a);
    size_t bytes_b = (size_t)(b.text + b.bytes - name_b);
    return bytes_a == bytes_b && memcmp(name_a, name_b, bytes_a) == 0;
}

/* Two places: the begin of a function, and the line at hand. */
struct frame_places {
    struct frame_source start, at;
};

/* The line that is meant, where it is in the function's own FILE: code that a macro or an #include
 * brought is its function's. */
static uint32_t line_in(struct line_text file, const struct frame_source *at)
{
    return at->line && is_of_file(file, at->file) ? at->line : 0;
}

uint32_t address_names_line(const struct call_profile *profile, uint32_t frame, uint32_t file,
                            uint32_t line)
{
    const struct frame_source at = {line_text_of(call_profile_string(profile, file)), line};
    return line_in(line_text_of(call_profile_string(profile, profile->frames[frame].file)), &at);
}

/* What a function of WebAssembly without a file is in: its module has many of one name. */
static struct line_text number_of(const struct frame_name *name, char text[64])
{
    static const char unnamed[] = "wasm-function[";
    const size_t bytes = sizeof unnamed - 1;
    if (!name->number_bytes ||
        (name->name_bytes > bytes && memcmp(name->name, unnamed, bytes) == 0))
        return (struct line_text){NULL, 0};
    snprintf(text, 64, "%s%.*s]", unnamed, (int)name->number_bytes, name->number);
    return line_text_of(text);
}

static int add_jit_named(struct address_names *names, const struct frame_name *name, bool inlined,
                         struct frame_places places)
{
    static const char module[] = "jit";
    struct frame_source source = places.start;
    char number[64];
    if (name->file)
        source = (struct frame_source){{name->file, (uint32_t)name->file_bytes}, name->line};
    else if (!source.file.bytes)
        source.file = number_of(name, number);
    const struct call_frame frame = {.name = add_text(names, name->name, name->name_bytes),
                                     .module = add_text(names, module, strlen(module)),
                                     .file = add_text(names, source.file.text, source.file.bytes),
                                     .line = source.line,
                                     .column = name->file ? name->column : 0,
                                     .tier = add_text(names, name->tier, strlen(name->tier)),
                                     .kind = name->interpreted ? FRAME_INTERPRETER : FRAME_JIT,
                                     .inlined = inlined || name->inlined};
    return add_frame_at(names, &frame,
                        (struct address_frame){
                            .line = line_in(source.file, &places.at),
                            .at_file = add_text(names, places.at.file.text, places.at.file.bytes),
                            .at_line = places.at.line,
                            .stands_in = name->inlined && !inlined});
}

static int add_jit(struct address_names *names, struct line_text symbol, bool inlined,
                   struct frame_places places)
{
    char *plain = jit_name_demangled(symbol.text, symbol.bytes);
    const struct frame_name name =
        frame_name_of_jit(plain ? plain : symbol.text, plain ? strlen(plain) : symbol.bytes);
    int result = add_jit_named(names, &name, inlined, places);
    free(plain);
    return result;
}

/* Add code that nothing names, by the file that it is in; MAP is NULL where nothing is mapped. */
static int add_unknown(struct address_names *names, const struct perf_map *map)
{
    const char *module = !map                               ? ""
                         : injected_image_is(map->filename) ? "anon"
                                                            : file_name_of(map->filename);
    const struct call_frame frame = {.name = add_text(names, "[unknown]", strlen("[unknown]")),
                                     .module = add_text(names, module, strlen(module)),
                                     .kind = !map || injected_image_or_memory(map) ? FRAME_UNKNOWN
                                                                                   : FRAME_NATIVE};
    return add_frame(names, &frame);
}

/* ---- JIT code by its log ---- */

static struct frame_source source_at(const struct line_table *table, uint64_t offset)
{
    size_t behind;
    array_bisect(behind, table->row_count, table->rows[behind].offset <= offset);
    const struct line_row *row = behind ? &table->rows[behind - 1] : NULL;
    if (!row || line_name_is_overwritten(row->file))
        return (struct frame_source){.line = 0};
    return (struct frame_source){row->file, row->line};
}

/* The calls that TABLE has inlined at OFFSET, of which *AT is the line; then that is where the
 * outermost was called.
 */
static int add_inlined(struct address_names *names, const struct line_table *table, uint64_t offset,
                       struct frame_source *at)
{
    int32_t call = line_spans_call_at(table->spans, table->span_count, offset);
    for (; call != LINE_NOT_INLINED; call = table->inlines[call].parent) {
        const struct line_inline *inlined = &table->inlines[call];
        const struct frame_source start = {inlined->decl_file, inlined->decl_line};
        if (inlined->name.text &&
            add_jit(names, inlined->name, true, (struct frame_places){start, *at}))
            return -1;
        *at = (struct frame_source){inlined->call_file, inlined->call_line};
    }
    return 0;
}

static void set_place(struct address_names *names, uint64_t offset, struct frame_source source)
{
    names->place = (struct call_place){.offset = (uint32_t)offset,
                                       .line = source.line,
                                       .file = add_text(names, source.file.text, source.file.bytes),
                                       .known = offset <= UINT32_MAX};
}

/* FUNCTION's lines, valid until the next call; NULL without memory. */
static const struct line_table *lines_of(struct address_names *names,
                                         const struct jit_function *function)
{
    const size_t at = (uintptr_t)function->lines / sizeof *function->lines % RECENT_TABLES;
    struct recent_lines *recent = &names->lines[at];
    if (recent->of == function->lines)
        return &recent->table;
    recent->of = NULL;
    if (code_lines_decode(function->lines, function->size, &recent->table))
        return NULL;
    recent->of = function->lines;
    return &recent->table;
}

/* The begin of a function in pieces: the begin of its first piece. */
static int find_start(struct address_names *names, const struct jit_function *function,
                      struct frame_source *start)
{
    if (!function->lines)
        return 0;
    const struct line_table *lines = lines_of(names, function);
    if (!lines)
        return -1;
    *start = source_at(lines, 0);
    return 0;
}

static int add_function(struct address_names *names, const struct code_log *log,
                        const struct jit_function *function, uint64_t pc)
{
    struct frame_places places = {.at = {.line = 0}};
    const struct jit_function *first = code_log_first_piece(log, function);
    if (first != function && find_start(names, first, &places.start))
        return -1;
    const struct line_table *lines = NULL;
    if (function->lines) {
        lines = lines_of(names, function);
        if (!lines)
            return -1;
        places.at = source_at(lines, pc - function->addr);
        if (first == function)
            places.start = source_at(lines, 0);
    }
    set_place(names, pc - function->addr, places.at);
    if (lines && add_inlined(names, lines, pc - function->addr, &places.at))
        return -1;
    return add_jit(names, (struct line_text){function->name, function->name_bytes}, false, places);
}

/* ---- Files ---- */

static int add_place(struct address_names *names, const struct native_place *place,
                     const char *path)
{
    const char *module = file_name_of(path);
    char *name = native_name_shown(place->name);
    if (!name)
        return -1;
    const struct frame_source start = source_in(place->decl_file, place->decl_line);
    const struct frame_source at = source_in(place->file, place->line);
    const struct call_frame frame = {.name = add_text(names, name, strlen(name)),
                                     .module = add_text(names, module, strlen(module)),
                                     .file = add_text(names, start.file.text, start.file.bytes),
                                     .line = start.file.bytes ? start.line : 0,
                                     .kind = frame_name_is_interpreter(name) ? FRAME_INTERPRETER
                                                                             : FRAME_NATIVE,
                                     .inlined = place->inlined};
    free(name);
    return add_frame_at(names, &frame, (struct address_frame){.line = line_in(start.file, &at)});
}

static int add_places(struct address_names *names, struct native_file *file, uint64_t addr)
{
    struct native_place places[NATIVE_PLACES];
    const char *path = file->map->map.filename;
    bool is_image = injected_image_is(path);
    size_t count = native_symbols_at(&names->symbols, file, addr, places);
    int result = count ? 0 : -1;
    if (!result && places[count - 1].name)
        set_place(names, places[count - 1].offset,
                  (struct frame_source){places[0].file ? line_text_of(places[0].file)
                                                       : (struct line_text){NULL, 0},
                                        places[0].line > 0 ? (uint32_t)places[0].line : 0});
    for (size_t i = 0; !result && i < count; i++)
        if (!places[i].name)
            result = add_unknown(names, &file->map->map);
        else if (is_image)
            result =
                add_jit(names, line_text_of(places[i].name), places[i].inlined,
                        (struct frame_places){source_in(places[i].decl_file, places[i].decl_line),
                                              source_in(places[i].file, places[i].line)});
        else
            result = add_place(names, &places[i], path);
    return result;
}

/* Tell, once for each file, that FILE's names would be those of another one. */
static int note_change(struct address_names *names, struct native_file *file)
{
    struct call_profile *to = names->to;
    const char *module = file_name_of(file->map->map.filename);
    if (!file->found.change || file->is_told)
        return 0;
    file->is_told = true;
    if (array_reserve(to->changed, to->changed_count, to->changed_capacity))
        return -1;
    to->changed[to->changed_count] = add_text(names, module, strlen(module));
    return to->changed[to->changed_count++] == PROFILE_NOTHING ? -1 : 0;
}

static int add_mapped(struct address_names *names, uint32_t what, uint64_t pc)
{
    if (what == SPACE_NOTHING)
        return add_unknown(names, NULL);
    struct native_file *file = native_file_of(names->files, what);
    uint64_t addr;
    if (!file)
        return -1;
    if (!native_file_addr(names->files, file, what, pc, &addr))
        return note_change(names, file) ||
               add_unknown(names, &names->source->records->maps[what].map);
    return add_places(names, file, addr);
}

/* ---- Asking ---- */

static int name_user(struct address_names *names, uint32_t what, uint64_t pc)
{
    size_t process;
    if (what == SPACE_NOTHING || !(what & SPACE_FUNCTION))
        return add_mapped(names, what, pc);
    const struct jit_function *function =
        space_function(names->source, what & ~SPACE_FUNCTION, &process);
    return add_function(names, names->source->timelines[process].log, function, pc);
}

static int name_kernel(struct address_names *names, uint64_t pc, uint64_t what)
{
    const char *name;
    size_t code = what & KERNEL_TOLD ? (size_t)(what & ~KERNEL_TOLD) : NO_KERNEL_CODE;
    if (kernel_list_at(&names->kernel, pc, code, &name))
        return -1;
    const struct call_frame frame = {.name = name ? add_text(names, name, strlen(name))
                                                  : add_text(names, "[kernel]", strlen("[kernel]")),
                                     .module = add_text(names, "[kernel]", strlen("[kernel]")),
                                     .kind = FRAME_KERNEL};
    return add_frame(names, &frame);
}

static int name_mode(struct address_names *names, uint64_t mode)
{
    const char *name = mode == PERF_MISC_HYPERVISOR     ? "[hypervisor]"
                       : mode == PERF_MISC_GUEST_KERNEL ? "[guest kernel]"
                       : mode == PERF_MISC_GUEST_USER   ? "[guest user]"
                                                        : "[unknown]";
    const struct call_frame frame = {.name = add_text(names, name, strlen(name)),
                                     .kind = FRAME_UNKNOWN};
    return add_frame(names, &frame);
}

static int name_any(struct address_names *names, struct address_key key)
{
    if (key.what >= OTHER_MODES)
        return name_mode(names, key.what - OTHER_MODES);
    return key.what >= KERNEL_CODE ? name_kernel(names, key.pc, key.what)
                                   : name_user(names, (uint32_t)key.what, key.pc);
}

static int ask(struct address_names *names, uint64_t what, uint64_t pc,
               struct address_frames *frames)
{
    const struct address_key key = {pc, what};
    if (grow(names))
        return -1;
    struct named_address *place = place_of(names, key);
    if (!place->count) {
        size_t first = names->frame_count;
        names->place = (struct call_place){0};
        if (name_any(names, key))
            return -1;
        uint32_t number = names->place.file == PROFILE_NOTHING
                              ? PROFILE_NOTHING
                              : call_profile_add_place(names->to, &names->place);
        if (number == PROFILE_NOTHING)
            return -1;
        *place = (struct named_address){key, first, names->frame_count - first, number};
        names->count++;
    }
    *frames = (struct address_frames){names->frames + place->first, place->count, place->place};
    return 0;
}

static struct recent_address *recent_of(const struct address_names *names, uint64_t pc)
{
    return &names->recent[pc * UINT64_C(0x9E3779B97F4A7C15) >> (64 - RECENT_BITS)];
}

static bool is_still(const struct recent_address *recent, const struct address_space *space,
                     uint64_t pc)
{
    return recent->count && recent->pc == pc && recent->life == space->life &&
           address_space_since(space, pc) <= recent->version;
}

int address_names_of_user(struct address_names *names, const struct address_space *space,
                          uint64_t pc, struct address_frames *frames)
{
    struct recent_address *recent = recent_of(names, pc);
    if (!space)
        return ask(names, SPACE_NOTHING, pc, frames);
    if (is_still(recent, space, pc)) {
        *frames =
            (struct address_frames){names->frames + recent->first, recent->count, recent->place};
        return 0;
    }
    if (ask(names, address_space_at(space, pc), pc, frames))
        return -1;
    *recent = (struct recent_address){.pc = pc,
                                      .version = space->version,
                                      .life = space->life,
                                      .place = frames->place,
                                      .first = (size_t)(frames->frames - names->frames),
                                      .count = frames->count};
    return 0;
}

int address_names_of_kernel(struct address_names *names, uint64_t pc, struct life_moment moment,
                            struct address_frames *frames)
{
    size_t code = kernel_code_at(&names->source->records->kernel_code, pc, moment);
    return ask(names, code == NO_KERNEL_CODE ? KERNEL_CODE : KERNEL_TOLD | code, pc, frames);
}

int address_names_of_mode(struct address_names *names, unsigned mode, struct address_frames *frames)
{
    return ask(names, OTHER_MODES + mode, 0, frames);
}

uint32_t address_names_of_symbol(struct address_names *names, struct line_text symbol)
{
    return add_jit(names, symbol, false, (struct frame_places){.at = {.line = 0}})
               ? PROFILE_NOTHING
               : names->frames[names->frame_count - 1].frame;
}

int address_names_begin(struct address_names *names, struct call_profile *to,
                        const struct space_source *source, struct native_files *files)
{
    *names = (struct address_names){.to = to, .source = source, .files = files};
    names->symbols.files = files;
    names->recent = calloc((size_t)1 << RECENT_BITS, sizeof *names->recent);
    if (!names->recent)
        return -1;
    return kernel_list_begin(
        &names->kernel, source->records,
        (struct kernel_paths){"/proc/kallsyms", "/sys/kernel/notes", getenv("HOME")});
}

void address_names_end(struct address_names *names)
{
    native_symbols_free(&names->symbols);
    kernel_list_end(&names->kernel);
    for (size_t i = 0; i < RECENT_TABLES; i++)
        line_table_free(&names->lines[i].table);
    free(names->items);
    free(names->recent);
    free(names->frames);
    *names = (struct address_names){0};
}
