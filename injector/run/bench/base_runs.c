/* See base_runs.h. */
#include "injector/run/bench/base_runs.h"

#include "injector/files/output_file.h"
#include "injector/profile/run_file.h"
#include "injector/run/bench/bench_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int copy_bytes(struct output_file *to, int from, const char *path, struct findings *findings)
{
    char bytes[1 << 15];
    ssize_t count;
    while ((count = read(from, bytes, sizeof bytes)) > 0 || (count < 0 && errno == EINTR))
        if (count > 0 && output_file_write(to, bytes, (size_t)count, findings))
            return -1;
    if (count < 0)
        return report_failure(findings, "%s: can't read it: %s", path, strerror(errno));
    return output_file_flush(to, findings) || output_file_commit(to, findings) ? -1 : 0;
}

/* Copy what is a run that can be read. */
static int copy_file(const char *from, const char *to, struct findings *findings)
{
    struct call_profile profile;
    struct output_file output = {.fd = -1};
    int result = run_file_read(&profile, from, RUN_PERIODS, findings);
    call_profile_free(&profile);
    if (result)
        return -1;
    int fd = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return report_failure(findings, "%s: can't read it: %s", from, strerror(errno));
    result =
        output_file_open_shared(&output, to, findings) || copy_bytes(&output, fd, from, findings);
    output_file_close(&output);
    close(fd);
    return result ? -1 : 0;
}

static int take_run(struct bench_list *list, const char *folder, const char *directory,
                    const struct bench_run *run, struct findings *findings)
{
    struct bench_run own = *run;
    char *from = bench_folder_file(directory, run->file, findings), *to = NULL;
    own.side = BENCH_BASE;
    if (asprintf(&own.file, "base-%03zu.run", bench_list_count(list, BENCH_BASE) + 1) < 0)
        own.file = NULL;
    else
        to = bench_folder_file(folder, own.file, findings);
    int result = !from || !to || copy_file(from, to, findings) || bench_list_add_run(list, &own)
                     ? report_failure(findings, "out of memory")
                     : 0;
    free(own.file);
    free(from);
    free(to);
    return result;
}

int base_runs_take(struct bench_list *list, const char *folder, const char *directory,
                   struct findings *findings)
{
    struct bench_list earlier;
    int result = bench_list_read(&earlier, directory, findings);
    enum bench_side side = bench_list_count(&earlier, BENCH_NEW) ? BENCH_NEW : BENCH_BASE;
    if (!result && !bench_list_count(&earlier, side))
        result = report_failure(findings, "%s: has no runs", directory);
    for (size_t i = 0; !result && i < earlier.facts[side].count; i++)
        if (bench_list_add_fact(list, BENCH_BASE, earlier.facts[side].items[i].key,
                                earlier.facts[side].items[i].value))
            result = report_failure(findings, "out of memory");
    for (size_t i = 0; !result && i < earlier.run_count; i++)
        if (earlier.runs[i].side == side)
            result = take_run(list, folder, directory, &earlier.runs[i], findings);
    bench_list_free(&earlier);
    return result;
}
