/* denied: run a command for which perf_event_open fails, as in a container without CAP_PERFMON or
 * under kernel.perf_event_paranoid=3.
 *
 *     denied ERRNO COMMAND [ARGUMENT...]
 *
 * Exit status 77 if the filter is not permitted here.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int deny(unsigned error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
    unsigned error = argc > 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    if (error == 0 || error > 4095) {
        fprintf(stderr, "usage: denied ERRNO COMMAND [ARGUMENT...]\n");
        return 2;
    }
    if (deny(error)) {
        perror("seccomp");
        return 77;
    }
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
