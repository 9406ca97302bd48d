/* See wrapper.h.  Their options are those of coreutils, util-linux, sudo, doas, GNU time, numactl,
 * tini, dumb-init, xvfb-run, gosu, su-exec, s6 and runit.  su has a shell run its command, and so
 * has runuser without -u: these are no wrappers; but their user is known.  With -l they begin with
 * an environment of their own. */
#include "injector/run/program/wrapper.h"

#include <string.h>

enum { LONG_MOST = 16, WRAPPERS_MOST = 16 };

/* What an option says of the program's start. */
enum start_option { START_USER, START_GROUP, START_DIRECTORY, START_ROOT, START_OPTIONS };

struct option_name {
    char letter;      /* or 0 */
    const char *word; /* or several, with '|' between them */
};

struct wrapper {
    const char *name;
    const char *with_value;           /* short options that take one */
    const char *long_ones[LONG_MOST]; /* the long ones, which may have it in the next word */
    const char *with_rest;            /* short options whose value, if any, is in the same word */
    unsigned operands;                /* words of its own in front of the command */
    bool names_root, names_user;      /* so does the first of them; the user as USER[:GROUP] */
    bool assigns;                     /* and NAME=VALUE */
    struct option_name start[START_OPTIONS];
    const char *user;       /* without an option for it; or NULL */
    const char *groups_too; /* the option by which the user has all groups; NULL: it always has */
    const char *own_users;  /* short options for other users than those here; or NULL */
};

/* clang-format off */
static const struct wrapper wrappers[] = {
    {.name = "env", .with_value = "uC", .long_ones = {"unset", "chdir"}, .assigns = true,
     .start[START_DIRECTORY] = {'C', "chdir"}},
    {.name = "sudo", .with_value = "ugpCDhrtTUR", .assigns = true,
     .long_ones = {"user", "group", "prompt", "close-from", "chdir", "host", "role", "type",
                   "command-timeout", "other-user", "chroot"},
     .start = {{'u', "user"}, {'g', "group"}, {'D', "chdir"}, {'R', "chroot"}}, .user = "root"},
    {.name = "nice", .with_value = "n", .long_ones = {"adjustment"}},
    {.name = "nohup", .with_value = ""},
    {.name = "setsid", .with_value = ""},
    {.name = "timeout", .with_value = "ks", .long_ones = {"kill-after", "signal"}, .operands = 1},
    {.name = "stdbuf", .with_value = "ioe", .long_ones = {"input", "output", "error"}},
    {.name = "ionice", .with_value = "cn", .long_ones = {"class", "classdata"}},
    {.name = "taskset", .with_value = "", .operands = 1},
    {.name = "chrt", .with_value = "TPD", .operands = 1,
     .long_ones = {"sched-runtime", "sched-period", "sched-deadline"}},
    {.name = "time", .with_value = "fo", .long_ones = {"format", "output"}},
    {.name = "numactl", .with_value = "imNCpPw",
     .long_ones = {"interleave", "membind", "cpunodebind", "physcpubind", "preferred",
                   "preferred-many", "weighted-interleave"}},
    {.name = "setarch", .with_value = "", .long_ones = {"show"}},
    {.name = "linux32", .with_value = "", .long_ones = {"show"}},
    {.name = "linux64", .with_value = "", .long_ones = {"show"}},
    {.name = "i386", .with_value = "", .long_ones = {"show"}},
    {.name = "x86_64", .with_value = "", .long_ones = {"show"}},
    {.name = "uname26", .with_value = "", .long_ones = {"show"}},
    {.name = "unshare", .with_value = "RwSGl",
     .long_ones = {"root", "wd", "setuid", "setgid", "propagation", "setgroups", "map-user",
                   "map-group", "map-users", "map-groups", "monotonic", "boottime"},
     .start = {{'S', "setuid"}, {'G', "setgid"}, {'w', "wd"}, {'R', "root"}}, .groups_too = "",
     .own_users = "Urc"},
    {.name = "nsenter", .with_value = "tSG", .with_rest = "muinpCTrwW",
     .long_ones = {"target", "setuid", "setgid"},
     .start = {{'S', "setuid"}, {'G', "setgid"}}, .groups_too = "", .own_users = "Ua"},
    {.name = "chroot", .with_value = "", .long_ones = {"userspec", "groups"}, .operands = 1,
     .names_root = true, .start[START_USER] = {0, "userspec"}},
    {.name = "gosu", .with_value = "", .operands = 1, .names_user = true},
    {.name = "su-exec", .with_value = "", .operands = 1, .names_user = true},
    {.name = "setuidgid", .with_value = "", .operands = 1, .names_user = true},
    {.name = "s6-setuidgid", .with_value = "", .operands = 1, .names_user = true},
    {.name = "chpst", .with_value = "uUbe/nlLmdopfcrt",
     .start = {[START_USER] = {'u', ""}, [START_ROOT] = {'/', ""}}, .groups_too = ""},
    {.name = "runuser", .with_value = "ugGwcsT",
     .long_ones = {"user", "group", "supp-group", "whitelist-environment", "command",
                   "session-command", "shell"},
     .start = {{'u', "user"}, {'g', "group"}}},
    {.name = "su", .with_value = "gGwcsT",
     .long_ones = {"group", "supp-group", "whitelist-environment", "command", "session-command",
                   "shell"},
     .start[START_GROUP] = {'g', "group"}},
    {.name = "setpriv", .with_value = "",
     .long_ones = {"reuid", "ruid", "euid", "regid", "rgid", "egid", "groups", "ambient-caps",
                   "inh-caps", "bounding-set", "securebits", "pdeathsig", "selinux-label",
                   "apparmor-profile"},
     .start = {{0, "reuid|euid"}, {0, "regid|egid"}}, .groups_too = "--init-groups"},
    {.name = "doas", .with_value = "uC", .start[START_USER] = {'u', ""}, .user = "root"},
    {.name = "tini", .with_value = "pe"},
    {.name = "dumb-init", .with_value = "r", .long_ones = {"rewrite"}},
    {.name = "prlimit", .with_value = ""},
    {.name = "choom", .with_value = "n", .long_ones = {"adjust"}},
    {.name = "xvfb-run", .with_value = "efnpsw",
     .long_ones = {"error-file", "auth-file", "server-num", "xauth-protocol", "server-args",
                   "wait"}},
    {0}};
