/* The functions of jitdump.h: the handle, and which process's file to use. */
#include "jitdump/handle/handle.h"
#include "jitdump/code_argument.h"
#include "jitdump/code_pieces.h"
#include "jitdump/dump_record.h"
#include "jitdump/format/dump_clock.h"
#include "jitdump/format/jitdump_format.h"
#include "jitdump/guest/code_probe.h"
#include "jitdump/guest/thread_data.h"
#include "jitdump/handle/open_options.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Opening ---- */

static struct jitdump *dump_new(void)
{
    struct jitdump *dump = calloc(1, sizeof *dump);
    if (!dump)
        return NULL;
    atomic_init(&dump->file, NULL);
    atomic_init(&dump->trampolines, NULL);
    atomic_init(&dump->lost, 0);
    atomic_init(&dump->unreadable, 0);
    jd_error_init(&dump->error);
    dump->word = &jd_never_asked;
    return dump;
}

static int open_first_file(struct jitdump *dump, const struct jitdump_options *options)
{
    dump->dir = jd_options_dir(options->dir);
    if (!dump->dir)
        return jd_error_keep(&dump->error, -errno,
                             "the current directory can't be found: %m; set JITDUMPDIR to the "
                             "absolute path of a directory");
    struct dump_file *file = jd_file_new(dump->dir, NULL, &dump->error);
    if (!file)
        return jd_error_keep(&dump->error, -ENOMEM, "no memory to open a dump");
    int error = jd_file_open(file, &dump->kind);
    if (error)
        jd_file_free(file);
    else
        atomic_store(&dump->file, file);
    return error;
}

/* Nothing is opened until a dump is requested. */
static int keep_dir(struct jitdump *dump, const struct jitdump_options *options)
{
    const char *dir = options->dir ? options->dir : secure_getenv("JITDUMPDIR");
    if (!dir || !*dir)
        return 0;
    dump->dir = jd_options_dir(dir);
    return dump->dir ? 0 : jd_error_keep(&dump->error, -errno, "%s: can't be found: %m", dir);
}

static int start(struct jitdump *dump, const struct jitdump_options *options, bool now)
{
    bool later = jd_options_can_be_asked(options);
    int error = jd_options_check_words(&dump->error);
    if (!error)
        error = jd_options_kind(&dump->kind, options, &dump->error);
    if (jd_options_want_check())
        jd_code_check_begin(&dump->check);
    if (!error)
        error = now ? open_first_file(dump, options) : keep_dir(dump, options);
    if (!error && later)
        jd_handle_make_attachable(dump);
    return error;
}

static int open_dump(struct jitdump **dump, const struct jitdump_options *given)
{
    struct jitdump_options options;
    int error = jd_options_read(&options, given);
    bool now = jd_options_want_dump(&options);
    if (!error && !now && !jd_options_can_be_asked(&options) && !jd_options_check_words(NULL))
        return 0;
    *dump = dump_new();
    if (!*dump)
        return -ENOMEM;
    if (error)
        jd_struct_refuse(&(*dump)->error, error, "jitdump_options",
                         options.max_bytes || options.flags & JITDUMP_RING
                             ? "max_bytes is less than 512 KiB (JITDUMP_RING: 4 MiB), or an "
                               "unknown flag is set"
                             : "size is not set (JITDUMP_OPTIONS_INIT), or an unknown flag is");
    else
        error = start(*dump, &options, now);
    (*dump)->open_error = error;
    return error;
}

int jitdump_open(struct jitdump **dump, const struct jitdump_options *given)
{
    int callers_errno = errno;
    *dump = NULL;
    int error = open_dump(dump, given);
    errno = callers_errno;
    return error;
}

int jd_handle_close_files(struct dump_file *file)
{
    int error = 0;
    while (file) {
        struct dump_file *parent = file->parent;
        int close_error = jd_file_close(file);
        error = error ? error : close_error;
        jd_file_free(file);
        file = parent;
    }
    return error;
}

