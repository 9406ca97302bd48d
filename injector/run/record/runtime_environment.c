/* See runtime_environment.h. */
#include "injector/run/record/runtime_environment.h"

#include "injector/run/program/agent_file.h"
#include "injector/text/file_name.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* ---- Variables ---- */

static char **find_variable(const struct runtime_environment *environment, const char *name)
{
    size_t bytes = strlen(name);
    for (size_t i = 0; i < environment->variable_count; i++)
        if (strncmp(environment->variables[i], name, bytes) == 0 &&
            environment->variables[i][bytes] == '=')
            return &environment->variables[i];
    return NULL;
}

const char *runtime_environment_value(const struct runtime_environment *environment,
                                      const char *name)
{
    char **variable = find_variable(environment, name);
    return variable ? *variable + strlen(name) + 1 : NULL;
}

/* TEXT, "NAME=VALUE" and owned from now on, in place of the variable of that NAME. */
static void set_variable(struct runtime_environment *environment, const char *name, char *text)
{
    char **variable = find_variable(environment, name);
    if (variable) {
        free(*variable);
        *variable = text;
        return;
    }
    char **variables =
        realloc(environment->variables, (environment->variable_count + 2) * sizeof *variables);
    if (!variables) {
        free(text);
        environment->no_memory = true;
        return;
    }
    environment->variables = variables;
    variables[environment->variable_count++] = text;
    variables[environment->variable_count] = NULL;
}

static void set(struct runtime_environment *environment, const char *name, const char *value)
{
    char *text;
    if (asprintf(&text, "%s=%s", name, value) < 0)
        environment->no_memory = true;
    else
        set_variable(environment, name, text);
}

/* ---- Switches ---- */

/* How runtimes take the words of their variables apart; others split at each separator. */
static const struct variable_rule {
    const char *variable;
    const char *quotes; /* between two of which no separator ends a word */
    bool escapes;       /* by a backslash in them */
} variable_rules[] = {
    {"NODE_OPTIONS", "\"", true},        /* node's documentation of NODE_OPTIONS */
    {"JAVA_TOOL_OPTIONS", "'\"", false}, /* the JVM tool interface's of JAVA_TOOL_OPTIONS */
    {"MONO_ENV_OPTIONS", "'\"", true},   /* mono(1) */
    {"ERL_FLAGS", "'\"", true},          /* erl(1): as a shell does */
};

/* TEXT with the folder's places in it, and OWN where '*' stands; to be freed.  An empty
 * PHP_INI_SCAN_DIR means no directory, and an empty part of it PHP's own: so where OWN is empty,
 * the separator behind it goes, and where it is NULL, the part is empty. */
static char *written_out(const struct runtime_environment *environment, const char *text,
                         const char *own)
{
    char *result = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&result, &bytes);
    if (!stream)
        return NULL;
    for (; *text; text++)
        if (text[0] == '%' && (text[1] == 'd' || text[1] == 'c')) {
            const struct run_folder *folder = environment->folder;
            fputs(run_folder_seen(folder, text[1] == 'd' ? folder->dumps : folder->settings),
                  stream);
            text++;
        } else if (text[0] == '%' && text[1] == 'a') {
            const bool quoted = strchr(environment->agent, ' ') != NULL;
            fprintf(stream, quoted ? "'%s'" : "%s", environment->agent);
            text++;
        } else if (*text == '*') {
            fputs(own ? own : "", stream);
            text += own && !*own;
        } else {
            putc(*text, stream);
        }
    if (ferror(stream) | fclose(stream)) {
        free(result);
        return NULL;
    }
    return result;
}

/* The end of the word that begins at AT. */
static const char *word_end(const char *at, const struct runtime_switch *one)
{
    const struct variable_rule *rule = NULL;
    for (size_t i = 0; i < sizeof variable_rules / sizeof variable_rules[0]; i++)
        if (strcmp(variable_rules[i].variable, one->variable) == 0)
            rule = &variable_rules[i];
    char quote = '\0';
    for (; *at && (quote || *at != one->separator); at++) {
        if (quote && rule->escapes && at[0] == '\\' && at[1])
            at++;
        else if (*at == quote)
            quote = '\0';
        else if (!quote && rule && strchr(rule->quotes, *at))
            quote = *at;
    }
    return at;
}

/* Whether OWN, the value of the variable of ONE, has WORD. */
static bool has_word(const char *own, const char *word, const struct runtime_switch *one)
{
    const size_t bytes = strlen(word);
    while (*own) {
        const char *end = word_end(own, one);
        if ((size_t)(end - own) == bytes && memcmp(own, word, bytes) == 0)
            return true;
        own = end + (*end == one->separator);
    }
    return false;
}

