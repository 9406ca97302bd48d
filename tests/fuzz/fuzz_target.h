/* What a fuzz target is: one function that takes any bytes, and must neither crash nor find a
 * promise broken.
 *
 * The same file is linked with libFuzzer (`make fuzz`) and, for `make check`, with replay.c, which
 * gives it the inputs in files.  BYTES are a heap block of just SIZE bytes in both, so that
 * AddressSanitizer sees the first byte read behind them. */
#ifndef PERFJIT_FUZZ_TARGET_H
#define PERFJIT_FUZZ_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* End the process if a promise is not kept: that is what libFuzzer takes for a finding. */
static inline void promise(bool kept, const char *what)
{
    if (kept)
        return;
    fprintf(stderr, "promise broken: %s\n", what);
    abort();
}

#endif
