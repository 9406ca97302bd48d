/* See unwind_info.h; the format of the tables stands in jitdump/format/eh_frame.h. */
#include "injector/log/code/unwind_info.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"

#include <inttypes.h>
#include <string.h>

enum {
    MAX_GUESSES = 64,    /* places tried by matching a blob's first FDE to a load */
    FDE_SLACK_BYTES = 15 /* an FDE may include the padding after its function */
};

/* A blob, taken apart. */
struct tables {
    const struct unwind_blob *blob;
    const uint8_t *eh_frame;
    size_t eh_frame_bytes;
    const uint8_t *hdr;
    size_t hdr_bytes;
    size_t eh_frame_offset; /* in the blob */
    bool ended;             /* by a zero length */
    struct eh_fde *fdes;
    size_t fde_count, fde_capacity;
};

/* The functions that a group of blobs can be about: those loaded after them, by address. */
struct group {
    struct code_log *log;
    const struct jit_dump *dump;
    struct findings *findings;
    uint32_t *by_address; /* indices of functions */
    uint32_t *in_order;   /* the same, as they were logged */
    size_t count;
    size_t first;  /* index of the first function after the blobs */
    bool *taken;   /* from there on: has an unwind table of its own */
    size_t *after; /* by place in in_order, if that function is taken: where to look for one that is
                      not */
};

/* ---- Taking a blob apart ---- */

/* Read the FDEs of WALK.  Returns NULL, or the error in them. */
static const char *walk_fdes(struct tables *tables, struct eh_frame_walk *walk)
{
    tables->fde_count = 0;
    for (;;) {
        if (array_reserve(tables->fdes, tables->fde_count, tables->fde_capacity))
            return "out of memory";
        if (!jd_eh_frame_next(walk, &tables->fdes[tables->fde_count])) {
            tables->ended = cursor_left(&walk->section) > 0;
            return walk->broken;
        }
        tables->fde_count++;
    }
}

/* The same of SIZE bytes at DATA. */
static const char *read_fdes(struct tables *tables, const struct jit_dump *dump,
                             const uint8_t *data, size_t size)
{
    struct eh_frame_walk walk =
        jd_eh_frame_begin(data, size, dump->big_endian, dump->address_bytes);
    const char *wrong = walk_fdes(tables, &walk);
    jd_eh_frame_end(&walk);
    return wrong;
}

/* perf, V8 and CPython put the .eh_frame first; the specification's text, and LLVM's ORC, its
 * header. A header is not a valid .eh_frame, nor the reverse, so the bytes decide. */
static const char *take_apart(struct tables *tables, const struct unwind_blob *blob,
                              const struct jit_dump *dump)
{
    const struct jit_unwinding_info *info = &blob->info;
    size_t hdr_bytes = (size_t)info->eh_frame_hdr_size;
    size_t frame_bytes = (size_t)(info->unwinding_size - info->eh_frame_hdr_size);
    tables->blob = blob;
    tables->hdr_bytes = hdr_bytes;
    tables->eh_frame_bytes = frame_bytes;
    tables->eh_frame = info->data;
    tables->eh_frame_offset = 0;
    tables->hdr = info->data + frame_bytes;
    const char *wrong = read_fdes(tables, dump, info->data, frame_bytes);
    if ((!wrong && tables->fde_count) || hdr_bytes == 0 || hdr_bytes >= info->unwinding_size)
        return wrong;
    if (read_fdes(tables, dump, info->data + hdr_bytes, frame_bytes) || tables->fde_count == 0) {
        tables->fde_count = 0;
        return wrong;
    }
    tables->eh_frame = info->data + hdr_bytes;
    tables->eh_frame_offset = hdr_bytes;
    tables->hdr = info->data;
    return NULL;
}

/* ---- Finding the addresses that a blob was made for ---- */

static const struct jit_function *function_at(const struct group *group, uint32_t index)
{
    return &group->log->functions[index];
}

static bool is_taken(const struct group *group, uint32_t index)
{
    return group->taken[index - group->first];
}

/* The first place in in_order, from PLACE on, of a function that is not taken.  Steps over taken
 * ones grow with use: as many blobs as functions would look at them all again and again. */
static size_t open_place(const struct group *group, size_t place)
{
    while (place < group->count && is_taken(group, group->in_order[place])) {
        size_t next = group->after[place];
        if (next < group->count && is_taken(group, group->in_order[next]))
            group->after[place] = group->after[next];
        place = group->after[place];
    }
    return place;
}

/* The function of the group that contains PC, or NO_FUNCTION. */
static uint32_t find_function(const struct group *group, uint64_t pc)
{
    size_t first;
    array_bisect(first, group->count, function_at(group, group->by_address[first])->addr <= pc);
    if (first == 0)
        return NO_FUNCTION;
    const struct jit_function *function = function_at(group, group->by_address[first - 1]);
    return pc - function->addr < function->size ? group->by_address[first - 1] : NO_FUNCTION;
}

