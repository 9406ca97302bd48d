/* See open_options.h. */
#include "jitdump/handle/open_options.h"
#include "jitdump/format/dump_clock.h"
#include "jitdump/guest/environment_word.h"
#include "jitdump/guest/sized_struct.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define JD_FLAGS                                                                                   \
    (JITDUMP_ALWAYS | JITDUMP_TSC | JITDUMP_UNMAPPED | JITDUMP_ATTACHABLE | JITDUMP_RING)

int jd_options_read(struct jitdump_options *options, const struct jitdump_options *given)
{
    *options = (struct jitdump_options)JITDUMP_OPTIONS_INIT;
    if (!given)
        return 0;
    int error = sized_struct_read(options, sizeof *options, given, given->size, sizeof given->size);
    if (error)
        *options = (struct jitdump_options)JITDUMP_OPTIONS_INIT;
    else if (options->flags & ~JD_FLAGS)
        error = -EINVAL;
    else if (options->max_bytes && options->max_bytes < JD_FILE_LEAST_BYTES)
        error = -EINVAL;
    else if (options->flags & JITDUMP_RING && options->max_bytes < JD_RING_LEAST_BYTES)
        error = -EINVAL;
    return error;
}

/* ---- The environment ---- */

/* The size that follows "ring=" in PERFJIT, in bytes, into *BYTES.  Returns 0 if there is none, 1,
 * or -1 if it is no size. */
static int environment_ring(uint64_t *bytes)
{
    static const char name[] = "ring=", units[] = "KMG";
    const char *word = secure_getenv("PERFJIT"), *unit;
    while (word && strncmp(word, name, sizeof name - 1) != 0) {
        word = strchr(word, ',');
        word = word ? word + 1 : NULL;
    }
    if (!word)
        return 0;
    char *end;
    word += sizeof name - 1;
    errno = 0;
    *bytes = strtoull(word, &end, 10);
    unsigned shift = 0;
    if (*end && (unit = strchr(units, *end)) != NULL) {
        shift = 10 * (unsigned)(unit - units + 1);
        end++;
    }
    if (*word < '0' || *word > '9' || errno || (*end && *end != ',') ||
        *bytes > UINT64_MAX >> shift)
        return -1;
    *bytes <<= shift;
    return *bytes < JD_RING_LEAST_BYTES ? -1 : 1;
}

static void read_ring(struct dump_kind *kind, const struct jitdump_options *options)
{
    bool in_environment = environment_ring(&kind->max_bytes) > 0;
    kind->ring = in_environment || options->flags & JITDUMP_RING;
    if (!in_environment)
        kind->max_bytes = options->max_bytes;
}

int jd_options_check_words(struct first_error *error)
{
    size_t length;
    uint64_t ring_bytes;
    const char *word = environment_unknown(&length);
    bool wrong_ring = environment_ring(&ring_bytes) < 0;
    if (!word && !wrong_ring)
        return 0;
    if (!error)
        return -EINVAL;
    if (!word)
        return jd_error_keep(error, -EINVAL,
                             "PERFJIT: after ring= comes the size of the dump, 4M or more: "
                             "PERFJIT=dump,ring=64M");
    return jd_error_keep(
        error, -EINVAL,
        "PERFJIT: \"%.*s\" is no word that this version knows: attach, check, dump, "
        "gdb, map, ring=SIZE, unmapped, with commas between them",
        length < 100 ? (int)length : 100, word);
}

/* ---- What they ask for ---- */

bool jd_options_want_dump(const struct jitdump_options *options)
{
    return options->flags & JITDUMP_ALWAYS || environment_has("dump");
}

bool jd_options_want_check(void)
{
    return environment_has("check");
}

bool jd_options_can_be_asked(const struct jitdump_options *options)
{
    return (options->flags & JITDUMP_ATTACHABLE && !getauxval(AT_SECURE)) ||
           environment_has("attach");
}

static uint32_t this_programs_elf_mach(void)
{
#if defined(__x86_64__)
    return EM_X86_64;
#elif defined(__i386__)
    return EM_386;
#elif defined(__aarch64__)
    return EM_AARCH64;
#elif defined(__arm__)
    return EM_ARM;
#elif defined(__riscv)
    return EM_RISCV;
#elif defined(__powerpc64__)
    return EM_PPC64;
#elif defined(__s390x__)
    return EM_S390;
#elif defined(__loongarch__)
    return 258; /* EM_LOONGARCH, which elf.h has since glibc 2.36 */
#elif defined(__mips__)
    return EM_MIPS;
#else
    return EM_NONE;
#endif
}

int jd_options_kind(struct dump_kind *kind, const struct jitdump_options *options,
                    struct first_error *error)
{
    kind->elf_mach = options->elf_mach ? options->elf_mach : this_programs_elf_mach();
    kind->counter = options->flags & JITDUMP_TSC;
    kind->unmapped = options->flags & JITDUMP_UNMAPPED || environment_has("unmapped");
    read_ring(kind, options);
    if (kind->counter && !jd_clock_has_counter())
        return jd_error_keep(error, -EOPNOTSUPP,
                             "JITDUMP_TSC: this machine has no such counter; leave it out, and "
                             "record with perf record -k mono");
    return 0;
}

char *jd_options_dir(const char *dir)
{
    char *absolute;
    if (!dir || !*dir)
        dir = secure_getenv("JITDUMPDIR");
    if (dir && *dir == '/')
        return strdup(dir);
    char *current = getcwd(NULL, 0);
    if (!current || !dir || !*dir)
        return current;
    if (asprintf(&absolute, "%s/%s", current, dir) < 0)
        absolute = NULL;
    free(current);
    return absolute;
}
