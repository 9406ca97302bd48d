/* registration: what it costs to tell libjitunwind, and gdb by its JIT interface, of COUNT
 * functions in one arena.
 *
 *     registration time COUNT [ROUNDS]
 *     registration stay COUNT arena|each
 *
 * `time` prints a line for each way: "WAY NS BYTES": nanoseconds of CPU time and bytes of memory,
 * both for a function, the medians of ROUNDS rounds in which all ways take turns.  The ways:
 *
 *     write      its call frame information is made and written behind the one before
 *     add        jitunwind_add
 *     caught     jitunwind_add with JITUNWIND_EXCEPTIONS: libgcc knows the arena
 *     shown      jitunwind_add with PERFJIT=gdb
 *     both       with both
 *     removed    jitunwind_remove after that, of 40 000 at most
 *
 * `stay` adds them and then stops (SIGTRAP) in the innermost of DEPTH calls through the last of
 * them, for a debugger: with `each` it registers an ELF object for each function by itself, as the
 * interface's manual does.
 */
#include "jitdump/cfi.h"
#include "jitunwind/jitunwind.h"

#include <elf.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { APART = 96, CODE_BYTES = 20, DEPTH = 50, MOST_REMOVED = 40000, NAME_BYTES = 24 };

static size_t count, rounds = 5;
static uint8_t *arena_base;

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double resident(void)
{
    unsigned long pages = 0, all;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file || fscanf(file, "%lu %lu", &all, &pages) != 2)
        abort();
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static uint64_t address(size_t i)
{
    return (uint64_t)(uintptr_t)arena_base + i * APART;
}

/* ---- Call frame information ---- */

static struct jitdump_cfi *cfi;
static uint8_t *written; /* the entries, one behind the other */
static size_t written_bytes, entry_bytes;

/* A function with a frame pointer and one exit. */
static size_t describe(struct jitdump_unwind *unwind)
{
    static const uint64_t epilogue = CODE_BYTES - 2;
    const struct jitdump_frame frame = {
        .kind = JITDUMP_FRAME_POINTER, .epilogues = &epilogue, .epilogue_count = 1};
    jitdump_cfi_reset(cfi);
    jitdump_cfi_frame(cfi, &frame);
    if (jitdump_cfi_finish(cfi, CODE_BYTES, unwind))
        abort();
    return unwind->unwinding_size - unwind->eh_frame_hdr_size;
}

static void write_all(void)
{
    struct jitdump_unwind unwind;
    written_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        entry_bytes = describe(&unwind);
        memcpy(written + written_bytes, unwind.data, entry_bytes);
        written_bytes += entry_bytes;
    }
}

/* ---- The ways ---- */

/* Have the linker take libgcc's unwinder in, as it does for any program in C++. */
extern void __register_frame(void *eh_frame);
static void (*volatile libgcc)(void *eh_frame) = __register_frame;

static struct jitunwind *open_arena(bool shown, bool caught)
{
    struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
    struct jitunwind *arena;
    setenv("PERFJIT", shown ? "gdb" : "", 1);
    options.start = address(0);
    options.bytes = count * APART;
    options.flags = caught ? JITUNWIND_EXCEPTIONS : 0;
    if (jitunwind_open(&arena, &options))
        abort();
    return arena;
}

static void add_all(struct jitunwind *arena)
{
    struct jitunwind_code code = JITUNWIND_CODE_INIT;
    char name[NAME_BYTES] = "Class0.method_0000000";
    code.bytes = CODE_BYTES;
    code.eh_frame_bytes = entry_bytes;
    code.name = name;
    for (size_t i = 0; i < count; i++) {
        size_t rest = i;
        for (char *digit = name + sizeof "Class0.method_0000000" - 2; *digit != '_'; rest /= 10)
            *digit-- = (char)('0' + rest % 10);
        code.addr = address(i);
        code.eh_frame = written + i * entry_bytes;
        if (jitunwind_add(arena, &code))
            abort();
    }
}

struct cost {
    double ns, bytes;
};

enum { WRITE, ADD, CAUGHT, SHOWN, BOTH, REMOVED, WAYS };

static const char *const way_names[WAYS] = {"write", "add", "caught", "shown", "both", "removed"};

static struct cost cost_of(double began_ns, double began_bytes, size_t functions)
{
    return (struct cost){(now_ns() - began_ns) / (double)functions,
                         (resident() - began_bytes) / (double)functions};
}

static void one_round(struct cost *costs)
{
    double began_bytes = resident(), began_ns = now_ns();
    write_all();
    costs[WRITE] = cost_of(began_ns, began_bytes, count);
    costs[WRITE].bytes = (double)entry_bytes;
    for (size_t way = ADD; way <= BOTH; way++) {
        struct jitunwind *arena = open_arena(way >= SHOWN, way == CAUGHT || way == BOTH);
        began_bytes = resident();
        began_ns = now_ns();
        add_all(arena);
        costs[way] = cost_of(began_ns, began_bytes, count);
        if (way == BOTH) {
            size_t removed = count < MOST_REMOVED ? count : MOST_REMOVED;
            began_ns = now_ns();
            for (size_t i = 0; i < removed; i++)
                jitunwind_remove(arena, address(i));
            costs[REMOVED] = cost_of(began_ns, resident(), removed);
        }
        jitunwind_close(arena);
    }
}

