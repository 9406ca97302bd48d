/* See old_methods.h. */
#include "agents/java/old_methods.h"

#include "agents/java/array_room.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    PAGE_WORDS = 512,
    EMPTY_MOST = 16, /* so many pages of a stack without any value are below the frames */
    THREADS_MOST = 1 << 16,
    STACK_MOST = 1 << 20, /* bytes of one that are looked at */
    WORDS_MOST = 1 << 22, /* of all stacks */
    BETWEEN_ASKING = 256,
    METHODS_MOST = 1 << 16,
    LEAST_ADDRESS = 1 << 16,
};

/* ---- Reading ---- */

static bool read_all(uint64_t addr, void *to, size_t bytes)
{
    const struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)addr, bytes};
    return addr >= LEAST_ADDRESS &&
           process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

static bool read_field(uint64_t base, const struct vm_field *field, uint64_t *number)
{
    uint8_t bytes[8];
    *number = 0;
    if (!field->bytes || field->bytes > sizeof bytes ||
        !read_all(base + field->at, bytes, field->bytes))
        return false;
    for (unsigned i = 0; i < field->bytes; i++)
        *number |= (uint64_t)bytes[i] << 8 * i;
    return true;
}

/* COUNT addresses at ADDR, to be freed; NULL: they can't be read. */
static uint64_t *read_addresses(uint64_t addr, uint64_t count)
{
    uint64_t *items = count ? malloc((size_t)count * sizeof *items) : NULL;
    if (items && read_all(addr, items, (size_t)count * sizeof *items))
        return items;
    free(items);
    return NULL;
}

/* ---- Methods ---- */

struct method_parts {
    uint64_t fixed, class, name, signature, code_bytes, id_number;
};

static bool read_symbol(const struct vm_structs *structs, uint64_t pool, uint64_t fixed,
                        const struct vm_field *index, uint64_t *symbol)
{
    const struct vm_field entry = {structs->constants_bytes, sizeof *symbol, false};
    uint64_t number;
    return read_field(fixed, index, &number) && read_field(pool + 8 * number, &entry, symbol) &&
           *symbol != 0;
}

static bool read_method(const struct vm_structs *structs, uint64_t method,
                        struct method_parts *parts)
{
    uint64_t pool;
    return read_field(method, &structs->const_method, &parts->fixed) &&
           read_field(parts->fixed, &structs->constants, &pool) &&
           read_field(pool, &structs->holder, &parts->class) &&
           read_symbol(structs, pool, parts->fixed, &structs->name_index, &parts->name) &&
           read_symbol(structs, pool, parts->fixed, &structs->signature_index, &parts->signature) &&
           read_field(parts->fixed, &structs->code_bytes, &parts->code_bytes) &&
           read_field(parts->fixed, &structs->id_number, &parts->id_number);
}

static struct vm_bytecodes bytecodes(const struct vm_structs *structs,
                                     const struct method_parts *parts)
{
    return (struct vm_bytecodes){parts->fixed + structs->const_method_bytes, parts->code_bytes};
}

struct vm_bytecodes old_method_bytecodes(const struct vm_structs *structs, uint64_t method)
{
    struct method_parts parts;
    return read_method(structs, method, &parts) ? bytecodes(structs, &parts)
                                                : (struct vm_bytecodes){0};
}

bool newest_method_bytecodes(const struct vm_structs *structs, uint64_t method,
                             struct vm_bytecodes *codes)
{
    struct method_parts parts;
    *codes = (struct vm_bytecodes){0};
    errno = 0;
    if (structs->const_method_bytes && read_field(method, &structs->const_method, &parts.fixed) &&
        read_field(parts.fixed, &structs->code_bytes, &parts.code_bytes))
        *codes = bytecodes(structs, &parts);
    return errno != EPERM && errno != ENOSYS;
}

/* Where the ID of METHOD points from; NULL: it has none. */
static const uint64_t *find_place(const struct vm_structs *structs, uint64_t method,
                                  const struct method_parts *parts)
{
    const struct vm_field address = {0, sizeof(uint64_t), false};
    uint64_t ids, count, place, there; /* the first of the IDs is their count */
    if (!read_field(parts->class, &structs->method_ids, &ids) ||
        !read_field(ids, &address, &count) || parts->id_number >= count ||
        !read_field(ids + 8 * (parts->id_number + 1), &address, &place) ||
        !read_field(place, &address, &there) || there != method)
        return NULL;
    return (const uint64_t *)(uintptr_t)place;
}

static void add(struct old_methods *methods, const struct old_method *found)
{
    struct old_method *items =
        array_with_room(methods->items, methods->count, 1, &methods->capacity, sizeof *items);
    if (!items)
        return;
    methods->items = items;
    items[methods->count++] = *found;
}

