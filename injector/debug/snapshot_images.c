/* See snapshot_images.h. */
#include "injector/debug/snapshot_images.h"

#include "injector/files/interruption.h"
#include "injector/inject/image/elf_image.h"
#include "injector/inject/image/unwind_table.h"

/* Debuggers look up an address in one file: those of several must not reach over each other. */
static int plan_images(struct snapshot_images *images, const struct snapshot_code *code,
                       struct findings *findings)
{
    const struct jit_processes *processes = &code->recording.processes;
    for (size_t i = 0; i < processes->count; i++)
        if (image_plan_add(&images->plan, &processes->items[i], &code->recording.timelines[i],
                           LAYOUT_APART, findings) ||
            unwind_tables_place(&images->plan, processes->items, (uint32_t)i, findings))
            return -1;
    return 0;
}

int snapshot_images_write(struct snapshot_images *images, const struct snapshot_code *code,
                          const char *path, struct findings *findings)
{
    *images = (struct snapshot_images){.dsos = {.fd = -1, .place_fd = -1}};
    if (code->none)
        return report_failure(findings, "%s", code->none);
    if (dso_dir_open(&images->dsos, path, false, findings) || plan_images(images, code, findings) ||
        elf_images_write(&images->plan, code->recording.processes.items, images->dsos.fd, false,
                         findings) ||
        interruption_check(findings) || dso_dir_commit(&images->dsos, findings))
        return -1;
    dso_dir_finish(&images->dsos);
    images->table =
        (struct code_table){&code->snapshot, &code->recording.processes, code->recording.timelines,
                            &images->plan, images->dsos.path};
    return 0;
}

void snapshot_images_free(struct snapshot_images *images)
{
    dso_dir_close(&images->dsos);
    image_plan_free(&images->plan);
}
