/* The contents of a process's dumps, in one form for all producers: functions and events.
 *
 * A jit_function is one residence: these bytes under this name at this address.  A function that is
 * moved has two.  Events say when a residence began and ended; they are sorted by time once the log
 * is complete.
 */
#ifndef PERFJIT_CODE_LOG_H
#define PERFJIT_CODE_LOG_H

#include "injector/findings/findings.h"
#include "injector/log/clock/jit_clock.h"
#include "injector/log/clock/stamp_range.h"
#include "injector/log/code/interpreted_code.h"
#include "injector/log/lines/code_lines.h"
#include "jitdump/format/eh_frame.h"

/* A record about the source of a function; which function is determined when the whole dump has
 * been read. */
struct line_record {
    struct jit_record record;
    size_t next_function; /* index of the first function logged after it */
};

struct line_records {
    struct line_record *items;
    size_t count, capacity;
};

/* The source information of one dump's functions, and its records.
 */
struct line_block {
    struct line_block *next; /* of the dump before */
    struct line_records records;
    struct code_lines *lines; /* which point to them */
    size_t count;
    struct named_files files;
    struct jit_inline_info *calls; /* of a log beside the dump, which lines point to; or NULL */
    uint8_t *made;                 /* what they point to */
};

/* Keep RECORD, a DEBUG_INFO or INLINE_INFO, unless it is empty.  Returns 0, or -1
 * without memory. */
int line_records_keep(struct line_records *records, const struct jit_record *record,
                      size_t next_function);

/* BLOCK and those before it. */
void line_blocks_free(struct line_block *block);

struct jit_function {
    uint64_t addr;
    uint64_t size;
    uint64_t code_index;
    const char *name;    /* in the dump, or cleaned in the log's names */
    uint64_t name_hash;  /* of it: worked out while it is in the cache */
    const uint8_t *code; /* size bytes in the dump, or NULL */
    uint32_t name_bytes; /* without the NUL */
    uint32_t dump;       /* index of the dump it came from; NO_DUMP: inherited, or a child's */
    uint32_t pid;        /* of the record, as the runtime saw it */
    uint32_t first_fde;  /* of fde_count in the log's fdes: how to unwind from it */
    uint32_t fde_count : 27;
    bool plain_name : 1;  /* of ASCII that can be printed: worked out as its hash is */
    bool placed_name : 1; /* it may end in a place, as V8's do: the same */
    bool rival : 1;       /* a recording without times: another one was at its addresses, too */
    bool shared : 1;      /* another process's, in memory that this one shares with it */
    bool same_memory : 1; /* the next one is in the same mapping, and the perf map names nothing
                         between them: one map record may cover both, however far apart they are */
    uint32_t piece;       /* 0: the whole function; else its number among the pieces, from 1 */
    /* Its source lines and inlined calls, or NULL. */
    const struct code_lines *lines;
};

#define NO_FUNCTION UINT32_MAX
#define NO_DUMP     UINT32_MAX

/* Between functions no further apart than this lies nothing but alignment: one map record can cover
 * them. */
enum { CODE_GAP_BYTES = 63 };

enum code_event_kind {
    CODE_EVENT_LOAD,
    CODE_EVENT_MOVE,
    CODE_EVENT_UNLOAD,
    CODE_EVENT_END, /* as UNLOAD, by a second header: the function may have been unloaded before */
};

struct code_event {
    uint64_t time_ns; /* on the profile's clock */
    enum code_event_kind
        kind;       /* switches have no default, so that the compiler reports missing cases */
    uint32_t index; /* LOAD: of the function; MOVE, UNLOAD, END: into the moves or unloads */
};

struct code_move {
    uint64_t old_addr;
    uint32_t function; /* the residence at the new address; name and code are filled in by the
                          timeline */
};

struct code_unload {
    uint64_t addr;
    uint64_t size;
    uint64_t code_index;
    uint32_t dump;
    uint32_t pid;
    bool shared; /* as of a function */
};

/* How to unwind from [start, start + size) of a function: an FDE from any table. */
struct code_fde {
    uint32_t function;
    uint32_t cie;   /* index into the log's cies */
    uint32_t start; /* from the function's first byte */
    uint32_t size;
    const uint8_t *instructions; /* in the dump */
    size_t instructions_bytes;
};

/* The log has functions from before this time only if they were alive then: the dump was rewritten
 * to stay within a bound. */
struct code_history {
    uint64_t begin_ns; /* 0: it is whole */
    uint64_t dropped;  /* functions that were logged and are not in it */
};

