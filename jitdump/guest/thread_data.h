/* Thread-local data.
 *
 * It is in the static TLS block, which exists from the start of a thread.  The usual thread-local
 * data of a library loaded with dlopen is allocated at a thread's first access.  That code ends the
 * process if there is no memory.  The static block has little space for such libraries (glibc: 512
 * bytes or more for all of them), so use only a few words.
 */
#ifndef JITDUMP_THREAD_DATA_H
#define JITDUMP_THREAD_DATA_H

#define JD_THREAD_DATA __thread __attribute__((tls_model("initial-exec")))

#endif