/* The function that FDE is for if its section stood at SECTION_ADDR, or NO_FUNCTION. */
static uint32_t owner_of(const struct group *group, const struct eh_fde *fde, uint64_t section_addr)
{
    uint64_t pc = eh_fde_pc(fde, section_addr);
    uint32_t index = find_function(group, pc);
    if (index == NO_FUNCTION || fde->pc_range == 0)
        return NO_FUNCTION;
    const struct jit_function *function = function_at(group, index);
    uint64_t left = function->addr + function->size - pc;
    return fde->pc_range <= left + FDE_SLACK_BYTES ? index : NO_FUNCTION;
}

/* How well SECTION_ADDR explains the FDEs: two points for each that is in a function, one more for
 * each that begins and ends with its function. */
static size_t score(const struct group *group, const struct tables *tables, uint64_t section_addr)
{
    size_t points = 0;
    for (size_t i = 0; i < tables->fde_count; i++) {
        const struct eh_fde *fde = &tables->fdes[i];
        uint32_t owner = owner_of(group, fde, section_addr);
        if (owner == NO_FUNCTION)
            continue;
        const struct jit_function *function = function_at(group, owner);
        bool whole =
            eh_fde_pc(fde, section_addr) == function->addr && fde->pc_range == function->size;
        points += whole ? 3 : 2;
    }
    return points;
}

struct best {
    uint64_t section_addr;
    size_t points;
    bool imagined; /* perf's place after a function */
};

static void try_place(const struct group *group, const struct tables *tables, uint64_t section_addr,
                      bool imagined, struct best *best)
{
    size_t points = score(group, tables, section_addr);
    if (points > best->points)
        *best = (struct best){section_addr, points, imagined};
}

/* Every FDE is in a function. */
static bool is_good(const struct tables *tables, const struct best *best)
{
    return best->points >= 2 * tables->fde_count;
}

/* And each is the table of a whole function: nothing can be better. */
static bool is_perfect(const struct tables *tables, const struct best *best)
{
    return best->points == 3 * tables->fde_count;
}

/* The places that perf imagines: the record's bytes after the code of FUNCTION, at the next
 * multiple of 8.  With the header first, some count from where the .eh_frame then stands, some as
 * if it were first all the same. */
static void try_imagined(const struct group *group, const struct tables *tables, uint32_t function,
                         struct best *best)
{
    const struct jit_function *candidate = function_at(group, function);
    uint64_t after_code = candidate->addr + (candidate->size + 7) / 8 * 8;
    try_place(group, tables, after_code + tables->eh_frame_offset, true, best);
    if (tables->eh_frame_offset && !is_perfect(tables, best))
        try_place(group, tables, after_code, true, best);
}

/* LLVM's ORC makes up a header on x86-64 whose pointer to .eh_frame is absolute: that is the
 * place. */
static bool hdr_place(const struct tables *tables, const struct jit_dump *dump,
                      uint64_t *section_addr)
{
    struct byte_cursor cursor = byte_cursor_over(tables->hdr, tables->hdr_bytes, dump->big_endian);
    uint8_t version = cursor_u8(&cursor), encoding = cursor_u8(&cursor);
    cursor_skip(&cursor, 2);
    *section_addr = cursor_u64(&cursor);
    bool absolute = encoding == 0x00 || encoding == 0x04 || encoding == 0x0c;
    return version == 1 && absolute && dump->address_bytes == 8 && !cursor.failed;
}

/* The places that the tables themselves name. */
static void try_named(const struct group *group, const struct tables *tables, struct best *best)
{
    uint64_t section_addr;
    if (!tables->fdes[0].pcrel)
        try_place(group, tables, 0, false, best);
    if (hdr_place(tables, group->dump, &section_addr))
        try_place(group, tables, section_addr, false, best);
}

/* Try every place at which the first FDE is the table of one of the functions logged after the
 * blob. */
static void try_matches(const struct group *group, const struct tables *tables, struct best *best)
{
    const struct eh_fde *fde = &tables->fdes[0];
    size_t guesses = 0;
    for (size_t i = open_place(group, 0);
         i < group->count && guesses < MAX_GUESSES && !is_perfect(tables, best);
         i = open_place(group, i + 1)) {
        const struct jit_function *function = function_at(group, group->in_order[i]);
        if (function->size != fde->pc_range)
            continue;
        guesses++;
        try_place(group, tables, function->addr - eh_fde_pc(fde, 0), false, best);
    }
}

/* Blob NUMBER of BLOB_COUNT.  The usual case first: the loads in the same order as the blobs, made
 * as perf has it.  The loads that follow may have no tables; if they are fewer than the blobs, the
 * last blobs count. */
