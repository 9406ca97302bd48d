/* See line_entry.h. */
#include "injector/log/lines/line_entry.h"

/* How many bytes, from AT on, are the name of the last entry but one, or an earlier one: the next
 * one's address follows their NUL.  Returns SIZE_MAX if there is none. */
static size_t find_next_entry(const struct line_entries *entries, size_t at)
{
    struct byte_cursor cursor = entries->cursor;
    for (size_t start = at; start < cursor.size; start++) {
        const uint8_t *zero = memchr(cursor.data + start, 0, cursor.size - start);
        if (!zero)
            break;
        start = (size_t)(zero - cursor.data);
        cursor.offset = start + 1;
        uint64_t addr = cursor_u64(&cursor);
        if (cursor.failed)
            break;
        if (addr >= entries->low && addr < entries->high)
            return start - at;
    }
    return SIZE_MAX;
}

/* How many of the LEFT bytes from AT on, of which the last is 0, are the last entry's name: V8 pads
 * the record with zeros, to 8 bytes, and the bytes over a name may end in zeros, too. */
static size_t last_name_bytes(const struct line_entries *entries, size_t at, size_t left)
{
    const uint8_t *text = entries->cursor.data + at;
    size_t bytes = left - 1, least = bytes < PADDING_BYTES ? 0 : bytes - PADDING_BYTES;
    while (bytes > least && text[bytes - 1] == 0)
        bytes--;
    struct line_text before = entries->before;
    bool same = before.text && before.bytes >= bytes && before.bytes < left &&
                memcmp(text, before.text, before.bytes) == 0;
    return same ? before.bytes : bytes;
}

static struct line_text take_overwritten(struct line_entries *entries)
{
    struct byte_cursor *cursor = &entries->cursor;
    size_t at = cursor->offset, left = cursor_left(cursor);
    bool closed = left && cursor->data[cursor->size - 1] == 0;
    size_t bytes = entries->left ? find_next_entry(entries, at)
                   : closed      ? last_name_bytes(entries, at, left)
                                 : SIZE_MAX;
    const uint8_t *text = cursor_bytes(cursor, bytes == SIZE_MAX ? left + 1 : bytes + 1);
    return (struct line_text){(const char *)text, text ? (uint32_t)bytes : 0};
}

/* Most names equal the one before, which a single comparison shows. */
static struct line_text take_plain(struct line_entries *entries)
{
    struct byte_cursor *cursor = &entries->cursor;
    size_t bytes = (size_t)entries->before.bytes + 1;
    if (bytes > 1 && bytes <= cursor_left(cursor) &&
        memcmp(cursor->data + cursor->offset, entries->before.text, bytes) == 0) {
        cursor_skip(cursor, bytes);
        return entries->before;
    }
    const char *text = cursor_cstr(cursor);
    return (struct line_text){text, text ? (uint32_t)strlen(text) : 0};
}

/* The same file keeps the same pointer, so that most comparisons are short. */
static struct line_text settle(struct line_entries *entries, struct line_text name)
{
    static const char same[] = "\xff";
    bool repeated = name.bytes == 1 && name.text[0] == same[0];
    if (!repeated && !line_text_same(name, entries->before))
        entries->before = name;
    return entries->before.bytes ? entries->before : (struct line_text){NULL, 0};
}

bool line_entry_next(struct line_entries *entries, struct line_entry *entry)
{
    struct byte_cursor *cursor = &entries->cursor;
    if (entries->left == 0 || cursor->failed)
        return false;
    entries->left--;
    entry->addr = cursor_u64(cursor);
    entry->line = cursor_u32(cursor);
    entry->discrim = cursor_u32(cursor);
    struct line_text name = cursor->failed         ? (struct line_text){NULL, 0}
                            : entries->overwritten ? take_overwritten(entries)
                                                   : take_plain(entries);
    if (cursor->failed)
        return false;
    entry->name = settle(entries, name);
    return true;
}

bool line_name_is_overwritten(struct line_text name)
{
    for (uint32_t i = 0; i < name.bytes; i++)
        if ((unsigned char)name.text[i] < ' ')
            return true;
    return false;
}
