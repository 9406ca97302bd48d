/* jitunwind_print_crash: text made without stdio, which takes locks and memory. */
#include "jitdump/guest/write_signals.h"
#include "jitunwind/frames/machine.h"
#include "jitunwind/frames/memory_reader.h"
#include "jitunwind/frames/native_tables.h"
#include "jitunwind/jitunwind.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LINE_BYTES = 400, NAME_BYTES = 256, FRAMES_MAX = 256, ADDRESS_DIGITS = 16 };

/* A line that is being made; what does not fit is left out. */
struct report_line {
    char text[LINE_BYTES];
    size_t length;
};

static void put_bytes(struct report_line *line, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count && line->length + 1 < LINE_BYTES; i++) {
        char byte = bytes[i];
        line->text[line->length++] = byte >= ' ' && byte != '\x7f' ? byte : '?';
    }
}

static void put(struct report_line *line, const char *text)
{
    put_bytes(line, text, strlen(text));
}

/* VALUE in BASE with at least DIGITS digits. */
static void put_number(struct report_line *line, uint64_t value, unsigned base, unsigned digits)
{
    char text[24];
    size_t at = sizeof text;
    do {
        text[--at] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value || sizeof text - at < digits);
    put_bytes(line, text + at, sizeof text - at);
}

/* ---- Writing ---- */

/* write(2) of libc is a cancellation point. */
static int write_line(int fd, struct report_line *line)
{
    size_t done = 0;
    line->text[line->length++] = '\n';
    while (done < line->length) {
        long written = syscall(SYS_write, fd, line->text + done, line->length - done);
        if (written < 0 && errno != EINTR)
            return -errno;
        if (written == 0) /* a device that takes nothing, for ever */
            return -EIO;
        done += written > 0 ? (size_t)written : 0;
    }
    line->length = 0;
    return 0;
}

/* ---- Registers ---- */

static int print_registers(int fd, const void *ucontext)
{
    enum { IN_A_LINE = 4 };
    struct memory_reader reader;
    struct report_line line = {.length = 0};
    int error = 0;
    ju_memory_reader_begin(&reader);
    for (unsigned i = 0; i < MACHINE_REGISTERS && !error; i++) {
        const char *name = ju_machine_register_names[i];
        uint64_t value = 0;
        memory_read_word(&reader, (uint64_t)(uintptr_t)ucontext + ju_machine_ucontext_offset(i),
                         &value);
        put(&line, i % IN_A_LINE ? "  " : "    ");
        put(&line, &"    "[strlen(name) < 4 ? strlen(name) : 4]);
        put(&line, name);
        put(&line, " ");
        put_number(&line, value, 16, ADDRESS_DIGITS);
        if (i % IN_A_LINE == IN_A_LINE - 1 || i + 1 == MACHINE_REGISTERS)
            error = write_line(fd, &line);
    }
    return error;
}

/* ---- Frames ---- */

static const char *const hows[] = {
    [JITUNWIND_INTERRUPTED] = "",
    [JITUNWIND_RULES] = "",
    [JITUNWIND_EH_FRAME] = "",
    [JITUNWIND_SIGNAL] = " [interrupted by a signal]",
    [JITUNWIND_FRAME_POINTER] = " [by frame pointer]",
    [JITUNWIND_LEAF] = " [by its call]",
    [JITUNWIND_SCANNED] = " [a guess]",
};

/* The loader may be changing its lists: the kernel reads them. */
static void put_path(struct report_line *line, uint64_t addr)
{
    char piece[32];
    const size_t begin = line->length;
    size_t size = 0, length = 0;
    for (; addr && length == size && line->length + 1 < LINE_BYTES; addr += size) {
        const size_t in_page = PIECE_BYTES - addr % PIECE_BYTES;
        size = in_page < sizeof piece ? in_page : sizeof piece;
        if (!ju_memory_read_there(addr, piece, size))
            break;
        length = strnlen(piece, size);
        put_bytes(line, piece, length);
    }
    if (line->length == begin)
        put(line, "the program");
}

/* The file with ADDR, and the offset in it that addr2line takes. */
static bool put_file(struct report_line *line, uint64_t addr)
{
    struct native_name file;
    if (!ju_native_name(addr, &file))
        return false;
    put_path(line, file.path);
    put(line, "+0x");
    put_number(line, addr - file.load_addr, 16, 1);
    return true;
}

static void put_place(struct report_line *line, const struct jitunwind_frame *frame)
{
    char name[NAME_BYTES];
    uint64_t offset, addr = frame->ip - !frame->exact;
    if (jitunwind_name(addr, name, sizeof name, &offset) == 0) {
        put(line, name);
        put(line, "+0x");
        put_number(line, offset + !frame->exact, 16, 1);
    } else if (!put_file(line, addr)) {
        put(line, "?");
    }
}

static int print_frame(int fd, size_t number, const struct jitunwind_frame *frame)
{
    struct report_line line = {.length = 0};
    put(&line, number < 10 ? "  #" : number < 100 ? " #" : "#");
    put_number(&line, number, 10, 1);
    put(&line, " 0x");
    put_number(&line, frame->ip, 16, ADDRESS_DIGITS);
    put(&line, " ");
    put_place(&line, frame);
    put(&line, hows[frame->how]);
    int error = write_line(fd, &line);
    if (!error && frame->end == JITUNWIND_LOST) {
        put(&line, "       (its caller is not known)");
        error = write_line(fd, &line);
    } else if (!error && frame->end == JITUNWIND_FULL) {
        put(&line, "       (and more)");
        error = write_line(fd, &line);
    }
    return error;
}

static int print_all(int fd, const void *ucontext, const struct jitunwind_frame *frames,
                     size_t count)
{
    struct report_line line = {.length = 0};
    put(&line, "registers:");
    int error = ucontext ? write_line(fd, &line) : 0;
    if (ucontext && !error)
        error = print_registers(fd, ucontext);
    line.length = 0;
    put(&line, "call chain, the innermost frame first:");
    if (!error)
        error = write_line(fd, &line);
    for (size_t i = 0; i < count && !error; i++)
        error = print_frame(fd, i, &frames[i]);
    return error;
}

int jitunwind_print_crash(int fd, const void *ucontext)
{
    struct jitunwind_frame frames[FRAMES_MAX];
    struct write_signals before;
    int saved = errno;
    size_t count = jitunwind_backtrace(ucontext, frames, FRAMES_MAX, 0);
    int error = jd_write_signals_block(&before);
    if (!error) {
        error = print_all(fd, ucontext, frames, count);
        jd_write_signals_restore(&before, error);
    }
    errno = saved;
    return error;
}