int jitdump_close(struct jitdump *dump)
{
    if (!dump)
        return 0;
    jitdump_error(dump); /* keeps that of the newest dump */
    jd_code_check_tell(&dump->check, jitdump_path(dump));
    int error = jd_error_code(&dump->error), callers_errno = errno;
    int close_error = jd_handle_close_files(atomic_load(&dump->file));
    error = error ? error : close_error;
    close_error = jd_handle_close_attachable(dump);
    error = error ? error : close_error;
    jd_handle_leave_trampolines(dump);
    free(dump->dir);
    free(dump);
    errno = callers_errno;
    return error;
}

/* ---- Errors, path and counts ---- */

/* A requested dump has an error text of its own, which ends with it. */
static void keep_error_of_file(struct jitdump *dump)
{
    jd_handle_enter(dump);
    const struct dump_file *file = atomic_load(&dump->file);
    const struct first_error *error = file ? file->writer.error : NULL;
    if (error && error != &dump->error && jd_error_code(error))
        jd_error_keep(&dump->error, jd_error_code(error), "%s", jd_error_text(error));
    jd_handle_leave(dump);
}

const char *jitdump_error(const struct jitdump *dump)
{
    if (!dump)
        return "";
    if (!jd_error_code(&dump->error) && !jd_handle_is_off(dump))
        keep_error_of_file((struct jitdump *)(uintptr_t)dump);
    return jd_error_text(&dump->error);
}

const char *jitdump_path(const struct jitdump *dump)
{
    struct jitdump *handle = (struct jitdump *)(uintptr_t)dump;
    if (!dump || jd_handle_is_off(dump))
        return "";
    jd_handle_enter(handle);
    const struct dump_file *file = atomic_load(&dump->file);
    while (file && !atomic_load(&file->open))
        file = file->parent;
    const char *path = file ? file->path : "";
    jd_handle_leave(handle);
    return path;
}

uint64_t jitdump_lost(const struct jitdump *dump)
{
    return dump ? atomic_load_explicit(&dump->lost, memory_order_relaxed) : 0;
}

uint64_t jitdump_unreadable(const struct jitdump *dump)
{
    return dump ? atomic_load_explicit(&dump->unreadable, memory_order_relaxed) : 0;
}

uint64_t jitdump_faults(const struct jitdump *dump)
{
    return dump ? atomic_load_explicit(&dump->check.faults, memory_order_relaxed) : 0;
}

/* ---- This process's file ---- */

/* Replace INHERITED by the child's own file, not open yet.  Several threads of a child may do so at
 * once: the first one's file is used.  INHERITED is kept, since others may still be reading it. */
static struct dump_file *adopt_file(struct jitdump *dump, struct dump_file *inherited)
{
    struct dump_file *fresh = jd_file_new(inherited->place.dir, inherited, inherited->writer.error);
    if (!fresh)
        return NULL;
    struct dump_file *file = inherited;
    if (!atomic_compare_exchange_strong(&dump->file, &file, fresh)) {
        jd_file_free(fresh);
        return file;
    }
    jd_file_disown(inherited);
    return fresh;
}

/* This process's file, open. */
static int own_file(struct jitdump *dump, struct dump_file **file)
{
    *file = atomic_load(&dump->file); /* after it was counted: jd_handle_enter */
    if (!*file)
        return -ESHUTDOWN;
    if (jd_fork_mark_is_inherited(&(*file)->fork_mark))
        *file = adopt_file(dump, *file);
    if (!*file && jd_handle_is_off(dump))
        return -ESHUTDOWN;
    if (!*file)
        return jd_error_keep(&dump->error, -ENOMEM, "no memory to open a dump in a forked child");
    return jd_file_open(*file, &dump->kind);
}

/* ---- Records ---- */

/* Begin a group of BYTES for FUNCTIONS, stamped NOW or later, in this process's file. */
static int begin(struct jitdump *dump, uint64_t now, uint64_t bytes, uint32_t functions,
                 struct dump_room *room, struct record_author *author)
{
    struct dump_file *file;
    int error = own_file(dump, &file);
    if (error)
        return error;
    *author = jd_author((uint32_t)file->pid);
    error = jd_writer_begin(&file->writer, now, bytes, functions, JD_PATIENCE_NS, room);
    return error == -EAGAIN ? jd_writer_is_stopped(&file->writer) : error;
}

