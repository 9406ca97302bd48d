/* See bench_balance.h. */
#include "injector/compare/kept_runs/bench_balance.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Less is no reason for a warning, even if it is no chance: 5 % of a processor, 1 % of speed.  And
 * a difference is no chance beyond 4 standard errors, one of 100 of 4 against 4 runs. */
static const double least_load = 0.05, least_speed = 0.01, errors_of_chance = 4;

struct moments {
    double count, mean, squares; /* of the deviations from the mean */
};

struct balance {
    const struct balance_side *base, *new;
    int (*tell)(void *context, const char *text);
    void *context;
};

static void add(struct moments *moments, double value)
{
    double off = value - moments->mean;
    moments->mean += off / ++moments->count;
    moments->squares += off * (value - moments->mean);
}

static double load_of(const struct bench_run *run)
{
    return run->numbers[RUN_WALL_NS]
               ? (double)run->numbers[RUN_BESIDE_NS] / (double)run->numbers[RUN_WALL_NS]
               : NAN;
}

static double stolen_of(const struct bench_run *run)
{
    return run->numbers[RUN_WALL_NS]
               ? (double)run->numbers[RUN_STOLEN_NS] / (double)run->numbers[RUN_WALL_NS]
               : NAN;
}

static double loop_of(const struct bench_run *run)
{
    return run->numbers[RUN_LOOP_NS] ? (double)run->numbers[RUN_LOOP_NS] : NAN;
}

static struct moments moments_of(const struct balance_side *side,
                                 double (*value_of)(const struct bench_run *run))
{
    struct moments moments = {0};
    for (size_t i = 0; i < side->list->run_count; i++) {
        const struct bench_run *run = &side->list->runs[i];
        double value = run->side == side->side ? value_of(run) : NAN;
        if (isfinite(value))
            add(&moments, value);
    }
    return moments;
}

/* Whether the means differ by LEAST or more, and not by chance. */
static bool differ(const struct moments *a, const struct moments *b, double least)
{
    if (a->count < 3 || b->count < 3 || fabs(a->mean - b->mean) < least)
        return false;
    double error =
        sqrt(a->squares / (a->count - 1) / a->count + b->squares / (b->count - 1) / b->count);
    return fabs(a->mean - b->mean) > errors_of_chance * error;
}

/* ---- What is told ---- */

static int tell_load(const struct balance *balance, double (*value_of)(const struct bench_run *run),
                     const char *what)
{
    char text[256];
    struct moments base = moments_of(balance->base, value_of);
    struct moments new = moments_of(balance->new, value_of);
    if (!differ(&base, &new, least_load))
        return 0;
    snprintf(text, sizeof text,
             "%s took %.2f processors during the base's runs and %.2f during the new ones: this "
             "may be the difference between the sides",
             what, base.mean, new.mean);
    return balance->tell(balance->context, text);
}

static int tell_speed(const struct balance *balance)
{
    char text[256];
    struct moments base = moments_of(balance->base, loop_of);
    struct moments new = moments_of(balance->new, loop_of);
    if (!differ(&base, &new, least_speed * base.mean))
        return 0;
    snprintf(text, sizeof text,
             "the machine was %.1f %% %s at the new runs than at the base's, by a loop that is "
             "always the same: this may be the difference between the sides",
             100 * fabs(new.mean - base.mean) / base.mean,
             new.mean > base.mean ? "slower" : "faster");
    return balance->tell(balance->context, text);
}

/* Runs that get slower, or faster, one after the other: in blocks the later side has all of it. */
static int tell_drift(const struct balance *balance)
{
    const struct balance_side *sides[] = {balance->base, balance->new};
    double both = 0, turns = 0, times = 0, count = 0, mean_time = 0;
    char text[256];
    for (size_t i = 0; i < 2; i++) {
        struct moments turn = {0}, time = {0};
        const struct bench_list *list = sides[i]->list;
        for (size_t k = 0; k < list->run_count; k++) {
            const struct bench_run *run = &list->runs[k];
            if (run->side != sides[i]->side)
                continue;
            double off = (double)run->numbers[RUN_TURN] - turn.mean;
            add(&turn, (double)run->numbers[RUN_TURN]);
            add(&time, (double)run->numbers[RUN_CPU_NS]);
            both += off * ((double)run->numbers[RUN_CPU_NS] - time.mean);
        }
        turns += turn.squares;
        times += time.squares;
        count += turn.count;
        mean_time += time.mean / 2;
    }
    double share = turns > 0 && times > 0 ? both * both / turns / times : 0;
    double t = share < 1 ? sqrt(share * (count - 3) / (1 - share)) : INFINITY;
    double drift = turns > 0 ? both / turns * count / 2 / mean_time : 0;
    if (count < 8 || t < errors_of_chance || fabs(drift) < least_speed)
        return 0;
    snprintf(text, sizeof text,
             "the runs of a side became %s one after the other, by %.1f %% from side to side, and "
             "they were not in turns: this may be the difference between the sides",
             drift > 0 ? "slower" : "faster", 100 * fabs(drift));
    return balance->tell(balance->context, text);
}

