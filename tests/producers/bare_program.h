/* What a small C program needs of a C library, for programs that stand in a recording themselves:
 * linked with -static -nostdlib they have 10 KB, and nothing in their stacks is the machine's.
 * x86-64 alone. */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

/* perf 6.1 takes what is in a .bss without a .data for code. */
int bare_data = 1;

static long bare_call(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* Where a chain ends, and where a signal handler returns to: their tables say what glibc's say. */
__asm__(
    ".text\n.globl _start\n.type _start, @function\n"
    "_start: .cfi_startproc\n .cfi_undefined rip\n xor %ebp, %ebp\n mov (%rsp), %rdi\n lea "
    "8(%rsp), %rsi\n and $-16, %rsp\n"
    " call main\n mov %eax, %edi\n call exit\n hlt\n.cfi_endproc\n.size _start, .-_start\n"
    ".type bare_restorer, @function\n"
    ".cfi_startproc\n .cfi_signal_frame\n"
    " .cfi_escape 0x0f, 4, 0x77, 0xa0, 1, 6\n"  /* rsp */
    " .cfi_escape 0x10, 16, 3, 0x77, 0xa8, 1\n" /* rip */
    " .cfi_escape 0x10, 6, 3, 0x77, 0xf8, 0\n"  /* rbp */
    " .cfi_escape 0x10, 3, 3, 0x77, 0x80, 1\n"  /* rbx */
    " .cfi_escape 0x10, 12, 3, 0x77, 0xc8, 0\n" /* r12 to r15 */
    " .cfi_escape 0x10, 13, 3, 0x77, 0xd0, 0\n"
    " .cfi_escape 0x10, 14, 3, 0x77, 0xd8, 0\n"
    " .cfi_escape 0x10, 15, 3, 0x77, 0xe0, 0\n"
    " nop\n" /* in front of what it is the table of: unwinders look there */
    "bare_restorer: mov $15, %rax\n syscall\n.cfi_endproc\n.size bare_restorer, .-bare_restorer\n");
void bare_restorer(void);

void exit(int status)
{
    for (;;)
        bare_call(SYS_exit_group, status, 0, 0, 0, 0, 0);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    return (int)bare_call(SYS_clock_gettime, clock, (long)now, 0, 0, 0, 0);
}

clock_t clock(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return used.tv_sec * CLOCKS_PER_SEC + used.tv_nsec / (1000000000 / CLOCKS_PER_SEC);
}

int raise(int number)
{
    long pid = bare_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    return (int)bare_call(SYS_kill, pid, number, 0, 0, 0, 0);
}

int sigaltstack(const stack_t *own, stack_t *former)
{
    return (int)bare_call(SYS_sigaltstack, (long)own, (long)former, 0, 0, 0, 0);
}

int sigaction(int number, const struct sigaction *action, struct sigaction *former)
{
    struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        unsigned long mask;
    } kernels = {action->sa_handler, (unsigned long)action->sa_flags | 0x04000000 /* SA_RESTORER */,
                 bare_restorer, 0};
    (void)former;
    return (int)bare_call(SYS_rt_sigaction, number, (long)&kernels, 0, sizeof kernels.mask, 0, 0);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    return (void *)bare_call(SYS_mmap, (long)at, (long)bytes, protection, flags, file, offset);
}

int mprotect(void *at, size_t bytes, int protection)
{
    return (int)bare_call(SYS_mprotect, (long)at, (long)bytes, protection, 0, 0, 0);
}
