/* Dumps that begin and end on request while the process runs.
 *
 *     perfjit attach PID ──▶ page: dir, ON ──▶ jitdump_poll ──▶ file opened ──▶ emit_all ──▶ page:
 *     path, number, times
 *     perfjit detach PID ──▶ page: OFF     ──▶ jitdump_poll ──▶ file closed ──▶ page: done
 *
 * One thread serves the request.  Others that poll meanwhile continue, and their functions go to
 * the file as soon as it is open.  Code indices are never used again, so that an unload of code
 * that an earlier dump had is known by its index.
 */
#include "jitdump/format/dump_clock.h"
#include "jitdump/handle/handle.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The directory of a dump if nobody names one.  The current directory of a server is nobody's
 * choice. */
#define DEFAULT_DIR "/tmp"

/* How many functions a thread that was stopped in a call can still give an index. */
enum { INDICES_APART = 1024 };

const _Atomic uint32_t jd_never_asked = ATTACH_QUIET;

const volatile uint32_t *jitdump_poll_word(const struct jitdump *dump)
{
    return (const volatile uint32_t *)(uintptr_t)(dump ? dump->word : &jd_never_asked);
}

int jitdump_is_on(const struct jitdump *dump)
{
    return dump && !jd_handle_is_off(dump);
}

/* ---- The dump ---- */

/* The path and error that a requested file refers to. */
struct file_keeper {
    struct first_error error;
    char dir[];
};

static struct dump_file *new_file(struct jitdump *dump, const char *dir,
                                  struct dump_file *inherited)
{
    struct file_keeper *keeper = malloc(sizeof *keeper + strlen(dir) + 1);
    if (!keeper)
        return NULL;
    jd_error_init(&keeper->error);
    strcpy(keeper->dir, dir);
    struct dump_file *file = jd_file_new(keeper->dir, inherited, &keeper->error);
    if (!file) {
        free(keeper);
        return NULL;
    }
    file->keeper = keeper;
    if (file->writer.next_code_index < dump->next_code_index)
        file->writer.next_code_index = dump->next_code_index;
    return file;
}

/* Free ended files, if no call can be using them.  The newest is kept until there is another:
 * somebody may have its path. */
static void free_retired(struct jitdump *dump)
{
    if (atomic_load(dump->users) != 0)
        return;
    struct dump_file *file = dump->retired;
    dump->retired = NULL;
    while (file) {
        struct dump_file *next = file->next_retired;
        jd_handle_close_files(file);
        file = next;
    }
}

/* INHERITED: the parent's file, in a child that has logged nothing yet, or NULL. */
static int open_file(struct jitdump *dump, const char *dir, struct dump_file *inherited, char *text)
{
    free_retired(dump);
    struct dump_file *file = new_file(dump, dir, inherited);
    if (!file) {
        snprintf(text, ATTACH_TEXT_BYTES, "there is no memory to open a dump");
        return -ENOMEM;
    }
    int error = jd_file_open(file, &dump->kind);
    if (error) {
        snprintf(text, ATTACH_TEXT_BYTES, "%.*s", ATTACH_TEXT_BYTES - 1,
                 jd_error_text(file->writer.error));
        jd_file_free(file);
        return error;
    }
    file->first_code_index = file->writer.next_code_index;
    if (!atomic_compare_exchange_strong(&dump->file, &inherited, file)) {
        jd_file_close(file); /* another thread of the child has opened one meanwhile */
        jd_file_free(file);
        return 0;
    }
    if (inherited)
        jd_file_disown(inherited);
    return 0;
}

/* The text of FILE's first error outlives it. */
static void keep_error(struct jitdump *dump, const struct dump_file *file)
{
    const struct first_error *error = file->writer.error;
    if (error != &dump->error && jd_error_code(error))
        jd_error_keep(&dump->error, jd_error_code(error), "%s", jd_error_text(error));
}

static int close_file(struct jitdump *dump, char *text)
{
    struct dump_file *file = atomic_exchange(&dump->file, NULL);
    if (!file)
        return 0;
    int error = jd_file_end(file);
    keep_error(dump, file);
    if (error)
        snprintf(text, ATTACH_TEXT_BYTES, "%.*s", ATTACH_TEXT_BYTES - 1,
                 jd_error_text(file->writer.error));
    dump->next_code_index =
        file->writer.next_code_index + (error == -EAGAIN ? (uint64_t)INDICES_APART : 0);
    free_retired(dump);
    file->next_retired = dump->retired;
    dump->retired = file;
    return error;
}

/* ---- Requests ---- */

static bool is_own(const struct dump_file *file)
{
    return file && !jd_fork_mark_is_inherited(&file->fork_mark) && atomic_load(&file->open);
}

static void publish(struct attach_page *page, const struct jitdump *dump, enum attach_state state)
{
    const struct dump_file *file = atomic_load(&dump->file);
    if (state != ATTACH_IS_OFF && file)
        snprintf(page->path, sizeof page->path, "%s", file->path);
    page->lost = atomic_load(&dump->lost);
    atomic_thread_fence(memory_order_release);
    *(volatile uint32_t *)&page->state = state;
}

/* How many functions have an index so far: others may be adding some.  0 if a stopped thread is in
 * the way. */
static uint64_t indices_of(const struct jitdump *dump)
{
    struct dump_file *file = atomic_load(&dump->file);
    uint64_t indices = 0;
    if (!file || jd_writer_lock(&file->writer))
        return 0;
    indices = file->writer.next_code_index;
    jd_unlock(&file->writer.lock);
    return indices;
}

/* EMIT_ALL may be left by a longjmp: then nobody enables again what was disabled for this library's
 * own use of malloc. */
