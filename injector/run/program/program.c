/* See program.h. */
#include "injector/run/program/program.h"

#include "injector/files/regular_file.h"
#include "injector/text/file_name.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_LINE_BYTES = 256, NAME_BYTES = 256 };

static bool is_program(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

/* The program NAME in the directory that is the BYTES at PLACE, below ROOT; to be freed, or NULL.
 */
static char *find_in(const char *root, const char *place, size_t bytes, const char *name)
{
    char *path;
    if (asprintf(&path, "%s%.*s%s%s", root, (int)bytes, place, bytes ? "/" : "", name) < 0)
        return NULL;
    if (is_program(path))
        return path;
    free(path);
    return NULL;
}

char *program_in_places(const char *places, const char *name, const char *root, size_t *at)
{
    for (const char *place = places, *end; place; place = *end ? end + 1 : NULL) {
        end = strchrnul(place, ':');
        if (at && *place != '/')
            continue;
        char *path = find_in(root ? root : "", place, (size_t)(end - place), name);
        if (path && at)
            *at = (size_t)(place - places);
        if (path)
            return path;
    }
    return NULL;
}

/* The file that NAME leads to, to be freed; NULL: there is none. */
static char *find_in_path(const char *name)
{
    const char *places = getenv("PATH");
    if (strchr(name, '/'))
        return is_program(name) ? strdup(name) : NULL;
    return program_in_places(places ? places : "/bin:/usr/bin", name, NULL, NULL);
}

/* ---- What it is ---- */

static const struct runtime *by_link(const char *path)
{
    char *target = realpath(path, NULL);
    const struct runtime *runtime = target ? runtime_of_program(file_name_of(target)) : NULL;
    free(target);
    return runtime;
}

/* The word of a script's first LINE, behind "#!", that is the interpreter: behind env's own words
 * where it is env. */
static char *interpreter_in(char *line)
{
    static const char spaces[] = " \t";
    char *rest = NULL;
    char *word = strtok_r(line, spaces, &rest);
    if (word && strcmp(file_name_of(word), "env") == 0)
        do
            word = strtok_r(NULL, spaces, &rest);
        while (word && (*word == '-' || strchr(word, '=')));
    return word;
}

static const struct runtime *by_first_line(struct program *program, int fd)
{
    char line[FIRST_LINE_BYTES];
    ssize_t bytes = pread(fd, line, sizeof line - 1, 0);
    if (bytes < 2 || line[0] != '#' || line[1] != '!')
        return NULL;
    line[bytes] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
    char *word = interpreter_in(line + 2);
    if (!word)
        return NULL;
    program->interpreter = strdup(word);
    const struct runtime *runtime = runtime_of_program(file_name_of(word));
    return runtime ? runtime : by_link(word);
}

/* The runtime that a NEEDED entry of the section DYNAMIC of ELF names. */
static const struct runtime *by_entries(Elf *elf, Elf_Scn *dynamic, const GElf_Shdr *header)
{
    Elf_Data *data = elf_getdata(dynamic, NULL);
    GElf_Dyn entry;
    for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++) {
        if (entry.d_tag != DT_NEEDED)
            continue;
        const char *name = elf_strptr(elf, header->sh_link, entry.d_un.d_val);
        const struct runtime *runtime = name ? runtime_of_library(name) : NULL;
        if (runtime)
            return runtime;
    }
    return NULL;
}

static const struct runtime *by_libraries(int fd)
{
    const struct runtime *runtime = NULL;
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    while (elf && !runtime && (section = elf_nextscn(elf, section)))
        if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNAMIC)
            runtime = by_entries(elf, section, &header);
    elf_end(elf);
    return runtime;
}

static const struct runtime *what_it_is(struct program *program, const char *name)
{
    struct stat status;
    const struct runtime *runtime = runtime_of_program(file_name_of(name));
    if (!runtime)
        runtime = by_link(program->path);
    int fd = regular_file_open(program->path, 0, &status);
    if (fd < 0)
        return runtime;
    const struct runtime *of_script = by_first_line(program, fd);
    if (!runtime)
        runtime = of_script;
    if (!runtime) {
        runtime = by_libraries(fd);
        program->embeds_runtime = runtime;
    }
    close(fd);
    return runtime;
}

