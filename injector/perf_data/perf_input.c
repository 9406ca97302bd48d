/* See perf_input.h. */
#include "injector/perf_data/perf_input.h"

#include "injector/perf_data/perf_format.h"
#include "injector/perf_data/perf_pipe.h"
#include "injector/perf_data/perf_record.h"
#include "injector/perf_data/perf_unzip.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Put MEMORY in the place of what INPUT has been a view of. */
static int replace(struct perf_input *input, struct memory_file *memory, const char *path,
                   struct findings *findings)
{
    perf_file_close(&input->file);
    memory_file_free(&input->memory);
    input->memory = *memory;
    return perf_file_view(&input->file, path, memory->data, memory->size, findings);
}

static int read_stream(struct perf_input *input, const char *path, int fd,
                       struct findings *findings)
{
    struct memory_file stream = {0}, file = {0};
    if (memory_file_read(&stream, fd)) {
        memory_file_free(&stream);
        return failure(findings, "%s: can't read it: %s", path, strerror(errno));
    }
    if (!perf_pipe_is(stream.data, stream.size)) /* a file, through a pipe */
        return replace(input, &stream, path, findings);
    int result = perf_pipe_to_file(&file, &stream, path, findings);
    memory_file_free(&stream);
    if (result) {
        memory_file_free(&file);
        return -1;
    }
    return replace(input, &file, path, findings);
}

/* Whether PATH can be read but once, or is a stream that was saved. */
static bool is_stream(int fd)
{
    struct stat status;
    uint8_t header[PERF_PIPE_HEADER_BYTES];
    if (fstat(fd, &status) == 0 && !S_ISREG(status.st_mode))
        return S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || S_ISCHR(status.st_mode);
    return pread(fd, header, sizeof header, 0) == sizeof header &&
           perf_pipe_is(header, sizeof header);
}

static int open_any(struct perf_input *input, const char *path, struct findings *findings)
{
    if (strcmp(path, "-") == 0)
        return read_stream(input, "standard input", STDIN_FILENO, findings);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int result;
    if (fd >= 0 && is_stream(fd))
        result = read_stream(input, path, fd, findings);
    else
        result = perf_file_open(&input->file, path, findings);
    if (fd >= 0)
        close(fd);
    return result;
}

/* The feature is only in the header of a recording that came to its end: the records tell in any case. */
static bool is_compressed(const struct perf_file *file)
{
    struct perf_walk walk = perf_walk_begin(file);
    struct perf_record record;
    struct findings ignored = {.quiet = true};
    bool found = perf_file_has_feature(file, PERF_FEATURE_COMPRESSED);
    while (!found && perf_walk_next(&walk, &record, &ignored))
        found = record.type == PERF_RECORD_COMPRESSED || record.type == PERF_RECORD_COMPRESSED2;
    findings_free(&ignored);
    return found;
}

int perf_input_open(struct perf_input *input, const char *path, struct findings *findings)
{
    struct memory_file plain = {0};
    *input = (struct perf_input){0};
    if (open_any(input, path, findings))
        return -1;
    if (!is_compressed(&input->file))
        return 0;
    if (perf_unzip(&plain, &input->file, findings)) {
        memory_file_free(&plain);
        return -1;
    }
    return replace(input, &plain, input->file.path, findings);
}

void perf_input_close(struct perf_input *input)
{
    perf_file_close(&input->file);
    memory_file_free(&input->memory);
}
