/* Unwind tables for compiled code: HotSpot's frames have a fixed size, and code that keeps no frame
 * pointer can be unwound by it.
 *
 *     mov %eax,-0x14000(%rsp)      touches the stack's pages
 *     push %rbp                    from here on rbp is saved at CFA - 16
 *     mov %rsp,%rbp                with -XX:+PreserveFramePointer
 *     sub $S,%rsp                  the CFA is rsp + S + 16, the frame's size
 *     ...
 *     add $S,%rsp; pop %rbp        then perhaps a test for a safepoint, with a jump to a stub
 *     ret
 *
 * A wrapper of a native method has rbp as its frame pointer until "leave".  C2 has "sub $S,%rsp;
 * mov %rbp,S-8(%rsp)" in small frames.  x86-64 alone is known. */
#ifndef PERFJIT_FRAME_TABLES_H
#define PERFJIT_FRAME_TABLES_H

#include "jitdump/cfi.h"

#include <stdbool.h>
#include <stdint.h>

struct compiled_frame {
    const uint8_t *code;
    uint64_t size;
    uint64_t frame_bytes; /* with the return address */
    bool keeps_rbp;       /* a native method's wrapper, which moves rsp for its call */
    uint64_t entries[2];  /* where prologues begin, in the code: ascending */
    unsigned entry_count;
};

/* Where the frame is made or left: the method's own code, whatever HotSpot says was inlined there.
 */
struct frame_edges {
    struct frame_edge {
        uint64_t from, to; /* in the code */
    } * items;             /* owned, ascending, apart from each other */
    size_t count, capacity;
};

/* Describe FRAME by CFI, which is new or reset, and set *UNWIND.  False: the code has not that
 * frame, as far as its instructions say.  EDGES, which may be NULL, are empty before; free their
 * items in either case. */
bool frame_tables_make(struct jitdump_cfi *cfi, const struct compiled_frame *frame,
                       struct frame_edges *edges, struct jitdump_unwind *unwind);

/* The same for SIZE bytes of code that is hardly ever without its frame of rbp: the interpreter,
 * and the stub that calls it.  SENDER_SP_WORDS: where the caller's rsp stands, from rbp; 0:
 * nowhere, it is behind the return address.  The interpreter's caller may be compiled code, whose
 * frame was made longer by the arguments. */
bool frame_tables_of_rbp(struct jitdump_cfi *cfi, uint64_t size, int32_t sender_sp_words,
                         struct jitdump_unwind *unwind);

#endif
