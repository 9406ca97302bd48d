/* Removing a directory with all that is in it. */
#ifndef PERFJIT_DIRECTORY_TREE_H
#define PERFJIT_DIRECTORY_TREE_H

/* Remove PATH so; a link there counts as missing. */
void directory_tree_remove(const char *path);

#endif
