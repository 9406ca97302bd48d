/* The owner of an address at a moment: a JIT function, or a place in a mapped file. */
#ifndef PERFJIT_CODE_SPOT_H
#define PERFJIT_CODE_SPOT_H

#include "injector/native/native_file.h"
#include "injector/unwind/addresses/address_space.h"

struct code_spot {
    uint32_t what;                       /* as address_space_at says */
    uint32_t owner;                      /* as in a rule_entry; 0: nothing that rules could be of */
    bool is_code;                        /* the bytes there may run */
    uint64_t addr;                       /* in the file, or in the function */
    struct native_file *file;            /* or NULL */
    const struct jit_function *function; /* or NULL */
    const struct code_log *log;
};

/* The spot of PC in SPACE.  Returns 0, or -1 without memory. */
int code_spot_find(struct code_spot *spot, const struct address_space *space,
                   struct native_files *files, uint64_t pc);

/* The code at SPOT and from there on, *SIZE bytes, and *BEFORE those that stand in front of them;
 * NULL: not known. */
const uint8_t *code_spot_bytes(const struct code_spot *spot, size_t *before, size_t *size);

#endif
