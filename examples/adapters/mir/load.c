/* Something for MIR's C compiler to compile: leaves, recursion, spilled and stacked arguments, alloca, callbacks from libc,
 * switches. */
#include <stdarg.h>
extern int printf (const char *format, ...);
extern void qsort (void *base, unsigned long count, unsigned long bytes,
                   int (*compare) (const void *, const void *));
extern long clock (void);
extern int atoi (const char *text);
extern void *alloca (unsigned long bytes);

struct matrix {
  double at[8][8];
};

static long leaf (long x) { return x * 3 + 1; }

static long fib (long n) { return n < 2 ? n : fib (n - 1) + fib (n - 2); }

static long collatz (long n) {
  long steps = 0;
  for (; n != 1; steps++) n = n % 2 ? leaf (n) : n / 2;
  return steps;
}

static struct matrix multiply (struct matrix a, struct matrix b) {
  struct matrix r;
  for (int i = 0; i < 8; i++)
    for (int j = 0; j < 8; j++) {
      r.at[i][j] = 0;
      for (int k = 0; k < 8; k++) r.at[i][j] += a.at[i][k] * b.at[k][j];
    }
  return r;
}

static long many_values (long a, long b, long c, long d, long e, long f, long g, long h, long n) {
  long i = 1, j = 2, k = 3, l = 4, m = 5;
  for (; n > 0; n--) {
    a += b ^ n, b += c, c += d ^ i, d += e, e += f ^ j, f += g, g += h ^ k, h += i;
    i += j, j += k ^ a, k += l, l += m ^ c, m += a;
  }
  return a + b + c + d + e + f + g + h + i + j + k + l + m;
}

static long in_alloca (int n) {
  long *all = alloca (n * sizeof (long)), sum = 0;
  for (int i = 0; i < n; i++) all[i] = collatz (i + 1);
  for (int i = 0; i < n; i++) sum += all[i];
  return sum;
}

static long sum_of (int count, ...) {
  va_list rest;
  long sum = 0, kept = collatz (count);
  va_start (rest, count);
  for (int i = 0; i < count; i++) sum += kept + va_arg (rest, long);
  va_end (rest);
  for (int i = 0; i < 50; i++) sum += leaf (sum) & kept;
  return sum;
}

static int by_bits (const void *a, const void *b) {
  unsigned x = *(const unsigned *) a, y = *(const unsigned *) b;
  x = (x ^ x >> 7) * 2654435761u, y = (y ^ y >> 7) * 2654435761u;
  return (x > y) - (x < y);
}

static long chosen (long x) {
  switch (x % 7) {
  case 0: return x + 11;
  case 1: return leaf (x);
  case 2: return x * x;
  case 3: return x ^ 77;
  case 4: return leaf (x) - leaf (x + 1);
  case 5: return x / 3;
  default: return -x;
  }
}

static long round_of (long seed) {
  unsigned sorted[200];
  struct matrix a, b;
  long sum = fib (15) + in_alloca (100) + many_values (1, 2, 3, 4, 5, 6, 7, seed, 2000);
  for (int i = 0; i < 64; i++) a.at[i / 8][i % 8] = i, b.at[i / 8][i % 8] = seed % 13;
  for (int i = 0; i < 20; i++) a = multiply (a, b);
  for (int i = 0; i < 200; i++) sorted[i] = i * 7919 + seed;
  qsort (sorted, 200, sizeof *sorted, by_bits);
  for (int i = 0; i < 2000; i++) sum += chosen (i + seed);
  for (int i = 0; i < 20; i++) sum += sum_of (5, 1l, 2l, 3l, seed, sum);
  return sum + sorted[0] + (a.at[1][1] > 0);
}

int main (int argc, char **argv) {
  long ms = argc > 1 ? atoi (argv[1]) : 1000, sum = 0;
  for (long i = 0; clock () < ms * 1000; i++) sum += round_of (i);
  printf ("%s\n", sum ? "done" : "nothing");
  return 0;
}
