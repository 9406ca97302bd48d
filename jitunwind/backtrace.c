/* The calls for signal handlers: see jitunwind.h. */
#include "jitunwind/arena_list.h"
#include "jitunwind/frames/read_marks.h"
#include "jitunwind/stack_walk.h"

#include <errno.h>

/* ---- Backtraces ---- */

/* FRAMES[INDEX] is where WALK is. */
static void put_frame(struct jitunwind_frame *frame, const struct stack_walk *walk,
                      enum jitunwind_how how)
{
    *frame = (struct jitunwind_frame){.ip = walk->frame.ip,
                                      .sp = walk->frame.registers[MACHINE_SP],
                                      .how = (uint8_t)how,
                                      .exact = walk->exact};
}

static size_t walk_stack(struct stack_walk *walk, struct jitunwind_frame *frames, size_t max)
{
    enum jitunwind_how how = JITUNWIND_INTERRUPTED;
    for (size_t count = 0;;) {
        put_frame(&frames[count++], walk, how);
        enum jitunwind_end end = ju_stack_walk_next(walk, &how);
        if (end == JITUNWIND_GOES_ON && count == max)
            end = JITUNWIND_FULL;
        frames[count - 1].end = (uint8_t)end;
        if (end != JITUNWIND_GOES_ON)
            return count;
    }
}

/* The registers of UCONTEXT, or of HERE's caller. */
static size_t backtrace_of(const void *ucontext, const struct machine_frame *here,
                           struct jitunwind_frame *frames, size_t max, uint32_t flags)
{
    enum jitunwind_how how;
    struct stack_walk walk;
    size_t count = 0;
    int error = errno;
    unsigned mark = read_begin();
    bool good = ju_stack_walk_begin(&walk, ucontext, here);
    walk.scan = flags & JITUNWIND_SCAN;
    if (good && here)
        good = ju_stack_walk_next(&walk, &how) == JITUNWIND_GOES_ON;
    if (good && max)
        count = walk_stack(&walk, frames, max);
    ju_stack_walk_end(&walk);
    read_end(mark);
    errno = error;
    return count;
}

__attribute__((noinline)) size_t jitunwind_backtrace(const void *ucontext,
                                                     struct jitunwind_frame *frames, size_t max,
                                                     uint32_t flags)
{
    struct machine_frame here = {0};
    if (ucontext)
        return backtrace_of(ucontext, NULL, frames, max, flags);
    machine_take_frame(&here);
    size_t count = backtrace_of(NULL, &here, frames, max, flags);
    /* This frame is being walked: it must not be replaced by the callee's (a tail call). */
    __asm__ volatile("" ::: "memory");
    return count;
}

/* ---- Names ---- */

static void copy_name(char *to, size_t bytes, const char *name)
{
    size_t i = 0;
    for (; i + 1 < bytes && name[i]; i++)
        to[i] = name[i];
    if (bytes)
        to[i] = '\0';
}

int jitunwind_name(uint64_t ip, char *name, size_t name_bytes, uint64_t *offset)
{
    unsigned mark = read_begin();
    const struct jitunwind *arena = ju_arena_list_find(ip);
    const struct table_function *function =
        arena ? ju_function_table_find(&arena->table, ip) : NULL;
    bool found = function && function->name;
    if (found) {
        copy_name(name, name_bytes, function->name);
        if (offset)
            *offset = ip - function->start;
    }
    read_end(mark);
    return found ? 0 : -ENOENT;
}
