/* A program under qemu-user, stopped and asked through gdb's remote protocol.
 *
 *     qemu-aarch64 -g SOCKET PROGRAM ...        "$request#xx" goes there, "+" and "$reply#xx" come
 * back
 *
 * Just what the tests need: registers (g, p), memory (m), a breakpoint (Z0), a step (s), and on
 * (c).  Both sides are on one machine, so a broken packet is an error and nothing is sent again.
 * See "Remote Serial Protocol" in gdb's manual.
 */
#ifndef PERFJIT_TEST_QEMU_STUB_H
#define PERFJIT_TEST_QEMU_STUB_H

#include "tests/unit/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>

enum {
    STUB_PACKET_BYTES = 8192,
    STUB_MEMORY_BYTES_MAX = 1024, /* at once; qemu 7 takes up to 2048 */
    STUB_PATIENCE_SECONDS = 60,
};

struct stub {
    pid_t pid;
    int fd;
    char received[STUB_PACKET_BYTES + 8]; /* and not looked at so far */
    size_t received_bytes;
    char reply[STUB_PACKET_BYTES];
};

/* ---- The connection ---- */

_Noreturn static inline void stub_child(char *const *arguments)
{
    int null = open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execvp(arguments[0], arguments);
    _exit(127);
}

/* qemu makes the socket when it is ready. */
static inline bool stub_connect(struct stub *stub, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    stub->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(stub->fd, errno);
    for (int wait = 0; wait < STUB_PATIENCE_SECONDS * 100; wait++) {
        if (connect(stub->fd, (const struct sockaddr *)&address, sizeof address) == 0)
            return true;
        if (waitpid(stub->pid, NULL, WNOHANG) != 0)
            return false;
        usleep(10000);
    }
    return false;
}

/* Run ARGUMENTS, which is qemu with -g SOCKET_PATH and its program, and stop before the first
 * instruction. */
static inline void stub_start(struct stub *stub, char *const *arguments, const char *socket_path)
{
    const struct timeval patience = {.tv_sec = STUB_PATIENCE_SECONDS};
    *stub = (struct stub){.pid = fork()};
    assert_return_code(stub->pid, errno);
    if (stub->pid == 0)
        stub_child(arguments);
    if (!stub_connect(stub, socket_path))
        fail_msg("%s doesn't listen at %s", arguments[0], socket_path);
    setsockopt(stub->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

/* Wait for the program's end and return its status. */
static inline int stub_end(struct stub *stub)
{
    int status;
    close(stub->fd);
    assert_int_equal(waitpid(stub->pid, &status, 0), stub->pid);
    return status;
}

/* ---- Packets ---- */

static inline unsigned stub_sum(const char *text, size_t bytes)
{
    unsigned sum = 0;
    for (size_t i = 0; i < bytes; i++)
        sum += (unsigned char)text[i];
    return sum & 0xff;
}

/* The end of the packet that was received, or NULL if it is not whole. */
static inline const char *stub_packet_end(const struct stub *stub)
{
    const char *hash = memchr(stub->received, '#', stub->received_bytes);
    return hash && stub->received + stub->received_bytes >= hash + 3 ? hash : NULL;
}

static inline void stub_receive(struct stub *stub)
{
    const char *hash;
    while (!(hash = stub_packet_end(stub))) {
        ssize_t got = read(stub->fd, stub->received + stub->received_bytes,
                           STUB_PACKET_BYTES - stub->received_bytes);
        if (got <= 0)
            fail_msg("qemu's gdb stub is silent: %s", got ? strerror(errno) : "end of file");
        stub->received_bytes += (size_t)got;
        stub->received[stub->received_bytes] = '\0';
    }
    const char *start = memchr(stub->received, '$', (size_t)(hash - stub->received));
    assert_non_null(start);
    size_t bytes = (size_t)(hash - ++start);
    assert_int_equal(strtoul(hash + 1, NULL, 16), stub_sum(start, bytes));
    memcpy(stub->reply, start, bytes);
    stub->reply[bytes] = '\0';
    stub->received_bytes =
        0; /* it answers and does not speak on its own: nothing is behind the packet */
}

/* Send REQUEST, and return the reply. */
static inline const char *stub_ask(struct stub *stub, const char *request)
{
    char packet[128];
    int bytes =
        snprintf(packet, sizeof packet, "$%s#%02x", request, stub_sum(request, strlen(request)));
    assert_int_equal(write(stub->fd, packet, (size_t)bytes), bytes);
    stub_receive(stub);
    assert_int_equal(write(stub->fd, "+", 1), 1);
    return stub->reply;
}

/* Take BYTES bytes from the hex digits at *TEXT. */
static inline void stub_take(const char **text, void *to, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++, *text += 2) {
        unsigned byte;
        if (sscanf(*text, "%2x", &byte) != 1)
            fail_msg("qemu's gdb stub does not answer in hex: %s", *text);
        ((uint8_t *)to)[i] = (uint8_t)byte;
    }
}

/* ---- Requests ---- */

static inline void stub_memory(struct stub *stub, uint64_t addr, void *to, size_t bytes)
{
    char request[64];
    assert_true(bytes <= STUB_MEMORY_BYTES_MAX);
    snprintf(request, sizeof request, "m%" PRIx64 ",%zx", addr, bytes);
    const char *text = stub_ask(stub, request);
    stub_take(&text, to, bytes);
}

static inline void stub_break_at(struct stub *stub, uint64_t addr)
{
    char request[64];
    snprintf(request, sizeof request, "Z0,%" PRIx64 ",4", addr);
    assert_string_equal(stub_ask(stub, request), "OK");
}

/* Go on by REQUEST, "s" or "c", until it stops.  Returns false if it has ended. */
static inline bool stub_resume(struct stub *stub, const char *request)
{
    const char *reply = stub_ask(stub, request);
    if (reply[0] == 'W')
        return false;
    if (strncmp(reply, "T05", 3) != 0)
        fail_msg("the program got a signal: %s", reply);
    return true;
}

#endif