/* METHOD is none of its class's ITEMS: one of them that has its name is in its place. */
static void add_old(struct old_methods *methods, const struct vm_structs *structs, uint64_t method,
                    const struct method_parts *old, const uint64_t *items, uint64_t count)
{
    struct method_parts parts;
    for (uint64_t i = 0; i < count; i++) {
        if (!read_method(structs, items[i], &parts) || parts.class != old->class ||
            parts.name != old->name || parts.signature != old->signature)
            continue;
        const struct old_method found = {
            method, bytecodes(structs, old), find_place(structs, items[i], &parts),
            /* HotSpot gives one that was changed another number. */
            parts.code_bytes == old->code_bytes && parts.id_number == old->id_number};
        methods->again = methods->again || !found.place;
        if (found.place)
            add(methods, &found);
        return;
    }
}

/* WORD was on a stack. */
static void look_at(struct old_methods *methods, const struct vm_structs *structs, uint64_t word)
{
    struct method_parts parts;
    uint64_t array, count;
    if (!read_method(structs, word, &parts) ||
        !read_field(parts.class, &structs->methods, &array) ||
        !read_field(array, &structs->items_length, &count) || count > METHODS_MOST)
        return;
    uint64_t *items = read_addresses(array + structs->methods_data.at, count);
    if (!items)
        return;
    bool is_new = false;
    for (uint64_t i = 0; i < count && !is_new; i++)
        is_new = items[i] == word;
    if (!is_new)
        add_old(methods, structs, word, &parts, items, count);
    free(items);
}

/* ---- Stacks ---- */

struct words {
    uint64_t *items; /* owned */
    size_t count, capacity;
};

/* Add what may be an address outside of [LOW, HIGH).  False: there was nothing but zeros, or no
 * memory. */
static bool add_words(struct words *words, const uint64_t page[PAGE_WORDS], uint64_t low,
                      uint64_t high)
{
    bool any = false;
    uint64_t *items =
        array_with_room(words->items, words->count, PAGE_WORDS, &words->capacity, sizeof *items);
    if (!items)
        return false;
    words->items = items;
    for (size_t i = 0; i < PAGE_WORDS; i++) {
        any = any || page[i];
        if (page[i] >= LEAST_ADDRESS && page[i] % 8 == 0 && page[i] >> 47 == 0 &&
            (page[i] < low || page[i] >= high))
            items[words->count++] = page[i];
    }
    return any;
}

/* From its outermost frame down. */
static void read_stack(struct words *words, uint64_t base, uint64_t bytes)
{
    uint64_t page[PAGE_WORDS];
    const uint64_t low = base - bytes, end = bytes < STACK_MOST ? low : base - STACK_MOST;
    unsigned empty = 0;
    for (uint64_t at = base; at - end >= sizeof page && empty < EMPTY_MOST; at -= sizeof page) {
        if (!read_all(at - sizeof page, page, sizeof page))
            return;
        empty = add_words(words, page, low, base) ? 0 : empty + 1;
    }
}

static void read_stacks(const struct vm_structs *structs, struct words *words,
                        bool (*goes_on)(void))
{
    uint64_t list, count, data, base, bytes;
    if (!read_field(0, &structs->threads, &list) ||
        !read_field(list, &structs->threads_length, &count) ||
        !read_field(list, &structs->threads_data, &data) || count > THREADS_MOST)
        return;
    uint64_t *threads = read_addresses(data, count);
    for (uint64_t i = 0; threads && i < count && words->count < WORDS_MOST && goes_on(); i++)
        if (read_field(threads[i], &structs->stack_base, &base) &&
            read_field(threads[i], &structs->stack_bytes, &bytes) && base % 8 == 0 && bytes < base)
            read_stack(words, base, bytes);
    free(threads);
}

static int by_value(const void *a, const void *b)
{
    const uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return one < other ? -1 : one > other;
}

void old_methods_find(const struct vm_structs *structs, struct old_methods *methods,
                      bool (*goes_on)(void))
{
    struct words words = {0};
    if (!structs->constants_bytes || !structs->const_method_bytes || !structs->methods_data.at)
        return;
    read_stacks(structs, &words, goes_on);
    if (words.count)
        qsort(words.items, words.count, sizeof *words.items, by_value);
    for (size_t i = 0; i < words.count && (i % BETWEEN_ASKING || goes_on()); i++)
        if (i == 0 || words.items[i] != words.items[i - 1])
            look_at(methods, structs, words.items[i]);
    free(words.items);
}

void old_methods_free(struct old_methods *methods)
{
    free(methods->items);
    *methods = (struct old_methods){0};
}