/* clang-format on */

static const struct wrapper *wrapper_of(const char *word)
{
    const char *slash = strrchr(word, '/');
    const struct wrapper *wrapper = wrappers;
    while (wrapper->name && strcmp(wrapper->name, slash ? slash + 1 : word))
        wrapper++;
    return wrapper->name ? wrapper : NULL;
}

static bool is_named(const struct wrapper *wrapper, const char *name)
{
    return strcmp(wrapper->name, name) == 0;
}

/* Whether OPTION, "--name" or "--name=value", has its value in the next word. */
static bool long_takes_next(const struct wrapper *wrapper, const char *option)
{
    for (size_t i = 0; i < LONG_MOST && wrapper->long_ones[i]; i++)
        if (strcmp(option + 2, wrapper->long_ones[i]) == 0)
            return true;
    return false;
}

/* What the options "-abcVALUE" or "-abc" have as a value: the first that takes one ends them.
 * *LETTER is that one; 0: none takes one. */
static const char *short_value(const struct wrapper *wrapper, const char *options, char *letter)
{
    for (const char *at = options + 1; *at; at++) {
        if (wrapper->with_rest && strchr(wrapper->with_rest, *at))
            break;
        if (strchr(wrapper->with_value, *at)) {
            *letter = *at;
            return at + 1;
        }
    }
    *letter = '\0';
    return NULL;
}

static bool is_assignment(const char *word)
{
    const char *equal = strchr(word, '=');
    return equal && equal != word;
}

/* Whether WORD is one that env splits into words itself. */
static bool is_split(const struct wrapper *wrapper, const char *word)
{
    if (!is_named(wrapper, "env"))
        return false;
    if (strncmp(word, "--", 2) == 0)
        return strncmp(word, "--split", 7) == 0;
    return word[1 + strcspn(word + 1, "SuC")] == 'S'; /* also -iS, -vS */
}

/* setarch's first word is the machine, unless it is an option; its other names are machines. */
static bool has_machine(const struct wrapper *wrapper, char *const *words)
{
    return is_named(wrapper, "setarch") && words[1] && words[1][0] != '-';
}

/* Whether WRAPPER runs a shell, and not the words behind its own. */
static bool is_shell(const struct wrapper *wrapper, const struct wrapped_command *command)
{
    return is_named(wrapper, "su") || (is_named(wrapper, "runuser") && !command->user);
}

/* Whether NAME, of BYTES, is one of NAMES. */
static bool is_one(const char *names, const char *name, size_t bytes)
{
    for (; bytes && *names; names += *names == '|') {
        const size_t length = strcspn(names, "|");
        if (length == bytes && memcmp(names, name, bytes) == 0)
            return true;
        names += length;
    }
    return false;
}

