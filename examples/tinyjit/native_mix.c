/* See native_mix.h. */
#include "examples/tinyjit/native_mix.h"

enum { ROUNDS = 24 };

int64_t native_mix(int64_t value)
{
    /* perf's chains go by frame pointers, and a leaf function without one hides its caller.  Asking for the frame's
     * address is what makes gcc 12 set it up in a leaf. */
    void *volatile frame = __builtin_frame_address(0);
    uint64_t state = (uint64_t)value;
    (void)frame;
    for (int i = 0; i < ROUNDS; i++) {
        state ^= state << 13; /* xorshift, and a multiplier that is odd and has bits all over */
        state ^= state >> 7;
        state = state * 0x9e3779b97f4a7c15u + (uint64_t)i;
    }
    return (int64_t)(state >> 33);
}
