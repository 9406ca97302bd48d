/* Removing a directory with all that is in it. */
#ifndef PERFJIT_DIRECTORY_TREE_H
#define PERFJIT_DIRECTORY_TREE_H

/* Remove what is in the directory NAME of PARENT_FD, as in openat(2); a link there counts as
 * missing. */
void directory_tree_empty(int parent_fd, const char *name);

/* The same, and the directory. */
void directory_tree_remove(int parent_fd, const char *name);

#endif
