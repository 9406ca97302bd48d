/* See process_stat.h.  NAME may hold anything, so words are counted from the last ')'. */
#include "injector/files/process_stat.h"

#include <stdio.h>
#include <string.h>

const char *process_stat_read(char line[PROCESS_STAT_BYTES], pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    size_t bytes = file ? fread(line, 1, PROCESS_STAT_BYTES - 1, file) : 0;
    if (file)
        fclose(file);
    line[bytes] = '\0';
    const char *name_end = strrchr(line, ')');
    return name_end && name_end[1] == ' ' ? name_end + 2 : NULL;
}

const char *process_stat_word(const char *words, enum process_stat_word word)
{
    for (int at = PROCESS_STATE; words && at < (int)word; at++) {
        words = strchr(words, ' ');
        words += words != NULL;
    }
    return words;
}
