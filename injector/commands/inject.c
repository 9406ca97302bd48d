/* perfjit inject.  Exit status: that of inject_recording, or 2 for wrong usage. */
#include "injector/commands/commands.h"

#include "injector/files/interruption.h"
#include "injector/inject/inject.h"
#include "injector/text/printable_text.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

int inject_command(int argc, char **argv)
{
    struct inject_options options;
    struct findings findings = {0};
    int status = EXIT_FAILED;
    if (inject_options_read(&options, argc, argv, &findings) == 0) {
        findings.verbose = options.verbose;
        findings.quiet = options.quiet;
        status = inject_recording(&options, &findings);
        if (findings.is_misuse)
            status = EXIT_USAGE;
    }
    if (findings.failure[0])
        printable_line(stderr, "perfjit: %s", findings.failure);
    findings_free(&findings);
    inject_options_free(&options);
    interruption_pass_on();
    return status;
}