/* Whether OPTION of WRAPPER makes users, or goes to some, whose numbers are others than here. */
static bool has_own_users(const struct wrapper *wrapper, const char *option)
{
    if (!wrapper->own_users)
        return false;
    if (option[1] == '-')
        return strncmp(option, "--user", 6) == 0 || strncmp(option, "--map-", 6) == 0 ||
               strcmp(option, "--all") == 0;
    char letter;
    const char *value = short_value(wrapper, option, &letter);
    const size_t end = value ? (size_t)(value - option) : strlen(option);
    const size_t at = strcspn(option, wrapper->own_users);
    return at < end && !(wrapper->with_rest && strcspn(option, wrapper->with_rest) < at);
}

static void take_value(const struct wrapper *wrapper, const char *value, const char *name,
                       char letter, struct wrapped_command *command)
{
    const char **const taken[START_OPTIONS] = {&command->user, &command->group, &command->directory,
                                               &command->root};
    const size_t bytes = strcspn(name, "=");
    for (int i = 0; i < START_OPTIONS; i++) {
        const struct option_name *option = &wrapper->start[i];
        if (value && option->word &&
            (letter ? letter == option->letter : is_one(option->word, name, bytes)))
            *taken[i] = value;
    }
}

/* Take the option that is the first of WORDS.  Returns how many of them it is. */
static size_t take_option(const struct wrapper *wrapper, char *const *words,
                          struct wrapped_command *command)
{
    const char *word = words[0];
    char letter = '\0';
    const char *value = word[1] == '-' ? strchr(word, '=') : short_value(wrapper, word, &letter);
    bool takes_next = word[1] == '-' ? long_takes_next(wrapper, word) : value && !*value;
    if (word[1] == '-' && value)
        value++;
    if (takes_next)
        value = words[1];
    take_value(wrapper, value, word[1] == '-' ? word + 2 : "", letter, command);
    command->with_groups =
        command->with_groups || (wrapper->groups_too && strcmp(word, wrapper->groups_too) == 0);
    return takes_next && words[1] ? 2 : 1;
}

/* The user of su and its like, WORDS behind its options; with -l nothing of this process's
 * environment and directory is left. */
static void take_shell_user(const struct wrapper *wrapper, char *const *words,
                            struct wrapped_command *command)
{
    for (size_t i = 1; words[i]; i++)
        if (strcmp(words[i], "-") == 0 || strcmp(words[i], "-l") == 0 ||
            strcmp(words[i], "--login") == 0) {
            command->user = NULL;
            return;
        }
    for (size_t i = 1; words[i];) {
        if (words[i][0] != '-') {
            command->user = words[i];
            return;
        }
        i += take_option(wrapper, words + i, command);
    }
}

/* The number of WORDS that are those of WRAPPER, which is the first.  COMMAND's assignments are
 * among them, if it has any.  The result is 0 if they can't be told apart. */
static size_t own_words(const struct wrapper *wrapper, char *const *words,
                        struct wrapped_command *command)
{
    size_t at = has_machine(wrapper, words) ? 2 : 1;
    const char *user_before = command->user, *root_before = command->root,
               *directory_before = command->directory;
    const bool groups_before = command->with_groups;
    bool own_users = false;
    command->user = NULL;
    command->with_groups = !wrapper->groups_too;
    while (words[at] && words[at][0] == '-' && strcmp(words[at], "--") && strcmp(words[at], "-")) {
        if (is_split(wrapper, words[at]))
            return 0;
        own_users |= has_own_users(wrapper, words[at]);
        at += take_option(wrapper, words + at, command);
    }
    if (own_users)
        command->user = NULL;
    if (is_shell(wrapper, command)) {
        command->user = "root";
        take_shell_user(wrapper, words, command);
        return 0;
    }
    at += words[at] && (strcmp(words[at], "--") == 0 || strcmp(words[at], "-") == 0);
    if (!command->user)
        command->user = wrapper->names_user ? words[at] : wrapper->user;
    if (!command->user) {
        command->user = user_before;
        command->with_groups = groups_before;
    }
    const size_t first = at;
    while (wrapper->assigns && words[at] && is_assignment(words[at]))
        at++;
    const size_t behind = at;
    if (wrapper->names_root)
        command->root = words[at];
    if (command->root != root_before && command->directory == directory_before)
        command->directory = "/";
    for (unsigned i = 0; i < wrapper->operands && words[at]; i++)
        at++;
    if (words[at] && wrapper->assigns) {
        command->assignments = command->at + first;
        command->behind_assignments = command->at + behind;
    }
    return words[at] ? at : 0;
}

struct wrapped_command wrapped_command_of(char *const *words)
{
    struct wrapped_command command = {0};
    for (unsigned i = 0; i < WRAPPERS_MOST; i++) {
        const struct wrapper *wrapper = wrapper_of(words[command.at]);
        size_t count = wrapper ? own_words(wrapper, words + command.at, &command) : 0;
        if (!count)
            break;
        command.at += count;
    }
    return command;
}
