/* See perf_input.h. */
#include "injector/recording/perf_data/perf_input.h"

#include "injector/files/input_guard.h"
#include "injector/recording/perf_data/deferred_chains.h"
#include "injector/recording/perf_data/perf_directory.h"
#include "injector/recording/perf_data/perf_format.h"
#include "injector/recording/perf_data/perf_pipe.h"
#include "injector/recording/perf_data/perf_record.h"
#include "injector/recording/perf_data/perf_unzip.h"
#include "injector/recording/perf_data/record_times.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Put MEMORY in the place of INPUT's present bytes. */
static int replace(struct perf_input *input, struct memory_file *memory, const char *path,
                   struct findings *findings)
{
    perf_file_close(&input->file);
    memory_file_free(&input->memory);
    input->memory = *memory;
    return perf_file_view(&input->file, path, memory->data, memory->size, findings);
}

/* Enough to tell a recording from an endless file such as /dev/zero. */
static int read_start(struct memory_file *stream, int fd)
{
    uint8_t *room = memory_file_room(stream, PERF_PIPE_HEADER_BYTES);
    ssize_t count = 1;
    while (room && stream->size < PERF_PIPE_HEADER_BYTES && count != 0) {
        count = read(fd, room + stream->size, PERF_PIPE_HEADER_BYTES - stream->size);
        if (count < 0 && errno != EINTR)
            return -1;
        if (count > 0)
            memory_file_grow(stream, (size_t)count);
    }
    return room ? 0 : -1;
}

/* Whether a recording, of either byte order, may begin with the SIZE bytes of DATA. */
static bool may_be_recording(const uint8_t *data, size_t size)
{
    return size >= PERF_PIPE_HEADER_BYTES &&
           (memcmp(data, "PERFILE2", 8) == 0 || memcmp(data, "2ELIFREP", 8) == 0);
}

static int read_stream(struct perf_input *input, const char *path, int fd,
                       struct findings *findings)
{
    struct memory_file stream = {0}, file = {0};
    struct stat status;
    if (fstat(fd, &status) == 0)
        input_guard_input(&status);
    if (read_start(&stream, fd) ||
        (may_be_recording(stream.data, stream.size) && memory_file_read(&stream, fd))) {
        memory_file_free(&stream);
        return report_failure(findings, "%s: can't read it: %s", path, strerror(errno));
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

static int open_directory(struct perf_input *input, const char *path, struct findings *findings)
{
    input->directory_data = perf_directory_data(path);
    if (!input->directory_data)
        return report_failure(findings, "out of memory");
    if (access(input->directory_data, F_OK))
        return report_failure(
            findings,
            "%s: is a directory, but not a recording of perf record --threads or --kcore: "
            "there is no file 'data' in it; name the recording with -i FILE",
            path);
    return perf_file_open(&input->file, input->directory_data, findings);
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
    if (perf_directory_is(path))
        return open_directory(input, path, findings);
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

/* What of FILE is to be taken in before its records can be read. */
struct folds {
    bool compressed, defers;
};

/* The feature is only in the header of a recording that ended normally, and not each attribute that
 * defers need be there: the records show both in any case. */
static struct folds find_folds(const struct perf_file *file)
{
    struct perf_walk walk = perf_walk_begin(file);
    struct perf_record record;
    struct folds found = {perf_file_has_feature(file, PERF_FEATURE_COMPRESSED),
                          deferred_chains_expected(file)};
    while (!(found.compressed && found.defers) && perf_walk_next(&walk, &record, NULL)) {
        if (record.type == PERF_RECORD_COMPRESSED || record.type == PERF_RECORD_COMPRESSED2)
            found.compressed = true;
        if (record.type == PERF_RECORD_CALLCHAIN_DEFERRED)
            found.defers = true;
    }
    return found;
}

/* Make one plain file of all that PATH names. */
static int make_plain(struct perf_input *input, struct perf_plain *plain, const char *path,
                      struct findings *findings)
{
    struct perf_features features = input->file.features;
    perf_features_remove(&features, PERF_FEATURE_COMPRESSED);
    perf_features_remove(&features, PERF_FEATURE_DIR_FORMAT);
    plain->without_rounds = input->directory_data != NULL;
    if (perf_plain_begin_like(plain, &input->file))
        return report_failure(findings, "out of memory");
    if (perf_unzip(plain, &input->file, findings) ||
        (input->directory_data && perf_directory_add(plain, path, findings)))
        return -1;
    return perf_plain_end(plain, &features) ? report_failure(findings, "out of memory") : 0;
}

/* Put PLAIN in the place of the opened file, unless MADE is a failure.  PLAIN is released. */
static int take_plain(struct perf_input *input, struct perf_plain *plain, int made,
                      const char *path, struct findings *findings)
{
    if (!made) {
        made = replace(input, &plain->file, path, findings);
        plain->file = (struct memory_file){0};
    }
    perf_plain_free(plain);
    return made;
}

/* Put a plain file in the place of the opened one, if that is none. */
static int unfold(struct perf_input *input, const char *path, struct findings *findings)
{
    struct perf_plain plain = {0}, timed = {0}, whole = {0};
    struct folds folds = find_folds(&input->file);
    if (input->directory_data || input->file.scattered || folds.compressed) {
        int made = make_plain(input, &plain, path, findings);
        if (take_plain(input, &plain, made, input->directory_data ? path : input->file.path,
                       findings))
            return -1;
        folds = find_folds(&input->file);
    }
    if (input->file.untimed &&
        take_plain(input, &timed, record_times_give(&timed, &input->file, findings),
                   input->file.path, findings))
        return -1;
    if (!folds.defers)
        return 0;
    return take_plain(input, &whole, deferred_chains_join(&whole, &input->file, findings),
                      input->file.path, findings);
}

/* Also of a pipe, which has the time of the last write.  Returns 0 if it can't be known. */
static uint64_t written_ns(const struct perf_input *input, const char *path)
{
    struct stat status;
    const char *file = input->directory_data ? input->directory_data : path;
    if (strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, &status) : stat(file, &status))
        return 0;
    return (uint64_t)status.st_mtim.tv_sec * 1000000000 + (uint64_t)status.st_mtim.tv_nsec;
}

int perf_input_open(struct perf_input *input, const char *path, struct findings *findings)
{
    *input = (struct perf_input){0};
    if (open_any(input, path, findings) || unfold(input, path, findings))
        return -1;
    input->file.written_ns = written_ns(input, path);
    return 0;
}

int perf_input_view(struct perf_input *input, const char *path, const uint8_t *data, size_t size,
                    struct findings *findings)
{
    const struct memory_file stream = {(uint8_t *)(uintptr_t)data, size, size}; /* only read */
    struct memory_file file = {0};
    *input = (struct perf_input){0};
    if (!perf_pipe_is(data, size))
        return perf_file_view(&input->file, path, data, size, findings)
                   ? -1
                   : unfold(input, path, findings);
    if (perf_pipe_to_file(&file, &stream, path, findings)) {
        memory_file_free(&file);
        return -1;
    }
    return replace(input, &file, path, findings) ? -1 : unfold(input, path, findings);
}

void perf_input_close(struct perf_input *input)
{
    perf_file_close(&input->file);
    memory_file_free(&input->memory);
    free(input->directory_data);
}