static void call_back(struct jitdump *dump, struct attach_switch *control, jitdump_emit *emit_all,
                      void *user)
{
    int own_state;
    pthread_setcancelstate(control->actor_cancel_state, &own_state);
    emit_all(dump, user);
    pthread_setcancelstate(own_state, &own_state);
}

/* If EMIT_ALL is left by an exception or a longjmp, or its thread ends, `told` stays unset. */
static void tell_all(struct jitdump *dump, struct attach_switch *control, jitdump_emit *emit_all,
                     void *user)
{
    struct attach_page *page = control->shared;
    uint64_t start_ns = jd_clock_now(false), first = indices_of(dump);
    publish(page, dump, ATTACH_IS_TELLING);
    control->told = false;
    jd_handle_tell_trampolines(dump);
    if (emit_all)
        call_back(dump, control, emit_all, user);
    if (jd_fork_mark_is_inherited(&control->fork_mark))
        return; /* a child that EMIT_ALL forked: the page is its parent's */
    control->told = true;
    uint64_t last = indices_of(dump);
    page->functions = last > first ? last - first : 0;
    page->telling_ns = jd_clock_now(false) - start_ns;
    publish(page, dump, ATTACH_IS_ON);
}

/* It is on already.  All live code has been added, unless EMIT_ALL was left half-way, or a forked
 * child has opened the dump for its first function. */
static int attach_again(struct jitdump *dump, struct attach_switch *control, jitdump_emit *emit_all,
                        void *user)
{
    if (!control->told)
        tell_all(dump, control, emit_all, user);
    if (!control->shared->openings)
        control->shared->openings = 1;
    return 0;
}

static int attach(struct jitdump *dump, struct attach_switch *control, const char *wanted_dir,
                  jitdump_emit *emit_all, void *user)
{
    const char *dir = *wanted_dir ? wanted_dir : dump->dir ? dump->dir : DEFAULT_DIR;
    struct attach_page *page = control->shared;
    struct dump_file *inherited = atomic_load(&dump->file);
    if (is_own(inherited))
        return attach_again(dump, control, emit_all, user);
    if (*dir != '/') {
        snprintf(page->text, sizeof page->text, "the directory for the dump is not absolute");
        return -EINVAL;
    }
    uint64_t start_ns = jd_clock_now(false);
    int error = open_file(dump, dir, inherited, page->text);
    page->opening_ns = jd_clock_now(false) - start_ns;
    page->functions = page->telling_ns = 0;
    if (error)
        return error;
    page->openings++;
    tell_all(dump, control, emit_all, user);
    return 0;
}

static int act(struct jitdump *dump, struct attach_switch *control,
               const struct attach_request *request, jitdump_emit *emit_all, void *user)
{
    struct attach_page *page = control->shared;
    int error = 0;
    page->text[0] = '\0';
    if (request->refused) {
        snprintf(
            page->text, sizeof page->text,
            "neither its user nor root has signed the request (a perfjit before 0.3 does not)");
        page->error = -EPERM;
        jd_switch_answer(control);
        return 0; /* nothing was opened or closed */
    }
    if (request->wanted == ATTACH_ON) {
        error = attach(dump, control, request->dir, emit_all, user);
        if (jd_fork_mark_is_inherited(&control->fork_mark))
            return error;
    } else if (request->wanted == ATTACH_OFF) {
        control->told = false;
        page->path[0] = '\0';
        publish(page, dump, is_own(atomic_load(&dump->file)) ? ATTACH_IS_ON : ATTACH_IS_OFF);
        error = close_file(dump, page->text);
        publish(page, dump, ATTACH_IS_OFF);
    } else {
        error = -EINVAL;
        snprintf(page->text, sizeof page->text, "this version knows no such request");
    }
    page->error = error;
    jd_switch_answer(control);
    return error;
}

static int poll_page(struct jitdump *dump, jitdump_emit *emit_all, void *user, int cancel_state)
{
    struct attach_switch *control = jd_switch_own(&dump->control);
    int error = 0;
    if (!control || !jd_switch_enter(control, __builtin_frame_address(0)))
        return 0;
    control->actor_cancel_state = cancel_state;
    const struct attach_request *request = jd_switch_take(control);
    if (request)
        error = act(dump, control, request, emit_all, user);
    jd_switch_leave(control);
    return error;
}

int jitdump_poll_on(struct jitdump *dump, jitdump_emit *emit_all, void *user)
{
    if (!dump || atomic_load_explicit(dump->word, memory_order_relaxed) == ATTACH_QUIET)
        return 0;
    int callers_errno = errno, cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* in malloc it would lock it */
    int error = poll_page(dump, emit_all, user, cancel_state);
    pthread_setcancelstate(cancel_state, &cancel_state);
    errno = callers_errno;
    return error;
}

/* ---- The beginning and the end ---- */

void jd_handle_make_attachable(struct jitdump *dump)
{
    struct attach_switch *control = jd_switch_new();
    if (!control)
        return;
    _Atomic uint32_t *counter = jd_fork_mark_counter(&control->fork_mark);
    dump->users = counter ? counter : &dump->users_without_mark;
    atomic_store(&dump->control, control);
    dump->word = &control->page->word;
    if (!jd_handle_is_off(dump)) {
        control->shared->openings = 1;
        control->told = true;
        publish(control->shared, dump, ATTACH_IS_ON);
    }
}

int jd_handle_close_attachable(struct jitdump *dump)
{
    int error = 0;
    while (dump->retired) {
        struct dump_file *file = dump->retired;
        dump->retired = file->next_retired;
        int close_error = jd_handle_close_files(file);
        error = error ? error : close_error;
    }
    jd_switch_free(atomic_load(&dump->control));
    return error;
}
