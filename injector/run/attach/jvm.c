/* See jvm.h.  The JVM's attach interface, which is the same since JDK 6; files are in the /tmp that
 * the JVM sees, and N is its pid there:
 *
 *     /tmp/.attach_pidN and SIGQUIT    it begins to listen; without the file it prints its threads
 *     /tmp/.java_pidN                  its socket, which takes its own user and root (JDK 17)
 *     "1" "jcmd" "Compiler.perfmap" "" ""    a request: strings that end with 0
 *     "0\n..."                         its answer; another number: it failed, and the text says why
 */
#include "injector/run/attach/jvm.h"

#include "injector/files/full_write.h"
#include "injector/files/process_stat.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { LISTEN_MS = 10000, ANSWER_MS = 30000, LOOK_MS = 20 };

int jvm_open(struct jvm *jvm, pid_t pid, char text[JVM_TEXT_BYTES])
{
    char root[LIVE_ROOT_BYTES], path[LIVE_ROOT_BYTES + 8];
    *jvm = (struct jvm){.pid = pid, .tmp = -1};
    if (!live_process_read(&jvm->live, (uint32_t)pid, UINT64_MAX)) {
        snprintf(text, JVM_TEXT_BYTES, "there is no such process");
        return -1;
    }
    snprintf(path, sizeof path, "%s/tmp", live_process_root(root, (uint32_t)pid));
    jvm->tmp = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (jvm->tmp >= 0)
        return 0;
    snprintf(text, JVM_TEXT_BYTES, "its /tmp can't be opened: %s", strerror(errno));
    return -1;
}

const char *jvm_file_name(const struct jvm *jvm, const char *before, const char *behind,
                          char name[JVM_NAME_BYTES])
{
    snprintf(name, JVM_NAME_BYTES, "%s%" PRIu32 "%s", before, jvm->live.namespace_pid, behind);
    return name;
}

bool jvm_has_file(const struct jvm *jvm, const char *before, const char *behind, mode_t type)
{
    char name[JVM_NAME_BYTES];
    struct stat status;
    return fstatat(jvm->tmp, jvm_file_name(jvm, before, behind, name), &status,
                   AT_SYMLINK_NOFOLLOW) == 0 &&
           (status.st_mode & S_IFMT) == type && status.st_uid == jvm->live.uid;
}

/* Whether a file of /proc/PID has TEXT in its first bytes. */
static bool proc_has(pid_t pid, const char *file, const char *text)
{
    char path[64];
    static char bytes[1 << 16];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t count = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
    if (fd >= 0)
        close(fd);
    return count > 0 && memmem(bytes, (size_t)count, text, strlen(text));
}

/* Read a line of /proc/PID/status by FORMAT.  False: there is none. */
static bool read_status(pid_t pid, const char *format, void *value)
{
    char path[64], line[128];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file))
        found = sscanf(line, format, value) == 1;
    if (file)
        fclose(file);
    return found;
}

/* Without a handler SIGQUIT would end it (-Xrs), and without the interface it prints its threads.
 */
static bool takes_quit(pid_t pid)
{
    unsigned long long caught = 0;
    read_status(pid, "SigCgt: %llx", &caught);
    return (caught >> (SIGQUIT - 1) & 1) && !proc_has(pid, "cmdline", "DisableAttachMechanism") &&
           !proc_has(pid, "environ", "DisableAttachMechanism");
}

/* By a signal or a debugger: it would print its threads when it goes on. */
static bool is_stopped(pid_t pid)
{
    char line[PROCESS_STAT_BYTES];
    const char *state = process_stat_word(process_stat_read(line, pid), PROCESS_STATE);
    return state && (*state == 'T' || *state == 't');
}

/* In a container whose users are not ours: our root is nobody there. */
static bool has_other_users(pid_t pid)
{
    char path[64];
    struct stat own, its;
    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    return stat("/proc/self/ns/user", &own) == 0 && stat(path, &its) == 0 &&
           own.st_ino != its.st_ino;
}

static void wait_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static bool listens(const struct jvm *jvm)
{
    return jvm_has_file(jvm, ".java_pid", "", S_IFSOCK);
}

/* How old the file is that another program has made to make it listen; -1: there is none that the
 * JVM takes: its user's, or root's. */
static int64_t request_age_ms(const struct jvm *jvm, const char *name)
{
    struct stat status;
    struct timespec now;
    if (fstatat(jvm->tmp, name, &status, AT_SYMLINK_NOFOLLOW) || !S_ISREG(status.st_mode) ||
        (status.st_uid != jvm->live.uid && status.st_uid != 0))
        return -1;
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t age = ((int64_t)now.tv_sec - status.st_mtim.tv_sec) * 1000 +
                        (now.tv_nsec - status.st_mtim.tv_nsec) / 1000000;
    return age > 0 ? age : 0;
}

/* Another program asks it at the moment.  One that was killed has left its file. */
static void wait_for_others(const struct jvm *jvm, const char *name)
{
    for (int ms = 0; ms < LISTEN_MS && !listens(jvm); ms += LOOK_MS) {
        const int64_t age = request_age_ms(jvm, name);
        if (age < 0 || age >= LISTEN_MS || !live_process_goes_on((uint32_t)jvm->pid))
            return;
        wait_ms(LOOK_MS);
    }
}

