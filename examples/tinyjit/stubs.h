/* The stubs: code that belongs to no function of the script.
 *
 *     C ──▶ entry ──▶ main's slot            and from there on, for a function that is not compiled:
 *
 *     call ──▶ slot ──▶ function stub ──▶ compile stub ──▶ runtime (C)
 *                       eax = number      keeps the arguments │
 *                                         ◀───────────────────┘ address of the new code
 *                                         jumps there, as if the call had gone there at once
 */
#ifndef TINYJIT_STUBS_H
#define TINYJIT_STUBS_H

#include "examples/tinyjit/emitter.h"

/* int64_t entry(struct jit_context *context): calls main. */
typedef int64_t stub_entry_function(struct jit_context *context);

void stub_compile_entry(struct emitter *e);
void stub_compile_compile(struct emitter *e);
void stub_compile_function(struct emitter *e, uint32_t function);

#endif