/* Begin a record of BYTES about function CODE_INDEX, in the file, or in LATE if a stopped thread
 * is in the way, or a ring is full. */
static int begin_small(struct jitdump *dump, uint64_t code_index, uint64_t bytes,
                       uint8_t late[LATE_RECORD_BYTES], struct dump_room *room,
                       struct record_author *author)
{
    struct dump_file *file;
    uint64_t now = jd_clock_now(dump->kind.counter);
    int error = own_file(dump, &file);
    if (error)
        return error;
    if (code_index < file->first_code_index)
        return -ESHUTDOWN; /* an earlier dump had it */
    *author = jd_author((uint32_t)file->pid);
    error = jd_writer_begin(&file->writer, now, bytes, 0, JD_LITTLE_PATIENCE_NS, room);
    if (!jd_writer_can_wait(&file->writer, error))
        return error;
    jd_writer_begin_late(&file->writer, now, late, bytes, room);
    return 0;
}

/* End the group, and tell its first function's CODE_INDEX. */
static int end(struct jitdump *dump, struct dump_room *room, uint64_t *code_index)
{
    int error = jd_writer_end(room);
    if (error && error != -EINVAL)
        return error; /* the writer has kept the text; if the dump has ended, it is no error */
    if (error)
        return jd_error_keep(&dump->error, error,
                             "%s: a function's name or a source file's "
                             "name changed while it was copied",
                             jitdump_path(dump));
    *code_index = room->code_index;
    return 0;
}

static int is_too_large(struct jitdump *dump)
{
    return jd_error_keep(&dump->error, -EFBIG,
                         "%s: a function's name, code, lines, inlined calls and unwind tables are "
                         "over 4 GiB together, which is more than a record can have",
                         jitdump_path(dump));
}

static bool is_readable(const struct jitdump *dump, uint64_t now, const struct jitdump_code *code)
{
    return !code->bytes ||
           jd_code_is_readable(code->bytes, (size_t)code->code_size, dump->kind.counter ? 0 : now);
}

/* A function whose code can't be read is recorded without it, as WITHOUT_BYTES. */
static const struct jitdump_code *readable_part(struct jitdump *dump, uint64_t now,
                                                const struct jitdump_code *code,
                                                struct jitdump_code *without_bytes)
{
    if (is_readable(dump, now, code))
        return code;
    atomic_fetch_add_explicit(&dump->unreadable, 1, memory_order_relaxed);
    *without_bytes = *code;
    without_bytes->bytes = NULL;
    return without_bytes;
}

static void check_frame(struct jitdump *dump, const struct jitdump_code *code)
{
    if (dump->check.on)
        jd_code_check(&dump->check, code, dump->kind.elf_mach, jitdump_path(dump), &dump->error);
}

/* Write the group of CODE, which has been checked and sorted. */
static int put_code(struct jitdump *dump, const struct jitdump_code *code,
                    const struct inline_info *inlining, uint64_t *code_index)
{
    uint64_t now = jd_clock_now(dump->kind.counter);
    struct jitdump_code without_bytes;
    struct function_sizes sizes;
    struct record_author author;
    struct dump_room room;
    uint64_t bytes = jd_function_measure(code, inlining, &sizes);
    if (bytes > JD_GROUP_MAX_BYTES)
        return is_too_large(dump);
    code = readable_part(dump, now, code, &without_bytes);
    int error = begin(dump, now, bytes, 1, &room, &author);
    if (error)
        return error;
    jd_put_function(&room, code, inlining, &sizes, author);
    error = end(dump, &room, code_index);
    if (!error)
        check_frame(dump, code);
    return error;
}

