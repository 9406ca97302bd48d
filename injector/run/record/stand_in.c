/* See stand_in.h. */
#include "injector/run/record/stand_in.h"

#include "injector/text/file_name.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The file NAME in the directories of PATH, below ROOT, that can be run; to be freed, or NULL. */
static char *find_program(const char *path, const char *name, const char *root)
{
    char *found;
    for (const char *end; path; path = *end ? end + 1 : NULL) {
        end = strchrnul(path, ':');
        const int bytes = (int)(end - path);
        if (*path != '/' || asprintf(&found, "%s%.*s/%s", root ? root : "", bytes, path, name) < 0)
            continue;
        if (access(found, X_OK) == 0)
            return found;
        free(found);
    }
    return NULL;
}

/* The script that calls REAL, to be freed.  NULL without memory, or for a path that a shell would
 * not take in quotes. */
static char *script_of(const struct runtime_environment *environment, const struct runtime *runtime,
                       const char *real)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = strchr(real, '\'') ? NULL : open_memstream(&text, &bytes);
    if (!stream)
        return NULL;
    fprintf(stream, "#!/bin/sh\nexec '%s'", real);
    for (size_t i = 0; i < RUNTIME_ALONE_MOST && runtime->alone_words[i]; i++) {
        char *word = runtime_environment_text(environment, runtime->alone_words[i]);
        fprintf(stream, " '%s'", word ? word : "");
        free(word);
    }
    fputs(" \"$@\"\n", stream);
    if (ferror(stream) | fclose(stream)) {
        free(text);
        return NULL;
    }
    return text;
}

/* Put the stand-in for NAME into the folder.  Returns 1 if it is there and can be run, else 0, or
 * -1 with the failure text set. */
static int put_program(const struct runtime_environment *environment, const struct runtime *runtime,
                       const char *name, struct findings *findings)
{
    const struct run_folder *folder = environment->folder;
    const char *path = runtime_environment_value(environment, "PATH");
    char *real = path ? find_program(path, name, folder->root) : NULL;
    char *script = real ? script_of(environment, runtime, run_folder_seen(folder, real)) : NULL;
    const int result = script ? run_folder_add_program(folder, name, script, findings) : 0;
    free(script);
    free(real);
    return result;
}

static int put_programs(struct runtime_environment *environment, const struct runtime *runtime,
                        struct findings *findings)
{
    bool any = false;
    for (size_t i = 0; i < RUNTIME_ALONE_MOST && runtime->alone_programs[i]; i++) {
        const int result = put_program(environment, runtime, runtime->alone_programs[i], findings);
        if (result < 0)
            return -1;
        any |= result > 0;
    }
    return any ? runtime_environment_set(environment, "PATH", "%c/bin:*") : 0;
}

int stand_in_add(struct runtime_environment *environment, const struct runtime *runtime,
                 struct findings *findings)
{
    const char *called = file_name_of(environment->words[environment->command.at]);
    bool is_it = false;
    if (!environment->folder->path)
        return 0;
    if (put_programs(environment, runtime, findings))
        return -1;
    for (size_t i = 0; i < RUNTIME_ALONE_MOST && runtime->alone_programs[i]; i++)
        is_it |= strcmp(called, runtime->alone_programs[i]) == 0;
    for (size_t i = RUNTIME_ALONE_MOST; is_it && i > 0; i--)
        if (runtime->alone_words[i - 1] &&
            runtime_environment_argument(environment, runtime->alone_words[i - 1]))
            return report_failure(findings, "out of memory");
    return 0;
}
