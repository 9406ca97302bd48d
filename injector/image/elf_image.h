/* An image as an ELF file: what perf, gdb, objdump and the rest open to name and show JIT code.
 *
 *     offset = virtual address
 *     0           ELF header, program headers, .note.gnu.build-id
 *     text_start  .text: the functions, each at its run-time address minus the image's base
 *     tables      .eh_frame_hdr, .eh_frame, if the functions have any: at or above text_end, where the process had
 *                 nothing
 *                 .symtab: a local FUNC symbol per function, with its size
 *                 .strtab, .shstrtab, section headers
 *
 * The one PT_LOAD starts at 0 and ends with the text: it must not reach over the tables, which may stand behind other
 * libraries.  Why so: docs/decisions.md, "The image".
 */
#ifndef PERFJIT_ELF_IMAGE_H
#define PERFJIT_ELF_IMAGE_H

#include "injector/image/image_plan.h"

/* The file name of IMAGE, number INDEX, once its build-id is known: jit-<pid>-<index>-<build-id>.so. */
enum { IMAGE_FILE_NAME_BYTES = 64 };
void image_file_name(const struct jit_image *image, const struct jit_process *process, size_t index,
                     char name[IMAGE_FILE_NAME_BYTES]);

/* Write IMAGE, number INDEX, of PROCESS into the directory DIR_FD and set its build-id.  The same input gives the
 * same bytes.  Returns 0, or -1 with the failure text set. */
int elf_image_write(struct jit_image *image, const struct jit_process *process, size_t index,
                    int dir_fd, struct findings *findings);

#endif
