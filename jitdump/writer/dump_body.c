/* See dump_body.h. */
#include "jitdump/writer/dump_body.h"
#include "jitdump/disk/disk_room.h"
#include "jitdump/format/byte_sink.h"
#include "jitdump/format/jitdump_format.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

/* How far ahead the file is extended.  The extension is a hole, which is free on a file system with
 * holes.  It is bounded because perf inject reads each record whole into memory, a FILLER too, and
 * because a short program's dump should not look long. */
#define AHEAD_FIRST_BYTES (UINT64_C(1) << 20)
#define AHEAD_LATER_BYTES (UINT64_C(8) << 20)

enum {
    ID_AND_SIZE_BYTES = 8,
    /* The least page of the machines that this runs on; in no larger one are eight bytes apart that
     * are together here. */
    LEAST_PAGE_BYTES = 4096,
    RESERVE_MIN_BYTES = 64 << 10, /* a smaller write is not worth a call */
};

static int check(const struct dump_body *body, uint64_t end)
{
    if (!jd_fd_is_ours(&body->fd))
        return -EBADF;
    return end > jd_file_size_limit() ? -EFBIG : 0;
}

void jd_body_keep_header(struct dump_body *body)
{
    body->has_header =
        pread(body->fd.number, body->header, sizeof body->header, 0) == sizeof body->header;
}

int jd_body_check(const struct dump_body *body)
{
    uint8_t header[sizeof body->header];
    struct stat status;
    if (!jd_fd_is_ours_now(&body->fd, &status))
        return -EBADF;
    if (!body->has_header)
        return 0;
    if (status.st_nlink == 0)
        return -ENOENT;
    if ((uint64_t)status.st_size < body->filler_end ||
        pread(body->fd.number, header, sizeof header, 0) != sizeof header ||
        memcmp(header, body->header, sizeof header) != 0)
        return -ESTALE;
    return 0;
}

/* Take the first COUNT bytes off PIECES. */
static void take_off(struct iovec *pieces, int piece_count, size_t count)
{
    for (int i = 0; i < piece_count && count > 0; i++) {
        size_t part = count < pieces[i].iov_len ? count : pieces[i].iov_len;
        pieces[i].iov_base = (char *)pieces[i].iov_base + part;
        pieces[i].iov_len -= part;
        count -= part;
    }
}

static int write_pieces(const struct dump_body *body, struct iovec *pieces, int piece_count,
                        uint64_t offset)
{
    size_t left = 0;
    for (int i = 0; i < piece_count; i++)
        left += pieces[i].iov_len;
    while (left > 0) {
        ssize_t written = pwritev(body->fd.number, pieces, piece_count, (off_t)offset);
        if (written < 0 && errno != EINTR)
            return -errno;
        if (written == 0)
            return -EIO;
        if (written < 0)
            continue;
        take_off(pieces, piece_count, (size_t)written);
        offset += (uint64_t)written;
        left -= (size_t)written;
    }
    return 0;
}

static int write_bytes(const struct dump_body *body, const void *bytes, size_t count,
                       uint64_t offset)
{
    struct iovec piece = {(void *)(uintptr_t)bytes, count}; /* only read from */
    return write_pieces(body, &piece, 1, offset);
}

int jd_body_write(const struct dump_body *body, const void *bytes, size_t count, uint64_t offset)
{
    int error = check(body, offset + count);
    return error ? error : write_bytes(body, bytes, count, offset);
}

/* ---- Groups ---- */

/* Id and size of the record at the end, in one go. */
static int put_id_and_size(const struct dump_body *body, uint32_t id, uint32_t total_size)
{
    const uint32_t id_and_size[] = {id, total_size};
    return write_bytes(body, id_and_size, sizeof id_and_size, body->end);
}

/* If a sandbox refuses ftruncate, a zero is written at the end instead. */
static int make_longer(const struct dump_body *body, uint64_t end)
{
    static const char zero;
    if (ftruncate(body->fd.number, (off_t)end) == 0)
        return 0;
    return errno == EPERM || errno == ENOSYS ? write_bytes(body, &zero, 1, end - 1) : -errno;
}

