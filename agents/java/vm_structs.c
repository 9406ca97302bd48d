/* See vm_structs.h.
 *
 * CodeCache::_heaps         the code heaps.  A heap is cut into segments of a power of two
 * CodeHeap::_segmap         for each segment, how many segments to go back to its block's first;
 *                           0: it is the first; 0xff: it is free; large blocks take several steps
 * HeapBlock                 in front of a CodeBlob: its length, and whether it is in use
 * CodeBlob, nmethod         17 has addresses of the code, 25 offsets
 */
#include "agents/java/vm_structs.h"

#include "agents/java/array_room.h"
#include "jitdump/guest/code_probe.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* nmethod::_state: less than IN_USE while it is made; then in use; not entrant, which goes on where
 * it runs (17: 2, newer ones: 1); in 17 gone as well (3, 4). */
enum { IN_USE = 0, NOT_ENTRANT_MOST = 2 };

enum { FREE_SEGMENT = 0xff, HEAPS_MOST = 16, FRAME_BYTES_MOST = 1 << 20 };

/* ---- The tables ---- */

static uint64_t exported(void *libjvm, const char *name)
{
    const uint64_t *variable = dlsym(libjvm, name);
    return variable ? *variable : 0;
}

static uint64_t word_at(uint64_t address)
{
    return *(const uint64_t *)(uintptr_t)address;
}

static const char *text_at(uint64_t address)
{
    return (const char *)(uintptr_t)word_at(address);
}

/* How many bytes a field of the type TEXT has; 0: not known. */
static uint32_t type_bytes(const char *text, bool *is_signed)
{
    static const struct {
        const char *text;
        uint32_t bytes;
        bool is_signed;
    } types[] = {
        {"int", 4, true},       {"u2", 2, false},         {"int16_t", 2, true},
        {"CompLevel", 1, true}, {"bool", 1, false},       {"volatile signed char", 1, true},
        {"address", 8, false},  {"u1", 1, false},         {"size_t", 8, false},
        {"uint32_t", 4, false}, {"const uint", 4, false}, {"JavaThread *const *const", 8, false}};
    *is_signed = false;
    if (!text)
        return 0;
    if (text[0] && text[strlen(text) - 1] == '*')
        return 8;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(text, types[i].text) == 0) {
            *is_signed = types[i].is_signed;
            return types[i].bytes;
        }
    return strcmp(text, "VirtualSpace") == 0 ? 8 : 0; /* a struct: only its place counts */
}

struct struct_table {
    uint64_t entries, stride, type, field, text, is_static, offset, address;
};

/* The first field that is there: "nmethod::_method". */
static struct vm_field find_field(const struct struct_table *table, const char *type,
                                  const char *field)
{
    for (uint64_t at = table->entries; text_at(at + table->type); at += table->stride) {
        const char *name = text_at(at + table->field);
        if (strcmp(text_at(at + table->type), type) || !name || strcmp(name, field))
            continue;
        struct vm_field found;
        found.bytes = type_bytes(text_at(at + table->text), &found.is_signed);
        found.at = *(const int32_t *)(uintptr_t)(at + table->is_static)
                       ? word_at(at + table->address)
                       : word_at(at + table->offset);
        return found;
    }
    return (struct vm_field){0};
}

/* The entry called NAME of a table at ENTRIES, whose text stands at offset TEXT; 0: there is none.
 */
static uint64_t find_entry(uint64_t entries, uint64_t stride, uint64_t text, const char *name)
{
    for (uint64_t at = entries; at && stride && text_at(at + text); at += stride)
        if (strcmp(text_at(at + text), name) == 0)
            return at;
    return 0;
}

static uint64_t find_size(void *libjvm, const char *name)
{
    const uint64_t entry = find_entry(exported(libjvm, "gHotSpotVMTypes"),
                                      exported(libjvm, "gHotSpotVMTypeEntryArrayStride"),
                                      exported(libjvm, "gHotSpotVMTypeEntryTypeNameOffset"), name);
    return entry ? word_at(entry + exported(libjvm, "gHotSpotVMTypeEntrySizeOffset")) : 0;
}

static int32_t find_constant(void *libjvm, const char *name)
{
    const uint64_t entry =
        find_entry(exported(libjvm, "gHotSpotVMIntConstants"),
                   exported(libjvm, "gHotSpotVMIntConstantEntryArrayStride"),
                   exported(libjvm, "gHotSpotVMIntConstantEntryNameOffset"), name);
    const uint64_t value = exported(libjvm, "gHotSpotVMIntConstantEntryValueOffset");
    return entry ? *(const int32_t *)(uintptr_t)(entry + value) : 0;
}

