/* See neighbourhood.h. */
#include "injector/inject/layout/neighbourhood.h"

#define NEIGHBOURHOOD_SPAN_BYTES (UINT64_C(1) << 30)

bool neighbourhood_take(struct neighbourhood *those, uint64_t addr, uint64_t end)
{
    bool far = addr > those->reach && addr - those->reach > NEIGHBOURHOOD_GAP_BYTES;
    if (those->count == 0)
        *those = (struct neighbourhood){.start = addr, .reach = addr};
    else if (far || end - those->start > NEIGHBOURHOOD_SPAN_BYTES)
        return false;
    those->shared |= addr < those->reach;
    those->reach = end > those->reach ? end : those->reach;
    those->count++;
    return true;
}
