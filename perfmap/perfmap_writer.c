/* The writer of /tmp/perf-<pid>.map: arguments, the text of a line, and which process's file to
 * use.
 *
 *     7f00aa001000 40 fib            address and size in hex, then the name up to the line's end
 *     7f00aa001040 1c main loop
 *
 * Each process writes to a struct map_file of its own (map_file.h).  A child finds that the
 * handle's file is its parent's, and replaces it by one of its own.
 */
#include "perfmap/map_file.h"
#include "perfmap/perfmap.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    NAME_MAX_BYTES = 4000, /* so that a line fits into a page */
    USUAL_NAME_BYTES = 300,
    LINE_REST_BYTES = 1 + 2 * (16 + 1) + 1, /* numbers, blanks, a newline on each side */
    OPTIONS_MAX_BYTES = 4096 /* no version's struct is this large: a size above was never set */
};

struct perfmap {
    _Atomic(struct map_file *) file; /* NULL: perfmap_open failed */
    int open_error;                  /* why */
    _Atomic uint64_t lost;
    struct map_error error;
    char dir[];
};

const char *perfmap_error(const struct perfmap *map)
{
    return map && atomic_load(&map->error.ready) ? map->error.text : "";
}

uint64_t perfmap_lost(const struct perfmap *map)
{
    return map ? atomic_load(&map->lost) : 0;
}

/* ---- The line ---- */

/* Where to cut NAME without splitting a character.  Text that is not UTF-8 is cut at the limit. */
static size_t name_length(const char *name)
{
    size_t length = strnlen(name, NAME_MAX_BYTES + 1);
    if (length <= NAME_MAX_BYTES)
        return length;
    for (size_t cut = NAME_MAX_BYTES; cut > NAME_MAX_BYTES - 4; cut--)
        if (((unsigned char)name[cut] & 0xc0) != 0x80)
            return cut;
    return NAME_MAX_BYTES;
}

/* The size of the control character at TEXT, which a NUL ends; 0: it is none.  Terminals obey
 * U+0080 to U+009F, too. */
static size_t control_bytes(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f)
        return 2;
    return at[0] < 0x20 || at[0] == 0x7f;
}

/* Put NUMBER in hex and a blank.  Without printf, which takes a kilobyte of stack.  Returns where
 * the next byte goes. */
static char *put_number(char *to, uint64_t number)
{
    int shift = 60;
    while (shift > 0 && number >> shift == 0)
        shift -= 4;
    for (; shift >= 0; shift -= 4)
        *to++ = "0123456789abcdef"[number >> shift & 0xf];
    *to++ = ' ';
    return to;
}

/* Put a newline, then the line with LENGTH bytes of NAME.  Returns the line's size without that
 * first newline; there is no NUL at the end. */
static size_t format_line(char *line, uint64_t addr, uint64_t size_bytes, const char *name,
                          size_t length)
{
    *line++ = '\n';
    char *to = put_number(put_number(line, addr), size_bytes);
    for (size_t i = 0; i < length;) {
        size_t control = control_bytes(name + i);
        *to++ = control ? ' ' : name[i];
        i += control ? control : 1;
    }
    *to++ = '\n';
    return (size_t)(to - line);
}

/* ---- The handle ---- */

/* This process's file, or NULL if there is no memory.  Several threads of a child may get here at
 * once: the first one's file is used, and that thread opens it. */
static struct map_file *own_file(struct perfmap *map)
{
    struct map_file *file = atomic_load(&map->file);
    if (!pm_file_is_inherited(file))
        return file;
    struct map_file *fresh = pm_file_new(map->dir, file, &map->error, &map->lost);
    if (!fresh)
        return NULL;
    if (!atomic_compare_exchange_strong(&map->file, &file, fresh)) {
        pm_file_free(fresh);
        return file;
    }
    pm_file_open(fresh);
    pm_file_close(fresh->parent);
    return fresh;
}

/* State that a call preserves for its caller. open(2), write(2) and close(2) are cancellation
 * points. */
struct caller {
    int cancel_state, error_number;
};

static struct caller enter(void)
{
    struct caller caller = {.error_number = errno};
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &caller.cancel_state);
    return caller;
}

static int leave(struct caller caller, int result)
{
    pthread_setcancelstate(caller.cancel_state, &caller.cancel_state);
    errno = caller.error_number;
    return result;
}

static int append(struct perfmap *map, const char *line, size_t bytes)
{
    struct caller caller = enter();
    struct map_file *file = own_file(map);
    int error = file ? pm_file_append(file, line, bytes)
                     : pm_error_keep(&map->error, -ENOMEM,
                                     "no memory to open a perf map in a forked child");
    return leave(caller, error);
}

static int add_usual(struct perfmap *map, uint64_t addr, uint64_t size_bytes, const char *name,
                     size_t length)
{
    char line[LINE_REST_BYTES + USUAL_NAME_BYTES];
    return append(map, line + 1, format_line(line, addr, size_bytes, name, length));
}

