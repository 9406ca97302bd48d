/* The decisions of perfjit record before it runs anything: the kind of a command, its switches, the
 * event.  Then the reading of a recording that grows, and the choice of the run's files. */
#include "injector/recording/host/event_choice.h"
#include "injector/run/program/program.h"
#include "injector/run/record/growing_recording.h"
#include "injector/run/record/left_over.h"
#include "injector/run/record/runtime_environment.h"
#include "injector/run/record/stand_in.h"

#include "tests/unit/machine_stand_in.h"
#include "tests/unit/own_namespaces.h"
#include "tests/unit/scratch.h"

#include <errno.h>
#include <fcntl.h>

/* ---- What it is told ---- */

static const struct run_folder folder = {
    .path = (char *)"/run", .dumps = (char *)"/run/dumps", .settings = (char *)"/run/settings"};

static void begin(struct runtime_environment *environment, bool copies)
{
    static char *words[] = {"program", "argument", NULL};
    assert_int_equal(runtime_environment_begin(environment, words, &folder, copies), 0);
}

static void assert_set(const struct runtime_environment *environment, const char *name,
                       const char *value)
{
    assert_string_equal(runtime_environment_value(environment, name), value);
}

static void test_environment(void **state)
{
    struct runtime_environment environment;
    (void)state;
    setenv("NODE_OPTIONS", "--perf-prof --stack-trace-limit=7", 1);
    unsetenv("PHP_INI_SCAN_DIR");
    unsetenv("PERFJIT");
    begin(&environment, false);
    assert_set(&environment, "JITDUMPDIR", "/run/dumps");
    assert_set(&environment, "PERFJIT", "dump");
    assert_null(environment.told);
    runtime_environment_add(&environment, runtime_named("node"));
    assert_set(&environment, "NODE_OPTIONS",
               "--interpreted-frames-native-stack --perf-basic-prof --perf-prof "
               "--stack-trace-limit=7");
    assert_string_equal(environment.told, "NODE_OPTIONS='--perf-prof "
                                          "--interpreted-frames-native-stack --perf-basic-prof'");
    runtime_environment_add(&environment, runtime_named("php"));
    assert_set(&environment, "PHP_INI_SCAN_DIR", "/run/settings/php-first::/run/settings/php-last");
    runtime_environment_free(&environment);
    assert_string_equal(getenv("NODE_OPTIONS"), "--perf-prof --stack-trace-limit=7");
}

/* It can be copied into a shell. */
static void test_a_value_with_a_space_is_told_in_quotes(void **state)
{
    struct runtime_environment environment;
    (void)state;
    unsetenv("ERL_FLAGS");
    begin(&environment, false);
    runtime_environment_add(&environment, runtime_named("erl"));
    assert_set(&environment, "ERL_FLAGS", "+JPperf true");
    assert_string_equal(environment.told, "ERL_FLAGS='+JPperf true'");
    runtime_environment_free(&environment);
}

static void test_own_values(void **state)
{
    struct runtime_environment environment;
    (void)state;
    setenv("NODE_OPTIONS", "", 1);
    setenv("PHP_INI_SCAN_DIR", "/etc/own", 1);
    setenv("PERFJIT", "map", 1);
    setenv("DENO_V8_FLAGS", "--own", 1);
    begin(&environment, true);
    assert_set(&environment, "PERFJIT", "map,dump");
    runtime_environment_add(&environment, runtime_named("node"));
    assert_set(&environment, "NODE_OPTIONS",
               "--perf-prof --interpreted-frames-native-stack --perf-basic-prof "
               "--perf-prof-unwinding-info");
    runtime_environment_add(&environment, runtime_named("php"));
    assert_set(&environment, "PHP_INI_SCAN_DIR",
               "/run/settings/php-first:/etc/own:/run/settings/php-last");
    runtime_environment_add(&environment, runtime_named("deno"));
    assert_set(&environment, "DENO_V8_FLAGS",
               "--own,--perf-prof,--interpreted-frames-native-stack,--perf-basic-prof,--log-code,"
               "--log-source-code,--logfile=/run/dumps/v8-%p.log");
    runtime_environment_free(&environment);
}

