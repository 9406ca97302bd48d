/* See node_reach.h.  The path is from the project's root, where make compiles. */
#include "injector/run/program/node_reach.h"

__asm__(".section .rodata\n"
        ".globl node_reach\n"
        ".hidden node_reach\n"
        "node_reach:\n"
        ".incbin \"injector/run/program/node_reach.js\"\n"
        ".byte 0\n"
        ".previous\n");
