/* ubpf's code in Linux perf: what its sources include.  An eBPF function's name is ubpf:N, N being its first instruction. */
#ifndef UBPF_LOG_H
#define UBPF_LOG_H

#include "jitdump/cfi.h"

#define DWARF_REGISTER(reg) jitdump_dwarf_register(JITDUMP_X86_64, reg)

struct ubpf_vm;

/* What is known of a VM's code, collected while it is emitted into a buffer; then where it runs. */
struct ubpf_log {
    struct jitdump_cfi *cfi;
    struct ubpf_log_function *functions;
    size_t count;
};

/* VM's code is about to be emitted.  Returns the builder for it; NULL if nothing is logged, which all calls accept. */
struct jitdump_cfi *ubpf_log_begin(struct ubpf_vm *vm);

/* At offset AT of the buffer a function begins, and the one before ends; with NAME "" a piece of the first one begins, with
 * NULL none. */
void ubpf_log_function(struct ubpf_vm *vm, uint32_t at, const char *name, int number);

/* The code has been copied to where it will run; it is about to be unmapped; the VM is about to be freed. */
void ubpf_log_add(struct ubpf_vm *vm);
void ubpf_log_unload(struct ubpf_vm *vm);
void ubpf_log_free(struct ubpf_vm *vm);

#endif
