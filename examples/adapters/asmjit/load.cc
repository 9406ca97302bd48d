/* Something for asmjit to compile: leaves, recursion, spilled registers, frame pointers and none, calls back into the program. */
#include "asmjit_log.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <vector>

using namespace asmjit;

static uint64_t called_back(uint64_t x)
{
    volatile uint64_t sum = x;
    for (int i = 0; i < 20; i++)
        sum = sum * 3 + 1;
    return sum;
}

using signature = FuncSignatureT<uint64_t, uint64_t>;

static x86::Gp argument(x86::Compiler &cc, FuncNode *node)
{
    x86::Gp x = cc.newUInt64("x");
    node->setArg(0, x);
    return x;
}

template <class Target> static x86::Gp call(x86::Compiler &cc, const Target &target, const x86::Gp &x)
{
    InvokeNode *invoke;
    x86::Gp result = cc.newUInt64();
    cc.invoke(&invoke, target, signature());
    invoke->setArg(0, x);
    invoke->setRet(0, result);
    return result;
}

static void write_leaf(x86::Compiler &cc, FuncNode *node)
{
    x86::Gp x = argument(cc, node);
    for (int i = 0; i < 50; i++) {
        cc.imul(x, x, 5);
        cc.xor_(x, i);
    }
    cc.ret(x);
}

static void write_fib(x86::Compiler &cc, FuncNode *node)
{
    x86::Gp x = argument(cc, node);
    Label more = cc.newLabel();
    cc.cmp(x, 2);
    cc.jae(more);
    cc.ret(x);
    cc.bind(more);
    cc.dec(x);
    x86::Gp a = call(cc, node->label(), x);
    cc.dec(x);
    x86::Gp b = call(cc, node->label(), x);
    cc.add(a, b);
    cc.ret(a);
}

/* More values than there are registers, a loop, and a call in it. */
static void write_spills(x86::Compiler &cc, FuncNode *node)
{
    x86::Gp x = argument(cc, node), n = cc.newUInt64();
    std::vector<x86::Gp> values;
    Label again = cc.newLabel();
    for (int i = 0; i < 24; i++) {
        values.push_back(cc.newUInt64());
        cc.lea(values.back(), x86::ptr(x, i * 7));
    }
    cc.mov(n, 100);
    cc.bind(again);
    for (size_t i = 0; i < values.size(); i++)
        cc.add(values[i], values[(i + 5) % values.size()]);
    cc.xor_(values[3], call(cc, imm(uintptr_t(called_back)), n));
    cc.dec(n);
    cc.jnz(again);
    for (const x86::Gp &value : values)
        cc.add(x, value);
    cc.ret(x);
}

static void write_floats(x86::Compiler &cc, FuncNode *node)
{
    x86::Gp x = argument(cc, node), n = cc.newUInt64();
    x86::Mem room = cc.newStack(64, 8);
    x86::Xmm a = cc.newXmmSd(), b = cc.newXmmSd();
    Label again = cc.newLabel();
    cc.cvtsi2sd(a, x);
    cc.mov(n, 200);
    cc.bind(again);
    cc.cvtsi2sd(b, n);
    cc.mulsd(a, b);
    cc.sqrtsd(a, a);
    cc.movsd(room, a);
    cc.dec(n);
    cc.jnz(again);
    cc.cvttsd2si(x, room);
    cc.ret(x);
}

struct source {
    const char *name;
    void (*write)(x86::Compiler &, FuncNode *);
    uint64_t x;
    bool pointer;
};

static const source sources[] = {
    {"leaf", write_leaf, 3, false},     {"leaf_fp", write_leaf, 3, true},     {"fib", write_fib, 12, false},
    {"fib_fp", write_fib, 12, true},    {"spills", write_spills, 9, false},   {"spills_fp", write_spills, 9, true},
    {"floats", write_floats, 9, false}, {"floats_fp", write_floats, 9, true},
};

int main(int argc, char **argv)
{
    const double seconds = argc > 1 ? atof(argv[1]) : 1.2;
    perfjit::dump dump;
    JitRuntime runtime;
    CodeHolder code;
    code.init(runtime.environment());
    x86::Compiler cc(&code);
    std::vector<FuncNode *> nodes;
    for (const source &s : sources) {
        nodes.push_back(cc.addFunc(signature()));
        if (s.pointer)
            nodes.back()->frame().setPreservedFP();
        s.write(cc, nodes.back());
        cc.endFunc();
    }
    char *base = nullptr;
    if (dump.open() != 0)
        fprintf(stderr, "load: %s\n", dump.error());
    if (cc.finalize() || runtime.add(&base, &code))
        return 1;
    for (size_t i = 0; i < nodes.size(); i++)
        log_function(dump, sources[i].name, code, nodes[i], base);
    uint64_t sum = 0;
    while (double(clock()) / CLOCKS_PER_SEC < seconds)
        for (size_t i = 0; i < nodes.size(); i++)
            sum += reinterpret_cast<uint64_t (*)(uint64_t)>(base + code.labelOffset(nodes[i]->label()))(sources[i].x);
    puts(sum ? "done" : "nothing");
}
