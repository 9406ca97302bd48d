/* What a command is: its runtime by name, link, script and library, and what wrappers run. */
#include "injector/run/program/program.h"
#include "injector/run/program/start_place.h"

#include "tests/unit/scratch.h"

#include <errno.h>
#include <fcntl.h>

/* ---- What a command is ---- */

static void assert_called(const char *program, const char *runtime)
{
    const struct runtime *found = runtime_of_program(program);
    if (runtime ? !found || strcmp(found->name, runtime) : found != NULL)
        fail_msg("%s: %s", program, found ? found->name : "none");
}

static void test_names(void **state)
{
    (void)state;
    assert_called("node", "node");
    assert_called("nodejs", "node");
    assert_called("npx", "node");
    assert_called("python", "python");
    assert_called("python3", "python");
    assert_called("python3.13", "python");
    assert_called("python3.13t", "python");
    assert_called("php8.2", "php");
    assert_called("php-fpm8.2", "php");
    assert_called("lli-14", "lli");
    assert_called("java", "java");
    assert_called("beam.smp", "erl");
    assert_called("qemu-aarch64-static", "qemu");
    assert_called("nodemon", NULL);
    assert_called("noded", NULL);
    assert_called("javap", NULL);
    assert_called("sh", NULL);
    assert_called("", NULL);
}

static void make_program(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0755), 0);
}

/* The program NAME in the scratch directory is a RUNTIME. */
static void assert_is(const char *name, const char *runtime)
{
    struct program program;
    struct findings findings = {0};
    char path[128];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    assert_int_equal(program_find(&program, path, &findings), 0);
    if (runtime ? !program.runtime || strcmp(program.runtime->name, runtime)
                : program.runtime != NULL)
        fail_msg("%s: %s", name, program.runtime ? program.runtime->name : "none");
    program_free(&program);
}

static void test_scripts_and_links(void **state)
{
    char target[128], link[128];
    (void)state;
    make_program("one", "#!/usr/bin/node\n");
    make_program("two", "#!/usr/bin/env node\n");
    make_program("three", "#! /usr/bin/env -S NODE_ENV=test python3.12 -u\r\n");
    make_program("four", "#!/bin/sh\nnode x.js\n");
    make_program("five", "#!");
    make_program("six", "");
    make_program("php8.2", "");
    assert_is("one", "node");
    assert_is("two", "node");
    assert_is("three", "python");
    assert_is("four", NULL);
    assert_is("five", NULL);
    assert_is("six", NULL);
    snprintf(target, sizeof target, "%s/php8.2", scratch);
    snprintf(link, sizeof link, "%s/linked", scratch);
    assert_int_equal(symlink(target, link), 0);
    assert_is("linked", "php");
}

/* This program needs libelf, and no runtime's library. */
static void test_libraries(void **state)
{
    struct program program;
    struct findings findings = {0};
    (void)state;
    assert_string_equal(runtime_of_library("libjvm.so")->name, "java");
    assert_string_equal(runtime_of_library("libpython3.13.so.1.0")->name, "python");
    assert_null(runtime_of_library("libc.so.6"));
    assert_int_equal(program_find(&program, "/proc/self/exe", &findings), 0);
    assert_null(program.runtime);
    program_free(&program);
}

static void assert_not_found(const char *name, const char *text)
{
    struct program program;
    struct findings findings = {0};
    assert_int_equal(program_find(&program, name, &findings), -1);
    if (!strstr(findings.failure, text))
        fail_msg("%s: %s", name, findings.failure);
    program_free(&program);
}

static void test_no_program(void **state)
{
    (void)state;
    write_scratch("x", 1);
    assert_not_found("no-such-command-here", "there is no such command");
    assert_not_found("/no/such", "there is no such command");
    assert_not_found(scratch, "is a directory");
    assert_not_found(scratch_file, "Permission denied");
}

/* ---- Wrappers ---- */

/* Words of LINE, split at spaces. */
static char **words_of(const char *line)
{
    static char copy[256], *words[32];
    char *rest = NULL;
    size_t count = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    words[count] = NULL;
    return words;
}

static void assert_wrapped(const char *line, size_t at, size_t assignments)
{
    struct wrapped_command command = wrapped_command_of(words_of(line));
    if (command.at != at || command.behind_assignments != assignments)
        fail_msg("%s: %zu, %zu", line, command.at, command.behind_assignments);
}