/* Functions that run when the machine is busiest have lost the most. */
static int tell_lost(const struct balance *balance)
{
    const struct balance_side *sides[] = {balance->base, balance->new};
    size_t runs = 0, with = 0;
    double most = 0;
    char text[256];
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < sides[i]->list->run_count; k++) {
            const struct bench_run *run = &sides[i]->list->runs[k];
            if (run->side != sides[i]->side)
                continue;
            double lost = (double)run->numbers[RUN_LOST];
            double share = lost > 0 ? lost / (lost + (double)run->numbers[RUN_SAMPLES]) : 0;
            runs++;
            with += lost > 0;
            most = share > most ? share : most;
        }
    if (!with)
        return 0;
    snprintf(text, sizeof text,
             "perf lost samples in %zu of %zu runs, up to %.1f %% of a run: a lower -F, or -g fp, "
             "helps",
             with, runs, 100 * most);
    return balance->tell(balance->context, text);
}

/* ---- Machines ---- */

static const char *fact(const struct balance_side *side, const char *key)
{
    const char *value = bench_list_fact(side->list, side->side, key);
    return value ? value : "?";
}

/* List those of KEYS, up to a NULL, that differ: "cpu A, then B; ...".  Returns whether any
 * does. */
static bool list_others(char *text, size_t bytes, const struct balance *balance,
                        const char *const *keys)
{
    size_t used = 0;
    text[0] = '\0';
    for (; *keys && used < bytes; keys++)
        if (strcmp(fact(balance->base, *keys), fact(balance->new, *keys)))
            used += (size_t)snprintf(text + used, bytes - used, "%s%s %.60s, then %.60s",
                                     used ? "; " : "", *keys, fact(balance->base, *keys),
                                     fact(balance->new, *keys));
    return used > 0;
}

static int tell_machines(const struct balance *balance)
{
    static const char *const keys[] = {"architecture", "cpu",      "cpus",    "memory_mib",
                                       "kernel",       "governor", "virtual", NULL};
    static const char *const ways[] = {"hz", "perf", "perfjit", "event", NULL};
    char others[700], text[1000];
    bool other_boot = strcmp(fact(balance->base, "boot"), fact(balance->new, "boot")) != 0;
    bool differs = list_others(others, sizeof others, balance, keys);
    if (differs || other_boot) {
        snprintf(text, sizeof text,
                 "the sides ran on two machines (%s): between machines only changes of tens of "
                 "percent mean anything",
                 differs ? others : "of one kind, or one that was started again in between");
        if (balance->tell(balance->context, text))
            return -1;
    }
    if (!list_others(others, sizeof others, balance, ways))
        return 0;
    snprintf(text, sizeof text, "the sides were recorded in two ways: %s", others);
    return balance->tell(balance->context, text);
}

int bench_balance_tell(const struct balance_side *base, const struct balance_side *new,
                       enum bench_order order, int (*tell)(void *context, const char *text),
                       void *context)
{
    const struct balance balance = {base, new, tell, context};
    int result = tell_lost(&balance);
    result = result ? result : tell_machines(&balance);
    if (order == ORDER_TOGETHER) /* both sides had it at the same time */
        return result;
    result = result ? result : tell_load(&balance, load_of, "other work on the machine");
    result = result ? result : tell_load(&balance, stolen_of, "the machine's host");
    result = result ? result : tell_speed(&balance);
    return result || order != ORDER_BLOCKS ? result : tell_drift(&balance);
}
