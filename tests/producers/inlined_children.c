/* inlined_children: a JIT with inlined calls, and two children.
 *
 *     PERFJIT=dump inlined_children
 *
 * In the code of each function NAME a call of NAME_inner is inlined, from its first byte to its
 * last.  The parent makes "parents" and "shared", runs the one, forks, and runs the other.  One
 * child runs "parents"; the other one makes "childs" and another "shared", and runs these and both
 * of its parent's. */
#include "jitdump/jitdump.h"
#include "tests/producers/loop_code.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct jit {
    struct jitdump *dump;
    uint8_t *next; /* where the next function goes */
};

static loop_code *load(struct jit *jit, const char *name)
{
    char inner[64];
    uint8_t *at = jit->next;
    snprintf(inner, sizeof inner, "%s_inner", name);
    const struct jitdump_line line = {(uintptr_t)at, "children.src", 1, 1};
    const struct jitdump_inline call = {inner, "children.src",     "children.src", 2, 1,
                                        3,     JITDUMP_NOT_INLINED};
    const uint32_t line_inlines[] = {0};
    struct jitdump_code code = JITDUMP_CODE_INIT;
    loop_code_put(at, 0);
    loop_code_ready(at, LOOP_BLOCK_BYTES);
    code.name = name;
    code.code_addr = (uintptr_t)at;
    code.bytes = at;
    code.code_size = LOOP_BLOCK_BYTES;
    code.lines = &line;
    code.line_count = code.inline_count = 1;
    code.inlines = &call;
    code.line_inlines = line_inlines;
    jit->next += 2 * LOOP_BLOCK_BYTES;
    if (jitdump_add_code(jit->dump, &code, NULL))
        _exit(1);
    return (loop_code *)at;
}

static void run(loop_code *code)
{
    clock_t end = clock() + CLOCKS_PER_SEC / 5;
    while (clock() < end)
        code(1000000);
}

static void be_second_child(struct jit *jit, loop_code *parents, loop_code *shared)
{
    loop_code *own = load(jit, "childs"), *again = load(jit, "shared");
    run(own);
    run(again);
    run(parents);
    run(shared);
    _exit(0);
}

int main(void)
{
    struct jit jit = {.next = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};
    if (jit.next == MAP_FAILED || jitdump_open(&jit.dump, NULL))
        return 1;
    loop_code *parents = load(&jit, "parents"), *shared = load(&jit, "shared");
    run(parents);
    if (fork() == 0) {
        run(parents);
        _exit(0);
    }
    if (fork() == 0)
        be_second_child(&jit, parents, shared);
    while (wait(NULL) > 0)
        ;
    run(shared);
    return jitdump_close(jit.dump) != 0;
}
