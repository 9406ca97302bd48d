/* Splits a symbol into the function's name as people know it and the other facts that the runtime
 * put in it.
 *
 *     JS:*hot /srv/app.js:12:5         hot, TurboFan, /srv/app.js:12:5
 *     JS:*f :12:5                      f, TurboFan, <unknown>:12:5: of eval
 *     JS:~                             (anonymous), bytecode: the interpreter
 *     py::leaf:/srv/work.py            leaf, /srv/work.py
 *     JS:fib-3-liftoff                 fib, Liftoff, number 3
 *     hot (inlined)                    hot, inlined: as perfjit inject names such frames
 *     fib [tier2]                      fib, tier2
 */
#ifndef PERFJIT_FRAME_NAME_H
#define PERFJIT_FRAME_NAME_H

#include "injector/log/code/tier_mark.h"

#include <stdbool.h>

struct frame_name {
    const char *name; /* in SYMBOL, or a constant */
    size_t name_bytes;
    const char *file; /* in SYMBOL, or a constant; or NULL */
    size_t file_bytes;
    uint32_t line, column; /* 0: not known */
    const char *number;    /* in its module of WebAssembly; in SYMBOL */
    size_t number_bytes;   /* 0: it has none */
    char tier[TIER_TEXT_BYTES];
    bool inlined, interpreted;
};

/* Of JIT code. */
struct frame_name frame_name_of_jit(const char *symbol, size_t bytes);

/* Whether SYMBOL, of native code, is an interpreter's loop, or one of its handlers. */
bool frame_name_is_interpreter(const char *symbol);

#endif
