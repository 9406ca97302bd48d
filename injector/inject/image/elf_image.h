/* An image as an ELF file, which perf, gdb, objdump and others open to name and show JIT code.
 *
 *     offset = virtual address
 *     0           ELF header, and in the same page program headers and .note.gnu.build-id
 *     text_start  .text: the functions, each at its run-time address minus the image's base
 *     text_end    (of a function that is alone: program headers and note, not in front of it)
 *     tables      .eh_frame_hdr, .eh_frame, if any was logged: where nothing executable was
 *                 .debug_*, perhaps compressed, if lines or inlined calls of a function are known
 *                 .perfjit.deopts, if any is known (deopt_text.h)
 *                 .symtab, .strtab: a symbol for each function (symbol_table.h)
 *                 .shstrtab, section headers
 *
 * The first PT_LOAD starts at 0, because perf takes its page for the file's base.  The last one is
 * the text's, because libdw takes its end for the module's, and the tables may stand after other
 * libraries.  Without tables it is one and the same.  docs/decisions/unwind-tables.md has more.
 */
#ifndef PERFJIT_ELF_IMAGE_H
#define PERFJIT_ELF_IMAGE_H

#include "injector/inject/layout/jit_image.h"

/* Write IMAGE, number INDEX, of PROCESSES into the directory DIR_FD and set its build-id.  The same
 * input gives the same bytes.  Returns 0, or -1 with the failure text set. */
int elf_image_write(struct jit_image *image, const struct jit_process *processes, size_t index,
                    int dir_fd, struct findings *findings);

/* The same for all images of PLAN, of PROCESSES, and show how far it is. */
int elf_images_write(struct image_plan *plan, const struct jit_process *processes, int dir_fd,
                     bool compress_debug, struct findings *findings);

#endif
