/* The reader of perf maps, for tools.
 *
 * The text is copied once and cut into strings in place; an entry's name points into it.  Lines are
 * accepted as producers really write them:
 *
 *     7f00aa001000 40 fib                  the format
 *     0x7f00aa001000 0x40 main loop        Wasmtime, Erlang, .NET, OpenJDK; names with spaces
 *     7f00aa001040 0 stub                  an entry of no size
 *     7f00aa001080 20 re                   the last line, torn by a full disk or a crash
 *
 * Lines are honoured in the order of the file (perfmap_overlay.c), where perf takes the first of
 * two lines with one address.
 */
#include "perfmap/perfmap.h"
#include "perfmap/perfmap_overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* More than any runtime writes.  Without a limit anybody's sparse file in /tmp could make a tool
 * use up the machine's memory. */
#define MAX_TEXT_BYTES ((size_t)1 << 30)

struct perfmap_table {
    char *text; /* with a NUL where each line, and the text, ends */
    struct pm_entries entries;
    size_t bad_lines;
};

/* ---- One line ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Take a number of at most 64 bits and the one blank after it. */
static bool take_number(const char **at, uint64_t *number)
{
    const char *text = *at;
    while (is_blank(*text))
        text++;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        text += 2;
    const char *digits = text;
    uint64_t value = 0;
    for (int digit; (digit = hex_digit(*text)) >= 0; text++) {
        if (value >> 60)
            return false;
        value = value << 4 | (uint64_t)digit;
    }
    if (text == digits || !is_blank(*text))
        return false;
    *at = text + 1;
    *number = value;
    return true;
}

/* All that follows the blank after the size is the name, as for perf; it may begin with a
 * space. */
static bool parse_line(const char *text, struct perfmap_entry *entry)
{
    if (!take_number(&text, &entry->addr) || !take_number(&text, &entry->size_bytes))
        return false;
    entry->name = text;
    return *text && pm_entry_last(entry) >= entry->addr;
}

/* ---- All lines ---- */

/* Take the line [START, END), where END may be overwritten.  False for want of memory. */
static bool take_line(struct perfmap_table *table, struct pm_entries *lines, size_t number,
                      char *start, char *end)
{
    struct perfmap_entry entry = {.line = number};
    if (end > start && end[-1] == '\r')
        end--;
    *end = '\0';
    if (end == start)
        return true;
    /* A NUL is not text: a name cut there could be taken for another function's. */
    if (strlen(start) != (size_t)(end - start) || !parse_line(start, &entry)) {
        table->bad_lines++;
        return true;
    }
    return pm_entries_add(lines, &entry);
}

static bool take_lines(struct perfmap_table *table, struct pm_entries *lines, size_t text_bytes)
{
    char *at = table->text, *text_end = table->text + text_bytes;
    for (size_t number = 1; at < text_end; number++) {
        char *newline = memchr(at, '\n', (size_t)(text_end - at));
        char *end = newline ? newline : text_end;
        if (!take_line(table, lines, number, at, end))
            return false;
        at = end + 1;
    }
    return true;
}

/* Make a table of TEXT, which has room for a NUL at its end and belongs to the table from now
 * on. */
static int table_new(struct perfmap_table **table, char *text, size_t text_bytes)
{
    struct pm_entries lines = {0};
    *table = calloc(1, sizeof **table);
    if (!*table) {
        free(text);
        return -ENOMEM;
    }
    (*table)->text = text;
    int error =
        take_lines(*table, &lines, text_bytes) ? pm_overlay(&lines, &(*table)->entries) : -ENOMEM;
    free(lines.items);
    if (error) {
        perfmap_free(*table);
        *table = NULL;
    }
    return error;
}

int perfmap_parse(struct perfmap_table **table, const char *text, size_t text_bytes)
{
    *table = NULL;
    if (!text && text_bytes)
        return -EINVAL;
    if (text_bytes > MAX_TEXT_BYTES)
        return -EFBIG;
    char *copy = malloc(text_bytes + 1);
    if (!copy)
        return -ENOMEM;
    if (text_bytes)
        memcpy(copy, text, text_bytes);
    return table_new(table, copy, text_bytes);
}

