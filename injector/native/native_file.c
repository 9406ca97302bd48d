/* See native_file.h. */
#include "injector/native/native_file.h"

#include "injector/arrays/array.h"
#include "injector/native/debug_file.h"
#include "injector/native/elf_view.h"
#include "injector/recording/host/injected_image.h"
#include "injector/recording/host/mapped_path.h"
#include "injector/recording/host/recording_host.h"
#include "injector/recording/machine.h"
#include "injector/recording/perf_data/build_id_table.h"
#include "injector/recording/perf_data/perf_format.h"

#include <inttypes.h>
#include <lzma.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <time.h>

/* ---- Debug information in .gnu_debugdata: GDB manual, "Debugging information in a special
 * section" ---- */

enum { FIRST_GUESS = 8, MOST_BYTES = 64 << 20, MOST_MEMORY = 128 << 20 };

/* The .xz file of SIZE bytes at PACKED, unpacked into ROOM bytes: how many it has; 0: it is
 * damaged; SIZE_MAX: there is too little room. */
static size_t unpack_into(const uint8_t *packed, size_t size, uint8_t *bytes, size_t room)
{
    uint64_t memory = MOST_MEMORY;
    size_t read = 0, written = 0;
    lzma_ret result =
        lzma_stream_buffer_decode(&memory, 0, NULL, packed, &read, size, bytes, &written, room);
    if (result == LZMA_BUF_ERROR) /* WRITTEN is then 0 again */
        return SIZE_MAX;
    return result == LZMA_OK ? written : 0;
}

/* *UNPACKED bytes to be freed, or NULL.  The file tells its size at its end only, and is small. */
static uint8_t *unpack(const uint8_t *packed, size_t size, size_t *unpacked)
{
    for (size_t room = size * FIRST_GUESS; room && room <= MOST_BYTES; room *= 2) {
        uint8_t *bytes = malloc(room);
        *unpacked = bytes ? unpack_into(packed, size, bytes, room) : 0;
        if (*unpacked && *unpacked != SIZE_MAX)
            return bytes;
        free(bytes);
        if (*unpacked == 0)
            return NULL;
    }
    return NULL;
}

/* Unpack that of VIEW.  DEBUG has no segments if there is none, or if it is no ELF file, or larger
 * than 64 MiB.  Release with elf_view_close in any case. */
static void mini_debug_open(struct elf_view *debug, struct elf_view *view)
{
    size_t size = 0, unpacked;
    uint64_t addr;
    const uint8_t *packed = elf_view_section(view, ".gnu_debugdata", &size, &addr);
    uint8_t *bytes = packed && size <= MOST_BYTES ? unpack(packed, size, &unpacked) : NULL;
    *debug = (struct elf_view){0};
    if (bytes)
        elf_view_of(debug, bytes, unpacked);
    debug->unpacked = bytes;
}

static const char vdso_name[] = "[vdso]";

