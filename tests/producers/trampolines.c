/* trampolines: on this machine, whichever it is, trampolines pass on arguments and results, and
 * their frames fit their code.
 *
 *     PERFJIT=dump,check trampolines
 *
 * Prints "N trampolines, N faults, CALLS" where CALLS is "ok" or the call that went wrong.
 */
#include "tests/producers/trampoline_calls.h"

#include <inttypes.h>

enum { MANY = 5000 };

static int number_plus(int number)
{
    return number + 1;
}

int main(void)
{
    struct jitdump *dump;
    if (jitdump_open(&dump, NULL) != 0 || !dump)
        return 2;
    const char *wrong = trampoline_calls(dump);
    int sum = 0;
    for (int i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "many_%d", i);
        int (*call)(int) =
            (int (*)(int))jitdump_trampoline(dump, name, NULL, 0, (jitdump_entry *)number_plus);
        if (call == number_plus)
            wrong = jitdump_error(dump);
        sum += call(i) - i;
    }
    if (sum != MANY)
        wrong = "many";
    printf("%d trampolines, %" PRIu64 " faults, %s\n", MANY + CALL_KINDS, jitdump_faults(dump),
           wrong ? wrong : "ok");
    if (jitdump_trampolines_free(dump) != 0)
        return 1;
    return jitdump_close(dump) != 0 || wrong;
}