/* False: there is none, and none can be made. */
static bool make_request_file(const struct jvm *jvm, const char *name)
{
    int fd = openat(jvm->tmp, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno == EEXIST && request_age_ms(jvm, name) >= 0;
    const bool done = !has_other_users(jvm->pid) || fchown(fd, jvm->live.uid, (gid_t)-1) == 0;
    close(fd);
    if (!done)
        unlinkat(jvm->tmp, name, 0);
    return done;
}

/* The signals that end this program, but for those that it was started to ignore. */
static void read_ends(sigset_t *ends)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction action;
    sigemptyset(ends);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(ends, signals[i]);
}

static bool is_to_end(const sigset_t *ends)
{
    sigset_t pending, both;
    sigpending(&pending);
    sigandset(&both, &pending, ends);
    return !sigisemptyset(&both);
}

/* Its file is there. */
static bool wake(const struct jvm *jvm, const sigset_t *ends)
{
    if (kill(jvm->pid, SIGQUIT))
        return false;
    for (int ms = 0; !listens(jvm); ms += LOOK_MS) {
        if (ms >= LISTEN_MS || is_to_end(ends) || !live_process_goes_on((uint32_t)jvm->pid))
            return false;
        wait_ms(LOOK_MS);
    }
    return true;
}

/* Ended by Ctrl-C, this program leaves no file: it ends a little later.  Returns NULL, or why the
 * JVM does not listen. */
static const char *ask_to_listen(const struct jvm *jvm, const char *name)
{
    sigset_t ends, before;
    read_ends(&ends);
    sigprocmask(SIG_BLOCK, &ends, &before);
    const char *reason = NULL;
    if (!make_request_file(jvm, name))
        reason = "it takes no requests: no file can be made in its /tmp";
    else {
        if (!wake(jvm, &ends))
            reason = "it does not begin to listen";
        unlinkat(jvm->tmp, name, 0);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return reason;
}

static const char *begin_to_listen(const struct jvm *jvm)
{
    char name[JVM_NAME_BYTES];
    jvm_file_name(jvm, ".attach_pid", "", name);
    if (listens(jvm))
        return NULL;
    if (!takes_quit(jvm->pid))
        return "it takes no requests";
    wait_for_others(jvm, name);
    return listens(jvm) ? NULL : ask_to_listen(jvm, name);
}

/* JDK 17 takes its own user and group, and root, as its container has them. */
static int connect_as_its_user(const struct jvm *jvm, int fd, const struct sockaddr_un *address)
{
    unsigned gid = 0;
    if (geteuid() != 0 || !has_other_users(jvm->pid) || !read_status(jvm->pid, "Gid: %*u %u", &gid))
        return connect(fd, (const struct sockaddr *)address, sizeof *address);
    const gid_t own_gid = getegid();
    int result = setegid((gid_t)gid) || seteuid(jvm->live.uid)
                     ? -1
                     : connect(fd, (const struct sockaddr *)address, sizeof *address);
    const int error = errno;
    if (seteuid(0) || setegid(own_gid))
        result = -1;
    errno = error;
    return result;
}

static int connect_to(const struct jvm *jvm)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char name[JVM_NAME_BYTES];
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", jvm->tmp,
             jvm_file_name(jvm, ".java_pid", "", name));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect_as_its_user(jvm, fd, &address)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* In one piece, as jcmd sends them. */
static int send_words(int fd, const char *const words[JVM_WORDS])
{
    char *text = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);
    if (!stream)
        return -1;
    fwrite("1", 1, 2, stream);
    for (size_t i = 0; i < JVM_WORDS; i++)
        fwrite(words[i], 1, strlen(words[i]) + 1, stream);
    int result = ferror(stream) | fclose(stream);
    if (!result)
        result = full_write(fd, WRITE_WHERE_IT_STANDS, text, bytes);
    free(text);
    return result ? -1 : 0;
}

/* Its answer, as far as it fits. */
static int ask(int fd, const char *const words[JVM_WORDS], char answer[JVM_ANSWER_BYTES])
{
    size_t count = 0;
    ssize_t bytes = 1;
    if (send_words(fd, words))
        return -1;
    while (bytes > 0 && count < JVM_ANSWER_BYTES - 1) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        bytes = poll(&wait, 1, ANSWER_MS) == 1
                    ? read(fd, answer + count, JVM_ANSWER_BYTES - 1 - count)
                    : -1;
        count += bytes > 0 ? (size_t)bytes : 0;
    }
    answer[count] = '\0';
    return bytes < 0 || !count ? -1 : 0;
}

int jvm_request(const struct jvm *jvm, const char *const words[JVM_WORDS],
                char answer[JVM_ANSWER_BYTES], char text[JVM_TEXT_BYTES])
{
    if (is_stopped(jvm->pid)) {
        snprintf(text, JVM_TEXT_BYTES, "it is stopped (kill -CONT %d lets it go on)",
                 (int)jvm->pid);
        return -1;
    }
    const char *reason = begin_to_listen(jvm);
    int fd = reason ? -1 : connect_to(jvm);
    int result = fd < 0 ? -1 : ask(fd, words, answer);
    if (fd >= 0)
        close(fd);
    if (result && !live_process_goes_on((uint32_t)jvm->pid))
        snprintf(text, JVM_TEXT_BYTES, "it has ended");
    else if (result && reason)
        snprintf(text, JVM_TEXT_BYTES, "%s", reason);
    else if (result)
        snprintf(text, JVM_TEXT_BYTES, "it does not answer: %s", strerror(errno));
    return result;
}

const char *jvm_answer_text(char *answer)
{
    char *said = answer + strcspn(answer, "\n");
    said += *said == '\n';
    said[strcspn(said, "\n")] = '\0';
    return said;
}

void jvm_close(struct jvm *jvm)
{
    if (jvm->tmp >= 0)
        close(jvm->tmp);
    jvm->tmp = -1;
}