static struct best find_place(const struct group *group, const struct tables *tables, size_t number,
                              size_t blob_count)
{
    struct best best = {0};
    size_t surplus = blob_count > group->count ? blob_count - group->count : 0;
    size_t partner = number - surplus; /* wraps around for a blob that does not count */
    if (partner < group->count)
        try_imagined(group, tables, group->in_order[partner], &best);
    if (!is_perfect(tables, &best))
        try_named(group, tables, &best);
    for (size_t i = 0; i < group->count && i < MAX_GUESSES && !is_perfect(tables, &best); i++)
        if (!is_taken(group, group->in_order[i]))
            try_imagined(group, tables, group->in_order[i], &best);
    if (!is_good(tables, &best))
        try_matches(group, tables, &best);
    return best;
}

/* ---- Keeping what was found ---- */

static int add_fde(struct group *group, const struct eh_fde *fde, uint32_t owner,
                   uint64_t section_addr)
{
    struct code_log *log = group->log;
    const struct jit_function *function = &log->functions[owner];
    uint64_t start = eh_fde_pc(fde, section_addr) - function->addr;
    uint64_t size = fde->pc_range < function->size - start ? fde->pc_range : function->size - start;
    uint32_t cie = code_log_intern_cie(log, &fde->cie);
    if (cie == UINT32_MAX || array_reserve(log->fdes, log->fde_count, log->fde_capacity))
        return -1;
    log->fdes[log->fde_count++] = (struct code_fde){
        owner, cie, (uint32_t)start, (uint32_t)size, fde->instructions, fde->instructions_bytes};
    return 0;
}

static void report_at(const struct group *group, const struct unwind_blob *blob,
                      enum finding_kind kind, const char *what)
{
    report_finding(group->findings, kind, "%s: record %" PRIu64 " at 0x%" PRIx64 ": %s",
                   group->dump->path, blob->record_number, blob->record_offset, what);
}

/* ---- What of it perf could not have read ---- */

/* An .eh_frame_hdr whose table perf could search: it is there, and has entries. */
static bool has_table(const struct tables *tables, const struct jit_dump *dump)
{
    struct byte_cursor cursor = byte_cursor_over(tables->hdr, tables->hdr_bytes, dump->big_endian);
    cursor_skip(&cursor, 2);
    uint8_t count_encoding = cursor_u8(&cursor), table_encoding = cursor_u8(&cursor);
    cursor_skip(&cursor, 4); /* eh_frame_ptr */
    uint32_t count = cursor_u32(&cursor);
    return !cursor.failed && count_encoding != EH_PE_omit && table_encoding != EH_PE_omit &&
           count > 0;
}

static void report_repaired(const struct group *group, const struct unwind_blob *blob,
                            enum quirk quirk)
{
    report_quirk(group->findings, quirk, "%s: record %" PRIu64 " at 0x%" PRIx64, group->dump->path,
                 blob->record_number, blob->record_offset);
}

static void look_at_form(const struct group *group, const struct tables *tables)
{
    const struct unwind_blob *blob = tables->blob;
    if (tables->fde_count == 0) {
        report_repaired(group, blob, QUIRK_UNWIND_EMPTY);
        return;
    }
    if (tables->hdr_bytes == 0)
        report_repaired(group, blob, QUIRK_HDR_ABSENT);
    else if (!has_table(tables, group->dump))
        report_repaired(group, blob, QUIRK_HDR_NO_TABLE);
    if (tables->eh_frame_offset)
        report_repaired(group, blob, QUIRK_HDR_FIRST);
    if (!tables->ended)
        report_repaired(group, blob, QUIRK_FRAME_NO_END);
    if (blob->info.mapped_size == 0)
        report_repaired(group, blob, QUIRK_MAPPED_SIZE_0);
}

/* The FDEs' functions are OWNERS in all, LAST_OWNER among them. */
static void look_at_place(const struct group *group, const struct tables *tables,
                          const struct best *best, size_t owners, uint32_t last_owner)
{
    if (!best->imagined)
        report_repaired(group, tables->blob, QUIRK_FRAME_ELSEWHERE);
    if (owners > 1)
        report_repaired(group, tables->blob, QUIRK_UNWIND_SHARED);
    else if (last_owner != group->in_order[0])
        report_repaired(group, tables->blob, QUIRK_UNWIND_FAR);
}

/* ---- All of it ---- */