static void assert_node_options(const char *own, const char *set)
{
    struct runtime_environment environment;
    setenv("NODE_OPTIONS", own, 1);
    begin(&environment, false);
    runtime_environment_add(&environment, runtime_named("node"));
    assert_set(&environment, "NODE_OPTIONS", set);
    runtime_environment_free(&environment);
}

/* A word in quotes is another word's part. */
static void test_quoted_words(void **state)
{
    (void)state;
    assert_node_options("--require \"a --perf-prof b\" --perf-basic-prof",
                        "--perf-prof --interpreted-frames-native-stack --require "
                        "\"a --perf-prof b\" --perf-basic-prof");
    assert_node_options("--title \"\\\" --perf-prof \" --perf-prof",
                        "--interpreted-frames-native-stack --perf-basic-prof --title "
                        "\"\\\" --perf-prof \" --perf-prof");
    assert_node_options("--title ' --perf-prof '",
                        "--interpreted-frames-native-stack --perf-basic-prof --title "
                        "' --perf-prof '"); /* no quote of node's */
}

/* Set and empty, it keeps PHP from its own directory. */
static void test_empty_scan_dir(void **state)
{
    struct runtime_environment environment;
    (void)state;
    setenv("PHP_INI_SCAN_DIR", "", 1);
    begin(&environment, false);
    runtime_environment_add(&environment, runtime_named("php"));
    assert_set(&environment, "PHP_INI_SCAN_DIR", "/run/settings/php-first:/run/settings/php-last");
    runtime_environment_free(&environment);
}

static void test_argument(void **state)
{
    struct runtime_environment environment;
    (void)state;
    begin(&environment, false);
    runtime_environment_add(&environment, runtime_named("lli"));
    assert_string_equal(environment.words[0], "program");
    assert_string_equal(environment.words[1], "-jit-kind=mcjit");
    assert_string_equal(environment.words[2], "argument");
    assert_null(environment.words[3]);
    assert_string_equal(environment.told, "-jit-kind=mcjit");
    runtime_environment_free(&environment);
    assert_null(runtime_inherited(runtime_named("lli")));
    assert_null(runtime_inherited(runtime_named("ruby")));
    assert_ptr_equal(runtime_inherited(runtime_named("java")), runtime_named("java"));
    assert_string_equal(runtime_inherited(runtime_named("mono"))->switches[0].text, "--jitmap");
    assert_null(runtime_named("none"));
}

/* lli refuses an option that comes twice. */
static void test_own_argument(void **state)
{
    static char *own[] = {"-jit-kind=orc", "--jit-kind=mcjit", "-jit-kind"};
    struct runtime_environment environment;
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char *words[] = {"lli-14", "-O2", own[i], "x.bc", NULL};
        assert_int_equal(runtime_environment_begin(&environment, words, &folder, false), 0);
        runtime_environment_add(&environment, runtime_named("lli"));
        assert_string_equal(environment.words[1], "-O2");
        assert_null(environment.told);
        runtime_environment_free(&environment);
    }
    static char *others[] = {"lli-14", "-jit-kinds", "jit-kind", NULL};
    assert_int_equal(runtime_environment_begin(&environment, others, &folder, false), 0);
    runtime_environment_add(&environment, runtime_named("lli"));
    assert_string_equal(environment.words[1], "-jit-kind=mcjit");
    runtime_environment_free(&environment);
}

static void test_wrapped(void **state)
{
    static char *words[] = {"env", "-i", "A=1", "lli-14", "x.bc", NULL};
    struct runtime_environment environment;
    (void)state;
    unsetenv("PERFJIT");
    assert_int_equal(runtime_environment_begin(&environment, words, &folder, false), 0);
    runtime_environment_add(&environment, runtime_named("lli"));
    assert_int_equal(runtime_environment_wrap(&environment), 0);
    size_t own = 0, count = 0;
    for (; environment.words[count]; count++)
        own += strcmp(environment.words[count], "JITDUMPDIR=/run/dumps") == 0 ||
               strcmp(environment.words[count], "PERFJIT=dump") == 0;
    assert_int_equal(own, 2);
    assert_int_equal(count, 8);
    assert_string_equal(environment.words[1], "-i");
    assert_string_equal(environment.words[2], "A=1");
    assert_string_equal(environment.words[5], "lli-14");
    assert_string_equal(environment.words[6], "-jit-kind=mcjit");
    assert_string_equal(environment.words[7], "x.bc");
    runtime_environment_free(&environment);
}

