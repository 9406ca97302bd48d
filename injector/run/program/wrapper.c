/* See wrapper.h.  Their options are those of coreutils, util-linux, sudo, doas, GNU time, numactl,
 * tini and xvfb-run.  Two commands are no wrappers, because a shell runs their command: su, and
 * runuser without -u. */
#include "injector/run/program/wrapper.h"

#include <stdbool.h>
#include <string.h>

enum { LONG_MOST = 12, WRAPPERS_MOST = 16 };

struct wrapper {
    const char *name;
    const char *with_value;           /* short options that take one */
    const char *long_ones[LONG_MOST]; /* the long ones, which may have it in the next word */
    unsigned operands;                /* words of its own in front of the command */
    bool assigns;                     /* and NAME=VALUE */
};

static const struct wrapper wrappers[] = {
    {"env", "uC", {"unset", "chdir"}, 0, true},
    {"sudo",
     "ugpCDhrtTUR",
     {"user", "group", "prompt", "close-from", "chdir", "host", "role", "type", "command-timeout",
      "other-user", "chroot"},
     0,
     true},
    {"nice", "n", {"adjustment"}, 0, false},
    {"nohup", "", {NULL}, 0, false},
    {"setsid", "", {NULL}, 0, false},
    {"timeout", "ks", {"kill-after", "signal"}, 1, false},
    {"stdbuf", "ioe", {"input", "output", "error"}, 0, false},
    {"ionice", "cn", {"class", "classdata"}, 0, false},
    {"taskset", "", {NULL}, 1, false},
    {"chrt", "TPD", {"sched-runtime", "sched-period", "sched-deadline"}, 1, false},
    {"time", "fo", {"format", "output"}, 0, false},
    {"numactl",
     "imNCpPw",
     {"interleave", "membind", "cpunodebind", "physcpubind", "preferred", "preferred-many",
      "weighted-interleave"},
     0,
     false},
    {"setarch", "", {"show"}, 0, false},
    {"linux32", "", {"show"}, 0, false},
    {"linux64", "", {"show"}, 0, false},
    {"i386", "", {"show"}, 0, false},
    {"x86_64", "", {"show"}, 0, false},
    {"uname26", "", {"show"}, 0, false},
    {"unshare",
     "RwSGl",
     {"root", "wd", "setuid", "setgid", "propagation", "setgroups", "map-user", "map-group",
      "map-users", "map-groups", "monotonic", "boottime"},
     0,
     false},
    {"chroot", "", {"userspec", "groups"}, 1, false},
    {"runuser", "ugGw", {"user", "group", "supp-group", "whitelist-environment"}, 0, false},
    {"doas", "uC", {NULL}, 0, false},
    {"tini", "pe", {NULL}, 0, false},
    {"xvfb-run",
     "efnpsw",
     {"error-file", "auth-file", "server-num", "xauth-protocol", "server-args", "wait"},
     0,
     false},
    {NULL, NULL, {NULL}, 0, false}};

static const struct wrapper *wrapper_of(const char *word)
{
    const char *slash = strrchr(word, '/');
    const struct wrapper *wrapper = wrappers;
    while (wrapper->name && strcmp(wrapper->name, slash ? slash + 1 : word))
        wrapper++;
    return wrapper->name ? wrapper : NULL;
}

/* Whether OPTION, "--name" or "--name=value", has its value in the next word. */
static bool long_takes_next(const struct wrapper *wrapper, const char *option)
{
    for (size_t i = 0; i < LONG_MOST && wrapper->long_ones[i]; i++)
        if (strcmp(option + 2, wrapper->long_ones[i]) == 0)
            return true;
    return false;
}

/* Whether OPTIONS, "-abcVALUE" or "-abc", have it there: the first that takes one ends them. */
static bool short_takes_next(const struct wrapper *wrapper, const char *options)
{
    for (const char *at = options + 1; *at; at++)
        if (strchr(wrapper->with_value, *at))
            return at[1] == '\0';
    return false;
}

static bool is_assignment(const char *word)
{
    const char *equal = strchr(word, '=');
    return equal && equal != word;
}

/* Whether WORD is one that env splits into words itself. */
static bool is_split(const struct wrapper *wrapper, const char *word)
{
    return strcmp(wrapper->name, "env") == 0 &&
           (strncmp(word, "-S", 2) == 0 || strncmp(word, "--split", 7) == 0);
}

/* setarch's first word is the machine, unless it is an option; its other names are machines. */
static bool has_machine(const struct wrapper *wrapper, char *const *words)
{
    return strcmp(wrapper->name, "setarch") == 0 && words[1] && words[1][0] != '-';
}

/* Whether WRAPPER runs a shell, and not the words behind its own. */
static bool is_shell(const struct wrapper *wrapper, bool names_user)
{
    return strcmp(wrapper->name, "runuser") == 0 && !names_user;
}

/* The number of WORDS that are those of WRAPPER, which is the first.  COMMAND's assignments are
 * among them, if it has any.  The result is 0 if they can't be told apart. */
static size_t own_words(const struct wrapper *wrapper, char *const *words,
                        struct wrapped_command *command)
{
    size_t at = has_machine(wrapper, words) ? 2 : 1;
    bool names_user = false;
    while (words[at] && words[at][0] == '-' && strcmp(words[at], "--")) {
        const char *word = words[at++];
        if (is_split(wrapper, word))
            return 0;
        names_user = names_user || strncmp(word, "-u", 2) == 0 || strncmp(word, "--u", 3) == 0;
        if (word[1] == '-' ? long_takes_next(wrapper, word) : short_takes_next(wrapper, word))
            at += words[at] != NULL;
    }
    if (is_shell(wrapper, names_user))
        return 0;
    at += words[at] && strcmp(words[at], "--") == 0;
    const size_t first = at;
    while (wrapper->assigns && words[at] && is_assignment(words[at]))
        at++;
    const size_t behind = at;
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