/* The runtime gave code up (V8's code log). */
struct code_deopt {
    uint64_t time_ns; /* on the profile's clock */
    uint32_t function;
    const char *kind, *place, *reason; /* in the runtime's words, as they can be shown */
};

struct code_log {
    struct code_history history;
    struct jit_function *functions;
    size_t function_count, function_capacity;
    struct code_event *events;
    size_t event_count, event_capacity;
    struct code_move *moves;
    size_t move_count, move_capacity;
    struct code_unload *unloads;
    size_t unload_count, unload_capacity;
    char **names; /* copies of those that can't be shown as they are (code_name.h) */
    size_t name_count, name_capacity;
    bool has_unwinding; /* there was an UNWINDING_INFO, even an empty one */
    bool has_pieces;    /* a function of several pieces */
    bool cut;           /* a dump ended inside a record: the rest of the log is missing */
    bool has_v8_log;    /* V8's own log, which has inlined calls, was read for some functions */
    bool stubs_unread;  /* in one that its runtime could not read: QUIRK_STUBS_UNREAD */
    struct eh_cie *cies;
    size_t cie_count, cie_capacity;
    struct code_fde *fdes; /* by function, then by start */
    size_t fde_count, fde_capacity;
    struct line_block *line_blocks; /* the known source of its functions, by dump */
    struct interpreted_code interpreted;
    struct code_deopt *deopts; /* in the order of their logs */
    size_t deopt_count, deopt_capacity;
};

/* Whether its function is counted by it. */
static inline bool jit_function_is_first(const struct jit_function *function)
{
    return function->piece <= 1;
}

/* The code_index of its function's first piece. */
static inline uint64_t jit_function_first_index(const struct jit_function *function)
{
    return function->piece ? function->code_index - (function->piece - 1) : function->code_index;
}

/* The first piece of FUNCTION, which is in LOG, as it was logged.  FUNCTION itself if it is whole,
 * or its first piece is not where it should be. */
const struct jit_function *code_log_first_piece(const struct code_log *log,
                                                const struct jit_function *function);

/* For a log of one dump that was added with a clock of zeros: its times are the dump's stamps.  The
 * first function returns their range.  The second converts them to the profile's clock once that
 * clock is known. */
struct stamp_range code_log_stamps(const struct code_log *log);
void code_log_convert(struct code_log *log, const struct jit_clock *clock);

/* Add a function of DUMP_INDEX, or an event.  NULL, or -1, without memory. */
struct jit_function *code_log_add_function(struct code_log *log, uint32_t dump_index);
int code_log_add_event(struct code_log *log, uint64_t time_ns, enum code_event_kind kind,
                       size_t index);

/* The function that a LOAD or MOVE brings to its addresses; NULL of an UNLOAD or END. */
struct jit_function *code_event_function(const struct code_log *log,
                                         const struct code_event *event);

void jit_function_set_name(struct jit_function *function, const char *name, size_t bytes);

/* Make the names of all functions printable (printable_text.h), for ELF files: perf and debuggers
 * print them as they are.  Returns 0, or -1 without memory. */
int code_log_print_names(struct code_log *log);

/* The index of a CIE in LOG equal to CIE, added if there is none among the last ones; UINT32_MAX
 * without memory. */
uint32_t code_log_intern_cie(struct code_log *log, const struct eh_cie *cie);

/* The BYTES bytes at NAME as they are shown (jit_name.h), with their length then in BYTES: NAME
 * itself if it is not mangled and USABLE, that is printable (code_name.h) with a NUL behind it;
 * else a copy that lives as long as LOG.  NULL without memory. */
const char *code_log_shown_name(struct code_log *log, const char *name, size_t *bytes, bool usable);

/* A copy of the BYTES bytes at TEXT that can be shown, and lives as long as LOG.  NULL without
 * memory. */
const char *code_log_keep_text(struct code_log *log, const char *text, size_t bytes);

/* Add function NAME, without code bytes, as loaded at TIME_NS on the profile's clock.
 * NAME must outlive LOG. Returns 0, or -1 without memory. */
int code_log_add_named(struct code_log *log, uint32_t dump_index, uint64_t time_ns, uint64_t addr,
                       uint64_t size, const char *name);

/* Sort the events by time; records with equal times keep their order in the dump. */
int code_log_sort(struct code_log *log, struct findings *findings);

/* Drop the events that another dump of the process has as well; the events must be sorted.  If a
 * process was killed between two instructions, libjitdump's stage still has records that the body
 * already has (jitdump/writer/dump_writer.h). */
void code_log_drop_repeated(struct code_log *log);

void code_log_free(struct code_log *log);

#endif
