/* See command_words.h. */
#include "injector/run/bench/command_words.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char white[] = " \t\n";

/* Whether a shell does more at AT, which is in QUOTE or (0) in none, than to split words: behind
 * the end of a line is another command. */
static bool is_shells(const char *at, char quote)
{
    if (quote)
        return quote == '"' && strchr("$`\\!", *at);
    return strchr("$`\\|&;<>()*?[]{}#~!", *at) || (*at == '\n' && at[strspn(at, white)]);
}

/* Whether TEXT means nothing but words: what a shell reads otherwise, and words that are its own.
 */
static bool is_plain(const char *text)
{
    static const char *const own[] = {"cd", "exec", "ulimit", "if", "for", "while", "set", "."};
    size_t first = strcspn(text, white);
    char quote = 0;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strlen(own[i]) == first && strncmp(text, own[i], first) == 0)
            return false;
    if (memchr(text, '=', first))
        return false;
    for (const char *at = text; *at; at++) {
        if (quote ? *at == quote : *at == '\'' || *at == '"')
            quote = quote ? 0 : *at;
        else if (is_shells(at, quote))
            return false;
    }
    return !quote && first > 0;
}

/* Copy the word at TEXT to WORD, without its quotes.  Returns where it ends. */
static const char *take_word(char *word, const char *text)
{
    char quote = 0;
    for (; *text && (quote || !strchr(white, *text)); text++)
        if (quote ? *text == quote : *text == '\'' || *text == '"')
            quote = quote ? 0 : *text;
        else
            *word++ = *text;
    *word = '\0';
    return text;
}

static char **shell_words(const char *text)
{
    const char *const all[] = {"/bin/sh", "-c", text};
    char **words = calloc(4, sizeof *words);
    bool failed = !words;
    for (size_t i = 0; words && i < 3; i++)
        failed |= !(words[i] = strdup(all[i]));
    if (!failed)
        return words;
    command_words_free(words);
    return NULL;
}

char **command_words(const char *text)
{
    size_t count = 0;
    text += strspn(text, white);
    if (!is_plain(text))
        return shell_words(text);
    char **words = calloc(strlen(text) / 2 + 2, sizeof *words);
    while (words && *text) {
        words[count] = malloc(strlen(text) + 1);
        if (!words[count]) {
            command_words_free(words);
            return NULL;
        }
        text = take_word(words[count++], text);
        text += strspn(text, white);
    }
    return words;
}

void command_words_free(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}
