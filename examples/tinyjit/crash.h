/* What happens when the process crashes: libjitunwind's report, with the script's functions in it.
 */
#ifndef TINYJIT_CRASH_H
#define TINYJIT_CRASH_H

#include <stdint.h>

/* Report crashes on stderr from now on, and end by the signal as without that.  Returns 0, or -1
 * after a message. */
int crash_report_on(void);

/* Store VALUE where no memory is. */
void crash_now(int64_t value);

/* Stop for a debugger, which can go on; where there is none that ends the process. */
void stop_now(void);

#endif
