/* Users, roots and environments that a runtime may have while a dump or a map is open, or is to be
 * opened: dropped privileges, chroot, umask, directories that are none, a set-user-ID program.  The
 * same cases for libjitdump and libperfmap. */
#include "tests/unit/either_library.h"
#include "tests/unit/own_namespaces.h"

#include <grp.h>
#include <sys/auxv.h>

enum { STRANGER = 12345 };

/* ---- Other users, other roots ---- */

static void become_a_stranger(void)
{
    CHECK(setgroups(0, NULL) == 0);
    CHECK(setresgid(STRANGER, STRANGER, STRANGER) == 0);
    CHECK(setresuid(STRANGER, STRANGER, STRANGER) == 0);
}

static void add_many(void *handle)
{
    for (int i = 0; i < MANY; i++)
        CHECK(library->add(handle, "behind") == 0);
    CHECK(library->lost(handle) == 0);
}

/* In a child for which there is no place: an error, a text, and nothing else. */
static void child_has_no_place(void *handle)
{
    int error = library->add(handle, "of the child");
    CHECK(error == -EACCES || error == -ENOENT);
    CHECK(strstr(library->error(handle), dir) && library->lost(handle) == 1);
    CHECK(library->add(handle, "of the child") == error);
    library->close(handle);
}

static void child_drops_privileges(void *handle)
{
    if (geteuid() != 0)
        _exit(NOT_PERMITTED);
    handle = opened();
    CHECK(library->add(handle, "before") == 0);
    become_a_stranger();
    add_many(handle);
    CHECK(wait_for(start_child(child_has_no_place, handle)) == 0);
    CHECK(library->close(handle) == 0);
}

static void test_privileges_are_dropped(void **state)
{
    (void)state;
    assert_child_may(child_drops_privileges, "only root can become another user");
}

/* The parent's directory may be written by all, and the child's file is the new user's. */
static void child_of_another_user(void *handle)
{
    struct stat status;
    become_a_stranger();
    CHECK(library->add(handle, "of the child") == 0);
    CHECK(library->close(handle) == 0);
    CHECK(lstat(path, &status) == 0 && status.st_uid == STRANGER);
    CHECK((status.st_mode & 07777) == 0600 && has_name(path, "of the child"));
}

static void child_forks_for_another_user(void *handle)
{
    if (geteuid() != 0)
        _exit(NOT_PERMITTED);
    CHECK(chmod(dir, 01777) == 0);
    handle = opened();
    CHECK(wait_for(start_child(child_of_another_user, handle)) == 0);
    CHECK(library->close(handle) == 0);
}

static void test_child_of_another_user(void **state)
{
    (void)state;
    assert_child_may(child_forks_for_another_user, "only root can become another user");
}

static void child_changes_its_root(void *handle)
{
    char root[128];
    if (geteuid() != 0)
        enter_own_users(0);
    handle = opened();
    CHECK(library->add(handle, "before") == 0);
    snprintf(root, sizeof root, "%s/root", dir);
    CHECK(mkdir(root, 0700) == 0 && chroot(root) == 0 && chdir("/") == 0);
    add_many(handle);
    CHECK(wait_for(start_child(child_has_no_place, handle)) == 0);
    CHECK(library->close(handle) == 0);
}

static void test_chroot(void **state)
{
    char other[128];
    (void)state;
    pid_t child = start_child(child_changes_its_root, NULL);
    int result = wait_for(child);
    if (result == NOT_PERMITTED)
        skip_or_fail("only root can change its root");
    assert_int_equal(result, 0);
    path_of(other, dir, child);
    assert_true(has_name(other, "before") && has_name(other, "behind"));
}

/* ---- The environment ---- */

static void test_umask(void **state)
{
    static const mode_t masks[] = {0, 022, 077, 0177, 0777};
    (void)state;
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        mode_t before = umask(masks[i]);
        void *handle = opened();
        umask(before);
        assert_int_equal(mode_of(path), 0600);
        assert_int_equal(library->close(handle), 0);
    }
}

