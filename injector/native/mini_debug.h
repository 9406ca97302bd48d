/* .gnu_debugdata: an ELF file with the symbols that were stripped, sometimes tables, packed by LZMA
 * into the stripped file itself.  Fedora's files have it. */
#ifndef PERFJIT_MINI_DEBUG_H
#define PERFJIT_MINI_DEBUG_H

#include "injector/native/elf_view.h"

/* Unpack that of VIEW.  DEBUG has no segments if there is none, or if it is no ELF file, or larger
 * than 64 MiB.  Release with elf_view_close in any case. */
void mini_debug_open(struct elf_view *debug, const struct elf_view *view);

#endif
