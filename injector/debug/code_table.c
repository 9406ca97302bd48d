/* See code_table.h. */
#include "injector/debug/code_table.h"

#include "injector/inject/image/image_name.h"
#include "injector/text/character.h"
#include "injector/text/json_writer.h"
#include "injector/text/plural.h"
#include "injector/text/printable_text.h"

#include <inttypes.h>
#include <string.h>

/* A file's mappings stand together; a mapping this far from the first one was moved there. */
#define FAR_BYTES (UINT64_C(1) << 32)

uint64_t code_table_start(const struct jit_image *image)
{
    return image->base + image->text_start;
}

uint64_t code_table_end(const struct jit_image *image)
{
    return image->base + image->text_end;
}

/* ---- Pieces of JSON ---- */

/* Paths are any bytes but NUL: those that are no UTF-8 stay as they are. */
static void put_string(FILE *stream, const char *text)
{
    if (!text) {
        fputs("null", stream);
        return;
    }
    putc('"', stream);
    for (size_t left = strlen(text), count; left; left -= count, text += count) {
        enum character character = character_at(text, left, &count);
        if (*text == '"' || *text == '\\')
            fprintf(stream, "\\%c", *text);
        else if (character == CHARACTER_CONTROL || character == CHARACTER_HIDDEN)
            json_put_escaped(stream, text, count);
        else
            fwrite(text, 1, count, stream);
    }
    putc('"', stream);
}

/* ---- Images ---- */

static void file_of(const struct code_table *table, size_t index, char name[IMAGE_FILE_NAME_BYTES])
{
    image_file_name(&table->plan->images[index], table->processes->items, index, name);
}

static const char *mapped_file(const struct code_table *table, const struct jit_image *image)
{
    const struct snapshot_map *map = snapshot_map_at(table->snapshot, code_table_start(image));
    return snapshot_map_is_file(map) ? map->path : NULL;
}

static void put_image(const struct code_table *table, size_t index, FILE *stream)
{
    const struct jit_image *image = &table->plan->images[index];
    char name[IMAGE_FILE_NAME_BYTES], path[8192];
    file_of(table, index, name);
    snprintf(path, sizeof path, "%s/%s", table->directory, name);
    fputs(index ? ",\n  {\"file\":" : "\n  {\"file\":", stream);
    put_string(stream, path);
    fprintf(stream,
            ",\"base\":%" PRIu64 ",\"start\":%" PRIu64 ",\"end\":%" PRIu64
            ",\"functions\":%zu,\"mapped\":",
            image->base, code_table_start(image), code_table_end(image), image->body_count);
    put_string(stream, mapped_file(table, image));
    putc('}', stream);
}

static void put_images(const struct code_table *table, FILE *stream)
{
    fputs(",\n\"images\":[", stream);
    for (size_t i = 0; i < table->plan->image_count; i++)
        put_image(table, i, stream);
    putc(']', stream);
}

/* ---- Functions ---- */

/* The functions of an image are in order, and so are the images. */
static void put_functions(const struct code_table *table, FILE *stream)
{
    const char *between = "\n  ";
    fputs(",\n\"functions\":[", stream);
    for (size_t i = 0; i < table->plan->image_count; i++) {
        const struct jit_image *image = &table->plan->images[i];
        for (size_t j = 0; j < image->body_count; j++) {
            const struct jit_function *function = image->bodies[j].function;
            fprintf(stream, "%s[%" PRIu64 ",%" PRIu64 ",%d]", between, function->addr,
                    function->addr + function->size, function->fde_count != 0);
            between = ",\n  ";
        }
    }
    putc(']', stream);
}

/* The mapping that has the original of MAP's code, not far from the file's first mapping.  NULL:
 * MAP is one of these itself. */
static const struct snapshot_map *original_of(const struct snapshot *snapshot,
                                              const struct snapshot_map *map)
{
    const struct snapshot_map *first = NULL;
    for (size_t i = 0; i < snapshot->map_count; i++) {
        const struct snapshot_map *other = &snapshot->maps[i];
        if (!other->path || strcmp(other->path, map->path) != 0)
            continue;
        first = first ? first : other;
        if (map->start - first->start <= FAR_BYTES)
            return NULL;
        if (other->offset <= map->offset &&
            map->offset - other->offset < other->end - other->start && other->executable)
            return other;
    }
    return NULL;
}

