/* See diff_text.h. */
#include "injector/compare/diff_text.h"

static void put_value(FILE *stream, double value, bool counts_ns)
{
    if (counts_ns)
        fprintf(stream, "%10.1f ms", value / 1e6);
    else
        fprintf(stream, "%13.0f", value);
}

static void put_headline(FILE *stream, const struct run_set *set, const struct verdicts *verdicts)
{
    const struct compared_row *total = &verdicts->total;
    double change = 100 * (total->new - total->base) / total->base;
    if (!verdicts->enough) {
        fprintf(stream,
                "no verdict: %zu against %zu runs are too few to tell a change from noise; at "
                "least 4 against 4, or 6 pairs (--paired)\n",
                set->base, set->new);
        return;
    }
    fprintf(stream, "%s: %+.1f %% in all, %zu against %zu runs%s, p %.4f\n",
            verdict_name(total->verdict), change, set->base, set->new,
            verdicts->paired ? " in pairs" : "", total->p);
    fprintf(stream,
            "4 of 5 such comparisons would show a change of %.1f %%; less than %.1f %% is none\n",
            100 * verdicts->least, 100 * verdicts->floor);
}

static void put_row(FILE *stream, const struct compared_row *row, const char *name, bool counts_ns)
{
    put_value(stream, row->base, counts_ns);
    put_value(stream, row->new, counts_ns);
    if (row->base > 0 && row->new > 0)
        fprintf(stream, " %+8.1f %%", 100 * (row->new - row->base) / row->base);
    else
        fprintf(stream, " %10s", row->base > 0 ? "vanished" : "new");
    fprintf(stream, "  %-10s  %s\n",
            row->verdict <= VERDICT_FASTER ? verdict_name(row->verdict) : "", name);
}

void diff_text_put(FILE *stream, const struct run_set *set, const struct verdicts *verdicts,
                   bool counts_ns, size_t most_rows)
{
    put_headline(stream, set, verdicts);
    for (size_t i = 0; i < set->note_count; i++)
        fprintf(stream, "%s\n", set->notes[i]);
    fprintf(stream, "\n%13s%13s %10s  %-10s  function, by itself, a run\n", "base", "new", "change",
            "verdict");
    put_row(stream, &verdicts->total, "(in all)", counts_ns);
    for (size_t i = 0; i < verdicts->row_count && i < most_rows; i++)
        put_row(stream, &verdicts->rows[i],
                call_profile_string(&set->names, verdicts->rows[i].name), counts_ns);
    if (verdicts->row_count > most_rows)
        fprintf(stream, "... and %zu more functions (--rows N)\n", verdicts->row_count - most_rows);
}
