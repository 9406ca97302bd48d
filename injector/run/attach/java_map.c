/* See java_map.h.  The JVM's attach interface, which is the same since JDK 6; files are in the /tmp
 * that the JVM sees, and N is its pid there:
 *
 *     /tmp/.attach_pidN and SIGQUIT    it begins to listen; without the file it prints its threads
 *     /tmp/.java_pidN                  its socket, which takes its own user and root (JDK 17)
 *     "1" "jcmd" "Compiler.perfmap" "" ""    a request: strings that end with 0
 *     "0\n..."                         its answer; another number: it failed, and the text says why
 */
#include "injector/run/attach/java_map.h"

#include "injector/files/full_write.h"
#include "injector/recording/host/live_process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { LISTEN_MS = 5000, ANSWER_MS = 30000, LOOK_MS = 20, NAME_BYTES = 32, ANSWER_BYTES = 120 };

struct jvm {
    pid_t pid;
    struct live_process live;
    int tmp; /* its /tmp; -1: it can't be opened */
};

static int open_jvm(struct jvm *jvm, pid_t pid)
{
    char root[LIVE_ROOT_BYTES], path[LIVE_ROOT_BYTES + 8];
    *jvm = (struct jvm){.pid = pid, .tmp = -1};
    if (!live_process_read(&jvm->live, (uint32_t)pid, UINT64_MAX))
        return -1;
    snprintf(path, sizeof path, "%s/tmp", live_process_root(root, (uint32_t)pid));
    jvm->tmp = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return jvm->tmp < 0 ? -1 : 0;
}

static const char *name_in_tmp(const struct jvm *jvm, const char *before, const char *behind,
                               char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "%s%" PRIu32 "%s", before, jvm->live.namespace_pid, behind);
    return name;
}

/* Whether its file of that name is there, of that type and its user's. */
static bool has_file(const struct jvm *jvm, const char *before, const char *behind, mode_t type)
{
    char name[NAME_BYTES];
    struct stat status;
    return fstatat(jvm->tmp, name_in_tmp(jvm, before, behind, name), &status,
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

/* Without a handler SIGQUIT would end it (-Xrs), and without the interface it prints its threads.
 */
static bool takes_quit(pid_t pid)
{
    char path[64], line[128];
    unsigned long long caught = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file) && sscanf(line, "SigCgt: %llx", &caught) != 1)
        continue;
    if (file)
        fclose(file);
    return (caught >> (SIGQUIT - 1) & 1) && !proc_has(pid, "cmdline", "DisableAttachMechanism") &&
           !proc_has(pid, "environ", "DisableAttachMechanism");
}

static void wait_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static bool begin_to_listen(const struct jvm *jvm)
{
    char name[NAME_BYTES];
    if (has_file(jvm, ".java_pid", "", S_IFSOCK))
        return true;
    if (!takes_quit(jvm->pid))
        return false;
    int fd = openat(jvm->tmp, name_in_tmp(jvm, ".attach_pid", "", name),
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    close(fd);
    bool listens = false;
    if (kill(jvm->pid, SIGQUIT) == 0)
        for (int ms = 0; !listens && ms < LISTEN_MS; ms += LOOK_MS) {
            wait_ms(LOOK_MS);
            listens = has_file(jvm, ".java_pid", "", S_IFSOCK);
        }
    unlinkat(jvm->tmp, name, 0);
    return listens;
}

static int connect_to(const struct jvm *jvm)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char name[NAME_BYTES];
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", jvm->tmp,
             name_in_tmp(jvm, ".java_pid", "", name));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Its answer, as far as it fits, without the line's end. */
static int request(int fd, char answer[ANSWER_BYTES])
{
    static const char words[] = "1\0jcmd\0Compiler.perfmap\0\0";
    size_t count = 0;
    ssize_t bytes = 1;
    if (full_write(fd, WRITE_WHERE_IT_STANDS, words, sizeof words))
        return -1;
    while (bytes > 0 && count < ANSWER_BYTES - 1) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        bytes = poll(&wait, 1, ANSWER_MS) == 1 ? read(fd, answer + count, ANSWER_BYTES - 1 - count)
                                               : -1;
        count += bytes > 0 ? (size_t)bytes : 0;
    }
    answer[count] = '\0';
    return bytes < 0 || !count ? -1 : 0;
}

static int write_map(const struct jvm *jvm, char text[JAVA_MAP_TEXT_BYTES])
{
    char answer[ANSWER_BYTES];
    if (!begin_to_listen(jvm)) {
        snprintf(text, JAVA_MAP_TEXT_BYTES, "it takes no requests");
        return -1;
    }
    int fd = connect_to(jvm);
    int result = fd < 0 ? -1 : request(fd, answer);
    if (fd >= 0)
        close(fd);
    if (result) {
        snprintf(text, JAVA_MAP_TEXT_BYTES, "it does not answer: %s", strerror(errno));
        return -1;
    }
    if (strncmp(answer, "0\n", 2) == 0)
        return 0;
    char *said = answer + strcspn(answer, "\n");
    said += *said == '\n';
    said[strcspn(said, "\n")] = '\0';
    snprintf(text, JAVA_MAP_TEXT_BYTES, "it says: %s (JDK 17 or later has Compiler.perfmap)", said);
    return -1;
}

int java_map_write(pid_t pid, char text[JAVA_MAP_TEXT_BYTES])
{
    struct jvm jvm;
    if (open_jvm(&jvm, pid)) {
        snprintf(text, JAVA_MAP_TEXT_BYTES, "its /tmp can't be opened: %s", strerror(errno));
        return -1;
    }
    int result = write_map(&jvm, text);
    close(jvm.tmp);
    return result;
}

bool java_map_is_there(pid_t pid)
{
    struct jvm jvm;
    bool there = open_jvm(&jvm, pid) == 0 && has_file(&jvm, "perf-", ".map", S_IFREG);
    if (jvm.tmp >= 0)
        close(jvm.tmp);
    return there;
}

void java_map_remove(pid_t pid)
{
    struct jvm jvm;
    char name[NAME_BYTES];
    if (open_jvm(&jvm, pid) == 0 && has_file(&jvm, "perf-", ".map", S_IFREG))
        unlinkat(jvm.tmp, name_in_tmp(&jvm, "perf-", ".map", name), 0);
    if (jvm.tmp >= 0)
        close(jvm.tmp);
}
