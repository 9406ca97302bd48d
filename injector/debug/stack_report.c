/* See stack_report.h.
 *
 * Text:  Thread TID NAME, and its signal; a line for each frame
 *            #N  PC NAME+OFFSET at FILE:LINE [JIT], or the mapped file in its place; "unknown" in
 *            front of memory whose code nothing names
 *        and how the stack ends.
 * JSON:  an object a thread: tid, signal, end, whole, frames.
 */
#include "injector/debug/stack_report.h"

#include "injector/log/code/jit_name.h"
#include "injector/text/file_name.h"
#include "injector/text/json_writer.h"
#include "injector/text/printable_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Text ---- */

/* The names of inlined calls are as they were logged, native ones as symbols. */
static char *shown_name(const struct stack_frame *frame)
{
    return !frame->name.text ? NULL
           : frame->jit      ? jit_name_shown(frame->name.text, frame->name.bytes)
                             : native_name_shown(frame->name.text);
}

static void put_text(struct line_text text)
{
    char *copy = text.text ? strndup(text.text, text.bytes) : NULL;
    printable_put(stdout, copy ? copy : "??");
    free(copy);
}

static void put_frame(const struct stack_frame *frame, size_t number)
{
    char *name = shown_name(frame);
    printf("#%-3zu 0x%016" PRIx64 " ", number, frame->pc);
    printable_put(stdout, name ? name : "??");
    free(name);
    if (frame->inlined)
        fputs(" (inlined)", stdout);
    else if (frame->name.text)
        printf("+0x%" PRIx64, frame->offset);
    if (frame->file.text) {
        fputs(" at ", stdout);
        put_text(frame->file);
        printf(":%" PRIu32, frame->line);
    }
    fputs(frame->in_memory ? " [unknown, " : " [", stdout);
    printable_put(stdout, frame->jit      ? "JIT"
                          : frame->module ? file_name_of(frame->module)
                                          : "nothing is mapped there");
    fputs("]\n", stdout);
}

static void put_end(const struct thread_stacks *stacks)
{
    bool jit = stacks->walker.end_at & SPACE_FUNCTION && stacks->walker.end_at != SPACE_NOTHING;
    const char *remedy = chain_end_remedy(stacks->end, jit);
    printf("     the stack is %s%s%s%s\n",
           stacks->end == CHAIN_WHOLE ? "" : "not whole: ", chain_end_what(stacks->end),
           remedy ? "; " : "", remedy ? remedy : "");
}

static void put_signal(int number)
{
#ifdef __GLIBC__
    const char *name = sigabbrev_np(number);
    printf(name ? ", SIG%s" : ", a signal", name);
#else /* musl has descriptions only */
    printf(", %s", strsignal(number));
#endif
}

void stack_report_text(const struct thread_stacks *stacks, const struct snapshot_thread *thread)
{
    printf("Thread %" PRIu32, thread->tid);
    if (thread->signal)
        put_signal((int)thread->signal);
    fputs(":\n", stdout);
    for (size_t i = 0; i < stacks->count; i++)
        put_frame(&stacks->frames[i], i);
    put_end(stacks);
    putchar('\n');
}

/* ---- JSON ---- */

static void put_json_text(struct json_writer *json, const char *key, struct line_text text)
{
    if (text.text)
        json_bytes(json, key, text.text, text.bytes);
    else
        json_nothing(json, key);
}

static void put_json_frame(struct json_writer *json, const struct stack_frame *frame)
{
    char *name = shown_name(frame), pc[32];
    snprintf(pc, sizeof pc, "0x%" PRIx64, frame->pc);
    json_begin_object(json, NULL);
    json_text(json, "pc", pc);
    put_json_text(json, "name", line_text_of(name));
    json_number(json, "offset", frame->offset);
    put_json_text(json, "file", frame->file);
    json_number(json, "line", frame->line);
    put_json_text(json, "module", line_text_of(frame->module));
    json_flag(json, "jit", frame->jit);
    json_flag(json, "inlined", frame->inlined);
    json_end_object(json);
    free(name);
}

void stack_report_json(const struct thread_stacks *stacks, const struct snapshot_thread *thread)
{
    struct json_writer json = {.stream = stdout};
    json_begin_object(&json, NULL);
    json_number(&json, "tid", thread->tid);
    json_number(&json, "signal", thread->signal);
    json_text(&json, "end", chain_end_id(stacks->end));
    json_flag(&json, "whole", stacks->end == CHAIN_WHOLE);
    json_begin_array(&json, "frames");
    for (size_t i = 0; i < stacks->count; i++)
        put_json_frame(&json, &stacks->frames[i]);
    json_end_array(&json);
    json_end_object(&json);
}
