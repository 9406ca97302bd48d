/* See undo_list.h.
 *
 *     perfjit-undo 1      the first of the texts in the file, which end with a NUL each
 *     +NUMBER KIND TEXT   a thing to be undone
 *     -NUMBER             it is done
 *
 *     path    DEVICE INODE PATH
 *     process PID START
 */
#include "injector/files/undo_list.h"

#include "injector/files/directory_tree.h"
#include "injector/files/process_stat.h"
#include "injector/files/temporary_place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    KINDS_MOST = 8,
    LIST_BYTES_MOST = 1 << 24,
    BEGIN_SECONDS = 60, /* for a new list to be locked and to get its first text */
    LOOK_MS = 100,      /* between two looks at the program */
    END_MS = 3000,      /* for a process to end by SIGINT */
    STEP_MS = 2,
};

static const char prefix[] = "perfjit-undo-", first_text[] = "perfjit-undo 1";
static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};

struct undo_kind {
    const char *name;
    undo_step *step;
};

static struct undo_kind kinds[KINDS_MOST];

/* This program's list. */
static struct {
    char *path; /* NULL: there is none */
    int fd, keeper_fd;
    pid_t owner, keeper;
    uint32_t count;
} own = {.fd = -1, .keeper_fd = -1};

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* ---- What is undone ---- */

static void undo_path(const char *text)
{
    uint64_t device, inode;
    int path_at = -1;
    struct stat status;
    if (sscanf(text, "%" SCNu64 " %" SCNu64 " %n", &device, &inode, &path_at) != 2 || path_at < 0)
        return;
    const char *path = text + path_at;
    if (lstat(path, &status) || status.st_dev != device || status.st_ino != inode)
        return;
    if (S_ISDIR(status.st_mode))
        directory_tree_remove(path);
    else
        unlink(path);
}

/* When PID was started, in ticks since the machine was; 0: it has ended. */
static uint64_t start_of(pid_t pid)
{
    char line[PROCESS_STAT_BYTES];
    const char *state = process_stat_read(line, pid);
    const char *start = process_stat_word(state, PROCESS_START);
    return start && *state != 'Z' && *state != 'X' ? strtoull(start, NULL, 10) : 0;
}

static void undo_process(const char *text)
{
    int pid;
    uint64_t start;
    if (sscanf(text, "%d %" SCNu64, &pid, &start) != 2 || pid <= 1)
        return;
    for (int ms = 0; ms < 2 * END_MS && start_of(pid) == start; ms += STEP_MS) {
        if (ms == 0 || ms == END_MS)
            kill(pid, ms ? SIGKILL : SIGINT);
        sleep_ms(STEP_MS);
    }
}

static void learn_own_kinds(void)
{
    undo_list_learn("path", undo_path);
    undo_list_learn("process", undo_process);
}

void undo_list_learn(const char *name, undo_step *step)
{
    size_t i = 0;
    while (i < KINDS_MOST && kinds[i].name && strcmp(kinds[i].name, name))
        i++;
    if (i < KINDS_MOST)
        kinds[i] = (struct undo_kind){name, step};
}

/* ---- Lists ---- */

/* The texts of the list FD, to be freed; NULL: it has none. */
static char *read_list(int fd, size_t *bytes)
{
    struct stat status;
    if (fstat(fd, &status) || status.st_size <= 0 || status.st_size > LIST_BYTES_MOST)
        return NULL;
    char *text = calloc((size_t)status.st_size + 1, 1);
    ssize_t got = text ? pread(fd, text, (size_t)status.st_size, 0) : -1;
    if (got < (ssize_t)sizeof first_text || memcmp(text, first_text, sizeof first_text) != 0) {
        free(text);
        return NULL;
    }
    *bytes = (size_t)got;
    return text;
}

static bool is_done(const char *begin, const char *end, uint64_t number)
{
    for (const char *at = begin; at < end; at += strlen(at) + 1)
        if (*at == '-' && strtoull(at + 1, NULL, 10) == number)
            return true;
    return false;
}

/* Undo AT, "+NUMBER KIND TEXT".  Returns whether its kind is known. */
static bool undo_one(const char *at)
{
    const char *kind = strchr(at, ' ');
    const char *text = kind ? strchr(++kind, ' ') : NULL;
    for (size_t i = 0; text && i < KINDS_MOST && kinds[i].name; i++)
        if (strlen(kinds[i].name) == (size_t)(text - kind) &&
            strncmp(kind, kinds[i].name, (size_t)(text - kind)) == 0) {
            kinds[i].step(text + 1);
            return true;
        }
    return !text;
}