void perfmap_free(struct perfmap_table *table)
{
    if (!table)
        return;
    free(table->entries.items);
    free(table->text);
    free(table);
}

/* ---- Files ---- */

/* The destination of an error text. */
struct error_text {
    char *text;
    size_t bytes;
};

__attribute__((format(printf, 3, 4))) static int fail(struct error_text *to, int error,
                                                      const char *format, ...)
{
    va_list arguments;
    if (!to->text || !to->bytes)
        return error;
    va_start(arguments, format);
    vsnprintf(to->text, to->bytes, format, arguments);
    va_end(arguments);
    return error;
}

/* O_NONBLOCK: opening a FIFO would otherwise wait for a writer.  A socket can't be opened at
 * all. */
static int open_regular(const char *path, struct stat *status, struct error_text *text)
{
    int error = 0;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && errno == ENXIO)
        return fail(text, -EINVAL, "%s: not a regular file", path);
    if (fd < 0)
        return fail(text, -errno, "%s: cannot open: %m", path);
    if (fstat(fd, status) != 0)
        error = fail(text, -errno, "%s: cannot look at it: %m", path);
    else if (!S_ISREG(status->st_mode))
        error = fail(text, -EINVAL, "%s: not a regular file", path);
    else if (status->st_size > (off_t)MAX_TEXT_BYTES)
        error = fail(text, -EFBIG, "%s: larger than 1 GiB, which no perf map is", path);
    if (error)
        close(fd);
    return error ? error : fd;
}

/* Read up to *BYTES bytes.  A file that became shorter makes *BYTES less. */
static int read_all(int fd, char *to, size_t *bytes)
{
    size_t filled = 0;
    while (filled < *bytes) {
        ssize_t count = read(fd, to + filled, *bytes - filled);
        if (count == 0)
            break;
        if (count > 0)
            filled += (size_t)count;
        else if (errno != EINTR)
            return -errno;
    }
    *bytes = filled;
    return 0;
}

/* Read the file as long as it is now: its process may be adding lines. */
static int read_text(int fd, size_t file_bytes, char **text, size_t *text_bytes)
{
    *text_bytes = file_bytes;
    *text = malloc(file_bytes + 1);
    if (!*text)
        return -ENOMEM;
    int error = read_all(fd, *text, text_bytes);
    if (error)
        free(*text);
    return error;
}

int perfmap_read(struct perfmap_table **table, const char *path, char *error_text,
                 size_t error_bytes)
{
    struct error_text to = {error_text, error_bytes};
    struct stat status;
    char *text;
    size_t text_bytes;
    *table = NULL;
    fail(&to, 0, "%s", "");
    int fd = open_regular(path, &status, &to);
    if (fd < 0)
        return fd;
    int error = read_text(fd, (size_t)status.st_size, &text, &text_bytes);
    close(fd);
    if (!error)
        error = table_new(table, text, text_bytes);
    errno = -error;
    return error ? fail(&to, error, "%s: cannot read: %m", path) : 0;
}

/* ---- Questions ---- */

const struct perfmap_entry *perfmap_entries(const struct perfmap_table *table, size_t *count)
{
    *count = table ? table->entries.count : 0;
    return table ? table->entries.items : NULL;
}

const struct perfmap_entry *perfmap_find(const struct perfmap_table *table, uint64_t addr)
{
    size_t low = 0, high;
    const struct perfmap_entry *entries = perfmap_entries(table, &high);
    /* Entries before LOW begin at or below ADDR, those from HIGH on above it. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (entries[middle].addr <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && addr <= pm_entry_last(&entries[low - 1]) ? &entries[low - 1] : NULL;
}

size_t perfmap_bad_lines(const struct perfmap_table *table)
{
    return table ? table->bad_lines : 0;
}
