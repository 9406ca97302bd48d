/* peak_memory: the most anonymous memory that a command has, in bytes.
 *
 *     peak_memory COMMAND [ARGUMENT...]
 *
 * Files that are mapped don't count (ru_maxrss has them): VmHWM would be mostly the dump.  The
 * kernel keeps no peak of RssAnon, so it is read from /proc/PID/status again and again, every 100
 * us at most, until the command ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAUSE_US = 100 };

static unsigned long anonymous_kib(const char *path)
{
    char line[256];
    unsigned long kib = 0;
    FILE *status = fopen(path, "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "RssAnon: %lu", &kib) == 1)
            break;
    if (status)
        fclose(status);
    return kib;
}

int main(int argc, char **argv)
{
    char path[64];
    int status;
    unsigned long peak_kib = 0;
    if (argc < 2)
        return 2;
    pid_t pid = fork();
    if (pid == 0) {
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    while (pid > 0 && waitpid(pid, &status, WNOHANG) == 0) {
        unsigned long kib = anonymous_kib(path);
        peak_kib = kib > peak_kib ? kib : peak_kib;
        usleep(PAUSE_US);
    }
    if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
        return EXIT_FAILURE;
    printf("%lu\n", peak_kib * 1024);
    return EXIT_SUCCESS;
}
