/* Thread-local data.
 *
 * It is in the static TLS block, which exists from the start of a thread.  The usual kind of
 * thread-local data in a library loaded with dlopen is allocated when a thread first accesses it,
 * by code that ends the process if there is no memory.  The space for such libraries in the static
 * block is small (glibc: 512 bytes or more for all of them), so use no more than a few words.
 */
#ifndef JITDUMP_THREAD_DATA_H
#define JITDUMP_THREAD_DATA_H

#define JD_THREAD_DATA __thread __attribute__((tls_model("initial-exec")))

#endif
