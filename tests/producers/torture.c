/* torture: a runtime of several threads that is killed, or whose disk fills up, at random moments, and the judge of the
 * dump that it leaves.
 *
 *     torture [-p PERFJIT] [-n NAMES] kill|fill DIR RUNS SEED
 *     torture stress DIR ROUNDS SEED
 *
 * kill    Each run's process logs loads (with lines; half of them with unwind tables, a third with inlined calls), moves
 *         and unloads from 4 threads, and gets SIGKILL.
 * fill    The same on a disk that somebody else fills up, and sometimes frees again, while it runs: DIR should be a small
 *         file system of its own.  A fifth of the runs is killed besides.
 * stress  8 threads and forked children, in one process that opens and closes its dump once a round: for ThreadSanitizer.
 *
 * After each call that returned, the process says so in memory that it shares with the judge.  What returned 0 must be in
 * the dump, with every byte; what failed must not be; of what was under way, one a thread, the whole or nothing.  With -p
 * perfjit dump must find all records sound, and as many.  With -n the last run's dump stays, and NAMES receives the names of
 * the functions of which the load returned 0.  Status 0: nothing was lost, torn or too much; else 1.
 */
#include "jitdump/byte_cursor.h"
#include "jitdump/jitdump.h"
#include "jitdump/jitdump_format.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS_MAX = 8, OPS = 4000, CYCLE = 5, CODE_MAX_BYTES = 3000, UNWIND_BYTES = 21 };

