/* The system calls by which libc's functions do their work on this machine: newer ones, like
 * aarch64, have only those with "at". */
#ifndef PERFJIT_TEST_CALL_NUMBERS_H
#define PERFJIT_TEST_CALL_NUMBERS_H

#include <sys/syscall.h>

#ifdef SYS_unlink
enum { UNLINK_CALL = SYS_unlink, READLINK_CALL = SYS_readlink, MKDIR_CALL = SYS_mkdir };
#else
enum { UNLINK_CALL = SYS_unlinkat, READLINK_CALL = SYS_readlinkat, MKDIR_CALL = SYS_mkdirat };
#endif

#endif
