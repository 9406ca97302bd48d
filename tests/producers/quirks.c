/* quirks NAME DIR SECONDS: run four functions, alpha, beta, gamma and delta, and log the first
 * three in a dump that has the quirk NAME of docs/quirks.md.  (Those of unwind tables:
 * unwind_shapes.c.)
 *
 *     quirks --names      the names, one a line
 *
 * NAME sound is a dump without any; big-endian is one as an s390x writes it, with every kind of
 * record; long-name has a name of 100000 bytes.  delta is never logged, but for header-again, where
 * a log of an earlier run in the same file says that it was old_delta.
 */
#include "tests/producers/quirk_dump.h"

#include <fcntl.h>

/* ---- The quirks ---- */

static void sound(void)
{
    struct header header = plain_header();
    put_under(&header);
    put_plain_record(JIT_CODE_CLOSE, FUNCTIONS, 0);
}

static void header_version(void)
{
    struct header header = plain_header();
    header.version = 2;
    put_under(&header);
}

static void header_longer(void)
{
    struct header header = plain_header();
    header.total_size = header.bytes = 48;
    put_under(&header);
}

static void header_size(void)
{
    struct header header = plain_header();
    header.total_size = 48;
    put_under(&header);
}

static void header_flags(void)
{
    struct header header = plain_header();
    header.flags = 0x10;
    put_under(&header);
}

static void elf_machine(void)
{
    struct header header = plain_header();
    header.elf_mach = EM_RISCV;
    put_under(&header);
}

static void elf_class(void)
{
    struct header header = plain_header();
    header.elf_mach = header.elf_mach == EM_X86_64 ? EM_386 : EM_ARM;
    put_under(&header);
}

static void header_again(void)
{
    static const char *const old[FUNCTIONS] = {"old_alpha", "old_beta", "old_gamma", "old_delta"};
    put_plain_header();
    for (size_t i = 0; i < FUNCTIONS; i++) {
        struct load load = plain_load(i);
        load.name = old[i];
        load.time -= 1000000;
        put_load(&load);
    }
    sound();
}

static void header_foreign(void)
{
    struct header other = plain_header();
    other.pid++;
    put_plain_header();
    put_plain_load(ALPHA);
    put_header(&other);
    put_plain_load(BETA);
    put_plain_header();
    put_plain_load(GAMMA);
}

static void thread_id_64(void)
{
    put_plain_header();
    for (size_t i = ALPHA; i <= GAMMA; i++) {
        struct load load = plain_load(i);
        load.wide_tid = true;
        put_load(&load);
    }
}

static void pid_differs(void)
{
    struct load load = plain_load(BETA);
    load.pid = (uint32_t)getppid();
    put_around(&load);
}

static void tid_impossible(void)
{
    struct load load = plain_load(BETA);
    load.tid = 0x7f123456;
    put_around(&load);
}

static void name_absent(void)
{
    struct load load = plain_load(BETA);
    load.no_name = true;
    put_around(&load);
}

static void name_empty(void)
{
    struct load load = plain_load(BETA);
    load.name = "";
    put_around(&load);
}

static void name_open(void)
{
    struct load load = plain_load(BETA);
    load.no_nul = true;
    put_around(&load);
}

static void name_padded(void)
{
    struct load load = plain_load(BETA);
    load.pad_bytes = 11;
    put_around(&load);
}

static void name_unprintable(void)
{
    struct load load = plain_load(BETA);
    load.name = "be\nta \033[31m \xff";
    put_around(&load);
}

/* Between beta and gamma. */
static void code_empty(void)
{
    struct load load = plain_load(BETA);
    put_plain_header();
    put_plain_load(ALPHA);
    put_load(&load);
    load.name = "nothing";
    load.addr += SLOT_BYTES / 2;
    load.code_size = 0;
    load.code_index = GAMMA;
    put_load(&load);
    load = plain_load(GAMMA);
    load.code_index = DELTA;
    put_load(&load);
}

static void code_absent(void)
{
    struct load load = plain_load(BETA);
    load.code_absent = true;
    put_around(&load);
}

static void code_behind(void)
{
    struct load load = plain_load(BETA);
    load.code_behind = true;
    put_around(&load);
    load = plain_load(DELTA); /* so that one is the last */
    load.name = "last";
    load.code_behind = true;
    put_load(&load);
}

static void index_reused(void)
{
    struct load load = plain_load(BETA);
    load.code_index = ALPHA;
    put_around(&load);
}

static void time_backwards(void)
{
    struct load load = plain_load(BETA);
    load.time = start_ns - 1;
    put_around(&load);
}

static void after_close(void)
{
    put_plain_header();
    put_plain_load(ALPHA);
    put_plain_record(JIT_CODE_CLOSE, ALPHA, 0);
    put_plain_load(BETA);
    put_plain_load(GAMMA);
}

static void record_unknown(void)
{
    put_plain_header();
    put_plain_load(ALPHA);
    put_plain_record(77, ALPHA, 5);
    put_plain_load(BETA);
    put_plain_load(GAMMA);
}