static void fail(const char *what)
{
    fprintf(stderr, "torture: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static uint32_t random_below(uint64_t *seed, uint32_t limit)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (uint32_t)((*seed >> 32) % limit);
}

/* ---- What is logged ---- */

enum op_state { NOT_RETURNED, DONE, FAILED, NOTHING_TO_DO };

struct op {
    uint64_t code_index; /* of the function that it loaded */
    _Atomic uint32_t state;
};

/* Shared by the process that is tortured and the judge. */
struct run_log {
    struct op ops[THREADS_MAX][OPS];
    _Atomic uint32_t returned;
    _Atomic uint64_t lost;
    _Atomic uint32_t ended; /* it came to jitdump_close and went on */
};

static struct run_log *run_log;

/* Operation I of a thread is a load; but the fourth of five moves the third's function, and the fifth unloads the first's. */
enum op_kind { LOAD, MOVE, UNLOAD };

static enum op_kind kind_of(unsigned i)
{
    return i % CYCLE == 3 ? MOVE : i % CYCLE == 4 ? UNLOAD : LOAD;
}

static uint64_t addr_of(unsigned thread, unsigned i)
{
    return 0x7f0000000000 + ((uint64_t)thread << 32) + (uint64_t)i * 4096;
}

static size_t code_bytes_of(unsigned thread, unsigned i)
{
    return (i * 2654435761u + thread * 40503u) >> 8 & 0xff ? 1 + i % 300 : CODE_MAX_BYTES;
}

static uint8_t pattern_of(unsigned thread, unsigned i)
{
    return (uint8_t)(1 + (thread * 37 + i) % 255);
}

static bool has_unwind(unsigned i)
{
    return i % 2 == 0;
}

static bool has_inlines(unsigned i)
{
    return i % 3 == 0;
}

static int load(struct jitdump *dump, unsigned thread, unsigned i)
{
    uint8_t bytes[CODE_MAX_BYTES];
    char name[32];
    uint64_t addr = addr_of(thread, i);
    memset(bytes, pattern_of(thread, i), sizeof bytes);
    snprintf(name, sizeof name, "t%u_%u", thread, i);
    const struct jitdump_line lines[] = {{addr, name, i, thread}, {addr + 1, name, 7, 8}};
    const uint32_t line_inlines[] = {JITDUMP_NOT_INLINED, 0};
    const struct jitdump_inline inlines[] = {
        {name, "caller", "callee", i, 1, 2, JITDUMP_NOT_INLINED}};
    const struct jitdump_unwind unwind = {bytes, UNWIND_BYTES, 20, UNWIND_BYTES};
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = name;
    code.code_addr = addr;
    code.code_size = code_bytes_of(thread, i);
    code.bytes = bytes;
    code.lines = lines;
    code.line_count = 2;
    code.unwind = has_unwind(i) ? &unwind : NULL;
    code.inlines = inlines;
    code.inline_count = has_inlines(i);
    code.line_inlines = has_inlines(i) ? line_inlines : NULL;
    return jitdump_add_code(dump, &code, &run_log->ops[thread][i].code_index);
}

static void do_op(struct jitdump *dump, unsigned thread, unsigned i)
{
    struct op *ops = run_log->ops[thread];
    unsigned target = kind_of(i) == MOVE ? i - 1 : kind_of(i) == UNLOAD ? i - (CYCLE - 1) : i;
    enum op_state state = NOTHING_TO_DO;
    int result = 0;
    if (kind_of(i) == LOAD || ops[target].code_index != JITDUMP_NO_CODE)
        state = DONE;
    if (kind_of(i) == LOAD)
        result = load(dump, thread, i);
    else if (kind_of(i) == MOVE)
        result = jitdump_move_code(dump, ops[target].code_index, addr_of(thread, target),
                                   addr_of(thread, i), code_bytes_of(thread, target));
    else
        result = jitdump_unload_code(dump, ops[target].code_index, addr_of(thread, target),
                                     code_bytes_of(thread, target));
    atomic_store_explicit(&ops[i].state, result ? FAILED : state, memory_order_release);
    atomic_fetch_add_explicit(&run_log->returned, 1, memory_order_relaxed);
}

struct worker {
    struct jitdump *dump;
    unsigned thread, count;
    pthread_t id;
};

static void *work(void *argument)
{
    const struct worker *worker = argument;
    for (unsigned i = 0; i < worker->count; i++)
        do_op(worker->dump, worker->thread, i);
    return NULL;
}

static void start_workers(struct worker *workers, unsigned threads, unsigned count,
                          struct jitdump *dump)
{
    for (unsigned i = 0; i < threads; i++) {
        workers[i] = (struct worker){dump, i, count, 0};
        if (pthread_create(&workers[i].id, NULL, work, &workers[i]))
            fail("pthread_create");
    }
}

static void join_workers(const struct worker *workers, unsigned threads)
{
    for (unsigned i = 0; i < threads; i++)
        pthread_join(workers[i].id, NULL);
}

static struct jitdump *open_dump(const char *dir)
{
    struct jitdump_options options = JITDUMP_OPTIONS_INIT;
    struct jitdump *dump;
    options.dir = dir;
    options.flags = JITDUMP_ALWAYS;
    jitdump_open(&dump, &options);
    return dump;
}

/* The process that is tortured.  Its status says that it went on after all of it. */
static void run_producer(const char *dir)
{
    struct worker workers[4];
    struct jitdump *dump = open_dump(dir);
    start_workers(workers, 4, OPS, dump);
    join_workers(workers, 4);
    atomic_store(&run_log->lost, jitdump_lost(dump));
    jitdump_close(dump);
    atomic_store(&run_log->ended, 1);
    _exit(0);
}

/* ---- The judge ---- */

struct verdict {
    uint64_t runs, killed, loads, others, lost, torn, extra, fillers, failed, no_file, unsound;
    uint64_t died; /* ended otherwise than by the kill, or status 0 */
    uint64_t miscounted;
};

struct found {
    uint8_t ops[THREADS_MAX][OPS];
    uint64_t records[3]; /* by op_kind */
    uint64_t fillers;
};

struct dump_bytes {
    uint8_t *data;
    size_t size;
};

static bool read_dump(struct dump_bytes *dump, const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *dump = (struct dump_bytes){0};
    if (fd < 0)
        return false;
    if (fstat(fd, &status) || !(dump->data = malloc((size_t)status.st_size + 1)))
        fail(path);
    if (read(fd, dump->data, (size_t)status.st_size) != status.st_size)
        fail(path);
    dump->size = (size_t)status.st_size;
    close(fd);
    return true;
}

struct record {
    uint32_t id;
    uint64_t timestamp;
    struct byte_cursor body;
};

enum next { RECORD, END, TORN };

static enum next next_record(const struct dump_bytes *dump, size_t *offset, struct record *record)
{
    struct byte_cursor cursor = byte_cursor_over(dump->data + *offset, dump->size - *offset, false);
    record->id = cursor_u32(&cursor);
    uint32_t total_size = cursor_u32(&cursor);
    record->timestamp = cursor_u64(&cursor);
    if (cursor.failed || total_size == 0) { /* room that was never used */
        for (size_t i = *offset; i < dump->size; i++)
            if (dump->data[i])
                return TORN;
        return END;
    }
    if (total_size < JR_PREFIX_BYTES || total_size > dump->size - *offset)
        return TORN;
    *offset += total_size;
    cursor.size = total_size;
    record->body = cursor;
    return RECORD;
}

static bool is_filled(struct byte_cursor *cursor, size_t count, uint8_t pattern)
{
    const uint8_t *bytes = cursor_bytes(cursor, count);
    for (size_t i = 0; bytes && i < count; i++)
        if (bytes[i] != pattern)
            return false;
    return bytes && cursor_left(cursor) == 0;
}

static bool check_load(struct byte_cursor body, unsigned *thread, unsigned *i, uint64_t *code_index)
{
    cursor_skip(&body, 8 + 8);
    uint64_t addr = cursor_u64(&body), code_size = cursor_u64(&body);
    *code_index = cursor_u64(&body);
    const char *name = cursor_cstr(&body);
    return name && sscanf(name, "t%u_%u", thread, i) == 2 && *thread < THREADS_MAX && *i < OPS &&
           addr == addr_of(*thread, *i) && code_size == code_bytes_of(*thread, *i) &&
           is_filled(&body, code_size, pattern_of(*thread, *i));
}

static bool check_debug(struct byte_cursor body, unsigned thread, unsigned i)
{
    char name[32];
    snprintf(name, sizeof name, "t%u_%u", thread, i);
    bool same = cursor_u64(&body) == addr_of(thread, i) && cursor_u64(&body) == 2 &&
                cursor_u64(&body) == addr_of(thread, i) && cursor_u32(&body) == i &&
                cursor_u32(&body) == thread;
    const char *file = cursor_cstr(&body);
    return same && file && strcmp(file, name) == 0;
}

/* RECORD begins the group of a load: read the rest of it. */
static bool check_group(const struct dump_bytes *dump, size_t *offset, struct record record,
                        unsigned *thread, unsigned *i, uint64_t *code_index)
{
    struct record unwind = {0}, inlines = {0}, debug = {0};
    uint64_t time = record.timestamp;
    for (; record.id != JIT_CODE_LOAD;) {
        *(record.id == JIT_CODE_UNWINDING_INFO ? &unwind
          : record.id == JIT_CODE_INLINE_INFO  ? &inlines
                                               : &debug) = record;
        if (next_record(dump, offset, &record) != RECORD || record.timestamp != time)
            return false;
        if (record.id != JIT_CODE_LOAD && record.id != JIT_CODE_INLINE_INFO &&
            record.id != JIT_CODE_DEBUG_INFO)
            return false;
    }
    if (!check_load(record.body, thread, i, code_index) || kind_of(*i) != LOAD)
        return false;
    cursor_skip(&unwind.body, 24);
    return (unwind.id != 0) == has_unwind(*i) && (inlines.id != 0) == has_inlines(*i) && debug.id &&
           check_debug(debug.body, *thread, *i) &&
           (!unwind.id || is_filled(&unwind.body, UNWIND_BYTES, pattern_of(*thread, *i))) &&
           (!inlines.id || cursor_u64(&inlines.body) == addr_of(*thread, *i));
}

/* Which operation a move to ADDR is, or the load of what stands at ADDR. */
static bool op_at(uint64_t addr, unsigned *thread, unsigned *i)
{
    uint64_t offset = addr - addr_of(0, 0);
    *thread = (unsigned)(offset >> 32);
    *i = (unsigned)((offset & UINT32_MAX) / 4096);
    return *thread < THREADS_MAX && *i < OPS && addr == addr_of(*thread, *i);
}

static bool check_move(struct byte_cursor body, unsigned *thread, unsigned *i)
{
    cursor_skip(&body, 8 + 8);
    uint64_t old_addr = cursor_u64(&body), new_addr = cursor_u64(&body);
    uint64_t code_size = cursor_u64(&body), code_index = cursor_u64(&body);
    return op_at(new_addr, thread, i) && kind_of(*i) == MOVE && *i > 0 &&
           old_addr == addr_of(*thread, *i - 1) && code_size == code_bytes_of(*thread, *i - 1) &&
           code_index == run_log->ops[*thread][*i - 1].code_index && !body.failed;
}

static bool check_unload(struct byte_cursor body, unsigned *thread, unsigned *i)
{
    cursor_skip(&body, 8);
    uint64_t addr = cursor_u64(&body), code_size = cursor_u64(&body);
    uint64_t code_index = cursor_u64(&body);
    if (!op_at(addr, thread, i) || *i + CYCLE - 1 >= OPS)
        return false;
    bool same = code_size == code_bytes_of(*thread, *i) &&
                code_index == run_log->ops[*thread][*i].code_index && !body.failed;
    *i += CYCLE - 1;
    return same && kind_of(*i) == UNLOAD;
}

/* Say where and why, and keep what was found. */
static bool torn_at(const struct dump_bytes *dump, size_t offset, const char *why)
{
    FILE *file = fopen("torn.dump", "wb");
    fprintf(stderr, "torture: 0x%zx: %s; see torn.dump\n", offset, why);
    if (!file || fwrite(dump->data, 1, dump->size, file) != dump->size || fclose(file))
        fail("torn.dump");
    return false;
}

/* All operations that DUMP has.  Returns false where it is torn. */
static bool find_ops(const struct dump_bytes *dump, struct found *found)
{
    size_t offset = JITHEADER_BYTES;
    struct record record;
    enum next next;
    uint64_t time = 0;
    while ((next = next_record(dump, &offset, &record)) == RECORD) {
        unsigned thread, i;
        uint64_t code_index;
        enum op_kind kind = LOAD;
        if (record.id == JIT_FILLER) {
            found->fillers++;
            continue;
        }
        if (record.timestamp < time)
            return torn_at(dump, offset, "an earlier time before this");
        time = record.timestamp;
        if (record.id == JIT_CODE_CLOSE)
            continue;
        bool sound;
        if (record.id == JIT_CODE_MOVE) {
            kind = MOVE;
            sound = check_move(record.body, &thread, &i);
        } else if (record.id == JIT_CODE_UNLOAD) {
            kind = UNLOAD;
            sound = check_unload(record.body, &thread, &i);
        } else {
            sound = check_group(dump, &offset, record, &thread, &i, &code_index) &&
                    (run_log->ops[thread][i].state != DONE ||
                     run_log->ops[thread][i].code_index == code_index);
        }
        if (!sound || found->ops[thread][i]++)
            return torn_at(dump, offset, sound ? "twice" : "not what was logged, before this");
        found->records[kind]++;
    }
    return next == END || torn_at(dump, offset, "no record");
}

static void judge_thread(const struct op *ops, const uint8_t *found, struct verdict *verdict)
{
    bool under_way = true; /* the first that did not return may be there */
    for (unsigned i = 0; i < OPS; i++) {
        uint32_t state = atomic_load(&ops[i].state);
        *(kind_of(i) == LOAD ? &verdict->loads : &verdict->others) += state == DONE;
        verdict->lost += state == DONE && !found[i];
        verdict->failed += state == FAILED;
        verdict->extra += found[i] && state != DONE && !(state == NOT_RETURNED && under_way);
        under_way = under_way && state != NOT_RETURNED;
    }
}

/* Does perfjit dump agree? */
static bool perfjit_agrees(const char *perfjit, const char *path, const struct found *found)
{
    char command[512], *line = NULL;
    size_t capacity = 0;
    uint64_t records[3] = {0};
    snprintf(command, sizeof command, "%s dump --json %s", perfjit, path);
    FILE *stream = popen(command, "r");
    if (!stream)
        fail(command);
    while (getline(&line, &capacity, stream) > 0) {
        records[LOAD] += strstr(line, "\"type\":\"CODE_LOAD\"") != NULL;
        records[MOVE] += strstr(line, "\"type\":\"CODE_MOVE\"") != NULL;
        records[UNLOAD] += strstr(line, "\"type\":\"CODE_UNLOAD\"") != NULL;
    }
    free(line);
    return pclose(stream) == 0 && memcmp(records, found->records, sizeof records) == 0;
}

static void judge(const char *path, const char *perfjit, unsigned threads, struct verdict *verdict)
{
    struct found *found = calloc(1, sizeof *found);
    struct dump_bytes dump;
    if (!found)
        fail("calloc");
    /* A process that is killed inside jitdump_open leaves no file, or one whose header is not written yet. */
    bool there =
        read_dump(&dump, path) && dump.size >= JITHEADER_BYTES && memcmp(dump.data, "DTiJ", 4) == 0;
    verdict->no_file += !there;
    if (there && !find_ops(&dump, found))
        verdict->torn++;
    else if (there && perfjit && !perfjit_agrees(perfjit, path, found))
        verdict->unsound++;
    verdict->fillers += found->fillers;
    for (unsigned thread = 0; thread < threads; thread++)
        judge_thread(run_log->ops[thread], found->ops[thread], verdict);
    free(dump.data);
    free(found);
}

/* ---- Torture ---- */

struct torture {
    const char *dir, *perfjit, *names;
    uint64_t seed;
    bool fill;
};

static bool is_over(pid_t child, int *status)
{
    return waitpid(child, status, WNOHANG) == child;
}

/* Wait until COUNT calls have returned.  Returns false if the process ends before. */
static bool wait_for_ops(pid_t child, uint32_t count, int *status)
{
    while (atomic_load(&run_log->returned) < count)
        if (is_over(child, status))
            return false;
    return true;
}

/* Leave no more than FREE_BYTES of the disk. */
static void fill_disk(const char *path, uint64_t free_bytes)
{
    struct statvfs disk;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    char bytes[4096] = {0};
    if (fd < 0)
        return; /* no room for its inode: full enough */
    off_t end = lseek(fd, 0, SEEK_END);
    if (fstatvfs(fd, &disk) == 0 && disk.f_bavail * disk.f_frsize > free_bytes)
        (void)!posix_fallocate(fd, end, (off_t)(disk.f_bavail * disk.f_frsize - free_bytes));
    lseek(fd, 0, SEEK_END);
    while (free_bytes == 0 && write(fd, bytes, sizeof bytes) > 0)
        ;
    close(fd);
}

/* Somebody else takes all that is left of the disk, and often gives it back later. */
static bool disturb_disk(struct torture *torture, pid_t child, int *status)
{
    char path[300];
    uint32_t at = random_below(&torture->seed, OPS * 3);
    snprintf(path, sizeof path, "%s/filler", torture->dir);
    if (at > OPS / 8 && !wait_for_ops(child, at, status))
        return false;
    fill_disk(path, 0);
    if (random_below(&torture->seed, 3) && !wait_for_ops(child, at + OPS / 2, status))
        return false;
    if (random_below(&torture->seed, 3))
        unlink(path);
    return true;
}

/* Returns how the process ended. */
static int torture_process(struct torture *torture, pid_t child, struct verdict *verdict)
{
    int status;
    if (torture->fill && !disturb_disk(torture, child, &status))
        return status;
    if (torture->fill && random_below(&torture->seed, 5)) {
        waitpid(child, &status, 0);
        return status;
    }
    if (random_below(&torture->seed, 4) == 0)
        usleep(random_below(&torture->seed, 2000)); /* may be in jitdump_open */
    else if (!wait_for_ops(child, random_below(&torture->seed, OPS * 5 / 2), &status))
        return status;
    for (volatile uint32_t spin = random_below(&torture->seed, 3000); spin > 0;)
        spin = spin - 1;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    verdict->killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    return status;
}

static void write_names(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file)
        fail(path);
    for (unsigned thread = 0; thread < 4; thread++)
        for (unsigned i = 0; i < OPS; i++)
            if (kind_of(i) == LOAD && atomic_load(&run_log->ops[thread][i].state) == DONE)
                fprintf(file, "%" PRIu64 " t%u_%u\n", run_log->ops[thread][i].code_index, thread,
                        i);
    if (fclose(file))
        fail(path);
}