static void assert_not_opened_in(const char *in)
{
    void *handle;
    int error = library->open(&handle, in, true);
    assert_true(error < 0);
    assert_non_null(handle);
    assert_true(strlen(library->error(handle)) > 0);
    assert_int_equal(library->add(handle, "nowhere"), error);
    assert_int_equal(library->lost(handle), 1);
    assert_int_equal(library->close(handle), error);
}

static void test_directories_that_are_none(void **state)
{
    char in_file[128], *longest = malloc(70000);
    (void)state;
    assert_non_null(longest);
    memset(longest, 'x', 69999);
    longest[69999] = '\0';
    snprintf(in_file, sizeof in_file, "%s/file", dir);
    close(open(in_file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    assert_not_opened_in(longest);
    memset(longest, '/', 5000); /* the root, in a way */
    longest[5000] = '\0';
    assert_not_opened_in(longest);
    assert_not_opened_in(in_file);
    assert_not_opened_in("/nowhere/\n\033[31m%s%n");
    free(longest);
}

/* A word that is asked for in a megabyte of others is found; in one of nonsense it is not. */
static void test_huge_environment(void **state)
{
    enum { BYTES = 1 << 20 };
    char *value = malloc(BYTES);
    void *handle = dir;
    (void)state;
    assert_non_null(value);
    memset(value, ',', BYTES - 1);
    value[BYTES - 1] = '\0';
    setenv("PERFJIT", value, 1);
    assert_int_equal(library->open(&handle, dir, false), 0);
    assert_null(handle);
    memcpy(value + BYTES - 1 - strlen(library->word), library->word, strlen(library->word));
    setenv("PERFJIT", value, 1);
    assert_int_equal(library->open(&handle, dir, false), 0);
    assert_non_null(handle);
    assert_int_equal(library->close(handle), 0);
    unsetenv("PERFJIT");
    free(value);
}

/* This program with another user's rights: the environment is that of whoever started it. */
static int run_with_rights(const char *word)
{
    void *handle = dir;
    library = &libraries[strcmp(word, "map") == 0];
    if (!getauxval(AT_SECURE))
        return NOT_PERMITTED; /* a file system mounted nosuid */
    CHECK(library->open(&handle, NULL, false) == 0);
    CHECK(handle == NULL);
    if (library == &libraries[0]) { /* JITDUMPDIR is not seen either: it goes here */
        CHECK(library->open(&handle, NULL, true) == 0);
        CHECK(strstr(jitdump_path(handle), "/here/jitdump-"));
        CHECK(library->close(handle) == 0);
    }
    return 0;
}

static void child_runs_with_rights(void *handle)
{
    char copy[128], here[128], command[1024];
    (void)handle;
    if (geteuid() != 0)
        _exit(NOT_PERMITTED);
    snprintf(copy, sizeof copy, "%s/with-rights", dir);
    snprintf(here, sizeof here, "%s/here", dir);
    snprintf(command, sizeof command, "cp %s %s && chmod 4755 %s", program, copy, copy);
    CHECK(chmod(dir, 0755) == 0 && system(command) == 0);
    CHECK(mkdir(here, 0777) == 0 && chmod(here, 0777) == 0 && chdir(here) == 0);
    setenv("PERFJIT", "dump,map", 1);
    setenv("JITDUMPDIR", dir, 1);
    become_a_stranger();
    execl(copy, copy, "with-rights", library->word, (char *)NULL);
    _exit(1);
}

static void test_set_user_id_program(void **state)
{
    (void)state;
    assert_child_may(child_runs_with_rights, "only root can make one, and not where nosuid is set");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        WITH_BOTH(test_privileges_are_dropped),
        WITH_BOTH(test_child_of_another_user),
        WITH_BOTH(test_chroot),
        WITH_BOTH(test_umask),
        WITH_BOTH(test_directories_that_are_none),
        WITH_BOTH(test_huge_environment),
        WITH_BOTH(test_set_user_id_program),
    };
    if (argc == 3 && strcmp(argv[1], "with-rights") == 0)
        _exit(run_with_rights(argv[2]));
    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
