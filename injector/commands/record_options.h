/* The options of perfjit record that perfjit bench takes as well. */
#ifndef PERFJIT_RECORD_OPTION_KEYS_H
#define PERFJIT_RECORD_OPTION_KEYS_H

#include "injector/run/record/record_options.h"

#include <argp.h>

/* Their keys, beside 'F', 'g' and 'e'. */
enum record_option_key { RECORD_KEY_RUNTIME = 256, RECORD_KEY_PERF };

/* What is recorded if nothing is said. */
void record_options_default(struct record_options *options);

/* Take one of those.  Returns as an argp parser. */
error_t record_options_take(struct record_options *options, int key, char *argument,
                            struct argp_state *state);

#endif
