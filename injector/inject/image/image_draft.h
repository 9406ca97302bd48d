/* The code of an image, copied before the images are planned.
 *
 * Copying the code and working out its digest is half of all the work, and needs nothing but to
 * know what stands where.  Where nothing was moved or unloaded and no address was used twice, as in
 * most large dumps, that is known as soon as the dump is read.  So a thread writes a draft while
 * the timeline is played and the images are planned, and the image that comes out as the draft has
 * it takes it over.  If none does, the draft was in vain, and is removed.
 *
 * All zeros is no draft.  On a machine with one processor, and for a small dump, there is none.  A
 * draft that can't be written is none either: whoever writes the image then will find out why, and
 * say it.
 */
#ifndef PERFJIT_IMAGE_DRAFT_H
#define PERFJIT_IMAGE_DRAFT_H

#include "injector/files/side_thread.h"
#include "injector/inject/layout/image_plan.h"

#include <stdatomic.h>
#include <xxhash.h>

enum { IMAGE_TEXT_NAME_BYTES = 64 };

struct image_draft {
    const struct jit_process *process; /* NULL: there is no draft */
    bool by_name;                      /* it is for an image of image_plan_by_name.h */
    uint32_t *order; /* the pieces: functions of its log, by address; NULL: as they stand there */
    size_t piece_count;
    size_t first, count; /* of the pieces: what is in the draft */
    uint64_t base, text_start, text_end;
    XXH128_hash_t digest;
    int dir_fd, fd;
    char name[IMAGE_TEXT_NAME_BYTES];
    atomic_bool failed; /* it can't be written, or functions share addresses: often known long
                           before the end */
    _Atomic(struct progress *) progress; /* of whoever waits for the thread; NULL: nobody does */
    atomic_bool unwanted;                /* the thread may stop */
    struct side_thread thread;
};

/* Begin a draft in the directory DIR_FD of what PROCESSES, whose dumps are read, have most of.
 * BY_NAME: for an image in which functions of one name stand side by side; where no two have the
 * same, and nothing lies between them, they stand there as in memory.  The dumps must stay open
 * until it is taken or ended. */
void image_draft_begin(struct image_draft *draft, const struct jit_processes *processes, int dir_fd,
                       bool by_name);

/* Whether there is a draft, of PROCESS, that has not failed yet. */
bool image_draft_is_of(struct image_draft *draft, const struct jit_process *process);

/* If the draft is the code of IMAGE, of its process: returns its descriptor, which is the caller's
 * from now on, as the file NAME is; *DIGEST receives that of the code.  Else -1, and a draft that
 * no other image can take is removed.  Waits for the thread, and shows its PROGRESS. */
int image_draft_take(struct image_draft *draft, const struct jit_image *image,
                     char name[IMAGE_TEXT_NAME_BYTES], struct progress *progress,
                     XXH128_hash_t *digest);

/* Remove a draft that nobody took.  Does nothing if there is none. */
void image_draft_end(struct image_draft *draft);

#endif
