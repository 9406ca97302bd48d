/* glibc's dlopen and getpwuid load shared libraries into a static program: those of the machine
 * that it runs on, which were made for another glibc.  These load none, and take their place in the
 * static command (make static). */
#include <dlfcn.h>
#include <pwd.h>
#include <stdio.h>

void *__wrap_dlopen(const char *file, int mode);

/* libdw asks for libdebuginfod, and goes on without it.  glibc's own start needs the object file
 * that defines dlopen: hence --wrap. */
void *__wrap_dlopen(const char *file, int mode)
{
    (void)file, (void)mode;
    return NULL;
}

/* The users of other services than /etc/passwd have no names here. */
struct passwd *getpwuid(uid_t uid)
{
    FILE *file = fopen("/etc/passwd", "re");
    struct passwd *user = NULL;
    if (!file)
        return NULL;
    do
        user = fgetpwent(file);
    while (user && user->pw_uid != uid);
    fclose(file);
    return user;
}