/* Undo all in the list FD.  Returns whether it is of no use any more. */
static bool undo_all(int fd)
{
    size_t bytes;
    bool all = true;
    char *texts = read_list(fd, &bytes);
    if (!texts)
        return true;
    for (size_t at = bytes; at > 0; at--) /* the newest first */
        if (texts[at] == '+' && texts[at - 1] == '\0' &&
            !is_done(texts + at, texts + bytes, strtoull(texts + at + 1, NULL, 10)))
            all &= undo_one(texts + at);
    free(texts);
    return all;
}

/* ---- Those of programs that were killed ---- */

/* Whether the list FD is of this user, and of a program that has ended: locked from now on. */
static bool is_left(int fd)
{
    struct stat status;
    size_t bytes;
    if (fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
        status.st_nlink != 1 || flock(fd, LOCK_EX | LOCK_NB))
        return false;
    char *texts = read_list(fd, &bytes);
    free(texts);
    return texts || status.st_mtime < time(NULL) - BEGIN_SECONDS;
}

static void undo_left(const char *place)
{
    DIR *directory = opendir(place);
    const struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        if (strncmp(entry->d_name, prefix, sizeof prefix - 1))
            continue;
        int fd =
            openat(dirfd(directory), entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && is_left(fd) && undo_all(fd))
            unlinkat(dirfd(directory), entry->d_name, 0);
        if (fd >= 0)
            close(fd);
    }
    if (directory)
        closedir(directory);
}

/* ---- The keeper ---- */

/* Files of the program that it holds open would have no end for others. */
static void close_files(int kept, int kept_too)
{
    int nothing = open("/dev/null", O_RDWR);
    DIR *directory = opendir("/proc/self/fd");
    const struct dirent *entry;
    for (int fd = 0; fd <= STDERR_FILENO && nothing >= 0; fd++)
        dup2(nothing, fd);
    while (directory && (entry = readdir(directory))) {
        int fd = atoi(entry->d_name);
        if (fd > STDERR_FILENO && fd != kept && fd != kept_too && fd != dirfd(directory))
            close(fd);
    }
    if (directory)
        closedir(directory);
}

/* Wait until the program says that it ends, or has ended.  By the end of the socket alone that
 * can't be seen: its children may hold it, and it may have files to close behind that. */
static void wait_for_end(int end_fd, pid_t program)
{
    struct pollfd end = {.fd = end_fd, .events = POLLIN};
    char byte;
    while (getppid() == program) {
        if (poll(&end, 1, LOOK_MS) == 1) {
            if (read(end_fd, &byte, 1) == 1)
                return;
            sleep_ms(STEP_MS);
        }
    }
}

/* Its own session: what ends the program's processes together does not end it. */
static _Noreturn void keep(int end_fd, pid_t program)
{
    sigset_t none;
    sigemptyset(&none);
    for (size_t i = 0; i < sizeof ending_signals / sizeof ending_signals[0]; i++)
        signal(ending_signals[i], SIG_IGN);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    prctl(PR_SET_NAME, "keeper");
    close_files(end_fd, own.fd);
    wait_for_end(end_fd, program);
    if (undo_all(own.fd))
        unlink(own.path);
    _exit(EXIT_SUCCESS);
}

/* Let the keeper undo all.  Returns false if it was killed.  As in a signal handler: only what may
 * be called there. */
static bool let_undo(void)
{
    pid_t keeper = getpid() == own.owner ? own.keeper : 0;
    if (keeper <= 0)
        return true;
    bool told = send(own.keeper_fd, "u", 1, MSG_NOSIGNAL) == 1;
    while (waitpid(keeper, NULL, 0) < 0 && errno == EINTR)
        continue;
    own.keeper = 0; /* not before: a signal that ends the program meanwhile waits, too */
    return told;
}

static void end_by_signal(int number)
{
    let_undo();
    signal(number, SIG_DFL);
    raise(number); /* it comes when the handler returns */
}

