/* frame_check [SECONDS]: what jitdump_cfi_check costs a function, beside describing it.
 *
 * The function saves two registers, adds for a while and has a branch and two exits: 34
 * instructions, 85 bytes.
 * Prints "describe NS check NS ratio N": the shortest of many rounds, both in turns.
 */
#include "jitdump/cfi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FILLING = 56, ROUND = 200 };

static const uint8_t prologue[] = {0x55, 0x48, 0x89, 0xe5, 0x53, 0x41,
                                   0x54, 0x48, 0x83, 0xec, 0x20};
static const uint8_t middle[] = {0x48, 0x01, 0xd8}; /* add rax, rbx: over and over */
static const uint8_t epilogue[] = {0x48, 0x83, 0xc4, 0x20, 0x41, 0x5c, 0x5b, 0x5d, 0xc3};

static size_t make_code(uint8_t *code, uint64_t epilogues[2])
{
    size_t at = sizeof prologue;
    memcpy(code, prologue, at);
    for (int i = 0; i < FILLING / 3; i++, at += sizeof middle)
        memcpy(code + at, middle, sizeof middle);
    memcpy(code + at, (const uint8_t[]){0x75, 0x09}, 2); /* jne to the second exit */
    at += 2;
    for (int i = 0; i < 2; i++, at += sizeof epilogue) {
        epilogues[i] = at;
        memcpy(code + at, epilogue, sizeof epilogue);
    }
    return at;
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
    uint8_t code[256];
    uint64_t epilogues[2];
    size_t size = make_code(code, epilogues);
    struct jitdump_frame frame = {.kind = JITDUMP_FRAME_POINTER,
                                  JITDUMP_SAVED(JITDUMP_RBX, JITDUMP_R12),
                                  .stack_bytes = 32,
                                  .epilogues = epilogues,
                                  .epilogue_count = 2};
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    double best[2] = {1e18, 1e18}, end = now_ns() + (argc > 1 ? atof(argv[1]) : 1) * 1e9;
    for (int turn = 0; now_ns() < end; turn ^= 1) {
        double start = now_ns();
        for (int i = 0; i < ROUND; i++) {
            struct jitdump_unwind unwind;
            jitdump_cfi_reset(cfi);
            jitdump_cfi_frame(cfi, &frame);
            if (turn ? jitdump_cfi_check(cfi, code, size) : jitdump_cfi_finish(cfi, size, &unwind))
                return 1;
        }
        double took = (now_ns() - start) / ROUND;
        best[turn] = took < best[turn] ? took : best[turn];
    }
    printf("describe %.0f ns check %.0f ns ratio %.1f\n", best[0], best[1] - best[0],
           (best[1] - best[0]) / best[0]);
    jitdump_cfi_free(cfi);
    return 0;
}
