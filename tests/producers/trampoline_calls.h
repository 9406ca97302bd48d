/* Calls of every kind that a trampoline passes on: each entry has its arguments and its caller the
 * result, as without it. */
#ifndef TRAMPOLINE_CALLS_H
#define TRAMPOLINE_CALLS_H

#include "jitdump/trampoline.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct two_longs {
    long first, second;
};
struct two_doubles {
    double first, second;
};
struct mixed {
    long first;
    double second;
};
struct large {
    long values[7];
};
typedef float vector __attribute__((vector_size(16)));

/* Arguments, and then the result by what is returned in each way. */
static long integers(long a, long b, long c, long d, long e, long f)
{
    return a + 10 * b + 100 * c + 1000 * d + 10000 * e + 100000 * f;
}

static double all_registers(long a, double p, long b, double q, long c, double r, long d, double s,
                            long e, double t, long f, double u, double v, double w)
{
    return (double)integers(a, b, c, d, e, f) + p / 2 + q / 4 + r / 8 + s / 16 + t / 32 + u / 64 +
           v / 128 + w / 256;
}

static struct two_longs returns_two_longs(long a, struct two_longs b)
{
    return (struct two_longs){a + b.first, b.second};
}

static struct two_doubles returns_two_doubles(double a, struct two_doubles b)
{
    return (struct two_doubles){a + b.first, b.second};
}

static struct mixed returns_mixed(struct mixed a)
{
    return (struct mixed){a.first + 1, a.second + 0.5};
}

/* By a hidden pointer: in rdi on x86-64, in x8 on aarch64. */
static struct large returns_large(long a)
{
    struct large result;
    for (int i = 0; i < 7; i++)
        result.values[i] = a + i;
    return result;
}

static float returns_float(float a, float b)
{
    return a - b;
}

static vector returns_vector(vector a, vector b)
{
    return a * b;
}

static __int128 returns_int128(__int128 a, unsigned char b)
{
    return a * b;
}

static long double returns_long_double(double a)
{
    return (long double)a / 3;
}

/* rax has the number of vector registers on x86-64. */
static int variable(char *to, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(to, 64, format, arguments);
    va_end(arguments);
    return length;
}

/* Trampolines on a stack above each other. */
static int calls_itself(const void *self, int depth)
{
    int (*call)(const void *, int) = *(int (*const *)(const void *, int))self;
    return depth ? 1 + call(self, depth - 1) : 0;
}

/* VIA ENTRY: what is called in its place, of its type. */
#define VIA(entry)                                                                                 \
    ((__typeof__(&entry))jitdump_trampoline(dump, #entry, "calls.src", __LINE__,                   \
                                            (jitdump_entry *)entry))
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return #condition;                                                                     \
    } while (0)

enum { CALL_KINDS = 12 }; /* VIAs below */

/* Returns NULL, or what is not as it should be. */
static inline const char *trampoline_calls(struct jitdump *dump)
{
    EXPECT(VIA(integers)(1, 2, 3, 4, 5, 6) == 654321);
    EXPECT(VIA(all_registers)(1, 1.0, 2, 2.0, 3, 3.0, 4, 4.0, 5, 5.0, 6, 6.0, 7.0, 8.0) ==
           all_registers(1, 1.0, 2, 2.0, 3, 3.0, 4, 4.0, 5, 5.0, 6, 6.0, 7.0, 8.0));
    struct two_longs longs = VIA(returns_two_longs)(1, (struct two_longs){2, 3});
    EXPECT(longs.first == 3 && longs.second == 3);
    struct two_doubles doubles = VIA(returns_two_doubles)(1.5, (struct two_doubles){2.25, -0.125});
    EXPECT(doubles.first == 3.75 && doubles.second == -0.125);
    struct mixed mixed = VIA(returns_mixed)((struct mixed){41, 1.25});
    EXPECT(mixed.first == 42 && mixed.second == 1.75);
    struct large large = VIA(returns_large)(100);
    EXPECT(large.values[0] == 100 && large.values[6] == 106);
    EXPECT(VIA(returns_float)(1.5f, 0.25f) == 1.25f);
    vector product = VIA(returns_vector)((vector){1, 2, 3, 4}, (vector){2, 3, 4, 5});
    EXPECT(product[0] == 2 && product[1] == 6 && product[2] == 12 && product[3] == 20);
    EXPECT(VIA(returns_int128)((__int128)1 << 100, 3) == (__int128)3 << 100);
    EXPECT(fabs((double)(VIA(returns_long_double)(1.0) * 3 - 1)) < 1e-15);
    char text[64];
    EXPECT(VIA(variable)(text, "%d %s %.2f %.1f", 7, "eight", 9.25, 10.5) == 17);
    EXPECT(strcmp(text, "7 eight 9.25 10.5") == 0);
    int (*again)(const void *, int) = VIA(calls_itself);
    EXPECT(again(&again, 50) == 50);
    return NULL;
}

#endif