static uint64_t ns_of(struct timespec time)
{
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void find_end(struct native_files *files, const struct recording_host *host)
{
    struct stat status;
    uint64_t last_ns = records_last_sample_ns(files->records);
    const char *path = files->records->file->path;
    files->ended_exactly = host->has_wall_clock && last_ns;
    if (files->ended_exactly)
        files->ended_ns = recording_host_wall_ns(host, last_ns);
    else if (path && stat(path, &status) == 0 && S_ISREG(status.st_mode))
        files->ended_ns = ns_of(status.st_mtim);
}

/* Whether the machine has not started since ENDED_NS of the wall clock. */
static bool runs_since(uint64_t ended_ns)
{
    struct timespec wall, running;
    return clock_gettime(CLOCK_REALTIME, &wall) == 0 &&
           clock_gettime(CLOCK_BOOTTIME, &running) == 0 && ended_ns > ns_of(wall) - ns_of(running);
}

int native_files_begin(struct native_files *files, const struct records *records, const char *root,
                       uint16_t elf_mach)
{
    struct recording_host host;
    *files = (struct native_files){.records = records, .root = root, .elf_mach = elf_mach};
    recording_host_read(&host, records->file);
    files->is_elsewheres = !recording_host_is_here(&host);
    find_end(files, &host);
    files->kept_numbers = files->ended_ns && runs_since(files->ended_ns);
    files->of_map = calloc(records->map_count + 1, sizeof *files->of_map);
    return files->of_map ? 0 : -1;
}

/* ---- What the recording tells ---- */

static bool build_id_in_map(const struct perf_map *map, struct build_id *id)
{
    id->size = map->build_id_bytes;
    if (map->build_id)
        memcpy(id->bytes, map->build_id, id->size);
    return map->build_id;
}

void native_build_id_of(const struct perf_file *file, const char *name, struct build_id *id)
{
    const struct perf_feature *feature = perf_features_find(&file->features, PERF_FEATURE_BUILD_ID);
    if (!feature)
        return;
    struct byte_cursor entries = build_id_table_over(feature);
    struct build_id_entry entry;
    while (build_id_table_next(&entries, &entry)) {
        if (!entry.name || strcmp(entry.name, name) != 0)
            continue;
        id->size = (uint8_t)entry.build_id_bytes;
        memcpy(id->bytes, entry.build_id, id->size);
        return;
    }
}

static bool is_wanted(const struct native_file *file, const struct elf_view *view)
{
    return file->wanted.size == 0 || build_id_is(&view->build_id, &file->wanted);
}

/* Whether processes of the recording can have mapped it.  The build-id proves it of a file of any
 * machine: perfjit inject makes one of a dump that was logged elsewhere. */
static bool can_be(const struct native_files *files, const struct native_file *file,
                   const struct elf_view *view)
{
    return view->elf_mach == files->elf_mach || machine_wide(view->elf_mach) == files->elf_mach ||
           (file->wanted.size && is_wanted(file, view));
}

/* ---- Reading ---- */

/* A link or chmod changes a file's change time, too, as backups and tests do with libraries.  A
 * file with a build-id is taken for written only if its contents' time says so; one without, which
 * a build by hand may have put in place with an old time, by either. */
static bool was_written(const struct elf_view *view, uint64_t since_ns)
{
    return ns_of(view->status.st_mtim) > since_ns ||
           (ns_of(view->status.st_ctim) > since_ns && !view->build_id.size);
}

static bool is_later(const struct native_files *files, const struct stat *status)
{
    return files->ended_ns && ns_of(status->st_ctim) > files->ended_ns;
}

/* An inode tells nothing on another machine. */
static bool is_another(const struct native_files *files, const struct native_file *file,
                       const char *path, const struct stat *status)
{
    return !files->is_elsewheres &&
           mapped_file_is_another(&file->map->map, path, status, files->kept_numbers);
}

/* Whether VIEW is of the very file that was mapped, and nobody wrote to it since. */
static bool is_very_file(const struct native_files *files, const struct native_file *file,
                         const struct elf_view *view)
{
    const struct perf_map *map = &file->map->map;
    return !files->is_elsewheres && files->ended_exactly && !is_later(files, &view->status) &&
           mapped_inode_is_on(map, view->status.st_dev) && view->status.st_ino == map->ino;
}

/* What was done to the file that VIEW is of, since it was mapped. */
static enum native_change change_of(const struct native_files *files,
                                    const struct native_file *file, const struct elf_view *view)
{
    if (!file->is_in_map && is_very_file(files, file, view))
        return NATIVE_UNCHANGED;
    if (!is_wanted(file, view))
        return NATIVE_REBUILT;
    if (file->wanted.size)
        return NATIVE_UNCHANGED;
    if (is_another(files, file, view->path, &view->status))
        return mapped_inode_is_on(&file->map->map, view->status.st_dev) ? NATIVE_REPLACED
                                                                        : NATIVE_ELSEWHERE;
    return !files->is_elsewheres && mapped_inode_is_on(&file->map->map, view->status.st_dev) &&
                   is_later(files, &view->status) && was_written(view, files->ended_ns)
               ? NATIVE_WRITTEN
               : NATIVE_UNCHANGED;
}

/* Read FILE at PATH, which is released. */
static bool read_at(struct native_files *files, struct native_file *file, char *path)
{
    if (!path)
        return false;
    int result = elf_view_open(&file->view, path);
    free(path);
    if (!result && can_be(files, file, &file->view)) {
        file->found =
            (struct native_found){change_of(files, file, &file->view), file->view.build_id,
                                  file->view.status.st_ino, file->view.status.st_dev};
        if (!file->found.change)
            return true;
    }
    elf_view_close(&file->view);
    return false;
}

/* Where perf record keeps a copy of the file. */
static char *kept_path(const struct build_id *id)
{
    char hex[BUILD_ID_HEX_BYTES], *path;
    const char *home = getenv("HOME");
    build_id_hex(hex, id);
    return !home || !id->size ||
                   asprintf(&path, "%s/.debug/.build-id/%.2s/%s/elf", home, hex, hex + 2) < 0
               ? NULL
               : path;
}

static bool read_below(struct native_files *files, struct native_file *file, const char *root)
{
    return read_at(files, file, mapped_path(root, file->map->map.filename));
}

static bool has_build_id(const char *path, const struct build_id *id)
{
    struct elf_view view = {0};
    bool has = elf_view_open(&view, path) == 0 && build_id_is(&view.build_id, id);
    elf_view_close(&view);
    return has;
}

/* Forget the build-id that perf record read in a file that is not the mapped one.  One that came
 * there later, with the same build-id, is a copy of what it read. */
static void doubt_build_id(const struct native_files *files, struct native_file *file)
{
    struct stat status;
    if (!file->wanted.size || file->is_in_map || !files->ended_ns)
        return;
    char *path = mapped_path("", file->map->map.filename);
    if (path && stat(path, &status) == 0 && !is_later(files, &status) &&
        is_another(files, file, path, &status) && has_build_id(path, &file->wanted))
        file->wanted.size = 0;
    free(path);
}

/* Whether the recording is of the kernel that runs here. */
static bool kernel_is_this(const struct perf_file *file)
{
    struct utsname name;
    size_t bytes;
    const char *release = perf_file_string(file, PERF_FEATURE_OSRELEASE, &bytes);
    return release && uname(&name) == 0 && strlen(name.release) == bytes &&
           memcmp(release, name.release, bytes) == 0;
}

/* How much is mapped of this process's own vdso; 0: that can't be found out. */
static size_t vdso_bytes(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    uint64_t start, end;
    size_t bytes = 0;
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, vdso_name) && sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2)
            bytes = (size_t)(end - start);
    if (maps)
        fclose(maps);
    return bytes;
}

