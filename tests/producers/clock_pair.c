/* clock_pair: map FILE executable some times, and print when, on CLOCK_MONOTONIC.
 *
 *     perf record -o pair.data -e dummy clock_pair FILE
 *     perf script -i pair.data --show-mmap-events
 *
 * perf notes the same mappings down on its own clock.  A line for each: ns before and after.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { MAPPINGS = 30 };

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv)
{
    int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
    if (fd < 0) {
        fprintf(stderr, "usage: clock_pair FILE\n");
        return 2;
    }
    for (int i = 0; i < MAPPINGS; i++) {
        uint64_t before = now_ns();
        void *mapping = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
        uint64_t after = now_ns();
        if (mapping == MAP_FAILED) {
            perror("mmap");
            return EXIT_FAILURE;
        }
        munmap(mapping, 4096);
        printf("%" PRIu64 " %" PRIu64 "\n", before, after);
    }
    return EXIT_SUCCESS;
}