int jd_body_reach(struct dump_body *body, uint64_t filler_end)
{
    int error = make_longer(body, filler_end);
    if (!error)
        error = put_id_and_size(body, JIT_FILLER, (uint32_t)(filler_end - body->end));
    if (!error)
        body->filler_end = filler_end;
    return error;
}

/* The same, but LEAST or more, so that the next groups have room as well. */
static int reach_ahead(struct dump_body *body, uint64_t least)
{
    uint64_t limit = jd_file_size_limit();
    uint64_t ahead = least < AHEAD_FIRST_BYTES ? AHEAD_FIRST_BYTES : least + AHEAD_LATER_BYTES;
    if (body->max_bytes && body->max_bytes < limit)
        limit = body->max_bytes;
    if (least > limit)
        return -EFBIG;
    if (ahead > limit)
        ahead = limit;
    int error = ahead - body->end <= UINT32_MAX ? jd_body_reach(body, ahead) : -EFBIG;
    /* If a hole takes blocks (FAT), there may not be enough for all of it. */
    return error && ahead > least ? jd_body_reach(body, least) : error;
}

int jd_body_start(struct dump_body *body, const struct held_fd *fd, uint64_t max_bytes,
                  const uint8_t header[JITHEADER_BYTES])
{
    *body = (struct dump_body){.fd = *fd,
                               .end = JITHEADER_BYTES,
                               .max_bytes = max_bytes,
                               .reserves = jd_disk_reserves_cheaply(fd->number)};
    int error = check(body, JITHEADER_BYTES + JR_PREFIX_BYTES);
    if (!error)
        error = reach_ahead(body, JITHEADER_BYTES + JR_PREFIX_BYTES);
    return error ? error : write_bytes(body, header, JITHEADER_BYTES, 0);
}

static void put_filler(struct byte_sink *sink, uint64_t bytes)
{
    sink_u32(sink, JIT_FILLER);
    sink_u32(sink, (uint32_t)bytes);
    sink_u64(sink, 0);
}

bool jd_body_is_across_pages(uint64_t offset)
{
    return offset % LEAST_PAGE_BYTES > LEAST_PAGE_BYTES - ID_AND_SIZE_BYTES;
}

int jd_body_add(struct dump_body *body, const void *groups, size_t count, bool last)
{
    uint8_t fillers[2 * JR_PREFIX_BYTES];
    struct byte_sink sink = byte_sink_over(fillers, sizeof fillers);
    uint64_t end = body->end + count, most = end + sizeof fillers;
    uint32_t first[2];
    memcpy(first, groups, sizeof first);
    int error = most > jd_file_size_limit() ? -EFBIG : 0;
    if (!error && body->filler_end < most)
        error = reach_ahead(body, most);
    if (error)
        return error;
    if (jd_body_is_across_pages(end) && !last) {
        put_filler(&sink, JR_PREFIX_BYTES);
        end += JR_PREFIX_BYTES;
    }
    put_filler(&sink, body->filler_end - end);
    struct iovec pieces[] = {
        {(char *)(uintptr_t)groups + ID_AND_SIZE_BYTES, count - ID_AND_SIZE_BYTES},
        {fillers, sink.size}};
    if (body->reserves && count >= RESERVE_MIN_BYTES)
        jd_disk_reserve(body->fd.number, body->end, most);
    error = write_pieces(body, pieces, 2, body->end + ID_AND_SIZE_BYTES);
    if (!error)
        error = put_id_and_size(body, first[0], first[1]);
    if (!error)
        body->end = end;
    return error;
}

void jd_body_give_back(const struct dump_body *body)
{
    if (jd_fd_is_ours(&body->fd))
        jd_disk_give_back(body->fd.number, body->end + JR_PREFIX_BYTES, body->filler_end);
}

int jd_body_cut(const struct dump_body *body)
{
    if (!jd_fd_is_ours(&body->fd))
        return -EBADF;
    return ftruncate(body->fd.number, (off_t)body->end) == 0 ? 0 : -errno;
}