static bool has_all(const struct vm_structs *structs)
{
    const struct vm_field *needed[] = {
        &structs->heaps,       &structs->array_length, &structs->array_data,
        &structs->heap_memory, &structs->heap_segmap,  &structs->heap_log2_segment,
        &structs->space_low,   &structs->space_high,   &structs->block_used,
        &structs->name,        &structs->size,         &structs->tier};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!needed[i]->bytes)
            return false;
    return structs->block_bytes && ((structs->code_begin.bytes && structs->code_end.bytes) ||
                                    (structs->code_offset.bytes && structs->data_offset.bytes));
}

static void read_fields(struct vm_structs *structs, const struct struct_table *table)
{
    const struct {
        struct vm_field *field;
        const char *type, *name;
    } fields[] = {{&structs->heaps, "CodeCache", "_heaps"},
                  {&structs->array_length, "GrowableArrayBase", "_len"},
                  {&structs->array_data, "GrowableArray<int>", "_data"},
                  {&structs->heap_memory, "CodeHeap", "_memory"},
                  {&structs->heap_segmap, "CodeHeap", "_segmap"},
                  {&structs->heap_log2_segment, "CodeHeap", "_log2_segment_size"},
                  {&structs->space_low, "VirtualSpace", "_low"},
                  {&structs->space_high, "VirtualSpace", "_high"},
                  {&structs->block_used, "HeapBlock::Header", "_used"},
                  {&structs->block_length, "HeapBlock::Header", "_length"},
                  {&structs->name, "CodeBlob", "_name"},
                  {&structs->size, "CodeBlob", "_size"},
                  {&structs->code_begin, "CodeBlob", "_code_begin"},
                  {&structs->code_end, "CodeBlob", "_code_end"},
                  {&structs->code_offset, "CodeBlob", "_code_offset"},
                  {&structs->data_offset, "CodeBlob", "_data_offset"},
                  {&structs->frame_size, "CodeBlob", "_frame_size"},
                  {&structs->state, "nmethod", "_state"},
                  {&structs->compile_id, "nmethod", "_compile_id"},
                  {&structs->tier, "nmethod", "_comp_level"},
                  {&structs->verified_entry, "nmethod", "_verified_entry_point"},
                  {&structs->verified_entry_offset, "nmethod", "_verified_entry_offset"},
                  {&structs->osr_entry, "nmethod", "_osr_entry_point"},
                  {&structs->entry_bci, "nmethod", "_entry_bci"},
                  {&structs->compiled_method, "CompiledMethod", "_method"},
                  {&structs->const_method, "Method", "_constMethod"},
                  {&structs->constants, "ConstMethod", "_constants"},
                  {&structs->name_index, "ConstMethod", "_name_index"},
                  {&structs->signature_index, "ConstMethod", "_signature_index"},
                  {&structs->code_bytes, "ConstMethod", "_code_size"},
                  {&structs->id_number, "ConstMethod", "_method_idnum"},
                  {&structs->holder, "ConstantPool", "_pool_holder"},
                  {&structs->methods, "InstanceKlass", "_methods"},
                  {&structs->method_ids, "InstanceKlass", "_methods_jmethod_ids"},
                  {&structs->items_length, "Array<int>", "_length"},
                  {&structs->methods_data, "Array<Method*>", "_data"},
                  {&structs->threads, "ThreadsSMRSupport", "_java_thread_list"},
                  {&structs->threads_length, "ThreadsList", "_length"},
                  {&structs->threads_data, "ThreadsList", "_threads"},
                  {&structs->stack_base, "JavaThread", "_stack_base"},
                  {&structs->stack_bytes, "JavaThread", "_stack_size"},
                  {&structs->symbol_length, "Symbol", "_length"},
                  {&structs->symbol_body, "Symbol", "_body[0]"}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        *fields[i].field = find_field(table, fields[i].type, fields[i].name);
    if (!structs->compiled_method.bytes) /* 23 and newer */
        structs->compiled_method = find_field(table, "nmethod", "_method");
}

void vm_structs_read(struct vm_structs *structs, const void *function)
{
    Dl_info info;
    *structs = (struct vm_structs){0};
    void *libjvm = dladdr(function, &info) ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (!libjvm)
        return;
    const struct struct_table table = {
        .entries = exported(libjvm, "gHotSpotVMStructs"),
        .stride = exported(libjvm, "gHotSpotVMStructEntryArrayStride"),
        .type = exported(libjvm, "gHotSpotVMStructEntryTypeNameOffset"),
        .field = exported(libjvm, "gHotSpotVMStructEntryFieldNameOffset"),
        .text = exported(libjvm, "gHotSpotVMStructEntryTypeStringOffset"),
        .is_static = exported(libjvm, "gHotSpotVMStructEntryIsStaticOffset"),
        .offset = exported(libjvm, "gHotSpotVMStructEntryOffsetOffset"),
        .address = exported(libjvm, "gHotSpotVMStructEntryAddressOffset")};
    if (table.entries && table.stride) {
        read_fields(structs, &table);
        structs->block_bytes = find_size(libjvm, "HeapBlock");
        structs->blob_bytes = find_size(libjvm, "CodeBlob");
        structs->constants_bytes = find_size(libjvm, "ConstantPool");
        structs->method_bytes = find_size(libjvm, "Method");
        structs->const_method_bytes = find_size(libjvm, "ConstMethod");
        structs->sender_sp_words =
            find_constant(libjvm, "frame::interpreter_frame_sender_sp_offset");
        structs->known = has_all(structs);
    }
    dlclose(libjvm);
}

/* ---- Code ---- */

/* The names of compiled methods' blobs. */
static const char *const method_names[] = {"nmethod", "native nmethod"};

/* The FIELD of the struct at BASE; 0 where there is none. */
static uint64_t value(uint64_t base, const struct vm_field *field)
{
    const void *at = (const void *)(uintptr_t)(base + field->at);
    switch (field->bytes) {
    case 1:
        return field->is_signed ? (uint64_t) * (const int8_t *)at : *(const uint8_t *)at;
    case 2:
        return field->is_signed ? (uint64_t) * (const int16_t *)at : *(const uint16_t *)at;
    case 4:
        return field->is_signed ? (uint64_t) * (const int32_t *)at : *(const uint32_t *)at;
    case 8:
        return *(const uint64_t *)at;
    default:
        return 0;
    }
}

static uint64_t heap_low(const struct vm_structs *structs, uint64_t heap)
{
    return value(heap + structs->heap_memory.at, &structs->space_low);
}

static uint64_t heap_of(const struct vm_structs *structs, uint64_t addr)
{
    const uint64_t array = value(0, &structs->heaps);
    if (!array)
        return 0;
    const uint64_t count = value(array, &structs->array_length),
                   data = value(array, &structs->array_data);
    for (uint64_t i = 0; i < count && i < HEAPS_MOST; i++) {
        const uint64_t heap = word_at(data + 8 * i);
        if (addr >= heap_low(structs, heap) &&
            addr < value(heap + structs->heap_memory.at, &structs->space_high))
            return heap;
    }
    return 0;
}

/* The CodeBlob that has ADDR; 0: there is none. */
static uint64_t blob_of(const struct vm_structs *structs, uint64_t addr)
{
    const uint64_t heap = heap_of(structs, addr);
    if (!heap)
        return 0;
    const uint64_t low = heap_low(structs, heap), shift = value(heap, &structs->heap_log2_segment);
    const unsigned char *map = (const unsigned char *)(uintptr_t)value(
        heap + structs->heap_segmap.at, &structs->space_low);
    uint64_t segment = shift < 32 ? (addr - low) >> shift : 0;
    while (map[segment] && map[segment] != FREE_SEGMENT && map[segment] <= segment)
        segment -= map[segment];
    const uint64_t block = low + (segment << shift);
    return map[segment] == 0 && value(block, &structs->block_used) ? block + structs->block_bytes
                                                                   : 0;
}

static void read_code_range(const struct vm_structs *structs, uint64_t blob, uint64_t *begin,
                            uint64_t *end)
{
    if (structs->code_begin.bytes) {
        *begin = value(blob, &structs->code_begin);
        *end = value(blob, &structs->code_end);
    } else {
        *begin = blob + value(blob, &structs->code_offset);
        *end = blob + value(blob, &structs->data_offset);
    }
}

static void read_frame_size(const struct vm_structs *structs, uint64_t blob, struct vm_code *code)
{
    const int64_t words = (int64_t)value(blob, &structs->frame_size);
    if (words > 0 && words < FRAME_BYTES_MOST / 8)
        code->frame_bytes = 8 * (uint64_t)words;
}

static void read_entries(const struct vm_structs *structs, uint64_t blob, struct vm_code *code)
{
    code->verified_entry = structs->verified_entry.bytes ? value(blob, &structs->verified_entry)
                           : structs->verified_entry_offset.bytes
                               ? code->begin + value(blob, &structs->verified_entry_offset)
                               : 0;
    if ((int64_t)value(blob, &structs->entry_bci) >= 0) /* -1: it is entered at its beginning */
        code->osr_entry = value(blob, &structs->osr_entry);
    code->method = value(blob, &structs->compiled_method);
}

bool vm_code_find(const struct vm_structs *structs, uint64_t addr, struct vm_code *code)
{
    *code = (struct vm_code){0};
    const uint64_t blob = structs->known ? blob_of(structs, addr) : 0;
    const char *name = blob ? (const char *)(uintptr_t)value(blob, &structs->name) : NULL;
    if (!name)
        return false;
    code->is_compiled = strcmp(name, method_names[0]) == 0 || strcmp(name, method_names[1]) == 0;
    read_code_range(structs, blob, &code->begin, &code->end);
    if (addr < code->begin || addr >= code->end || code->end > blob + value(blob, &structs->size))
        return false;
    read_frame_size(structs, blob, code);
    if (!code->is_compiled)
        return code->frame_bytes != 0;
    const int64_t tier = (int64_t)value(blob, &structs->tier);
    code->tier = *name == 'n' && name[1] == 'm' && tier > 0 && tier <= 4 ? (int)tier : 0;
    code->compile_id = value(blob, &structs->compile_id);
    read_entries(structs, blob, code);
    return true;
}

/* ---- All code ---- */

/* Called with each blob that is in use, and with the end of its block.  False: the walk ends. */
typedef bool visit_blob(const struct vm_structs *structs, void *user, uint64_t blob, uint64_t end);

/* Text that may be gone by now, and then is no longer text. */
bool vm_name_copy(uint64_t addr, char name[VM_NAME_BYTES])
{
    for (size_t i = 0; i < VM_NAME_BYTES; i++) {
        const char *at = (const char *)(uintptr_t)(addr + i);
        if ((i == 0 || (addr + i) % LEAST_PAGE_BYTES == 0) && !jd_code_is_readable(at, 1, 0))
            return false;
        name[i] = *at;
        if (!name[i])
            return i > 0;
        if (!isprint((unsigned char)name[i]))
            return false;
    }
    return false;
}

/* Each of the names stands at one place. */
static bool is_method_name(uint64_t names[2], uint64_t name)
{
    char text[VM_NAME_BYTES];
    if (name == names[0] || name == names[1])
        return true;
    if ((names[0] && names[1]) || !vm_name_copy(name, text))
        return false;
    for (size_t i = 0; i < 2; i++)
        if (strcmp(text, method_names[i]) == 0) {
            names[i] = name;
            return true;
        }
    return false;
}

static bool add_blob(const struct vm_structs *structs, void *user, uint64_t blob, uint64_t end)
{
    struct vm_blobs *blobs = user;
    struct vm_blob found = {.name = value(blob, &structs->name)};
    read_code_range(structs, blob, &found.begin, &found.end);
    if (!found.name || found.begin < blob || found.begin >= found.end || found.end > end ||
        is_method_name(blobs->method_names, found.name))
        return true;
    struct vm_blob *items =
        array_with_room(blobs->items, blobs->count, 1, &blobs->capacity, sizeof *items);
    if (!items)
        return false;
    blobs->items = items;
    items[blobs->count++] = found;
    return true;
}

/* A heap only grows, and its memory can be read up to its end.  False: the walk is cut short, by
 * VISIT, or by a block that is just being cut or joined. */
static bool walk_heap(const struct vm_structs *structs, uint64_t heap, visit_blob *visit,
                      void *user)
{
    const uint64_t low = heap_low(structs, heap), shift = value(heap, &structs->heap_log2_segment),
                   high = value(heap + structs->heap_memory.at, &structs->space_high),
                   map_low = value(heap + structs->heap_segmap.at, &structs->space_low),
                   map_high = value(heap + structs->heap_segmap.at, &structs->space_high);
    if (shift >= 32)
        return false;
    const unsigned char *map = (const unsigned char *)(uintptr_t)map_low;
    const uint64_t in_memory = (high - low) >> shift, in_map = map_high - map_low,
                   count = in_memory < in_map ? in_memory : in_map;
    for (uint64_t segment = 0; segment < count && map[segment] != FREE_SEGMENT;) {
        const uint64_t block = low + (segment << shift),
                       length = value(block, &structs->block_length);
        if (map[segment] != 0 || length == 0 || length > count - segment)
            return false;
        const uint64_t blob = block + structs->block_bytes, end = block + (length << shift);
        if (value(block, &structs->block_used) && blob + structs->blob_bytes < end &&
            !visit(structs, user, blob, end))
            return false;
        segment += length;
    }
    return true;
}

static bool walk_heaps(const struct vm_structs *structs, visit_blob *visit, void *user)
{
    const uint64_t array = structs->known ? value(0, &structs->heaps) : 0;
    if (!array || !structs->block_length.bytes || !structs->blob_bytes)
        return false;
    const uint64_t count = value(array, &structs->array_length),
                   data = value(array, &structs->array_data);
    for (uint64_t i = 0; i < count && i < HEAPS_MOST; i++)
        if (!walk_heap(structs, word_at(data + 8 * i), visit, user))
            return false;
    return true;
}

static int by_begin(const void *a, const void *b)
{
    const struct vm_blob *one = a, *other = b;
    return one->begin < other->begin ? -1 : one->begin > other->begin;
}

bool vm_blobs_read(const struct vm_structs *structs, struct vm_blobs *blobs)
{
    blobs->count = 0;
    if (!walk_heaps(structs, add_blob, blobs))
        return false;
    if (blobs->count)
        qsort(blobs->items, blobs->count, sizeof *blobs->items, by_begin);
    return true;
}

struct method_walk {
    vm_method_check *check;
    void *user;
    uint64_t names[2];
};

static bool check_method(const struct vm_structs *structs, void *user, uint64_t blob, uint64_t end)
{
    struct method_walk *walk = user;
    uint64_t begin, behind;
    const uint64_t name = value(blob, &structs->name);
    if (!name || !is_method_name(walk->names, name))
        return true;
    const int64_t state = (int64_t)value(blob, &structs->state);
    read_code_range(structs, blob, &begin, &behind);
    if (state < IN_USE || state > NOT_ENTRANT_MOST || begin < blob || begin >= behind ||
        behind > end)
        return true;
    return walk->check(walk->user, begin, value(blob, &structs->compile_id));
}

bool vm_methods_are_known(const struct vm_structs *structs)
{
    return structs->known && structs->state.bytes && structs->compile_id.bytes &&
           structs->block_length.bytes && structs->blob_bytes;
}

bool vm_methods_all(const struct vm_structs *structs, vm_method_check *check, void *user)
{
    struct method_walk walk = {check, user, {0, 0}};
    return vm_methods_are_known(structs) && walk_heaps(structs, check_method, &walk);
}

const struct vm_blob *vm_blobs_find(const struct vm_blobs *blobs, uint64_t addr)
{
    size_t low = 0, high = blobs->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (blobs->items[middle].end > addr)
            high = middle;
        else
            low = middle + 1;
    }
    return low < blobs->count && blobs->items[low].begin <= addr ? &blobs->items[low] : NULL;
}