static void run_once(struct torture *torture, bool last, struct verdict *verdict)
{
    char path[300];
    memset(run_log, 0, sizeof *run_log);
    snprintf(path, sizeof path, "%s/filler", torture->dir);
    if (torture->fill)
        fill_disk(path, random_below(&torture->seed, 4 << 20));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(60); /* to hang is to die */
        run_producer(torture->dir);
    }
    int status = torture_process(torture, child, verdict);
    snprintf(path, sizeof path, "%s/jit-%d.dump", torture->dir, (int)child);
    uint64_t failed = verdict->failed;
    verdict->runs++;
    verdict->died += !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) && status != 0;
    judge(path, torture->perfjit, 4, verdict);
    verdict->miscounted +=
        atomic_load(&run_log->ended) && atomic_load(&run_log->lost) != verdict->failed - failed;
    if (!last || !torture->names)
        unlink(path);
    snprintf(path, sizeof path, "%s/filler", torture->dir);
    if (torture->fill)
        unlink(path);
    if (last && torture->names)
        write_names(torture->names);
}

static int tell(const struct verdict *verdict)
{
    printf("%" PRIu64 " runs, %" PRIu64 " killed, %" PRIu64 " without a dump\n"
           "%" PRIu64 " loads and %" PRIu64 " moves and unloads returned 0: %" PRIu64 " lost\n"
           "%" PRIu64 " failed: %" PRIu64 " in the dump all the same, %" PRIu64
           " runs counted them wrong\n"
           "%" PRIu64 " fillers\n"
           "%" PRIu64 " dumps torn, %" PRIu64 " not as perfjit dump reads them, %" PRIu64
           " processes died\n",
           verdict->runs, verdict->killed, verdict->no_file, verdict->loads, verdict->others,
           verdict->lost, verdict->failed, verdict->extra, verdict->miscounted, verdict->fillers,
           verdict->torn, verdict->unsound, verdict->died);
    return verdict->lost || verdict->extra || verdict->miscounted || verdict->torn ||
           verdict->unsound || verdict->died;
}

