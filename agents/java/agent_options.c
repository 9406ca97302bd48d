/* See agent_options.h. */
#include "agents/java/agent_options.h"

#include <stdlib.h>
#include <string.h>

static bool is_word(const char *at, size_t bytes, const char *word)
{
    return strlen(word) == bytes && memcmp(at, word, bytes) == 0;
}

static bool take(struct agent_options *options, const char *at, size_t bytes)
{
    if (bytes > 4 && memcmp(at, "dir=", 4) == 0) {
        free(options->dir);
        options->dir = strndup(at + 4, bytes - 4);
        return options->dir != NULL;
    }
    const struct {
        const char *word;
        bool *option;
    } words[] = {{"attach", &options->attach},
                 {"short", &options->short_names},
                 {"nolines", &options->no_lines},
                 {"noframes", &options->no_frames},
                 {"nointerpreted", &options->no_interpreted}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_word(at, bytes, words[i].word))
            return *words[i].option = true;
    return bytes == 0;
}

const char *agent_options_read(struct agent_options *options, const char *text)
{
    *options = (struct agent_options){0};
    for (const char *at = text ? text : ""; *at;) {
        size_t bytes = strcspn(at, ",");
        if (!take(options, at, bytes))
            return at;
        at += bytes + (at[bytes] == ',');
    }
    return NULL;
}

void agent_options_free(struct agent_options *options)
{
    free(options->dir);
    *options = (struct agent_options){0};
}
