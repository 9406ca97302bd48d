/* V8's code log: what the engine compiled, and which calls it inlined (node, Deno and Chromium with
 * --log-code).  An isolate writes one file of text, an event a line.  V8 of node 20, 22 and 24
 * write the same.  These events are read:
 *
 *     code-creation,KIND,NUMBER,TIME_US,ADDR,SIZE,NAME,SFI,TIER
 *     code-source-info,ADDR,SCRIPT,START,END,POSITIONS,INLINES,FUNCTIONS
 *     sfi-move,FROM,TO
 *     script-source,SCRIPT,FILE,TEXT                with --log-source-code
 *     code-deopt,TIME_US,SIZE,ADDR,INLINING,CHARACTER,KIND,PLACE,REASON   (--log-deopt)
 *
 * TIME_US: since the isolate began.
 * NAME: FUNCTION FILE:LINE:COLUMN, with \x2C, \n, \\ and \u0041 for what would break a line.
 * SFI: the address of what V8 knows of the function; the garbage collector moves it.
 * TIER: ~ bytecode, ^ Sparkplug, + Maglev, * TurboFan; o and ' may stand beside these.
 * SCRIPT: the script's number; FILE is <unknown> of eval and new Function.  Their functions have
 * names without a file, ":LINE:COLUMN": that is what TEXT calls itself (magic_comment.h), if
 * anything.
 * START: the function's first character in its script, in UTF-16 units from 0.
 * POSITIONS: C<code offset>O<character>[I<inlined call>], repeated; each holds up to the next.
 * INLINES: F<function>O<character of the call>[I<its parent among the INLINES>], repeated.
 * FUNCTIONS: S<SFI>, repeated: those that INLINES names by number.
 * KIND: deopt-eager, deopt-lazy, or dependency-change: before it was to run next.
 * PLACE: <FILE:LINE:COLUMN>, in inlined code " inlined at " and its caller's place, repeated.
 *
 * Source info stands right behind the creation of its code.
 *
 * Valid: a line with all its fields, and numbers that fit where they are needed.  Other lines are
 * left out and counted.
 * code-move and code-delete are not needed: a dump has no code that moves, and of an address that
 * was used again both have each use in its order.
 */
#ifndef PERFJIT_V8_LOG_H
#define PERFJIT_V8_LOG_H

#include "injector/findings/findings.h"
#include "injector/log/lines/line_text.h"

#include <stddef.h>

struct v8_function {
    struct line_text name; /* as it stands in the log */
    struct line_text file; /* in NAME; or of its script; or none */
    uint32_t line, column; /* in FILE, from 1; 0: not known */
    uint32_t start;        /* in its script; V8_NOWHERE if no event tells it */
    uint32_t script;       /* the log's source that has FILE, which is not in NAME; or V8_NOWHERE */
    uint32_t
        script_number; /* the log's, of a function without a file; V8_NOWHERE if nothing tells it */
    bool has_no_file;  /* NAME has a place without one */
};

/* Optimized code, and all code of functions whose name has no file: a log has hundreds of
 * thousands. */
struct v8_code {
    uint64_t addr, time_us;
    uint32_t size;
    uint32_t function;
    uint32_t inlining; /* the log's, or V8_NOWHERE */
    uint32_t line;     /* in the file, from 1 */
    bool is_needed;    /* it has inlined calls, was given up, or is of a script with a name */
};

/* The calls that were inlined into code. */
struct v8_inlining {
    struct line_text positions, inlines;
    size_t first_callee; /* in the log's callees, CALLEE_COUNT numbers of functions */
    size_t callee_count;
};

/* The text of a script, as V8 compiled it. */
struct v8_source {
    struct line_text file, text; /* as they stand in the log; FILE: or URL */
    char *url;                   /* what it calls itself, without backslashes; or NULL */
    bool is_nodes_own;           /* "node:events": it is in no file, and has no map */
};

/* That code was given up. */
struct v8_deopt {
    uint64_t time_us;
    size_t code;
    struct line_text kind, place, reason; /* as they stand in the log */
};

struct v8_log {
    const char *path;
    const char *mapped; /* the file; NULL: it is empty, or another's text was read */
    size_t mapped_bytes;
    struct v8_function *functions;
    size_t function_count, function_capacity;
    struct v8_code *codes;
    size_t code_count, code_capacity;
    struct v8_source *sources; /* that have a name */
    size_t source_count, source_capacity;
    struct v8_inlining *inlinings;
    size_t inlining_count, inlining_capacity;
    struct v8_deopt *deopts;
    size_t deopt_count, deopt_capacity;
    uint32_t *callees;
    size_t callee_count, callee_capacity;
    size_t bad_lines, first_bad;
};

enum { V8_NO_LOG = 1 };

#define V8_NOWHERE UINT32_MAX /* no function, no call, no character */

/* A row of POSITIONS or of INLINES. */
struct v8_row {
    uint32_t first;    /* the code offset, or the function's number */
    uint32_t position; /* the character */
    uint32_t call;     /* among the INLINES, or V8_NOWHERE */
};

/* Take the next row off TEXT, whose rows begin with LETTER.  Returns 1, 0 at the end, or -1 if it
 * is no row. */
int v8_row_next(struct line_text *text, char letter, struct v8_row *row);

/* TEXT as it was before it was written into the log, with a NUL behind its *BYTES, to be freed.
 * NULL without memory. */
char *v8_text_plain(struct line_text text, size_t *bytes);

/* Read the log PATH, which must outlive LOG.  Returns 0; or with the failure text set, V8_NO_LOG
 * for another file, or -1.  Release with v8_log_free in either case. */
int v8_log_read(struct v8_log *log, const char *path, struct findings *findings);

/* The same of BYTES bytes of TEXT, which must outlive LOG. */
int v8_log_parse(struct v8_log *log, const char *text, size_t bytes, struct findings *findings);

void v8_log_free(struct v8_log *log);

#endif
