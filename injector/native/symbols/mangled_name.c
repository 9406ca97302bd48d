/* See mangled_name.h. */
#include "injector/native/symbols/mangled_name.h"

#include "injector/text/character.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mangled_begin(struct mangled_name *name, const char *symbol, size_t bytes, size_t most)
{
    bool is_long = bytes >= MANGLED_MOST_STEPS / MANGLED_STEPS_OF_BYTE;
    *name = (struct mangled_name){.start = symbol,
                                  .at = symbol,
                                  .end = symbol + bytes,
                                  .most = most,
                                  .steps = is_long ? MANGLED_MOST_STEPS
                                                   : (unsigned)(bytes + 1) * MANGLED_STEPS_OF_BYTE};
}

char *mangled_end(struct mangled_name *name)
{
    if (!name->failed && name->bytes) {
        name->text[name->bytes] = '\0';
        return name->text;
    }
    free(name->text);
    return NULL;
}

void mangled_fail(struct mangled_name *name)
{
    name->failed = true;
    name->at = name->end;
}

char mangled_peek(const struct mangled_name *name)
{
    return name->at < name->end ? *name->at : '\0';
}

char mangled_next(struct mangled_name *name)
{
    return name->at < name->end ? *name->at++ : '\0';
}

bool mangled_take(struct mangled_name *name, char wanted)
{
    if (mangled_peek(name) != wanted || name->at == name->end)
        return false;
    name->at++;
    return true;
}

bool mangled_take_text(struct mangled_name *name, const char *wanted)
{
    size_t bytes = strlen(wanted);
    if ((size_t)(name->end - name->at) < bytes || memcmp(name->at, wanted, bytes) != 0)
        return false;
    name->at += bytes;
    return true;
}

uint64_t mangled_decimal(struct mangled_name *name)
{
    uint64_t value = 0;
    if (mangled_take(name, '0'))
        return 0;
    const char *first = name->at;
    for (; mangled_peek(name) >= '0' && mangled_peek(name) <= '9'; name->at++)
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (unsigned)(*name->at - '0'), &value)) {
            mangled_fail(name);
            return 0;
        }
    if (name->at == first)
        mangled_fail(name);
    return value;
}

const char *mangled_part(struct mangled_name *name, uint64_t bytes)
{
    const char *part = name->at;
    if (name->failed || bytes > (size_t)(name->end - name->at)) {
        mangled_fail(name);
        return NULL;
    }
    name->at += bytes;
    return part;
}

bool mangled_enter(struct mangled_name *name)
{
    name->depth++;
    if (name->depth > MANGLED_MOST_DEPTH || name->steps == 0)
        mangled_fail(name);
    else
        name->steps--;
    return !name->failed;
}

void mangled_leave(struct mangled_name *name)
{
    name->depth--;
}

void mangled_put_bytes(struct mangled_name *name, const char *text, size_t bytes)
{
    if (name->silent || name->failed || !bytes)
        return;
    if (bytes > name->most - name->bytes) {
        mangled_fail(name);
        return;
    }
    if (name->bytes + bytes >= name->capacity) {
        size_t capacity = 2 * (name->bytes + bytes) + 64;
        char *grown = realloc(name->text, capacity);
        if (!grown) {
            mangled_fail(name);
            return;
        }
        name->text = grown;
        name->capacity = capacity;
    }
    memcpy(name->text + name->bytes, text, bytes);
    name->bytes += bytes;
}

void mangled_put(struct mangled_name *name, const char *text)
{
    mangled_put_bytes(name, text, strlen(text));
}

void mangled_put_number(struct mangled_name *name, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, number);
    mangled_put(name, text);
}

void mangled_put_character(struct mangled_name *name, uint32_t code)
{
    char text[UTF8_MOST_BYTES];
    size_t bytes = code > 0x10ffff ? 0 : utf8_put(text, code), count;
    enum character character = bytes ? character_at(text, bytes, &count) : CHARACTER_BROKEN;
    if (character == CHARACTER_BROKEN || character == CHARACTER_CONTROL)
        mangled_fail(name);
    else
        mangled_put_bytes(name, text, bytes);
}
