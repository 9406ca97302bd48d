/* Compiled code for aarch64 that is stopped at each of its instructions, in its own process, and
 * unwound there by jitunwind_backtrace; judged by calls and returns alone.
 *
 * Each instruction is a BRK but the one that is to run next: so it goes step by step, under
 * qemu-user too, which has no single steps to offer to the program itself.
 */
#ifndef AARCH64_WALK_H
#define AARCH64_WALK_H

#include "jitunwind/jitunwind.h"

#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { WALK_DEPTH_MAX = 64, WALK_FRAMES_MAX = 128, WALK_SHOWN = 5, BRK_0 = (int)0xd4200000 };

static struct {
    uint32_t *code;      /* what is run */
    uint32_t *originals; /* what it would be without the BRKs */
    size_t words;
    uint64_t returns[WALK_DEPTH_MAX]; /* where the calls go back to, the outermost first */
    size_t depth;
    uint32_t *last; /* what has just run; NULL: the code was entered */
    uint64_t stops, right, unsure, wrong;
} walked;

static void walk_put(uint32_t *at, uint32_t word)
{
    *(volatile uint32_t *)at = word;
    __builtin___clear_cache((char *)at, (char *)(at + 1));
}

/* What the instruction that was run at LAST has done: it has called (BL, BLR), returned (RET), or
 * neither. */
static void follow(uint64_t pc, uint64_t x30)
{
    if (!walked.last) {
        walked.returns[0] = x30;
        walked.depth = 1;
        return;
    }
    uint32_t word = walked.originals[walked.last - walked.code];
    uint64_t behind = (uint64_t)(uintptr_t)(walked.last + 1);
    if ((word >> 26 == 0x25 || (word & 0xfffffc1f) == 0xd63f0000) && pc != behind) {
        if (walked.depth == WALK_DEPTH_MAX)
            exit(EXIT_FAILURE);
        walked.returns[walked.depth++] = behind;
    } else if ((word & 0xfffffc1f) == 0xd65f0000) {
        walked.depth--;
    }
}

/* Whether the FRAMES are those calls.  One that was found without a rule, and what is behind it,
 * need not be: it says so. */
static void judge(const ucontext_t *context, const struct jitunwind_frame *frames, size_t count)
{
    for (size_t i = 0; i <= walked.depth; i++) {
        uint64_t wanted = i ? walked.returns[walked.depth - i] : context->uc_mcontext.pc;
        if (i < count && frames[i].ip == wanted && frames[i].how != JITUNWIND_FRAME_POINTER)
            continue;
        bool says_so = i < count ? frames[i].how == JITUNWIND_FRAME_POINTER
                                 : count && frames[count - 1].end == JITUNWIND_LOST;
        walked.unsure += says_so;
        walked.wrong += !says_so;
        if (!says_so && walked.wrong <= WALK_SHOWN)
            fprintf(stderr, "at %" PRIx64 ", frame %zu of %zu: %" PRIx64 ", not %" PRIx64 "\n",
                    (uint64_t)context->uc_mcontext.pc, i, count, i < count ? frames[i].ip : 0,
                    wanted);
        return;
    }
    walked.right++;
}

static void stop(int number, siginfo_t *info, void *context_of)
{
    static struct jitunwind_frame frames[WALK_FRAMES_MAX];
    ucontext_t *context = context_of;
    uint32_t *here = (uint32_t *)(uintptr_t)context->uc_mcontext.pc;
    (void)number;
    (void)info;
    follow(context->uc_mcontext.pc, context->uc_mcontext.regs[30]);
    walked.stops++;
    judge(context, frames, jitunwind_backtrace(context, frames, WALK_FRAMES_MAX, 0));
    if (walked.last)
        walk_put(walked.last, (uint32_t)BRK_0);
    walk_put(here, walked.originals[here - walked.code]);
    walked.last = here;
}

/* Have each of the WORDS at CODE stop. */
static void walk_begin(uint32_t *code, size_t words)
{
    struct sigaction action = {.sa_sigaction = stop, .sa_flags = SA_SIGINFO};
    walked.code = code;
    walked.words = words;
    walked.originals = malloc(words * sizeof *code);
    if (!walked.originals || sigaction(SIGTRAP, &action, NULL))
        exit(EXIT_FAILURE);
    memcpy(walked.originals, code, words * sizeof *code);
    for (size_t i = 0; i < words; i++)
        code[i] = (uint32_t)BRK_0;
    __builtin___clear_cache((char *)code, (char *)(code + words));
}

/* The code has been left. */
static void walk_left(void)
{
    if (walked.last)
        walk_put(walked.last, (uint32_t)BRK_0);
    walked.last = NULL;
}

/* Say what came of it.  Returns whether no chain was wrong. */
static bool walk_end(void)
{
    printf("%" PRIu64 " stops, %" PRIu64 " chains right, %" PRIu64 " unsure, %" PRIu64 " wrong\n",
           walked.stops, walked.right, walked.unsure, walked.wrong);
    free(walked.originals);
    return walked.wrong == 0;
}

#endif
