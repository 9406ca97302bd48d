/* Children of a test program, in which cmocka's assertions can't report. */
#ifndef PERFJIT_TEST_CHILD_H
#define PERFJIT_TEST_CHILD_H

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOT_PERMITTED = 77 }; /* the status of a child that could not do what it was to try */

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* Its status as a shell has it: 128 and the signal's number if one ended it. */
static inline int wait_for(pid_t child)
{
    int status = -1;
    if (waitpid(child, &status, 0) != child)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif
