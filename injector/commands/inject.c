/* perfjit inject.  Exit status: that of inject_recording, or 2 for wrong usage. */
#include "injector/commands/commands.h"

#include "injector/files/interruption.h"
#include "injector/inject/inject.h"
#include "injector/text/printable_text.h"

#include <sys/stat.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* A failed run would leave neither. */
static int check_output(const struct inject_options *options, struct findings *findings)
{
    struct stat input, output;
    if (stat(options->input, &input) == 0 && stat(options->output, &output) == 0 &&
        input.st_dev == output.st_dev && input.st_ino == output.st_ino)
        return report_failure(findings,
                              "%s: is the input as well; name another output with -o FILE",
                              options->output);
    return 0;
}

int inject_command(int argc, char **argv)
{
    struct inject_options options;
    struct findings findings = {0};
    int status = EXIT_FAILED;
    if (inject_options_read(&options, argc, argv, &findings) == 0) {
        findings.verbose = options.verbose;
        findings.quiet = options.quiet;
        status =
            check_output(&options, &findings) ? EXIT_USAGE : inject_recording(&options, &findings);
    }
    if (findings.failure[0])
        printable_line(stderr, "perfjit: %s", findings.failure);
    findings_free(&findings);
    inject_options_free(&options);
    interruption_pass_on();
    return status;
}