/* ---- Methods ---- */

/* The text of the symbol that stands in the constant POOL at INDEX; to be freed, or NULL. */
static char *symbol_text(const struct vm_structs *structs, uint64_t pool, uint64_t index)
{
    const uint64_t symbol = word_at(pool + structs->constants_bytes + 8 * index);
    const char *body = (const char *)(uintptr_t)(symbol + structs->symbol_body.at);
    return symbol ? strndup(body, value(symbol, &structs->symbol_length)) : NULL;
}

bool vm_method_texts(const struct vm_structs *structs, uint64_t method, char **name,
                     char **signature)
{
    *name = *signature = NULL;
    if (!method || !structs->const_method.bytes || !structs->constants.bytes ||
        !structs->name_index.bytes || !structs->signature_index.bytes ||
        !structs->symbol_length.bytes || !structs->symbol_body.bytes || !structs->constants_bytes)
        return false;
    const uint64_t fixed = value(method, &structs->const_method),
                   pool = value(fixed, &structs->constants);
    *name = symbol_text(structs, pool, value(fixed, &structs->name_index));
    *signature = symbol_text(structs, pool, value(fixed, &structs->signature_index));
    if (*name && *signature)
        return true;
    free(*name);
    free(*signature);
    *name = *signature = NULL;
    return false;
}

uint64_t vm_method_const(const struct vm_structs *structs, uint64_t method)
{
    return value(method, &structs->const_method);
}

struct vm_bytecodes vm_method_bytecodes(const struct vm_structs *structs, uint64_t method)
{
    const uint64_t fixed = vm_method_const(structs, method);
    if (!fixed || !structs->const_method_bytes)
        return (struct vm_bytecodes){0};
    return (struct vm_bytecodes){fixed + structs->const_method_bytes,
                                 value(fixed, &structs->code_bytes)};
}