/* The same for a function in pieces.  It counts once if a part can't be read. */
static int put_pieces(struct jitdump *dump, struct code_pieces *pieces, uint64_t *code_index)
{
    uint64_t now = jd_clock_now(dump->kind.counter), bytes = jd_pieces_measure(pieces);
    struct record_author author;
    struct dump_room room;
    bool unreadable = false;
    if (bytes > JD_GROUP_MAX_BYTES)
        return is_too_large(dump);
    for (uint32_t i = 0; i < pieces->count; i++) {
        struct jitdump_code *code = &pieces->items[i].code;
        if (!is_readable(dump, now, code)) {
            code->bytes = NULL;
            unreadable = true;
        }
    }
    if (unreadable)
        atomic_fetch_add_explicit(&dump->unreadable, 1, memory_order_relaxed);
    int error = begin(dump, now, bytes, pieces->count, &room, &author);
    if (error)
        return error;
    jd_pieces_put(&room, pieces, author);
    error = end(dump, &room, code_index);
    for (uint32_t i = 0; i < pieces->count && !error; i++)
        check_frame(dump, &pieces->items[i].code);
    return error;
}

static int put_code_in_pieces(struct jitdump *dump, const struct jitdump_code *code,
                              uint64_t *code_index)
{
    struct code_pieces pieces;
    int error = jd_pieces_make(&pieces, code, &dump->error);
    if (!error)
        error = put_pieces(dump, &pieces, code_index);
    jd_pieces_free(&pieces);
    return error;
}

static int put_code_with_inlines(struct jitdump *dump, const struct jitdump_code *code,
                                 uint64_t *code_index)
{
    struct inline_info inlining;
    int error = jd_inline_info_check(code, &dump->error);
    if (error)
        return error;
    error = jd_inline_info_make(&inlining, code);
    if (error)
        jd_error_keep(&dump->error, error,
                      "%s: no memory to bring a function's inlined calls in order",
                      jitdump_path(dump));
    else
        error = put_code(dump, code, &inlining, code_index);
    jd_inline_info_free(&inlining);
    return error;
}

static int put_any(struct jitdump *dump, const struct jitdump_code *code, uint64_t *code_index)
{
    static const struct inline_info nothing_inlined;
    if (code->piece_count)
        return put_code_in_pieces(dump, code, code_index);
    if (code->inline_count || code->line_inlines)
        return put_code_with_inlines(dump, code, code_index);
    return put_code(dump, code, &nothing_inlined, code_index);
}

/* A thread that is cancelled inside malloc takes its lock with it, and then all others wait. */
static int put_by_malloc(struct jitdump *dump, const struct jitdump_code *code,
                         uint64_t *code_index)
{
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    int error = put_any(dump, code, code_index);
    pthread_setcancelstate(cancel_state, &cancel_state);
    return error;
}

static int add_code(struct jitdump *dump, const struct jitdump_code *code, uint64_t *code_index)
{
    struct jitdump_code copy;
    int error = jd_code_read(&dump->error, &code, &copy);
    if (error)
        return error;
    if (code->piece_count || code->inline_count || code->line_inlines || dump->check.on)
        return put_by_malloc(dump, code, code_index);
    return put_any(dump, code, code_index);
}

static int move_code(struct jitdump *dump, uint64_t code_index, uint64_t old_code_addr,
                     uint64_t new_code_addr, uint64_t code_size)
{
    struct record_author author;
    struct dump_room room;
    uint8_t late[LATE_RECORD_BYTES];
    int error = begin_small(dump, code_index, JR_CODE_MOVE_BYTES, late, &room, &author);
    if (error)
        return error;
    jd_put_move(&room, author, code_index, old_code_addr, new_code_addr, code_size);
    return jd_writer_end(&room);
}

static int unload_code(struct jitdump *dump, uint64_t code_index, uint64_t code_addr,
                       uint64_t code_size)
{
    struct record_author author;
    struct dump_room room;
    uint8_t late[LATE_RECORD_BYTES];
    int error = begin_small(dump, code_index, JR_CODE_UNLOAD_BYTES, late, &room, &author);
    if (error)
        return error;
    jd_put_unload(&room, author, code_index, code_addr, code_size);
    return jd_writer_end(&room);
}

