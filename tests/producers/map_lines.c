/* map_lines DIR: a runtime that writes a perf map, and a forked child that writes its own, for tests in which calls fail.
 *
 * It goes on whatever fails, says at its end what did, and frees everything.  Status 1: something was lost. */
#include "perfmap/perfmap.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINES = 20 };

/* Returns whether a line is missing. */
static int add_lines(struct perfmap *map, const char *name)
{
    int lost = 0;
    for (unsigned i = 0; i < LINES; i++)
        lost |= perfmap_add(map, 0x1000 + i * 0x100, 0x100, name) != 0;
    return lost;
}

static int finish(struct perfmap *map, int lost)
{
    if (lost || perfmap_lost(map))
        fprintf(stderr, "map_lines: %s\n", map ? perfmap_error(map) : "no memory");
    return perfmap_close(map) != 0 || lost;
}

int main(int argc, char **argv)
{
    struct perfmap_options options = PERFMAP_OPTIONS_INIT;
    struct perfmap *map;
    int status = 0;
    if (argc != 2)
        return 2;
    options.dir = argv[1];
    options.flags = PERFMAP_ALWAYS;
    int lost = perfmap_open(&map, &options) != 0;
    lost |= add_lines(map, "of the parent");
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        return finish(map, add_lines(map, "of the child"));
    if (child > 0)
        waitpid(child, &status, 0);
    return finish(map, lost) || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}
