/* The methods of redefined classes that threads are still in, where nothing else tells of them.
 *
 * A method whose bytecode is the same in the new class is "equal": from then on its jmethodID is
 * the new one's, also in the frames that have the old one, and no call of JVMTI has the old one's
 * address.  That stands on the stacks, in the interpreter's frames.  So a word there is an old
 * method if what it points to has a class, and the class has another method by that name.  Threads
 * run meanwhile, and what a word points to may be gone: all is read by the kernel, which says so.
 */
#ifndef PERFJIT_OLD_METHODS_H
#define PERFJIT_OLD_METHODS_H

#include "agents/java/vm_structs.h"

struct old_method {
    uint64_t method;
    struct vm_bytecodes codes;
    const uint64_t *place; /* what the jmethodID of the new one is: HotSpot frees none */
    bool same_code; /* the new one has the same bytecode, and so the lines are by the new one's */
};

struct old_methods {
    struct old_method *items; /* owned; each method once, by address */
    size_t count, capacity;
    bool again; /* one was not settled yet: its class is just being redefined */
};

/* Find those on the stacks of all Java threads, into METHODS, which is empty; of a deep stack only
 * on its outermost MiB.  GOES_ON is asked now and then: false ends it early. */
void old_methods_find(const struct vm_structs *structs, struct old_methods *methods,
                      bool (*goes_on)(void));

void old_methods_free(struct old_methods *methods);

/* The bytecodes of METHOD, which may be gone. */
struct vm_bytecodes old_method_bytecodes(const struct vm_structs *structs, uint64_t method);

/* The same of the METHOD that an ID of a class pointed to just now, in *CODES.  While the class is
 * redefined METHOD may be freed.  False: a sandbox keeps the process from asking the kernel. */
bool newest_method_bytecodes(const struct vm_structs *structs, uint64_t method,
                             struct vm_bytecodes *codes);

#endif
