/* Something for ubpf to compile: functions that call each other and the program, division, shifts and atomics, which push. */
#include "ebpf.h"
#include "ubpf.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define OP(opcode_, dst_, src_, offset_, imm_) {.opcode = opcode_, .dst = dst_, .src = src_, .offset = offset_, .imm = imm_}
#define CALL(to, at) OP(EBPF_OP_CALL, 0, 1, 0, (to) - (at) - 1) /* in instruction AT */

enum { MIX = 23, FIB = 34, REMAINDERS = 47 };

/* clang-format off */
static const struct ebpf_inst program[] = {
    OP(EBPF_OP_MOV64_IMM, 6, 0, 0, 100),
    OP(EBPF_OP_MOV64_IMM, 7, 0, 0, 0),
    OP(EBPF_OP_MOV64_REG, 1, 6, 0, 0),          /* 2: the loop */
    CALL(MIX, 3),
    OP(EBPF_OP_ADD64_REG, 7, 0, 0, 0),
    OP(EBPF_OP_MOV64_IMM, 1, 0, 0, 6),
    CALL(FIB, 6),
    OP(EBPF_OP_ADD64_REG, 7, 0, 0, 0),
    OP(EBPF_OP_MOV64_REG, 1, 7, 0, 0),
    CALL(REMAINDERS, 9),
    OP(EBPF_OP_XOR64_REG, 7, 0, 0, 0),
    OP(EBPF_OP_MOV64_REG, 1, 7, 0, 0),
    OP(EBPF_OP_CALL, 0, 0, 0, 0),               /* helper 0 */
    OP(EBPF_OP_ADD64_REG, 7, 0, 0, 0),
    OP(EBPF_OP_STXDW, 10, 7, -8, 0),
    OP(EBPF_OP_ATOMIC_STORE, 10, 0, -8, EBPF_ALU_OP_XOR | EBPF_ATOMIC_OP_FETCH),
    OP(EBPF_OP_ATOMIC_STORE, 10, 7, -8, EBPF_ALU_OP_ADD),
    OP(EBPF_OP_LDXDW, 7, 10, -8, 0),
    OP(EBPF_OP_LSH64_IMM, 7, 0, 0, 1),
    OP(EBPF_OP_SUB64_IMM, 6, 0, 0, 1),
    OP(EBPF_OP_JNE_IMM, 6, 0, -19, 0),
    OP(EBPF_OP_MOV64_REG, 0, 7, 0, 0),
    OP(EBPF_OP_EXIT, 0, 0, 0, 0),
    OP(EBPF_OP_MOV64_IMM, 2, 0, 0, 60),         /* 23: MIX */
    OP(EBPF_OP_MOV64_REG, 0, 1, 0, 0),
    OP(EBPF_OP_MUL64_IMM, 0, 0, 0, 17),         /* 25: its loop */
    OP(EBPF_OP_XOR64_REG, 0, 2, 0, 0),
    OP(EBPF_OP_LSH64_REG, 1, 2, 0, 0),
    OP(EBPF_OP_ADD64_REG, 0, 1, 0, 0),
    OP(EBPF_OP_SUB64_IMM, 2, 0, 0, 1),
    OP(EBPF_OP_JNE_IMM, 2, 0, -6, 0),
    OP(EBPF_OP_EXIT, 0, 0, 0, 0),
    OP(EBPF_OP_MOV64_IMM, 0, 0, 0, 0),
    OP(EBPF_OP_EXIT, 0, 0, 0, 0),
    OP(EBPF_OP_MOV64_REG, 0, 1, 0, 0),          /* 34: FIB */
    OP(EBPF_OP_JGT_IMM, 1, 0, 1, 1),
    OP(EBPF_OP_EXIT, 0, 0, 0, 0),
    OP(EBPF_OP_MOV64_REG, 6, 1, 0, 0),
    OP(EBPF_OP_SUB64_IMM, 1, 0, 0, 1),
    CALL(FIB, 39),
    OP(EBPF_OP_MOV64_REG, 7, 0, 0, 0),
    OP(EBPF_OP_MOV64_REG, 1, 6, 0, 0),
    OP(EBPF_OP_SUB64_IMM, 1, 0, 0, 2),
    CALL(FIB, 43),
    OP(EBPF_OP_ADD64_REG, 0, 7, 0, 0),
    OP(EBPF_OP_EXIT, 0, 0, 0, 0),
    OP(EBPF_OP_EXIT, 0, 0, 0, 0),
    OP(EBPF_OP_MOV64_IMM, 2, 0, 0, 30),         /* 47: REMAINDERS */
    OP(EBPF_OP_MOV64_REG, 0, 1, 0, 0),
    OP(EBPF_OP_MOV64_REG, 3, 0, 0, 0),          /* 49: its loop */
    OP(EBPF_OP_DIV64_REG, 3, 2, 0, 0),
    OP(EBPF_OP_MOD64_IMM, 1, 0, 0, 1009),
    OP(EBPF_OP_ADD64_REG, 0, 3, 0, 0),
    OP(EBPF_OP_ADD64_REG, 0, 1, 0, 0),
    OP(EBPF_OP_SUB64_IMM, 2, 0, 0, 1),
    OP(EBPF_OP_JNE_IMM, 2, 0, -7, 0),
    OP(EBPF_OP_EXIT, 0, 0, 0, 0),
};
/* clang-format on */

static uint64_t helper(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
    volatile uint64_t sum = a;
    for (int i = 0; i < 20; i++)
        sum = sum * 3 + 1;
    (void)b, (void)c, (void)d, (void)e;
    return sum;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 1.2;
    char *error = NULL, memory[64] = "";
    uint64_t sum = 0;
    while ((double)clock() / CLOCKS_PER_SEC < seconds) { /* each VM has code of its own, which is freed */
        struct ubpf_vm *vm = ubpf_create();
        ubpf_jit_fn run = NULL;
        ubpf_register(vm, 0, "helper", helper);
        if (ubpf_load(vm, program, sizeof program, &error) == 0)
            run = ubpf_compile(vm, &error);
        if (!run) {
            fprintf(stderr, "load: %s\n", error);
            return 1;
        }
        for (int i = 0; i < 500; i++)
            sum += run(memory, sizeof memory);
        ubpf_destroy(vm);
    }
    puts(sum ? "done" : "nothing");
    return 0;
}
