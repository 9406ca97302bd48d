/* What each thread has for itself.
 *
 * It lies in the block that a thread is born with.  The usual kind of thread-local data in a shared
 * library that was loaded late is allocated when a thread first touches it, by code that ends the
 * process if there is no memory.  The room for late libraries in that block is small (glibc: 512
 * bytes and more for all of them): so no more than some words.
 */
#ifndef JITDUMP_THREAD_DATA_H
#define JITDUMP_THREAD_DATA_H

#define JD_THREAD_DATA __thread __attribute__((tls_model("initial-exec")))

#endif