/* What a wrapper's words say of a variable is the user's own value. */
static void test_wrapped_own_values(void **state)
{
    static char *words[] = {"env", "NODE_OPTIONS=--inspect", "node", NULL};
    struct runtime_environment environment;
    (void)state;
    setenv("NODE_OPTIONS", "--other", 1);
    assert_int_equal(runtime_environment_begin(&environment, words, &folder, false), 0);
    runtime_environment_add(&environment, runtime_named("node"));
    assert_int_equal(runtime_environment_wrap(&environment), 0);
    size_t found = 0;
    for (size_t i = 2; environment.words[i]; i++)
        found += strcmp(environment.words[i],
                        "NODE_OPTIONS=--perf-prof --interpreted-frames-native-stack "
                        "--perf-basic-prof --inspect") == 0;
    assert_int_equal(found, 1);
    assert_string_equal(environment.words[1], "NODE_OPTIONS=--inspect");
    runtime_environment_free(&environment);
}

/* ---- Stand-ins ---- */

/* The PATH, from TEXT with the scratch folder where '@' stands; "#" is the run's folder. */
static const char *path_of(const char *text, const char *run)
{
    static char path[1024];
    size_t filled = 0;
    for (; *text; text++)
        filled += (size_t)(*text == '@'   ? sprintf(path + filled, "%s", scratch)
                           : *text == '#' ? sprintf(path + filled, "%s/settings/bin", run)
                                          : sprintf(path + filled, "%c", *text));
    path[filled] = '\0';
    return path;
}

static void make_node(const char *directory, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", scratch, directory);
    assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
    strcat(path, "/node");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0700), 0);
}

static void test_stand_in(void **state)
{
    static struct {
        char *words[5];
        const char *path, *wanted; /* NULL: PATH is the user's */
    } cases[] = {
        {{"npm", "test"}, "@/real", "#:@/real"},
        {{"npm", "test"}, "/none:@/real:/more", "/none:#:@/real:/more"},
        {{"npm", "test"}, "own::@/real", "own::#:@/real"},
        {{"npm", "test"}, "@/real:@/manager", "#:@/real:@/manager"},
        {{"npm", "test"}, "@/manager:@/real", NULL},
        {{"npm", "test"}, "/none", NULL},
        {{"env", "A=1", "npm"}, "@/real", "#:@/real"},
        {{"env", "-i", "npm"}, "@/real", NULL},
        {{"env", "-u", "PATH", "npm"}, "@/real", NULL},
        {{"sudo", "npm"}, "@/real", NULL},
    };
    char *own = strdup(getenv("PATH"));
    (void)state;
    make_node("real", "\177ELF");
    make_node("manager", "#!/bin/sh\n");
    setenv("TMPDIR", scratch, 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct run_folder made;
        struct findings findings = {0};
        struct runtime_environment environment;
        assert_int_equal(run_folder_make(&made, NULL, false, &findings), 0);
        setenv("PATH", path_of(cases[i].path, ""), 1);
        assert_int_equal(runtime_environment_begin(&environment, cases[i].words, &made, false), 0);
        assert_int_equal(stand_in_add(&environment, runtime_named("node"), &findings), 0);
        assert_set(&environment, "PATH",
                   path_of(cases[i].wanted ? cases[i].wanted : cases[i].path, made.path));
        runtime_environment_free(&environment);
        run_folder_remove(&made, false);
    }
    setenv("PATH", own, 1);
    free(own);
}

/* ---- The event ---- */