/* TEXT, owned from now on, as word number AT. */
static void add_word(struct runtime_environment *environment, size_t at, char *text)
{
    size_t count = 0;
    while (environment->words[count])
        count++;
    char **words = realloc(environment->words, (count + 2) * sizeof *words);
    environment->no_memory = environment->no_memory || !words;
    if (!words) {
        free(text);
        return;
    }
    memmove(words + at + 1, words + at, (count + 1 - at) * sizeof *words);
    words[at] = text;
    environment->words = words;
}

/* Where the value of VARIABLE begins, if it is the last that was told; else NULL. */
static char *told_value(const struct runtime_environment *environment, const char *variable)
{
    char *last = environment->told ? strrchr(environment->told, '=') : NULL;
    const size_t bytes = variable ? strlen(variable) : 0;
    bool same = bytes && last && (size_t)(last - environment->told) >= bytes &&
                memcmp(last - bytes, variable, bytes) == 0;
    return same ? last + 1 : NULL;
}

/* The words of one variable stand together, in quotes, as a shell takes them. */
static void tell(struct runtime_environment *environment, const char *variable, const char *text)
{
    char *told, *value = told_value(environment, variable);
    const char *before = environment->told ? environment->told : "";
    int bytes;
    if (value && *value == '\'') {
        bytes = asprintf(&told, "%.*s %s'", (int)strlen(before) - 1, before, text);
    } else if (value) {
        bytes = asprintf(&told, "%.*s'%s %s'", (int)(value - before), before, value, text);
    } else {
        const char *quote = variable && strchr(text, ' ') && !strchr(text, '\'') ? "'" : "";
        bytes = asprintf(&told, "%s%s%s%s%s%s%s", before, *before ? " " : "",
                         variable ? variable : "", variable ? "=" : "", quote, text, quote);
    }
    if (bytes < 0) {
        environment->no_memory = true;
        return;
    }
    free(environment->told);
    environment->told = told;
}

/* Whether VARIABLE, "NAME=VALUE", is as this process has it. */
static bool is_as_it_was(const char *variable)
{
    for (char **own = environ; *own; own++)
        if (strcmp(*own, variable) == 0)
            return true;
    return false;
}

/* The value that VARIABLE has so far: the command's own words come last. */
static const char *own_value(const struct runtime_environment *environment, const char *variable)
{
    const struct wrapped_command *command = &environment->command;
    const char *value = runtime_environment_value(environment, variable);
    size_t bytes = strlen(variable);
    if (value && !is_as_it_was(value - bytes - 1))
        return value; /* with the user's in it */
    for (size_t i = command->assignments; i < command->behind_assignments; i++)
        if (strncmp(environment->words[i], variable, bytes) == 0 &&
            environment->words[i][bytes] == '=')
            value = environment->words[i] + bytes + 1;
    return value;
}

/* Whether a word of the command's is the option in TEXT, "-NAME=VALUE", with one dash or two, and
 * with any value. */
static bool sets_option(const struct runtime_environment *environment, const char *text)
{
    const char *name = text + strspn(text, "-");
    size_t bytes = strcspn(name, "=");
    for (char *const *word = environment->words + environment->command.at + 1; *word; word++) {
        const char *own = *word + strspn(*word, "-");
        if (own != *word && strncmp(own, name, bytes) == 0 && (!own[bytes] || own[bytes] == '='))
            return true;
    }
    return false;
}

/* TEXT, an option that is owned from now on, behind the program's name, unless the user gives it;
 * TELLS: to a person, too. */
static void add_argument(struct runtime_environment *environment, char *text, bool tells)
{
    if (sets_option(environment, text)) {
        free(text);
        return;
    }
    if (tells)
        tell(environment, NULL, text);
    add_word(environment, environment->command.at + 1, text);
}

static bool is_joined(const struct runtime_switch *one)
{
    return one->kind == SWITCH_APPEND || one->kind == SWITCH_PREPEND;
}

/* OWN and TEXT, each in its place; to be freed. */
static char *join(struct runtime_environment *environment, const struct runtime_switch *one,
                  const char *own, const char *text)
{
    char *joined;
    size_t bytes = strlen(own),
           front = one->kind == SWITCH_APPEND ? bytes : environment->front_bytes;
    const bool ends = front >= bytes;
    const char separator[2] = {one->separator, '\0'};
    if (one->kind == SWITCH_PREPEND)
        environment->front_bytes += strlen(text) + 1;
    return asprintf(&joined, "%.*s%s%s%s%s", (int)front, own, ends && bytes ? separator : "", text,
                    ends ? "" : separator, ends ? "" : own + front) < 0
               ? NULL
               : joined;
}

