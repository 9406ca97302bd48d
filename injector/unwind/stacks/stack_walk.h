/* From a sample's registers and stack to the addresses of its frames, in the address space of that
 * moment. */
#ifndef PERFJIT_STACK_WALK_H
#define PERFJIT_STACK_WALK_H

#include "injector/findings/chain_end.h"
#include "injector/native/native_file.h"
#include "injector/recording/machine.h"
#include "injector/recording/perf_data/perf_sample.h"
#include "injector/unwind/addresses/address_space.h"
#include "injector/unwind/rule_table.h"

/* Facts about a frame beside its address. */
struct walked_frame {
    uint64_t cfa;  /* where it ends; 0: that is not known */
    uint32_t what; /* as address_space_at says of its code */
    bool exact;    /* its ip is the next instruction, and not inside the call */
};

/* A native function that has a table. */
struct stack_function {
    uint32_t file;       /* its number; 0: none */
    uint64_t start, end; /* in the file */
};

struct stack_walk_options {
    const char *root; /* where the processes' root directory is, or NULL */
    bool judges;      /* the targets of tables are examined closely */
    /* Or NULL: the stack that ADDR is in, where another one than the sample's is gone on in, as
     * behind a signal handler's.  Returns false if it is not known. */
    bool (*find_stack)(void *context, uint64_t addr, struct user_stack *stack);
    /* Or NULL: the SIZE bytes at ADDR in the process's memory, until the next call; NULL: they are
     * not there. */
    const uint8_t *(*find_code)(void *context, uint64_t addr, uint64_t size);
    void *context;
};

struct stack_walker {
    struct stack_walk_options options;
    const struct space_source *source;
    const struct machine *machine;
    struct native_files files;
    struct rule_table rules; /* their owners: SPACE_FUNCTION and a function, or a file's number */
    struct unwind_budget budget; /* of this sample */
    bool no_memory;
    uint64_t *ips;               /* of this sample: the innermost first, callers less 1 */
    struct walked_frame *frames; /* the same frames */
    size_t ip_count, ip_most;
    const struct address_space *space; /* of this sample */
    uint32_t end_at;                   /* the owner of the stack's last address: a number of
                                        * address_space_at */
    uint32_t interpreter;              /* its first frame is that of a function which this runs: a
                                        * number of address_space_at; else SPACE_NOTHING */
    uint64_t sp, cfa;                  /* where it begins, and how far up it could be followed */
    enum chain_end chain_end;          /* how it ended, and which frame's fault that is */
    size_t blamed;
    uint64_t blamed_addr; /* of that frame, in the file or function */
    bool doubted;         /* callers may be left out */
    size_t found_count;   /* frames of this sample whose callers return_slot.h found */
};

/* Returns 0, or -1 without memory.  Release with stack_walker_end in either case. */
int stack_walker_begin(struct stack_walker *walker, const struct space_source *source,
                       const struct machine *machine, const struct stack_walk_options *options);

/* Find the frames of SAMPLE in SPACE, at most MOST.  Without memory, walker->no_memory is set. */
enum stack_end stack_walk(struct stack_walker *walker, const struct perf_sample *sample,
                          const struct address_space *space, size_t most);

/* Where SAMPLE, which has been walked, was taken: its own address, or, if that is in an
 * interpreter, the first frame's in the function that ran. */
uint64_t stack_walk_ip(const struct stack_walker *walker, const struct perf_sample *sample);

/* The function that frame number INDEX is in. */
struct stack_function stack_walk_function(struct stack_walker *walker, size_t index);

/* The address inside the only call by which the function around IP can have called CALLEE.  It must
 * be a direct call, and WHAT must still be there and in CALLEE's file.  The result is 0 if there is
 * no such call, or more than one.  A call of a function that jumps to CALLEE counts, too. */
uint64_t stack_walk_call(struct stack_walker *walker, uint64_t ip, uint32_t what,
                         struct stack_function callee);

void stack_walker_end(struct stack_walker *walker);

#endif
