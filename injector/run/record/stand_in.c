/* See stand_in.h.  What a stand-in reads, a line each:
 *
 *     the real program
 *     the directory that the words name: if it can't be written to, as by another user, the words
 *         are left out, because V8 would print its log instead; after the run, too
 *     the words, each as "--WORD"; or "VARIABLE --WORD": only if VARIABLE, which has that word for
 *         all programs, has it no more
 */
#include "injector/run/record/stand_in.h"

#include "injector/files/regular_file.h"
#include "injector/run/program/program.h"
#include "injector/run/record/run_folder.h"
#include "injector/text/file_name.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

enum {
    WORDS_BYTES_MOST = 64 << 10,
    WORDS_MOST = 2 * RUNTIME_ALONE_MOST,
    LINES_MOST = WORDS_MOST + RUNTIME_SWITCHES_MOST,
    EXIT_NOT_STARTED = 126
};

/* ---- Made ---- */

static bool is_one_of(const struct runtime *runtime, const char *name)
{
    for (size_t i = 0; i < RUNTIME_ALONE_MOST && runtime->alone_programs[i]; i++)
        if (strcmp(name, runtime->alone_programs[i]) == 0)
            return true;
    return false;
}

/* Whether PATH leads to RUNTIME's own program: an ELF file of its name. */
static bool is_itself(const char *path, const struct runtime *runtime)
{
    char real[PATH_MAX], magic[4] = "";
    struct stat status;
    if (!realpath(path, real) || !is_one_of(runtime, file_name_of(real)))
        return false;
    const int fd = regular_file_open(real, 0, &status);
    const bool is_elf = fd >= 0 && pread(fd, magic, sizeof magic, 0) == sizeof magic &&
                        memcmp(magic, "\177ELF", sizeof magic) == 0;
    if (fd >= 0)
        close(fd);
    return is_elf;
}

/* Put RUNTIME's words as they are written in its table into WORDS.  Returns how many. */
static size_t list_words(const struct runtime_environment *environment,
                         const struct runtime *runtime, const char *words[WORDS_MOST])
{
    size_t count = 0;
    for (size_t i = 0; i < RUNTIME_ALONE_MOST && runtime->alone_words[i]; i++)
        words[count++] = runtime->alone_words[i];
    for (size_t i = 0;
         environment->tells_deopts && i < RUNTIME_ALONE_MOST && runtime->deopt_words[i]; i++)
        words[count++] = runtime->deopt_words[i];
    return count;
}

/* The words that are in variables for those programs that have the command's environment. */
static void put_variables(FILE *stream, const struct runtime_environment *environment,
                          const struct runtime *runtime)
{
    for (size_t i = 0; i < RUNTIME_SWITCHES_MOST && runtime->switches[i].text; i++) {
        const struct runtime_switch *one = &runtime->switches[i];
        if (one->kind == SWITCH_PREPEND && *one->text == '-' &&
            (!one->only_stacks || environment->copies_stacks))
            fprintf(stream, "%s %s\n", one->variable, one->text);
    }
}

/* What the stand-in for REAL reads, to be freed.  NULL without memory, or for a path that is no
 * line. */
static char *words_of(const struct runtime_environment *environment, const struct runtime *runtime,
                      const char *real)
{
    const char *dumps = run_folder_seen(environment->folder, environment->folder->dumps);
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = strchr(real, '\n') || strchr(dumps, '\n') ? NULL : open_memstream(&text, &bytes);
    if (!stream)
        return NULL;
    fprintf(stream, "%s\n%s\n", real, dumps);
    const char *words[WORDS_MOST];
    const size_t count = list_words(environment, runtime, words);
    for (size_t i = 0; i < count; i++) {
        char *word = runtime_environment_text(environment, words[i]);
        fprintf(stream, "%s\n", word ? word : "");
        free(word);
    }
    put_variables(stream, environment, runtime);
    if (ferror(stream) | fclose(stream)) {
        free(text);
        return NULL;
    }
    return text;
}

/* Put the stand-in for NAME, which is REAL, into the folder.  Returns 1 if it is there and can be
 * run, else 0, or -1 with the failure text set. */
static int put_program(const struct runtime_environment *environment, const struct runtime *runtime,
                       const char *name, const char *real, struct findings *findings)
{
    const struct run_folder *folder = environment->folder;
    char own[PATH_MAX];
    const ssize_t bytes = readlink("/proc/self/exe", own, sizeof own - 1);
    char *words = bytes > 0 ? words_of(environment, runtime, run_folder_seen(folder, real)) : NULL;
    if (!words)
        return 0;
    own[bytes] = '\0';
    const int result = run_folder_add_program(folder, name, own, words, findings);
    free(words);
    return result;
}