static void take_signals(void)
{
    struct sigaction action = {.sa_handler = end_by_signal}, old;
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < sizeof ending_signals / sizeof ending_signals[0]; i++)
        if (sigaction(ending_signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(ending_signals[i], &action, NULL);
}

static int start_keeper(void)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return -1;
    own.owner = getpid();
    own.keeper_fd = ends[1];
    own.keeper = fork();
    if (own.keeper == 0) {
        pid_t program = own.owner;
        own.owner = 0;
        close(ends[1]);
        keep(ends[0], program);
    }
    close(ends[0]);
    if (own.keeper > 0)
        return 0;
    close(ends[1]);
    return -1;
}

/* ---- This program's ---- */

static sigset_t before_hold;

void undo_list_hold(void)
{
    sigset_t ending;
    sigemptyset(&ending);
    for (size_t i = 0; i < sizeof ending_signals / sizeof ending_signals[0]; i++)
        sigaddset(&ending, ending_signals[i]);
    sigprocmask(SIG_BLOCK, &ending, &before_hold);
}

void undo_list_release(void)
{
    sigprocmask(SIG_SETMASK, &before_hold, NULL);
}

static void forget_list(void)
{
    if (own.path)
        unlink(own.path);
    if (own.fd >= 0)
        close(own.fd);
    free(own.path);
    own.path = NULL;
    own.fd = -1;
}

static void begin_list(void)
{
    if (asprintf(&own.path, "%s/%sXXXXXX", temporary_place(), prefix) < 0) {
        own.path = NULL;
        return;
    }
    own.fd = mkostemp(own.path, O_CLOEXEC | O_APPEND);
    if (own.fd < 0 || flock(own.fd, LOCK_EX | LOCK_NB) ||
        write(own.fd, first_text, sizeof first_text) != (ssize_t)sizeof first_text ||
        start_keeper()) {
        forget_list();
        return;
    }
    take_signals();
    atexit(undo_list_end);
}

void undo_list_begin(void)
{
    if (own.path)
        return;
    learn_own_kinds();
    undo_left(temporary_place());
    undo_list_hold();
    begin_list();
    undo_list_release();
}

/* Put TEXT, owned from now on, or NULL without memory, at the end of the list, in one write: a
 * child of this program may write, too. */
static bool append(char *text)
{
    bool wrote = text && write(own.fd, text, strlen(text) + 1) == (ssize_t)strlen(text) + 1;
    free(text);
    return wrote;
}

uint64_t undo_list_add(const char *name, const char *text)
{
    char *line;
    if (!own.path)
        return 0;
    uint64_t number = (uint64_t)getpid() << 32 | ++own.count;
    if (asprintf(&line, "+%" PRIu64 " %s %s", number, name, text) < 0)
        line = NULL;
    return append(line) ? number : 0;
}

/* PATH from the root, to be freed; NULL without memory. */
static char *absolute(const char *path)
{
    char *result, *here;
    if (*path == '/' || !(here = getcwd(NULL, 0)))
        return strdup(path);
    if (asprintf(&result, "%s/%s", here, path) < 0)
        result = NULL;
    free(here);
    return result;
}

uint64_t undo_list_add_path(const char *path, const char *later)
{
    struct stat status;
    char *text, *whole;
    if (!own.path || lstat(path, &status) || !(whole = absolute(later ? later : path)))
        return 0;
    int bytes = asprintf(&text, "%" PRIu64 " %" PRIu64 " %s", (uint64_t)status.st_dev,
                         (uint64_t)status.st_ino, whole);
    free(whole);
    if (bytes < 0)
        return 0;
    uint64_t number = undo_list_add("path", text);
    free(text);
    return number;
}

bool undo_list_make_directory(char *template, uint64_t *number)
{
    undo_list_hold();
    bool made = mkdtemp(template);
    *number = made ? undo_list_add_path(template, NULL) : 0;
    undo_list_release();
    return made;
}

uint64_t undo_list_add_process(pid_t pid)
{
    char text[64];
    snprintf(text, sizeof text, "%d %" PRIu64, (int)pid, start_of(pid));
    return undo_list_add("process", text);
}

void undo_list_done(uint64_t number)
{
    char *line;
    if (!own.path || !number)
        return;
    if (asprintf(&line, "-%" PRIu64, number) < 0)
        line = NULL;
    append(line);
}

void undo_list_end(void)
{
    if (!own.path || getpid() != own.owner)
        return;
    if (!let_undo() && undo_all(own.fd))
        unlink(own.path);
    close(own.keeper_fd);
    close(own.fd);
    free(own.path);
    own.path = NULL;
    own.fd = own.keeper_fd = -1;
}