static void test_wrappers(void **state)
{
    (void)state;
    assert_wrapped("node x.js", 0, 0);
    assert_wrapped("env", 0, 0);
    assert_wrapped("env node", 1, 1);
    assert_wrapped("/usr/bin/env -i A=1 B= node x.js", 4, 4);
    assert_wrapped("env - A=1 node", 3, 3);
    assert_wrapped("env -u NODE_OPTIONS -uB --unset C --chdir=/ -- A=1 node", 9, 9);
    assert_wrapped("env -S node", 0, 0);
    assert_wrapped("env -iS node", 0, 0);
    assert_wrapped("env -vSnode A=1 x", 0, 0);
    assert_wrapped("env -uS node", 2, 2);
    assert_wrapped("env -iu S node", 3, 3);
    assert_wrapped("nice node", 1, 0);
    assert_wrapped("nice -n 5 node", 3, 0);
    assert_wrapped("nice -n5 node", 2, 0);
    assert_wrapped("nice -5 node", 2, 0);
    assert_wrapped("timeout 5 node", 2, 0);
    assert_wrapped("timeout -v -k 3 --signal=INT 5 node", 6, 0);
    assert_wrapped("timeout 5", 0, 0);
    assert_wrapped("nohup setsid -w stdbuf -oL node", 5, 0);
    assert_wrapped("taskset -c 0-3 node", 3, 0);
    assert_wrapped("sudo -n -u www A=1 node", 5, 5);
    assert_wrapped("sudo nice env -u A node", 5, 5);
    assert_wrapped("sudo env -S node", 1, 1);
    assert_wrapped("numactl --membind 0 -C 1 node", 5, 0);
    assert_wrapped("env -u", 0, 0);
    assert_wrapped("setarch x86_64 -R node", 3, 0);
    assert_wrapped("setarch -R node", 2, 0);
    assert_wrapped("linux64 --verbose node", 2, 0);
    assert_wrapped("unshare -pf --mount-proc --setgroups deny -w / node", 7, 0);
    assert_wrapped("chroot --userspec www:www /srv node", 4, 0);
    assert_wrapped("runuser -u www -- node", 4, 0);
    assert_wrapped("runuser --user=www node", 2, 0);
    assert_wrapped("runuser www -c node", 0, 0);
    assert_wrapped("runuser -l www", 0, 0);
    assert_wrapped("su www -c node", 0, 0);
    assert_wrapped("setpriv --reuid www --regid=www --clear-groups node", 5, 0);
    assert_wrapped("nsenter -t 1 -m/proc/1/ns/mnt -S 33 -r node", 7, 0);
    assert_wrapped("gosu www:www node", 2, 0);
    assert_wrapped("chpst -u www -m 1000 -v node", 6, 0);
    assert_wrapped("dumb-init -c -- prlimit --nofile=9 choom -n 1 -- node", 9, 0);
    assert_wrapped("gosu", 0, 0);
}

static void assert_start(const char *line, const char *user, const char *directory,
                         const char *root)
{
    const struct wrapped_command command = wrapped_command_of(words_of(line));
    const char *const found[] = {command.user, command.directory, command.root};
    const char *const wanted[] = {user, directory, root};
    for (size_t i = 0; i < 3; i++)
        if (!found[i] != !wanted[i] || (found[i] && strcmp(found[i], wanted[i])))
            fail_msg("%s: %s, not %s", line, found[i], wanted[i]);
}