/* Let the folder's programs be found in PATH in front of those that stand AT there. */
static int insert_folder(struct runtime_environment *environment, const char *path, size_t at)
{
    char *bin = runtime_environment_text(environment, "%c/bin"), *joined = NULL;
    const int result = !bin || asprintf(&joined, "%.*s%s:%s", (int)at, path, bin, path + at) < 0
                           ? -1
                           : runtime_environment_set(environment, "PATH", joined);
    free(bin);
    free(joined);
    return result;
}

/* All names of the program, as far as they are in the directory of the first of them. */
static int put_programs(struct runtime_environment *environment, const struct runtime *runtime,
                        struct findings *findings)
{
    const char *path = runtime_environment_found(environment, "PATH");
    size_t first = SIZE_MAX, at = 0;
    int result = 0;
    for (size_t i = 0; path && i < RUNTIME_ALONE_MOST && runtime->alone_programs[i]; i++) {
        const char *name = runtime->alone_programs[i];
        char *real = program_in_places(path, name, environment->folder->root, &at);
        if (real && (first == SIZE_MAX || at == first) && is_itself(real, runtime))
            result = put_program(environment, runtime, name, real, findings);
        free(real);
        if (result < 0)
            return -1;
        if (result > 0)
            first = at;
        result = 0;
    }
    if (first != SIZE_MAX && insert_folder(environment, path, first))
        return report_failure(findings, "out of memory");
    return 0;
}

/* Whether the command can read the folder's settings, which are its user's alone unless that is
 * root: a program ends if it can't read what a word names. */
static bool reads_settings(const struct runtime_environment *environment)
{
    return !environment->command.user || geteuid() == 0;
}

int stand_in_add(struct runtime_environment *environment, const struct runtime *runtime,
                 struct findings *findings)
{
    const char *called = file_name_of(environment->words[environment->command.at]);
    if (!environment->folder->path)
        return 0;
    if (put_programs(environment, runtime, findings))
        return -1;
    const char *words[WORDS_MOST];
    for (size_t i = list_words(environment, runtime, words); is_one_of(runtime, called) && i > 0;
         i--)
        if ((reads_settings(environment) || !strstr(words[i - 1], "%c")) &&
            runtime_environment_argument(environment, words[i - 1]))
            return report_failure(findings, "out of memory");
    return 0;
}

/* ---- Started ---- */

/* The lines of the stand-in that was started as PATH, to be freed.  NULL: it is none.  *ENDED:
 * whether the run has. */
static char *lines_of(const char *path, bool *ended)
{
    static const char directory[] = "/settings/bin/";
    const char *name = file_name_of(path);
    const size_t before = (size_t)(name - path);
    char *words, *end;
    size_t bytes;
    if (before < sizeof directory ||
        memcmp(name - (sizeof directory - 1), directory, sizeof directory - 1) != 0)
        return NULL;
    const int settings = (int)(before - strlen("bin/"));
    if (asprintf(&words, "%.*s%s.words", settings, path, name) < 0)
        return NULL;
    if (asprintf(&end, "%.*s" RUN_FOLDER_ENDED, settings, path) < 0)
        end = NULL;
    *ended = end && access(end, F_OK) == 0;
    free(end);
    char *text = regular_file_bytes(words, WORDS_BYTES_MOST, &bytes);
    free(words);
    if (text)
        text[bytes] = '\0';
    return text;
}

/* The word of LINE, if this process is to have it. */
static char *word_of(char *line)
{
    char *space = *line == '-' ? NULL : strchr(line, ' ');
    if (!space)
        return line;
    *space = '\0';
    const char *value = getenv(line); // NOLINT(concurrency-mt-unsafe): there is one thread
    return value && strstr(value, space + 1) ? NULL : space + 1;
}

static char *next_line(char **text)
{
    char *line = strsep(text, "\n");
    return line && *line ? line : NULL;
}

void stand_in_become(char **words)
{
    const char *path = (const char *)getauxval(AT_EXECFN); // NOLINT(performance-no-int-to-ptr)
    bool ended = false;
    char *lines = path ? lines_of(path, &ended) : NULL, *rest = lines;
    char *real = lines ? next_line(&rest) : NULL;
    const char *written = real ? next_line(&rest) : NULL;
    size_t count = 0, own = 0;
    if (!written)
        return;
    while (words[count])
        count++;
    char **all = calloc(count + LINES_MOST + 2, sizeof *all);
    if (!all)
        _exit(EXIT_NOT_STARTED);
    all[own++] = count ? words[0] : real;
    if (!ended && access(written, W_OK | X_OK) == 0)
        for (char *line, *word; own <= LINES_MOST && (line = next_line(&rest));)
            if ((word = word_of(line)))
                all[own++] = word;
    for (size_t i = 1; i < count; i++)
        all[own++] = words[i];
    execv(real, all);
    _exit(EXIT_NOT_STARTED);
}
