/* Whether memory can be read, without a fault and without a signal handler.
 *
 * The kernel is asked, once for each page: rt_sigprocmask copies 8 bytes from there before it looks at what is to be done with
 * them, which is nothing that exists; -EFAULT says that they can't be read.  That is the cheapest call that tells (110 ns,
 * Linux 6.18 in a virtual machine; MADV_POPULATE_READ 320 ns, process_vm_readv 730 ns), and still as much as the rest of a
 * record.  So a thread does not ask again for the pages that it has just asked for, if less than 300 ns lie between the
 * answer, or the beginning of the last call, and this call: in that time it can't have unmapped or protected them itself (which takes
 * 1100 ns and more, there).  Where the question takes longer all does, and the time may be twice the question's, up to 600 ns.
 * Another thread could have; but to do that to code that is being recorded is an error that no question prevents, since the
 * copy follows the answer.  A protection key can be changed without a system call: who takes away its own right to read and records
 * the same page within that time is ended by a fault.
 *
 * Other calls would do as well; but none is allowed in as many sandboxes.  valgrind notes each question (unknown 'how').
 */
#ifndef JITDUMP_CODE_PROBE_H
#define JITDUMP_CODE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether SIZE bytes at BYTES can be read.  NOW_NS is the time at which this call of the library began; 0: not known, and
 * then the kernel is asked in any case. */
bool jd_code_is_readable(const void *bytes, size_t size, uint64_t now_ns);

#endif
