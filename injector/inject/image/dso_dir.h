/* The directory that receives the ELF files: filled under a temporary name, then put in place.
 *
 * If the directory is new, it appears with one rename.  If it exists, the files are renamed into it
 * one by one; their names carry their build-id, so that none overwrites another with other
 * contents.  The default directory, <output>.dso, belongs to its output alone.  Files of an earlier
 * run are removed when their output is replaced.
 */
#ifndef PERFJIT_DSO_DIR_H
#define PERFJIT_DSO_DIR_H

#include "injector/findings/findings.h"

#include <stddef.h>
#include <stdint.h>

struct dso_names {
    char **items; /* sorted */
    size_t count, capacity;
};

struct dso_dir {
    char *path;               /* absolute */
    char *temporary;          /* NULL once in place or removed */
    int fd;                   /* of the temporary directory */
    bool own;                 /* files from before may be removed */
    bool is_new;              /* it was not there before dso_dir_commit */
    int place_fd;             /* of the directory that was there, -1: none */
    struct dso_names names;   /* of the files, if it was there */
    struct dso_names earlier; /* of those that were in it */
    uint64_t undo, undo_in_place; /* undo_list.h */
};

/* Rename the directory PATH, of an earlier output, to OLD, which replaces one of that name that has
 * nothing but ELF files of this project.  Where PATH is not there, nothing is done.  Returns 0 or
 * -1 with errno. */
int dso_dir_put_aside(const char *path, const char *old);

/* Let what recordings name in folders of PATH be found in OLD, where it was put. */
void dso_dir_refer(const char *path, const char *old);

/* Prepare the directory PATH; OWN as above.  Its parent must exist.  Returns 0, or -1 with the
 * failure text set. */
int dso_dir_open(struct dso_dir *dir, const char *path, bool own, struct findings *findings);

/* A new file NAME in the directory DIR_FD, which is that of a dso_dir; NAME may be in a folder of
 * its own.  Returns its descriptor, or -1 with errno. */
int dso_dir_create(int dir_fd, const char *name);

/* Put the files in place.  Returns 0, or -1 with the failure text set. */
int dso_dir_commit(struct dso_dir *dir, struct findings *findings);

/* Take the files away again: the file that names them could not be written. */
void dso_dir_undo(struct dso_dir *dir);

/* The file that names them is written: remove the files that are named no more. */
void dso_dir_finish(struct dso_dir *dir);

/* Release; files that were not committed are removed. */
void dso_dir_close(struct dso_dir *dir);

#endif
