/* See recording_move.h.
 *
 *     FROM, FROM.dso/ID/jit-x86_64.so ─▶ TO, TO.dso/ID/jit-x86_64.so
 *
 * All is written under temporary names first.  The images get their names, then the recording, and
 * only then FROM is removed: whatever ends the run, one whole recording is there.
 */
#include "injector/inject/recording_move.h"

#include "injector/arrays/array.h"
#include "injector/check/census/kept_census.h"
#include "injector/files/full_write.h"
#include "injector/files/interruption.h"
#include "injector/files/output_file.h"
#include "injector/files/undo_list.h"
#include "injector/inject/image/dso_dir.h"
#include "injector/inject/image/earlier_result.h"
#include "injector/inject/merge/perf_rewrite.h"
#include "injector/inject/merge/renamed_record.h"
#include "injector/native/native_file.h"
#include "injector/recording/host/recording_host.h"
#include "injector/recording/injected_map.h"
#include "injector/recording/machine.h"
#include "injector/recording/perf_data/build_id_table.h"
#include "injector/recording/perf_data/perf_input.h"
#include "injector/text/file_name.h"
#include "injector/text/plural.h"
#include "injector/text/printable_text.h"
#include "injector/text/shell_word.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDER_CHARACTERS = 8 /* of a build-id: image_name.h */, PIECE_BYTES = 4096 };

/* An image that the recording names. */
struct moved_image {
    const char *name; /* in the recording */
    uint32_t map;     /* one of those that name it */
    char *source;     /* where it is */
    char *target;     /* where it will be */
};

struct move_run {
    const struct recording_move_options *options;
    char *from; /* its real path */
    char *to;
    bool in_place;
    mode_t mode;
    struct perf_input input;
    struct records records;
    struct native_files files;
    struct moved_image *images; /* by name */
    size_t image_count, image_capacity;
    struct memory_file build_ids;
    struct dso_dir dsos;
    struct output_file output;
    bool too_long; /* a record would be */
};

/* ---- Where it goes ---- */

static bool is_same(const char *path, const struct stat *file)
{
    struct stat status;
    return stat(path, &status) == 0 && status.st_dev == file->st_dev &&
           status.st_ino == file->st_ino;
}

/* Whether PATH.old, where what is at PATH is kept, is FILE. */
static bool is_kept_as(const char *path, const struct stat *file)
{
    char *old;
    if (access(path, F_OK) || asprintf(&old, "%s.old", path) < 0)
        return false;
    bool same = is_same(old, file);
    free(old);
    return same;
}

/* A directory stands for a file of the same name in it. */
static char *file_at(const char *to, const char *from)
{
    struct stat status;
    char *path;
    if (stat(to, &status) || !S_ISDIR(status.st_mode))
        return strdup(to);
    return asprintf(&path, "%s/%s", to, file_name_of(from)) < 0 ? NULL : path;
}

static int name_target(struct move_run *run, struct findings *findings)
{
    const struct recording_move_options *options = run->options;
    struct stat status;
    run->from = realpath(options->from, NULL);
    if (!run->from || stat(run->from, &status))
        return report_failure(findings, "%s: can't open it: %s", options->from, strerror(errno));
    run->to = options->to ? file_at(options->to, options->from) : strdup(run->from);
    if (!run->to)
        return report_failure(findings, "out of memory");
    run->mode = status.st_mode & 0777;
    char *real = realpath(run->to, NULL);
    run->in_place = real && strcmp(real, run->from) == 0;
    free(real);
    const char *wrong = output_file_obstacle(run->to);
    if (wrong)
        return report_failure(findings, "%s: can't write it: it is %s", run->to, wrong);
    if (!run->in_place && is_same(run->to, &status))
        return report_misuse(findings, "%s: is the same file as %s", run->to, options->from);
    if (!run->in_place && is_kept_as(run->to, &status))
        return report_misuse(findings,
                             "%s: what is there is to be kept as %s.old, which is what is moved: "
                             "name another place",
                             run->to, run->to);
    return 0;
}

/* ---- Which images there are ---- */

static int compare_images(const void *left, const void *right)
{
    const struct moved_image *a = left, *b = right;
    return strcmp(a->name, b->name);
}

static struct moved_image *find_image(const struct move_run *run, const char *name)
{
    const struct moved_image wanted = {.name = name};
    return run->image_count ? bsearch(&wanted, run->images, run->image_count, sizeof *run->images,
                                      compare_images)
                            : NULL;
}

