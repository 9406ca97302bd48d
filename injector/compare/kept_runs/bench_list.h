/* The file of a bench: NAME.bench/bench.txt, its facts and its runs, whose profiles are the files
 * beside it (run_file.h).  Text, a line for each, fields apart by tabs:
 *
 *     perfjit-bench  1                      the version, in the first line
 *     order          turns|blocks|apart|together
 *                                            how the two sides' runs followed each other
 *     fact           SIDE  KEY  VALUE       of a side: what was run, by what, where
 *     run            SIDE  FILE  KEY=NUMBER ...
 *     end                                   the last line: the file is whole
 *
 * SIDE is base or new; runs of one side are in the order in which they ran.  FILE is a name without
 * a "/" that ends in ".run", and no two runs have one.  Numbers are decimal.  A reader passes over
 * lines that begin with another word, and over keys that it does not know.  A change in the meaning
 * of others is another version.  The file is valid if its first and last line are these two, and
 * every line in between that it knows has all its fields. */
#ifndef PERFJIT_BENCH_LIST_H
#define PERFJIT_BENCH_LIST_H

#include "injector/findings/findings.h"

enum { BENCH_VERSION = 1, BENCH_LIST_MOST_BYTES = 4 << 20 };

enum bench_side { BENCH_BASE, BENCH_NEW, BENCH_SIDES };

/* How the runs were ordered.  TURNS: run I of the base and run I of the new side stood next to each
 * other.  BLOCKS: all of one side were before all of the other.  APART: they come from two benches.
 * TOGETHER: run I of both ran at the same time, on one processor. */
enum bench_order { ORDER_TURNS, ORDER_BLOCKS, ORDER_APART, ORDER_TOGETHER, BENCH_ORDERS };

/* The numbers counted for a run; 0: unknown. */
enum bench_number {
    RUN_TURN,      /* its place among all runs, from 1 */
    RUN_WALL_NS,   /* from the command's start to its end */
    RUN_CPU_NS,    /* that it and its children used, as the kernel counts it */
    RUN_BESIDE_NS, /* CPU time of everything else on the machine meanwhile, with perf */
    RUN_STOLEN_NS, /* that the machine itself did not get of its host */
    RUN_LOOP_NS,   /* the time of a loop that is always the same, just before or after: the
                    * longer */
    RUN_SAMPLES,
    RUN_LOST,       /* samples that perf lost, at most */
    RUN_COMPILE_NS, /* of the JIT's compilers, by their names */
    RUN_CODE_BYTES,
    RUN_FUNCTIONS, /* that were compiled */
    RUN_NUMBERS
};

/* The words for these, by number. */
extern const char *const bench_side_words[BENCH_SIDES];
extern const char *const bench_order_words[BENCH_ORDERS];
extern const char *const bench_number_words[RUN_NUMBERS];

struct bench_run {
    enum bench_side side;
    char *file;
    uint64_t numbers[RUN_NUMBERS];
};

struct bench_fact {
    char *key, *value;
};

struct bench_facts {
    struct bench_fact *items;
    size_t count, capacity;
};

struct bench_list {
    enum bench_order order;
    struct bench_facts facts[BENCH_SIDES];
    struct bench_run *runs;
    size_t run_count, run_capacity;
};

/* Add a copy.  A fact of the same key is replaced.  Bytes that can't stand in a line are written as
 * \xNN.  Returns 0, or -1 without memory. */
int bench_list_add_fact(struct bench_list *list, enum bench_side side, const char *key,
                        const char *value);
int bench_list_add_run(struct bench_list *list, const struct bench_run *run);

/* The value of KEY; NULL if there is none. */
const char *bench_list_fact(const struct bench_list *list, enum bench_side side, const char *key);

size_t bench_list_count(const struct bench_list *list, enum bench_side side);

/* Write LIST into DIRECTORY, or read it there.  Return 0, or -1 with the failure text set.  Release
 * LIST with bench_list_free in either case. */
int bench_list_write(const struct bench_list *list, const char *directory,
                     struct findings *findings);
int bench_list_read(struct bench_list *list, const char *directory, struct findings *findings);

/* The same of the SIZE bytes at TEXT; PATH is for messages. */
int bench_list_parse(struct bench_list *list, const char *path, const char *text, size_t size,
                     struct findings *findings);

void bench_list_free(struct bench_list *list);

#endif