static void assert_event(const int errors[TRIES], const char *event)
{
    struct event_choice choice;
    struct findings findings = {0};
    assert_int_equal(event_choose_by(&choice, errors, 2, &findings), 0);
    assert_string_equal(choice.event, event);
}

static void assert_no_event(int error, int paranoid, const char *text)
{
    struct event_choice choice;
    struct findings findings = {0};
    const int errors[TRIES] = {error, error, error, error};
    assert_int_equal(event_choose_by(&choice, errors, paranoid, &findings), -1);
    if (!strstr(findings.failure, text))
        fail_msg("%s", findings.failure);
}

static void test_event(void **state)
{
    (void)state;
    assert_event((int[TRIES]){0}, "cycles");
    assert_event((int[TRIES]){EACCES, 0, EACCES, 0}, "cycles:u");
    assert_event((int[TRIES]){ENOENT, ENOENT, 0, 0}, "cpu-clock");
    assert_event((int[TRIES]){ENOENT, ENOENT, EACCES, 0}, "cpu-clock:u");
    assert_no_event(EACCES, 3, "kernel.perf_event_paranoid is 3");
    assert_no_event(EPERM, 4, "sysctl kernel.perf_event_paranoid=2");
    assert_no_event(EPERM, 2, "a container or sandbox forbids");
    assert_no_event(ENOSYS, 2, "has no perf events");
    assert_no_event(EMFILE, 2, "Too many open files");
}

/* ---- A recording that grows ---- */

static uint8_t bytes[4096];
static struct byte_sink sink;

static void put_header(void)
{
    sink = byte_sink_over(bytes, sizeof bytes);
    for (size_t i = 0; i < PERF_FILE_HEADER_BYTES; i += 8)
        sink_u64(&sink, i == 0 ? PERF_MAGIC : i == PERF_HEADER_DATA ? PERF_FILE_HEADER_BYTES : 0);
}

static void put_record(uint32_t type, const void *payload, size_t count)
{
    sink_u32(&sink, type);
    sink_u16(&sink, 0);
    sink_u16(&sink, (uint16_t)(PERF_RECORD_HEADER_BYTES + count));
    sink_bytes(&sink, payload, count);
}

