/* See dump_body.h. */
#include "jitdump/dump_body.h"
#include "jitdump/byte_sink.h"
#include "jitdump/disk_room.h"
#include "jitdump/dump_stage.h"
#include "jitdump/jitdump_format.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    ID_AND_SIZE_BYTES = 8,
    RESERVE_MIN_BYTES = 64 << 10, /* a smaller write is not worth a call */
};

uint64_t jd_file_size_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return INT64_MAX;
    return limit.rlim_cur;
}

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
    if (!jd_fd_is_ours(&body->fd) || fstat(body->fd.number, &status) != 0)
        return -EBADF;
    if (!body->has_header)
        return 0;
    if (status.st_nlink == 0)
        return -ENOENT;
    if ((uint64_t)status.st_size < body->end ||
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

/* The kernel copies page by page and may be killed in between; a store does not stop half-way.  One group of pages in 585. */
static int store_across_pages(const struct dump_body *body, uint32_t id, uint32_t total_size,
                              uint64_t page_bytes)
{
    uint64_t start = body->end / page_bytes * page_bytes;
    uint8_t *pages = mmap(NULL, (size_t)page_bytes * 2, PROT_READ | PROT_WRITE, MAP_SHARED,
                          body->fd.number, (off_t)start);
    if (pages == MAP_FAILED)
        return -errno;
    jd_store_id_and_size(pages + (body->end - start), id, total_size);
    munmap(pages, (size_t)page_bytes * 2);
    return 0;
}

/* Id and size of the record at the end, in one go. */
static int put_id_and_size(const struct dump_body *body, uint32_t id, uint32_t total_size)
{
    const uint32_t id_and_size[] = {id, total_size};
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    if (body->end % page_bytes > page_bytes - ID_AND_SIZE_BYTES)
        return store_across_pages(body, id, total_size, page_bytes);
    return write_bytes(body, id_and_size, sizeof id_and_size, body->end);
}

int jd_body_point(const struct dump_body *body, uint64_t filler_end)
{
    int error = check(body, body->end + ID_AND_SIZE_BYTES);
    return error ? error : put_id_and_size(body, JIT_FILLER, (uint32_t)(filler_end - body->end));
}

int jd_body_add(struct dump_body *body, const void *groups, size_t count, uint64_t filler_end)
{
    uint8_t filler[JR_PREFIX_BYTES];
    struct byte_sink sink = byte_sink_over(filler, sizeof filler);
    sink_u32(&sink, JIT_FILLER);
    sink_u32(&sink, (uint32_t)(filler_end - body->end - count));
    sink_u64(&sink, 0);
    uint32_t first[2];
    memcpy(first, groups, sizeof first);
    struct iovec pieces[] = {
        {(char *)(uintptr_t)groups + ID_AND_SIZE_BYTES, count - ID_AND_SIZE_BYTES},
        {filler, sizeof filler}};
    int error = check(body, body->end + count + sizeof filler);
    if (!error && body->reserves && count >= RESERVE_MIN_BYTES)
        jd_disk_reserve(body->fd.number, body->end, body->end + count + sizeof filler);
    if (!error)
        error = write_pieces(body, pieces, 2, body->end + ID_AND_SIZE_BYTES);
    if (!error)
        error = put_id_and_size(body, first[0], first[1]);
    if (!error)
        body->end += count;
    return error;
}