static int compare(const void *left, const void *right)
{
    const double *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

static void time_all(void)
{
    struct cost *costs = calloc(rounds * WAYS, sizeof *costs);
    double *sorted = calloc(rounds, sizeof *sorted);
    for (size_t round = 0; round < rounds; round++)
        one_round(costs + round * WAYS);
    for (size_t way = 0; way < WAYS; way++) {
        for (size_t round = 0; round < rounds; round++)
            sorted[round] = costs[round * WAYS + way].ns;
        qsort(sorted, rounds, sizeof *sorted, compare);
        printf("%s %.0f %.0f\n", way_names[way], sorted[rounds / 2], costs[way].bytes);
    }
    free(sorted);
    free(costs);
}

/* ---- For a debugger ---- */

struct entry {
    struct entry *next, *previous;
    const void *object;
    uint64_t bytes;
};

extern struct {
    uint32_t version, action;
    struct entry *relevant, *first;
} __jit_debug_descriptor;
void __jit_debug_register_code(void);

/* What the manual's example does: an object, with sections at addresses of their own. */
struct small_object {
    Elf64_Ehdr head;
    Elf64_Shdr sections[6];
    Elf64_Sym symbols[2];
    char names[48], section_names[48];
    uint8_t frames[256];
    struct entry entry;
};

static void fill_section(struct small_object *object, unsigned number, unsigned name, unsigned type,
                         void *data, size_t bytes)
{
    object->sections[number] =
        (Elf64_Shdr){.sh_name = name,
                     .sh_type = type,
                     .sh_offset = (uint64_t)((uint8_t *)data - (uint8_t *)object),
                     .sh_size = bytes,
                     .sh_addralign = 1};
}

static void fill(struct small_object *object, size_t i)
{
    static const char names[] = "\0.text\0.eh_frame\0.symtab\0.strtab\0.shstrtab";
    memcpy(object->section_names, names, sizeof names);
    snprintf(object->names, sizeof object->names, "%cClass0.method_%07zu", 0, i);
    fill_section(object, 1, 1, SHT_NOBITS, object, CODE_BYTES);
    object->sections[1].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
    object->sections[1].sh_addr = address(i);
    fill_section(object, 2, 7, SHT_PROGBITS, object->frames, entry_bytes);
    object->sections[2].sh_flags = SHF_ALLOC;
    /* As libjitdump's tables have it, behind the code. */
    object->sections[2].sh_addr = address(i) + (CODE_BYTES + 7) / 8 * 8;
    memcpy(object->frames, written + i * entry_bytes, entry_bytes);
    fill_section(object, 3, 17, SHT_SYMTAB, object->symbols, sizeof object->symbols);
    object->sections[3].sh_link = 4;
    object->sections[3].sh_info = 1;
    object->sections[3].sh_entsize = sizeof(Elf64_Sym);
    object->symbols[1] =
        (Elf64_Sym){1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1, address(i), CODE_BYTES};
    fill_section(object, 4, 25, SHT_STRTAB, object->names, sizeof object->names);
    fill_section(object, 5, 33, SHT_STRTAB, object->section_names, sizeof object->section_names);
    object->head = (Elf64_Ehdr){.e_ident = ELFMAG,
                                .e_type = ET_EXEC,
                                .e_machine = EM_X86_64,
                                .e_version = EV_CURRENT,
                                .e_shoff = offsetof(struct small_object, sections),
                                .e_ehsize = sizeof object->head,
                                .e_shentsize = sizeof(Elf64_Shdr),
                                .e_shnum = 6,
                                .e_shstrndx = 5};
    object->head.e_ident[EI_CLASS] = ELFCLASS64;
    object->head.e_ident[EI_DATA] = ELFDATA2LSB;
    object->head.e_ident[EI_VERSION] = EV_CURRENT;
}

static void register_each(void)
{
    for (size_t i = 0; i < count; i++) {
        struct small_object *object = calloc(1, sizeof *object);
        fill(object, i);
        object->entry = (struct entry){__jit_debug_descriptor.first, NULL, object,
                                       sizeof *object - sizeof object->entry};
        if (object->entry.next)
            object->entry.next->previous = &object->entry;
        __jit_debug_descriptor.first = __jit_debug_descriptor.relevant = &object->entry;
        __jit_debug_descriptor.action = 1;
        __jit_debug_register_code();
    }
}

static void stop(void)
{
    raise(SIGTRAP);
}

/* push rbp; mov rbp, rsp; mov rax, CALLEE; call rax; pop rbp; ret */
static void emit(uint8_t *at, uint64_t callee)
{
    static const uint8_t head[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8};
    static const uint8_t tail[] = {0xff, 0xd0, 0x90, 0x90, 0x5d, 0xc3};
    memcpy(at, head, sizeof head);
    memcpy(at + sizeof head, &callee, sizeof callee);
    memcpy(at + sizeof head + sizeof callee, tail, sizeof tail);
}

static void stay(bool each)
{
    uint64_t callee = (uint64_t)(uintptr_t)stop;
    for (size_t i = count - (count < DEPTH ? count : DEPTH); i < count; i++) {
        emit((uint8_t *)(uintptr_t)address(i), callee);
        callee = address(i);
    }
    write_all();
    if (each)
        register_each();
    else
        add_all(open_arena(true, true));
    ((void (*)(void))(uintptr_t)callee)();
}

int main(int argc, char **argv)
{
#ifndef __x86_64__
    fputs("registration: its code is for x86-64\n", stderr);
    return 1;
#endif
    count = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    bool times = argc > 1 && strcmp(argv[1], "time") == 0;
    if (times && argc > 3)
        rounds = strtoul(argv[3], NULL, 10);
    if (!libgcc || count == 0 || rounds == 0 || (!times && argc < 4))
        return 2;
    arena_base = mmap(NULL, count * APART, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cfi = jitdump_cfi_new(JITDUMP_HOST_ARCH);
    written = malloc(count * 256);
    if (arena_base == MAP_FAILED || !cfi || !written)
        return 1;
    if (times)
        time_all();
    else
        stay(strcmp(argv[3], "each") == 0);
    return 0;
}