/* Whether debuggers know nothing of the code at MAP: it is no file's, or a file's that the process
 * has copied, as V8 does with its builtins; *DISTANCE: how far. */
static bool is_region(const struct snapshot *snapshot, const struct snapshot_map *map,
                      uint64_t *distance)
{
    *distance = 0;
    if (!map->executable)
        return false;
    if (!snapshot_map_is_file(map))
        return !map->path || strcmp(map->path, "[vdso]") != 0;
    const struct snapshot_map *original = original_of(snapshot, map);
    if (original)
        *distance = map->start - (original->start + (map->offset - original->offset));
    return original != NULL;
}

static void put_regions(const struct code_table *table, FILE *stream)
{
    const char *between = "\n  ";
    uint64_t distance;
    fputs(",\n\"regions\":[", stream);
    for (size_t i = 0; i < table->snapshot->map_count; i++) {
        const struct snapshot_map *map = &table->snapshot->maps[i];
        if (!is_region(table->snapshot, map, &distance))
            continue;
        fprintf(stream, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", between, map->start, map->end,
                distance);
        between = ",\n  ";
    }
    putc(']', stream);
}

static void put_dumps(const struct code_table *table, FILE *stream)
{
    const char *between = "";
    fputs(",\n\"dumps\":[", stream);
    for (size_t i = 0; i < table->processes->count; i++) {
        const struct jit_process *process = &table->processes->items[i];
        for (size_t d = 0; d < process->dump_count; d++) {
            fputs(between, stream);
            put_string(stream, process->dump_paths[d]);
            between = ",";
        }
    }
    putc(']', stream);
}

/* ---- The whole ---- */

void code_table_json(const struct code_table *table, FILE *stream)
{
    const struct snapshot *snapshot = table->snapshot;
    fprintf(stream, "{\"pid\":%" PRIu32 ",\"live\":%s,\"machine\":\"%s\"", snapshot->pid,
            snapshot->live ? "true" : "false", snapshot->machine->names[0]);
    put_dumps(table, stream);
    put_images(table, stream);
    put_functions(table, stream);
    put_regions(table, stream);
    fputs("}\n", stream);
}

void code_table_text(const struct code_table *table, FILE *stream)
{
    for (size_t i = 0; i < table->plan->image_count; i++) {
        const struct jit_image *image = &table->plan->images[i];
        const char *mapped = mapped_file(table, image);
        char name[IMAGE_FILE_NAME_BYTES];
        file_of(table, i, name);
        printable_line(stream,
                       "0x%012" PRIx64 "-0x%012" PRIx64 " base 0x%012" PRIx64
                       " %zu function%s %s/%s%s%s",
                       code_table_start(image), code_table_end(image), image->base,
                       image->body_count, plural(image->body_count), table->directory, name,
                       mapped ? " in " : "", mapped ? mapped : "");
    }
}

/* ---- lldb ---- */

/* The base of IMAGE for a debugger that knows the file that is mapped at IMAGE's addresses.  The
 * process has copied that file to the base.  Returns false if there is no copy. */
static bool find_copy(const struct code_table *table, const struct jit_image *image, uint64_t *base)
{
    uint64_t distance;
    for (size_t i = 0; i < table->snapshot->map_count; i++) {
        const struct snapshot_map *map = &table->snapshot->maps[i];
        if (is_region(table->snapshot, map, &distance) && distance &&
            map->start < code_table_end(image) + distance &&
            code_table_start(image) + distance < map->end) {
            *base = image->base + distance;
            return true;
        }
    }
    return false;
}

/* lldb has a file at one address only: V8 has one copy. */
void code_table_lldb(const struct code_table *table, FILE *stream)
{
    for (size_t i = 0; i < table->plan->image_count; i++) {
        const struct jit_image *image = &table->plan->images[i];
        uint64_t base = image->base;
        char name[IMAGE_FILE_NAME_BYTES];
        if (mapped_file(table, image) && !find_copy(table, image, &base))
            continue;
        file_of(table, i, name);
        fprintf(stream,
                "target modules add \"%s/%s\"\n"
                "target modules load --file \"%s/%s\" --slide 0x%" PRIx64 "\n",
                table->directory, name, table->directory, name, base);
    }
}
