/* A process at one moment: its threads' registers, its mappings and its memory, from a core or from
 * the process itself.
 */
#ifndef PERFJIT_SNAPSHOT_H
#define PERFJIT_SNAPSHOT_H

#include "injector/findings/findings.h"
#include "injector/native/elf_view.h"
#include "injector/recording/machine.h"

#include <sys/types.h>

enum { SNAPSHOT_NAME_BYTES = 16 };

struct snapshot_map {
    uint64_t start, end;
    uint64_t offset; /* in the file */
    uint32_t maj, min;
    uint64_t ino; /* 0: not known */
    bool executable;
    char *path;           /* as in /proc/PID/maps; NULL: memory without a file */
    const uint8_t *bytes; /* from START on, or NULL */
    uint64_t byte_count;
    struct build_id build_id; /* of the file, if its first page is among the bytes */
};

struct snapshot_thread {
    uint32_t tid;
    uint32_t signal; /* that ended it; 0: none */
    bool has_registers;
    uint64_t registers[PERF_REGISTERS]; /* by perf's numbers */
    uint64_t stack_start;               /* the stack pointer */
    const uint8_t *stack;               /* from there on; NULL: it is not there */
    size_t stack_bytes;
    uint8_t *copy; /* the copy that STACK points into, if there is one */
    uint64_t
        interrupted_start; /* of a live thread in a signal handler on a stack of its own, ... */
    uint8_t *interrupted;  /* ... the stack that it interrupted; or NULL */
    size_t interrupted_bytes;
};

struct snapshot {
    const char *path; /* of the core, or /proc/PID */
    uint32_t pid;
    const struct machine *machine;
    bool live;
    char name[SNAPSHOT_NAME_BYTES + 1];
    uint64_t entry; /* where the program begins; 0: not known */
    struct snapshot_map *maps;
    size_t map_count, map_capacity;
    struct snapshot_thread *threads; /* the one that was hit by a signal first */
    size_t thread_count, thread_capacity;
    const uint8_t *core; /* the whole file, or NULL */
    size_t core_bytes;
};

/* Take the registers of THREAD from WORDS, machine->word_count of them. */
void snapshot_take_registers(struct snapshot_thread *thread, const struct machine *machine,
                             const uint8_t *words);

/* Add a map or thread of zeros.  NULL without memory. */
struct snapshot_map *snapshot_add_map(struct snapshot *snapshot);
struct snapshot_thread *snapshot_add_thread(struct snapshot *snapshot);

/* Put the maps in order, and find each thread's stack and each file's build-id among their
 * bytes. */
void snapshot_complete(struct snapshot *snapshot);

/* The map at ADDR, or NULL.  The maps are in order. */
const struct snapshot_map *snapshot_map_at(const struct snapshot *snapshot, uint64_t addr);

/* Whether MAP is of a file, whose symbols and tables are there for debuggers, and not of memory
 * that only has a file's name, such as PHP's "/dev/zero (deleted)".  NULL is of none. */
bool snapshot_map_is_file(const struct snapshot_map *map);

/* Read COUNT bytes at ADDR.  Returns false if the snapshot does not have all of them. */
bool snapshot_read(const struct snapshot *snapshot, uint64_t addr, void *bytes, size_t count);

void snapshot_free(struct snapshot *snapshot);

#endif