static int keep(struct group *group, const struct tables *tables, const struct best *best)
{
    size_t unmatched = 0, owners = 0;
    uint32_t last_owner = NO_FUNCTION;
    for (size_t i = 0; i < tables->fde_count; i++) {
        uint32_t owner = owner_of(group, &tables->fdes[i], best->section_addr);
        unmatched += owner == NO_FUNCTION;
        if (owner != NO_FUNCTION && add_fde(group, &tables->fdes[i], owner, best->section_addr))
            return -1;
        owners += owner != NO_FUNCTION && owner != last_owner;
        last_owner = owner != NO_FUNCTION ? owner : last_owner;
        if (owner != NO_FUNCTION && tables->fde_count == 1)
            group->taken[owner - group->first] = true;
    }
    if (unmatched)
        report_at(group, tables->blob, FINDING_UNWIND_UNMATCHED,
                  "no later load covers all of its FDEs");
    look_at_place(group, tables, best, owners, last_owner);
    return 0;
}

static int assign_blob(struct group *group, const struct unwind_blob *blob, size_t number,
                       size_t blob_count)
{
    struct tables tables = {0};
    const char *wrong = take_apart(&tables, blob, group->dump);
    int result = 0;
    if (!wrong)
        look_at_form(group, &tables);
    if (wrong) {
        report_at(group, blob, FINDING_UNWIND_BROKEN, wrong);
    } else if (tables.fde_count) {
        struct best best = find_place(group, &tables, number, blob_count);
        if (best.points)
            result = keep(group, &tables, &best);
        else
            report_at(group, blob, FINDING_UNWIND_UNMATCHED, "no later load fits");
    }
    free(tables.fdes);
    return result;
}

/* ---- Groups: blobs with no load between them, and the loads that follow ---- */

static int compare_by_address(const void *left, const void *right, void *argument)
{
    const struct jit_function *functions = argument;
    const uint32_t *a = left, *b = right;
    if (functions[*a].addr != functions[*b].addr)
        return functions[*a].addr < functions[*b].addr ? -1 : 1;
    return *a < *b ? -1 : *a > *b;
}

static int open_group(struct group *group, size_t first, size_t end)
{
    group->by_address = malloc((end - first + 1) * sizeof *group->by_address);
    group->in_order = malloc((end - first + 1) * sizeof *group->in_order);
    group->taken = calloc(end - first + 1, sizeof *group->taken);
    group->after = malloc((end - first + 1) * sizeof *group->after);
    group->count = 0;
    group->first = first;
    if (!group->by_address || !group->in_order || !group->taken || !group->after)
        return -1;
    for (size_t i = first; i < end; i++)
        if (group->log->functions[i].name) /* else it is the target of a move */
            group->in_order[group->count++] = (uint32_t)i;
    for (size_t i = 0; i < group->count; i++)
        group->after[i] = i + 1;
    memcpy(group->by_address, group->in_order, group->count * sizeof *group->in_order);
    qsort_r(group->by_address, group->count, sizeof *group->by_address, compare_by_address,
            group->log->functions);
    return 0;
}

static void close_group(struct group *group)
{
    free(group->by_address);
    free(group->in_order);
    free(group->taken);
    free(group->after);
}

/* The BLOB_COUNT blobs at BLOBS and the functions up to END.  Later blobs first: for one load, the
 * last counts. */
static int assign_group(struct code_log *log, const struct jit_dump *dump,
                        const struct unwind_blob *blobs, size_t blob_count, size_t end,
                        struct findings *findings)
{
    struct group group = {.log = log, .dump = dump, .findings = findings};
    int result = open_group(&group, blobs[0].next_function, end);
    for (size_t i = blob_count; !result && i-- > 0;)
        result = assign_blob(&group, &blobs[i], i, blob_count);
    close_group(&group);
    return result;
}

static int compare_fdes(const void *left, const void *right)
{
    const struct code_fde *a = left, *b = right;
    if (a->function != b->function)
        return a->function < b->function ? -1 : 1;
    return a->start < b->start ? -1 : a->start > b->start;
}

/* Sort the FDEs and give each function its own. */
static void index_fdes(struct code_log *log)
{
    if (log->fde_count)
        qsort(log->fdes, log->fde_count, sizeof *log->fdes, compare_fdes);
    for (size_t i = 0; i < log->fde_count; i++) {
        struct jit_function *function = &log->functions[log->fdes[i].function];
        if (i == 0 || log->fdes[i].function != log->fdes[i - 1].function) {
            function->first_fde = (uint32_t)i;
            function->fde_count = 0;
        }
        function->fde_count++;
    }
}

int unwind_blobs_assign(struct code_log *log, const struct unwind_blobs *all,
                        const struct jit_dump *dump, struct findings *findings)
{
    const struct unwind_blob *blobs = all->items;
    for (size_t at = 0, count; at < all->count; at += count) {
        for (count = 1; at + count < all->count; count++)
            if (blobs[at + count].next_function != blobs[at].next_function)
                break;
        size_t end =
            at + count < all->count ? blobs[at + count].next_function : log->function_count;
        if (assign_group(log, dump, blobs + at, count, end, findings))
            return -1;
    }
    index_fdes(log);
    return 0;
}