/* The vdso of a 32-bit process is another one, which this process does not have. */
static bool is_narrow_vdso(const struct perf_map *map)
{
    return map->start <= UINT32_MAX && strcmp(map->filename, vdso_name) == 0;
}

/* Read the vdso that this kernel gives to all processes, if the kernel is the recording's. */
static void read_vdso(const struct native_files *files, struct native_file *file)
{
    const uint8_t *bytes = (const uint8_t *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
    if (!bytes || is_narrow_vdso(&file->map->map) ||
        (file->wanted.size == 0 && !kernel_is_this(files->records->file)))
        return;
    elf_view_of(&file->view, bytes, vdso_bytes());
    if (!is_wanted(file, &file->view) || file->view.elf_mach != files->elf_mach)
        elf_view_close(&file->view);
}

static void read_file(struct native_files *files, struct native_file *file)
{
    const char *name = file->map->map.filename;
    file->was_read = true;
    file->is_in_map = build_id_in_map(&file->map->map, &file->wanted);
    if (!file->is_in_map)
        native_build_id_of(files->records->file, name, &file->wanted);
    if (strcmp(name, vdso_name) == 0)
        read_vdso(files, file);
    if (name[0] != '/' || strncmp(name, "//", 2) == 0)
        return;
    doubt_build_id(files, file);
    if (files->root && read_below(files, file, files->root))
        return;
    if (read_below(files, file, "") ||
        read_at(files, file, injected_image_beside(files->records->file->path, name)))
        return;
    const struct native_found found = file->found;
    if (!read_at(files, file, kept_path(&file->wanted)))
        file->found = found;
}

static int compare_files(const void *left, const void *right)
{
    const struct native_file *a = left, *b = right;
    int order = perf_map_compare_files(&a->map->map, &b->map->map);
    return order ? order : is_narrow_vdso(&a->map->map) - is_narrow_vdso(&b->map->map);
}

static struct native_file *add_file(struct native_files *files, const struct recorded_map *map)
{
    struct native_file **items =
        array_room(files->items, files->count, &files->capacity, sizeof(struct native_file *));
    struct native_file *file = calloc(1, sizeof *file);
    if (items)
        files->items = items;
    if (!items || !file) {
        free(file);
        return NULL;
    }
    file->map = map;
    items[files->count++] = file;
    file->number = (uint32_t)files->count;
    return tsearch(file, &files->tree, compare_files) ? file : NULL;
}

struct native_file *native_file_of(struct native_files *files, uint32_t map)
{
    if (files->of_map[map])
        return files->items[files->of_map[map] - 1];
    const struct native_file wanted = {.map = &files->records->maps[map]};
    struct native_file **found = tfind(&wanted, &files->tree, compare_files);
    struct native_file *file = found ? *found : add_file(files, wanted.map);
    if (!file)
        return NULL;
    files->of_map[map] = file->number;
    if (!file->was_read)
        read_file(files, file);
    return file;
}

/* Whether the file that is at FILE's name here is the one of its view as well. */
static bool is_here_too(const struct native_file *file)
{
    struct stat status;
    char *path = mapped_path("", file->map->map.filename);
    bool is_here = path && (file->is_in_map ? has_build_id(path, &file->wanted)
                                            : stat(path, &status) == 0 &&
                                                  status.st_dev == file->view.status.st_dev &&
                                                  status.st_ino == file->view.status.st_ino);
    free(path);
    return is_here;
}

bool native_file_is_rooted(const struct native_files *files, const struct native_file *file)
{
    const struct perf_map *map = &file->map->map;
    const size_t bytes = files->root ? strlen(files->root) : 0;
    return bytes && file->view.path && strncmp(file->view.path, files->root, bytes) == 0 &&
           strcmp(file->view.path + bytes, map->filename) == 0 &&
           (file->is_in_map || (map->has_inode && map->ino == file->view.status.st_ino &&
                                !is_another(files, file, file->view.path, &file->view.status))) &&
           !is_here_too(file);
}

/* ---- What is in it ---- */

bool native_file_addr(const struct native_files *files, const struct native_file *file,
                      uint32_t map, uint64_t pc, uint64_t *addr)
{
    const struct perf_map *mapped = &files->records->maps[map].map;
    return elf_view_addr(&file->view, pc - mapped->start + mapped->pgoff, addr);
}

bool native_file_unwinds(const struct native_files *files, const struct native_file *file)
{
    return file->view.elf_mach == files->elf_mach &&
           file->view.address_bytes == machine_address_bytes(files->elf_mach);
}

static int find_in(struct elf_view *view, uint64_t addr, struct unwind_budget *budget,
                   struct cfi_entry *entry)
{
    int found = frame_section_find(&view->eh_frame, addr, budget, entry);
    return found ? found : frame_section_find(&view->debug_frame, addr, budget, entry);
}

static void open_debug(const struct native_files *files, struct native_file *file)
{
    debug_file_open(&file->debug, &file->view, &file->wanted, file->map->map.filename, files->root);
    if (file->debug.elf)
        return;
    elf_view_close(&file->debug);
    mini_debug_open(&file->debug, &file->view);
}

struct elf_view *native_file_debug(const struct native_files *files, struct native_file *file)
{
    if (!file->debug_sought)
        open_debug(files, file);
    file->debug_sought = true;
    return &file->debug;
}

int native_file_entry(struct native_files *files, struct native_file *file, uint64_t addr,
                      struct unwind_budget *budget, struct cfi_entry *entry)
{
    int found = find_in(&file->view, addr, budget, entry);
    if (found)
        return found;
    return find_in(native_file_debug(files, file), addr, budget, entry);
}

int native_file_function(struct native_files *files, struct native_file *file, uint64_t addr,
                         struct elf_function *function)
{
    int found = elf_view_function(&file->view, addr, function);
    if (found)
        return found;
    return elf_view_function(native_file_debug(files, file), addr, function);
}

/* ---- What is reported ---- */

static void report_change(const struct native_file *file, struct findings *findings)
{
    const struct perf_map *map = &file->map->map;
    char found[BUILD_ID_HEX_BYTES], wanted[BUILD_ID_HEX_BYTES];
    build_id_hex(found, &file->found.build_id);
    build_id_hex(wanted, &file->wanted);
    if (file->found.change == NATIVE_REBUILT)
        report_finding(findings, FINDING_FILE_CHANGED,
                       "%s: rebuilt since the recording: its build-id is %s, the recorded one %s",
                       map->filename, found[0] ? found : "missing", wanted);
    else if (file->found.change == NATIVE_REPLACED)
        report_finding(findings, FINDING_FILE_CHANGED,
                       "%s: replaced since it was mapped: its inode is %" PRIu64
                       ", the recorded one %" PRIu64,
                       map->filename, file->found.inode, map->ino);
    else if (file->found.change == NATIVE_ELSEWHERE)
        report_finding(findings, FINDING_FILE_CHANGED,
                       "%s: the process saw another file there: on device %" PRIu32 ":%" PRIu32
                       ", here on %u:%u",
                       map->filename, map->maj, map->min, major(file->found.device),
                       minor(file->found.device));
    else
        report_finding(findings, FINDING_FILE_CHANGED,
                       "%s: changed since its last sample, by its times; the recording has no "
                       "build-id of it",
                       map->filename);
}

void native_files_report(const struct native_files *files, struct findings *findings)
{
    for (size_t i = 0; i < files->count; i++)
        if (files->items[i]->found.change && !files->items[i]->view.elf)
            report_change(files->items[i], findings);
}

static void free_nothing(void *node)
{
    (void)node;
}

void native_files_free(struct native_files *files)
{
    if (files->tree)
        tdestroy(files->tree, free_nothing);
    for (size_t i = 0; i < files->count; i++) {
        elf_view_close(&files->items[i]->view);
        elf_view_close(&files->items[i]->debug);
        free(files->items[i]);
    }
    free(files->items);
    free(files->of_map);
    *files = (struct native_files){0};
}
