/* See stubs.h. */
#include "examples/tinyjit/stubs.h"

void stub_compile_entry(struct emitter *e)
{
    static const enum x86_register saved[] = {X86_RBX, X86_R12, X86_R13, X86_R14, X86_R15};
    emitter_enter(e, saved, sizeof saved / sizeof saved[0], 0);
    x86_mov(&e->x86, X86_R15, X86_RDI);
    emitter_call_function(e, e->program->main);
    emitter_leave(e);
}

void stub_compile_compile(struct emitter *e)
{
    emitter_enter(e, NULL, 0, 0);
    for (int i = 0; i < MAX_PARAMETERS; i++)
        emitter_push(e, emitter_argument_registers[i]);
    x86_mov(&e->x86, X86_RDI, X86_RAX);
    emitter_call_helper(e, HELPER_COMPILE);
    for (int i = MAX_PARAMETERS; i-- > 0;)
        emitter_pop(e, emitter_argument_registers[i]);
    emitter_unwind(e);
    x86_jmp_register(&e->x86, X86_RAX);
}

void stub_compile_function(struct emitter *e, uint32_t function)
{
    x86_mov_constant(&e->x86, X86_RAX, function);
    x86_jmp_memory(&e->x86, x86_at(X86_R15, context_helper_offset(HELPER_COMPILE_STUB)));
}
