/* What IR's back end tells ir_perf.c of the function it has emitted. */
#ifndef IR_PERF_H
#define IR_PERF_H

#include "ir.h"

/* SIZE bytes of code, with COUNT epilogues at these offsets, ascending. */
void ir_perf_frame(ir_ctx *ctx, const uint64_t *epilogues, size_t count, size_t size);

#endif