/* So many bytes of what was put are in the file. */
static void write_part(size_t count)
{
    int fd = open(scratch_file, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(write(fd, bytes, count), count);
    close(fd);
}

static void test_growing(void **state)
{
    struct growing_recording recording;
    uint32_t comm[4] = {77, 77}, fork[6] = {78, 77, 78, 77};
    uint64_t sample[2] = {0}, lost[2] = {1, 5};
    char map[PERF_MMAP2_BYTES - PERF_RECORD_HEADER_BYTES + 24] = {0};
    (void)state;
    memcpy(map, (uint32_t[]){77}, 4);
    strcpy(map + PERF_MMAP2_BYTES - PERF_RECORD_HEADER_BYTES, "/no/jit-77.dump");
    unlink(scratch_file);
    growing_recording_begin(&recording, scratch_file);
    growing_recording_read(&recording); /* nothing is there yet */
    put_header();
    put_record(PERF_RECORD_COMM, comm, sizeof comm);
    put_record(PERF_RECORD_SAMPLE, sample, sizeof sample);
    size_t whole = sink.size;
    put_record(PERF_RECORD_FORK, fork, sizeof fork);
    write_part(whole + 12); /* in the middle of a record */
    growing_recording_read(&recording);
    assert_int_equal(recording.losses.taken, 1);
    assert_true(growing_recording_has_pid(&recording, 77));
    assert_false(growing_recording_has_pid(&recording, 78));
    put_record(PERF_RECORD_MMAP2, map, sizeof map);
    put_record(2, lost, sizeof lost);
    put_record(PERF_RECORD_SAMPLE, sample, sizeof sample);
    write_part(sink.size);
    growing_recording_read(&recording);
    growing_recording_read_dumps(&recording); /* which is not there */
    assert_int_equal(recording.losses.taken, 2);
    assert_int_equal(recording.losses.records, 5);
    assert_int_equal(recording.dump_count, 1);
    assert_string_equal(recording.dumps[0].path, "/no/jit-77.dump");
    assert_true(growing_recording_has_pid(&recording, 78));
    assert_false(growing_recording_has_pid(&recording, UINT32_MAX));
    growing_recording_free(&recording);
}

/* A record of no bytes must not be read for ever. */
static void test_damaged(void **state)
{
    struct growing_recording recording;
    (void)state;
    put_header();
    sink_u64(&sink, 0);
    sink_u64(&sink, 0);
    write_part(sink.size);
    growing_recording_begin(&recording, scratch_file);
    growing_recording_read(&recording);
    assert_int_equal(recording.losses.taken, 0);
    growing_recording_free(&recording);
}

/* ---- What is the run's ---- */

static void make_file(const char *directory, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    close(open(path, O_WRONLY | O_CREAT, 0600));
}

static bool is_there(const char *directory, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return access(path, F_OK) == 0;
}

static void test_left_over(void **state)
{
    struct growing_recording recording;
    struct growing_dump *dump = calloc(1, sizeof *dump);
    char path[160];
    struct timespec later = left_over_now();
    (void)state;
    growing_recording_begin(&recording, scratch_file);
    growing_recording_add_pid(&recording, 4190001);
    snprintf(path, sizeof path, "%s/jit-4190001.dump", scratch);
    dump->path = strdup(path);
    recording.dumps = dump;
    recording.dump_count = 1;
    make_file(scratch, "jit-4190001.dump");
    make_file(scratch, "jit-4190002.dump");
    make_file(scratch, "isolate-0x12ab-4190001-v8.log");
    make_file(scratch, "isolate-0x12ab-4190002-v8.log");
    make_file(scratch, "isolate-0x12ab-4190001-v8.log.old");
    later.tv_sec += 60;
    left_over_remove(&recording,
                     &(struct left_over_request){later, .quiet = true}); /* all of it is older */
    assert_true(is_there(scratch, "jit-4190001.dump"));
    later.tv_sec -= 120;
    left_over_remove(&recording, &(struct left_over_request){later, .quiet = true});
    assert_false(is_there(scratch, "jit-4190001.dump"));
    assert_true(is_there(scratch, "jit-4190002.dump"));
    assert_false(is_there(scratch, "isolate-0x12ab-4190001-v8.log"));
    assert_true(is_there(scratch, "isolate-0x12ab-4190002-v8.log"));
    assert_true(is_there(scratch, "isolate-0x12ab-4190001-v8.log.old"));
    growing_recording_free(&recording);
}

static void write_dump(const char *name, uint32_t pid)
{
    uint32_t header[10] = {0x4a695444, 1, sizeof header, 62, 0, pid};
    char path[256];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, header, sizeof header), sizeof header);
    close(fd);
}

/* Mono's dump, which no mapping names. */
static void test_unmapped_dump(void **state)
{
    struct growing_recording recording;
    char *path, wanted[160];
    (void)state;
    struct left_over_request request = {
        .since = left_over_now(), .root = scratch, .dumps = scratch};
    growing_recording_begin(&recording, scratch_file);
    write_dump("jit-4190011.dump", 4190011);
    write_dump("jit-4190012.dump", 4190011); /* of another process, by its header */
    path = left_over_unmapped_dump(&recording, 4190011, &request);
    snprintf(wanted, sizeof wanted, "%s/jit-4190011.dump", scratch);
    assert_string_equal(path, wanted);
    free(path);
    assert_null(left_over_unmapped_dump(&recording, 4190012, &request));
    assert_null(left_over_unmapped_dump(&recording, 4190013, &request));
    snprintf(wanted, sizeof wanted, "%s/tmp", scratch);
    assert_int_equal(mkdir(wanted, 0700), 0);
    write_dump("tmp/jit-4190013.dump", 4190013);
    path = left_over_unmapped_dump(&recording, 4190013, &request);
    snprintf(wanted, sizeof wanted, "%s/tmp/jit-4190013.dump", scratch);
    assert_string_equal(path, wanted);
    free(path);
    request.since.tv_sec += 60;
    assert_null(left_over_unmapped_dump(&recording, 4190011, &request));
    request.since.tv_sec -= 60;
    recording.dumps = calloc(1, sizeof *recording.dumps);
    recording.dumps->path = strdup("/elsewhere/jit-4190011.dump");
    recording.dumps->pid = 4190011;
    recording.dump_count = 1;
    assert_null(left_over_unmapped_dump(&recording, 4190011, &request)); /* it has mapped one */
    /* Below the root, too, what is the run's goes. */
    growing_recording_add_pid(&recording, 4190013);
    left_over_remove(&recording, &request);
    assert_false(is_there(scratch, "tmp/jit-4190013.dump"));
    growing_recording_free(&recording);
}

