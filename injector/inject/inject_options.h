/* The options of perfjit inject. */
#ifndef PERFJIT_INJECT_OPTIONS_H
#define PERFJIT_INJECT_OPTIONS_H

#include "injector/history/recording.h"
#include "injector/inject/layout/image_plan.h"
#include "injector/inject/layout/image_plan_by_name.h"

/* The handling of user stacks. */
enum stacks {
    STACKS_UNWIND, /* call chains */
    STACKS_KEEP,
    STACKS_BY_DEFAULT /* call chains, where they can be made and there is JIT code */
};

/* The place for inlined calls. */
enum inlines {
    INLINES_DWARF,  /* in the ELF files */
    INLINES_FRAMES, /* in call chains, where these are in the output; else as above */
    INLINES_NONE,
    INLINES_BY_DEFAULT /* in call chains if they are made here; else as the first */
};

struct inject_options {
    const char *input;
    bool input_given, input_is_option;
    char *output;
    char *dso_dir;
    bool dso_dir_given;
    enum image_layout layout;
    enum stacks stacks;
    bool stitch;
    enum image_rows rows;
    enum inlines inlines;
    struct recording_request request;
    bool compress_debug;
    bool verbose, quiet;
    /* After perfjit record, which started logging in the runtimes and saw them end.  A recording
     * without JIT code is then written as well, with a message.  A dump that ends in a record is a
     * loss only if samples or stacks are unknown. */
    bool *names_none;       /* set if samples are in JIT code and none has a name; or NULL */
    bool after_record;
    bool follows_pointers; /* and its stacks are those of frame pointers */
};

/* Read the command line ARGV, and fill in the names that it leaves out.  Prints help and ends the
 * program if the line has --help or an error.  Returns 0, or -1 with the failure text set.  Release
 * with inject_options_free in either case. */
int inject_options_read(struct inject_options *options, int argc, char **argv,
                        struct findings *findings);

/* The options of the command without arguments, with INPUT, which must outlive OPTIONS, and OUTPUT.
 * Returns, and is to be released, as above. */
int inject_options_default(struct inject_options *options, const char *input, const char *output,
                           struct findings *findings);

extern const struct argp inject_argp;

void inject_options_free(struct inject_options *options);

#endif
