/* Give a fuzz target the files that are named, and all files in the directories that are: replay FILE|DIR... */
#include "tests/fuzz/fuzz_target.h"

#include <ftw.h>
#include <string.h>
#include <sys/stat.h>

static size_t replayed;

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
