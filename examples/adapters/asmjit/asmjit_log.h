/* Functions of asmjit's x86::Compiler in Linux perf: names, and frames as its prologues and epilogues make them.  x86-64; asmjit
 * with the names of 2022 (Debian 12's libasmjit-dev). */
#ifndef ASMJIT_LOG_H
#define ASMJIT_LOG_H

#include "jitdump/jitdump.hpp"
#include <asmjit/asmjit.h>

/* NODE, which finalize() has compiled into CODE, and JitRuntime::add() has put at BASE.  Call it before the code first runs.
 * CODE_INDEX is for dump.unload(), before JitRuntime::release(). */
inline int log_function(const perfjit::dump &dump, std::string_view name, const asmjit::CodeHolder &code,
                        const asmjit::FuncNode *node, char *base, uint64_t *code_index = nullptr)
{
    if (!dump)
        return 0;
    const asmjit::FuncFrame &made = node->frame();
    const bool pointer = made.hasPreservedFP();
    const uint64_t start = code.labelOffset(node->label());
    const uint64_t exit = code.labelOffset(node->exitLabel()) - start;
    perfjit::frame frame(pointer ? JITDUMP_FRAME_POINTER : JITDUMP_FRAME_STACK);
    frame.flags(pointer ? JITDUMP_FRAME_DYNAMIC | JITDUMP_FRAME_MOV_POP : 0).stack_bytes(made.stackAdjustment()).epilogues(exit);
    for (unsigned reg = 0; reg < 16; reg++)
        if (made.savedRegs(asmjit::RegGroup::kGp) >> reg & 1 && !(pointer && reg == asmjit::x86::Gp::kIdBp))
            frame.add_saved(unsigned(jitdump_dwarf_register(JITDUMP_HOST_ARCH, reg)));
    const asmjit::BaseNode *next = node->endNode()->next(); /* up to the next function: there may be code behind the return */
    while (next && !next->isLabel())
        next = next->next();
    const uint64_t end = next ? code.labelOffset(next->as<asmjit::LabelNode>()->label()) : code.codeSize();
    return perfjit::function(name, base + start, end - start).frame(frame).add(dump, code_index);
}

#endif
