/* What has to be undone when this program ends, whatever ends it: files that are only for the run,
 * processes that were started or that log on request.
 *
 * The list is a file, perfjit-undo-XXXXXX below $TMPDIR or /tmp, which is locked as long as the
 * program lives.  A small process, the keeper, waits for the program's end.  Then it undoes what is
 * still on the list, the newest first, and removes the list: also after kill -9.  A signal that
 * ends the program waits for that.  If the keeper was killed as well, the next program that begins
 * a list does its work.
 *
 * Without a list, as where no file can be made, nothing here does anything. */
#ifndef PERFJIT_UNDO_LIST_H
#define PERFJIT_UNDO_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How things of the kind NAME are undone.  There is room for a few; NAME is a constant, and one
 * word. */
typedef void undo_step(const char *text);
void undo_list_learn(const char *name, undo_step *step);

/* Begin this program's list, once, and do what earlier programs left to do. */
void undo_list_begin(void);

/* The signals that end this program wait until undo_list_release: between the making of a thing and
 * its place on the list.  Not one in the other. */
void undo_list_hold(void);
void undo_list_release(void);

/* Add a thing of the kind NAME that TEXT describes.  Returns its number, or 0: there is no list. */
uint64_t undo_list_add(const char *name, const char *text);

/* The same for the file or directory PATH, which is there: it is to be removed with all that is in
 * it, as long as it is the same one; LATER: under that name, which it will get. */
uint64_t undo_list_add_path(const char *path, const char *later);

/* Make the directory TEMPLATE, as mkdtemp(3) does, and add it, as *NUMBER: a signal that ends this
 * program waits meanwhile.  Returns false with errno if it can't be made. */
bool undo_list_make_directory(char *template, uint64_t *number);

/* Add process PID, a child: it is to be ended. */
uint64_t undo_list_add_process(pid_t pid);

/* NUMBER is undone, or is to stay.  0 is ignored. */
void undo_list_done(uint64_t number);

/* Have the keeper undo what is left, and wait for it.  The end of the program does it, too. */
void undo_list_end(void);

#endif