static void test_start(void **state)
{
    (void)state;
    assert_start("node x.js -u www", NULL, NULL, NULL);
    assert_start("env -C /srv node", NULL, "/srv", NULL);
    assert_start("env --chdir=/srv node", NULL, "/srv", NULL);
    assert_start("sudo node", "root", NULL, NULL);
    assert_start("sudo -nu www -D /srv A=1 node", "www", "/srv", NULL);
    assert_start("sudo --user www node", "www", NULL, NULL);
    assert_start("sudo -uwww env -C / nice node", "www", "/", NULL);
    assert_start("doas node", "root", NULL, NULL);
    assert_start("doas -u www node", "www", NULL, NULL);
    assert_start("runuser -u www -- node", "www", NULL, NULL);
    assert_start("runuser www -c node", "www", NULL, NULL);
    assert_start("nice runuser -s /bin/sh www -c node", "www", NULL, NULL);
    assert_start("su -c node www", "www", NULL, NULL);
    assert_start("su -c node", "root", NULL, NULL);
    assert_start("su - www -c node", NULL, NULL, NULL);
    assert_start("su --login www -c node", NULL, NULL, NULL);
    assert_start("setpriv --reuid 33 --regid=33 --clear-groups node", "33", NULL, NULL);
    assert_start("setpriv --euid 33 --egid=33 node", "33", NULL, NULL);
    assert_start("setpriv --ruid 33 node", NULL, NULL, NULL);
    assert_start("unshare -S 33 --setgid=33 node", "33", NULL, NULL);
    assert_start("unshare -rS 33 node", NULL, NULL, NULL);
    assert_start("unshare --map-root-user --setuid 33 node", NULL, NULL, NULL);
    assert_start("sudo -u www unshare -U -S 33 node", "www", NULL, NULL);
    assert_start("nsenter -t 1 -m -S 33 node", "33", NULL, NULL);
    assert_start("nsenter -t 1 -mU -S 33 node", "33", NULL, NULL); /* U is of the file's name */
    assert_start("nsenter -t 1 -aS 33 node", NULL, NULL, NULL);
    assert_start("gosu www:adm node", "www:adm", NULL, NULL);
    assert_start("sudo su-exec www env node", "www", NULL, NULL);
    assert_start("s6-setuidgid www node", "www", NULL, NULL);
    assert_start("chpst -/ /srv -u www node", "www", "/", "/srv");
    assert_start("env -C /x chroot --userspec=www:www /srv node", "www:www", "/", "/srv");
    assert_start("unshare -R /srv -w /x node", NULL, "/x", "/srv");
    assert_true(wrapped_command_of(words_of("sudo -u www node")).with_groups);
    assert_true(wrapped_command_of(words_of("setpriv --reuid 33 --init-groups node")).with_groups);
    assert_false(wrapped_command_of(words_of("setpriv --reuid 33 node")).with_groups);
}

static void test_program_below_another_root(void **state)
{
    struct program program;
    struct findings findings = {0};
    (void)state;
    assert_int_equal(program_find_command(&program, words_of("chroot /srv erl99"), &findings), 0);
    assert_ptr_equal(program.runtime, runtime_named("erl"));
    assert_int_equal(program.command.at, 2);
    program_free(&program);
    assert_int_equal(program_find_command(&program, words_of("env erl99"), &findings), 0);
    assert_null(program.runtime);
    program_free(&program);
}

static void test_start_place(void **state)
{
    char directory[160];
    struct wrapped_command command = {0};
    (void)state;
    snprintf(directory, sizeof directory, "%s/start", scratch);
    assert_int_equal(mkdir(directory, 0700), 0);
    assert_int_equal(chmod(scratch, 0755), 0);
    assert_int_equal(start_place_error(&command, directory), 0);
    command.directory = directory;
    assert_int_equal(start_place_error(&command, NULL), 0);
    command.root = scratch;
    command.directory = "/start";
    assert_int_equal(start_place_error(&command, NULL), 0);
    command.directory = "/none";
    assert_int_equal(start_place_error(&command, NULL), ENOENT);
    command = (struct wrapped_command){.user = "no-such-user", .directory = "/none"};
    assert_int_equal(start_place_error(&command, NULL), 0); /* the wrapper itself will fail */
    command = (struct wrapped_command){.user = "12345:12345", .directory = directory};
    assert_int_equal(start_place_error(&command, NULL), geteuid() ? EPERM : EACCES);
    assert_int_equal(chmod(directory, 0777), 0);
    assert_int_equal(start_place_error(&command, NULL), geteuid() ? EPERM : 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(directory, 0, 54321), 0);
        assert_int_equal(chmod(directory, 0770), 0);
        assert_int_equal(start_place_error(&command, NULL), EACCES);
        command.group = "54321";
        assert_int_equal(start_place_error(&command, NULL), 0);
    }
    assert_int_equal(rmdir(directory), 0);
}

static void assert_copies(const char *line, bool copies)
{
    struct program program;
    struct findings findings = {0};
    assert_int_equal(program_find_command(&program, words_of(line), &findings), 0);
    if (program.copies_stacks != copies)
        fail_msg("%s: %d", line, program.copies_stacks);
    program_free(&program);
}

/* What is below a program that is none that is known. */
static void test_copied_stacks(void **state)
{
    (void)state;
    assert_copies("sh -c cd${IFS}x&&/opt/bin/python3.13;", true);
    assert_copies("sh run app/main.py", true);
    assert_copies("nice sh -c A=1|pytest", true);
    assert_copies("sh -c pythonic", false);
    assert_copies("sh run.sh", false);
    assert_copies("sh x.pyc .py", false);
    assert_null(program_of_process(getpid()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_scripts_and_links),
        cmocka_unit_test(test_libraries),
        cmocka_unit_test(test_no_program),
        cmocka_unit_test(test_wrappers),
        cmocka_unit_test(test_copied_stacks),
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_start_place),
        cmocka_unit_test(test_program_below_another_root),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
