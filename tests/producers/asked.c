/* asked: runtimes whose dumps can be asked for while they run.
 *
 *     asked [one|two|fork|mute]
 *
 * one   a JIT with FUNCTIONS functions asked_0 ..., which run in turns; it polls after each round
 * two   two JITs in one process: the second one's functions are other_0 ...
 * fork  a child does the same as its parent, in which nothing is logged before the fork
 * mute  it never polls
 *
 * Prints the pid of each process when it runs, and is to be killed: after ten minutes it ends by
 * itself. */
#include "jitdump/jitdump.h"
#include "tests/producers/loop_code.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FUNCTIONS = 100, ROUNDS = 20000, JITS = 2, LIFE_SECONDS = 600 };

struct jit {
    struct jitdump *dump;
    const char *name;
    uint8_t *code;
};

static void emit_all(struct jitdump *dump, void *user)
{
    const struct jit *jit = user;
    char name[32];
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        snprintf(name, sizeof name, "%s_%u", jit->name, i);
        jitdump_add(dump, name, jit->code + i * LOOP_BLOCK_BYTES, LOOP_BLOCK_BYTES, NULL);
    }
}

static void open_jit(struct jit *jit, const char *name)
{
    struct jitdump_options options = JITDUMP_OPTIONS_INIT;
    options.flags = JITDUMP_ATTACHABLE;
    jit->name = name;
    jit->code = mmap(NULL, FUNCTIONS * LOOP_BLOCK_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (jit->code == MAP_FAILED || jitdump_open(&jit->dump, &options))
        err(1, "no JIT");
    for (unsigned i = 0; i < FUNCTIONS; i++)
        loop_code_put(jit->code + i * LOOP_BLOCK_BYTES, i % LOOP_FILLINGS);
    loop_code_ready(jit->code, FUNCTIONS * LOOP_BLOCK_BYTES);
}

static void run_round(const struct jit *jit)
{
    for (unsigned i = 0; i < FUNCTIONS; i++)
        ((loop_code *)(uintptr_t)(jit->code + i * LOOP_BLOCK_BYTES))(ROUNDS);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "one";
    struct jit jits[JITS];
    size_t count = *mode == 't' ? 2 : 1;
    open_jit(&jits[0], "asked");
    if (count > 1)
        open_jit(&jits[1], "other");
    if (*mode == 'f' && fork() < 0)
        err(1, "no child");
    printf("%d\n", (int)getpid());
    fflush(stdout);
    alarm(LIFE_SECONDS);
    for (;;)
        for (size_t i = 0; i < count; i++) {
            run_round(&jits[i]);
            if (*mode != 'm')
                jitdump_poll(jits[i].dump, emit_all, &jits[i]);
        }
}