/* ---- The run's folder ---- */

/* A run in a run: its dumps are the outer one's, unless they are to be kept. */
static void test_folder_in_a_folder(void **state)
{
    struct run_folder outer, inner, kept;
    struct findings findings = {0};
    (void)state;
    setenv("TMPDIR", scratch, 1);
    unsetenv("JITDUMPDIR");
    assert_int_equal(run_folder_make(&outer, NULL, false, &findings), 0);
    assert_null(run_folder_outer());
    setenv("JITDUMPDIR", outer.dumps, 1);
    char *found = run_folder_outer();
    assert_string_equal(found, outer.dumps);
    free(found);
    assert_int_equal(run_folder_make(&inner, NULL, false, &findings), 0);
    assert_int_equal(run_folder_make(&kept, NULL, true, &findings), 0);
    assert_memory_equal(inner.path, outer.dumps, strlen(outer.dumps));
    assert_null(strstr(kept.path, outer.path));
    make_file(inner.dumps, "jit-1.dump");
    char *dumps = strdup(inner.dumps), *kept_path = strdup(kept.path);
    run_folder_remove(&inner, false);
    assert_true(is_there(dumps, "jit-1.dump"));
    run_folder_remove(&outer, false);
    assert_int_equal(access(dumps, F_OK), -1);
    assert_null(run_folder_outer()); /* it has ended */
    run_folder_remove(&kept, true);
    assert_int_equal(access(kept_path, F_OK), 0);
    free(dumps);
    free(kept_path);
    unsetenv("JITDUMPDIR");
}

/* Of a dump there perf would not hear: it is mapped executable. */
static _Noreturn void child_makes_a_folder_on_noexec(void)
{
    struct run_folder made;
    struct findings findings = {0};
    char path[160];
    snprintf(path, sizeof path, "%s/noexec", scratch);
    enter_own_disk(path, MS_NOEXEC, "size=1m");
    setenv("TMPDIR", path, 1);
    CHECK(run_folder_make(&made, NULL, false, &findings) == 0);
    CHECK(strncmp(made.path, "/tmp/perfjit-", 13) == 0);
    run_folder_remove(&made, false);
    unsetenv("TMPDIR");
    mount_in_memory("/tmp", MS_NOEXEC, "size=1m");
    mount_in_memory("/var/tmp", MS_NOEXEC, "size=1m");
    mount_in_memory("/mnt", 0, "size=1m");
    CHECK(chdir("/mnt") == 0 && run_folder_make(&made, NULL, false, &findings) == 0);
    CHECK(strncmp(made.path, "/mnt/perfjit-", 13) == 0);
    run_folder_remove(&made, false);
    CHECK(chdir("/tmp") == 0);
    CHECK(run_folder_make(&made, NULL, false, &findings) == 0);
    CHECK(strncmp(made.path, "/tmp/perfjit-", 13) == 0); /* there is no other place */
    run_folder_remove(&made, false);
    _exit(0);
}

static void test_folder_where_dumps_can_be_mapped(void **state)
{
    char path[160];
    (void)state;
    snprintf(path, sizeof path, "%s/noexec", scratch);
    if (mkdir(path, 0700))
        assert_int_equal(errno, EEXIST);
    unsetenv("JITDUMPDIR");
    pid_t child = fork();
    if (child == 0)
        child_makes_a_folder_on_noexec();
    const int status = wait_for(child);
    if (status == NOT_PERMITTED)
        skip();
    assert_int_equal(status, 0);
}

