/* restless_file FILE SEED: change FILE again and again, each time for some microseconds, as somebody does who hopes that a reader
 * checks one thing and uses another.
 *
 * Most times up to 8 bytes become zeros, ones, a small number or noise; one time in 32 the file is cut.  SIGTERM ends it, and
 * FILE is as it was.  SEED 0 leaves it as it is but for cuts.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
    int fd;
    uint8_t *bytes; /* as they were */
    size_t size;
};

static volatile sig_atomic_t stop;

static void note_signal(int number)
{
    stop = number;
}

static void fail(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

static uint32_t random_below(uint64_t *seed, uint32_t limit)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (uint32_t)((*seed >> 32) % limit);
}

static void open_file(struct file *file, const char *path)
{
    struct stat status;
    file->fd = open(path, O_RDWR | O_CLOEXEC);
    if (file->fd < 0 || fstat(file->fd, &status) != 0)
        fail(path);
    file->size = (size_t)status.st_size;
    file->bytes = malloc(file->size + 1);
    if (!file->bytes || pread(file->fd, file->bytes, file->size, 0) != (ssize_t)file->size)
        fail(path);
}

static void put_back(const struct file *file, size_t at, size_t count)
{
    if (pwrite(file->fd, file->bytes + at, count, (off_t)at) != (ssize_t)count)
        fail("pwrite");
}

/* Long enough for a reader on another processor. */
static void wait_some(uint64_t *seed)
{
    for (volatile uint32_t left = random_below(seed, 20000); left; left--)
        ;
}

static void cut(const struct file *file, uint64_t *seed)
{
    size_t size = random_below(seed, (uint32_t)file->size);
    if (ftruncate(file->fd, (off_t)size) != 0)
        fail("ftruncate");
    wait_some(seed);
    put_back(file, size, file->size - size);
}

static void change(const struct file *file, uint64_t *seed)
{
    size_t at = random_below(seed, (uint32_t)file->size), count = random_below(seed, 8) + 1;
    uint64_t noise = random_below(seed, UINT32_MAX);
    const uint64_t values[] = {0, UINT64_MAX, random_below(seed, 300), noise << 32 | ~noise};
    if (count > file->size - at)
        count = file->size - at;
    if (pwrite(file->fd, &values[random_below(seed, 4)], count, (off_t)at) != (ssize_t)count)
        fail("pwrite");
    wait_some(seed);
    put_back(file, at, count);
}

int main(int argc, char **argv)
{
    struct file file;
    struct sigaction action = {.sa_handler = note_signal};
    if (argc != 3) {
        fprintf(stderr, "usage: restless_file FILE SEED\n");
        return 2;
    }
    uint64_t seed = strtoull(argv[2], NULL, 10), only_cuts = seed == 0;
    seed = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    sigaction(SIGTERM, &action, NULL);
    open_file(&file, argv[1]);
    while (!stop) {
        if (only_cuts || random_below(&seed, 32) == 0)
            cut(&file, &seed);
        else
            change(&file, &seed);
    }
    free(file.bytes);
    return 0;
}
