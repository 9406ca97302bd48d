/* The machine that a unit sees: its clocks, its name, and who lives on it are what the test says.
 * Nothing lives on it, and no clock of it is known, unless a test puts that here. */
#ifndef PERFJIT_TEST_MACHINE_STAND_IN_H
#define PERFJIT_TEST_MACHINE_STAND_IN_H

#include "injector/log/clock/clock_live.h"
#include "injector/recording/host/live_process.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

static struct {
    struct clock_live clocks;
    uint32_t pid; /* of the one process that lives; 0: none */
    struct live_process live;
    bool other_root;
    const char *root; /* that process's */
    uint64_t own_mounts;
} this_machine;

#define THIS_HOST "unit-test.invalid"

static inline void begin_machine(void)
{
    memset(&this_machine, 0, sizeof this_machine);
    this_machine.root = "/nonexistent";
}

void clock_live_read(struct clock_live *live, bool with_cycles)
{
    *live = this_machine.clocks;
    if (!with_cycles) {
        live->known[CLOCK_KIND_CYCLES] = false;
        live->cycles_per_s = 0;
    }
}

bool live_process_read(struct live_process *live, uint32_t pid, uint64_t recorded_wall_ns)
{
    *live = this_machine.live;
    return live_process_goes_on(pid) && live->started_wall_ns <= recorded_wall_ns;
}

bool live_process_goes_on(uint32_t pid)
{
    return pid != 0 && pid == this_machine.pid;
}

bool live_process_hides(uint32_t pid, const char *path)
{
    (void)path;
    return live_process_has_other_root(pid);
}

const char *live_process_root(char text[LIVE_ROOT_BYTES], uint32_t pid)
{
    (void)pid;
    snprintf(text, LIVE_ROOT_BYTES, "%s", this_machine.root ? this_machine.root : "");
    return text;
}

bool live_process_has_other_root(uint32_t pid)
{
    return live_process_goes_on(pid) && this_machine.other_root;
}

uint64_t live_process_own_mounts(void)
{
    return this_machine.own_mounts;
}

uint32_t live_process_parent(uint32_t pid)
{
    (void)pid;
    return 0;
}

int uname(struct utsname *name)
{
    memset(name, 0, sizeof *name);
    snprintf(name->nodename, sizeof name->nodename, "%s", THIS_HOST);
    snprintf(name->machine, sizeof name->machine, "x86_64");
    snprintf(name->release, sizeof name->release, "6.1.0-unit");
    return 0;
}

#endif
