/* See gdb_script.h.  The path is from the project's root, where make compiles. */
#include "injector/debug/gdb_script.h"

__asm__(".section .rodata\n"
        ".globl gdb_script, gdb_script_end\n"
        ".hidden gdb_script, gdb_script_end\n"
        "gdb_script:\n"
        ".incbin \"injector/debug/perfjit_gdb.py\"\n"
        "gdb_script_end:\n"
        ".byte 0\n"
        ".previous\n");