/* beta's write failed in the middle of its code, as .NET's do with EFAULT; the next record follows
 * at once. */
static void record_torn(void)
{
    struct load load = plain_load(BETA);
    load.cut_bytes = 7;
    put_around(&load);
    load = plain_load(GAMMA);
    load.name = "again";
    load.code_index = DELTA;
    load.time += 10;
    put_load(&load);
}

/* A child's copy of the parent's buffer, which begins in beta's record; then the parent writes its
 * own, and goes on. */
static void part_twice(void)
{
    enum { FLUSHED_BYTES = 30 };
    struct load load = plain_load(GAMMA);
    put_plain_header();
    put_plain_load(ALPHA);
    size_t buffer = dump.size + FLUSHED_BYTES;
    put_plain_load(BETA);
    put_plain_load(GAMMA);
    sink_bytes(&dump, dump.data + buffer, dump.size - buffer);
    load.name = "again";
    load.code_index = DELTA;
    load.time += 10;
    put_load(&load);
}

static void dump_cut(void)
{
    struct load load = plain_load(GAMMA);
    load.cut_bytes = 7;
    put_plain_header();
    put_plain_load(ALPHA);
    put_plain_load(BETA);
    put_load(&load);
}

/* As .NET 10.0 leaves it: writev failed in the third piece, the code. */
static void stubs_unread(void)
{
    struct load load = plain_load(BETA);
    put_plain_header();
    put_plain_load(ALPHA);
    load.name = "stub ReportStubBlock<FixupPrecode>";
    load.cut_bytes = 7;
    put_load(&load);
}

static void long_name(void)
{
    static char name[100001];
    struct load load = plain_load(BETA);
    memset(name, 'b', sizeof name - 1);
    load.name = name;
    put_around(&load);
}

/* ---- From another machine ---- */

/* gamma ends before it runs, and what was loaded as omega is moved to delta's place. */
static void big_endian(void)
{
    struct header header = plain_header();
    struct load omega = plain_load(FUNCTIONS);
    dump.big_endian = true;
    header.elf_mach = EM_S390;
    put_header(&header);
    put_plain_record(JIT_FILLER, 0, 9);
    put_lines(ALPHA);
    put_tables(ALPHA);
    put_plain_load(ALPHA);
    put_plain_load(BETA);
    put_plain_load(GAMMA);
    omega.code = slot(DELTA);
    put_load(&omega);
    put_move(FUNCTIONS, DELTA);
    put_unload(GAMMA);
    put_plain_record(JIT_CODE_CLOSE, FUNCTIONS, 0);
}

static const struct {
    const char *name;
    void (*put)(void);
} quirks[] = {
    {"sound", sound},
    {"big-endian", big_endian},
    {"long-name", long_name},
    {"header-version", header_version},
    {"header-longer", header_longer},
    {"header-size", header_size},
    {"header-flags", header_flags},
    {"header-again", header_again},
    {"header-foreign", header_foreign},
    {"elf-machine", elf_machine},
    {"elf-class", elf_class},
    {"thread-id-64", thread_id_64},
    {"pid-differs", pid_differs},
    {"tid-impossible", tid_impossible},
    {"name-absent", name_absent},
    {"name-empty", name_empty},
    {"name-open", name_open},
    {"name-padded", name_padded},
    {"name-unprintable", name_unprintable},
    {"code-empty", code_empty},
    {"code-absent", code_absent},
    {"code-behind", code_behind},
    {"index-reused", index_reused},
    {"time-backwards", time_backwards},
    {"after-close", after_close},
    {"record-unknown", record_unknown},
    {"part-twice", part_twice},
    {"record-torn", record_torn},
    {"dump-cut", dump_cut},
    {"stubs-unread", stubs_unread},
};

enum { QUIRKS = sizeof quirks / sizeof quirks[0] };

static bool write_dump(const char *directory)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/jit-%d.dump", directory, (int)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, dump.data, dump.size) != (ssize_t)dump.size)
        return false;
    return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED;
}

int main(int argc, char **argv)
{
    size_t chosen = QUIRKS;
    if (argc == 2 && strcmp(argv[1], "--names") == 0) {
        for (size_t i = 0; i < QUIRKS; i++)
            puts(quirks[i].name);
        return 0;
    }
    for (size_t i = 0; argc == 4 && i < QUIRKS; i++)
        if (strcmp(argv[1], quirks[i].name) == 0)
            chosen = i;
    if (chosen == QUIRKS) {
        fprintf(stderr, "usage: quirks NAME DIR SECONDS | --names\n");
        return 2;
    }
    dump = byte_sink_over(dump_bytes, sizeof dump_bytes);
    make_functions();
    start_ns = now_ns();
    quirks[chosen].put();
    if (dump.overflow || !write_dump(argv[2]))
        return 1;
    run(atof(argv[3]));
    return 0;
}