/* It takes a code index, as a function does: a ring that is full of live code takes neither. */
static int add_record(struct jitdump *dump, uint64_t bytes, jd_put_record *put, const void *what)
{
    struct record_author author;
    struct dump_room room;
    uint64_t code_index;
    if (bytes > JD_GROUP_MAX_BYTES)
        return is_too_large(dump);
    int error = begin(dump, jd_clock_now(dump->kind.counter), bytes, 1, &room, &author);
    if (error)
        return error;
    put(&room, bytes, what);
    return end(dump, &room, &code_index);
}

/* The result of a call on a dump that is not open. */
static int of_closed(struct jitdump *dump)
{
    if (dump->open_error)
        atomic_fetch_add_explicit(&dump->lost, 1, memory_order_relaxed);
    return dump->open_error;
}

/* Count what could not be recorded.  If the dump was closed meanwhile, the record is not needed. */
static int counted(struct jitdump *dump, int error)
{
    jd_handle_leave(dump);
    if (error == -ESHUTDOWN)
        return 0;
    if (error)
        atomic_fetch_add_explicit(&dump->lost, 1, memory_order_relaxed);
    return error;
}

/* ---- What runtimes call; errno is preserved ---- */

static int add_code_or_count(struct jitdump *dump, const struct jitdump_code *code, uint64_t *index)
{
    int callers_errno = errno;
    jd_handle_enter(dump);
    int error = add_code(dump, code, index);
    errno = callers_errno;
    return counted(dump, error);
}

int jitdump_add_code_on(struct jitdump *dump, const struct jitdump_code *code, uint64_t *code_index)
{
    uint64_t index = JITDUMP_NO_CODE;
    int error = 0;
    if (dump)
        error = jd_handle_is_off(dump) ? of_closed(dump) : add_code_or_count(dump, code, &index);
    if (code_index)
        *code_index = index;
    return error;
}

int jitdump_move_code_on(struct jitdump *dump, uint64_t code_index, uint64_t old_code_addr,
                         uint64_t new_code_addr, uint64_t code_size)
{
    if (!dump || code_index == JITDUMP_NO_CODE)
        return 0;
    if (jd_handle_is_off(dump))
        return of_closed(dump);
    int callers_errno = errno;
    jd_handle_enter(dump);
    int error = move_code(dump, code_index, old_code_addr, new_code_addr, code_size);
    errno = callers_errno;
    return counted(dump, error);
}

int jd_handle_add_record(struct jitdump *dump, uint64_t bytes, jd_put_record *put, const void *what)
{
    if (!dump)
        return 0;
    if (jd_handle_is_off(dump))
        return of_closed(dump);
    int callers_errno = errno;
    jd_handle_enter(dump);
    int error = add_record(dump, bytes, put, what);
    errno = callers_errno;
    return counted(dump, error);
}

static int no_moves(struct jitdump *dump)
{
    if (jd_handle_is_off(dump))
        return of_closed(dump);
    jd_handle_enter(dump);
    return counted(dump, jd_error_keep(&dump->error, -EINVAL,
                                       "jitdump_move_pieces: count is set, and moves is NULL"));
}

int jitdump_move_pieces_on(struct jitdump *dump, uint64_t code_index,
                           const struct jitdump_piece_move *moves, size_t count)
{
    int first_error = 0;
    if (!dump || code_index == JITDUMP_NO_CODE)
        return 0;
    if (count && !moves)
        return no_moves(dump);
    for (size_t i = 0; i < count; i++) {
        const struct jitdump_piece_move *move = &moves[i];
        if (move->old_code_addr == move->new_code_addr || !move->code_size)
            continue;
        int error = jitdump_move_code_on(dump, code_index + i, move->old_code_addr,
                                         move->new_code_addr, move->code_size);
        first_error = first_error ? first_error : error;
    }
    return first_error;
}

int jitdump_unload_code_on(struct jitdump *dump, uint64_t code_index, uint64_t code_addr,
                           uint64_t code_size)
{
    if (!dump || code_index == JITDUMP_NO_CODE)
        return 0;
    if (jd_handle_is_off(dump))
        return of_closed(dump);
    int callers_errno = errno;
    jd_handle_enter(dump);
    int error = unload_code(dump, code_index, code_addr, code_size);
    errno = callers_errno;
    return counted(dump, error);
}
