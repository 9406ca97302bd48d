/* See machine.h. */
#include "injector/run/bench/machine_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- Facts ---- */

/* The first line of PATH, without its end; "" if it can't be read. */
static void read_line(char *line, int bytes, const char *path)
{
    FILE *file = fopen(path, "re");
    line[0] = '\0';
    if (file && !fgets(line, bytes, file))
        line[0] = '\0';
    if (file)
        fclose(file);
    line[strcspn(line, "\n")] = '\0';
}

/* The value of KEY in /proc/cpuinfo. */
static void read_cpu(char *value, size_t bytes, const char *key)
{
    char line[4096];
    FILE *file = fopen("/proc/cpuinfo", "re");
    value[0] = '\0';
    while (file && !value[0] && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, key, strlen(key)) || !colon)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(value, bytes, "%s", colon + 1 + strspn(colon + 1, " "));
    }
    if (file)
        fclose(file);
}

static int add(struct bench_list *list, enum bench_side side, const char *key, const char *value)
{
    return value[0] ? bench_list_add_fact(list, side, key, value) : 0;
}

/* "boot" is another number after each start of each machine: runs with the same one ran on one. */
int machine_add_facts(struct bench_list *list, enum bench_side side)
{
    char cpu[256], flags[4096], governor[64], boot[64], number[32], memory[32];
    struct utsname names = {0};
    struct sysinfo info = {0};
    uname(&names);
    sysinfo(&info);
    read_cpu(cpu, sizeof cpu, "model name");
    read_cpu(flags, sizeof flags, "flags");
    read_line(governor, sizeof governor, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    read_line(boot, sizeof boot, "/proc/sys/kernel/random/boot_id");
    snprintf(number, sizeof number, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    snprintf(memory, sizeof memory, "%llu",
             (unsigned long long)info.totalram * info.mem_unit >> 20);
    return add(list, side, "architecture", names.machine) || add(list, side, "cpu", cpu) ||
                   add(list, side, "cpus", number) || add(list, side, "memory_mib", memory) ||
                   add(list, side, "kernel", names.release) ||
                   add(list, side, "governor", governor) ||
                   add(list, side, "virtual", strstr(flags, " hypervisor") ? "yes" : "no") ||
                   add(list, side, "boot", boot)
               ? -1
               : 0;
}

/* Additions and shifts that do not wait for each other, so all of a core's units are busy.  Other
 * work on the core's second thread makes the loop half as fast, even work of another virtual
 * machine, which nothing else shows.  A chain of multiplications takes as long as ever. */
static uint64_t wide_loop_ns(void)
{
    volatile uint64_t seed = 1;
    uint64_t a = seed, b = a + 1, c = a + 2, d = a + 3, e = a + 4, f = a + 5, start = now_ns();
    for (uint64_t i = 0; i < 1000000; i++) {
        a = a * 3 + i;
        b = b * 5 + i;
        c ^= a + (b >> 3);
        d += c ^ i;
        e ^= d + (a >> 1);
        f += b ^ i;
    }
    uint64_t end = now_ns();
    seed = a + b + c + d + e + f;
    return end - start;
}

uint64_t machine_loop_ns(void)
{
    enum { TURNS = 3 };
    uint64_t sum = 0;
    for (int turn = 0; turn < TURNS; turn++)
        sum += wide_loop_ns();
    return sum / TURNS;
}