/* Each once, though thousands of maps may name one. */
static int list_images(struct move_run *run, struct findings *findings)
{
    const char *last = "";
    size_t kept = 0;
    for (size_t i = 0; i < run->records.map_count; i++) {
        const char *name = run->records.maps[i].map.filename;
        if (strcmp(name, last) == 0 || !injected_image_is(name))
            continue;
        last = name;
        if (array_reserve(run->images, run->image_count, run->image_capacity))
            return report_failure(findings, "out of memory");
        run->images[run->image_count++] = (struct moved_image){.name = name, .map = (uint32_t)i};
    }
    if (run->image_count)
        qsort(run->images, run->image_count, sizeof *run->images, compare_images);
    for (size_t i = 0; i < run->image_count; i++)
        if (i == 0 || compare_images(&run->images[kept - 1], &run->images[i]) != 0)
            run->images[kept++] = run->images[i];
    run->image_count = kept;
    return kept ? 0
                : report_failure(findings,
                                 "%s: names no image of perfjit inject: mv moves it as well",
                                 run->options->from);
}

/* The name of the image NAME below its directory: with the folder of its build-id, if it has one.
 */
static const char *name_below(const char *name)
{
    const char *base = file_name_of(name), *folder = base - FOLDER_CHARACTERS - 1;
    bool has_folder = base - name > FOLDER_CHARACTERS + 1 && folder[-1] == '/' &&
                      strspn(folder, "0123456789abcdef") == FOLDER_CHARACTERS;
    return has_folder ? folder : base;
}

static int place_image(struct move_run *run, struct moved_image *image, struct findings *findings)
{
    const char *below = name_below(image->name);
    if (strncmp(below, "jitted-", strlen("jitted-")) == 0)
        return report_failure(findings,
                              "%s: perf inject made it: only what perfjit inject made can be moved",
                              image->name);
    const struct native_file *file = native_file_of(&run->files, image->map);
    if (!file || asprintf(&image->target, "%s/%s", run->dsos.path, below) < 0) {
        image->target = NULL;
        return report_failure(findings, "out of memory");
    }
    if (strlen(image->target) >= PATH_MAX)
        return report_failure(findings, "%s: the path is too long", image->target);
    if (!file->view.path)
        return report_failure(findings, "%s: can't be moved: its image %s is missing", run->from,
                              image->name);
    image->source = realpath(file->view.path, NULL);
    return image->source ? 0 : report_failure(findings, "%s: %s", file->view.path, strerror(errno));
}

/* What is zero stays a hole: functions far apart share an image. */
static int write_sparse(int fd, const uint8_t *bytes, size_t size)
{
    static const uint8_t zeros[PIECE_BYTES];
    size_t piece;
    for (size_t at = 0; at < size; at += piece) {
        piece = size - at < PIECE_BYTES ? size - at : PIECE_BYTES;
        if (memcmp(bytes + at, zeros, piece) != 0 && full_write(fd, (off_t)at, bytes + at, piece))
            return -1;
    }
    return ftruncate(fd, (off_t)size);
}

static int copy_image(struct move_run *run, const struct moved_image *image,
                      struct findings *findings)
{
    const struct native_file *file = native_file_of(&run->files, image->map);
    int fd = dso_dir_create(run->dsos.fd, name_below(image->name));
    int result = fd < 0 ? -1 : write_sparse(fd, file->view.bytes, file->view.size);
    int error = errno;
    if (fd >= 0)
        close(fd);
    return result
               ? report_failure(findings, "%s: can't write it: %s", image->target, strerror(error))
               : 0;
}

static int copy_images(struct move_run *run, struct findings *findings)
{
    const struct machine *machine = recording_machine(&run->input.file, machine_here());
    if (list_images(run, findings))
        return -1;
    if (native_files_begin(&run->files, &run->records, NULL, machine ? machine->elf_mach : 0))
        return report_failure(findings, "out of memory");
    for (size_t i = 0; i < run->image_count; i++)
        if (interruption_check(findings) || place_image(run, &run->images[i], findings) ||
            copy_image(run, &run->images[i], findings))
            return -1;
    return 0;
}

/* ---- What the recording says of them ---- */

static int put_map(void *context, const struct perf_record *record, struct byte_sink *sink)
{
    struct move_run *run = context;
    const struct perf_file *file = &run->input.file;
    struct perf_map map;
    if (!perf_record_is_map(record) || !perf_record_map(file, record, &map))
        return 0;
    const struct moved_image *image = find_image(run, map.filename);
    if (!image)
        return 0;
    if (renamed_map_put(sink, file, record, &map, image->target)) {
        run->too_long = true;
        return 0;
    }
    return 1;
}

/* perf may have added them to the table of build-ids.  One that is not as perf writes it stays. */
static int rename_build_ids(struct move_run *run)
{
    struct perf_features *features = &run->input.file.features;
    const struct perf_feature *feature = perf_features_find(features, PERF_FEATURE_BUILD_ID);
    uint8_t renamed[RECORD_MAX_BYTES];
    if (!feature)
        return 0;
    struct byte_cursor entries = build_id_table_over(feature);
    struct build_id_entry entry;
    while (build_id_table_next(&entries, &entry)) {
        if (!entry.name || entry.bytes[entry.size - 1])
            return 0;
        const struct moved_image *image = find_image(run, entry.name);
        struct byte_sink sink = byte_sink_over(renamed, sizeof renamed);
        bool is_renamed =
            image && renamed_record_put(&sink, entry.bytes, entry.size, PERF_BUILD_ID_ENTRY_BYTES,
                                        image->target, 0) == 0;
        if (memory_file_add(&run->build_ids, is_renamed ? renamed : entry.bytes,
                            is_renamed ? sink.size : entry.size))
            return -1;
    }
    if (run->build_ids.size && !cursor_left(&entries))
        perf_features_set(features, PERF_FEATURE_BUILD_ID, run->build_ids.data,
                          run->build_ids.size);
    return 0;
}