/* Out of line, so that the usual names do not need its stack. */
__attribute__((noinline)) static int add_long(struct perfmap *map, uint64_t addr,
                                              uint64_t size_bytes, const char *name, size_t length)
{
    char line[LINE_REST_BYTES + NAME_MAX_BYTES];
    return append(map, line + 1, format_line(line, addr, size_bytes, name, length));
}

int perfmap_add_on(struct perfmap *map, uint64_t addr, uint64_t size_bytes, const char *name)
{
    if (!map)
        return 0;
    int error = map->open_error;
    if (!error) {
        /* Every reader takes a line without a name for malformed. */
        if (!name || !*name)
            name = "[unnamed]";
        size_t length = name_length(name);
        error = (length <= USUAL_NAME_BYTES ? add_usual : add_long)(map, addr, size_bytes, name,
                                                                    length);
    }
    if (error)
        atomic_fetch_add(&map->lost, 1);
    return error;
}

const char *perfmap_path(const struct perfmap *map)
{
    const struct map_file *file = map ? atomic_load(&map->file) : NULL;
    return file && atomic_load(&file->fd) >= 0 ? file->path : "";
}

/* ---- Opening and closing ---- */

#define OPTION_GIVEN(options, member)                                                              \
    ((options)->size >= offsetof(struct perfmap_options, member) + sizeof((options)->member))

/* A caller built with a newer header may pass a longer struct.  Newer members would be ignored, so
 * none of them may be set. */
static bool has_unknown_options(const struct perfmap_options *options)
{
    const unsigned char *bytes = (const unsigned char *)options;
    for (size_t i = offsetof(struct perfmap_options, reserved); i < options->size; i++)
        if (bytes[i])
            return true;
    return false;
}

/* Copy the members of GIVEN that this version knows. */
static int read_options(struct perfmap_options *options, const struct perfmap_options *given)
{
    *options = (struct perfmap_options)PERFMAP_OPTIONS_INIT;
    if (!given)
        return 0;
    if (!OPTION_GIVEN(given, size) || given->size > OPTIONS_MAX_BYTES)
        return -EINVAL;
    if (has_unknown_options(given))
        return -E2BIG;
    if (OPTION_GIVEN(given, dir))
        options->dir = given->dir;
    if (OPTION_GIVEN(given, flags))
        options->flags = given->flags;
    return options->flags & ~PERFMAP_ALWAYS ? -EINVAL : 0;
}

static bool environment_asks_for_map(void)
{
    const char *word = secure_getenv("PERFJIT");
    while (word) {
        size_t length = strcspn(word, ",");
        if (length == strlen("map") && memcmp(word, "map", length) == 0)
            return true;
        word = word[length] ? word + length + 1 : NULL;
    }
    return false;
}

/* A relative DIR stays the same directory for children that work in another one. */
static struct perfmap *map_new(const char *dir)
{
    const size_t room = *dir == '/' ? 0 : PATH_MAX;
    struct perfmap *map = calloc(1, sizeof *map + room + strlen(dir) + 2);
    if (!map)
        return NULL;
    atomic_init(&map->file, NULL);
    atomic_init(&map->lost, 0);
    atomic_init(&map->error.ready, false);
    atomic_flag_clear(&map->error.taken);
    if (room && getcwd(map->dir, room))
        strcat(map->dir, "/");
    strcat(map->dir, dir);
    return map;
}

static int open_first_file(struct perfmap *map)
{
    struct map_file *file = pm_file_new(map->dir, NULL, &map->error, &map->lost);
    if (!file)
        return pm_error_keep(&map->error, -ENOMEM, "no memory to open a perf map");
    int error = pm_file_open(file);
    if (error)
        pm_file_free(file);
    else
        atomic_store(&map->file, file);
    return error;
}

static int open_map(struct perfmap **map, const struct perfmap_options *given)
{
    struct perfmap_options options;
    *map = NULL;
    int error = read_options(&options, given);
    if (!error && !(options.flags & PERFMAP_ALWAYS) && !environment_asks_for_map())
        return 0;
    *map = map_new(options.dir && *options.dir ? options.dir : "/tmp");
    if (!*map)
        return -ENOMEM;
    if (error)
        pm_error_keep(&(*map)->error, error, "struct perfmap_options: %s",
                      error == -E2BIG
                          ? "options that this version of libperfmap does not know are set"
                          : "size is not set (PERFMAP_OPTIONS_INIT), or an unknown flag is");
    else
        error = open_first_file(*map);
    (*map)->open_error = error;
    return error;
}

int perfmap_open(struct perfmap **map, const struct perfmap_options *options)
{
    struct caller caller = enter();
    return leave(caller, open_map(map, options));
}

/* Returns the first error. */
static int close_files(struct map_file *file)
{
    int error = 0;
    while (file) {
        struct map_file *parent = file->parent;
        int close_error = pm_file_close(file);
        error = error ? error : close_error;
        pm_file_free(file);
        file = parent;
    }
    return error;
}

int perfmap_close(struct perfmap *map)
{
    if (!map)
        return 0;
    struct caller caller = enter();
    int error = close_files(atomic_load(&map->file));
    if (atomic_load(&map->error.ready))
        error = map->error.code;
    free(map);
    return leave(caller, error);
}
