/* See debug_strings.h. */
#include "injector/inject/dwarf/debug_strings.h"

#include "injector/arrays/array.h"
#include "injector/arrays/hash.h"
#include "injector/inject/dwarf/debug_room.h"

static char printable(char c)
{
    return (unsigned char)c < ' ' || c == 0x7f ? ' ' : c;
}

/* Whether TEXT would be stored as STORED is. */
static bool is_same(const char *stored, const char *text, size_t bytes)
{
    if (memcmp(stored, text, bytes) == 0)
        return true;
    for (size_t i = 0; i < bytes; i++)
        if (stored[i] != printable(text[i]))
            return false;
    return true;
}

/* The slot of the text, or the free one where it belongs. */
static size_t find_slot(const struct debug_strings *strings, uint64_t hash, const char *text,
                        size_t bytes)
{
    size_t mask = strings->slot_count - 1, slot = (size_t)hash & mask;
    for (; strings->slots[slot]; slot = (slot + 1) & mask) {
        const struct debug_string *item = &strings->items[strings->slots[slot] - 1];
        if (item->hash == hash && item->bytes == bytes &&
            is_same((const char *)strings->section.data + item->offset, text, bytes))
            break;
    }
    return slot;
}

static int grow_slots(struct debug_strings *strings)
{
    size_t wanted = strings->slot_count ? strings->slot_count * 2 : 256;
    if (strings->count * 2 < strings->slot_count)
        return 0;
    uint32_t *slots = calloc(wanted, sizeof *slots);
    if (!slots)
        return -1;
    for (size_t i = 0; i < strings->count; i++) {
        size_t slot = (size_t)strings->items[i].hash & (wanted - 1);
        while (slots[slot])
            slot = (slot + 1) & (wanted - 1);
        slots[slot] = (uint32_t)i + 1;
    }
    free(strings->slots);
    strings->slots = slots;
    strings->slot_count = wanted;
    return 0;
}

static void put_text(struct byte_sink *section, const char *text, size_t bytes)
{
    size_t start = section->size;
    debug_room(section, bytes + 1);
    sink_bytes(section, text, bytes);
    sink_u8(section, 0);
    for (size_t i = start; !section->overflow && i < start + bytes; i++)
        section->data[i] = (uint8_t)printable((char)section->data[i]);
}

uint32_t debug_strings_add(struct debug_strings *strings, const char *text, size_t bytes)
{
    struct byte_sink *section = &strings->section;
    if (section->overflow || array_reserve(strings->items, strings->count, strings->capacity) ||
        grow_slots(strings) || bytes > UINT32_MAX - 1 - section->size) {
        section->overflow = true;
        return 0;
    }
    uint64_t hash = XXH3_64bits(text, bytes);
    size_t slot = find_slot(strings, hash, text, bytes);
    if (!strings->slots[slot]) {
        strings->items[strings->count++] =
            (struct debug_string){hash, (uint32_t)section->size, (uint32_t)bytes};
        put_text(section, text, bytes);
        strings->slots[slot] = (uint32_t)strings->count;
    }
    return strings->slots[slot] - 1;
}

uint32_t debug_strings_offset(const struct debug_strings *strings, uint32_t number)
{
    return strings->section.overflow ? 0 : strings->items[number].offset;
}

const char *debug_strings_text(const struct debug_strings *strings, uint32_t number)
{
    return strings->section.overflow
               ? ""
               : (const char *)strings->section.data + strings->items[number].offset;
}

void debug_strings_free(struct debug_strings *strings)
{
    free(strings->section.data);
    free(strings->items);
    free(strings->slots);
}