/* ---- Stress ---- */

static void run_child(struct jitdump *dump)
{
    struct jitdump_code code = JITDUMP_CODE_INIT;
    uint64_t code_index;
    code.name = "child";
    code.code_addr = 0x10000;
    for (int i = 0; i < 100; i++)
        if (jitdump_add_code(dump, &code, &code_index) ||
            jitdump_unload_code(dump, code_index, 0x10000, 1))
            _exit(1);
    _exit(jitdump_close(dump) ? 1 : 0);
}

static void stress_round(const char *dir, struct verdict *verdict)
{
    enum { THREADS = 8, CHILDREN = 3 };
    struct worker workers[THREADS];
    char path[300];
    memset(run_log, 0, sizeof *run_log);
    struct jitdump *dump = open_dump(dir);
    start_workers(workers, THREADS, OPS / 4, dump);
#ifdef __SANITIZE_THREAD__ /* it takes the parent's threads for the child's: fork when they are gone */
    join_workers(workers, THREADS);
#endif
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        pid_t child = fork();
        if (child == 0)
            run_child(dump);
        waitpid(child, &status, 0);
        verdict->died += status != 0;
        snprintf(path, sizeof path, "%s/jit-%d.dump", dir, (int)child);
        unlink(path);
    }
#ifndef __SANITIZE_THREAD__
    join_workers(workers, THREADS);
