/* See runtime_entry.h.
 *
 * Both unwinders take a pointer to one FDE: LLVM's wants nothing else, and libgcc reads from there
 * to the zero that ends a section.
 */
#include "jitunwind/runtime_entry.h"

#include "jitunwind/frames/table_program.h"

#include <dlfcn.h>
#include <errno.h>

typedef void entry_function(void *fde);

/* If the unwinder is linked into the program, only the linker finds these functions. */
extern __attribute__((weak)) entry_function __register_frame, __deregister_frame;

static entry_function *find(entry_function *linked, const char *name)
{
    entry_function *found = linked;
    if (!found) {
        void *symbol = dlsym(RTLD_DEFAULT, name);
        memcpy(&found, &symbol, sizeof found);
    }
    return found;
}

int ju_runtime_entry_open(struct function_table *table, void **entry)
{
    entry_function *open = find(__register_frame, "__register_frame");
    uint8_t *fde = open ? ju_table_program_write(table) : NULL;
    if (!fde)
        return -ENOTSUP;
    open(fde);
    *entry = fde;
    return 0;
}

void ju_runtime_entry_close(void *entry)
{
    entry_function *close = entry ? find(__deregister_frame, "__deregister_frame") : NULL;
    if (close)
        close(entry);
}