int program_find(struct program *program, const char *name, struct findings *findings)
{
    *program = (struct program){0};
    program->path = find_in_path(name);
    if (!program->path && strchr(name, '/') && access(name, F_OK) == 0)
        return report_failure(findings, "%s: is no program that can be run: %s", name,
                              access(name, X_OK) ? strerror(errno) : "it is a directory");
    if (!program->path)
        return report_failure(findings, "%s: there is no such command", name);
    program->runtime = what_it_is(program, name);
    return 0;
}

/* Whether the word of BYTES at WORD names such a runtime, or a script of Python's. */
static bool names_copier(const char *word, size_t bytes)
{
    char name[NAME_BYTES];
    if (bytes >= sizeof name)
        return false;
    memcpy(name, word, bytes);
    name[bytes] = '\0';
    const struct runtime *runtime = runtime_of_program(file_name_of(name));
    return (runtime && runtime->copies_stacks) ||
           (bytes > 3 && strcmp(name + bytes - 3, ".py") == 0);
}

/* Whether any of WORDS has such a name in it.  WORDS may be a shell's "-c TEXT", a tool that runs
 * others ("uv run", "strace"), or an assignment of make's.
 */
static bool name_copier(char *const *words)
{
    static const char between[] = " \t\n;|&()<>{}'\"`$=";
    for (; *words; words++)
        for (const char *at = *words; *at; at += strspn(at, between)) {
            size_t bytes = strcspn(at, between);
            if (names_copier(at, bytes))
                return true;
            at += bytes;
        }
    return false;
}

static void find_wrapped(struct program *program, char *const *words)
{
    struct program inner;
    struct findings unheard = {.quiet = true}; /* the wrapper says itself what it can't run */
    const struct wrapped_command command = wrapped_command_of(words);
    program->command = command;
    program->command.at = 0;
    if (!command.at)
        return;
    if (program_find(&inner, words[command.at], &unheard) == 0) {
        program->runtime = inner.runtime;
        program->embeds_runtime = inner.embeds_runtime;
        free(program->interpreter);
        program->interpreter = inner.interpreter;
        program->wrapped = inner.path;
        program->command = command;
        inner.interpreter = inner.path = NULL;
    } else if (command.root) { /* there, it may be another file, or the only one */
        program->runtime = runtime_of_program(file_name_of(words[command.at]));
        program->embeds_runtime = false;
        program->command = program->runtime ? command : program->command;
    }
    program_free(&inner);
    findings_free(&unheard);
}

int program_find_command(struct program *program, char *const *words, struct findings *findings)
{
    if (program_find(program, words[0], findings))
        return -1;
    find_wrapped(program, words);
    program->copies_stacks = !program->runtime && name_copier(words);
    return 0;
}

/* ---- A process ---- */

bool program_has_mapped(pid_t pid, bool (*is_it)(const char *path, void *context), void *context)
{
    char path[64], *line = NULL;
    size_t room = 0;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    while (maps && !found && getline(&line, &room, maps) > 0) {
        const char *file = strchr(line, '/');
        line[strcspn(line, "\n")] = '\0';
        found = file && is_it(file, context);
    }
    free(line);
    if (maps)
        fclose(maps);
    return found;
}

static bool is_of_runtime(const char *path, void *context)
{
    const struct runtime **runtime = context;
    *runtime = runtime_of_library(file_name_of(path));
    return *runtime;
}

const struct runtime *program_of_process(pid_t pid)
{
    static const char gone[] = " (deleted)";
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
    ssize_t bytes = readlink(link, path, sizeof path - 1);
    path[bytes > 0 ? bytes : 0] = '\0';
    size_t end = strlen(path);
    if (end > sizeof gone && strcmp(path + end - (sizeof gone - 1), gone) == 0)
        path[end - (sizeof gone - 1)] = '\0';
    const struct runtime *runtime = runtime_of_program(file_name_of(path));
    if (!runtime)
        program_has_mapped(pid, is_of_runtime, &runtime);
    return runtime;
}

const char *program_called(const struct program *program, const struct runtime *runtime)
{
    const char *const paths[] = {program->interpreter, program->wrapped, program->path};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (paths[i] &&
            (runtime_of_program(file_name_of(paths[i])) == runtime || by_link(paths[i]) == runtime))
            return paths[i];
    return NULL;
}

void program_free(struct program *program)
{
    free(program->wrapped);
    free(program->path);
    free(program->interpreter);
}
