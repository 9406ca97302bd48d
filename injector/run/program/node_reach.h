/* The script that node reads in front of a program, node_reach.js, which is built into the command.
 *
 * Node that the program starts by its path (process.execPath) gets the words by it.  After the run
 * the folder is gone.  V8 would print its log then, which it opens for each thread, or leave files:
 * no process and no thread gets the words, and none finds them in NODE_OPTIONS. */
#ifndef PERFJIT_NODE_REACH_H
#define PERFJIT_NODE_REACH_H

extern const char node_reach[]; /* a text */

#endif
