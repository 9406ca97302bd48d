/* The commands and the unwinder that gdb is given: perfjit_gdb.py, which is built into the command.
 * So a perfjit that is copied alone has it, and never one of another version, whose table it could
 * not read. */
#ifndef PERFJIT_GDB_SCRIPT_H
#define PERFJIT_GDB_SCRIPT_H

extern const char gdb_script[], gdb_script_end[];

#endif