/* Below a root the command sees its paths from there. */
static void test_folder_below_a_root(void **state)
{
    struct run_folder made;
    struct runtime_environment environment;
    struct findings findings = {0};
    char path[160];
    (void)state;
    setenv("TMPDIR", "/no/such", 1);
    unsetenv("PHP_INI_SCAN_DIR");
    snprintf(path, sizeof path, "%s/tmp", scratch);
    if (mkdir(path, 0700))
        assert_int_equal(errno, EEXIST);
    assert_int_equal(run_folder_make(&made, scratch, false, &findings), 0);
    assert_int_equal(strncmp(made.path, path, strlen(path)), 0);
    assert_string_equal(run_folder_seen(&made, made.dumps), made.dumps + strlen(scratch));
    assert_int_equal(runtime_environment_begin(&environment, (char *[]){"php", NULL}, &made, false),
                     0);
    runtime_environment_add(&environment, runtime_named("php"));
    const char *set = runtime_environment_value(&environment, "PHP_INI_SCAN_DIR");
    assert_int_equal(strncmp(set, "/tmp/perfjit-", 13), 0);
    assert_null(strstr(set, scratch));
    runtime_environment_free(&environment);
    run_folder_remove(&made, false);
    assert_int_equal(run_folder_make(&made, "/no/such/root", false, &findings), -1);
    run_folder_remove(&made, false);
}

static void test_folder_with_separators(void **state)
{
    struct run_folder made;
    struct findings findings = {0};
    char path[200];
    (void)state;
    for (const char *mark = ":\" '"; *mark; mark++) {
        snprintf(path, sizeof path, "%s/a%cb", scratch, *mark);
        assert_int_equal(mkdir(path, 0700), 0);
        setenv("TMPDIR", path, 1);
        assert_int_equal(run_folder_make(&made, NULL, false, &findings), 0);
        assert_int_equal(strncmp(made.path, "/tmp/perfjit-", 13), 0);
        run_folder_remove(&made, false);
    }
}

static void test_folder(void **state)
{
    struct run_folder made;
    struct findings findings = {0};
    char path[200], link[200];
    (void)state;
    setenv("TMPDIR", scratch, 1);
    assert_int_equal(run_folder_make(&made, NULL, false, &findings), 0);
    assert_int_equal(run_folder_settle(&made, runtime_named("php"), &findings), 0);
    snprintf(path, sizeof path, "%s/php-last/perfjit.ini", made.settings);
    assert_int_equal(access(path, R_OK), 0);
    make_file(scratch, "precious");
    snprintf(link, sizeof link, "%s/away", made.dumps);
    assert_int_equal(symlink(scratch, link), 0);
    snprintf(path, sizeof path, "%s", made.path);
    run_folder_remove(&made, false);
    assert_int_equal(access(path, F_OK), -1);
    assert_true(is_there(scratch, "precious"));
    setenv("TMPDIR", "/no/such", 1);
    assert_int_equal(run_folder_make(&made, NULL, false, &findings), -1);
    assert_non_null(strstr(findings.failure, "TMPDIR says where"));
    run_folder_remove(&made, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_a_value_with_a_space_is_told_in_quotes),
        cmocka_unit_test(test_own_values),
        cmocka_unit_test(test_argument),
        cmocka_unit_test(test_own_argument),
        cmocka_unit_test(test_wrapped),
        cmocka_unit_test(test_wrapped_own_values),
        cmocka_unit_test(test_stand_in),
        cmocka_unit_test(test_folder_in_a_folder),
        cmocka_unit_test(test_folder_where_dumps_can_be_mapped),
        cmocka_unit_test(test_event),
        cmocka_unit_test(test_growing),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_left_over),
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_unmapped_dump),
        cmocka_unit_test(test_quoted_words),
        cmocka_unit_test(test_empty_scan_dir),
        cmocka_unit_test(test_folder_with_separators),
        cmocka_unit_test(test_folder_below_a_root),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
