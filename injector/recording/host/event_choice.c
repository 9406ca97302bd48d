/* See event_choice.h. */
#include "injector/recording/host/event_choice.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PERIOD = 1 << 20, PARANOID_NOTHING = 3, PARANOID_UNKNOWN = -2 };

static const struct {
    uint32_t type;
    uint64_t config;
    bool user_only;
    struct event_choice choice;
} tries[TRIES] = {
    [TRY_CYCLES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false, {"cycles", NULL}},
    [TRY_CYCLES_USER] = {PERF_TYPE_HARDWARE,
                         PERF_COUNT_HW_CPU_CYCLES,
                         true,
                         {"cycles:u", "cycles, without the kernel's (kernel.perf_event_paranoid)"}},
    [TRY_CLOCK] = {PERF_TYPE_SOFTWARE,
                   PERF_COUNT_SW_CPU_CLOCK,
                   false,
                   {"cpu-clock", "cpu-clock: this machine offers no cycles"}},
    [TRY_CLOCK_USER] = {PERF_TYPE_SOFTWARE,
                        PERF_COUNT_SW_CPU_CLOCK,
                        true,
                        {"cpu-clock:u", "cpu-clock, without the kernel's "
                                        "(kernel.perf_event_paranoid): this machine offers no "
                                        "cycles"}},
};

/* 0 or an errno. */
static int try_event(uint32_t type, uint64_t config, bool user_only)
{
    struct perf_event_attr attr = {.type = type,
                                   .size = sizeof attr,
                                   .config = config,
                                   .sample_period = PERIOD,
                                   .sample_type = PERF_SAMPLE_IP,
                                   .disabled = 1,
                                   .exclude_kernel = user_only,
                                   .exclude_hv = 1};
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static int paranoid_setting(void)
{
    int value = PARANOID_UNKNOWN;
    FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
    if (file && fscanf(file, "%d", &value) != 1)
        value = PARANOID_UNKNOWN;
    if (file)
        fclose(file);
    return value;
}

int event_choose_by(struct event_choice *choice, const int errors[TRIES], int paranoid,
                    struct findings *findings)
{
    for (size_t i = 0; i < TRIES; i++)
        if (!errors[i]) {
            *choice = tries[i].choice;
            return 0;
        }
    int error = errors[TRY_CLOCK_USER];
    if (error == ENOSYS)
        return report_failure(findings, "this kernel, or a sandbox, has no perf events");
    if ((error == EACCES || error == EPERM) && paranoid >= PARANOID_NOTHING)
        return report_failure(findings,
                              "you may not sample: kernel.perf_event_paranoid is %d; as root, "
                              "sysctl kernel.perf_event_paranoid=2 permits it",
                              paranoid);
    if (error == EACCES || error == EPERM)
        return report_failure(findings, "you may not sample here: a container or sandbox forbids "
                                        "perf_event_open (docker: --cap-add PERFMON, or a seccomp "
                                        "profile that permits it)");
    return report_failure(findings, "perf events can't be used: %s", strerror(error));
}

int event_choose(struct event_choice *choice, struct findings *findings)
{
    int errors[TRIES];
    for (size_t i = 0; i < TRIES; i++)
        errors[i] = try_event(tries[i].type, tries[i].config, tries[i].user_only);
    return event_choose_by(choice, errors, paranoid_setting(), findings);
}

bool event_can_sample_switches(void)
{
    return try_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, false) == 0;
}
