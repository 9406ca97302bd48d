/* See plt_symbols.h.  System V ABI for AMD64, 5.2; the forms with endbr64: its appendix on IBT. */
#include "injector/native/symbols/plt_symbols.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/arrays/number_sort.h"
#include "jitdump/format/byte_cursor.h"

#include <elf.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

enum { STEP = 8, STUB_BYTES = 16 };

/* A word that stubs jump through, and what is in it. */
struct filled_word {
    uint64_t addr;
    const char *name; /* the file's */
};

struct filled_words {
    struct filled_word *items; /* by addr */
    size_t count, capacity;
};

static int add_word(struct filled_words *words, struct elf_view *view, const GElf_Rela *relocation,
                    Elf_Data *symbols, size_t names)
{
    GElf_Sym symbol;
    unsigned type = (unsigned)GELF_R_TYPE(relocation->r_info);
    if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) ||
        !gelf_getsym(symbols, (int)GELF_R_SYM(relocation->r_info), &symbol))
        return 0;
    const char *name = elf_strptr(view->elf, names, symbol.st_name);
    if (!name || !*name)
        return 0;
    if (array_reserve(words->items, words->count, words->capacity))
        return -1;
    words->items[words->count++] = (struct filled_word){relocation->r_offset, name};
    return 0;
}

/* The words that the relocations in SECTION fill. */
static int add_words(struct filled_words *words, struct elf_view *view, Elf_Scn *section)
{
    size_t names;
    GElf_Rela relocation;
    Elf_Data *symbols = elf_view_symbols(view, SHT_DYNSYM, &names);
    Elf_Data *data = symbols ? elf_getdata(section, NULL) : NULL;
    for (int i = 0; data && gelf_getrela(data, i, &relocation); i++)
        if (add_word(words, view, &relocation, symbols, names))
            return -1;
    return 0;
}

static int find_words(struct filled_words *words, struct elf_view *view)
{
    GElf_Shdr header;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(view->elf, section));)
        if (gelf_getshdr(section, &header) && header.sh_type == SHT_RELA &&
            header.sh_flags & SHF_ALLOC && add_words(words, view, section))
            return -1;
    number_sort(words->items, words->count, sizeof *words->items);
    return 0;
}

static const char *name_at(const struct filled_words *words, uint64_t addr)
{
    size_t at;
    array_bisect(at, words->count, words->items[at].addr < addr);
    return at < words->count && words->items[at].addr == addr ? words->items[at].name : NULL;
}

/* The word that the code at CODE, of ADDR, jumps through: [endbr64] [bnd] jmp *disp(%rip).  0: it
 * does not. */
static uint64_t word_of(const uint8_t *code, size_t bytes, uint64_t addr)
{
    static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
    struct byte_cursor cursor = byte_cursor_over(code, bytes, false);
    if (bytes >= sizeof endbr && memcmp(code, endbr, sizeof endbr) == 0)
        cursor_skip(&cursor, sizeof endbr);
    if (cursor.offset < bytes && code[cursor.offset] == 0xf2)
        cursor_skip(&cursor, 1);
    bool jumps = cursor_u16(&cursor) == 0x25ff;
    int32_t distance = (int32_t)cursor_u32(&cursor);
    return jumps && !cursor.failed ? addr + cursor.offset + (uint64_t)(int64_t)distance : 0;
}

static int add_stub(struct plt_symbols *plt, uint64_t addr, uint64_t end, const char *name)
{
    static const char mark[] = "@plt";
    size_t length = strlen(name), bytes = length + sizeof mark;
    if (array_reserve(plt->items, plt->count, plt->capacity))
        return -1;
    while (plt->names_capacity - plt->names_bytes < bytes) {
        size_t capacity = 2 * (plt->names_capacity + bytes);
        char *grown = realloc(plt->names, capacity);
        if (!grown)
            return -1;
        plt->names = grown;
        plt->names_capacity = capacity;
    }
    memcpy(plt->names + plt->names_bytes, name, length);
    memcpy(plt->names + plt->names_bytes + length, mark, sizeof mark);
    plt->items[plt->count++] = (struct plt_symbol){addr, end, plt->names_bytes};
    plt->names_bytes += bytes;
    return 0;
}

/* Of all names: a file may be made in which each of many stubs has the same long one. */
static size_t most_bytes(const struct elf_view *view)
{
    return view->size < SIZE_MAX / 4 ? 4 * view->size : SIZE_MAX;
}

/* The stubs in the SECTION.  Those of words that are filled at once have 8 bytes, or 16 with
 * endbr64. */
static int add_stubs(struct plt_symbols *plt, const struct filled_words *words,
                     struct elf_view *view, const char *section)
{
    size_t size = 0;
    uint64_t addr = 0;
    const uint8_t *code = elf_view_section(view, section, &size, &addr);
    for (size_t at = 0; code && at < size; at += STEP) {
        uint64_t word = word_of(code + at, size - at, addr + at);
        const char *name = word ? name_at(words, word) : NULL;
        size_t bytes = code[at] == 0xff && strcmp(section, ".plt.got") == 0 ? STEP : STUB_BYTES;
        if (name && plt->names_bytes + strlen(name) >= most_bytes(view))
            return 0;
        if (name && add_stub(plt, addr + at, addr + at + bytes, name))
            return -1;
    }
    return 0;
}

int plt_symbols_find(struct plt_symbols *plt, struct elf_view *view)
{
    static const char *const sections[] = {".plt", ".plt.got", ".plt.sec"};
    struct filled_words words = {.count = 0};
    if (!view->elf || view->elf_mach != EM_X86_64)
        return 0;
    int result = find_words(&words, view);
    for (size_t i = 0; !result && i < sizeof sections / sizeof *sections; i++)
        result = add_stubs(plt, &words, view, sections[i]);
    free(words.items);
    return result;
}

void plt_symbols_free(struct plt_symbols *plt)
{
    free(plt->items);
    free(plt->names);
    *plt = (struct plt_symbols){0};
}
