/* Give a fuzz target the files that are named, and all files in the directories that are: replay
 * FILE|DIR...
 *
 * A file called *.hex holds an input as text: a line that says what it was, behind a #, then its
 * bytes in pairs of digits. */
#include "tests/fuzz/fuzz_target.h"

#include <ftw.h>
#include <string.h>
#include <sys/stat.h>

static const char hex_digits[] = "0123456789abcdef";
static size_t replayed;

/* Turn the SIZE bytes of text into what they stand for, in place.  Returns how many bytes that is.
 */
static size_t from_hex(uint8_t *bytes, size_t size)
{
    size_t count = 0, digits = 0;
    bool comment = false;
    uint8_t byte = 0;
    for (size_t i = 0; i < size; i++) {
        const char *digit = strchr(hex_digits, bytes[i] ? bytes[i] : ' ');
        comment = bytes[i] == '#' || (comment && bytes[i] != '\n');
        if (comment || !digit)
            continue;
        byte = (uint8_t)(byte << 4 | (digit - hex_digits));
        if (++digits % 2 == 0)
            bytes[count++] = byte;
    }
    return count;
}

/* A heap block of just SIZE bytes, with those at BYTES, which are freed. */
static uint8_t *fitted(uint8_t *bytes, size_t size)
{
    uint8_t *block = malloc(size ? size : 1);
    if (block)
        memcpy(block, bytes, size);
    free(bytes);
    return block;
}

static int replay(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)place;
    if (kind != FTW_F)
        return 0;
    size_t size = (size_t)status->st_size;
    uint8_t *bytes = malloc(size ? size : 1);
    FILE *file = fopen(path, "rb");
    if (!bytes || !file || fread(bytes, 1, size, file) != size) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    fclose(file);
    fprintf(stderr, "%s\n", path); /* the last one is the one that crashed */
    const char *dot = strrchr(path, '.');
    if (dot && strcmp(dot, ".hex") == 0) {
        size = from_hex(bytes, size);
        bytes = fitted(bytes, size);
    }
    LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
    replayed++;
    return 0;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (nftw(argv[i], replay, 16, FTW_PHYS)) {
            perror(argv[i]);
            return EXIT_FAILURE;
        }
    printf("%zu inputs\n", replayed);
    return replayed ? EXIT_SUCCESS : EXIT_FAILURE;
}
