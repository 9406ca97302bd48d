/* See ubpf_log.h. */
#include "ubpf_int.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct ubpf_log_function {
    char name[24];
    struct jitdump_code code; /* its address is an offset, until it is known */
    struct jitdump_unwind unwind;
    uint64_t index;
};

/* Of all VMs.  Nobody closes it: while the process ends, other threads may be compiling, and nothing is lost without. */
static struct jitdump *dump;
static pthread_once_t opened = PTHREAD_ONCE_INIT;

static void open_dump(void)
{
    if (jitdump_open(&dump, NULL) != 0)
        fprintf(stderr, "ubpf: %s\n", jitdump_error(dump));
}

struct jitdump_cfi *ubpf_log_begin(struct ubpf_vm *vm)
{
    pthread_once(&opened, open_dump);
    ubpf_log_free(vm);
    if (dump) {
        vm->log.cfi = jitdump_cfi_new(JITDUMP_X86_64);
        vm->log.functions = calloc(vm->num_insts + 3, sizeof *vm->log.functions);
    }
    return vm->log.cfi;
}

void ubpf_log_function(struct ubpf_vm *vm, uint32_t at, const char *name, int number)
{
    struct ubpf_log *log = &vm->log;
    struct ubpf_log_function *next = log->functions + log->count, *last = next - 1;
    if (!log->functions)
        return;
    if (log->count) {
        last->code.code_size = at - last->code.code_addr;
        last->code.unwind = jitdump_cfi_end(log->cfi, at, &last->unwind) == 0 ? &last->unwind : NULL;
    }
    if (name) {
        snprintf(next->name, sizeof next->name, name, number);
        next->code.size = sizeof next->code;
        next->code.name = *name ? next->name : NULL;
        next->code.code_addr = at;
        next->index = JITDUMP_NO_CODE;
        jitdump_cfi_begin(log->cfi, at);
        log->count++;
    }
}

/* The entry is in two pieces: what is left of it comes last but for the retpoline. */
void ubpf_log_add(struct ubpf_vm *vm)
{
    struct ubpf_log *log = &vm->log;
    for (size_t i = log->count; i-- > 0;) {
        struct jitdump_code *code = &log->functions[i].code;
        code->bytes = (char *)vm->jitted + code->code_addr;
        code->code_addr = (uintptr_t)code->bytes;
        code->pieces = i ? NULL : &log->functions[log->count - 2].code;
        code->piece_count = i ? 0 : 1;
        if (code->name)
            jitdump_add_code(dump, code, &log->functions[i].index);
    }
}

void ubpf_log_unload(struct ubpf_vm *vm)
{
    for (struct ubpf_log_function *f = vm->log.functions; f < vm->log.functions + vm->log.count; f++)
        jitdump_unload_code(dump, f->index, f->code.code_addr, f->code.code_size);
    vm->log.count = 0;
}

void ubpf_log_free(struct ubpf_vm *vm)
{
    jitdump_cfi_free(vm->log.cfi);
    free(vm->log.functions);
    vm->log = (struct ubpf_log){0};
}