#endif
    verdict->miscounted += jitdump_lost(dump) != 0;
    jitdump_close(dump);
    snprintf(path, sizeof path, "%s/jit-%d.dump", dir, (int)getpid());
    judge(path, NULL, THREADS, verdict);
    verdict->runs++;
    unlink(path);
}

int main(int argc, char **argv)
{
    struct torture torture = {0};
    struct verdict verdict = {0};
    int option;
    while ((option = getopt(argc, argv, "p:n:")) > 0)
        *(option == 'p' ? &torture.perfjit : &torture.names) = optarg;
    if (argc - optind != 4) {
        fprintf(stderr, "usage: torture [-p PERFJIT] [-n NAMES] kill|fill|stress DIR RUNS SEED\n");
        return 2;
    }
    const char *mode = argv[optind];
    unsigned long runs = strtoul(argv[optind + 2], NULL, 10);
    torture.dir = argv[optind + 1];
    torture.seed = strtoull(argv[optind + 3], NULL, 10) * 0x9e3779b97f4a7c15 + 1;
    torture.fill = strcmp(mode, "fill") == 0;
    run_log =
        mmap(NULL, sizeof *run_log, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run_log == MAP_FAILED)
        fail("mmap");
    for (unsigned long i = 0; i < runs; i++)
        if (strcmp(mode, "stress") == 0)
            stress_round(torture.dir, &verdict);
        else
            run_once(&torture, i + 1 == runs, &verdict);
    return tell(&verdict);
}
