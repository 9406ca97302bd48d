/* The output of perfjit check about one dump, and about its repaired copy. */
#ifndef PERFJIT_DUMP_REPORT_H
#define PERFJIT_DUMP_REPORT_H

#include "injector/check/dump_repair.h"
#include "injector/check/dump_survey.h"
#include "injector/check/findings_report.h"

/* One object, an element of an array. */
void dump_report(struct report *report, const struct jit_dump *dump,
                 const struct dump_survey *survey);

/* The same for a dump that could not be opened. */
void dump_report_unreadable(struct report *report, const char *path, const char *cause);

/* The quirks and losses in FINDINGS, as members of the object that is open. */
void report_findings(struct report *report, const struct findings *findings);

void repair_report(struct report *report, const struct dump_repair *repair, const char *path);

#endif