/* The reasons of unknown samples stand behind all that perf reads. */
static int copy_census(struct move_run *run, struct findings *findings)
{
    struct sample_census census = {0};
    int kept = kept_census_read(&census, &run->input.file);
    int result = kept < 0   ? report_failure(findings, "out of memory")
                 : kept > 0 ? kept_census_write(&census, &run->output, findings)
                            : 0;
    sample_census_free(&census);
    return result;
}

static bool no_time(void *context, size_t index, uint64_t *time_ns)
{
    (void)context, (void)index, (void)time_ns;
    return false;
}

static int write_recording(struct move_run *run, struct findings *findings)
{
    const struct record_source nothing = {NULL, no_time, NULL};
    const struct record_change change = {run, put_map};
    if (rename_build_ids(run))
        return report_failure(findings, "out of memory");
    if (perf_rewrite(&run->output, &run->input.file, &run->records.marks, NULL, 0, &nothing,
                     &change, findings) ||
        copy_census(run, findings) || output_file_flush(&run->output, findings))
        return -1;
    if (run->too_long)
        return report_failure(findings, "%s: the path of its images is too long", run->to);
    fchmod(run->output.fd, run->mode); /* where that can't be, it is there for its owner */
    return 0;
}

/* ---- The move ---- */

static int commit(struct move_run *run, struct findings *findings)
{
    interruption_look();
    if (interruption_check(findings) ||
        (!run->in_place && earlier_result_keep(run->to, findings)) ||
        dso_dir_commit(&run->dsos, findings))
        return -1;
    if (output_file_commit(&run->output, findings)) {
        dso_dir_undo(&run->dsos);
        return -1;
    }
    dso_dir_finish(&run->dsos);
    if (!run->in_place)
        earlier_result_refer(run->to);
    return 0;
}

/* Images elsewhere than in FROM.dso may be other recordings' as well: they stay. */
static void remove_source(const struct move_run *run)
{
    size_t bytes = strlen(run->from);
    unlink(run->from);
    for (size_t i = 0; i < run->image_count; i++) {
        char *source = run->images[i].source;
        if (strncmp(source, run->from, bytes) != 0 || strncmp(source + bytes, ".dso/", 5) != 0)
            continue;
        unlink(source);
        while (strlen(dirname(source)) > bytes && rmdir(source) == 0)
            continue;
    }
}

static int move(struct move_run *run, struct findings *findings)
{
    char *dsos;
    if (name_target(run, findings) || perf_input_open(&run->input, run->from, findings) ||
        records_read(&run->records, &run->input.file, findings))
        return -1;
    if (findings_lost(findings)) /* that part would not be in the new file */
        return report_failure(findings, "%s: part of it can't be read: perfjit check says which",
                              run->options->from);
    interruption_hold_signals();
    undo_list_begin();
    if (output_file_open(&run->output, run->to, findings))
        return -1;
    if (asprintf(&dsos, "%s.dso", run->to) < 0)
        return report_failure(findings, "out of memory");
    int result = dso_dir_open(&run->dsos, dsos, !run->in_place, findings);
    free(dsos);
    if (result || copy_images(run, findings) || write_recording(run, findings) ||
        commit(run, findings))
        return -1;
    if (!run->in_place && !run->options->copies)
        remove_source(run);
    return 0;
}

static void tell(const struct move_run *run)
{
    const char *to = run->options->to ? run->to : run->options->from;
    char word[SHELL_WORD_BYTES];
    if (!run->options->quiet)
        printable_line(stderr,
                       "perfjit: %s: names %zu image%s in %s now: perf report -i %s finds %s", to,
                       run->image_count, plural(run->image_count), run->dsos.path,
                       shell_word(word, to), run->image_count == 1 ? "it" : "them");
}

static void release(struct move_run *run)
{
    output_file_close(&run->output);
    dso_dir_close(&run->dsos);
    for (size_t i = 0; i < run->image_count; i++) {
        free(run->images[i].source);
        free(run->images[i].target);
    }
    free(run->images);
    native_files_free(&run->files);
    records_free(&run->records);
    perf_input_close(&run->input);
    memory_file_free(&run->build_ids);
    free(run->from);
    free(run->to);
}

int recording_move(const struct recording_move_options *options, struct findings *findings)
{
    struct move_run run = {
        .options = options, .output = {.fd = -1}, .dsos = {.fd = -1, .place_fd = -1}};
    interruption_watch_files();
    int result = move(&run, findings);
    if (!result)
        tell(&run);
    release(&run);
    return result;
}