static void apply(struct runtime_environment *environment, const struct runtime_switch *one)
{
    const char *own = one->variable ? own_value(environment, one->variable) : NULL;
    char *text = written_out(environment, one->text, own);
    char *joined = NULL;
    if (!text) {
        environment->no_memory = true;
        return;
    }
    if (one->kind == SWITCH_ARGUMENT) {
        add_argument(environment, text, true);
        return;
    }
    tell(environment, one->variable, text);
    if (is_joined(one) && own && has_word(own, text, one)) {
        free(text);
        return;
    }
    joined = is_joined(one) ? join(environment, one, own ? own : "", text) : strdup(text);
    if (joined)
        set(environment, one->variable, joined);
    else
        environment->no_memory = true;
    free(joined);
    free(text);
}

/* Whether ONE can be set: a runtime that is told to load what it can't load does not start. */
static bool is_for_this(const struct runtime_environment *environment,
                        const struct runtime_switch *one)
{
    return (!one->only_stacks || environment->copies_stacks) &&
           (environment->agent || !strstr(one->text, "%a"));
}

int runtime_environment_add(struct runtime_environment *environment, const struct runtime *runtime)
{
    const struct wrapped_command *command = &environment->command;
    free(environment->agent);
    environment->agent = runtime->agent ? agent_file_find(runtime->agent, environment->folder->root,
                                                          command->user || geteuid() == 0)
                                        : NULL;
    for (size_t i = 0; i < RUNTIME_SWITCHES_MOST && runtime->switches[i].kind; i++)
        if (is_for_this(environment, &runtime->switches[i]))
            apply(environment, &runtime->switches[i]);
    if (environment->tells_deopts && runtime->deopt_words[0] && !runtime->alone_words[0]) {
        struct runtime_switch deopts = runtime->switches[0];
        deopts.text = runtime->deopt_words[0];
        apply(environment, &deopts);
    }
    return environment->no_memory ? -1 : 0;
}

char *runtime_environment_text(const struct runtime_environment *environment, const char *text)
{
    return written_out(environment, text, "");
}

int runtime_environment_set(struct runtime_environment *environment, const char *name,
                            const char *value)
{
    set(environment, name, value);
    return environment->no_memory ? -1 : 0;
}

const char *runtime_environment_found(const struct runtime_environment *environment,
                                      const char *name)
{
    const struct wrapped_command *command = &environment->command;
    const char *value = own_value(environment, name);
    const bool is_assigned = value != runtime_environment_value(environment, name);
    const char *wrapper =
        command->assignments ? environment->words[command->assignments - 1] : NULL;
    return !wrapper || is_assigned || strcmp(file_name_of(wrapper), "env") == 0 ? value : NULL;
}

int runtime_environment_argument(struct runtime_environment *environment, const char *text)
{
    char *word = runtime_environment_text(environment, text);
    if (word)
        add_argument(environment, word, false);
    return !word || environment->no_memory ? -1 : 0;
}

int runtime_environment_wrap(struct runtime_environment *environment)
{
    const bool wraps = environment->command.behind_assignments != 0;
    for (size_t i = 0; wraps && i < environment->variable_count; i++) {
        if (is_as_it_was(environment->variables[i]))
            continue;
        char *word = strdup(environment->variables[i]);
        if (!word)
            return -1;
        add_word(environment, environment->command.behind_assignments, word);
    }
    return environment->no_memory ? -1 : 0;
}

/* ---- Beginning and end ---- */

int runtime_environment_begin(struct runtime_environment *environment, char **words,
                              const struct run_folder *folder, bool copies_stacks)
{
    size_t count = 0, word_count = 0;
    while (environ[count])
        count++;
    while (words[word_count])
        word_count++;
    *environment = (struct runtime_environment){
        .command = wrapped_command_of(words), .folder = folder, .copies_stacks = copies_stacks};
    environment->variables = calloc(count + 1, sizeof *environment->variables);
    environment->words = calloc(word_count + 1, sizeof *environment->words);
    if (!environment->variables || !environment->words)
        return -1;
    for (size_t i = 0; i < word_count; i++)
        if (!(environment->words[i] = strdup(words[i])))
            return -1;
    for (; environment->variable_count < count; environment->variable_count++)
        if (!(environment->variables[environment->variable_count] =
                  strdup(environ[environment->variable_count])))
            return -1;
    static const struct runtime_switch any[] = {
        {SWITCH_SET, "JITDUMPDIR", "%d", 0, false, false},
        {SWITCH_APPEND, "PERFJIT", "dump", ',', false, false}};
    apply(environment, &any[0]);
    apply(environment, &any[1]);
    free(environment->told); /* it is reported for each run */
    environment->told = NULL;
    return environment->no_memory ? -1 : 0;
}

void runtime_environment_free(struct runtime_environment *environment)
{
    for (size_t i = 0; i < environment->variable_count; i++)
        free(environment->variables[i]);
    for (size_t i = 0; environment->words && environment->words[i]; i++)
        free(environment->words[i]);
    free(environment->variables);
    free(environment->words);
    free(environment->told);
    free(environment->agent);
    *environment = (struct runtime_environment){0};
}
